"""What an expression would give if it ran, without running it: the base of "may run although not taken".

An expression gets a :class:`Value`, or :class:`Unsafe` says why nothing is known of it. What the recording
run saw of names and attributes goes in; what operations do with it is in
:mod:`breakscope.source.torch_facts`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from breakscope.inside.record.evidence import Scalar, Seen
from breakscope.source.torch_facts import FLOATING, STEADY, category

ValueKind = Literal["tensor", "scalar", "static"]


@dataclass(frozen=True, slots=True)
class Value:
    """What is known of an expression's value.

    Attributes:
        kind: "scalar" is a Python number or bool; "static" any other constant of the program (a dtype, a
            shape, None, a string).
        dtype: of a tensor: ``float16``; of a scalar ``int``, ``float``, ``bool``. None: not known.
        dtype_of: names of the tensors that decide the dtype; empty where the code fixes it.
        sources: names of the tensors whose shapes broadcast to this one's; empty: 0-dim. None: not known.
        shapes: the shapes that it had or would have had in the recorded run. None: not known.
        slope: see ``source.torch_facts``; of the worst operation behind it, if gradients flowed.
        deps: names of the floating-point tensors to which gradients would flow back from it.
        grad: gradients did flow through it in the recorded run.
        carries: the tensor itself was seen with gradients, whether they were recorded at that place or not.
        fresh: it shares memory with no other tensor.
        literal: a scalar's value, if it is written in the source or was the same in all calls.
        known: ``literal`` means something. written: it stands in the source, so it cannot change.
    """

    kind: ValueKind
    dtype: str | None = None
    sources: frozenset[str] | None = None
    shapes: frozenset[tuple[int, ...]] | None = None
    slope: int = STEADY
    deps: frozenset[str] = frozenset()
    grad: bool = False
    fresh: bool = True
    literal: Scalar = None
    known: bool = False
    dtype_of: frozenset[str] = frozenset()
    written: bool = False
    carries: bool = False

    @property
    def zero_dim(self) -> bool:
        """Whether it certainly has no dimension."""
        return self.sources == frozenset() or self.shapes == frozenset({()})


def scalar(value: Scalar) -> Value:
    """A constant of the program."""
    if value is None or isinstance(value, str):
        return Value("static", literal=value, known=True, written=True)
    shapes = frozenset[tuple[int, ...]]({()})
    return Value("scalar", type(value).__name__, frozenset(), shapes, literal=value, known=True, written=True)


def from_seen(seen: Seen, source: str | None, grad_mode: bool) -> Value | None:
    """What a name or an attribute is, going by what was seen; None if it was of several kinds."""
    if seen.only("tensor"):
        shapes = seen.shapes
        dtype = next(iter(seen.dtypes)) if len(seen.dtypes) == 1 else None
        sources = frozenset() if shapes == {()} else frozenset({source}) if source is not None else None
        grad = grad_mode and seen.requires_grad
        floating = dtype is None or dtype in FLOATING
        deps = frozenset({source}) if source is not None and floating else frozenset[str]()
        return Value(
            "tensor",
            dtype,
            sources,
            shapes,
            deps=deps,
            grad=grad,
            fresh=False,
            dtype_of=frozenset({str(source)}),
            carries=seen.requires_grad,
        )
    if seen.only("int", "float", "bool") and len(seen.kinds) == 1:
        single = len(seen.values) == 1 and not seen.more_values
        value = seen.values[0] if single else None
        return Value(
            "scalar", next(iter(seen.kinds)), frozenset(), frozenset({()}), literal=value, known=single
        )
    if seen.kinds & {"tensor", "int", "float", "bool"}:
        return None
    single = seen.only("None", "str") and len(seen.values) == 1 and not seen.more_values
    return Value("static", literal=seen.values[0] if single else None, known=single)


def broadcast(values: Iterable[Value]) -> tuple[frozenset[str] | None, frozenset[tuple[int, ...]] | None]:
    """Sources and shapes of an elementwise operation's result."""
    parts = [value for value in values if value.kind in ("tensor", "scalar")]
    sources: frozenset[str] | None = frozenset()
    for part in parts:
        sources = None if sources is None or part.sources is None else sources | part.sources
    wide = [part.shapes for part in parts if not part.zero_dim]
    if not wide:
        return sources, frozenset({()})
    if any(shapes is None for shapes in wide):
        return sources, None
    known = [shapes for shapes in wide if shapes is not None]
    if all(shapes == known[0] for shapes in known):
        return sources, known[0]
    if all(len(shapes) == 1 for shapes in known):
        shape = _broadcast_shapes([next(iter(shapes)) for shapes in known])
        return sources, None if shape is None else frozenset({shape})
    return sources, None  # which shape came with which is not recorded


def _broadcast_shapes(shapes: list[tuple[int, ...]]) -> tuple[int, ...] | None:
    width = max(map(len, shapes))
    result: list[int] = []
    for sizes in zip(*((1,) * (width - len(shape)) + shape for shape in shapes), strict=True):
        wide = {size for size in sizes if size != 1}
        if len(wide) > 1:
            return None
        result.append(wide.pop() if wide else 1)
    return tuple(result)


def promote(values: Iterable[Value]) -> str | None:
    """The dtype of an operation on tensors and Python scalars; None where it is not certain."""
    parts = [value for value in values if value.kind in ("tensor", "scalar")]
    tensors = [value for value in parts if value.kind == "tensor"]
    if not tensors or any(value.dtype is None for value in parts):
        return None
    wide = [value for value in tensors if not value.zero_dim]
    strong = wide or tensors
    if (
        any(value.sources is None and value.shapes is None for value in tensors)
        and len({value.dtype for value in tensors}) > 1
    ):
        return None
    dtypes = {value.dtype for value in strong if value.dtype is not None}
    if len(dtypes) != 1:
        return None
    dtype = dtypes.pop()
    for other in (value for value in parts if value not in strong):
        rank = _scalar_category(other) if other.kind == "scalar" else category(str(other.dtype))
        if rank > category(dtype):
            return None  # becomes torch's default dtype, which is a setting
    return dtype


def _scalar_category(value: Value) -> int:
    return {"bool": 0, "int": 1, "float": 2}.get(str(value.dtype), 3)


def same_type(left: Value, right: Value) -> str | None:
    """Why two tensors cannot stand in for one another, or None if they can."""
    if left.kind != "tensor" and right.kind != "tensor":
        return "the branches give Python values, not tensors"
    if left.kind != "tensor" or right.kind != "tensor":
        return "one branch gives a tensor and the other a Python value"
    if left.dtype is None or right.dtype is None:
        return "the dtype of what the branches give is not known"
    if left.dtype != right.dtype:
        return f"one branch gives {left.dtype} and the other {right.dtype}"
    if left.sources is not None and left.sources == right.sources:
        return None
    if left.shapes is None or right.shapes is None:
        return "the shape of what the branches give is not known"
    if left.shapes != right.shapes:
        return "the branches give different shapes"
    return None


def assumed(left: Value, right: Value) -> str | None:
    """What :func:`same_type` knows from the recorded run only."""
    shape = left.sources is None or left.sources != right.sources
    dtype = left.dtype_of != right.dtype_of
    if not (shape or dtype):
        return None
    which = "shape and dtype" if shape and dtype else "shape" if shape else "dtype"
    return f"both branches keep giving tensors of one {which}, as in the recorded run"


def merged(left: Value, right: Value) -> Value:
    """``torch.where`` of two values of one type."""
    sources, shapes = broadcast([left, right])
    if left.sources == right.sources:
        sources = left.sources
    return replace(
        left,
        sources=sources,
        shapes=shapes if shapes is not None else left.shapes,
        slope=max(left.slope, right.slope),
        deps=left.deps | right.deps,
        dtype_of=left.dtype_of | right.dtype_of,
        grad=left.grad or right.grad,
        fresh=True,
    )
