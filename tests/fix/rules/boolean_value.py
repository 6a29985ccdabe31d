"""What the rule ``boolean-value`` rewrites, and what it leaves alone."""

from __future__ import annotations

from breakscope.fix.rule import Example

_PLAIN = ("torch.randn(3, 4)", "torch.ones(3, 4)")


def _case(
    before: str, after: str = "", *, why: str = "", calls: tuple[str, ...] = _PLAIN, site: str = ""
) -> Example:
    before, after = before.lstrip("\n"), after.lstrip("\n")
    return Example(before, after, why=why, calls=calls, site=site, code="BS101" if site else "")


REWRITES = (
    _case(
        """
def f(x):
    return torch.isnan(x).any() or x.max() > 1
""",
        """
def f(x):
    return torch.isnan(x).any() | (x.max() > 1)
""",
    ),
    _case(
        """
def f(x):
    return scaled(x, x.sum() > 0 and x.max() < 1 or x.min() > 0)


def scaled(x, m):
    return x * m
""",
        """
def f(x):
    return scaled(x, ((x.sum() > 0) & (x.max() < 1)) | (x.min() > 0))


def scaled(x, m):
    return x * m
""",
    ),
    _case(
        """
def f(x):
    return torch.where(0 < x.mean() < 2, x, -x)
""",
        """
def f(x):
    return torch.where((0 < x.mean()) & (x.mean() < 2), x, -x)
""",
    ),
    _case(
        """
def f(x):
    inside = -1 < x.mean().item() <= 0.5
    return x * inside
""",
        """
def f(x):
    inside = ((-1) < x.mean()) & (x.mean() <= 0.5)
    return x * inside
""",
    ),
    _case(
        """
def f(x):
    keep = not (x.sum() > 0)
    return x * keep
""",
        """
def f(x):
    keep = ~(x.sum() > 0)
    return x * keep
""",
    ),
    _case(
        """
def f(x, flag):
    keep = flag and not (x.sum() > 0) and x.max() < 1
    return x * keep
""",
        """
def f(x, flag):
    keep = flag and (~(x.sum() > 0) & (x.max() < 1))
    return x * keep
""",
        calls=("torch.randn(3, 4), True", "-torch.ones(3, 4), True", "torch.randn(3, 4), False"),
    ),
    _case(
        """
def f(x, flag):
    keep = flag or x.sum() > 0 or x.max() < 1
    return x * keep
""",
        """
def f(x, flag):
    keep = flag or ((x.sum() > 0) | (x.max() < 1))
    return x * keep
""",
        calls=("torch.randn(3, 4), True", "torch.randn(3, 4), False"),
    ),
    _case(
        """
def f(x):
    return x * any([x.sum() > 0, x.max() > 1])
""",
        """
def f(x):
    return x * ((x.sum() > 0) | (x.max() > 1))
""",
    ),
    _case(
        """
def f(x):
    mask = x > 0
    return mask & all((x.sum() > 0, torch.isfinite(x).all()))
""",
        """
def f(x):
    mask = x > 0
    return mask & ((x.sum() > 0) & torch.isfinite(x).all())
""",
    ),
    _case(
        """
def f(x):
    return x * any(x[0] > 0)
""",
        """
def f(x):
    return x * (x[0] > 0).any()
""",
    ),
    _case(
        """
def f(x):
    seen = 1.0 in x
    return x * seen
""",
        """
def f(x):
    seen = (x == 1.0).any()
    return x * seen
""",
    ),
    _case(
        """
def f(x):
    return x * bool(x.any())
""",
        """
def f(x):
    return x * x.any()
""",
    ),
    _case(
        """
def f(x):
    a = x.sum() > 0
    b = x.max() < 1
    both = a and b
    return torch.where(both, x + 1, x - 1)
""",
        """
def f(x):
    a = x.sum() > 0
    b = x.max() < 1
    both = a & b
    return torch.where(both, x + 1, x - 1)
""",
    ),
    _case(
        """
def f(x, m=None):
    some = m is not None and (m > 0).any() and (x > 0).any()
    return x * some
""",
        """
def f(x, m=None):
    some = m is not None and ((m > 0).any() & (x > 0).any())
    return x * some
""",
        calls=("torch.randn(3, 4), torch.randn(3, 4)", "torch.randn(3, 4)"),
    ),
    _case(
        """
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("limit", torch.tensor(2.0))

    def forward(self, x):
        low = not (x.abs().max() > self.limit)
        return x * low
""",
        """
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("limit", torch.tensor(2.0))

    def forward(self, x):
        low = ~(x.abs().max() > self.limit)
        return x * low
""",
    ),
)

LEAVES = (
    _case(
        """
def f(x):
    low = not (x.sum() > 0)
    if low:
        x = x + 1
    return x * 1
""",
        why="`low` is a bool that decides in Python",
    ),
    _case(
        """
def f(x):
    return x[int(any([x.sum() > 0, x.max() > 1]))]
""",
        why="is handed to a function as a Python bool",
    ),
    _case(
        """
def f(x):
    y = x.sum() or x.max()
    return x * y
""",
        why="`x.sum()` is no bool tensor: the operator hands on its number",
    ),
    _case(
        """
def f(x):
    y = (x.sum() > 0) and (x > 1)
    return x * y
""",
        why="`x > 1` is not known to have one element",
    ),
    _case(
        """
def f(x, n):
    y = (x.sum() > 0) and x[n].sum() > 0
    return torch.where(y, x, -x)
""",
        why="`x[n]` may raise for some inputs",
        calls=("torch.randn(3, 4), 2",),
    ),
    _case(
        """
def f(x):
    y = (x.sum() > 0) and torch.rand_like(x).max() > 0.5
    return torch.where(y, x, -x)
""",
        why="draws random numbers",
    ),
    _case(
        """
def f(x):
    y = (x.sum() > 0) and x.add_(1).sum() > 0
    return torch.where(y, x, -x)
""",
        why="writes into a tensor",
    ),
    _case(
        """
def f(x, on):
    y = on and (x > 0).any()
    on.logical_not_()
    return torch.where(y, x + 1, x - 1)
""",
        why="`on` is changed in place elsewhere",
        calls=("torch.randn(3, 4), torch.tensor(True)", "torch.randn(3, 4), torch.tensor(False)"),
    ),
    _case(
        """
def f(x, on):
    y = bool(on)
    on.logical_not_()
    return x * y
""",
        why="`on` is changed in place elsewhere",
        calls=("torch.randn(3, 4), torch.tensor(True)",),
    ),
    _case(
        """
def f(x):
    y = not (x.sum() > 0)
    return x + y
""",
        why="`y` is used as a Python bool",
    ),
    _case(
        """
def f(x):
    y = not (x.sum() > 0)
    z = y
    return x * z
""",
        why="`y` is used as a Python bool",
    ),
    _case(
        """
def f(x):
    y = not (x.sum() > 0)
    y = y * 2
    return x * y
""",
        why="`y` is given other values too",
    ),
    _case(
        """
def f(x):
    y = any([x.sum() > 0, helper(x)])
    return x * y


def helper(x):
    return True
""",
        why="what `helper(x)` does is not known",
    ),
    _case(
        """
def f(x):
    return x * any(row.sum() > 0 for row in x)
""",
        why="",
        site="any(row.sum() > 0 for row in x)",
    ),
    _case(
        """
def f(x):
    return {"low": not (x.sum() > 0), "x": x}
""",
        why="leaves the function as a Python bool",
    ),
    _case(
        """
def f(x):
    y = x.sum() > 0 and x.max() < 1 and len(locals()) > 0
    return x * y
""",
        why="looks at its own local variables",
    ),
)
