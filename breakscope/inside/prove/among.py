"""Values that stand among the script's own, and values at which something is rounded: of a patch by anybody.

What is a number of the code everywhere is one case, and what is one here and there is another: an index to be
ignored among labels, an end of text in the middle of a row, a row of a mask in which nothing is true.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import torch

from breakscope.inside.prove import inputs
from breakscope.inside.prove.attempt import Call, Conditions
from breakscope.inside.prove.inputs import Fill
from breakscope.inside.prove.rare import counted, is_free
from breakscope.inside.prove.world import World

_MOST = 4  # tensors
_MOST_NUMBERS = 16
_MOST_WINDOWS = 6
_MOST_STEPS = 4  # numbers of the code of which multiples are tried
_WINDOWS = 3  # of multiples
_FEW = 10  # ways that code goes by a number
_BYTES = 256
_IGNORED = -100  # what torch's losses leave out by default
_LOSSES = {"cross_entropy", "nll_loss", "ignore_index"}
# Roots of whole numbers, rounded down, are other ones in single precision.
_ROOTS = (4095**2 - 1, 4095**2, 5000**2 - 1, 46339**2 - 1, 4095**2 + 1)
_SIZES = (10, 20, 50, 64, 100)
_DENORMAL = "with denormal numbers"
_OVERFLOW = "where sums overflow in half precision"
_ROUNDING = {"round", "decimals", "floor", "ceil", "quantize"}


# ---- whole numbers ----


def ignored(names: Collection[str], world: World) -> list[int]:
    """The labels that losses leave out: torch's own, and those of the modules that can be reached."""
    owners = [holder.owner for holder, _ in world.content]
    losses = (torch.nn.CrossEntropyLoss, torch.nn.NLLLoss)
    of_modules = [int(one.ignore_index) for one in owners if isinstance(one, losses)]
    return list(dict.fromkeys([*([] if _LOSSES.isdisjoint(names) else [_IGNORED]), *of_modules]))


def numbers(given: Sequence[torch.Tensor], constants: Iterable[float]) -> Iterator[Conditions]:
    """Whole numbers of the code among those of the script, in all tensors of them and in each alone."""
    whole = [at for at, tensor in enumerate(given) if _is_whole(tensor) and tensor.numel()]
    if not whole:
        return
    told = _whole_in(constants)
    yield from _in_turn(given, whole, told)
    if any(given[at].numel() == 1 for at in whole):
        for number in range(_FEW):
            yield Conditions(f"{number} in each single whole number", mutate=partial(_single, number))
    places: list[list[int]] = [[at] for at in whole[:_MOST]]
    for (how, fill), number in itertools.product(_PLACES, told[:_MOST_NUMBERS]):
        for those in ([whole, *places] if how == "every second" else places) if len(whole) > 1 else [whole]:
            if max(given[at].numel() for at in those) > (how != "the first"):
                at = "" if those is whole else f" in input {those[0] + 1} alone"
                name = f"{number} for {how} of the whole numbers{at}"
                yield Conditions(name, mutate=partial(_in_those, those, partial(fill, number)))
    yield Conditions(
        "whole numbers that are nearly squares", mutate=partial(_in_those, whole, _nearly_squares)
    )


def _whole_in(constants: Iterable[float]) -> list[int]:
    """The whole numbers among some, the large ones first: few values of a script are near those."""
    found = {int(one) for one in constants if math.isfinite(one) and one == int(one) and abs(one) < 2**53}
    return sorted(found, key=lambda one: (-abs(one), one))


def _is_whole(tensor: torch.Tensor) -> bool:
    return inputs.is_whole(tensor) or tensor.dtype is torch.uint8


def _in_turn(given: Sequence[torch.Tensor], whole: list[int], told: Sequence[int]) -> Iterator[Conditions]:
    """All numbers of the code one after the other, and those from zero on: a table with one wrong entry."""
    most = max(given[at].numel() for at in whole)
    counted = range(_BYTES if any(given[at].dtype is torch.uint8 for at in whole) else _FEW)
    for name, values in (("numbers of the code", told), ("numbers from 0", counted)):
        for start in _starts(len(values), most) if most > 1 and len(values) > 1 else ():
            fill = partial(_cyclic, [*values[start:], *values[:start]])
            yield Conditions(f"{name} in turn, from {values[start]}", mutate=partial(_in_those, whole, fill))


def _starts(length: int, window: int) -> list[int]:
    """Where windows begin, few of them, that lie as evenly as may be."""
    count = min(-(-length // window), _MOST_WINDOWS)
    return [length * at // count for at in range(count)]


def all_bytes(function: Callable[..., Any], given: Sequence[torch.Tensor]) -> Iterator[Conditions]:
    """Every value of a byte, in images that are as large as that takes."""
    small = [one for one in given if one.dtype is torch.uint8 and one.dim() and 0 < one.numel() < _BYTES]
    for size in dict.fromkeys(one.shape[-1] for one in small[:1]):
        long = -(-_BYTES * size // small[0].numel())
        calls = partial(_with_all_bytes, function, size, long)
        yield Conditions(f"every byte, size {long} for {size}", calls=calls)


def _with_all_bytes(
    function: Callable[..., Any], size: int, long: int, calls: Sequence[Call]
) -> Sequence[Call]:
    larger = inputs.resized(function, size, long, calls)
    return inputs.changed(function, larger, _counting_bytes)


def _counting_bytes(tensor: torch.Tensor) -> torch.Tensor:
    return (counted(tensor) % _BYTES).to(torch.uint8) if tensor.dtype is torch.uint8 else tensor


def _single(number: int, given: list[torch.Tensor]) -> None:
    for tensor in given:
        if _is_whole(tensor) and tensor.numel() == 1:
            inputs.write(lambda free: free.fill_(number), tensor)


def _in_those(those: Collection[int], fill: Fill, given: list[torch.Tensor]) -> None:
    for at, tensor in enumerate(given):
        if at in those and is_free(tensor):
            inputs.write(fill, tensor)


def _fits(number: int, tensor: torch.Tensor) -> bool:
    limits = torch.iinfo(tensor.dtype)
    return bool(limits.min <= number <= limits.max)


def _at(where: slice, number: int, tensor: torch.Tensor) -> None:
    """Not by a view: what lies in memory in another order has none that is flat."""
    if _fits(number, tensor):
        flat = tensor.flatten()
        flat[where] = number
        tensor.copy_(flat.view(tensor.shape))


_PLACES: tuple[tuple[str, Callable[[int, torch.Tensor], None]], ...] = (
    ("every second", partial(_at, slice(None, None, 2))),
    ("the first", partial(_at, slice(0, 1))),
    ("the second and third", partial(_at, slice(1, 3))),
)


def _cyclic(values: Sequence[int], tensor: torch.Tensor) -> None:
    fitting = [value for value in values if _fits(value, tensor)]
    if fitting:
        tensor.copy_(tensor.new_tensor(fitting)[counted(tensor) % len(fitting)])


def _nearly_squares(tensor: torch.Tensor) -> None:
    _cyclic(_ROOTS, tensor)


# ---- fractions ----


def fractions(
    given: Sequence[torch.Tensor], constants: Iterable[float], names: Collection[str]
) -> Iterator[Conditions]:
    """Fractions whose sums are zero, that are nearly the same, and at which something is rounded."""
    if not any(tensor.is_floating_point() for tensor in given):
        return
    constants = tuple(constants)
    for name, fill, limit in (
        ("1e-8, 2e-8 and 4e-8 in turn", _close_to_zero, ""),
        ("denormal numbers", _denormal, _DENORMAL),
        ("halves of whole numbers", _halves, ""),
        ("1 and -1 in turn", _cancelling, ""),
        ("rows of 1 and of -1 in turn", _cancelling_rows, ""),
    ):
        yield Conditions(name, mutate=partial(_in_fractions, fill), beyond=limit)
    steps = [one for one in dict.fromkeys(map(abs, constants)) if math.isfinite(one) and one != one // 1]
    told = [(step, 1) for step in steps[:_MOST_STEPS]]
    if not _ROUNDING.isdisjoint(names):
        digits = [int(one) for one in dict.fromkeys(constants) if one in (1, 2, 3, 4)]
        told += [(0.5 / 10**digit, 2) for digit in digits]
    most = max((tensor.numel() for tensor in given if tensor.is_floating_point()), default=0)
    for window, (step, by) in itertools.product(range(_WINDOWS), told):
        first = window * most
        name = f"multiples of {step:g}" + (f", from the {first}th" if first else "")
        yield Conditions(name, mutate=partial(_in_fractions, partial(_multiples, step, by, first)))


def cancelling_whole(given: Sequence[torch.Tensor]) -> Iterator[Conditions]:
    """Whole numbers whose sum is zero, where the script has some below zero."""
    whole = [at for at, tensor in enumerate(given) if inputs.is_whole(tensor) and tensor.numel() > 1]
    if any(bool((given[at] < 0).any()) for at in whole):
        yield Conditions("whole numbers, 1 and -1 in turn", mutate=partial(_in_those, whole, _cancelling))


def _in_fractions(fill: Fill, given: list[torch.Tensor]) -> None:
    for tensor in given:
        if tensor.is_floating_point() and tensor.numel() and is_free(tensor):
            inputs.write(fill, tensor)


def _cancelling(tensor: torch.Tensor) -> None:
    at, count = counted(tensor), tensor.numel()
    tensor.copy_(torch.where((at == count - 1) & (count % 2 == 1), 0, 1 - at % 2 * 2))


def _cancelling_rows(tensor: torch.Tensor) -> None:
    if tensor.dim():
        rows = torch.arange(len(tensor), device=tensor.device)
        values = torch.where((rows == len(tensor) - 1) & (len(tensor) % 2 == 1), 0, 1 - rows % 2 * 2)
        tensor.copy_(values.reshape(-1, *[1] * (tensor.dim() - 1)).expand(tensor.shape))


def _close_to_zero(tensor: torch.Tensor) -> None:
    tensor.copy_(1e-8 * 2.0 ** (counted(tensor) % 3))


def _halves(tensor: torch.Tensor) -> None:
    tensor.copy_(counted(tensor) - tensor.numel() // 2 + 0.5)


def _denormal(tensor: torch.Tensor) -> None:
    tensor.copy_((1 - counted(tensor) % 2 * 2) * torch.finfo(tensor.dtype).tiny / 2)


def _multiples(step: float, by: int, first: int, tensor: torch.Tensor) -> None:
    """As Python has them, in double precision, before the tensor's own."""
    tensor.copy_((first + counted(tensor)).double() * by * step + (step if by > 1 else 0))


def sizes(
    function: Callable[..., Any], calls: Sequence[Call], constants: Iterable[float]
) -> Iterator[Conditions]:
    """Sizes that are rounded when they are multiplied by a fraction, or at a root of which something is."""
    if all(one == one // 1 for one in constants if math.isfinite(one)):
        return
    given = [one for one in inputs.tensors(inputs.without_self(function, calls[0])) if one.dim()]
    for size, other in itertools.product(dict.fromkeys(one.shape[0] for one in given[:_MOST]), _SIZES):
        if size and size != other:
            calls_of = partial(inputs.resized, function, size, other)
            yield Conditions(f"size {other} for {size}, as fractions of it are rounded", calls=calls_of)


# ---- masks ----


def rows_of_masks(given: Sequence[torch.Tensor]) -> Iterator[Conditions]:
    """Masks with one row, or one column, in which all is true or nothing is, the others as they are."""
    masks = [tensor.dim() for tensor in given if tensor.dtype is torch.bool and tensor.dim() > 1]
    places = {0: "row", -2: "second but last dimension", -1: "column"} if max(masks, default=0) > 2 else {}
    places = places or ({0: "row", -1: "column"} if masks else {})
    for (dimension, what), value in itertools.product(places.items(), (False, True)):
        name = f"masks whose first {what} is {value}"
        yield Conditions(name, mutate=partial(_one_row, dimension, value))


def _one_row(dimension: int, value: bool, given: list[torch.Tensor]) -> None:
    for tensor in given:
        if tensor.dtype is torch.bool and tensor.dim() > 1 and tensor.numel() and is_free(tensor):
            inputs.write(lambda free: free.select(dimension, 0).fill_(value), tensor)


# ---- complex numbers ----


def complex_values(given: Sequence[torch.Tensor]) -> Iterator[Conditions]:
    """Complex numbers: edges in both of their parts, and in one of the two alone."""
    if not any(tensor.is_complex() for tensor in given):
        return
    for name, fill in _COMPLEX:
        yield Conditions(f"complex numbers, {name}", mutate=partial(_in_complex, fill))


def _in_complex(fill: Fill, given: list[torch.Tensor]) -> None:
    for tensor in given:
        if tensor.is_complex() and tensor.numel() and is_free(tensor):
            with torch.no_grad():
                parts = torch.view_as_real(tensor.detach()).clone()
                fill(parts)
                values = torch.view_as_complex(parts)
                torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(
                    tensor.untyped_storage(), tensor.storage_offset(), tensor.shape, tensor.stride()
                ).copy_(values)


def _drawn(scale: float, parts: torch.Tensor) -> None:
    generator = torch.Generator().manual_seed(0)
    parts.copy_(torch.randn(parts.shape, generator=generator, device="cpu") * scale)


def _one_is(real: float, imag: float, parts: torch.Tensor) -> None:
    for part, value in enumerate((real, imag)):
        parts.reshape(-1, 2)[parts.numel() // 4, part] = value


def _part_zero(part: int, parts: torch.Tensor) -> None:
    parts[..., part] = 0


def _edges_in_turn(parts: torch.Tensor) -> None:
    values = parts.new_tensor([0.0, 1.0, math.inf, -1.0, math.nan, -0.0, -math.inf])
    parts.copy_(values[counted(parts) % len(values)])


_COMPLEX: tuple[tuple[str, Fill], ...] = (
    ("zeros", lambda parts: parts.fill_(0)),
    ("random values times 30", partial(_drawn, 30.0)),
    ("NaN in one", partial(_one_is, math.nan, 0.0)),
    ("inf in one", partial(_one_is, math.inf, 0.0)),
    ("inf and NaN in one", partial(_one_is, -math.inf, math.nan)),
    ("zero in one", partial(_one_is, 0.0, 0.0)),
    ("ones", lambda parts: parts.fill_(1)),
    ("minus ones", lambda parts: parts.fill_(-1)),
    ("without imaginary parts", partial(_part_zero, 1)),
    ("without real parts", partial(_part_zero, 0)),
    ("times 1e4", lambda parts: parts.mul_(1e4)),
    ("random values, small", partial(_drawn, 1e-8)),
    ("edges in turn", _edges_in_turn),
)


# ---- half precision ----


def in_half(given: Sequence[torch.Tensor], *, exact: bool) -> Iterator[Conditions]:
    """Values of which squares and sums overflow in half precision, and such as are lost there.

    Args:
        exact: sums are taken in the same order: else they may overflow in one and not in the other.
    """
    if not any(tensor.is_floating_point() for tensor in given):
        return
    for dtype, (name, scale) in itertools.product((torch.float16, torch.bfloat16), _HALF.items()):
        told = f"{name} in {str(dtype).removeprefix('torch.')}"
        fill = partial(_in_fractions, partial(_about, scale))
        limit = "" if exact or scale < 1 else _OVERFLOW
        yield Conditions(told, inputs.to(dtype), fill, other_dtypes=True, beyond=limit)


_HALF = {"about 1000": 1e3, "about 60000": 6e4, "about 1e-4": 1e-4, "zeros": 0.0}


def _about(scale: float, tensor: torch.Tensor) -> None:
    """From a little below it up to it, of either sign."""
    at = counted(tensor)
    tensor.copy_((1 - at % 2 * 2) * scale * (1 - at % 5 / 16))
