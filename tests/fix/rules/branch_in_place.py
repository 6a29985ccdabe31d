"""Examples of the rule ``branch-in-place``: what it rewrites, and what it leaves alone."""

from __future__ import annotations

from breakscope.fix.rule import Example

_CALLS = ("torch.randn(3, 4)", "-torch.rand(3, 4)", "torch.rand(3, 4)")


def _written(before: str, after: str, head: str = "    y = x * 2\n") -> Example:
    return Example(
        f"def f(x):\n{head}{before}    return y + 1\n",
        f"def f(x):\n{head}{after}    return y + 1\n",
        calls=_CALLS,
        consent=True,
    )


def _left(text: str, why: str) -> Example:
    return Example(f"def f(x):\n    y = x * 2\n{text}    return y + 1\n", why=why, calls=_CALLS)


REWRITES = (
    # What the first statement writes, the condition no longer sees.
    _written(
        "    if y.sum() > 0:\n        y.sub_(9)  # below\n        y.neg_()\n",
        "    condition = y.sum() > 0\n    y.copy_(torch.where(condition, y.sub(9), y))  # below\n"
        "    y.copy_(torch.where(condition, y.neg(), y))\n",
    ),
    _written(
        "    if y.sum() > 0:\n        y[y > 1] = 1\n",
        "    y[(y > 1) & (y.sum() > 0)] = 1\n",
    ),
    _written(
        "    if y.sum() > 0:\n        for one in parts:\n            one.mul_(0.5)\n",
        "    condition = y.sum() > 0\n    for one in parts:\n"
        "        one.copy_(torch.where(condition, one.mul(0.5), one))\n",
        head="    y = x * 2\n    parts = [y, x + 1]\n",
    ),
    _written(
        "    if x.dim() > 1 and y.sum() > 0:\n        y.mul_(2)\n",
        "    if x.dim() > 1:\n        y.copy_(torch.where(y.sum() > 0, y.mul(2), y))\n",
    ),
    # What was computed before autograd is switched off may need what the tensor held.
    Example(
        "def f(x):\n    with torch.no_grad():\n        labels = (x > 0).long()\n        if labels.sum() == 0:\n"
        "            labels[labels.sum(dim=1).eq(0)] = 1\n    return labels\n",
        "def f(x):\n    with torch.no_grad():\n        labels = (x > 0).long()\n"
        "        labels[labels.sum(dim=1).eq(0) & (labels.sum() == 0)] = 1\n    return labels\n",
        calls=_CALLS,
        consent=True,
    ),
)

LEAVES = (
    _left("    if y.sum() > 0:\n        y.mul_(2)\n        x = x + 1\n", "does more than write"),
    _left("    if y.sum() > 0:\n        y.mul_(2)\n    else:\n        y.mul_(3)\n", "has another side"),
    _left("    if y.sum() > 0:\n        y[0] = 1\n", "is not selected by a mask"),
    _left("    if y.sum() > 0:\n        y[y > 1] = y[y > 1] + 1\n", "may raise for some inputs"),
    _left(
        "    parts = [y]\n    if y.sum() > 0:\n        for one in reversed(parts):\n            one.mul_(2)\n",
        "was not seen to be a list",
    ),
    _left(
        "    one, parts = x, [y]\n    if y.sum() > 0:\n        for one in parts:\n            one.mul_(2)\n"
        "    y = y + one\n",
        "`one` is used outside of the loop",
    ),
    _left("    if y.sum() > 0:\n        y.bernoulli_(0.5)\n", "writes is not known"),
    Example(
        "def f(x):\n    y = x * 2\n    if y.sum() > 0:\n        y.mul_(2)\n    return y + 1\n",
        why="gradients flow to `y`",
        calls=("torch.randn(3, 4, requires_grad=True)",),
    ),
)
