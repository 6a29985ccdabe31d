"""Methods of objects that are neither a module nor ``self``: what they give, and which break."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from breakscope.lint import known
from breakscope.lint.kinds import (
    ARRAY,
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
)
from breakscope.lint.tensor_calls import read_sizes, repeat_interleave

if TYPE_CHECKING:
    from breakscope.lint.evaluator import Evaluator

_OPTIMIZER = re.compile(r"(?i)optim|^opt$")
# Methods of dicts, lists and strings, which say nothing about what is called.
_COMMON = frozenset(
    {
        "append",
        "extend",
        "insert",
        "pop",
        "popitem",
        "remove",
        "clear",
        "get",
        "items",
        "keys",
        "values",
        "setdefault",
        "index",
        "count",
        "sort",
        "reverse",
        "join",
        "format",
        "startswith",
        "endswith",
        "strip",
        "lower",
        "upper",
        "replace",
        "add",
        "discard",
        "union",
        "split",
        "encode",
        "decode",
        "copy",
        "update",
        "to_tuple",
        "register_buffer",
        "register_parameter",
        "parameters",
        "named_parameters",
        "modules",
        "children",
    }
)


def method_kind(
    ev: Evaluator,
    node: ast.Call,
    func: ast.Attribute,
    base: Kind,
    kinds: list[Kind],
    named: dict[str, Kind],
) -> Kind:
    """A method of something that is neither a module nor ``self``."""
    name = func.attr
    if base in PLAIN and base is not NONE:
        return _of_object(ev, node, func, base)
    if name == "size":
        return VALUE if node.args or "dim" in named else SHAPE
    if name == "stride":
        return SHAPE
    if name in known.VALUE_METHODS:
        return VALUE
    tensor = base in SURE_TENSOR or base is MAYBE or (base is UNKNOWN and name in known.TENSOR_ONLY)
    if name == "compile" and base is UNKNOWN:
        return UNKNOWN
    if name in known.BREAKING_METHODS:
        return _breaking_method(ev, node, name, base, tensor)
    if name == "repeat_interleave":
        repeat_interleave(ev, node, kinds[:1] or [named.get("repeats", UNKNOWN)], named)
        return TENSOR
    if tensor and name in known.SIZED_METHODS:
        # The first argument of narrow and unfold is a dimension; of new_full the second is a value.
        read_sizes(ev, node, kinds[:1] if name == "new_full" else kinds, [*named.items()])
    of_tensors = known.TENSOR_METHODS if base is MAYBE else known.TENSOR_ONLY | known.TENSOR_MOSTLY
    if base in (UNKNOWN, MAYBE) and name not in of_tensors:
        _unknown_method(ev, node, func)
        return UNKNOWN
    if base is ARRAY:
        return VALUE if name == "item" else ARRAY
    return _result(name, base, kinds, named) if base is not TENSORS else UNKNOWN


def _of_object(ev: Evaluator, node: ast.Call, func: ast.Attribute, base: Kind) -> Kind:
    name = func.attr
    if name == "format" and isinstance(func.value, ast.Constant):
        if any(ev.peek(arg) in SURE_TENSOR for arg in node.args):
            ev.report("BS128", node, likely=True, about="text of a tensor")
        return VALUE
    if base is OBJECT or base is VALUE:
        _unknown_method(ev, node, func)
    return VALUE if base is VALUE else UNKNOWN


def _breaking_method(ev: Evaluator, node: ast.Call, name: str, base: Kind, tensor: bool) -> Kind:
    code = known.BREAKING_METHODS[name]
    if name in ("item", "is_nonzero") and node.args and name == "item":
        return VALUE
    if name in known.AMBIGUOUS_METHODS and not tensor:
        if base is UNKNOWN:
            ev.report(code, node, likely=False)
        return UNKNOWN
    if base is TENSORS or (base is ARRAY and name not in ("item", "tolist")):
        return UNKNOWN
    meant = name in known.MEANT_METHODS
    about = "which is compiled on its own" if meant else ""
    ev.report(code, node, likely=base is not MAYBE and not meant, about=about)
    if name in ("nonzero", "unique") and node.keywords:
        return TENSORS
    return TENSOR if code == "BS105" else SHAPE if name == "tolist" else VALUE if code == "BS102" else UNKNOWN


def _unknown_method(ev: Evaluator, node: ast.Call, func: ast.Attribute) -> None:
    """A method of an object of which only its name, or its annotation, is known."""
    name = func.attr
    base = func.value
    if name in ("step", "zero_grad") and _OPTIMIZER.search(getattr(base, "id", getattr(base, "attr", ""))):
        ev.report("BS107", node, likely=False, about="step of an optimizer, which is meant to run eagerly")
        return
    if isinstance(base, ast.Name) and base.id in ev.types:
        ev.call(f"of:{ev.types[base.id]}.{name}", node)
    elif (
        isinstance(base, ast.Attribute)
        and isinstance(base.value, ast.Name)
        and base.value.id == "self"
        and ev.owner is not None
    ):
        ev.call(f"attr:{base.attr}.{name}", node)
    elif name not in _COMMON:
        ev.call(f"any:{name}", node, sure=False)


def _result(name: str, base: Kind, kinds: list[Kind], named: dict[str, Kind]) -> Kind:
    if name == "numpy":
        return ARRAY
    if name in known.SEQUENCE_METHODS:
        return TENSORS if base is not UNKNOWN or name != "split" else UNKNOWN
    if name in known.ALWAYS_PAIR:
        return TENSORS
    if name in known.PAIR_METHODS and ("dim" in named or kinds[:1] == [VALUE]):
        return TENSORS
    if base is UNKNOWN and name in known.SAME_KIND_METHODS:
        return UNKNOWN
    if name in known.MASK_METHODS:
        return MASK
    if name in known.SAME_KIND_METHODS and name != "float":
        return base
    return MAYBE if base is MAYBE and name not in known.TENSOR_ONLY | known.TENSOR_MOSTLY else TENSOR
