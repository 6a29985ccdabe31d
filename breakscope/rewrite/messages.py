"""Calls that write a message: print, warnings.warn, a logger's methods."""

from __future__ import annotations

import ast

from breakscope.rewrite.rule import Site
from breakscope.rewrite.scope import builtin, dotted

_METHODS = {"debug", "info", "warning", "warn", "error", "critical", "exception", "log"}
_ONCE = {"warning_once", "info_once", "warning_advice"}


def message_kind(site: Site, call: ast.Call) -> str | None:
    """What a call writes: "warning" (once by design) or "message" (each time); None: something else."""
    if builtin(site, call.func) == "print":
        return "message"
    full = dotted(site, call.func)
    if full == "warnings.warn":
        return "warning"
    if full in ("sys.stdout.write", "sys.stderr.write"):
        return "message"
    if full is not None and full.startswith("logging.") and full.removeprefix("logging.") in _METHODS:
        return "message"
    if isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS | _ONCE:
        seen = site.seen(call.func.value)
        if seen is not None and seen.types and all(_is_logger(name) for name in seen.types):
            return "warning" if call.func.attr in _ONCE else "message"
    return None


def _is_logger(type_name: str) -> bool:
    return type_name in ("logging.Logger", "logging.RootLogger", "logging.LoggerAdapter")
