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

import torch

from breakscope.source import comprehensions
from breakscope.source.module import FunctionNode

_IS_COMPILING = "compiler.is_compiling()"
_BUILTINS = {"pow": pow, "set": set}
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
        if name in local or there is not meant or (name == "pow" and type(there) is not type(len)):
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
    kept = {ast.dump(one) for one in ast.walk(new) if isinstance(one, ast.Assign)}
    parents = {child: node for node in ast.walk(old) for child in ast.iter_child_nodes(node)}
    changed: dict[ast.AST, list[ast.stmt]] = {}
    for statement in ast.walk(old):
        if not isinstance(statement, ast.Assign) or ast.dump(statement) in kept:
            continue
        around: ast.AST | None = statement
        while around is not None and not isinstance(around, FunctionNode | ast.ClassDef):
            around = parents.get(around)
        made = statement.value
        if not isinstance(made, comprehensions.Comprehension) or not isinstance(around, FunctionNode):
            continue
        if not comprehensions.why_no_loop(around, statement, parents):
            changed[statement] = comprehensions.loop_of(statement)
            names |= {"set"} if isinstance(made, ast.SetComp) else set()
    for node in {parents[one] for one in changed}:
        for _, block in ast.iter_fields(node):
            if isinstance(block, list):
                block[:] = [new for one in block for new in changed.get(one, [one])]
    return bool(changed)


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
