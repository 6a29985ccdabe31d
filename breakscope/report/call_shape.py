"""The one free-form part of a report that is walked through: with what a compiled call was made."""

from __future__ import annotations

from typing import Any

from breakscope.report.codec import MismatchError

_KINDS: dict[str, type] = {"list": list, "tuple": list, "dict": dict, "tensor": dict, "same": str}


def check_arguments(arguments: Any) -> None:
    """Make sure that arguments are as a scan writes them. Raises MismatchError."""
    if not isinstance(arguments, dict):
        raise MismatchError("must be an object")
    positional, named = arguments.get("args", []), arguments.get("kwargs", {})
    if not isinstance(positional, list) or not isinstance(named, dict):
        raise MismatchError("must have a list of args and an object of kwargs")
    for value in (*positional, *named.values()):
        _check(value)


def _check(value: Any) -> None:
    if not isinstance(value, dict) or not value:
        raise MismatchError("must say of each argument what it is")
    for kind, held in value.items():
        _check_kind(kind, held)


def _check_kind(kind: str, held: Any) -> None:
    wanted: Any = _KINDS.get(kind)
    if wanted is not None and not isinstance(held, wanted):
        raise MismatchError(f"has a {kind} that is none")
    if kind == "tensor":
        _check_tensor(held)
    for item in held if kind in ("list", "tuple") else held.values() if kind == "dict" else ():
        _check(item)


def _check_tensor(held: dict[str, Any]) -> None:
    shape = held.get("shape")
    sizes = isinstance(shape, list) and all(type(size) is int and 0 <= size < 2**63 for size in shape)
    if not sizes or not all(isinstance(held.get(name), str) for name in ("dtype", "device")):
        raise MismatchError("has a tensor without shape, dtype or device")
