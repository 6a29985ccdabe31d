"""What the rule ``scalar-read`` rewrites, and what it leaves alone."""

from breakscope.fix.rule import Example

REWRITES = (
    Example(
        """\
def f(x):
    s = x.abs().mean().item()
    y = x / s
    return y - s
""",
        """\
def f(x):
    s = x.abs().mean().detach()
    y = x / s
    return y - s
""",
        calls=("torch.randn(3, 4, requires_grad=True)",),
    ),
    Example(
        """\
def f(x):
    return x * (2 * float(x.sum()) + 1)
""",
        """\
def f(x):
    return x * (2 * x.sum().detach().double() + 1)
""",
    ),
    Example(
        """\
def f(x):
    return x + x[0, :1].item()
""",
        """\
def f(x):
    return x + x[0, :1].detach().reshape(())
""",
    ),
    Example(
        """\
def f(x):
    n = (x > 0).sum().item()
    return x.sum() / n
""",
        """\
def f(x):
    n = (x > 0).sum()
    return x.sum() / n
""",
    ),
    Example(
        """\
def f(x):
    return x > x.mean().item()
""",
        """\
def f(x):
    return x > x.mean().detach()
""",
    ),
    Example(
        """\
def f(x):
    return x - float(x.mean())
""",
        """\
def f(x):
    return x - x.mean().detach()
""",
    ),
    Example(
        """\
def f(x):
    return x.mean().item() - x
""",
        """\
def f(x):
    return x.mean().detach() - x
""",
    ),
    Example(
        """\
def f(x):
    return x * -x.max().item()
""",
        """\
def f(x):
    return x * -x.max().detach()
""",
    ),
    Example(
        """\
def f(x):
    return x * (x.max().item() + 0.1)
""",
        """\
def f(x):
    return x * (x.max().detach().double() + 0.1)
""",
        calls=("torch.randn(3, 4).double()",),
    ),
    Example(
        """\
def f(x):
    return x * x.max().item()
""",
        """\
def f(x):
    return x * x.max().detach()
""",
        calls=("torch.randn(3, 4).half()",),
    ),
    Example(
        """\
def f(x):
    return x + x.min().item()
""",
        """\
def f(x):
    return x + x.min().detach()
""",
        calls=("torch.randn(3, 4).bfloat16()",),
    ),
    Example(
        """\
def f(x, n):
    return x * n.item()
""",
        """\
def f(x, n):
    return x * n.clone()
""",
        calls=("torch.randn(3, 4), torch.tensor(3)",),
    ),
    Example(
        """\
def f(x, n):
    return x * float(n)
""",
        """\
def f(x, n):
    return x * n.double()
""",
        calls=("torch.randn(3, 4), torch.tensor(3)",),
    ),
    Example(
        """\
def f(x, alpha):
    a = alpha.item()
    y = x * a
    z = x - a
    return y + z
""",
        """\
def f(x, alpha):
    a = alpha.detach().clone()
    y = x * a
    z = x - a
    return y + z
""",
        calls=("torch.randn(3, 4), torch.tensor(0.5)",),
    ),
    Example(
        """\
def f(x, alpha):
    return x * alpha.item()
""",
        """\
def f(x, alpha):
    return x * alpha.detach().reshape(()).clone()
""",
        calls=("torch.randn(3, 4), torch.tensor([0.5])",),
    ),
    Example(
        """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.tensor(0.5))

    def forward(self, x):
        return x * self.scale.item()
""",
        """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.tensor(0.5))

    def forward(self, x):
        return x * self.scale.detach().clone()
""",
    ),
    Example(
        """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.temperature = nn.Parameter(torch.tensor(0.5))

    def forward(self, x):
        return x / self.temperature.item()
""",
        """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.temperature = nn.Parameter(torch.tensor(0.5))

    def forward(self, x):
        return x / self.temperature.detach().clone()
""",
    ),
    Example(
        """\
def f(x):
    return (x < (x.max() * 0.5).item()).sum()
""",
        """\
def f(x):
    return (x < (x.max() * 0.5).detach()).sum()
""",
    ),
    Example(
        """\
def f(x):
    return x * (x + 1).max().item()  # scaled
""",
        """\
def f(x):
    return x * (x + 1).max().detach()  # scaled
""",
    ),
)

LEAVES = (
    Example(
        """\
def f(x):
    n = int((x > 0).sum())
    return x[:n]
""",
        why="`n` is an index or a bound of a slice",
    ),
    Example(
        """\
def f(x):
    return x.half() * x.max().item()
""",
        why="`x.half() * x.max().item()` would round otherwise with a tensor",
    ),
    Example(
        """\
def f(x):
    k = x.sum().item()
    return k
""",
        why="`k` leaves the function as a Python number",
    ),
    Example(
        """\
def f(x):
    return x, x.sum().item()
""",
        why="`x.sum().item()` leaves the function as a Python number",
    ),
    Example(
        """\
def f(x):
    return torch.clamp(x, max=x.mean().item())
""",
        why="`x.mean().item()` is handed to a function as a Python number",
    ),
    Example(
        """\
def f(x):
    k = (x > 0).any().item()
    if k:
        return x + 1
    return x
""",
        why="a bool is read, for Python to decide with",
    ),
    Example(
        """\
def f(x):
    n = (x > 0).sum().item()
    if n > 3:
        return x[:2]
    return x
""",
        why="`n` is used as a Python number",
    ),
    Example(
        """\
def f(x):
    for i in range(int((x > 0).sum())):
        x = x + i
    return x
""",
        why="`int((x > 0).sum())` is handed to a function as a Python number",
    ),
    Example(
        """\
def f(x):
    return x ** x.mean().item()
""",
        why="`x ** x.mean().item()` may treat a number and a tensor differently",
    ),
    Example(
        """\
def f(x):
    return x % x.max().item()
""",
        why="`x % x.max().item()` may treat a number and a tensor differently",
    ),
    Example(
        """\
def f(x, a):
    return x * a.item()
""",
        why="`x * a.item()` would promote otherwise with a tensor",
        calls=("torch.ones(3, 4, dtype=torch.int64), torch.tensor(0.5)",),
    ),
    Example(
        """\
def f(x, a):
    return x.sum() * a.item()
""",
        why="`x.sum() * a.item()` would promote otherwise with a tensor",
        calls=("torch.ones(3, 4), torch.tensor(0.5).double()",),
    ),
    Example(
        """\
def f(x, n):
    return x * n.item()
""",
        why="`x * n.item()` would round otherwise with a tensor",
        calls=("torch.ones(3, 4).half(), torch.tensor(3)",),
    ),
    Example(
        """\
def f(x):
    return x / (x.max().item() / 3)
""",
        why="`x.max().item() / 3` is computed in Python",
    ),
    Example(
        """\
def f(x):
    s = x.max().item()
    s = s + 1
    return x * s
""",
        why="`s` is given other values too",
    ),
    Example(
        """\
def f(x):
    out = {}
    out["max"] = x.max().item()
    return x + 1
""",
        why="the number is stored where others may read it",
    ),
    Example(
        """\
def f(x):
    s = x.max().item()

    def scaled():
        nonlocal s
        s = 2.0

    scaled()
    return x * s
""",
        why="`s` is given other values too",
    ),
    Example(
        """\
def f(x):
    return x > x.max().item() * 0.5
""",
        why="`x > x.max().item() * 0.5` would compare in another precision",
    ),
    Example(
        """\
def f(x):
    return 2 / x.max().item() * x
""",
        why="`2 / x.max().item()` is computed in Python",
    ),
    Example(
        """\
def f(x):
    n = bool((x > 0).all())
    return x * n
""",
        why="a bool is read, for Python to decide with",
    ),
    Example(
        """\
def f(x):
    return x.new_full((2,), x.max().item())
""",
        why="`x.max().item()` is handed to a function as a Python number",
    ),
    Example(
        """\
def f(x):
    return f"{x.max().item():.2f}", x
""",
        why="`x.max().item()` is used as a Python number",
    ),
    Example(
        """\
def f(x):
    s = t = x.max().item()
    return x * s + t
""",
        why="the number is stored where others may read it",
    ),
)
