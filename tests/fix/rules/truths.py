"""Branches whose condition asks a tensor by other means than an operator; for ``branch-to-where``."""

from __future__ import annotations

from breakscope.fix.rule import Example

_HEAD = "import math\nimport numpy as np\nimport torch\n\n\n"
_PLAIN = ("torch.randn(3, 4)", "torch.ones(3, 4)")


def _if(old: str, new: str = "", *, why: str = "", calls: tuple[str, ...] = _PLAIN) -> Example:
    """A branch on a test, and what becomes of the test."""
    start = f"{_HEAD}def f(x, n=1):\n"
    before = f"{start}    y = x * 2\n    if {old}:\n        y = y + 1\n    return y\n"
    after = f"{start}    y = x * 2\n    y = torch.where({new}, y + 1, y)\n    return y\n" if new else ""
    return Example(before, after, why=why, calls=calls)


REWRITES = (
    _if("any([x.sum() > 0, torch.isnan(x).any()])", "(x.sum() > 0) | torch.isnan(x).any()"),
    _if("all((x.sum() > 0, x.max() > 0.5))", "(x.sum() > 0) & (x.max() > 0.5)"),
    _if("not any([x.sum() > 0, x.max() > 0.5])", "~((x.sum() > 0) | (x.max() > 0.5))"),
    _if("all(x[0] > 0)", "(x[0] > 0).all()"),
    _if("1.0 in x", "(x == 1.0).any()"),
    _if("n not in x", "~(x == n).any()"),
    _if("math.isnan(x.sum())", "torch.isnan(x.sum())"),
    _if("not math.isfinite(x.sum().item())", "~torch.isfinite(x.sum())"),
    _if("math.isinf(float(x.max())) or x.min() < -2", "torch.isinf(x.max()) | (x.min() < -2)"),
    _if("np.isnan(x.detach().numpy()).any()", "torch.isnan(x).any()"),
    _if("np.any(x.detach().cpu().numpy() > 1.5)", "(x > 1.5).any()"),
    _if(
        "np.all((x.detach().numpy() > -9) & ~np.isinf(x.detach().numpy()))",
        "((x > -9) & (~torch.isinf(x))).all()",
    ),
    _if("0 < x.mean().item() < 1", "(0 < x.mean()) & (x.mean() < 1)"),
)

LEAVES = (
    _if("np.any(x.detach().numpy() > 0.1)", why="does in numpy is not known"),
    _if("np.any(np.sqrt(x.detach().numpy()) > 1)", why="does in numpy is not known"),
    _if("any([x.sum() > 0, print(x)])", why="is not known"),
    _if("x.sum() > 0 and n in [1, x.max().item()]", why="what `[1, x.max().item()]` does is not known"),
)
