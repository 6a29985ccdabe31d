"""The kind of every expression of a function, and what breaks in it.

One pass: each expression is evaluated once, its parts first. What a call does is in ``calls``.
"""

from __future__ import annotations

import ast

from breakscope.lint import known
from breakscope.lint.calls import call_kind
from breakscope.lint.evaluator import CONFIGS, Evaluator
from breakscope.lint.kinds import (
    ARRAY,
    DATA,
    MASK,
    MAYBE,
    NONE,
    OBJECT,
    PLAIN,
    SHAPE,
    SURE_TENSOR,
    TENSOR,
    TENSORS,
    UNKNOWN,
    VALUE,
    Kind,
    join,
)

_IDENTITY = (ast.Is, ast.IsNot)
_MEMBERSHIP = (ast.In, ast.NotIn)
_Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


class Expressions(Evaluator):
    """Reads expressions: for each kind of node, what it gives and whether Dynamo can go through it."""

    def _constant(self, node: ast.Constant) -> Kind:
        return NONE if node.value is None else VALUE

    def maybe(self, code: str, node: ast.expr, test: ast.expr, *, about: str = "") -> bool:
        """Decide on a tensor's value: report it; whether it was one."""
        kind = self.kind(test)
        if kind in DATA or kind is MAYBE:
            # A tensor of several elements has no truth, so a bare argument in a condition is rarely one.
            bare = isinstance(test, ast.Name) and test.id in self.parameters
            self.report(code, node, likely=kind is not MAYBE and not bare, about=about)
            return True
        return False

    def condition(self, test: ast.expr, whole: ast.expr | None = None) -> bool:
        """Evaluate a condition, and report if Python must read a tensor for it. Whether it must."""
        whole = whole or test
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self.condition(test.operand, whole)
        if isinstance(test, ast.BoolOp):
            before = self.sure
            reported = False
            for operand in test.values:
                if reported:
                    self.kind(operand)
                else:
                    reported = self.condition(operand, whole)
                self.sure = False
            self.sure = before
            return reported
        return self.maybe("BS101", whole, test)

    def _name(self, node: ast.Name) -> Kind:
        local = self.env.get(node.id)
        if local is not None:
            if node.id in self.locals:
                self.call(f"local:{self.locals[node.id]}", node)
            return local
        if node.id in self.names.functions or node.id in self.names.imports or node.id in self.names.tables:
            self.reference(node)
        if node.id in CONFIGS:
            return VALUE
        return self.names.kinds.get(node.id, UNKNOWN)

    def _attribute(self, node: ast.Attribute) -> Kind:
        name = node.attr
        if isinstance(node.value, ast.Name):
            if node.value.id == "self" and self.owner is not None:
                return self._of_self(node)
            if not self.is_local(node) and node.value.id in self.names.imports:
                return self._of_module(node)
        if name == "shape":
            self.kind(node.value)
            return SHAPE
        base = self.kind(node.value)
        if name in known.VALUE_ATTRIBUTES or base in (VALUE, NONE):
            return VALUE
        if name in known.TENSOR_ATTRIBUTES and (base in DATA or base is MAYBE):
            return base
        return VALUE if name in CONFIGS else UNKNOWN

    def _of_self(self, node: ast.Attribute) -> Kind:
        owner = self.owner
        name = node.attr
        if name == "training" or name in CONFIGS:
            return VALUE
        if owner is None:
            return UNKNOWN
        kind = owner.kinds.get(name)
        if kind is not None:
            return kind
        self.call(f"self:{name}", node)
        return UNKNOWN

    def _of_module(self, node: ast.Attribute) -> Kind:
        dotted = self.names.dotted(node) or ""
        if dotted.startswith(("torch.", "numpy.", "math.")):
            # A dtype, a constant, a function that is handed on.
            return VALUE
        self.reference(node)
        return UNKNOWN

    def _call(self, node: ast.Call) -> Kind:
        return call_kind(self, node)

    def _bin_op(self, node: ast.BinOp) -> Kind:
        left, right = self.kind(node.left), self.kind(node.right)
        if isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant | ast.JoinedStr):
            if right in DATA:
                self.report("BS128", node, likely=True, about="text of a tensor")
            return VALUE
        if TENSOR in (left, right):
            return TENSOR
        if MASK in (left, right):
            bits = isinstance(node.op, ast.BitAnd | ast.BitOr | ast.BitXor)
            return MASK if bits else TENSOR
        if ARRAY in (left, right):
            return ARRAY
        if MAYBE in (left, right):
            return MAYBE
        if left in PLAIN and right in PLAIN:
            return left if left in (SHAPE, OBJECT) else VALUE
        return TENSORS if left is TENSORS and right is TENSORS else UNKNOWN

    def _unary_op(self, node: ast.UnaryOp) -> Kind:
        if isinstance(node.op, ast.Not):
            self.condition(node.operand, node)
            return VALUE
        kind = self.kind(node.operand)
        return MASK if isinstance(node.op, ast.Invert) and kind is TENSOR else kind

    def _bool_op(self, node: ast.BoolOp) -> Kind:
        before = self.sure
        kind: Kind | None = None
        reported = False
        for index, operand in enumerate(node.values):
            one = self.kind(operand)
            last = index == len(node.values) - 1
            if not last and not reported and (one in DATA or one is MAYBE):
                self.report("BS101", node, likely=one is not MAYBE)
                reported = True
            kind = one if kind is None else join(kind, one)
            self.sure = False
        self.sure = before
        return kind or UNKNOWN

    def _compare(self, node: ast.Compare) -> Kind:
        kinds = [self.kind(node.left), *map(self.kind, node.comparators)]
        if all(isinstance(op, _IDENTITY) for op in node.ops):
            return VALUE
        if any(isinstance(op, _MEMBERSHIP) for op in node.ops):
            if kinds[0] in SURE_TENSOR and kinds[1] not in (OBJECT, TENSORS):
                self.report("BS101", node, likely=kinds[1] is SHAPE)
            return VALUE
        tensor = any(kind in SURE_TENSOR for kind in kinds)
        if any(kind in (TENSORS, OBJECT) or _is_text(part) for kind, part in self._sides(node, kinds)):
            return VALUE
        if len(node.ops) > 1 and tensor:
            self.report("BS101", node, likely=True, about="chained comparison of a tensor")
        if tensor:
            return MASK
        if ARRAY in kinds:
            return ARRAY
        return MAYBE if MAYBE in kinds else VALUE if all(kind in PLAIN for kind in kinds) else UNKNOWN

    @staticmethod
    def _sides(node: ast.Compare, kinds: list[Kind]) -> list[tuple[Kind, ast.expr]]:
        return list(zip(kinds, [node.left, *node.comparators], strict=True))

    def _if_exp(self, node: ast.IfExp) -> Kind:
        choice = self.static(node.test)
        if choice is None:
            self.condition(node.test)
        before, self.sure = self.sure, self.sure and choice is not None
        kinds = [
            self.kind(branch)
            for branch, taken in ((node.body, True), (node.orelse, False))
            if choice in (None, taken)
        ]
        self.sure = before
        return kinds[0] if len(kinds) == 1 else join(*kinds)

    def _subscript(self, node: ast.Subscript) -> Kind:
        base = self.kind(node.value)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        kinds = [self._index(part) for part in parts]
        if isinstance(node.ctx, ast.Load) and MASK in kinds and base not in (VALUE, OBJECT, SHAPE):
            self.report(
                "BS105", node, likely=base in SURE_TENSOR or base is MAYBE, about="boolean mask as an index"
            )
            return TENSOR
        if base in SURE_TENSOR or base in (ARRAY, MAYBE):
            return base
        if base in (TENSORS, SHAPE):
            if kinds[0] in SURE_TENSOR and isinstance(node.ctx, ast.Load):
                self.report("BS102", node.slice, likely=True, about="tensor as an index of a list")
            if isinstance(node.slice, ast.Slice):
                return base
            return TENSOR if base is TENSORS else VALUE
        return VALUE if base is VALUE else UNKNOWN

    def _index(self, node: ast.expr) -> Kind:
        if not isinstance(node, ast.Slice):
            return self.kind(node)
        for bound in (node.lower, node.upper, node.step):
            if bound is not None and self.kind(bound) in DATA:
                self.report("BS102", bound, likely=True, about="tensor as a bound of a slice")
        return VALUE

    def _sequence(self, node: ast.Tuple | ast.List | ast.Set) -> Kind:
        kinds = {self.kind(element) for element in node.elts}
        if not kinds:
            return OBJECT
        if kinds <= SURE_TENSOR:
            return TENSORS
        return SHAPE if kinds <= {VALUE, NONE} else OBJECT

    def _dict(self, node: ast.Dict) -> Kind:
        for part in (*node.keys, *node.values):
            if part is not None:
                self.kind(part)
        return OBJECT

    def _joined_str(self, node: ast.JoinedStr) -> Kind:
        for value in node.values:
            if isinstance(value, ast.FormattedValue):
                kind = self.kind(value.value)
                if kind in SURE_TENSOR and value.format_spec is None:
                    self.report("BS128", node, likely=True, about="text of a tensor")
        return VALUE

    def _lambda(self, node: ast.Lambda) -> Kind:
        before, sure = self.env, self.sure
        self.env = {**before, **{arg.arg: UNKNOWN for arg in node.args.args}}
        self.sure = False
        self.kind(node.body)
        self.env, self.sure = before, sure
        return OBJECT

    def _comprehension(self, node: _Comprehension) -> Kind:
        before, sure = self.env, self.sure
        self.env = dict(before)
        for generator in node.generators:
            self.bind(generator.target, self.elements(generator.iter))
            for test in generator.ifs:
                self.condition(test)
                self.sure = False
        if isinstance(node, ast.DictComp):
            self.kind(node.key)
            kind = self.kind(node.value)
        else:
            kind = self.kind(node.elt)
        self.env, self.sure = before, sure
        if isinstance(node, ast.DictComp):
            return OBJECT
        return TENSORS if kind in SURE_TENSOR else SHAPE if kind is VALUE else OBJECT

    def _starred(self, node: ast.Starred) -> Kind:
        kind = self.kind(node.value)
        return TENSOR if kind is TENSORS else VALUE if kind is SHAPE else UNKNOWN

    def _named(self, node: ast.NamedExpr) -> Kind:
        kind = self.kind(node.value)
        self.bind(node.target, kind)
        return kind

    def _inside(self, node: ast.Await | ast.YieldFrom | ast.Yield) -> Kind:
        if node.value is not None:
            self.kind(node.value)
        return UNKNOWN


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
