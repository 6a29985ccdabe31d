"""What a call gives, and whether Dynamo can go through it."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from breakscope.lint import known
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
)

if TYPE_CHECKING:
    from breakscope.lint.expressions import Expressions

_READERS = frozenset({"int", "float", "bool", "complex"})
_TEXTS = frozenset({"str", "repr", "format", "ascii"})
_MATH = "math."
_OPTIMIZER = re.compile(r"(?i)optim|^opt$")
# Methods of dicts, lists and strings, which say nothing about what is called.
_COMMON = frozenset(
    "append extend insert pop popitem remove clear get items keys values setdefault index count sort reverse join "
    "format startswith endswith strip lower upper replace add discard union split encode decode copy update "
    "to_tuple register_buffer register_parameter parameters named_parameters modules children".split()
)


def call_kind(ev: Expressions, node: ast.Call) -> Kind:
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
        ev.reference(base) if isinstance(base, ast.Name) else None
        return VALUE
    if _is_super(base):
        ev.call(f"super:{func.attr}", node)
        return _returns(ev, func.attr)
    if isinstance(base, ast.Name) and base.id == "self" and ev.owner is not None:
        return _of_self(ev, node, func.attr, kinds)
    dotted = ev.dotted(func)
    if dotted is not None and _is_module(ev, func):
        return _dotted(ev, node, dotted, kinds, named)
    return method_kind(ev, node, func, ev.kind(base), kinds, named)


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def _is_module(ev: Expressions, node: ast.expr) -> bool:
    """Whether the first name of a dotted name is imported, or a class of this file."""
    while isinstance(node, ast.Attribute):
        node = node.value
    if not isinstance(node, ast.Name):
        return False
    return node.id in ev.names.imports or node.id in ev.names.classes or node.id in ("torch", "np")


def _returns(ev: Expressions, method: str) -> Kind:
    if ev.owner is None:
        return UNKNOWN
    for one in ev.names.inherited(ev.owner, method):
        return one.returns.get(method, UNKNOWN)
    return UNKNOWN


def _of_self(ev: Expressions, node: ast.Call, name: str, kinds: list[Kind]) -> Kind:
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


def _function(ev: Expressions, node: ast.Call, kinds: list[Kind], named: dict[str, Kind]) -> Kind:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name in ev.env:
        return UNKNOWN
    if name in ev.names.imports or name in ev.names.functions or name in ev.names.classes:
        dotted = ev.names.dotted(node.func) or name
        if name in ev.names.functions:
            ev.call(f"name:{name}", node)
            return ev.names.functions[name]
        return _dotted(ev, node, dotted, kinds, named)
    return _builtin(ev, node, name, kinds, named)


def _builtin(ev: Expressions, node: ast.Call, name: str, kinds: list[Kind], named: dict[str, Kind]) -> Kind:
    first = kinds[0] if kinds else NONE
    code: str | None = None
    about = ""
    result = UNKNOWN
    if name in _READERS:
        code, about, result = "BS102", f"{name}() of a tensor", VALUE
    elif name in _TEXTS:
        code, about, result = "BS128", "text of a tensor", VALUE
    elif name in ("any", "all"):
        code, about, result = "BS101", f"{name}() of a tensor", VALUE
        first = TENSOR if first is TENSORS else first
    elif name == "range":
        code, about, result = "BS111", "range() of a tensor", SHAPE
        first = next((kind for kind in kinds if kind in DATA), first)
    elif name == "hash":
        code, about, result = "BS129", "hash() of a tensor", VALUE
    elif name in known.BREAKING:
        ev.report(known.BREAKING[name], node, likely=True)
        return VALUE
    elif name in ("len", "isinstance", "hasattr", "id", "type", "issubclass", "callable", "ord", "chr"):
        return VALUE
    elif name in ("max", "min", "sum", "abs", "pow"):
        return _arithmetic(ev, node, name, kinds, named)
    elif name == "sorted":
        if first is TENSORS:
            ev.report("BS123", node, likely=True, about="sorting of tensors")
        return first
    elif name in ("list", "tuple", "reversed", "set"):
        return TENSORS if first in SURE_TENSOR else first if first in (TENSORS, SHAPE) else OBJECT
    elif name in ("dict", "map", "filter", "iter", "enumerate", "zip", "object"):
        return OBJECT
    else:
        return UNKNOWN
    if first in DATA:
        ev.report(code, node, likely=True, about=about)
    elif first is MAYBE:
        ev.report(code, node, likely=False, about=about)
    return result


def _arithmetic(
    ev: Expressions, node: ast.Call, name: str, kinds: list[Kind], named: dict[str, Kind]
) -> Kind:
    if "key" in named and any(kind in (TENSORS, TENSOR) for kind in kinds):
        ev.report("BS111", node, likely=True, about=f"{name}() of tensors with a key")
    if any(kind in SURE_TENSOR or kind is TENSORS for kind in kinds):
        return TENSOR
    if ARRAY in kinds:
        return ARRAY
    if MAYBE in kinds:
        return MAYBE
    return VALUE if kinds and all(kind in PLAIN for kind in kinds) else UNKNOWN


def _dotted(ev: Expressions, node: ast.Call, dotted: str, kinds: list[Kind], named: dict[str, Kind]) -> Kind:
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
        return _numpy(ev, node, dotted, kinds)
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


def _compiled(ev: Expressions, node: ast.Call) -> None:
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


def torch_kind(
    ev: Expressions, node: ast.Call, dotted: str, kinds: list[Kind], named: dict[str, Kind]
) -> Kind:
    """A call of one of torch's own functions."""
    name = dotted.rpartition(".")[2]
    if dotted == "torch.where" and len(node.args) + len(node.keywords) == 1:
        ev.report("BS105", node, likely=True, about="torch.where of one argument")
        return TENSORS
    if name == "one_hot" and len(node.args) < 2 and "num_classes" not in named:
        ev.report("BS105", node, likely=True, about="one_hot without num_classes")
        return TENSOR
    if name == "repeat_interleave":
        _repeat_interleave(ev, node, kinds[1:2] or [named.get("repeats", UNKNOWN)], named)
        return TENSOR
    if dotted == "torch.autograd.grad":
        ev.report("BS121", node, likely=False)
        return TENSORS
    if dotted.startswith("torch.testing.assert_"):
        ev.report("BS101", node, likely=True, about="compares tensors' values")
        return NONE
    sized = name in known.SIZED and dotted == f"torch.{name}"
    if sized or dotted in known.SIZED_FUNCTIONAL:
        _read_sizes(ev, node, kinds if sized else kinds[1:], [*named.items()])
        return TENSOR
    submodule = dotted != f"torch.{name}"
    if submodule and not dotted.startswith(known.TENSOR_MODULES):
        return UNKNOWN
    if name in known.TORCH_VALUES or name[:1].isupper():
        return VALUE
    return _torch_result(name, node, kinds, named)


def _torch_result(name: str, node: ast.Call, kinds: list[Kind], named: dict[str, Kind]) -> Kind:
    if name in known.TORCH_SEQUENCES:
        return TENSORS
    if name in known.PAIR_METHODS and name not in known.ALWAYS_PAIR:
        reduced = "dim" in named or (len(node.args) > 1 and kinds[1] in PLAIN)
        return TENSORS if reduced else TENSOR
    return MASK if name in known.TORCH_MASKS else TENSOR


def _repeat_interleave(ev: Expressions, node: ast.Call, repeats: list[Kind], named: dict[str, Kind]) -> None:
    if "output_size" in named:
        return
    kind = repeats[0] if repeats else UNKNOWN
    if kind in SURE_TENSOR or kind in (MAYBE, UNKNOWN):
        likely = kind in SURE_TENSOR
        ev.report(
            "BS105", node, likely=likely, about="repeat_interleave of tensor repeats without output_size"
        )


def _read_sizes(
    ev: Expressions, node: ast.Call, kinds: list[Kind], named: list[tuple[str, Kind]], *, first: int = 0
) -> None:
    """Report a tensor where a function wants Python numbers."""
    wanted = ("start", "end", "step", "size", "steps", "n", "m")
    found = any(kind in SURE_TENSOR for kind in kinds[first:])
    found = found or any(kind in SURE_TENSOR for name, kind in named if name in wanted)
    sequences = [arg for arg in node.args[first:] if isinstance(arg, ast.Tuple | ast.List)]
    sequences += [one.value for one in node.keywords if isinstance(one.value, ast.Tuple | ast.List)]
    for sequence in sequences:
        found = found or any(ev.peek(element) in SURE_TENSOR for element in sequence.elts)
    if found:
        ev.report("BS102", node, likely=True, about="tensor as a size")


def _numpy(ev: Expressions, node: ast.Call, dotted: str, kinds: list[Kind]) -> Kind:
    if dotted.startswith("numpy.random."):
        name = dotted.rpartition(".")[2]
        if name not in known.NUMPY_RANDOM_CLEAN:
            supported = name in known.NUMPY_RANDOM
            # A single number must be read out of what Dynamo traces as a tensor.
            code, likely = ("BS102", not node.args) if supported else ("BS110", True)
            ev.report(code, node, likely=likely, about="random number from numpy")
        return ARRAY
    if dotted in known.NUMPY_MISSING:
        ev.report("BS110", node, likely=True, about=f"Dynamo has no counterpart of {dotted}")
        return ARRAY
    name = dotted.rpartition(".")[2]
    if name in known.NUMPY_SCALAR and all(kind in PLAIN for kind in kinds):
        return VALUE
    return ARRAY if any(kind in DATA or kind is MAYBE for kind in kinds) or name.startswith("a") else UNKNOWN


# ---- methods ----


def method_kind(
    ev: Expressions,
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
        _repeat_interleave(ev, node, kinds[:1] or [named.get("repeats", UNKNOWN)], named)
        return TENSOR
    if tensor and name in known.SIZED_METHODS:
        # The first argument of narrow and unfold is a dimension; of new_full the second is a value.
        _read_sizes(ev, node, kinds[:1] if name == "new_full" else kinds, [*named.items()])
    if not tensor and base is UNKNOWN and name not in known.TENSOR_MOSTLY:
        _unknown_method(ev, node, func)
        return UNKNOWN
    if base is ARRAY:
        return VALUE if name == "item" else ARRAY
    return _result(name, base, node, kinds, named) if base is not TENSORS else UNKNOWN


def _of_object(ev: Expressions, node: ast.Call, func: ast.Attribute, base: Kind) -> Kind:
    name = func.attr
    if name == "format" and isinstance(func.value, ast.Constant):
        if any(ev.peek(arg) in SURE_TENSOR for arg in node.args):
            ev.report("BS128", node, likely=True, about="text of a tensor")
        return VALUE
    if base is OBJECT or base is VALUE:
        _unknown_method(ev, node, func)
    return VALUE if base is VALUE else UNKNOWN


def _breaking_method(ev: Expressions, node: ast.Call, name: str, base: Kind, tensor: bool) -> Kind:
    code = known.BREAKING_METHODS[name]
    if name in ("item", "is_nonzero") and node.args and name == "item":
        return VALUE
    if name in known.AMBIGUOUS_METHODS and not tensor:
        if base is UNKNOWN:
            ev.report(code, node, likely=False)
        return UNKNOWN
    if base is TENSORS or (base is ARRAY and name not in ("item", "tolist")):
        return UNKNOWN
    ev.report(code, node, likely=base is not MAYBE)
    if name in ("nonzero", "unique") and node.keywords:
        return TENSORS
    return TENSOR if code == "BS105" else SHAPE if name == "tolist" else VALUE if code == "BS102" else UNKNOWN


def _unknown_method(ev: Expressions, node: ast.Call, func: ast.Attribute) -> None:
    """A method of an object of which only its name, or its annotation, is known."""
    name = func.attr
    base = func.value
    if name in ("step", "zero_grad") and _OPTIMIZER.search(getattr(base, "id", getattr(base, "attr", ""))):
        ev.report("BS107", node, likely=name == "step", about="step of an optimizer")
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


def _result(name: str, base: Kind, node: ast.Call, kinds: list[Kind], named: dict[str, Kind]) -> Kind:
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
