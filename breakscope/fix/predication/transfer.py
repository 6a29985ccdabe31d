"""What torch's operations and operators make of values: dtype, shape, and what becomes of gradients."""

from __future__ import annotations

import ast
import math
from dataclasses import replace

from breakscope.fix.predication.values import Value, broadcast, promote
from breakscope.fix.rule import Unsafe
from breakscope.source.torch_facts import DOMAIN, FINITE, FLOATING, STEADY, Op, category

DTYPES = {
    "float16": "float16", "half": "float16", "bfloat16": "bfloat16", "float32": "float32", "float": "float32",
    "float64": "float64", "double": "float64", "int8": "int8", "uint8": "uint8", "int16": "int16",
    "int32": "int32", "int": "int32", "int64": "int64", "long": "int64", "bool": "bool",
}  # fmt: skip


def binary(op: ast.operator, left: Value, right: Value, text: str) -> Value:
    """An operator between a tensor and something."""
    tensors = [value for value in (left, right) if value.kind == "tensor"]
    dtype = promote([left, right])
    if isinstance(op, ast.MatMult):
        slope = FINITE
    elif isinstance(op, ast.Add | ast.Sub):
        if isinstance(op, ast.Sub) and any(value.dtype in ("bool", None) for value in tensors):
            raise Unsafe(f"`{text}` raises for bool tensors")
        slope = STEADY
    elif isinstance(op, ast.Mult):
        slope = STEADY if _finite_constant(left) or _finite_constant(right) else FINITE
    elif isinstance(op, ast.Div):
        slope = STEADY if _finite_constant(right) and right.literal else DOMAIN
        if dtype not in FLOATING:
            dtype = None
    elif isinstance(op, ast.Pow):
        if dtype not in FLOATING or right.kind != "scalar" or not right.known:
            raise Unsafe(f"`{text}` may raise for some values")
        slope = FINITE if isinstance(right.literal, int) and right.literal >= 1 else DOMAIN
    elif isinstance(op, ast.BitAnd | ast.BitOr | ast.BitXor):
        if any(value.dtype in FLOATING | {None, "float"} for value in (left, right)):
            raise Unsafe(f"`{text}` raises for floating-point tensors")
        slope = STEADY
    else:
        raise Unsafe(f"what `{text}` does is not known")
    sources, shapes = (None, None) if isinstance(op, ast.MatMult) else broadcast([left, right])
    return _result(tensors, dtype, sources, shapes, slope)


def apply(op: Op, name: str, values: list[Value], keywords: dict[str, Value], text: str) -> Value:
    """One operation of the table.

    Raises:
        Unsafe: it is called in a way that the table does not describe.
    """
    everything = [*values, *keywords.values()]
    tensors = [value for value in everything if value.kind == "tensor"]
    if op.shape == "reduce" and len(tensors) == 2 and name in ("max", "min") and not keywords:
        op = Op("broadcast", "promote")
    sources: frozenset[str] | None
    shapes: frozenset[tuple[int, ...]] | None
    if op.shape == "reduce" and len(everything) == 1:
        sources, shapes = frozenset(), frozenset({()})
    elif op.shape == "reduce" and name in ("max", "min", "median"):
        raise Unsafe(f"what `{text}` does is not known")
    elif op.shape == "broadcast":
        sources, shapes = broadcast(everything)
    elif op.shape == "first":
        sources, shapes = values[0].sources, values[0].shapes
    else:
        sources, shapes = None, None
    if "dtype" in keywords:
        literal = keywords["dtype"].literal
        dtype = literal if isinstance(literal, str) else None
    else:
        dtype = _dtype(op, name, values, everything)
    slope = op.slope
    if name in ("mul", "multiply"):
        slope = STEADY if any(map(_finite_constant, everything)) else slope
    elif name in ("div", "true_divide", "divide"):
        if keywords or len(values) != 2:
            raise Unsafe(f"what `{text}` does is not known")
        slope = STEADY if _finite_constant(values[1]) and values[1].literal else DOMAIN
    result = _result(tensors, dtype, sources, shapes, slope)
    if op.constants:
        result = replace(result, grad=False, slope=STEADY, deps=frozenset())
    return replace(result, fresh=not op.view)


def _dtype(op: Op, name: str, values: list[Value], everything: list[Value]) -> str | None:
    first = values[0].dtype
    if op.dtype == "bool":
        # any and all keep uint8.
        return first if name in ("any", "all") and first == "uint8" else "bool"
    if op.dtype == "promote":
        if name == "where":
            return promote(everything[1:])
        if name == "masked_fill":
            return first
        return promote(everything)
    if op.dtype == "int64":
        return "int64"
    if op.dtype == "first":
        return first
    if op.dtype == "sum":
        return None if first is None else first if category(first) >= 2 else "int64"
    result = promote(everything) if op.shape == "broadcast" else first
    return result if result in FLOATING else None


def convert(values: list[Value], keywords: dict[str, Value], text: str) -> Value:
    """``x.to(...)``, ``x.type(...)`` and ``x.type_as(...)``.

    Raises:
        Unsafe: an argument is a number, which may raise.
    """
    targets = [*values[1:], *(keywords[key] for key in ("dtype", "other") if key in keywords)]
    dtype, dtype_of = values[0].dtype, values[0].dtype_of
    for target in targets:
        if target.kind == "tensor":
            dtype, dtype_of = target.dtype, target.dtype_of
        elif (
            target.kind == "static" and isinstance(target.literal, str) and target.literal in DTYPES.values()
        ):
            dtype, dtype_of = target.literal, target.dtype_of
        elif target.kind != "static":
            raise Unsafe(f"what `{text}` does is not known")
        else:
            dtype = dtype if target.known else None
    return cast(values[0], dtype, dtype_of)


def cast(value: Value, dtype: str | None, dtype_of: frozenset[str]) -> Value:
    """A tensor in another dtype."""
    if dtype is None or dtype in FLOATING:
        return replace(value, dtype=dtype, dtype_of=dtype_of, fresh=False)
    deps = frozenset[str]()
    return replace(value, dtype=dtype, dtype_of=dtype_of, grad=False, slope=STEADY, deps=deps, fresh=False)


def _finite_constant(value: Value) -> bool:
    number = value.literal
    return (
        value.kind == "scalar" and value.known and isinstance(number, int | float) and math.isfinite(number)
    )


def _result(
    tensors: list[Value],
    dtype: str | None,
    sources: frozenset[str] | None,
    shapes: frozenset[tuple[int, ...]] | None,
    slope: int,
) -> Value:
    wide = [value for value in tensors if not value.zero_dim] or tensors
    dtype_of = frozenset[str]().union(*(value.dtype_of for value in wide))
    if dtype is not None and dtype not in FLOATING:
        return Value("tensor", dtype, sources, shapes, dtype_of=dtype_of)
    carrying = [value for value in tensors if value.deps]
    return Value(
        "tensor",
        dtype,
        sources,
        shapes,
        max([slope, *(value.slope for value in carrying)]) if carrying else STEADY,
        frozenset().union(*(value.deps for value in carrying)),
        any(value.grad for value in carrying),
        dtype_of=dtype_of,
    )
