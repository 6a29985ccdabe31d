"""What the rule ``ternary-to-where`` rewrites, and what it leaves alone."""

from breakscope.fix.rule import Example

REWRITES = (
    Example(
        """\
def f(x):
    y = x + 1 if torch.isnan(x).any() else x - 1
    return y
""",
        """\
def f(x):
    y = torch.where(torch.isnan(x).any(), x + 1, x - 1)
    return y
""",
    ),
    Example(
        """\
def f(x):
    return (x if x.max() > 1 else -x) + 1
""",
        """\
def f(x):
    return torch.where(x.max() > 1, x, -x) + 1
""",
    ),
    Example(
        """\
def f(x, flag):
    y = x * 2 if flag and x.sum() > 0 else x
    return y
""",
        """\
def f(x, flag):
    y = torch.where(x.sum() > 0, x * 2, x) if flag else x
    return y
""",
        calls=(
            "torch.randn(3, 4), True",
            "torch.randn(3, 4), False",
        ),
    ),
    Example(
        """\
def f(x):
    return torch.relu(x if x.sum().item() > 0 else -x)
""",
        """\
def f(x):
    return torch.relu(torch.where(x.sum() > 0, x, -x))
""",
    ),
    Example(
        """\
def f(x):
    limit = 2.0
    x = x.clamp(-limit, limit) if not torch.isfinite(x).all() else x
    return x
""",
        """\
def f(x):
    limit = 2.0
    x = torch.where(~torch.isfinite(x).all(), x.clamp(-limit, limit), x)
    return x
""",
    ),
    Example(
        """\
def f(x):
    return x + 1 if x.sum() > 0 else x - 1
""",
        """\
def f(x):
    return torch.where(x.sum() > 0, x + 1, x - 1)
""",
        calls=("torch.randn(3, 4, requires_grad=True)",),
    ),
    Example(
        """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("shift", torch.ones(4))

    def forward(self, x):
        x = x - self.shift if x.mean() > 0 else x + self.shift
        return x
""",
        """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("shift", torch.ones(4))

    def forward(self, x):
        x = torch.where(x.mean() > 0, x - self.shift, x + self.shift)
        return x
""",
    ),
    Example(
        """\
def f(x):
    y = (
        x.abs()  # the size
        if x.min() < 0
        else x
    )
    return y
""",
        """\
def f(x):
    y = torch.where(x.min() < 0, x.abs(), x)
    return y
""",
    ),
    Example(
        """\
def f(x):
    a = [x + 1, x + 2 if x.sum() > 0 else x]
    return a[1]
""",
        """\
def f(x):
    a = [x + 1, torch.where(x.sum() > 0, x + 2, x)]
    return a[1]
""",
    ),
)

LEAVES = (
    Example(
        """\
def f(x):
    return [row * 2 if row.sum() > 0 else row * 1 for row in x]
""",
        why="`row` belongs to a comprehension, whose values are not recorded",
    ),
    Example(
        """\
def f(x):
    return x[:1] if x.sum() > 0 else x
""",
        why="`x[:1]` may raise for some inputs",
    ),
    Example(
        """\
def f(x):
    n = 1 if x.sum() > 0 else 2
    return x[:n]
""",
        why="the branches give Python values, not tensors",
    ),
    Example(
        """\
def f(x):
    return x + torch.rand_like(x) if x.sum() > 0 else x
""",
        why="`torch.rand_like(x)` draws random numbers",
    ),
    Example(
        """\
def f(x):
    return x.add_(1) if x.sum() > 0 else x
""",
        why="`x.add_(1)` writes into a tensor",
    ),
    Example(
        """\
def f(x):
    y = None if x.sum() > 0 else x
    return x if y is None else y
""",
        why="one branch gives a tensor and the other a Python value",
    ),
    Example(
        """\
def f(x):
    return x.log() if (x > 0).all() else x
""",
        why="gradients flow here: where a derivative of the branch",
        calls=("torch.randn(3, 4, requires_grad=True)",),
    ),
    Example(
        """\
def f(x):
    return (x, x) if x.sum() > 0 else (x, -x)
""",
        why="what `(x, x)` does is not known",
    ),
    Example(
        """\
def f(x):
    return helper(x) if x.sum() > 0 else x


def helper(x):
    return x + 1
""",
        why="what `helper(x)` does is not known",
    ),
    Example(
        """\
def f(x, y):
    return x if x.sum() > 0 else y
""",
        why="the branches give different shapes",
        calls=("torch.randn(3, 4), torch.randn(1, 4)",),
    ),
)
