"""What certainly ran before a statement begins, and the blocks that statements stand in."""

from __future__ import annotations

import ast

from breakscope.source.module import FunctionNode, Scope
from breakscope.source.names import names_in, parameters, stored_in


def block_of(scope: Scope, statement: ast.stmt) -> tuple[list[ast.stmt], int]:
    """The list of statements that holds a statement, and its index there."""
    parent = scope.parents[statement]
    for field in ("body", "orelse", "finalbody", "handlers"):
        block = getattr(parent, field, None)
        if isinstance(block, list) and any(one is statement for one in block):
            return block, next(index for index, one in enumerate(block) if one is statement)
    raise LookupError(statement)


def enclosing_statement(scope: Scope, node: ast.AST) -> ast.stmt:
    """The statement that a node belongs to (itself, if it is one)."""
    while not isinstance(node, ast.stmt):
        node = scope.parents[node]
    return node


def bound_before(scope: Scope, statement: ast.stmt, name: str) -> bool:
    """Whether a name certainly has a value when a statement begins."""
    if name in parameters(scope.function):
        return not _deleted(scope.function, name)
    current: ast.AST = statement
    while current is not scope.function:
        if isinstance(current, ast.stmt):
            block, index = block_of(scope, current)
            if any(_certainly_binds(one, name) for one in block[:index]):
                return not _deleted(scope.function, name)
        parent = scope.parents[current]
        if isinstance(parent, ast.For) and current in parent.body and name in names_in([parent.target]):
            return not _deleted(scope.function, name)
        current = parent
    return False


def _certainly_binds(statement: ast.stmt, name: str) -> bool:
    if isinstance(statement, ast.Assign):
        return any(name in stored_in(target) for target in statement.targets)
    if isinstance(statement, ast.AugAssign | ast.AnnAssign):
        has_value = statement.value is not None
        return has_value and isinstance(statement.target, ast.Name) and statement.target.id == name
    if isinstance(statement, ast.If):
        return any(_certainly_binds(one, name) for one in statement.body) and any(
            _certainly_binds(one, name) for one in statement.orelse
        )
    if isinstance(statement, ast.With):
        return any(_certainly_binds(one, name) for one in statement.body)
    return False


def _deleted(function: FunctionNode, name: str) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Del)
        for node in ast.walk(function)
    )


def certainly_before(scope: Scope, node: ast.AST, statement: ast.AST) -> bool:
    """Whether a node stands above a statement, and neither a loop nor a later call of it leads back to it."""
    line = getattr(node, "end_lineno", None)
    if line is None or line >= getattr(statement, "lineno", 0):
        return False
    repeats = (ast.For, ast.AsyncFor, ast.While)
    around = [one for one in _above(scope, statement) if isinstance(one, repeats)]
    own = _above(scope, node)
    nested = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.GeneratorExp)
    return not any(one in own for one in around) and not any(isinstance(one, nested) for one in own)


def _above(scope: Scope, node: ast.AST) -> list[ast.AST]:
    """The nodes around a node, up to the function's body."""
    found: list[ast.AST] = []
    while node is not scope.function:
        found.append(node)
        node = scope.parents[node]
    return found
