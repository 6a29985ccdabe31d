"""A picture of what a call left behind, and the difference between two of them.

A picture is flat: one entry for each object that can be reached, in the order of the walk. An object met
again is a reference to its first place, and a tensor names the memory it looks at: so two pictures are equal
only if the values are, and who shares what with whom.
"""

from __future__ import annotations

import math
import types
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
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
class Again:
    """An object that was met before: the place of its entry."""

    index: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One object. ``what``: a tensor, or whatever describes it completely, to be compared by ``==``."""

    path: str
    what: Any


@dataclass(frozen=True, slots=True)
class Picture:
    """What there is after a call.

    Attributes:
        floating: floating tensors, in the order of the walk.
        early: tensors under names that may be there or not: compared where both sides have them.
    """

    entries: list[Entry]
    floating: list[torch.Tensor]
    early: dict[str, torch.Tensor]


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two pictures part.

    Attributes:
        absolute: largest difference of values, where it is one of values.
        aspect: of a tensor, that differs, where it is not its values: "dtype"; "raised" where only the new
            code raises.
    """

    text: str
    absolute: float = math.inf
    aspect: str = ""


def take(
    roots: Sequence[tuple[str, Any]], originals: Mapping[int, torch.Tensor], early: Collection[str] = ()
) -> Picture:
    """Picture everything reachable from named roots.

    Args:
        originals: what tensors were copied from, by id: values that are still the same are not kept twice.
        early: names of attributes that may be there or not.
    """
    found: dict[str, torch.Tensor] = {}
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
            entries.append(Entry(path, Again(numbers[id(value)])))
            continue
        numbers[id(value)] = len(entries)
        alive.append(value)
        if isinstance(value, torch.Tensor):
            entries.append(Entry(path, _tensor(value, memories, originals.get(id(value)))))
            if value.is_floating_point() or value.is_complex():
                floating.append(value)
            continue
        below, what = _inside(path, value, early, found)
        entries.append(Entry(path, what))
        stack += reversed(below)
    return Picture(entries, floating, {at: one.detach().clone() for at, one in found.items()})


def _inside(
    path: str, value: Any, early: Collection[str], found: dict[str, torch.Tensor]
) -> tuple[list[tuple[str, Any]], Any]:
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
            content = []
            for label, item in holder.read():
                if label in early and isinstance(item, torch.Tensor):
                    found[_join(path, label, value)] = item
                else:
                    content.append((label, item))
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
        value.device,
        value.requires_grad,
        value.stride() if value.numel() else (),
        memory,
        value.storage_offset() if value.numel() else 0,
    )
    with torch.no_grad():
        values = value.detach()
        if original is not None and original.shape == value.shape and original.dtype is value.dtype:
            kept = original.detach()
            return TensorEntry(layout, kept if same_bits(values, kept) else values.clone())
        return TensorEntry(layout, values.clone())


_ASPECTS = ("class", "dtype", "shape", "device", "requires_grad", "stride", "memory", "offset")
_OWN_MEMORY = frozenset({"stride", "memory", "offset"})


@dataclass(slots=True)
class Comparer:
    """Compares two pictures.

    Args:
        tolerance: of floating values, relative to the largest one of the tensor; 0 asks for equal bits.
        unaliased: where the old code leaves a tensor that something else holds too, the new one may leave
            an equal tensor of its own. Where it does is noted.
        zeros: the new code may give a gradient of zero where the old one gave none, and record one there.

    Attributes:
        apart: paths where the new code left a tensor of its own.
    """

    tolerance: float
    unaliased: bool = False
    zeros: bool = False
    apart: list[str] = field(default_factory=list)
    _memories: dict[int, int] = field(default_factory=dict)
    _counterparts: dict[int, int] = field(default_factory=dict)

    def difference(self, old: Sequence[Entry], new: Sequence[Entry]) -> Difference | None:
        """The first difference; None where there is none, or none but values within the tolerance."""
        for before, after in zip(old, new, strict=False):
            found = self._differ(before, after, old)
            if found is not None:
                return found
        if len(old) != len(new):
            one = old[len(new)] if len(old) > len(new) else new[len(old)]
            who = "old" if len(old) > len(new) else "new"
            return Difference(f"only the {who} code leaves {one.path}")
        return None

    def _differ(self, before: Entry, after: Entry, old: Sequence[Entry]) -> Difference | None:
        path, was, now = before.path, before.what, after.what
        if path != after.path:
            return Difference(f"the old code leaves {path} where the new one leaves {after.path}")
        if isinstance(was, Again) and isinstance(now, TensorEntry) and self.unaliased:
            first = old[was.index].what
            if isinstance(first, TensorEntry):
                self.apart.append(path)
                return self._tensors(path, first, now, _OWN_MEMORY)
        if not isinstance(was, TensorEntry) or not isinstance(now, TensorEntry):
            if type(was) is type(now) and was == now:
                return None
            return Difference(f"{path} is {_text(was, old)}, now {_text(now, old)}")
        return self._tensors(path, was, now, frozenset())

    def _tensors(
        self, path: str, was: TensorEntry, now: TensorEntry, free: frozenset[str]
    ) -> Difference | None:
        aspects = dict(zip(_ASPECTS, zip(was.layout, now.layout, strict=True), strict=True))
        if not self._same_memory(aspects["memory"], free) or aspects["offset"][0] != aspects["offset"][1]:
            if not free and not self.unaliased:
                return Difference(f"{path}: it shares its memory with something else than before")
            if not free:
                self.apart.append(path)
            free = _OWN_MEMORY
        if self.zeros and aspects["requires_grad"][1]:
            free = free | {"requires_grad"}
        for aspect, (one, other) in aspects.items():
            if one != other and aspect not in free and aspect not in ("memory", "offset"):
                return Difference(f"{path}: its {aspect} differs: {one}, now {other}", aspect=aspect)
        return values_differ(path, was.values, now.values, self.tolerance)

    def _same_memory(self, memories: tuple[int, int], free: frozenset[str]) -> bool:
        """Whether two tensors share with their like: a memory of the one side stands for one of the other."""
        if free:
            return True
        one, other = memories
        if one not in self._memories and other not in self._counterparts:
            self._memories[one], self._counterparts[other] = other, one
        return self._memories.get(one) == other and self._counterparts.get(other) == one


def largest(old: Sequence[Entry], new: Sequence[Entry]) -> float:
    """Largest absolute difference of values between two pictures of one layout."""
    most = 0.0
    for before, after in zip(old, new, strict=False):
        if isinstance(before.what, TensorEntry) and isinstance(after.what, TensorEntry):
            most = max(most, _distance(before.what.values, after.what.values))
    return most


def values_differ(path: str, old: torch.Tensor, new: torch.Tensor, tolerance: float) -> Difference | None:
    """How two tensors of one layout differ; None where they do not, or within the tolerance."""
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


def _text(what: Any, entries: Sequence[Entry]) -> str:
    if isinstance(what, Again):
        return f"the object at {entries[what.index].path}" if what.index < len(entries) else "an object again"
    if isinstance(what, TensorEntry):
        return f"a tensor {what.layout[2]} of its own"
    if isinstance(what, tuple) and len(what) == 2 and isinstance(what[1], str):
        return what[1][:60]
    if isinstance(what, tuple) and what and isinstance(what[0], type):
        return f"a {what[0].__qualname__} with {' '.join(str(part) for part in what[1])[:200]}"
    return str(what)[:60]
