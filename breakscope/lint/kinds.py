"""What kind of value an expression has, as far as the source tells."""

from __future__ import annotations

import ast
from enum import IntEnum


class Kind(IntEnum):
    """The kinds that matter to Dynamo.

    ``MAYBE`` is a tensor on some evidence only: on one of two paths, or an argument of ``forward`` that
    nothing else speaks about. ``VALUE`` is a Python number, string, dtype, config and the like.
    """

    UNKNOWN = 0
    NONE = 1
    VALUE = 2
    SHAPE = 3  # a sequence of Python numbers
    OBJECT = 4  # a container or an object that is no tensor
    TENSOR = 5
    MASK = 6  # a tensor of booleans
    TENSORS = 7  # a sequence of tensors
    ARRAY = 8  # a numpy array
    MAYBE = 9


UNKNOWN, NONE, VALUE, SHAPE, OBJECT = Kind.UNKNOWN, Kind.NONE, Kind.VALUE, Kind.SHAPE, Kind.OBJECT
TENSOR, MASK, TENSORS, ARRAY, MAYBE = Kind.TENSOR, Kind.MASK, Kind.TENSORS, Kind.ARRAY, Kind.MAYBE

SURE_TENSOR = frozenset({TENSOR, MASK})
DATA = frozenset({TENSOR, MASK, ARRAY})  # reading its value needs the graph to have run
PLAIN = frozenset({NONE, VALUE, SHAPE, OBJECT})  # surely not a tensor

_TENSOR_NAMES = frozenset(
    {
        "Tensor",
        "FloatTensor",
        "LongTensor",
        "IntTensor",
        "HalfTensor",
        "DoubleTensor",
        "ByteTensor",
        "Parameter",
        "FloatTensorType",
        "LongTensorType",
    }
)
_MASK_NAMES = frozenset({"BoolTensor"})
_VALUE_NAMES = frozenset(
    {
        "int",
        "float",
        "bool",
        "str",
        "bytes",
        "complex",
        "None",
        "dtype",
        "device",
        "Size",
        "Literal",
        "Device",
        "Path",
        "PathLike",
    }
)
_ARRAY_NAMES = frozenset({"ndarray", "NDArray", "ArrayLike"})
_SEQUENCES = frozenset(
    {
        "List",
        "Tuple",
        "Sequence",
        "Iterable",
        "Set",
        "FrozenSet",
        "list",
        "tuple",
        "set",
        "frozenset",
        "Collection",
    }
)
_LAZY = frozenset({"Iterator", "Generator", "Iterable", "AsyncIterator"})


def join(one: Kind, other: Kind) -> Kind:
    """The kind of a value that has one kind on one path and the other on another."""
    if one is other:
        return one
    if one is NONE:
        return other
    if other is NONE:
        return one
    if one in SURE_TENSOR and other in SURE_TENSOR:
        return TENSOR
    if (one in SURE_TENSOR or one is MAYBE) or (other in SURE_TENSOR or other is MAYBE):
        return MAYBE
    if one in PLAIN and other in PLAIN:
        return VALUE
    return UNKNOWN


def of_annotation(node: ast.expr | None) -> Kind:
    """The kind that an annotation promises; ``Optional`` is read as what it holds."""
    if node is None:
        return UNKNOWN
    if isinstance(node, ast.Constant):
        return _of_text(node.value)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _union(of_annotation(node.left), of_annotation(node.right))
    if isinstance(node, ast.Subscript):
        return _of_generic(node)
    return _of_name(last_name(node))


def is_lazy(node: ast.expr | None) -> bool:
    """Whether an annotation says that the argument is an iterator or a generator."""
    base = node.value if isinstance(node, ast.Subscript) else node
    return base is not None and last_name(base) in _LAZY - {"Iterable"}


def last_name(node: ast.expr) -> str:
    """``c`` of ``a.b.c``; an empty string for anything else."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _of_text(value: object) -> Kind:
    if not isinstance(value, str):
        return NONE if value is None else UNKNOWN
    try:
        return of_annotation(ast.parse(value.strip(), mode="eval").body)
    except (SyntaxError, ValueError):  # ValueError: a NUL in the text
        return UNKNOWN


def _of_name(name: str) -> Kind:
    if name in _TENSOR_NAMES:
        return TENSOR
    if name in _MASK_NAMES:
        return MASK
    if name in _VALUE_NAMES:
        return VALUE
    if name in _ARRAY_NAMES:
        return ARRAY
    return OBJECT if name in _SEQUENCES or name.lower() in ("dict", "mapping", "callable") else UNKNOWN


def _of_generic(node: ast.Subscript) -> Kind:
    head = last_name(node.value)
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if head in ("Optional", "Annotated", "Final", "ClassVar", "Required", "NotRequired"):
        return of_annotation(parts[0])
    if head == "Union":
        kind = NONE
        for part in parts:
            kind = _union(kind, of_annotation(part))
        return kind
    if head in _SEQUENCES or head in _LAZY:
        return _of_sequence(parts)
    if head in _VALUE_NAMES:
        return VALUE
    if head.lower() in ("dict", "mapping", "callable", "type", "ordereddict", "defaultdict"):
        return OBJECT
    # jaxtyping and its like: Float[Tensor, "batch n"]
    return TENSOR if last_name(parts[0]) in _TENSOR_NAMES else UNKNOWN


def _of_sequence(parts: list[ast.expr]) -> Kind:
    inside = {of_annotation(part) for part in parts if not isinstance(part, ast.Constant)}
    if inside and inside <= SURE_TENSOR:
        return TENSORS
    return SHAPE if inside == {VALUE} else OBJECT


def _union(one: Kind, other: Kind) -> Kind:
    if UNKNOWN in (one, other) and not {one, other} & (SURE_TENSOR | {MAYBE}):
        return UNKNOWN
    return join(one, other)
