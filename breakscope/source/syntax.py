"""How code is written: what needs parentheses, and source text on one line."""

from __future__ import annotations

import ast

from breakscope.source.module import Scope

_LONG = 60
_ATOMS = ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.Constant
_ALONE = (
    ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Return | ast.Call | ast.keyword | ast.Tuple | ast.List
)


def is_atom(node: ast.expr) -> bool:
    """Whether an expression needs no parentheses beside any operator, nor before a dot."""
    return isinstance(node, _ATOMS)


def grouped(node: ast.expr, text: str) -> str:
    """The text of an expression, in parentheses where an operator or a dot beside it needs them."""
    return text if is_atom(node) else f"({text})"


def on_one_line(scope: Scope, node: ast.expr) -> str:
    """Source of an expression as written, unless that runs over several lines."""
    text = scope.text(node)
    return text if "\n" not in text else ast.unparse(node)


def operand(scope: Scope, node: ast.expr) -> str:
    """Source of an expression as an operand, on one line."""
    return grouped(node, on_one_line(scope, node))


def shown(scope: Scope, node: ast.expr | ast.stmt, width: int | None = _LONG) -> str:
    """The beginning of a node's source, for a sentence, or all of it, in one line."""
    return " ".join(scope.text(node).split())[:width]


def shortened(scope: Scope, node: ast.expr) -> str:
    """An expression's source in one line, with dots for the end of a long one."""
    text = shown(scope, node, None)
    return text if len(text) <= _LONG else text[: _LONG - 3] + "..."


def stands_alone(scope: Scope, node: ast.expr) -> bool:
    """Whether an operator of any rank may stand in an expression's place without parentheses."""
    return isinstance(scope.parents[node], _ALONE)
