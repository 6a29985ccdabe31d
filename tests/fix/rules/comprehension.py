"""Examples of the rule ``comprehension``: what it rewrites, and what it leaves alone."""

from __future__ import annotations

from breakscope.fix.rule import Example

_HEAD = "def f(x, n=3, **options):\n"


def _turned(line: str, loop: str, last: str = "    return x + len(found)\n") -> Example:
    site = line[line.index("= ") + 2 :].partition("  #")[0]
    return Example(f"{_HEAD}    {line}\n{last}", f"{_HEAD}{loop}{last}", site=site, code="BS302")


def _left(text: str, site: str, why: str) -> Example:
    return Example(f"{_HEAD}{text}", why=why, site=site, code="BS302")


REWRITES = (
    _turned(
        "found = [x.shape[d] for d in range(x.dim()) if d > 0]  # sizes",
        "    found = []  # sizes\n    for d in range(x.dim()):\n        if d > 0:\n"
        "            found.append(x.shape[d])\n",
    ),
    _turned(
        "found = {a + b for a in range(n) for b in range(a)}",
        "    found = set()\n    for a in range(n):\n        for b in range(a):\n            found.add(a + b)\n",
    ),
    _turned(
        "found = {k: v for k, v in options.items() if v}",
        "    found = {}\n    for k, v in options.items():\n        if v:\n            found.update({k: v})\n",
    ),
    # Another comprehension has a `k` of its own.
    _turned(
        "found = [k for k in range(n)]",
        "    found = []\n    for k in range(n):\n        found.append(k)\n",
        last="    return x + sum([k * k for k in found])\n",
    ),
    _turned(
        "found = [\n        k + 1\n        for k in range(\n            n\n        )\n    ]",
        "    found = []\n    for k in (range(\n            n\n        )):\n        found.append(k + 1)\n",
    ),
)

# As the first argument of a call; with names that the function has for something else.
REWRITES = (
    *REWRITES,
    Example(
        f"{_HEAD}    k, v = 5, 6\n    found = [k * j + v for k, j in zip(range(n), range(n)) if k]\n"
        "    return x + k + v + len(found)\n",
        f"{_HEAD}    k, v = 5, 6\n    found = []\n    for k_1, j in zip(range(n), range(n)):\n        if k_1:\n"
        "            found.append(k_1 * j + v)\n    return x + k + v + len(found)\n",
        site="[k * j + v for k, j in zip(range(n), range(n)) if k]",
        code="BS302",
    ),
    Example(
        f"{_HEAD}    return torch.stack([x * k for k in range(n)], dim=0).sum()  # of all\n",
        f"{_HEAD}    parts = []\n    for k in range(n):\n        parts.append(x * k)\n"
        "    return torch.stack(parts, dim=0).sum()  # of all\n",
        site="[x * k for k in range(n)]",
        code="BS302",
    ),
    Example(
        f"{_HEAD}    parts = sum([k for k in range(n)]) + len(options)\n    return x + parts\n",
        f"{_HEAD}    parts_1 = []\n    for k in range(n):\n        parts_1.append(k)\n"
        "    parts = sum(parts_1) + len(options)\n    return x + parts\n",
        site="[k for k in range(n)]",
        code="BS302",
    ),
)

LEAVES = (
    _left("    return x + len([k for k in range(n)])\n", "[k for k in range(n)]", "not the first"),
    _left("    return [k for k in range(n)][-1] + x\n", "[k for k in range(n)]", "not the first"),
    _left(
        "    k = [5]\n    found = [k for k in k]\n    return x + len(k) + len(found)\n",
        "[k for k in k]",
        "uses `k` for something else",
    ),
    _left(
        '    k = 5\n    found = [f"{k}" for k in range(n)]\n    return x + k + len(found)\n',
        '[f"{k}" for k in range(n)]',
        "uses `k` for something else",
    ),
    _left(
        "    k = 5\n    found = [[k for k in range(k)] for k in range(n)]\n    return x + k + len(found)\n",
        "[[k for k in range(k)] for k in range(n)]",
        "uses `k` for something else",
    ),
    _left(
        "    found = [n]\n    found = [k for k in found]\n    return x + len(found)\n",
        "[k for k in found]",
        "it could see `found`",
    ),
    _left(
        "    found = []\n    try:\n        found = [1 // k for k in (1, 0)]\n    except ZeroDivisionError:\n"
        "        pass\n    return x + len(found)\n",
        "[1 // k for k in (1, 0)]",
        "a half filled value",
    ),
    _left(
        "    found = [k for k in range(n)]\n    return x + len(locals())\n",
        "[k for k in range(n)]",
        "looks at its own local variables",
    ),
    _left(
        "    found = [\n        k  # the number\n        for k in range(n)\n    ]\n    return x + len(found)\n",
        "[\n        k  # the number\n        for k in range(n)\n    ]",
        "it holds comments",
    ),
)
