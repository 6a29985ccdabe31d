"""Whether a function does nothing with a number but arithmetic on tensors, so that nobody sees what it is."""

from __future__ import annotations

import ast

from breakscope.fix.remedies.source import File, Files
from breakscope.fix.remedies.subject import Subject


def only_computed_with(subject: Subject, files: Files, name: str) -> bool:
    """Whether a parameter is an operand of arithmetic and nothing else, in a function that keeps nothing.

    Nobody but the arithmetic then sees that it is a tensor: what it gives is a tensor's as before.
    """
    place = subject.finding.location
    file = files.open(place.file)
    if file is None or any(
        signature.module or signature.entry != signature.function for signature in subject.signatures
    ):
        return False
    function = _with_parameter(file, place.line, name)
    if function is None:
        return False
    parts = [part for statement in function.body for part in ast.walk(statement)]
    stored = {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    tensors = _tensor_parameters(subject) - stored
    operands = {
        id(side)
        for part in parts
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add | ast.Sub | ast.Mult | ast.Div)
        for side, other in ((part.left, part.right), (part.right, part.left))
        if _is_tensor(other, tensors)
    }
    return not any(_keeps(part) for part in parts) and all(
        id(part) in operands for part in parts if isinstance(part, ast.Name) and part.id == name
    )


def _with_parameter(file: File, line: int, name: str) -> ast.FunctionDef | None:
    """The innermost function around a line that has a parameter of this name."""
    found = None
    for node in ast.walk(file.tree):
        if not isinstance(node, ast.FunctionDef):
            continue
        first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
        names = {one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
        if first <= line <= (node.end_lineno or 0) and name in names:
            found = node
    return found


def _tensor_parameters(subject: Subject) -> set[str]:
    """Parameters that were tensors in every call that was compiled."""
    found: set[str] | None = None
    for signature in subject.signatures:
        passed = (
            dict(zip(signature.parameters, signature.arguments["args"], strict=False))
            | signature.arguments["kwargs"]
        )
        names = {name for name, value in passed.items() if "tensor" in value or "same" in value}
        found = names if found is None else found & names
    return found or set()


def _is_tensor(node: ast.expr, tensors: set[str]) -> bool:
    match node:
        case ast.Name(name):
            return name in tensors
        case ast.BinOp(left, _, right):
            return _is_tensor(left, tensors) or _is_tensor(right, tensors)
        case ast.UnaryOp(ast.USub(), operand):
            return _is_tensor(operand, tensors)
    return False


def _keeps(part: ast.AST) -> bool:
    """Whether something may outlive the call by this, or see its names: a store, an inner function."""
    if isinstance(part, ast.Attribute | ast.Subscript):
        return isinstance(part.ctx, ast.Store | ast.Del)
    return isinstance(
        part,
        ast.Global | ast.Nonlocal | ast.Yield | ast.YieldFrom | ast.Lambda | ast.FunctionDef | ast.ClassDef,
    )
