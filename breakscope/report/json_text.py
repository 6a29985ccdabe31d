"""JSON with a line for each value, as ``json.dumps(value, indent=1, ensure_ascii=False)`` writes it.

Python's own writer is several times slower with an indentation, and keeps a string for each comma.
"""

from __future__ import annotations

import math
from json.encoder import encode_basestring as quoted
from typing import Any


def text(value: Any, newline: str = "\n") -> str:
    """Plain JSON types as text.

    Args:
        newline: a line end, and the blanks with which the lines after the first begin.

    Raises:
        TypeError, ValueError: JSON has no such value.
    """
    if isinstance(value, str):
        return quoted(value)
    if value is None:
        return "null"
    if isinstance(value, int):
        return int.__repr__(value) if value is not True and value is not False else str(value).lower()
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"JSON has no number {value}")
        return float.__repr__(value)
    inner = newline + " "
    if isinstance(value, dict):
        if not value:
            return "{}"
        items = [f"{quoted(key)}: {text(item, inner)}" for key, item in value.items()]
        return "{" + inner + f",{inner}".join(items) + newline + "}"
    if isinstance(value, list | tuple):
        if not value:
            return "[]"
        return "[" + inner + f",{inner}".join([text(item, inner) for item in value]) + newline + "]"
    raise TypeError(f"JSON has no {type(value).__name__}")
