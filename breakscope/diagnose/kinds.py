"""Of which kind names were when their function broke, as Dynamo saw them: asked before source is."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence

# Of a function, by file and first line: its names and their kinds, as inside/torch_api/kinds.py tells them:
# "tensor float32 2" with dtype and dimensions, "list of int", "int". A name that was of two kinds has "".
Kinds = Mapping[tuple[str, int], Mapping[str, str]]


def together(seen: Iterable[tuple[str, int, Mapping[str, str]]]) -> Kinds:
    """The kinds of all breaks: a function may have several, at which a name is something else."""
    known: dict[tuple[str, int], dict[str, str]] = {}
    for file, line, names in seen:
        held = known.setdefault((file, line), {})
        for name, kind in names.items():
            before = held.setdefault(name, kind)
            if before != kind:
                held[name] = before if before.split()[:1] == kind.split()[:1] else ""
    return known


def of(node: ast.AST | str, way: Sequence[ast.AST]) -> str | None:
    """The kind of a name or an attribute (``self.seen``) at a place; None where nothing was seen of it."""
    name = node if isinstance(node, str) else ast.unparse(node)
    function = next((one for one in reversed(way) if isinstance(one, ast.FunctionDef | ast.Lambda)), None)
    kind = getattr(function, "kinds", {}).get(name)
    return None if kind in (None, "", "NoneType") else str(kind)


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
