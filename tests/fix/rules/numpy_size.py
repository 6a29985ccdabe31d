"""Examples of the rule ``numpy-size``: what it rewrites, and what it leaves alone."""

from __future__ import annotations

from breakscope.fix.rule import Example

_HEAD = "import numpy as np\nimport torch\n\n\n"
_MATH = "import math\nimport numpy as np\nimport torch\n\n\n"
_CALLS = ("torch.randn(6, 4)", "torch.randn(2, 4)")


def _f(old: str, new: str = "", *, why: str = "", site: str = "", head: str = _MATH) -> Example:
    """A function's body, before and after; ``site`` where Dynamo need not break."""
    before, after = (f"def f(x):\n{text}\n" if text else "" for text in (old, new))
    return Example(
        (_HEAD if head == _MATH else head) + before,
        head + after if new else "",
        why=why,
        calls=_CALLS,
        site=site,
        code="BS102" if site else "",
    )


REWRITES = (
    _f("    return x.reshape(int(np.prod(x.shape)))", "    return x.reshape(int(math.prod(x.shape)))"),
    _f(
        "    n = int(np.prod(x.shape[1:]))\n    return x.view(-1, n), n",
        "    n = int(math.prod(x.shape[1:]))\n    return x.view(-1, n), n",
    ),
    _f(
        "    return torch.zeros(np.prod([2, 3])) + x.sum()",
        "    return torch.zeros(math.prod([2, 3])) + x.sum()",
    ),
    _f(
        "    return x.new_zeros(np.sum([2, x.shape[0]]))",
        "    return x.new_zeros(sum([2, x.shape[0]]))",
        head=_HEAD,
    ),
    _f("    return x.new_ones(np.max(x.shape))", "    return x.new_ones(max(x.shape))", head=_HEAD),
    _f("    return x.reshape(np.prod(x.shape) // 2, 2)", "    return x.reshape(math.prod(x.shape) // 2, 2)"),
    _f(
        '    n = np.ceil(np.log1p(x.size(0))).astype("int").item()\n    return x[:n]',
        "    n = int(math.ceil(math.log1p(x.size(0))))\n    return x[:n]",
    ),
    _f(
        "    n = np.sqrt(x.shape[1]).astype(int).item()\n    return x.reshape(-1, n, n)",
        "    n = int(math.sqrt(x.shape[1]))\n    return x.reshape(-1, n, n)",
    ),
    _f(
        "    return x[: np.ceil(x.shape[0] / 4).astype(np.int64).item()]",
        "    return x[: int(math.ceil(x.shape[0] / 4))]",
    ),
)

LEAVES = (
    # At e**2 the two may round to other sides; a float keeps numpy's type.
    _f("    return x[: int(np.ceil(np.log(x.shape[0])))]", site="np.log(x.shape[0])"),
    _f("    return x * np.ceil(x.shape[0] / 4)", site="np.ceil(x.shape[0] / 4)"),
    _f(
        "    n = np.prod(x.shape[1:])\n    return x.view(-1, n), n",
        why="the number may be used as a tensor",
        site="np.prod(x.shape[1:])",
    ),
    _f("    return x.reshape(int(np.prod(np.array(x.shape))))", site="np.prod(np.array(x.shape))"),
    _f("    return x.reshape(np.prod(x.shape, dtype=np.int64))", site="np.prod(x.shape, dtype=np.int64)"),
    _f("    return x * int(np.prod([0.5, 4.0]))", site="np.prod([0.5, 4.0])"),
    _f(
        "    math = 2\n    return x.reshape(np.prod(x.shape)) * math",
        why="the module has another use for the name `math`",
        site="np.prod(x.shape)",
    ),
    _f(
        "    max = x.max()\n    return x.new_ones(np.max(x.shape)) * max",
        why="the module has a `max` of its own",
        site="np.max(x.shape)",
    ),
)
