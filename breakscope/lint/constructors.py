"""What a class's constructor puts into ``self``."""

from __future__ import annotations

import ast

from breakscope.lint.evaluator import Found
from breakscope.lint.flow import Flow, FunctionNode
from breakscope.lint.kinds import TENSOR, UNKNOWN, VALUE, Kind, join, last_name, of_annotation
from breakscope.lint.names import ClassNames, Names

_METHODS = ("__init__", "setup", "build", "__post_init__")


def read_constructor(names: Names, owner: ClassNames) -> None:
    """Take in the attributes that a class's own constructor sets."""
    for method in _METHODS:
        node = owner.methods.get(method)
        if node is not None:
            constructor = _Constructor(names, owner, Found())
            constructor.muted = True
            constructor.env = {arg.arg: _of_argument(arg) for arg in _arguments(node)}
            constructor.run(node.body)


def is_number(node: ast.expr | None) -> bool:
    """Whether an expression is a plain number, with which a counter begins."""
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, int | float)
        and not isinstance(node.value, bool)
    )


class _Constructor(Flow):
    """Reads a constructor for what it puts into ``self``."""

    def _assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            if _own_attribute(target):
                self._keep(target.attr, node.value)  # type: ignore[attr-defined]
        super()._assign(node)

    def _ann_assign(self, node: ast.AnnAssign) -> None:
        if _own_attribute(node.target) and node.value is not None:
            self._keep(node.target.attr, node.value)  # type: ignore[union-attr]
        super()._ann_assign(node)

    def _expr(self, node: ast.Expr) -> None:
        call = node.value
        if isinstance(call, ast.Call) and last_name(call.func) in ("register_buffer", "register_parameter"):
            name = call.args[0] if call.args else None
            if self.owner and isinstance(name, ast.Constant) and isinstance(name.value, str):
                self.owner.kinds[name.value] = TENSOR
        super()._expr(node)

    def _keep(self, name: str, value: ast.expr) -> None:
        owner = self.owner
        if owner is None:
            return
        kind = self.kind(value)
        if isinstance(value, ast.Call):
            maker = self.dotted(value.func)
            if maker:
                owner.made_by[name] = maker
                kind = TENSOR if maker.endswith(("nn.Parameter", ".Buffer")) else kind
                if maker.startswith("torch.nn.") and kind is VALUE:
                    return  # a module, of which calls matter
        if is_number(value):
            owner.numbers.add(name)
        if kind is not UNKNOWN:
            owner.kinds[name] = join(owner.kinds.get(name, kind), kind)


def _arguments(node: FunctionNode) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def _of_argument(arg: ast.arg) -> Kind:
    """Arguments of constructors are sizes and settings, unless they say otherwise."""
    kind = of_annotation(arg.annotation)
    return VALUE if kind is UNKNOWN and arg.annotation is None else kind


def _own_attribute(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
