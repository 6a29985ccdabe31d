"""What the rule ``mask-to-where`` rewrites, and what it leaves alone."""

from breakscope.fix.rule import Example

REWRITES = (
    Example(
        """\
def f(x):
    m = x > 0
    return x[m].mean() * 2
""",
        """\
def f(x):
    m = x > 0
    return (torch.where(m, x, 0).sum() / m.sum()) * 2
""",
    ),
    Example(
        """\
def f(x):
    return x.masked_select(x > 0).mean()
""",
        """\
def f(x):
    return torch.where(x > 0, x, 0).sum() / (x > 0).sum()
""",
    ),
    Example(
        """\
def f(x):
    return torch.masked_select(x, x > 0).sum() + 1
""",
        """\
def f(x):
    return torch.where(x > 0, x, 0).sum() + 1
""",
    ),
    Example(
        """\
def f(x):
    return x[x > 3].sum()
""",
        """\
def f(x):
    return torch.where(x > 3, x, 0).sum()
""",
        calls=("torch.randint(0, 9, (3, 4))",),
    ),
    Example(
        """\
def f(x, keep):
    ok = x > 0
    return ok[keep].all()
""",
        """\
def f(x, keep):
    ok = x > 0
    return torch.where(keep, ok, True).all()
""",
        calls=("torch.randn(3, 4), torch.randn(3, 4) > 0",),
    ),
    Example(
        """\
def f(x, keep):
    return (x > 0)[keep].any()
""",
        """\
def f(x, keep):
    return torch.where(keep, x > 0, False).any()
""",
        calls=("torch.randn(3, 4), torch.randn(3, 4) > 0",),
    ),
    Example(
        """\
def f(loss, keep):
    return loss[keep].mean()
""",
        """\
def f(loss, keep):
    return torch.where(keep, loss, 0).sum() / keep.sum()
""",
        calls=("torch.randn(3, 4, requires_grad=True), torch.randn(3, 4) > 0",),
    ),
    Example(
        """\
def f(loss, keep):
    total = loss[keep].sum()
    return total / 12
""",
        """\
def f(loss, keep):
    total = torch.where(keep, loss, 0).sum()
    return total / 12
""",
        calls=("torch.randn(3, 4, requires_grad=True), torch.randn(3, 4) > 0",),
    ),
    Example(
        """\
def f(x):
    o = torch.zeros_like(x)
    m = x > 0
    o[m] = x[m] * 2
    return o
""",
        """\
def f(x):
    o = torch.zeros_like(x)
    m = x > 0
    o.copy_(torch.where(m, x * 2, o))
    return o
""",
    ),
    Example(
        """\
def f(x, labels, w):
    x = x * 1
    x[labels == 1] += w
    return x
""",
        """\
def f(x, labels, w):
    x = x * 1
    x.copy_(torch.where((labels == 1)[..., None], x + w, x))
    return x
""",
        calls=("torch.randn(2, 3, 4), torch.randint(0, 3, (2, 3)), torch.randn(1, 4, requires_grad=True)",),
        site="x[labels == 1]",
        code="BS105",
    ),
    Example(
        """\
def f(x, m):
    x = x * 1
    x[m] *= 0.5
    return x
""",
        """\
def f(x, m):
    x = x * 1
    x.copy_(torch.where(m, x * 0.5, x))
    return x
""",
        calls=("torch.randn(3, 4, requires_grad=True), torch.randn(3, 4) > 0",),
        site="x[m]",
        code="BS105",
    ),
    Example(
        """\
def f(x):
    o = torch.zeros_like(x)
    m = x > 0
    o[m] = torch.log(x[m])
    return o
""",
        """\
def f(x):
    o = torch.zeros_like(x)
    m = x > 0
    o.copy_(torch.where(m, torch.log(x), o))
    return o
""",
    ),
    Example(
        """\
def f(x, y):
    m = x > 0
    x[m] = y[m]
    return x
""",
        """\
def f(x, y):
    m = x > 0
    x.copy_(torch.where(m, y, x))
    return x
""",
        calls=("torch.randn(3, 4), torch.randn(3, 4)",),
    ),
    Example(
        """\
def f(x, y):
    m = x > 0
    x[m] = x[m] + y[m] * 2  # together
    return x
""",
        """\
def f(x, y):
    m = x > 0
    x.copy_(torch.where(m, x + y * 2, x))  # together
    return x
""",
        calls=("torch.randn(3, 4), torch.randn(3, 4)",),
    ),
    Example(
        """\
def f(x):
    o = torch.zeros_like(x)
    m = x > 0
    o[m] = x[m] + 1
    return o
""",
        """\
def f(x):
    o = torch.zeros_like(x)
    m = x > 0
    o.copy_(torch.where(m, x + 1, o))
    return o
""",
        calls=("torch.randn(3, 4, requires_grad=True)",),
    ),
)

LEAVES = (
    Example(
        """\
def f(x):
    return x[x > 0] + 1
""",
        why="the selected elements are used as a tensor whose shape depends on the data",
    ),
    Example(
        """\
def f(x):
    return x[x > 0].std()
""",
        why="`std` of the selected elements has no exact form over all of them",
    ),
    Example(
        """\
def f(x):
    return x[x > 0].sum(0)
""",
        why="the selected elements are used as a tensor whose shape depends on the data",
    ),
    Example(
        """\
def f(x, rows):
    return x[rows].sum()
""",
        why="the mask has not the shape of what it selects from",
        calls=("torch.randn(3, 4), torch.tensor([True, False, True])",),
    ),
    Example(
        """\
def f(x):
    return x[x > 0].mean()
""",
        why="the mean of float16 is rounded otherwise when it is taken of a sum",
        calls=("torch.randn(3, 4).half()",),
    ),
    Example(
        """\
def f(x):
    o = torch.zeros_like(x)
    m = x > 0
    o[m] = x[m] / x[m].sum()
    return o
""",
        why="`x[m].sum()` does not work on each element by itself",
    ),
    Example(
        """\
def f(x):
    o = torch.zeros_like(x)
    m = x > 0
    o[m] = torch.softmax(x[m], 0)
    return o
""",
        why="`torch.softmax(x[m], 0)` does not work on each element by itself",
    ),
    Example(
        """\
def f(x):
    o = torch.zeros(3, 4, dtype=torch.float64)
    m = x > 0
    o[m] = x[m].double().sqrt() + x.sum()
    return o
""",
        why="`x.sum()` does not work on each element by itself",
    ),
    Example(
        """\
def f(x):
    o = torch.zeros_like(x)
    m = x > 0
    o[m] = torch.sqrt(x[m])
    return o
""",
        why="gradients flow here, and they may be NaN for elements that the mask leaves out",
        calls=("torch.randn(3, 4, requires_grad=True)",),
    ),
    Example(
        """\
def f(x):
    o = torch.zeros_like(x)
    m, n = x > 0, x < 0
    o[m] = x[m] + x[n].sum()
    return o
""",
        why="what `x[n].sum()` does is not known: `x[n]` may raise for some inputs",
    ),
    Example(
        """\
def f(x):
    o = torch.zeros_like(x)
    m = x > 0
    o[m] = torch.rand_like(x[m])
    return o
""",
        why="`torch.rand_like(x[m])` draws random numbers",
    ),
    Example(
        """\
def f(x, y, m):
    x = x * 1
    x[m] += y[m]
    return x
""",
        why="what changes the selected elements differs among them, or is of another dtype",
        calls=("torch.randn(3, 4), torch.randn(3, 4), torch.randn(3, 4) > 0",),
        site="x[m]",
        code="BS105",
    ),
    Example(
        """\
def f(x, w, m):
    x = x * 1
    x[m] *= w
    return x
""",
        why="gradients flow through what the selected elements are multiplied with",
        calls=("torch.randn(3, 4), torch.randn(4, requires_grad=True), torch.randn(3) > 0",),
        site="x[m]",
        code="BS105",
    ),
    Example(
        """\
def f(x):
    parts = [x[x > 0], x[x <= 0]]
    return torch.cat(parts)
""",
        why="the selected elements are used as a tensor whose shape depends on the data",
    ),
)
