"""Whether what one line of a function makes is handed to what another line of it calls, by the text alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from breakscope.diagnose import loops
from breakscope.project.sources import Sources
from breakscope.source.names import root_name


def is_handed_on(sources: Sources, file: str, made: int, called: int) -> bool:
    """Whether what line ``made`` gives may be among what a call on line ``called`` is given.

    Where the text does not tell, because there is no function or no call, it may be.
    """
    function = next(
        (node for node in reversed(sources.around_line(file, called)) if isinstance(node, ast.FunctionDef)),
        None,
    )
    if function is None:
        return True
    calls = [node for node in _of_line(function, called) if isinstance(node, ast.Call) and _is_plain(node)]
    tainted = _tainted(function, made)
    return not calls or any(_takes(call, tainted, made) for call in calls)


def _of_line(function: ast.AST, line: int) -> Iterator[ast.AST]:
    for node in ast.walk(function):
        if isinstance(node, ast.expr) and node.lineno <= line <= (node.end_lineno or node.lineno):
            yield node


def _is_plain(call: ast.Call) -> bool:
    """Whether a name is called, or what a name leads to: a method of an expression is no model."""
    return root_name(call.func) is not None


def _takes(call: ast.Call, tainted: set[str], made: int) -> bool:
    given = [*call.args, *(one.value for one in call.keywords), call.func]
    is_there = any(getattr(node, "lineno", 0) == made for one in given for node in ast.walk(one))
    inside = is_there and call.lineno != made
    return inside or call.lineno == made or any(tainted.intersection(loops.names(one)) for one in given)


def _tainted(function: ast.AST, made: int) -> set[str]:
    """The names that hold what a line makes, or what is made of that."""
    tainted: set[str] = set()
    while True:
        found = {name for node in ast.walk(function) for name in _set_by(node, tainted, made)}
        if found <= tainted:
            return tainted
        tainted |= found


def _set_by(node: ast.AST, tainted: set[str], made: int) -> Iterator[str]:
    """The names that a statement sets to something that is made of what line ``made`` makes."""
    match node:
        case ast.Assign(targets, value):
            pass
        case ast.AugAssign(target, _, value) | ast.AnnAssign(target, _, value) if value is not None:
            targets = [target]
        case ast.For(target, value) | ast.comprehension(target, value):
            targets = [target]
        case ast.Expr(ast.Call(ast.Attribute(holder), args)) if args:  # out.append(x)
            targets, value = [holder], ast.Tuple(args, ast.Load())
        case ast.NamedExpr(target, value):
            targets = [target]
        case _:
            return
    here = node.lineno <= made <= (node.end_lineno or node.lineno) if isinstance(node, ast.stmt) else False
    if isinstance(node, ast.For):
        here = node.lineno == made
    if here or tainted.intersection(loops.names(value)):
        for target in targets:
            yield from _set(target)


def _set(target: ast.expr) -> Iterator[str]:
    """The names that are given a value: ``out`` of ``out[mask]``, whose index is only read."""
    match target:
        case ast.Tuple(parts) | ast.List(parts):
            for part in parts:
                yield from _set(part)
        case ast.Subscript(value=held):
            yield from _set(held)
        case _:
            yield from loops.names(target)
