"""Examples of the rule ``numpy-number``: what it rewrites, and what it leaves alone."""

from __future__ import annotations

from breakscope.fix.rule import Example

_HEAD = "import numpy as np\nimport torch\n\n\n"
_MATH = "import math\nimport numpy as np\nimport torch\n\n\n"
_CALLS = ("torch.randn(8, 4)", "torch.randn(12, 4)")


def _at(before: str, after: str = "", head: str = _HEAD, changed: str = _MATH) -> Example:
    return Example(
        head + before.strip("\n") + "\n",
        changed + after.strip("\n") + "\n" if after else "",
        calls=_CALLS,
        consent=bool(after),
    )


REWRITES = (
    _at(
        """
def common_length(a, b):
    if a == b:
        return a
    return np.lcm(a, b)


def f(x):
    length = common_length(4, 6)
    must_pad = x.shape[0] % length != 0 and x.shape[0] > 3
    if must_pad:
        x = x + 1
    return x
""",
        """
def common_length(a, b):
    if a == b:
        return a
    return math.lcm(a, b)


def f(x):
    length = common_length(4, 6)
    must_pad = x.shape[0] % length != 0 and x.shape[0] > 3
    if must_pad:
        x = x + 1
    return x
""",
    ),
    _at(
        """
def f(x):
    size = np.prod([2, 3])
    if x.shape[0] > size:
        x = x + 1
    return x
""",
        """
def f(x):
    size = math.prod([2, 3])
    if x.shape[0] > size:
        x = x + 1
    return x
""",
        head=_MATH,
    ),
)

LEAVES = (
    _at(
        """
def f(x):
    size = np.prod(np.array([2.0, 3.0]))
    if x.shape[0] > size:
        x = x + 1
    return x
"""
    ),
    _at(
        """
def f(x, math=None):
    size = np.gcd(4, 6)
    if x.shape[0] > size:
        x = x + 1
    return x
"""
    ),
)
