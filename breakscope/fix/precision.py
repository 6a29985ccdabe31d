"""How exactly a tensor compares with a number: as Python does it, or only after a cast, or not at all."""

from __future__ import annotations

import ast
import struct

from breakscope.fix.predication.values import Value
from breakscope.fix.rule import Site, Unsafe
from breakscope.source.torch_facts import FLOATING


def wider(site: Site, node: ast.expr, own: Value, other: Value) -> str:
    """The cast after which a tensor compares as Python's numbers do: "" (none needed), "double", "long".

    Raises:
        Unsafe: there is none.
    """
    if own.dtype in FLOATING:
        return "" if own.dtype == "float64" or _holds(own, other) else "double"
    if own.dtype not in _LARGEST:
        raise Unsafe(f"`{site.text(node)}` compares {own.dtype}, which torch does in its own way")
    if own.dtype == other.dtype and other.kind == "tensor":
        return ""
    if other.dtype in FLOATING | {"float"}:
        # Python compares an integer with a float exactly, and a double holds no more than 2**53.
        if own.dtype == "int64":
            raise Unsafe(f"`{site.text(node)}` compares int64 with a float, which a double may round")
        return "double"
    if other.written and isinstance(other.literal, int) and not -(2**63) <= other.literal < 2**63:
        raise Unsafe(f"`{site.text(node)}` compares with a number that no tensor holds")
    return "" if own.dtype == "int64" or _holds(own, other) else "long"


# Not uint16 and wider: little is defined for them.
_LARGEST = {
    "bool": 1,
    "uint8": 2**8 - 1,
    "int8": 2**7 - 1,
    "int16": 2**15 - 1,
    "int32": 2**31 - 1,
    "int64": 2**63 - 1,
}


def _holds(own: Value, other: Value) -> bool:
    """Whether a tensor's dtype holds, as it is, what the tensor is compared with."""
    if other.kind == "tensor":
        return own.dtype == other.dtype
    number = other.literal
    if not other.written or not isinstance(number, int | float):
        return False
    if own.dtype in FLOATING:
        return exact_in(str(own.dtype), float(number))
    largest = _LARGEST[str(own.dtype)]
    smallest = 0 if own.dtype in ("bool", "uint8") else -largest - 1
    return isinstance(number, int) and smallest <= number <= largest


def exact_in(dtype: str, number: float) -> bool:
    """Whether a floating dtype holds a number without rounding it."""
    formats = {"float16": "e", "float32": "f", "float64": "d", "bfloat16": "f"}
    try:
        packed = struct.pack(f">{formats[dtype]}", number)
    except (OverflowError, KeyError):
        return False
    if dtype == "bfloat16" and packed[2:] != b"\0\0":
        return False
    back: float = struct.unpack(f">{formats[dtype]}", packed)[0]
    return back == number
