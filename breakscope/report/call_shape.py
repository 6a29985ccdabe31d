"""The one free-form part of a report that is walked through: with what a compiled call was made."""

from __future__ import annotations

from typing import Any

from breakscope.report.codec import MismatchError


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
    held: Any
    for kind, held in value.items():
        wanted = {"list": list, "tuple": list, "dict": dict, "tensor": dict, "same": str}.get(kind, object)
        if not isinstance(held, wanted):
            raise MismatchError(f"has a {kind} that is none")
        if kind == "tensor":
            _check_tensor(held)
        elif kind in ("list", "tuple"):
            for item in held:
                _check(item)
        elif kind == "dict":
            for item in held.values():
                _check(item)


def _check_tensor(held: dict[str, Any]) -> None:
    shape = held.get("shape")
    sizes = isinstance(shape, list) and all(type(size) is int and 0 <= size < 2**63 for size in shape)
    if not sizes or not all(isinstance(held.get(name), str) for name in ("dtype", "device")):
        raise MismatchError("has a tensor without shape, dtype or device")
