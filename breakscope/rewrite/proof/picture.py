"""A picture of what a call left behind, and the difference between two of them.

A picture is flat: one entry for each object that can be reached, in the order of the walk. An object met
again is a reference to its first place, and a tensor names the memory it looks at: so two pictures are equal
only if the values are, and who shares what with whom.
"""

from __future__ import annotations

import math
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from breakscope.rewrite.proof import reach
from breakscope.rewrite.proof.compat import memory_of
from breakscope.rewrite.proof.copies import PLAIN


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """A tensor: everything but its values, in ``layout``, and its values."""

    layout: tuple[Any, ...]
    values: torch.Tensor


@dataclass(frozen=True, slots=True)
class Entry:
    """One object. ``what``: a tensor, or whatever describes it completely, to be compared by ``==``."""

    path: str
    what: Any


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two pictures part. ``absolute``: largest difference of values, where it is one of values."""

    text: str
    absolute: float = math.inf


def take(
    roots: Sequence[tuple[str, Any]], originals: Mapping[int, torch.Tensor]
) -> tuple[list[Entry], list[torch.Tensor]]:
    """Picture everything reachable from named roots; also return the floating tensors met, in order.

    Args:
        originals: what tensors were copied from, by id: values that are still the same are not kept twice.
    """
    numbers: dict[int, int] = {}
    memories: dict[int, int] = {}
    alive: list[Any] = []
    entries: list[Entry] = []
    floating: list[torch.Tensor] = []
    stack = [(path, value) for path, value in reversed(roots)]
    while stack:
        path, value = stack.pop()
        if value is reach.MISSING or reach.is_atom(value):
            entries.append(Entry(path, _atom(value)))
            continue
        # Nobody can tell apart who shares an empty tensor: it has no memory.
        empty = isinstance(value, torch.Tensor) and not value.numel()
        if id(value) in numbers and not empty:
            entries.append(Entry(path, ("the same object as", numbers[id(value)])))
            continue
        numbers[id(value)] = len(entries)
        alive.append(value)
        if isinstance(value, torch.Tensor):
            entries.append(Entry(path, _tensor(value, memories, originals.get(id(value)))))
            if value.is_floating_point() or value.is_complex():
                floating.append(value)
            continue
        below, what = _inside(path, value)
        entries.append(Entry(path, what))
        stack += reversed(below)
    return entries, floating


def _inside(path: str, value: Any) -> tuple[list[tuple[str, Any]], Any]:
    if isinstance(value, type | types.ModuleType | types.BuiltinFunctionType):
        return [], id(value)
    if isinstance(value, reach.Holder):
        content = value.read()
        return [(_join(path, label, value), item) for label, item in content], [
            _label(at) for at, _ in content
        ]
    below = [(_join(path, label, value), item) for label, item in reach.related(value)]
    labels: list[Any] = []
    try:
        for holder in reach.holders(value):
            content = holder.read()
            labels.append([_label(label) for label, _ in content])
            below += [(_join(path, label, value), item) for label, item in content]
    except reach.Opaque:
        labels.append("opaque")
    if type(value).__module__ == "numpy" and hasattr(value, "tobytes"):
        return [], (str(value.dtype), value.shape, value.tobytes())
    # A function made in the call is known by its place in the source, and by what it closes over.
    if isinstance(value, types.FunctionType):
        return below, (value.__module__, value.__qualname__, labels)
    return below, (type(value), labels)


def _join(path: str, label: Any, owner: Any) -> str:
    if label == "" or label in ("__class__", "__func__"):
        return path
    if isinstance(owner, dict | list | tuple | set) or not isinstance(label, str):
        return f"{path}[{label!r}]"
    return f"{path}.{label}"


def _label(label: Any) -> Any:
    return repr(label) if reach.is_atom(label) else (type(label), id(label))


def _atom(value: Any) -> Any:
    # Text, because NaN is not equal to itself, and 1, 1.0 and True are equal to each other.
    return (type(value), repr(value)) if value is not reach.MISSING else "nothing"


def _tensor(value: torch.Tensor, memories: dict[int, int], original: torch.Tensor | None) -> Any:
    if type(value) not in PLAIN or value.layout is not torch.strided or value.is_quantized or value.is_meta:
        return (type(value), str(value.layout), "not compared")
    memory = memories.setdefault(memory_of(value), len(memories)) if value.numel() else -1
    layout = (
        type(value),
        value.dtype,
        tuple(value.shape),
        value.stride() if value.numel() else (),
        value.device,
        value.requires_grad,
        memory,
        value.storage_offset() if value.numel() else 0,
    )
    with torch.no_grad():
        values = value.detach()
        if original is not None and original.shape == value.shape and original.dtype is value.dtype:
            kept = original.detach()
            return TensorEntry(layout, kept if same_bits(values, kept) else values.clone())
        return TensorEntry(layout, values.clone())


_ASPECTS = ("class", "dtype", "shape", "stride", "device", "requires_grad", "memory", "offset")


def difference(old: Sequence[Entry], new: Sequence[Entry], tolerance: float) -> Difference | None:
    """The first difference; None where there is none, or none but values within a relative tolerance.

    Args:
        tolerance: of floating values, relative to the largest one of the tensor; 0 asks for equal bits.
    """
    for before, after in zip(old, new, strict=False):
        found = _differ(before, after, tolerance)
        if found is not None:
            return found
    if len(old) != len(new):
        one = old[len(new)] if len(old) > len(new) else new[len(old)]
        who = "old" if len(old) > len(new) else "new"
        return Difference(f"only the {who} code leaves {one.path}")
    return None


def largest(old: Sequence[Entry], new: Sequence[Entry]) -> float:
    """Largest absolute difference of values between two pictures of one layout."""
    most = 0.0
    for before, after in zip(old, new, strict=False):
        if isinstance(before.what, TensorEntry) and isinstance(after.what, TensorEntry):
            most = max(most, _distance(before.what.values, after.what.values))
    return most


def _differ(before: Entry, after: Entry, tolerance: float) -> Difference | None:
    old, new = before.what, after.what
    if before.path != after.path:
        return Difference(f"the old code leaves {before.path} where the new one leaves {after.path}")
    if not isinstance(old, TensorEntry) or not isinstance(new, TensorEntry):
        if type(old) is type(new) and old == new:
            return None
        if isinstance(old, TensorEntry) or isinstance(new, TensorEntry):
            return Difference(f"{before.path} is shared or of another kind: {_text(old)}, now {_text(new)}")
        return Difference(f"{before.path} is {_text(old)}, now {_text(new)}")
    for aspect, one, other in zip(_ASPECTS, old.layout, new.layout, strict=False):
        if one != other:
            what = "who shares its memory" if aspect in ("memory", "offset") else f"its {aspect}"
            return Difference(f"{before.path}: {what} differs: {one}, now {other}")
    return _values(before.path, old.values, new.values, tolerance)


def _values(path: str, old: torch.Tensor, new: torch.Tensor, tolerance: float) -> Difference | None:
    if same_bits(old, new):
        return None
    distance = _distance(old, new)
    if tolerance and old.is_floating_point():
        finite = old[torch.isfinite(old)]
        scale = float(finite.abs().max().double()) if finite.numel() else 0.0
        if distance <= tolerance * max(scale, torch.finfo(old.dtype).tiny):
            return None
    by = f"by up to {distance:.3g}" if math.isfinite(distance) else "in NaN, infinity or kind of zero"
    return Difference(f"{path}: values differ {by}", distance)


def same_bits(old: Any, new: Any) -> bool:
    """Equal, told -0.0 from 0.0, and any NaN equal to any other."""
    if old is new:
        return True
    if old.is_complex():
        return same_bits(torch.view_as_real(old), torch.view_as_real(new))
    if not old.is_floating_point():
        return bool(torch.equal(old, new))
    equal = (old == new) & (torch.signbit(old) == torch.signbit(new))
    return bool((equal | (torch.isnan(old) & torch.isnan(new))).all())


def _distance(old: torch.Tensor, new: torch.Tensor) -> float:
    """Largest absolute difference; infinite where one is NaN or infinite and the other is not the same."""
    if not old.numel() or same_bits(old, new):
        return 0.0
    if old.is_complex():
        old, new = torch.view_as_real(old), torch.view_as_real(new)
    old, new = old.double(), new.double()
    same = (old == new) | (torch.isnan(old) & torch.isnan(new))
    zeros = (old == new) & (torch.signbit(old) != torch.signbit(new))
    apart = torch.where(same, torch.zeros_like(old), (old - new).abs())
    most = float(torch.nan_to_num(apart, nan=math.inf).max())
    return math.inf if bool(zeros.any()) and most == 0 else most


def _text(what: Any) -> str:
    if isinstance(what, TensorEntry):
        return f"a tensor {tuple(what.layout[2])}"
    if isinstance(what, tuple) and len(what) == 2 and isinstance(what[1], str):
        return what[1][:60]
    if isinstance(what, tuple) and what and isinstance(what[0], type):
        return f"a {what[0].__qualname__}"
    return str(what)[:60]
