"""Examples of the rule ``integer-division``: what it rewrites, and what it leaves alone."""

from __future__ import annotations

from breakscope.fix.rule import Example

_CALLS = ("torch.randn(8, 4)", "torch.randn(12, 4)", "torch.randn(20, 4)")


def _at(before: str, after: str = "", site: str = "", why: str = "") -> Example:
    return Example(before, after, why=why, calls=_CALLS, site=site, code="BS102")


REWRITES = (
    _at(
        """
def f(x):
    chunks = torch.div(x.shape[0], 2 * 2, rounding_mode="trunc") - 1
    out = x.new_zeros((chunks + 1, 4))
    return out, x
""",
        """
def f(x):
    chunks = (x.shape[0] // (2 * 2)) - 1
    out = x.new_zeros((chunks + 1, 4))
    return out, x
""",
        "x.new_zeros((chunks + 1, 4))",
    ),
    _at(
        """
def f(x):
    half = torch.div(len(x), 2, rounding_mode="floor")
    size = (half, 8)
    return x.reshape(size)
""",
        """
def f(x):
    half = len(x) // 2
    size = (half, 8)
    return x.reshape(size)
""",
        "x.reshape(size)",
    ),
    _at(
        """
def f(x):
    n = x.size(0) - 4
    return torch.zeros(torch.div(n, 2, rounding_mode="trunc"))
""",
        """
def f(x):
    n = x.size(0) - 4
    return torch.zeros(n // 2)
""",
        'torch.zeros(torch.div(n, 2, rounding_mode="trunc"))',
    ),
)

LEAVES = (
    _at(
        """
def f(x):
    half = torch.div(x.size(0), 2, rounding_mode="trunc")
    return x.new_zeros((half, 1)), half
""",
        site="x.new_zeros((half, 1))",
        why="the number may be used as a tensor",
    ),
    _at(
        """
def f(x):
    half = torch.div(x.size(0), 2, rounding_mode="trunc")
    return x.new_zeros((half, 1)) + half
""",
        site="x.new_zeros((half, 1))",
        why="is arithmetic with a tensor",
    ),
    _at(
        """
def f(x):
    half = torch.div(x.size(0), -2, rounding_mode="trunc")
    return x.new_zeros((half + 100,))
""",
        site="x.new_zeros((half + 100,))",
        why="`-2` is negative",
    ),
    _at(
        """
def f(x):
    half = torch.div(x.size(0), 2)
    return x.new_zeros((int(half),))
""",
        site="int(half)",
    ),
    _at(
        """
def f(x):
    half = torch.div(x.size(0), 2, rounding_mode="trunc")
    print(half)
    return x.new_zeros((half,))
""",
        site="x.new_zeros((half,))",
        why="handed to `print`",
    ),
)
