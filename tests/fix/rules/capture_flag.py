"""What the rule ``capture-flag`` rewrites, and what it leaves alone."""

from breakscope.fix.rule import Example

_FORCES = """\
def f(x):
    with torch.enable_grad():
        y = x.detach().requires_grad_(True)
        (forces,) = torch.autograd.grad((y**2).sum(), y)
    return x - forces
"""

# An operator of the user's own, of whose result only data says how long it is.
_OWN = """\
@torch.library.custom_op("capture_flag_example::positive", mutates_args=())
def positive(x: torch.Tensor) -> torch.Tensor:
    return x[x > 0].clone()


@positive.register_fake
def _(x):
    return x.new_empty(torch.library.get_ctx().new_dynamic_size())


def f(x):
    return torch.ops.capture_flag_example.positive(x) * 2
"""

REWRITES = (
    Example(_OWN, _OWN),
    Example(
        """\
def f(x, bounds):
    start, end = bounds
    return x[start:end] * 2
""",
        """\
def f(x, bounds):
    start, end = bounds
    return x[start:end] * 2
""",
        calls=("torch.randn(5, 4), torch.tensor([1, 3])",),
    ),
    Example(
        """\
def f(x, lengths):
    steps = torch.arange(lengths.max(), device=x.device)
    return (steps[None] < lengths[:, None]).to(x.dtype)
""",
        """\
def f(x, lengths):
    steps = torch.arange(lengths.max(), device=x.device)
    return (steps[None] < lengths[:, None]).to(x.dtype)
""",
        calls=("torch.randn(2, 4), torch.tensor([1, 3])",),
    ),
    Example(
        """\
def f(x):
    n = int((x > 0).sum())
    return x.flatten()[:n]
""",
        """\
def f(x):
    n = int((x > 0).sum())
    return x.flatten()[:n]
""",
    ),
    Example(
        """\
def f(x):
    return x[x > 0] + 1
""",
        """\
def f(x):
    return x[x > 0] + 1
""",
    ),
    Example(
        """\
def f(x, n):
    return F.pad(x, (0, int(n)))
""",
        """\
def f(x, n):
    return F.pad(x, (0, int(n)))
""",
        calls=("torch.randn(3, 4), torch.tensor(2)",),
    ),
    Example(
        """\
def f(x):
    rows, columns = torch.where(x > 0)
    return x[rows, columns] * 2
""",
        """\
def f(x):
    rows, columns = torch.where(x > 0)
    return x[rows, columns] * 2
""",
    ),
    Example(
        """\
def f(x):
    return torch.unique(x)
""",
        """\
def f(x):
    return torch.unique(x)
""",
        calls=("torch.randint(0, 3, (5,))",),
    ),
    Example(
        """\
def f(x):
    return x.masked_select(x > 0).max()
""",
        """\
def f(x):
    return x.masked_select(x > 0).max()
""",
    ),
    Example(
        """\
def f(x):
    n = (x > 0).sum().item()
    return x.new_ones(n)
""",
        """\
def f(x):
    n = (x > 0).sum().item()
    return x.new_ones(n)
""",
    ),
    Example(
        _FORCES,
        _FORCES,
    ),
)

LEAVES = (
    Example(
        """\
def f(x):
    rows, columns = torch.where(x > 0)
    if rows.shape[0] == 0:
        return x[0]
    return x[rows, columns] * 2
""",
        why="`rows.shape[0] == 0` depends on the value, and Python decides it",
    ),
    Example(
        """\
def f(x):
    total = x.sum()
    hit = (x.sum(1) > 0).nonzero(as_tuple=True)[0].tolist()
    for row in hit:
        columns = torch.where(x[row] > 0)[0]
        total = total + x[row][columns].sum()
    return total
""",
        why="`hit` depends on the value, and Python decides it",
    ),
    Example(
        """\
def f(x):
    n = (x > 0).sum().item()
    if n > 3:
        return x[:2]
    return x
""",
        why="`n > 3` depends on the value, and Python decides it",
    ),
    Example(
        """\
def f(x):
    for i in range(int((x > 0).sum())):
        x = x + i
    return x
""",
        why="`range(int((x > 0).sum()))` depends on the value, and Python decides it",
    ),
    Example(
        """\
def f(x):
    while x.sum().item() > 0:
        x = x - 1
    return x
""",
        why="`x.sum().item() > 0` depends on the value, and Python decides it",
    ),
    Example(
        """\
def f(x):
    for row in torch.nonzero(x > 0):
        x = x + row.sum()
    return x
""",
        why="`torch.nonzero(x > 0)` depends on the value, and Python decides it",
    ),
)
