"""A picture of what a call left behind, and the difference between two of them.

A picture is flat: one entry for each object that can be reached, in the order of the walk. An object met
again is a reference to its first place, and a tensor names the memory it looks at: so two pictures are equal
only if the values are, and who shares what with whom.
"""

from __future__ import annotations

import collections
import math
import types
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import torch

from breakscope.inside.prove import reach
from breakscope.inside.prove.compat import hooks_of, memory_of
from breakscope.inside.prove.copies import PLAIN
from breakscope.inside.prove.paths import join
from breakscope.inside.tensors import gaps, same_bits

_NO_MEMORY = -1


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """A tensor: everything but its values, in ``layout``, and its values."""

    layout: tuple[Any, ...]
    values: torch.Tensor


@dataclass(frozen=True, slots=True)
class Array:
    """An array of numpy's, and the memory that it looks at: that of a tensor, where ``numpy()`` made it."""

    content: tuple[Any, ...]
    memory: int


@dataclass(frozen=True, slots=True)
class Again:
    """An object that was met before: the place of its entry."""

    index: int


@dataclass(frozen=True, slots=True)
class Function:
    """A function that was left behind: where it stands in the source, its defaults, and what it does."""

    place: tuple[Any, ...]
    code: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Unseen:
    """An object whose state Python cannot see: what it says of itself, and whether it was there before."""

    text: str
    known: bool


class Entry(NamedTuple):
    """One object. ``what``: a tensor, or whatever describes it completely, to be compared by ``==``."""

    path: str
    what: Any


@dataclass(frozen=True, slots=True)
class Picture:
    """What there is after a call.

    Attributes:
        floating: floating tensors with their first paths, in the order of the walk.
        early: tensors under names that may be there or not: compared where both sides have them.
        holders: the first path to each piece of memory.
        kept: which tensor, of those that were there before, is at a path.
    """

    entries: list[Entry]
    floating: list[tuple[str, torch.Tensor]]
    early: dict[str, torch.Tensor]
    holders: dict[int, str] = field(default_factory=dict)
    kept: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Apart:
    """A tensor of its own where the old code left one that is held elsewhere too, or is a part of another.

    Attributes:
        path: where it was left. holder: who else holds what the old code left there; "" if nobody does, and
            only its place in its memory is another.
    """

    path: str
    holder: str


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two pictures part.

    Attributes:
        absolute: largest difference of values, where it is one of values.
        aspect: of a tensor, that differs, where it is not its values: "dtype"; "raised" where only the new
            code raises; "code" where a function is left whose code is another.
    """

    text: str
    absolute: float = math.inf
    aspect: str = ""


def take(
    roots: Sequence[tuple[str, Any]],
    originals: Mapping[int, torch.Tensor],
    early: Collection[str] = (),
    unseen: Collection[int] = (),
) -> Picture:
    """Picture everything reachable from named roots.

    Args:
        originals: what tensors were copied from, by id: values that are still the same are not kept twice.
        early: names of attributes that may be there or not.
        unseen: ids of objects that were there before, and whose state cannot be seen.
    """
    found: dict[str, torch.Tensor] = {}
    numbers: dict[int, int] = {}
    memories: dict[int, int] = {}
    alive: list[Any] = []
    entries: list[Entry] = []
    floating: list[tuple[str, torch.Tensor]] = []
    holders: dict[int, str] = {}
    kept: dict[str, int] = {}
    arrays: list[tuple[int, Any]] = []
    stack = [(path, value) for path, value in reversed(roots)]
    # What tensors carry comes last: one that is met again has no entries of its own, and places must match.
    carried: list[tuple[str, Any]] = []
    while stack or carried:
        if not stack:
            stack, carried = carried[::-1], []
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
            original = originals.get(id(value))
            if original is not None:
                kept[path] = id(original)
            entries.append(Entry(path, _tensor(value, memories, original)))
            if isinstance(entries[-1].what, TensorEntry):
                holders.setdefault(memory_of(value), path)
            if value.is_floating_point() or value.is_complex():
                floating.append((path, value))
            carried += [(f"{path}.{name}", item) for name, item in reach.carried(value)]
            continue
        below, what = _inside(path, value, early, found)
        if isinstance(what, Unseen):
            what = Unseen(what.text, id(value) in unseen)
        if isinstance(what, Array) and reach.is_array(value):
            arrays.append((len(entries), value))
        entries.append(Entry(path, what))
        stack += reversed(below)
    _find_memory(entries, arrays, alive, memories)
    return Picture(entries, floating, {at: one.detach().clone() for at, one in found.items()}, holders, kept)


def _find_memory(
    entries: list[Entry], arrays: Sequence[tuple[int, Any]], alive: Sequence[Any], memories: dict[int, int]
) -> None:
    """Note which memory each array looks at: of a tensor, or of another array."""
    extents: list[tuple[int, int, int]] = []
    for tensor in (one for one in alive if isinstance(one, torch.Tensor)) if arrays else ():
        known = memories.get(memory_of(tensor)) if tensor.layout is torch.strided else None
        if known is not None and tensor.device.type == "cpu":
            begin = tensor.untyped_storage().data_ptr()
            extents.append((begin, begin + tensor.untyped_storage().nbytes(), known))
    for at, array in arrays:
        whole = array
        while type(whole.base) is type(array):
            whole = whole.base
        begin = whole.__array_interface__["data"][0]
        memory = next((known for first, end, known in extents if first <= begin < end), None)
        if memory is None:
            memory = len(memories)
            memories[-begin] = memory
            extents.append((begin, begin + whole.nbytes, memory))
        entries[at] = entries[at]._replace(what=replace(entries[at].what, memory=memory))


# What is said of an empty container: it has no labels, nor has what lies beside its content, if that can be.
_EMPTY: Mapping[type, list[list[Any]]] = {
    cls: [[], []] if hasattr(cls(), "__dict__") else [[]]
    for cls in (dict, set, list, collections.OrderedDict)
}


def _is_empty(value: Any) -> bool:
    """Whether a value is a container of Python's own with nothing in it, nor beside it."""
    cls = type(value)
    known = cls is dict or cls is collections.OrderedDict or cls is set or cls is list
    return known and not value and not getattr(value, "__dict__", None)


def _inside(
    path: str, value: Any, early: Collection[str], found: dict[str, torch.Tensor]
) -> tuple[list[tuple[str, Any]], Any]:
    if _is_empty(value):
        return [], (type(value), _EMPTY[type(value)])  # as below, sooner: a module has a dozen, for its hooks
    if isinstance(value, type | types.ModuleType | types.BuiltinFunctionType):
        return [], id(value)
    if type(value).__module__ == "operator":
        return [], (type(value), repr(value))  # an itemgetter says what it gets
    if isinstance(value, reach.Holder):
        content = value.read()
        return _placed(path, content, value), _labels(content)
    below = [(join(path, label, value), item) for label, item in reach.related(value)]
    said = reach.value_of(value)
    labels: list[Any] = [] if said is None else [said]
    try:
        for holder in reach.holders(value):
            content = holder.read()
            if early:
                apart = [one for one in content if one[0] in early and isinstance(one[1], torch.Tensor)]
                found.update(_placed(path, apart, value))
                content = [one for one in content if not any(one is other for other in apart)]
            labels.append(_labels(content))
            below += _placed(path, content, value)
    except reach.Opaque:
        return below, Unseen(reach.shown(value), known=False)
    if type(value).__module__ == "numpy" and hasattr(value, "tobytes"):
        return [], Array((str(value.dtype), value.shape, value.tobytes()), _NO_MEMORY)
    # A function made in the call is known by its place in the source, its code, and what it closes over.
    if isinstance(value, types.FunctionType):
        place = (value.__module__, value.__qualname__, labels)
        return below, Function(place, reach.meaning_of(value.__code__))
    return below, (type(value), labels)


def _placed(path: str, content: Sequence[tuple[Any, Any]], owner: Any) -> list[tuple[str, Any]]:
    """The parts of an object with their paths."""
    return [(join(path, label, owner), item) for label, item in content]


def _labels(content: Sequence[tuple[Any, Any]]) -> list[Any]:
    return [repr(label) if type(label) is str else _label(label) for label, _ in content]  # nearly all are


def _label(label: Any) -> Any:
    plain = reach.is_atom(label) or (isinstance(label, tuple) and all(map(reach.is_atom, label)))
    return repr(label) if plain or isinstance(label, reach.Pair) else (type(label), id(label))


def _atom(value: Any) -> Any:
    # Text, because NaN is not equal to itself, and 1, 1.0 and True are equal to each other.
    return (type(value), repr(value)) if value is not reach.MISSING else "nothing"


def _tensor(value: torch.Tensor, memories: dict[int, int], original: torch.Tensor | None) -> Any:
    if type(value) in PLAIN and value.layout in _SPARSE and not value.is_meta:
        return _sparse(value)
    if type(value) not in PLAIN or value.layout is not torch.strided or value.is_quantized or value.is_nested:
        return Unseen(f"a tensor of the class {type(value).__qualname__}, {value.layout}", known=False)
    if value.is_meta:
        return (type(value), [value.dtype, tuple(value.shape), value.stride(), value.requires_grad])
    memory = memories.setdefault(memory_of(value), len(memories)) if value.numel() else -1
    layout = (
        type(value),
        value.dtype,
        tuple(value.shape),
        value.device,
        value.requires_grad,
        value.is_leaf,
        getattr(value, "names", ()),  # torch 2.13 has no named tensors any more
        hooks_of(value),
        value.stride() if value.numel() else (),
        memory,
        value.storage_offset() if value.numel() else 0,
        value.is_inference(),
        value.retains_grad,
    )
    with torch.no_grad():
        values = value.detach()
        if original is not None and original.shape == value.shape and original.dtype is value.dtype:
            kept = original.detach()
            return TensorEntry(layout, kept if same_bits(values, kept) else values.clone())
        return TensorEntry(layout, values.clone())


# What a layout keeps its elements in.
_SPARSE = {
    torch.sparse_coo: ("_indices", "_values"),
    torch.sparse_csr: ("crow_indices", "col_indices", "values"),
    torch.sparse_csc: ("ccol_indices", "row_indices", "values"),
}


def _sparse(value: torch.Tensor) -> Any:
    """A sparse tensor by what it keeps, in its order."""
    with torch.no_grad():
        parts = [getattr(value.detach(), part)().cpu() for part in _SPARSE[value.layout]]
    coalesced = value.layout is torch.sparse_coo and value.is_coalesced()
    kept = [(part.dtype, tuple(part.shape), part.tolist()) for part in parts]
    return (type(value), [value.layout, tuple(value.shape), value.requires_grad, coalesced, repr(kept)])


_ASPECTS = (
    "class",
    "dtype",
    "shape",
    "device",
    "requires_grad",
    "is_leaf",
    "names",
    "hooks",
    "stride",
    "memory",
    "offset",
    "inference mode",
    "retain_grad",
)
# Places in a layout of what follows from sizes.
SIZED = frozenset(_ASPECTS.index(aspect) for aspect in ("shape", "stride", "offset"))
CODE = "code"
_MEMORY, _OFFSET = _ASPECTS.index("memory"), _ASPECTS.index("offset")
# How many roundings the order of a sum may cost in half precision, where one is more than any tolerance.
_ROUNDINGS = 4


@dataclass(slots=True)
class Comparer:
    """Compares two pictures.

    Args:
        tolerance: of floating values, relative to the largest one of the tensor; 0 asks for equal bits.
        unaliased: where the old code leaves a tensor that something else holds too, the new one may leave
            an equal tensor of its own. Where it does is noted, for somebody to judge who could tell.
        zeros: the new code may give a gradient of zero where the old one gave none, and record one there.
        zeros_unwanted: it may where the script itself wants none.

    Attributes:
        apart: where the new code left a tensor of its own.
    """

    tolerance: float
    unaliased: bool = False
    zeros: bool = False
    zeros_unwanted: bool = False
    apart: list[Apart] = field(default_factory=list)

    def difference(self, old: Sequence[Entry], new: Sequence[Entry]) -> Difference | None:
        """The first difference; None where there is none, or none but values within the tolerance."""
        shared = _Shared(old, new)
        for index, (before, after) in enumerate(zip(old, new, strict=False)):
            found = self._differ(index, before, after, shared)
            if found is not None:
                return found
        if len(old) != len(new):
            one = old[len(new)] if len(old) > len(new) else new[len(old)]
            who = "old" if len(old) > len(new) else "new"
            return Difference(f"only the {who} code leaves {one.path}")
        return None

    def _differ(self, index: int, before: Entry, after: Entry, shared: _Shared) -> Difference | None:
        path, was, now = before.path, before.what, after.what
        if path != after.path:
            return Difference(f"the old code leaves {path} where the new one leaves {after.path}")
        if self.unaliased and isinstance(was, Again):
            first = shared.old[was.index].what
            # The object that stands here in the new picture was told from the old one at an earlier place.
            again = isinstance(now, Again) and now != was and shared.first(now.index) == was.index
            if isinstance(first, TensorEntry) and (again or isinstance(now, TensorEntry)):
                self.apart.append(Apart(path, shared.old[was.index].path))
                return None if again else self._tensors(index, path, first, now, shared, own=True)
        if isinstance(was, Array) and isinstance(now, Array) and was.content == now.content:
            whom = shared.newly(index) or shared.lost(index)
            text = f"{path}: it does not share its memory with {whom} as it did before"
            return Difference(text) if whom else None
        if not isinstance(was, TensorEntry) or not isinstance(now, TensorEntry):
            if isinstance(was, Unseen) and not was.known:
                return Difference(f"{path} is {was.text}, which nobody can look into", aspect=CODE)
            if type(was) is type(now) and was == now:
                return None
            if isinstance(was, Function) and isinstance(now, Function) and was.place == now.place:
                text = f"{path} is a function that the new code writes in another way: it is not called here"
                return Difference(text, aspect=CODE)
            return Difference(f"{path} is {_text(was, shared.old)}, now {_text(now, shared.new)}")
        return self._tensors(index, path, was, now, shared)

    def _tensors(
        self, index: int, path: str, was: TensorEntry, now: TensorEntry, shared: _Shared, *, own: bool = False
    ) -> Difference | None:
        """Compare two tensors; ``own``: the new one need not lie where the old one did."""
        with_whom = shared.newly(index)
        if with_whom is not None:
            return Difference(f"{path}: it shares its memory with {with_whom}, as it did not before")
        lost = shared.lost(index)
        moved = was.layout[_OFFSET] != now.layout[_OFFSET]
        if not own and (lost is not None or moved):
            if not self.unaliased:
                return Difference(f"{path}: it shares its memory with something else than before")
            self.apart.append(Apart(path, lost or ""))
            own = True
        free = {"memory", "offset"} | ({"stride"} if own else set())
        if (self.zeros or self.zeros_unwanted) and now.layout[_ASPECTS.index("requires_grad")]:
            free |= {"requires_grad", "is_leaf"}
        for aspect, one, other in zip(_ASPECTS, was.layout, now.layout, strict=True):
            if one != other and aspect not in free:
                return Difference(f"{path}: its {aspect} differs: {one}, now {other}", aspect=aspect)
        return values_differ(path, was.values, now.values, self.tolerance)


class _Shared:
    """Who shares an object or a piece of memory with whom, in two pictures of one shape.

    The new code may share less than the old one (where its rewrite says so), and never more: so each answer
    is about a place and those before it.
    """

    def __init__(self, old: Sequence[Entry], new: Sequence[Entry]) -> None:
        self.old, self.new = old, new
        self._first_old: dict[int, int] = {}
        self._first_new: dict[int, int] = {}

    def first(self, index: int) -> int:
        """The place where the old picture first shows the object that it has at a place."""
        what = self.old[index].what if index < len(self.old) else None
        return what.index if isinstance(what, Again) else index

    def newly(self, index: int) -> str | None:
        """With whom the new code shares the memory of a tensor that the old code did not share with it."""
        memory = _memory(self.new[index])
        if memory == _NO_MEMORY:
            return None
        before = self._first_new.setdefault(memory, index)
        if before == index:
            return None
        one, other = (_memory(self.old[self.first(at)]) for at in (before, index))
        return None if one == other != _NO_MEMORY else self.new[before].path

    def lost(self, index: int) -> str | None:
        """With whom the old code shared the memory of a tensor that the new code leaves elsewhere."""
        memory = _memory(self.old[self.first(index)])
        if memory == _NO_MEMORY:
            return None
        before = self._first_old.setdefault(memory, self.first(index))
        if before == index or _memory(self.new[before]) == _memory(self.new[index]):
            return None
        return self.old[before].path


def _memory(entry: Entry) -> int:
    if isinstance(entry.what, Array):
        return entry.what.memory
    return int(entry.what.layout[_MEMORY]) if isinstance(entry.what, TensorEntry) else _NO_MEMORY


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
        if old.dtype in (torch.float16, torch.bfloat16):
            tolerance = max(tolerance, _ROUNDINGS * torch.finfo(old.dtype).eps)
        if distance <= tolerance * max(scale, torch.finfo(old.dtype).tiny):
            return None
    by = f"by up to {distance:.3g}" if math.isfinite(distance) else "in NaN, infinity or kind of zero"
    return Difference(f"{path}: values differ {by}", distance)


def _distance(old: torch.Tensor, new: torch.Tensor) -> float:
    """Largest absolute difference; infinite where NaN, infinity or the kind of zero is another."""
    if not old.numel() or same_bits(old, new):
        return 0.0
    return float(gaps(old, new).max()) or math.inf


def _text(what: Any, entries: Sequence[Entry]) -> str:
    if isinstance(what, Again):
        return f"the object at {entries[what.index].path}" if what.index < len(entries) else "an object again"
    if isinstance(what, TensorEntry):
        return f"a tensor {what.layout[2]} of its own"
    if isinstance(what, Unseen):
        return what.text
    if isinstance(what, Function):
        return f"the function {what.place[1]}"
    if isinstance(what, tuple) and len(what) == 2 and isinstance(what[1], str):
        return what[1][:60]
    if isinstance(what, tuple) and what and isinstance(what[0], type):
        return f"a {what[0].__qualname__} with {' '.join(str(part) for part in what[1])[:200]}"
    return str(what)[:60]
