"""What a call gives, and whether Dynamo can go through it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from breakscope.lint import known
from breakscope.lint.kinds import (
    ARRAY,
    DATA,
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
)
from breakscope.lint.methods import method_kind
from breakscope.lint.tensor_calls import numpy_kind, torch_kind
from breakscope.source.names import name_parts

if TYPE_CHECKING:
    from breakscope.lint.evaluator import Evaluator

# Builtins that read a tensor: code, what is special, what they give.
_READS: dict[str, tuple[str, str, Kind]] = {
    **dict.fromkeys(("int", "float", "bool", "complex"), ("BS102", "{}() of a tensor", VALUE)),
    **dict.fromkeys(("str", "repr", "format", "ascii"), ("BS128", "text of a tensor", VALUE)),
    **dict.fromkeys(("any", "all"), ("BS101", "{}() of a tensor", VALUE)),
    "round": ("BS111", "round() of a tensor", VALUE),
    "range": ("BS111", "range() of a tensor", SHAPE),
    "hash": ("BS129", "hash() of a tensor", VALUE),
}
# What other builtins give.
_BUILTINS: dict[str, Kind] = {
    **dict.fromkeys(
        ("len", "isinstance", "hasattr", "id", "type", "issubclass", "callable", "ord", "chr"), VALUE
    ),
    **dict.fromkeys(("dict", "map", "filter", "iter", "enumerate", "zip", "object"), OBJECT),
}
_MATH = "math."


def call_kind(ev: Evaluator, node: ast.Call) -> Kind:
    """Evaluate a call: its arguments, what it gives, and what breaks."""
    kinds = [ev.kind(arg) for arg in node.args]
    named = {keyword.arg or "**": ev.kind(keyword.value) for keyword in node.keywords}
    func = node.func
    if isinstance(func, ast.Name):
        return _function(ev, node, kinds, named)
    if not isinstance(func, ast.Attribute):
        ev.kind(func)
        return UNKNOWN
    base = func.value
    if func.attr in known.LOG_METHODS and ev.names.is_logger(base) and not ev.is_local(base):
        ev.report("BS104", node, likely=True)
        return VALUE
    if _is_super(base):
        ev.call(f"super:{func.attr}", node)
        return _returns(ev, func.attr)
    if isinstance(base, ast.Name) and base.id == "self" and ev.owner is not None:
        return _of_self(ev, node, func.attr)
    dotted = ev.dotted(func)
    if dotted is not None and _is_module(ev, func):
        return _dotted(ev, node, dotted, kinds, named)
    return method_kind(ev, node, func, ev.kind(base), kinds, named)


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def _is_module(ev: Evaluator, node: ast.expr) -> bool:
    """Whether the first name of a dotted name is imported, or a class of this file."""
    first = next(iter(name_parts(node)), "")
    return first in ev.names.imports or first in ev.names.classes or first in ("torch", "np")


def _returns(ev: Evaluator, method: str) -> Kind:
    if ev.owner is None:
        return UNKNOWN
    for one in ev.names.inherited(ev.owner, method):
        return one.returns.get(method, UNKNOWN)
    return UNKNOWN


def _of_self(ev: Evaluator, node: ast.Call, name: str) -> Kind:
    """``self.name(...)``: a submodule or a method."""
    owner = ev.owner
    made_by = owner.made_by.get(name) if owner else None
    if made_by in known.NN_RECURRENT:
        ev.report("BS116", node, likely=True)
        return UNKNOWN
    if made_by in known.NN_TENSOR:
        return TENSOR
    if name == "register_buffer":
        return NONE
    ev.call(f"self:{name}", node)
    return _returns(ev, name)


# ---- functions ----


def _function(ev: Evaluator, node: ast.Call, kinds: list[Kind], named: dict[str, Kind]) -> Kind:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name in ev.env:
        ev.kind(node.func)
        return UNKNOWN
    if name in ev.names.imports or name in ev.names.functions or name in ev.names.classes:
        dotted = ev.names.dotted(node.func) or name
        if name in ev.names.functions:
            ev.call(f"name:{name}", node)
            return ev.names.functions[name]
        return _dotted(ev, node, dotted, kinds, named)
    if ev.names.made_by.get(name) in known.NN_RECURRENT:
        ev.report("BS116", node, likely=True)
        return UNKNOWN
    return _builtin(ev, node, name, kinds, named)


def _builtin(ev: Evaluator, node: ast.Call, name: str, kinds: list[Kind], named: dict[str, Kind]) -> Kind:
    first = kinds[0] if kinds else NONE
    if name in _READS:
        code, about, result = _READS[name]
        if name in ("any", "all") and first is TENSORS:
            first = TENSOR
        if name == "range":
            first = next((kind for kind in kinds if kind in DATA), first)
        if first in DATA or first is MAYBE:
            ev.report(code, node, likely=first in DATA, about=about.format(name))
        return result
    if name in known.BREAKING:
        ev.report(known.BREAKING[name], node, likely=True)
        return VALUE
    if name in ("max", "min", "sum", "abs", "pow"):
        return _arithmetic(ev, node, name, kinds, named)
    if name == "sorted" and first is TENSORS:
        ev.report("BS123", node, likely=True, about="sorting of tensors")
    if name in ("list", "tuple", "reversed", "set", "sorted"):
        return TENSORS if first in SURE_TENSOR else first if first in (TENSORS, SHAPE) else OBJECT
    return _BUILTINS.get(name, UNKNOWN)


def _arithmetic(ev: Evaluator, node: ast.Call, name: str, kinds: list[Kind], named: dict[str, Kind]) -> Kind:
    if "key" in named and any(kind in (TENSORS, TENSOR) for kind in kinds):
        ev.report("BS111", node, likely=True, about=f"{name}() of tensors with a key")
    if any(kind in SURE_TENSOR or kind is TENSORS for kind in kinds):
        return TENSOR
    if ARRAY in kinds:
        return ARRAY
    if MAYBE in kinds:
        return MAYBE
    return VALUE if kinds and all(kind in PLAIN for kind in kinds) else UNKNOWN


def _dotted(ev: Evaluator, node: ast.Call, dotted: str, kinds: list[Kind], named: dict[str, Kind]) -> Kind:
    """A call of something imported, or of a class of this file."""
    if dotted in known.COMPILERS:
        _compiled(ev, node)
        return UNKNOWN
    code = known.BREAKING.get(dotted)
    if code is not None:
        ev.report(code, node, likely=True)
        return TENSOR if dotted in known.TENSOR_RESULTS else VALUE
    if dotted.startswith("torch."):
        return torch_kind(ev, node, dotted, kinds, named)
    if dotted.startswith("numpy."):
        return numpy_kind(ev, node, dotted, kinds)
    if dotted.startswith(_MATH):
        if any(kind in SURE_TENSOR for kind in kinds):
            ev.report("BS102", node, likely=True, about=f"{dotted}() of a tensor")
        return VALUE
    if dotted == "copy.deepcopy" and kinds and kinds[0] in SURE_TENSOR:
        ev.report("BS118", node, likely=True)
        return TENSOR
    if dotted.startswith("logging.") and dotted.partition(".")[2] in known.LOG_METHODS:
        ev.report("BS104", node, likely=True)
        return VALUE
    if dotted.startswith(("random.", "os.", "sys.")):
        return VALUE
    ev.call(f"name:{dotted}", node)
    return UNKNOWN


def _compiled(ev: Evaluator, node: ast.Call) -> None:
    """``torch.compile(f)``, ``torch.compile(self.step)``: the function named is compiled."""
    for argument in node.args[:1]:
        if isinstance(argument, ast.Name):
            ev.found.compiled.append(f"name:{ev.names.dotted(argument)}")
        elif isinstance(argument, ast.Attribute):
            base = argument.value
            own = isinstance(base, ast.Name) and base.id == "self" and ev.owner is not None
            ev.found.compiled.append(
                f"of:{ev.owner.name}.{argument.attr}" if own and ev.owner else f"any:{argument.attr}"
            )
