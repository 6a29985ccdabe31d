"""What a failing guard's source was worth in the call that failed it."""

from __future__ import annotations

import builtins
from collections import deque
from collections.abc import Iterable
from enum import Enum
from typing import Any

_SIMPLE: tuple[Any, ...] = (bool, int, float, complex, str, bytes, type(None))
_SEQUENCES: tuple[Any, ...] = (tuple, list)
_LIMIT = 80
_ITEMS = 8


def read(sources: Iterable[str], frame: Any) -> dict[str, str]:
    """Short text of each source expression (``L['n']``) in a frame.

    Args:
        frame: Dynamo's frame, with ``f_locals`` and ``f_globals``.
    """
    scope = {"L": frame.f_locals, "G": frame.f_globals, "__builtins__": builtins}
    values = {}
    for source in sources:
        try:
            values[source] = describe(eval(source, scope))  # noqa: S307 -- Dynamo's own expression
        except Exception as error:  # noqa: BLE001 -- the guard failed because it is not there, for instance
            values[source] = f"not readable ({type(error).__name__})"
    return values


def describe(value: Any) -> str:
    """A value in one short line. Runs no ``__repr__`` and no ``__str__`` of the user's."""
    if isinstance(value, Enum):
        return _cut(f"{type(value).__qualname__}.{value.name}")
    for base in _SIMPLE:
        if isinstance(value, base):
            return _cut(base.__repr__(value))  # a subclass may have one of its own
    for base in _SEQUENCES:
        if isinstance(value, base) and len(value) <= _ITEMS and all(type(v) in _SIMPLE for v in value):
            return _cut(base.__repr__(value))
    kind = type(value)
    # Before asking for attributes: the class torch.Tensor has a dtype and a shape too, and cannot tell them.
    if isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
        return _cut(f"{value.__module__}.{value.__qualname__}")
    if kind.__module__.startswith("torch"):
        if hasattr(value, "dtype") and hasattr(value, "shape"):
            return f"{kind.__name__}({tuple(value.shape)}, {value.dtype}, {value.device})"
        if kind.__name__ in ("dtype", "device", "Size", "layout"):
            return _cut(str(value))
    if isinstance(value, dict):
        return _cut(f"dict with {len(value)} keys: {', '.join(map(_key, list(value)[:6]))}")
    if isinstance(value, tuple | list | set | frozenset | deque):
        return f"{kind.__name__} of {len(value)}"
    return _cut(f"{kind.__qualname__} object")


def _key(value: Any) -> str:
    return str(value) if type(value) in _SIMPLE else f"{type(value).__qualname__} object"


def _cut(text: str) -> str:
    return text if len(text) <= _LIMIT else text[: _LIMIT - 1] + "…"
