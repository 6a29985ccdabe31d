"""What the rule ``branch-to-cond`` rewrites, and what it leaves alone."""

from __future__ import annotations

from breakscope.fix.rule import Example

_CALLS = ("torch.rand(3, 4)", "-torch.rand(3, 4)")
_GRAD = ("torch.rand(3, 4).requires_grad_()", "-torch.rand(3, 4).requires_grad_()")
_NET = """
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
"""


def _f(
    before: str,
    after: str = "",
    *,
    why: str = "",
    calls: tuple[str, ...] = _CALLS,
    consent: bool = False,
    arguments: str = "x",
) -> Example:
    """The body of a function."""
    before, after = (
        f"def f({arguments}):\n{text.lstrip(chr(10))}" if text else "" for text in (before, after)
    )
    return Example(before, after, why=why, calls=calls, consent=consent)


def _net(before: str, after: str = "", *, why: str = "", consent: bool = False) -> Example:
    """The body of the ``forward`` of a module with one layer."""
    before, after = ((_NET + text.lstrip("\n")).lstrip("\n") if text else "" for text in (before, after))
    return Example(before, after, why=why, calls=_CALLS, consent=consent)


REWRITES = (
    _net(
        """
        if x.sum() > 0:
            y = self.layer(x) + 1
        else:
            y = self.layer(x - 1) * 2
        return y
""",
        """
        condition = x.sum() > 0
        if torch.compiler.is_compiling():

            def taken(x):
                y = self.layer(x) + 1
                return y

            def otherwise(x):
                y = self.layer(x - 1) * 2
                return y

            y = torch.cond(condition, taken, otherwise, (x,))
        elif condition:
            y = self.layer(x) + 1
        else:
            y = self.layer(x - 1) * 2
        return y
""",
    ),
    _net(
        """
        h = x * 2
        if h.sum() > 0:
            # the long way
            h = self.layer(h)
        return h
""",
        """
        h = x * 2
        condition = h.sum() > 0
        if torch.compiler.is_compiling():

            def taken(h):
                # the long way
                h = self.layer(h)
                return h.clone()

            def otherwise(h):
                return h.clone()

            h = torch.cond(condition, taken, otherwise, (h,))
        elif condition:
            # the long way
            h = self.layer(h)
        return h
""",
        consent=True,
    ),
    _f(
        """
    y = x * 1
    if x.sum() > 0 and x.mean() < 9:
        noise = torch.rand_like(y)
        y = y + noise
    return y
""",
        """
    y = x * 1
    condition = (x.sum() > 0) & (x.mean() < 9)
    if torch.compiler.is_compiling():

        def taken(y):
            noise = torch.rand_like(y)
            y = y + noise
            return y

        def otherwise(y):
            return y.clone()

        y = torch.cond(condition, taken, otherwise, (y,))
    elif condition:
        noise = torch.rand_like(y)
        y = y + noise
    return y
""",
    ),
    _f(
        """
    a, b = x * 1, x + 1
    if x.sum() > 0:
        a = b[:, :n].repeat(1, 4 // n) / a
        b = torch.log(b)
    else:
        b = a / b
    return a, b
""",
        """
    a, b = x * 1, x + 1
    condition = x.sum() > 0
    if torch.compiler.is_compiling():

        def taken(a, b):
            a = b[:, :n].repeat(1, 4 // n) / a
            b = torch.log(b)
            return a, b

        def otherwise(a, b):
            b = a / b
            return a.clone(), b

        a, b = torch.cond(condition, taken, otherwise, (a, b))
    elif condition:
        a = b[:, :n].repeat(1, 4 // n) / a
        b = torch.log(b)
    else:
        b = a / b
    return a, b
""",
        arguments="x, n=2",
    ),
)

LEAVES = (
    # The side that never ran is longer.
    Example(
        """\
def f(tokens, prompts):
    if prompts.sum().item() != 0:
        joined = torch.cat((tokens, prompts), dim=1)
    else:
        joined = tokens
    return joined.mean(1)
""",
        why="`joined` is longer on one side than on the other: by hand, make it as long in any case and mask",
        calls=("torch.randn(2, 3, 4), torch.zeros(2, 1, 4)",),
    ),
    _f(
        """
    y = x * 1
    if x.sum() > 0:
        y.add_(1)
    return y
""",
        why="torch.cond takes sides that only assign tensors: `y.add_(1)`",
    ),
    _f(
        """
    y = x * 1
    if x.sum() > 0:
        y = y.add_(1)
    return y
""",
        why="writes into a tensor",
    ),
    _net(
        """
        y = x * 1
        if x.sum() > 0:
            self.seen = x
            y = self.layer(x)
        return y
""",
        why="a branch stores into `self.seen = x`",
    ),
    _f(
        """
    if x.sum() > 0:
        y = x.half()
    else:
        y = x * 2
    return y
""",
        why="the sides give `y` in different dtypes",
    ),
    _f(
        """
    if x.sum() > 0:
        y = x[:2] * 1
    else:
        y = x * 2
    return y
""",
        why="the sides give `y` in different shapes",
    ),
    _f(
        """
    if x.sum() > 0:
        y = x.sum(0)
    else:
        y = x * 2
    return y
""",
        why="the sides give `y` in different shapes",
    ),
    _f(
        """
    if x.sum() > 0:
        y = x.shape[0]
    else:
        y = x.dim()
    return x * y
""",
        why="tensors only",
    ),
    _f(
        """
    y = x * 1
    if x.sum() > 0:
        for row in x:
            y = y + row
    return y
""",
        why="torch.cond takes sides that only assign tensors",
    ),
    _f(
        """
    if x.sum() > 0:
        return x.log(), x
    return x.exp(), x
""",
        why="a branch returns more or less than one tensor",
    ),
    _f(
        """
    if flag and x.sum() > 0:
        x = torch.bernoulli(x.clamp(0, 1))
    return x * 1
""",
        why="Python decides a part of the condition",
        arguments="x, flag=True",
    ),
    _f(
        """
    y = x * 1
    if flag:
        y = y + 1
    elif x.sum() > 0:
        y = torch.bernoulli(x.clamp(0, 1))
    return y
""",
        why="not of an `elif`",
        arguments="x, flag=False",
    ),
    _f(
        """
    y = x
    if x.sum() > 0:
        y = torch.bernoulli(x.clamp(0, 1))
    y.add_(1)
    return y
""",
        why="`y` is changed in place elsewhere",
    ),
)
