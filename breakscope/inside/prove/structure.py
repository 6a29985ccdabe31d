"""Where the text of two forms shows that they do the same outside of compiled code, whatever they are given.

A search for an input that tells them apart could find none there, so none is made: the recorded calls are
compared, and the new form compiled. Four changes are of this kind, in any number:

- ``S`` becomes ``if not torch.compiler.is_compiling(): S``, where S writes a message. ``is_compiling()``
  reads a flag that is False whenever Python itself runs the function: the new form then does what the old one
  did, plus that reading, for every input and every state. While it is compiled, S is left out. That leaves
  the values alone if S does nothing but write; whoever claims the messages to be ``silent`` has made sure
  that evaluating their arguments acts on nothing (``fix/messages``), and the comparison of the compiled form
  on recorded calls, the whole script and the search for listeners stand behind that.
- ``if T: S`` becomes ``if not torch.compiler.is_compiling() and T: S``, with nothing but messages in S.
  Run by Python, T is asked as before. While compiled it is not: the same holds for evaluating it as for S.
- ``pow(a, b)`` becomes ``a ** b``. With two arguments the builtin is that operator: both end in
  ``PyNumber_Power(a, b, None)``, on operands that are evaluated in the same order.
- ``found = [f(k) for k in names]`` becomes a loop that fills ``found``: that is what a comprehension means,
  where nobody sees the loop's names or the half filled value (``source/comprehensions``).

That a size is handed on as a number (``known-size``) is no such change: whether the number is right is a
question of values.
"""

from __future__ import annotations

import ast
import builtins
import copy
import types
from collections.abc import Mapping
from typing import Any

import torch

from breakscope.source import comprehensions
from breakscope.source.module import FunctionNode

_IS_COMPILING = "compiler.is_compiling()"
_BUILTINS = {one.__name__: one for one in (pow, all, any, dict, len, list, max, min, set, sum, tuple)}
_OWN = ("builtins", "")  # of the builtins themselves, and of the module torch
_MESSAGES = {
    "print", "warn", "warning", "debug", "info", "error", "critical", "exception", "log", "warning_once",
    "info_once", "warning_advice",
}  # fmt: skip


def relies_on(old: ast.stmt, new: ast.stmt, *, silent: bool) -> frozenset[str] | None:
    """The global names that have to mean what they say for two forms to be the same; None: they may not be.

    Args:
        silent: messages may be left out while compiling.
    """
    names: set[str] = set()
    old, new = copy.deepcopy(old), copy.deepcopy(new)
    loops = _with_loops(old, new, names)
    before = _Plainly(names, unwraps=False).visit(old)
    after = _Plainly(names, unwraps=silent).visit(new)
    if not (names or loops) or ast.dump(_bare(before)) != ast.dump(_bare(after)):
        return None
    return frozenset(names)


def means_it(function: types.FunctionType, names: frozenset[str]) -> bool:
    """Whether names are, in a function, torch and the builtin that they look like."""
    code, scope = function.__code__, function.__globals__
    local = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
    for name in names:
        meant = _BUILTINS.get(name, torch)
        there = scope.get(name, vars(builtins).get(name))
        if name in local or there is not meant or getattr(there, "__module__", "") not in _OWN:
            return False
    return True


def _bare(function: ast.stmt) -> ast.stmt:
    """Without decorators, which the proof run changes itself."""
    function.decorator_list = []  # type: ignore[attr-defined]
    return function


def _with_loops(old: ast.stmt, new: ast.stmt, names: set[str]) -> bool:
    """Write the comprehensions that the new form does not have as loops; whether there are any.

    Args:
        names: gets the global names that this relies on.
    """
    kept = {ast.dump(one) for one in ast.walk(new) if isinstance(one, ast.stmt)}
    known = {one.id for one in ast.walk(old) if isinstance(one, ast.Name)}
    # Names that the new form gives to what was a part of an expression, in its order.
    own = [one for one in ast.walk(new) if isinstance(one, ast.Name) and one.id not in known]
    fresh = iter(dict.fromkeys(one.id for one in sorted(own, key=lambda one: (one.lineno, one.col_offset))))
    parents = {child: node for node in ast.walk(old) for child in ast.iter_child_nodes(node)}
    found = [one for one in ast.walk(old) if isinstance(one, comprehensions.Comprehension)]
    changed: dict[ast.AST, list[ast.stmt]] = {}
    named: list[tuple[ast.AST, str]] = []
    for node in sorted(found, key=lambda one: (one.lineno, one.col_offset)):
        statement = _statement(node, parents)
        around = _function(statement, parents)
        if around is None or statement in changed or ast.dump(statement) in kept:
            continue
        filled = comprehensions.filled_name(statement, node)
        called = [] if filled else comprehensions.called_before(node, statement, parents)
        name = filled or (next(fresh, "") if called is not None else "")
        renamed = {one: next(fresh, "") for one in comprehensions.to_rename(around, node, parents) if name}
        if not name or comprehensions.why_no_loop(around, statement, node, name, parents, renamed):
            continue
        changed[statement] = comprehensions.loop_of(node, name, renamed)
        if not filled:
            changed[statement].append(statement)
            named.append((node, name))
        names.update(called or (), {"set"} if isinstance(node, ast.SetComp) else ())
    for part, name in named:  # not before: what is asked of the others is asked of the tree as it was
        _Named(part, name).visit(_statement(part, parents))
    for above in {parents[one] for one in changed}:
        for _, block in ast.iter_fields(above):
            if isinstance(block, list):
                block[:] = [new for one in block for new in changed.get(one, [one])]
    return bool(changed)


def _statement(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> ast.stmt:
    while not isinstance(node, ast.stmt):
        node = parents[node]
    return node


def _function(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> FunctionNode | None:
    """The function around a statement; None: it stands in a class."""
    above = parents.get(node)
    while above is not None and not isinstance(above, FunctionNode | ast.ClassDef):
        above = parents.get(above)
    return above if isinstance(above, FunctionNode) else None


class _Named(ast.NodeTransformer):
    """A statement with a name in the place of one of its nodes."""

    def __init__(self, node: ast.AST, name: str) -> None:
        self._node, self._name = node, name

    def visit(self, node: ast.AST) -> Any:
        if node is self._node:
            return ast.Name(self._name, ast.Load())
        return super().generic_visit(node)


class _Plainly(ast.NodeTransformer):
    """A form with guarded messages unguarded and ``pow`` as the operator.

    Args:
        names: gets the global names that this relies on.
    """

    def __init__(self, names: set[str], *, unwraps: bool) -> None:
        self._names, self._unwraps = names, unwraps

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        first, rest = _operands(node.test)
        module = _module_asked(first)
        if not self._unwraps or module is None or not all(map(_is_message, node.body)):
            return node
        if rest is None and not node.orelse:
            self._names.add(module)
            return node.body
        if rest is not None and all(isinstance(statement, ast.Pass) for statement in node.orelse):
            self._names.add(module)
            node.test = rest
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        plain = len(node.args) == 2 and not node.keywords
        if not (plain and isinstance(node.func, ast.Name) and node.func.id == "pow"):
            return node
        if any(isinstance(arg, ast.Starred) for arg in node.args):
            return node
        self._names.add("pow")
        return ast.BinOp(node.args[0], ast.Pow(), node.args[1])


def _operands(test: ast.expr) -> tuple[ast.expr, ast.expr | None]:
    """A condition's first operand of ``and``, and what is left of the condition."""
    match test:
        case ast.BoolOp(ast.And(), [first, rest]):
            return first, rest
        case ast.BoolOp(ast.And(), [first, *several]):
            return first, ast.BoolOp(ast.And(), several)
    return test, None


def _module_asked(test: ast.expr) -> str | None:
    """The name of torch in ``not torch.compiler.is_compiling()``; None: it is another condition."""
    if not isinstance(test, ast.UnaryOp) or not isinstance(test.op, ast.Not):
        return None
    module, _, asked = ast.unparse(test.operand).partition(".")
    return module if asked == _IS_COMPILING and module.isidentifier() else None


def _is_message(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.If):
        return all(map(_is_message, (*statement.body, *statement.orelse)))
    if isinstance(statement, ast.Pass):
        return True
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    called = statement.value.func
    return getattr(called, "attr", getattr(called, "id", "")) in _MESSAGES
