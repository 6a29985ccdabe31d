"""Of which kind names were when their function broke, as Dynamo saw them: asked before source is."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence


def of(node: ast.AST | str, way: Sequence[ast.AST]) -> str | None:
    """The kind of a name or an attribute (``self.seen``) at a place; None where nothing was seen of it.

    ``tensor float32 2`` with dtype and dimensions, ``list of int``, ``int``: what
    :func:`breakscope.inside.torch_api.kinds.kinds_of` writes and :class:`~breakscope.project.sources.Sources`
    puts to the function's node.
    """
    name = node if isinstance(node, str) else ast.unparse(node)
    function = next((one for one in reversed(way) if isinstance(one, ast.FunctionDef | ast.Lambda)), None)
    kind = getattr(function, "kinds", {}).get(name)
    # Of what another function holds too, nothing was seen but its cell.
    return None if kind in (None, "", "NoneType", "cell") else str(kind)


def is_tensor(node: ast.AST, way: Sequence[ast.AST]) -> bool | None:
    """Whether a name, an attribute or an item of a list was a tensor; None where nothing was seen of it."""
    match node:
        case ast.Name() | ast.Attribute():
            seen = of(node, way)
            return None if seen is None else seen.startswith("tensor")
        case ast.Subscript(value=ast.Name() | ast.Attribute() as value):
            holder, _, items = (of(value, way) or "").partition(" of ")
            return items.startswith("tensor") if holder in ("list", "tuple") and items else None
    return None


def numpy_in(node: ast.AST, way: Sequence[ast.AST]) -> tuple[str, str] | None:
    """What in an expression was numpy's: its source, and ``array``, ``float32``, or nothing for both."""
    for part in ast.walk(node):
        seen = of(part, way) if isinstance(part, ast.Name | ast.Attribute) else None
        if seen is not None and seen.startswith("numpy"):
            return ast.unparse(part), seen.partition(" ")[2]
    return None


def single_kept(node: ast.AST, way: Sequence[ast.AST]) -> str:
    """The attribute in an expression that was a tensor of whole numbers without dimensions; else empty."""
    names = (part for part in ast.walk(node) if isinstance(part, ast.Attribute))
    seen = ((ast.unparse(part), of(part, way) or "") for part in names)
    return next((name for name, kind in seen if re.fullmatch(r"tensor int\d+ 0", kind)), "")


def rank(node: ast.AST | None, way: Sequence[ast.AST]) -> int | None:
    """How many dimensions an expression has; None where that is not known."""
    match node:
        case ast.Constant():
            return 0
        case ast.Name() | ast.Attribute():
            found = re.fullmatch(r"tensor \S+ (\d+)", of(node, way) or "")
            return int(found[1]) if found else None
        case ast.UnaryOp(operand=operand):
            return rank(operand, way)
        case ast.BinOp(left, _, right) | ast.Compare(left, [_], [right]):
            ranks = rank(left, way), rank(right, way)
            return None if ranks[0] is None or ranks[1] is None else max(ranks[0], ranks[1])
    return None
