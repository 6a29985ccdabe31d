"""Reads a function statement by statement, with what is known of its variables at each."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from breakscope.lint import known
from breakscope.lint.evaluator import Found
from breakscope.lint.expressions import Expressions
from breakscope.lint.kinds import (
    DATA,
    MASK,
    MAYBE,
    NONE,
    OBJECT,
    SURE_TENSOR,
    TENSOR,
    UNKNOWN,
    VALUE,
    Kind,
    join,
    last_name,
    of_annotation,
)
from breakscope.lint.names import ClassNames, Names

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


class Nested(NamedTuple):
    """A function or class inside a function, with the variables and functions known around it."""

    node: FunctionNode | ast.ClassDef
    env: dict[str, Kind]
    locals: dict[str, str]


class Flow(Expressions):
    """Reads statements; ``extract`` says how one begins.

    Attributes:
        name: qualified name of the function; empty for a module.
        nested: functions and classes that are defined inside.
    """

    def __init__(self, names: Names, owner: ClassNames | None, found: Found, name: str = "") -> None:
        super().__init__(names, owner, found)
        self.name = name
        self.nested: list[Nested] = []

    def run(self, body: Sequence[ast.stmt]) -> bool:
        """Read a block. Whether its end can be reached."""
        for statement in body:
            read = _READ.get(type(statement))
            if read is not None and getattr(self, read)(statement) is False:
                return False
        return True

    # ---- simple statements ----

    def _expr(self, node: ast.Expr) -> None:
        self.kind(node.value)

    def _return(self, node: ast.Return) -> bool:
        self.kind(node.value)
        return False

    def _raise(self, node: ast.Raise) -> bool:
        # What an error's text needs is computed only where the error ends everything.
        muted, self.muted = self.muted, True
        self.kind(node.exc)
        self.muted = muted
        return False

    def _jump(self, _: ast.stmt) -> bool:
        return False

    def _assign(self, node: ast.Assign) -> None:
        kind = self._value(node.value, node.targets)
        for target in node.targets:
            if isinstance(target, ast.Attribute):
                self._set_attribute(target, node)
            self.bind(target, kind)

    def _value(self, value: ast.expr, targets: list[ast.expr]) -> Kind | list[Kind]:
        pairwise = isinstance(value, ast.Tuple) and any(isinstance(target, ast.Tuple) for target in targets)
        if pairwise and isinstance(value, ast.Tuple):
            return [self.kind(element) for element in value.elts]
        return self.kind(value)

    def _ann_assign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            kind = self.kind(node.value)
            promised = of_annotation(node.annotation)
            self.bind(node.target, promised if promised is not UNKNOWN else kind)

    def _aug_assign(self, node: ast.AugAssign) -> None:
        right = self.kind(node.value)
        target = node.target
        if isinstance(target, ast.Name):
            left = self.env.get(target.id, UNKNOWN)
            if right in SURE_TENSOR and left not in SURE_TENSOR:
                self.env[target.id] = TENSOR
            elif left is VALUE and right is UNKNOWN:
                self.env[target.id] = UNKNOWN
        elif isinstance(target, ast.Attribute):
            self._counter(target, node)
        elif isinstance(target, ast.Subscript):
            base = self.kind(target.value)
            parts = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
            if MASK in [self.kind(part) for part in parts]:
                # x[m] = v writes through the mask; x[m] += v reads x[m] first.
                self.report("BS105", target, likely=base in SURE_TENSOR, about="boolean mask as an index")

    def _counter(self, target: ast.Attribute, node: ast.stmt) -> None:
        own = isinstance(target.value, ast.Name) and target.value.id == "self"
        if own and self.owner is not None and target.attr in self.owner.numbers:
            self.report("BS209", node, likely=True, about=f"self.{target.attr} changes with every call")

    def _set_attribute(self, target: ast.Attribute, node: ast.Assign) -> None:
        name = target.attr
        base = self.peek(target.value)
        if name == "requires_grad" and (base in DATA or base is MAYBE):
            self.report("BS115", node, likely=base is not MAYBE)
        elif name == "data" and base in SURE_TENSOR:
            self.report("BS115", node, likely=True)
        elif isinstance(node.value, ast.BinOp) and self._mentions(node.value, target):
            self._counter(target, node)

    @staticmethod
    def _mentions(value: ast.BinOp, target: ast.Attribute) -> bool:
        sides = (value.left, value.right)
        return any(isinstance(side, ast.Attribute) and side.attr == target.attr for side in sides)

    def _assert(self, node: ast.Assert) -> None:
        test = node.test
        plain_text = node.msg is None or isinstance(node.msg, ast.Constant)
        if isinstance(test, ast.BoolOp) or (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)):
            self.condition(test)
            return
        kind = self.kind(test)  # Dynamo puts a plain assert of a tensor into the graph
        if kind in SURE_TENSOR and not plain_text:
            self.report("BS101", test, likely=True, about="assert whose message is computed")

    def _delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.env.pop(target.id, None)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        self.names.add_import(node)

    def _definition(self, node: FunctionNode | ast.ClassDef) -> None:
        if not isinstance(node, ast.ClassDef):
            self.env[node.name] = OBJECT
            self.locals[node.name] = f"{self.name}.<locals>.{node.name}"
        # The functions around it may be defined later: they share one table.
        self.nested.append(Nested(node, dict(self.env), self.locals))

    # ---- compound statements ----

    def _if(self, node: ast.If) -> bool:
        choice = self.static(node.test)
        if choice is not None:
            return self.run(node.body if choice else node.orelse)
        self.condition(node.test)
        narrowed = self._narrowed(node.test)
        return self._branches(node.body, node.orelse, narrowed)

    def _branches(
        self, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt], narrowed: dict[str, Kind]
    ) -> bool:
        sure, self.sure = self.sure, False
        before = self.env
        muted = self.muted
        # A branch that ends in an error is not where time goes.
        self.muted = muted or (bool(body) and isinstance(body[-1], ast.Raise))
        self.env = {**before, **narrowed}
        first_ends = not self.run(body)
        first, self.env = self.env, dict(before)
        self.muted = muted or (bool(orelse) and isinstance(orelse[-1], ast.Raise))
        second_ends = not self.run(orelse)
        self.muted = muted
        self.sure = sure
        if first_ends:
            return not second_ends
        self.env = first if second_ends else _merged(first, self.env)
        return True

    def _narrowed(self, test: ast.expr) -> dict[str, Kind]:
        """What a condition says of a variable where it holds: ``isinstance(x, torch.Tensor)``."""
        if not isinstance(test, ast.Call) or not test.args or not isinstance(test.args[0], ast.Name):
            return {}
        name = last_name(test.func)
        if name == "is_tensor":
            return {test.args[0].id: TENSOR}
        if name != "isinstance" or len(test.args) < 2:
            return {}
        wanted = test.args[1]
        kinds = {of_annotation(one) for one in (wanted.elts if isinstance(wanted, ast.Tuple) else [wanted])}
        return {test.args[0].id: kinds.pop()} if len(kinds) == 1 else {}

    def _for(self, node: ast.For | ast.AsyncFor) -> None:
        self.bind(node.target, self.elements(node.iter))
        self._loop(node.body, node.orelse)

    def _while(self, node: ast.While) -> None:
        if self.static(node.test) is None:
            self.condition(node.test)
        self._loop(node.body, node.orelse)

    def _loop(self, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt]) -> None:
        before = dict(self.env)
        self.run(body)
        self.env = _merged(before, self.env)
        self.run(orelse)

    def _try(self, node: ast.Try) -> bool:
        before = dict(self.env)
        goes_on = self.run(node.body)
        after = self.env
        sure, self.sure = self.sure, False
        for handler in node.handlers:
            self.env = dict(before)
            if self.run(handler.body):
                after = _merged(after, self.env) if goes_on else self.env
                goes_on = True
        self.env, self.sure = after, sure
        if node.orelse and goes_on:
            goes_on = self.run(node.orelse)
        return self.run(node.finalbody) and goes_on

    def _with(self, node: ast.With | ast.AsyncWith) -> bool:
        for item in node.items:
            self._enter(item.context_expr)
            self.kind(item.context_expr)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, UNKNOWN)
        return self.run(node.body)

    def _enter(self, context: ast.expr) -> None:
        maker: str | None = None
        if isinstance(context, ast.Call):
            maker = self.dotted(context.func)
        elif isinstance(context, ast.Name) and context.id not in self.env:
            maker = self.names.made_by.get(context.id)
        elif isinstance(context, ast.Attribute) and self.owner is not None:
            maker = self.owner.made_by.get(context.attr)
        if maker in known.LOCKS or maker in known.BREAKING_CONTEXTS - {"open"}:
            self.report("BS112", context, likely=True)

    def _match(self, node: ast.Match) -> None:
        self.condition(node.subject)
        before = self.env
        sure, self.sure = self.sure, False
        merged = dict(before)
        for case in node.cases:
            self.env = dict(before)
            self.run(case.body)
            merged = _merged(merged, self.env)
        self.env, self.sure = merged, sure


def _merged(one: dict[str, Kind], other: dict[str, Kind]) -> dict[str, Kind]:
    if one == other:
        return one
    return {
        name: join(one.get(name, NONE), other.get(name, NONE))
        if one.get(name) is not other.get(name)
        else one[name]
        for name in one.keys() | other.keys()
    }


# By name, so that a subclass can read some of them in its own way.
_READ: dict[type, str] = {
    ast.Expr: "_expr",
    ast.Return: "_return",
    ast.Raise: "_raise",
    ast.Continue: "_jump",
    ast.Break: "_jump",
    ast.Assign: "_assign",
    ast.AnnAssign: "_ann_assign",
    ast.AugAssign: "_aug_assign",
    ast.Assert: "_assert",
    ast.Delete: "_delete",
    ast.Import: "_import",
    ast.ImportFrom: "_import",
    ast.FunctionDef: "_definition",
    ast.AsyncFunctionDef: "_definition",
    ast.ClassDef: "_definition",
    ast.If: "_if",
    ast.For: "_for",
    ast.AsyncFor: "_for",
    ast.While: "_while",
    ast.Try: "_try",
    ast.With: "_with",
    ast.AsyncWith: "_with",
    ast.Match: "_match",
}
