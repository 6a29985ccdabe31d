"""breakscope: where torch.compile breaks, what it costs, and how to repair it.

Public API, loaded when first used: :func:`explain`, :func:`load`, :func:`prove`, :class:`Report`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from breakscope.api import explain, load, prove
    from breakscope.report.model import Report

__all__ = ["Report", "__version__", "explain", "load", "prove"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # Lazy, because the agent inside a user's script imports this package before the script starts.
    if name in ("explain", "load", "prove"):
        from breakscope import api

        return getattr(api, name)
    if name == "Report":
        from breakscope.report.model import Report

        return Report
    raise AttributeError(f"module 'breakscope' has no attribute {name!r}")
