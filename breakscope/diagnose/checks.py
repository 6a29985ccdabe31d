"""What a check says as an assert on tensors, which Dynamo traces: ``assert ~(x.min() < 0), '…'``."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from breakscope.diagnose import uses

_READS = ("item", "bool")
_NUMBERS = ("float", "int", "bool")
# Of Python's and numpy's functions those that torch has under the same name.
_OF_TORCH = re.compile(r"(math|np|numpy)\.(?P<name>isnan|isinf|isfinite|isclose|any|all)$")
_BOOLS = re.compile(r"(any|all|isnan|isinf|isfinite|isclose|is_nonzero|equal|logical_\w+|lt|gt|le|ge|eq|ne)$")
_LONG = 120


def asserted(around: Sequence[ast.AST]) -> str:
    """What an assert can ask for in the place of a check; empty where that cannot be told from its text.

    Args:
        around: the nodes that contain the site, outermost first.
    """
    check = next((node for node in reversed(around) if isinstance(node, ast.If | ast.Assert)), None)
    if check is None:
        return ""
    text = _of_tensors(check.test) if isinstance(check, ast.Assert) else _opposite(check.test)
    return text if text is not None and len(text) <= _LONG else ""


def _opposite(test: ast.expr) -> str | None:
    """The test that holds where this one does not: exactly so also for nan, which a turned sign is not."""
    match test:
        case ast.UnaryOp(ast.Not(), asked):
            return _of_tensors(asked)
        case ast.Name() | ast.Attribute():
            return f"{ast.unparse(test)} == 0"
        case ast.Call() if not _is_bool(test):
            return None
    text = _of_tensors(test)
    return None if text is None else f"~{text}" if isinstance(test, ast.Call) else f"~({text})"


def _of_tensors(test: ast.expr) -> str | None:
    """A test with signs for tensors, and without the reads of values; None where that is not all of it."""
    match test:
        case ast.BoolOp(operator, parts):
            found = [_part(one) for one in parts]
            sign = " & " if isinstance(operator, ast.And) else " | "
            return None if None in found else sign.join(filter(None, found))
        case ast.UnaryOp(ast.Not(), asked):
            return _opposite(asked)
        case ast.Compare(_, [ast.Is() | ast.IsNot() | ast.In() | ast.NotIn()]):
            return None
    return _without_reads(test)


def _part(test: ast.expr) -> str | None:
    """One side of an ``and`` or ``or``: what is no bool has another meaning under ``&``."""
    if isinstance(test, ast.Compare | ast.BoolOp):
        text = _of_tensors(test)
        return None if text is None else f"({text})"
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _opposite(test.operand) if _is_bool(test.operand) else None
    return _of_tensors(test) if _is_bool(test) else None


def _is_bool(test: ast.expr) -> bool:
    """Whether an expression is known to give a bool, or a tensor of bools."""
    if isinstance(test, ast.Call) and (_is_read(test) or uses.called(test) in _NUMBERS):
        return _is_bool(_read(test))
    return isinstance(test, ast.Compare) or (
        isinstance(test, ast.Call) and _BOOLS.match(uses.called(test)) is not None
    )


def _is_read(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in _READS and not call.args


def _read(call: ast.Call) -> ast.expr:
    """What ``x.item()`` or ``float(x)`` reads."""
    match call:
        case ast.Call(ast.Attribute(of), []):
            return of
        case ast.Call(_, [of]):
            return of
    return ast.Constant(None)


def _without_reads(test: ast.expr) -> str | None:
    tree = _Unread().visit(ast.parse(ast.unparse(test), mode="eval")).body
    text = ast.unparse(tree)
    # What is left of Python's own functions takes numbers and no tensors.
    return None if re.search(r"\b(math|np|numpy)\.|\.(tolist|numpy|item)\(", text) else text


class _Unread(ast.NodeTransformer):
    """Takes the reads of single values out of an expression."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """``float(x)`` and ``x.item()`` as x, ``math.isnan`` as ``torch.isnan``."""
        self.generic_visit(node)
        if _is_read(node):
            return _read(node)
        match node:
            case ast.Call(ast.Name(name), [of], []) if name in _NUMBERS:
                return of
        if found := _OF_TORCH.match(ast.unparse(node.func)):
            node.func = ast.Attribute(ast.Name("torch"), found["name"])
        return node
