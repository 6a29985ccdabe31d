"""What the rule ``builtin-pow`` rewrites, and what it leaves alone."""

from __future__ import annotations

from breakscope.fix.rule import Example


def _f(
    old: str, new: str = "", *, arguments: str = "x", calls: tuple[str, ...] = ("torch.rand(3, 4) + 0.1",)
) -> Example:
    """A function that returns an expression; what is left alone is a place where Dynamo need not break."""
    before, after = (f"def f({arguments}):\n    return {text}\n" if text else "" for text in (old, new))
    return Example(before, after, calls=calls, site="" if new else old, code="" if new else "BS111")


REWRITES = (
    _f("-pow(x + 1, -0.5) * 3", "-((x + 1) ** (-0.5)) * 3"),
    _f("pow(x.sum(), 3).exp()", "(x.sum() ** 3).exp()"),
    _f("torch.relu(pow(x, n))", "torch.relu(x ** n)", arguments="x, n", calls=("torch.rand(3, 4), 3",)),
)

LEAVES = (
    _f("pow(n, 5, 7) * x", arguments="x, n", calls=("torch.rand(3, 4), 3",)),
    _f("torch.pow(x, 2)"),
    _f("pow(x, 2)", arguments="x, pow=torch.pow"),
    _f("pow(*[x, 2])"),
)
