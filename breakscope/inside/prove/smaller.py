"""A large call in small: the same objects, all sizes cut in the same way.

What a proof around a call of a real model takes is nearly all spent in matrix products, whose sizes decide
nothing. So what the script did not give is tried with less: tensors of arguments and modules are cut, and
with them the numbers beside them that are such sizes (``embed_dim``, ``head_dim``). Only where the old form
takes the script's own call in small as it takes it in full size: step by step, with results that are the
same but for their sizes.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from breakscope.inside.prove import inputs, modes, reach
from breakscope.inside.prove.attempt import Call, Conditions, Outcome
from breakscope.inside.prove.compat import hooks_of, memory_of
from breakscope.inside.prove.copies import NotCopiedError
from breakscope.inside.prove.picture import SIZED, TensorEntry
from breakscope.inside.prove.world import World

# Bytes of tensors that a call can reach: above, it is large.
LARGE = 2**20
# Sizes up to this one stay, and none becomes less than a quarter of it.
STAYS = 16
# How many times less memory makes it worth it.
WORTH = 2
_FACTORS = (16, 8, 4, 2)
_MOST_PARTS = 4
_MOST_TRIED = 64
Sizes = Mapping[int, int]


class SmallWorld(World):
    """The world of a call with its sizes cut. What it puts back is in full size.

    Attributes:
        sizes: what sizes have become.

    Raises:
        NotCopiedError: a tensor is a part of something that cannot be cut with it.
    """

    def __init__(self, full: World, roots: Sequence[Any], sizes: Sizes) -> None:
        self._full, self.sizes = full, sizes
        self._cut = _Cut(full.tensors, sizes)
        try:
            for holder, content in full.content:
                if not isinstance(holder.owner, torch.Generator):
                    holder.write([(label, self._cut(value)) for label, value in content])
            super().__init__([self._cut(root) for root in roots], full.bytes)
            self._swapped = self.content  # numbers and tuples are others here, too
        finally:
            full.restore()

    def cut(self, call: Call) -> Call:
        """A call of those that the world was made of, in small."""
        args, kwargs = call
        return self._cut(args), kwargs

    def restore(self) -> None:
        """Give everything the content that it had, in full size."""
        super().restore()
        self._full.restore()

    def translated(self, conditions: Conditions) -> Conditions:
        """Conditions with the size that they name as it is here."""
        made = conditions.calls
        if not isinstance(made, partial) or made.func is not inputs.resized:
            return conditions
        size, other = made.args
        here = self.sizes.get(size, size)
        near = {size // 2: here // 2, size - 1: here - 1, size + 1: here + 1}
        return replace(conditions, calls=partial(inputs.resized, here, near.get(other, other)))


def worlds(full: World, roots: Sequence[Any]) -> Iterator[SmallWorld]:
    """The world of some roots in small, in one way after the other."""
    tried: list[Sizes] = []
    for sizes in _plans(full, roots):
        if sizes in tried:
            continue
        tried.append(sizes)
        with contextlib.suppress(NotCopiedError):
            world = SmallWorld(full, roots, sizes)
            if world.bytes * WORTH <= full.bytes and len(world.tensors) == len(full.tensors):
                yield world
        if len(tried) == _MOST_TRIED:
            return


def _plans(full: World, roots: Sequence[Any]) -> Iterator[Sizes]:
    """What sizes become. Those of modules by one factor: what is made of several parts stays made of them."""
    given = {size for one in full.tensors if id(one) in full.given for size in one.shape}
    held = {size for one in full.tensors if id(one) not in full.given for size in one.shape}
    values = [*(value for _, content in full.content for _, value in content), *roots]
    numbers = {number for value in values for number in _numbers(value)}
    # Sizes that stand in no tensor but make one up: the width of a head.
    made_of = [one for one in numbers - held - given if one > STAYS and any(not size % one for size in held)]
    parts = [(one,) for one in sorted(made_of, reverse=True)][:_MOST_PARTS]
    top = max((int(one.max()) for one in full.tensors if id(one) in full.given and _indexes(one)), default=0)
    ways = itertools.product((True, False), (True, False), _FACTORS, [*parts, (), tuple(made_of)])
    for free, indexed, factor, some in ways:
        sizes = {one: one // factor for one in held if one > STAYS and not one % factor}
        if not indexed:  # what an index of the script's would then be beyond stays
            sizes = {one: less for one, less in sizes.items() if not less <= top < one}
        taken = (held | given | numbers) - sizes.keys() | set(sizes.values())
        for size in sorted(one for one in given - held if one > STAYS) if free else ():
            least = max(2, STAYS // 4, size // factor)
            less = next(one for one in itertools.count(least) if one not in taken)
            if less < size:
                sizes[size] = less
                taken.add(less)
        stay = (held | given) - sizes.keys()
        if sizes and stay.isdisjoint(sizes.values()) and len(set(sizes.values())) == len(sizes):
            yield sizes | {one: one // factor for one in some if not one % factor}


def _numbers(value: Any) -> Iterator[int]:
    if type(value) is int:
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _numbers(item)


def _indexes(tensor: torch.Tensor) -> bool:
    return bool(tensor.numel()) and tensor.dtype in (torch.int32, torch.int64)


class _Cut:
    """Values with other sizes: tensors are cut, numbers and tuples of them are replaced."""

    def __init__(self, tensors: Sequence[torch.Tensor], sizes: Sizes) -> None:
        self._sizes = sizes
        together = Counter(map(memory_of, tensors))
        self._made: dict[int, torch.Tensor] = {}
        for tensor in tensors:
            if not sizes.keys().isdisjoint(tensor.shape):
                if together[memory_of(tensor)] > 1 or tensor.__dict__ or any(hooks_of(tensor)):
                    raise NotCopiedError("a tensor that is to be cut belongs to others")
                self._made[id(tensor)] = _cut(tensor, sizes)

    def __call__(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self._made.get(id(value), value)
        if type(value) is int:
            return self._sizes.get(value, value)
        if isinstance(value, tuple):
            items = [self(item) for item in value]
            if all(new is old for new, old in zip(items, value, strict=True)):
                return value
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        return value


def _cut(tensor: torch.Tensor, sizes: Sizes) -> torch.Tensor:
    """The beginning of a tensor, laid out in memory as the tensor is."""
    shape = [sizes.get(size, size) for size in tensor.shape]
    strides, span, full = [0] * tensor.dim(), 1, 1
    for at in sorted(range(tensor.dim()), key=lambda at: (tensor.stride(at), tensor.shape[at] > 1)):
        step, size = tensor.stride(at), tensor.shape[at]
        if not step and size > 1:
            continue
        if step < full and size > 1:
            raise NotCopiedError("a tensor overlaps itself")
        strides[at] = span + (step > full and size > 1)  # a gap stays one
        if size > 1:
            span, full = strides[at] * shape[at], step * size
    offset = min(1, tensor.storage_offset())
    with torch.inference_mode(False), torch.no_grad():
        memory = torch.zeros(span + offset, dtype=tensor.dtype, device=tensor.device)
        # One element stands for all of a dimension that is expanded.
        written = [size if step else 1 for size, step in zip(shape, strides, strict=True)]
        part = tensor.detach()[tuple(map(slice, written))]
        memory.as_strided(written, strides, offset).copy_(part)
        made = memory.as_strided(shape, strides, offset)
        if type(tensor) is not torch.Tensor:
            made = made.as_subclass(type(tensor))
        if isinstance(tensor, torch.nn.Parameter):
            made = torch.nn.Parameter(made, requires_grad=False)
    with torch.inference_mode(False), torch.enable_grad():
        made = made.detach() if type(made) is torch.Tensor else made
        made.requires_grad_(tensor.requires_grad)
        if tensor.is_leaf and tensor.grad is not None:
            made.grad = _cut(tensor.grad, sizes)
        return made if tensor.is_leaf else made.clone()


# ---- whether it is the same in small ----


@contextlib.contextmanager
def steps(wanted: bool = True) -> Iterator[set[tuple[int, int]]]:
    """Note every step that Python makes meanwhile in code that is neither torch's nor its own."""
    seen: set[tuple[int, int]] = set()
    collecting = False

    def at_collection(phase: str, _info: Mapping[str, int]) -> None:
        nonlocal collecting
        collecting = phase == "start"

    def look(frame: Any, event: str, _arg: Any) -> Any:
        if event == "call":
            # Finalizers of what others left behind run wherever the collector comes by.
            if collecting or reach.foreign(frame.f_globals.get("__name__")):
                return None
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        elif event == "opcode":
            seen.add((id(frame.f_code), frame.f_lasti))
        return look

    if not wanted or sys.gettrace() is not None:  # somebody else looks, whom nobody can put back
        yield seen
        return
    gc.callbacks.append(at_collection)
    sys.settrace(look)
    try:
        yield seen
    finally:
        sys.settrace(None)
        gc.callbacks.remove(at_collection)


def alike(full: Outcome, small: Outcome, sizes: Sizes) -> bool:
    """Whether the old form did the same in small, but for sizes."""
    if full.raised or small.raised or full.written != small.written:
        return False
    if modes.lasting(full.modes) != modes.lasting(small.modes):
        return False
    if full.printed.count("\n") != small.printed.count("\n"):
        return False
    one, other, known = full.picture.entries, small.picture.entries, dict(sizes)
    if len(one) != len(other):
        return False
    return all(a.path == b.path and _alike(a.what, b.what, known) for a, b in zip(one, other, strict=True))


def _alike(full: Any, small: Any, known: dict[int, int]) -> bool:
    """Whether two things differ in sizes alone; ``known``: what sizes have become, learned on the way."""
    if isinstance(full, TensorEntry) and isinstance(small, TensorEntry):
        both = list(zip(full.values.shape, small.values.shape, strict=False))
        kept = [at for at in range(len(full.layout)) if at not in SIZED]
        return (
            full.values.dim() == small.values.dim()
            and all(known.setdefault(size, less) == less for size, less in both)
            and all(min(size, 2) == min(less, 2) for size, less in both)
            and [full.layout[at] for at in kept] == [small.layout[at] for at in kept]
        )
    number = isinstance(full, tuple) and isinstance(small, tuple) and full[0] in (int, float, str, torch.Size)
    return full[0] is small[0] if number else bool(type(full) is type(small) and full == small)
