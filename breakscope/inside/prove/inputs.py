"""Inputs that the script did not give: edges, extremes, other shapes and dtypes, and what drives a branch."""

from __future__ import annotations

import inspect
import itertools
import math
import re
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from breakscope.inside.prove import reach
from breakscope.inside.prove.attempt import Call, Conditions

Fill = Callable[[torch.Tensor], object]
_MOST_ALONE = 6
_MOST_PAIRS = 6
_MOST_TOLD = 3
_MOST_SIZES = 6
_MOST_NUMBERS = 16
_MOST_UNEVEN = 2
_MOST_LIMITS = 8
_MOST_STATES = 48
_MOST_COUNTS = 4
UNEVEN = "with tensors of different sizes, which the script has alike"
TEXT = "another"  # nobody's name for anything
_PRIMES = (3, 7, 5, 11)
_MOST_TEXTS = 6  # of arguments
_MOST_ITEMS = 64
# Where roots, logarithms and counts in a byte or in half precision are rounded, and what no float is exactly.
_ROUND = (2, 3, 7, 8, 9, 100, 257, 2051)
_INEXACT = (0.1, 0.3, 0.7)
_KEYWORD = 0.25  # for a keyword of which nothing but its name is known
_LARGE = 10_000  # above every size
_THOUSAND = 1000  # its logarithm is rounded down
_LONG = (301, 2051)  # of a dimension: above what a byte, bfloat16 or float16 counts
_MOST_ELEMENTS = 2**20
_DEEPEST = 4  # objects in objects that are looked into


def values(
    given: Sequence[torch.Tensor], constants: Iterable[float], *, gradients: bool
) -> Iterator[Conditions]:
    """Other values for the tensors that a function is given: all of them at once, then one alone."""
    yield from together(constants, gradients=gradients)
    yield from alone(given, constants, gradients=gradients)


def together(constants: Iterable[float], *, gradients: bool) -> Iterator[Conditions]:
    """Other values for all tensors that a function is given at once."""
    numbers = _told(constants)
    fills = [*_EDGES, *_around(numbers)]
    if not gradients:
        fills += [
            *_beside(numbers),
            *((f"all magnitudes, {seed}", partial(_wild, seed)) for seed in range(8)),
        ]
    for name, fill in fills:
        yield _given(name, partial(_each, fill), gradients)


def alone(
    given: Sequence[torch.Tensor], constants: Iterable[float], *, gradients: bool
) -> Iterator[Conditions]:
    """Other values for one of several tensors, the others as they are: edges, and numbers of the code."""
    told: list[tuple[str, Fill]] = [
        (f"all {value:g}", partial(_constant, value)) for value in _told(constants)[:_MOST_TOLD]
    ]
    for index in range(min(len(given), _MOST_ALONE) if len(given) > 1 else 0):
        for name, fill in (*_ALONE, *told):
            yield _given_alone(name, index, fill, gradients)
    yield from _masked(given, gradients)
    if not gradients:
        yield from _alike(given)


def flowing_back() -> Iterator[Conditions]:
    """Other gradients that come in: large and small ones, none, and what an overflow leaves."""
    for scale in (1e4, 1e-4, 0.0, math.nan):
        name = f"gradients that come in times {scale:g}"
        yield Conditions(name, to(torch.float64), gradients=True, other_dtypes=True, flowing=scale)


def _alike(given: Sequence[torch.Tensor]) -> Iterator[Conditions]:
    """One tensor with the values of another, and with nearly those: ``torch.equal`` is no ``allclose``."""
    alike = [
        (one, other)
        for one, other in itertools.combinations(range(len(given)), 2)
        if given[one].is_floating_point()
        and (given[one].dtype, given[one].shape) == (given[other].dtype, given[other].shape)
    ]
    for one, other in alike[:_MOST_PAIRS]:
        for how, factor in (("", 1.0), ("nearly ", 1 + 1e-6)):
            name = f"input {other + 1} {how}equal to input {one + 1}"
            yield _given(name, partial(copied, one, other, factor), gradients=False)


def copied(one: int, other: int, factor: float, given: list[torch.Tensor]) -> None:
    """Give one tensor the values of another of its shape, times a factor."""
    if max(one, other) < len(given) and 0 not in given[other].stride():
        values = given[one].detach() * factor
        write(lambda tensor: tensor.copy_(values), given[other])


def _masked(given: Sequence[torch.Tensor], gradients: bool) -> Iterator[Conditions]:
    """NaN and infinity where a mask among them is false, and where it is true: ``x * mask`` keeps them."""
    masks = [index for index, tensor in enumerate(given) if tensor.dtype is torch.bool and tensor.dim()]
    values = [index for index, tensor in enumerate(given) if tensor.is_floating_point() and tensor.dim()]
    pairs = [
        pair for pair in itertools.product(values, masks) if _mask_of(*(given[at] for at in pair)) is not None
    ]
    for (index, mask), value, side in itertools.product(
        pairs[:_MOST_PAIRS], (math.nan, math.inf), (False, True)
    ):
        yield _given(
            f"{value} where input {mask + 1} is {side}, in input {index + 1}",
            partial(_fill_masked, index, mask, value, side),
            gradients,
        )


def _mask_of(tensor: torch.Tensor, mask: torch.Tensor) -> torch.Tensor | None:
    """A mask in a tensor's shape: of its first dimensions, or as it broadcasts; None where it is neither."""
    if tensor.shape[: mask.dim()] == mask.shape:
        return mask.reshape(*mask.shape, *[1] * (tensor.dim() - mask.dim())).expand(tensor.shape)
    try:
        return mask.expand(tensor.shape)
    except RuntimeError:
        return None


def _fill_masked(index: int, mask: int, value: float, side: bool, given: list[torch.Tensor]) -> None:
    if max(index, mask) < len(given):
        where = _mask_of(given[index], given[mask])
        if where is not None and 0 not in given[index].stride():  # what is expanded is one element in memory
            write(lambda tensor: tensor.masked_fill_(where == side, value), given[index])


def whole_numbers(given: Sequence[torch.Tensor]) -> Iterator[Conditions]:
    """Whole numbers unlike the script's: few and repeated, others, large ones of their dtype, negative ones.

    All tensors of them at once, then one alone. Where they are indices, the old form raises for most. Where
    the script has none below zero, such are of another kind than its own.
    """
    whole = [index for index, tensor in enumerate(given) if is_whole(tensor)]
    if not whole:
        return
    negative = any(bool((given[index] < 0).any()) for index in whole)
    limit = "" if negative else "with negative whole numbers in a tensor"
    alone = whole[:_MOST_ALONE] if len(given) > 1 else []
    for name, fill, beyond in [*((*one, "") for one in _WHOLE), *((*one, limit) for one in _NEGATIVE)]:
        yield replace(_given(name, partial(_each, fill), False), beyond=beyond)
        for index in alone:
            yield replace(_given_alone(name, index, fill, False), beyond=beyond)


def is_whole(tensor: torch.Tensor) -> bool:
    """Whether it holds whole numbers below zero, too."""
    return tensor.dtype in (torch.int8, torch.int16, torch.int32, torch.int64)


def _given(name: str, mutate: Callable[[list[torch.Tensor]], None], gradients: bool) -> Conditions:
    change = to(torch.float64) if gradients else torch.clone
    return Conditions(name, change, mutate, gradients=gradients, other_dtypes=gradients)


def _given_alone(name: str, index: int, fill: Fill, gradients: bool) -> Conditions:
    return _given(f"{name}, in input {index + 1} alone", partial(_only, index, fill), gradients)


def filled(edge: str) -> Callable[[list[torch.Tensor]], None]:
    """What gives all tensors the values of an edge, by its name."""
    return partial(_each, dict(_EDGES)[edge])


def fills(constants: Iterable[float]) -> Iterator[tuple[str, Callable[[list[torch.Tensor]], None]]]:
    """Values to be tried along with something else: the edges that tell most, and numbers of the code."""
    for name, fill in (*_ALONE, *_around(_told(constants))):
        yield name, partial(_each, fill)


def _told(constants: Iterable[float]) -> list[float]:
    return sorted({c for c in constants if abs(c) < 1e30}, key=abs)[:8]


def states_together() -> Iterator[Conditions]:
    """Other values for what modules hold: all parameters and buffers at once."""
    for name, fill in _STATES:
        mutate = partial(_each, fill)
        yield Conditions(f"{name}, in all parameters and buffers", mutate=mutate, of_modules=True)


def states(count: int) -> Iterator[Conditions]:
    """Other values for what modules hold: one parameter or buffer at a time."""
    for name, fill in _STATES:
        for index in range(min(count, _MOST_STATES)):
            mutate = partial(_only, index, fill)
            yield Conditions(f"{name}, in parameter or buffer {index + 1}", mutate=mutate, of_modules=True)


def counted(
    held: Sequence[torch.Tensor], given: Sequence[torch.Tensor], constants: Iterable[float]
) -> Iterator[Conditions]:
    """Numbers of the code for what counts in a buffer, also less a batch: ``n += len(x)``, ``n > 100``."""
    sizes = sorted({tensor.shape[0] for tensor in given if tensor.dim()})[:_MOST_UNEVEN]
    numbers = [one for one in _told(constants) if abs(one) > 1]
    wanted = dict.fromkeys(number - less for number in numbers for less in (0, 1, *sizes))
    counts = [index for index, tensor in enumerate(held) if tensor.numel() == 1]
    for index in counts[:_MOST_COUNTS]:
        for number in wanted:
            mutate = partial(_only, index, partial(_count, number))
            name = f"{number:g} in parameter or buffer {index + 1}"
            yield Conditions(name, mutate=mutate, of_modules=True)


def seeds(count: int) -> Iterator[Conditions]:
    """Other states of the random number generators."""
    for seed in range(1, count + 1):
        yield Conditions(f"random seed {seed}", seed=seed)


def dtypes(function: Callable[..., Any], calls: Sequence[Call]) -> Iterator[Conditions]:
    """All floating tensors, the parameters too, in another dtype: at their sizes, and at uneven ones."""
    given = tensors(without_self(function, calls[0]))
    sizes = dict.fromkeys(size for tensor in given for size in tensor.shape if size)
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        name = f"everything in {str(dtype).removeprefix('torch.')}"
        yield Conditions(name, to(dtype), other_dtypes=True)
        for size in list(sizes)[:_MOST_UNEVEN]:
            odd = size + 1 + size % 2
            other = partial(resized, function, size, odd)
            yield Conditions(f"{name}, size {odd} for {size}", to(dtype), other_dtypes=True, calls=other)


def shapes(
    function: Callable[..., Any], calls: Sequence[Call], limits: Iterable[int] = (), *, large: bool = False
) -> Iterator[Conditions]:
    """Other sizes: every dimension of one size, in all arguments, one longer or shorter, halved, 2, 1 or 0.

    Args:
        limits: sizes that may be one: a dimension becomes as long, and one longer.
        large: also a size above what a byte counts, where the memory for it is small.
    """
    beside = [size for limit in limits for size in (limit, limit + 1)]
    given = [tensor for call in calls for tensor in tensors(without_self(function, call))]
    other_sizes = partial(resized, function)
    for size in _sizes_of(given):
        near = (size + 1, max(1, size - 1), max(1, size // 2), 2, 1, 0)
        for other in dict.fromkeys((*near, *beside)):
            if other != size:
                yield Conditions(f"size {other} for {size}", calls=partial(other_sizes, size, other))
        for place in _places_of(size, given):  # square by chance: each dimension has a size of its own
            for other in (size + 1, max(1, size - 1)):
                name = f"size {other} for {size} in dimension {place + 1} alone"
                yield Conditions(name, calls=partial(other_sizes, size, other, place=place))
        most = max(one.numel() // size for one in given if size in one.shape)
        for long in _LONG if large else ():
            if size < long and most * long <= _MOST_ELEMENTS:
                name, calls_of = f"size {long} for {size}", partial(other_sizes, size, long)
                yield Conditions(name, calls=calls_of)
                yield Conditions(f"{name}, ones", mutate=filled("ones"), calls=calls_of)


def _sizes_of(given: Iterable[torch.Tensor]) -> list[int]:
    """The first few sizes of tensors, without zero."""
    sizes = dict.fromkeys(size for tensor in given for size in tensor.shape)
    return [size for size in sizes if size][:_MOST_SIZES]


def uneven(function: Callable[..., Any], calls: Sequence[Call]) -> Iterator[Conditions]:
    """Other sizes of one tensor alone, or of all but one, where those of several are the same."""
    given = list(tensors(without_self(function, calls[0])))
    for size in _sizes_of(given):
        those = [at for at, tensor in enumerate(given) if size in tensor.shape][:_MOST_ALONE]
        for at in those if len(those) > 1 else ():
            rest = [one for one in those if one != at]
            for only, where in (([at], f"input {at + 1} alone"), (rest, f"all but input {at + 1}")):
                if len(those) == 2 and only is rest:
                    continue  # it comes by itself
                for place in (None, *_places_of(size, [given[one] for one in only])):
                    of = "" if place is None else f"dimension {place + 1} of "
                    name = f"size {size + 1} for {size} in {of}{where}"
                    other_sizes = partial(resized, function, size, size + 1, place=place, only=only)
                    yield Conditions(name, calls=other_sizes, beyond=UNEVEN)


def _places_of(size: int, given: Iterable[torch.Tensor]) -> list[int]:
    """The dimensions of one size, where a tensor has several of it."""
    square = [shape for tensor in given if (shape := tuple(tensor.shape)).count(size) > 1]
    return sorted({place for shape in square for place, one in enumerate(shape) if one == size})


def lengths(
    function: Callable[..., Any], calls: Sequence[Call], constants: Iterable[float]
) -> Iterator[Conditions]:
    """Lists and tuples of tensors among the arguments, and ``*args``, one item longer or shorter.

    Also one longer than numbers of the code: ``xs[:8]`` is all of a short list.
    """
    args, kwargs = calls[0]
    lists = sum(map(_is_list, (*args, *kwargs.values())))
    if lists:
        yield Conditions("lists of one item", calls=partial(_relisted, _first, lists))
        empty = partial(_relisted, _none, lists)
        yield Conditions("empty lists", calls=empty, beyond="with lists of nothing")
    most = max((abs(int(one)) for one in constants if 1 < abs(one) <= _MOST_ITEMS), default=0)
    if lists and most:
        name, long = f"lists of {most + 1} items", partial(_as_long, most + 1)
        yield Conditions(name, calls=partial(_relisted, long, lists))
    for name, change in (("more", _longer), ("fewer", _shorter)) if lists else ():
        yield Conditions(f"lists with one item {name}", calls=partial(_relisted, change, lists))
        if lists > 1:
            first = partial(_relisted, change, 1)
            limit = "with lists of different lengths"
            yield Conditions(f"the first list with one item {name}", calls=first, beyond=limit)
    if any(_is_list(one) for value in (*args, *kwargs.values()) for one in _items(value)):
        for name, change in (("more", _longer), ("fewer", _shorter)):
            inner = partial(_inner_relisted, change)
            yield Conditions(f"lists in containers with one item {name}", calls=inner)
    kinds = [parameter.kind for parameter in inspect.signature(function).parameters.values()]
    rest = inspect.Parameter.VAR_POSITIONAL
    if args and rest in kinds and len(args) >= kinds.index(rest):
        yield Conditions("one argument more", calls=_with_one_more)


def orders(calls: Sequence[Call]) -> Iterator[Conditions]:
    """Dicts among the arguments with their first key last, and so lists, which may be sorted."""
    for kind, limit in ((dict, ""), (list, "with a list in another order")):
        if _has_order(kind, calls[0]):
            name = f"{kind.__name__}s with the first last"
            yield Conditions(name, calls=partial(_all_turned, kind), beyond=limit)


def _all_turned(kind: type[Any], calls: Sequence[Call]) -> Sequence[Call]:
    return [_turned(kind, call) for call in calls]


def _has_order(kind: type[Any], value: Any) -> bool:
    within = any(_has_order(kind, item) for item in _items(value))
    return within or (type(value) is kind and len(value) > 1)


def _turned(kind: type[Any], value: Any) -> Any:
    made: Any = _mapped(partial(_turned, kind), value)
    if type(made) is not kind or not made:
        return made
    first, *others = made.items() if isinstance(made, dict) else made
    return dict([*others, first]) if kind is dict else [*others, first]


def _with_one_more(calls: Sequence[Call]) -> Sequence[Call]:
    return [(tuple(_longer([*args])) if args else args, kwargs) for args, kwargs in calls]


def _is_list(value: Any) -> bool:
    """A list or tuple of which a function may go through the items: of all but texts."""
    return type(value) in (list, tuple) and any(type(item) is not str for item in value)


def _longer(items: list[Any]) -> list[Any]:
    last = items[-1]
    return [*items, last.detach().clone() if isinstance(last, torch.Tensor) else last]


def _first(items: list[Any]) -> list[Any]:
    return items[:1]


def _as_long(length: int, items: list[Any]) -> list[Any]:
    while 0 < len(items) < length:
        items = _longer(items)
    return items[:length]


def _none(_items: list[Any]) -> list[Any]:
    return []


def _shorter(items: list[Any]) -> list[Any]:
    return items[:-1]


def _relisted(change: Callable[[list[Any]], list[Any]], count: int, calls: Sequence[Call]) -> Sequence[Call]:
    """The calls with their first lists changed, ``count`` of them each."""
    changed = []
    for args, kwargs in calls:
        left = iter(range(count))
        values = [
            type(value)(change(list(value))) if _is_list(value) and next(left, None) is not None else value
            for value in (*args, *kwargs.values())
        ]
        changed.append((tuple(values[: len(args)]), dict(zip(kwargs, values[len(args) :], strict=True))))
    return changed


def _items(value: Any) -> Iterable[Any]:
    """What a list, tuple or dict holds; nothing of all else."""
    return value.values() if type(value) is dict else value if type(value) in (list, tuple) else ()


def _mapped(change: Callable[[Any], Any], value: Any) -> Any:
    """A list, tuple or dict with other items; all else as it is."""
    if type(value) is dict:
        return {key: change(item) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(change, value))
    return type(value)(map(change, value)) if type(value) in (list, tuple) else value


def _inner_relisted(change: Callable[[list[Any]], list[Any]], calls: Sequence[Call]) -> Sequence[Call]:
    """The calls with each list of tensors changed that stands in a list, tuple or dict."""

    def changed(value: Any) -> Any:
        return type(value)(change(list(value))) if _is_list(value) else value

    return each_argument(partial(_mapped, changed), calls)


def each_argument(change: Callable[[Any], Any], calls: Sequence[Call]) -> Sequence[Call]:
    """The calls with another value for each argument."""
    return [(_mapped(change, args), _mapped(change, kwargs)) for args, kwargs in calls]


def flags(function: Callable[..., Any], calls: Sequence[Call]) -> Iterator[Conditions]:
    """Two flags turned at once, given or left at their defaults: ``a != b`` and ``a or b`` agree on one."""
    found: dict[int | str, bool] = {key: one for key, one in arguments(calls[0]) if type(one) is bool}
    defaults = {one.name: one.default for one in at_default(function, calls[0])}
    found |= {name: one for name, one in defaults.items() if type(one) is bool}
    for (one, was), (two, before) in itertools.islice(itertools.combinations(found.items(), 2), _MOST_PAIRS):
        names = " and ".join(map(named, (one, two)))
        yield Conditions(
            f"arguments {names} turned", calls=partial(_with_both, {one: not was, two: not before})
        )


def numbers(calls: Sequence[Call]) -> Iterator[Conditions]:
    """All numbers among the arguments at once: to tell what is left over of one may take two new ones."""
    found = {key: value for key, value in arguments(calls[0]) if type(value) in (int, float)}
    for primes in (_PRIMES, _PRIMES[::-1]) if 1 < len(found) <= len(_PRIMES) else ():
        values = {
            key: prime if type(value) is int else prime / 10
            for (key, value), prime in zip(found.items(), primes, strict=False)
        }
        names = ", ".join(map(named, values))
        told = ", ".join(map(str, values.values()))
        yield Conditions(f"arguments {names} = {told}", calls=partial(_with_both, values))
    fractions = [(key, value) for key, value in found.items() if type(value) is float]
    for (one, value), (other, _) in itertools.islice(itertools.combinations(fractions, 2), _MOST_PAIRS):
        for how, near in (("", value), ("nearly ", math.nextafter(value, math.inf))):
            name = f"argument {named(other)} {how}as argument {named(one)}"
            yield Conditions(name, calls=partial(with_argument, other, near))


def _with_both(values: Mapping[int | str, Any], calls: Sequence[Call]) -> Sequence[Call]:
    for key, value in values.items():
        calls = with_argument(key, value, calls)
    return calls


def texts(calls: Sequence[Call], known: Iterable[str]) -> Iterator[Conditions]:
    """Other texts for arguments that are one, or hold some.

    Those of the code, their like, those of other arguments, and one of no kind.
    """
    known = tuple(known)
    likes = [like for one in known for like in (one + TEXT, TEXT + one, TEXT + one + TEXT, one.upper())]
    given = [
        text for args, kwargs in calls for value in (*args, *kwargs.values()) for text in _texts_of(value)
    ]
    told = tuple(dict.fromkeys((*known, *given[:_MOST_TEXTS], TEXT)))

    def others_of(value: Any) -> Iterable[Any]:
        if type(value) is str:
            longer = _with_more_digits(value)
            return (*told, *likes, *((longer, f"{TEXT}7_{value}") if longer != value else ()))
        if _texts_of(value):
            upper = type(value)([one.upper() for one in value])
            longer = type(value)([_with_more_digits(one) for one in value])
            more = (type(value)([*value, one]) for one in told if one not in value)
            return [*more, type(value)(), upper, longer]
        return ()

    return _one_other(calls, others_of)


def _with_more_digits(text: str) -> str:
    """``layer_32`` for ``layer_3``: whose number has one digit is told by its last letter."""
    return re.sub(r"\d+", r"\g<0>2", text)


def _texts_of(value: Any) -> list[str]:
    """A text, or those of a container that holds nothing else."""
    if type(value) is str:
        return [value]
    held = list(value) if type(value) in (list, tuple, set, frozenset) else []
    return held if all(type(one) is str for one in held) else []


def scalars(calls: Sequence[Call], constants: Iterable[float]) -> Iterator[Conditions]:
    """Other Python numbers and flags, one argument at a time: also numbers of the code, and sizes."""
    return _one_other(calls, partial(others, limits=_limits(calls, constants)))


def rounded(calls: Sequence[Call]) -> Iterator[Conditions]:
    """Numbers at which something is rounded: for each number of the arguments, and in lists of fractions."""

    def others_of(value: Any) -> Iterable[Any]:
        if type(value) is int:
            return _ROUND
        if type(value) in (list, tuple) and value and all(type(one) is float for one in value):
            return [type(value)((at + 1) / 10 for at in range(len(value)))]
        return _INEXACT if type(value) is float else ()

    return _one_other(calls, others_of)


def _one_other(calls: Sequence[Call], others_of: Callable[[Any], Iterable[Any]]) -> Iterator[Conditions]:
    """Other values for the arguments of the first call, one argument at a time."""
    for key, value in arguments(calls[0]) if calls else ():
        for other in others_of(value):
            if other != value:
                name = f"argument {named(key)} = {other!r}"
                yield Conditions(name, calls=partial(with_argument, key, other))


def arguments(call: Call) -> list[tuple[int | str, Any]]:
    """What a call is given, each by its place or its keyword."""
    args, kwargs = call
    return [*enumerate(args), *kwargs.items()]


def named(key: int | str) -> str:
    """An argument's place or keyword for the reader, who counts from one."""
    return str(key + 1) if isinstance(key, int) else key


def inside(calls: Sequence[Call], constants: Iterable[float]) -> Iterator[Conditions]:
    """Other numbers and flags in lists, tuples and dicts of the arguments, one at a time."""
    limits = _limits(calls, constants)
    numbers = list(_numbers_in(calls[0], 0)) if calls else []
    for index, value in enumerate(numbers[:_MOST_NUMBERS]):
        for limit, other in (*(("", other) for other in others(value, limits)), *odd_numbers(value)):
            name, calls_of = (
                f"number {index + 1} in the arguments = {other!r}",
                partial(_with_number, index, other),
            )
            yield Conditions(name, calls=calls_of, beyond=limit)


def _numbers_in(value: Any, depth: int) -> Iterator[Any]:
    # Those that are arguments themselves have other values elsewhere: depth 0 is the call, 1 its two halves.
    if type(value) in (bool, int, float) and depth > 2:
        yield value
    elif type(value) in (list, tuple, dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _numbers_in(item, depth + 1)


def _with_number(index: int, other: Any, calls: Sequence[Call]) -> Sequence[Call]:
    def changed(value: Any, depth: int, left: list[int]) -> Any:
        if type(value) in (bool, int, float) and depth > 2:
            left[0] -= 1
            return other if left[0] == -1 else value
        return _mapped(lambda item: changed(item, depth + 1, left), value)

    return [changed(call, 0, [index]) for call in calls]


def at_default(function: Callable[..., Any], call: Call) -> list[inspect.Parameter]:
    """The parameters that a call leaves out, and that it could name."""
    args, kwargs = call
    return [
        parameter
        for parameter in list(inspect.signature(function).parameters.values())[len(args) :]
        if parameter.name not in kwargs and parameter.kind is not inspect.Parameter.POSITIONAL_ONLY
    ]


def defaults(
    function: Callable[..., Any], calls: Sequence[Call], constants: Iterable[float], known: Iterable[str] = ()
) -> Iterator[Conditions]:
    """Other numbers and flags for parameters that the script leaves at their defaults, one at a time.

    Args:
        known: texts of the code: a function that takes any keyword may ask for those.
    """
    limits = _limits(calls, constants)
    parameters = list(inspect.signature(function).parameters.values())
    for parameter in at_default(function, calls[0]):
        told = (*known, TEXT) if type(parameter.default) is str else others(parameter.default, limits)
        for other in told:
            name = f"argument {parameter.name} = {other!r}"
            yield Conditions(name, calls=partial(with_argument, parameter.name, other))
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        taken = {parameter.name for parameter in parameters}
        for name in [text for text in known if text not in taken and text not in calls[0][1]]:
            for value in (_KEYWORD, True):
                yield Conditions(f"argument {name} = {value!r}", calls=partial(with_argument, name, value))


def left_out(function: Callable[..., Any], calls: Sequence[Call]) -> dict[str, int | str]:
    """Parameters that are None in the first call and by default: their names, and where to give them."""
    args, kwargs = calls[0]
    parameters = inspect.signature(function).parameters.values()
    return {
        parameter.name: number if number < len(args) else parameter.name
        for number, parameter in enumerate(parameters)
        if parameter.default is None
        and parameter.kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        and (args[number] if number < len(args) else kwargs.get(parameter.name)) is None
    }


def given(name: str, key: int | str, tensor: torch.Tensor) -> Iterator[Conditions]:
    """A tensor for an argument that is None: one that the function made for it itself, and like ones."""
    likes: list[tuple[str, Fill | None]] = [("as the function makes it", None)]
    likes += [(f"filled with {value}", partial(_held, value)) for value in (0, 1, -1, _LARGE)]
    for text, fill in likes:
        yield Conditions(f"argument {name} {text}", calls=partial(_with_tensor, key, tensor, fill))


def _with_tensor(
    key: int | str, tensor: torch.Tensor, fill: Fill | None, calls: Sequence[Call]
) -> Sequence[Call]:
    copy = tensor.clone()
    if fill is not None:
        fill(copy)
    return with_argument(key, copy, calls)


def _held(value: int, tensor: torch.Tensor) -> None:
    """Fill a tensor with a number, or with the nearest one that its dtype holds."""
    if tensor.dtype is torch.bool or tensor.is_complex():
        tensor.fill_(bool(value))
        return
    limits = (torch.finfo if tensor.is_floating_point() else torch.iinfo)(tensor.dtype)
    tensor.fill_(max(limits.min, min(limits.max, value)))


def to(dtype: torch.dtype) -> Callable[[torch.Tensor], torch.Tensor]:
    """A change of memory: a copy, floating values in a dtype."""
    return lambda memory: memory.to(dtype, copy=True) if memory.is_floating_point() else memory.clone()


# ---- values ----


def _each(fill: Fill, given: list[torch.Tensor]) -> None:
    for tensor in given:
        write(fill, tensor)


def _only(index: int, fill: Fill, given: list[torch.Tensor]) -> None:
    if index < len(given):
        write(fill, given[index])


def write(fill: Fill, tensor: torch.Tensor) -> None:
    """Give a copy of a tensor other values, wherever it is in a graph; complex ones stay as they are."""
    if tensor.numel() and not tensor.is_complex():
        # An expanded dimension is one element in memory, and can be written as such only.
        shape = [1 if not step else size for size, step in zip(tensor.shape, tensor.stride(), strict=True)]
        # Not through .data or detach(): an inner tensor of a graph keeps its place in it.
        fill(
            torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(
                tensor.untyped_storage(), tensor.storage_offset(), shape, tensor.stride()
            )
        )


def _constant(value: float, tensor: torch.Tensor) -> None:
    if tensor.dtype is torch.bool:
        tensor.fill_(bool(value))
    elif tensor.is_floating_point():
        tensor.fill_(_within(value, tensor))
    elif abs(value) < 127:
        tensor.fill_(max(int(value), 0) if tensor.dtype is torch.uint8 else int(value))


def _count(value: float, tensor: torch.Tensor) -> None:
    """A number in what counts: whole numbers as large as their dtype allows."""
    if tensor.is_floating_point() or tensor.dtype is torch.bool:
        _constant(value, tensor)
    elif value == int(value) and torch.iinfo(tensor.dtype).min <= value <= torch.iinfo(tensor.dtype).max:
        tensor.fill_(int(value))


def _within(value: float, tensor: torch.Tensor) -> float:
    """A number as the tensor's dtype can hold it: torch raises for one that is too large."""
    largest = torch.finfo(tensor.dtype).max
    return max(-largest, min(largest, value)) if math.isfinite(value) else value


def _one_element(value: float, tensor: torch.Tensor) -> None:
    if tensor.is_floating_point():
        tensor[tuple(size // 2 for size in tensor.shape)] = _within(value, tensor)


def _some_elements(value: float, tensor: torch.Tensor) -> None:
    """In about a quarter of them: what is left out of a sum may stand anywhere."""
    if tensor.is_floating_point():
        drawn = torch.rand(tensor.shape, generator=torch.Generator().manual_seed(0), device="cpu")
        tensor[(drawn < 0.25).to(tensor.device)] = value


def _unfinite(tensor: torch.Tensor) -> None:
    """NaN, infinity of both signs and a number in turn: what is done where one is may change the others."""
    if tensor.is_floating_point():
        turn = torch.arange(tensor.numel(), device=tensor.device).reshape(tensor.shape) % 4
        for at, value in enumerate((math.nan, math.inf, -math.inf)):
            tensor[turn == at] = value


def _scaled(factor: float, tensor: torch.Tensor) -> None:
    if tensor.is_floating_point():
        tensor.mul_(factor)
    elif tensor.dtype is torch.bool:
        if factor < 0:
            tensor.logical_not_()
    elif factor > 1 and tensor.dtype in (torch.int32, torch.int64):
        tensor.mul_(int(factor))


def _signed(sign: float, tensor: torch.Tensor) -> None:
    if tensor.is_floating_point():
        tensor.abs_().mul_(sign)


def _extreme(which: str, tensor: torch.Tensor) -> None:
    if tensor.is_floating_point():
        tensor.fill_(getattr(torch.finfo(tensor.dtype), which))
    elif tensor.dtype in (torch.uint8, torch.int8):  # wider ones may be sizes, and fill the memory
        limits = torch.iinfo(tensor.dtype)
        tensor.fill_(limits.max if which == "max" else limits.min)


def _noise(scale: float, seed: int, tensor: torch.Tensor) -> None:
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(tensor.shape, generator=generator, device="cpu")
    if tensor.is_floating_point():
        tensor.copy_(noise * scale)
    elif tensor.dtype is torch.bool:
        tensor.copy_(noise > 0)
    else:
        order = torch.randperm(tensor.numel(), generator=generator, device="cpu").to(tensor.device)
        tensor.copy_(tensor.flatten()[order].reshape(tensor.shape))


def _few(values: int, seed: int, tensor: torch.Tensor) -> None:
    """Whole numbers around zero, so few that most are there more than once."""
    if tensor.is_floating_point():
        generator = torch.Generator().manual_seed(seed)
        tensor.copy_(torch.randint(values, tensor.shape, generator=generator, device="cpu") - values // 2)
    else:
        _noise(1.0, seed, tensor)


def _whole(change: Fill) -> Fill:
    """A fill that leaves all but whole numbers as they are."""
    return lambda tensor: change(tensor) if is_whole(tensor) else None


def _drawn(seed: int, low: int, tensor: torch.Tensor) -> None:
    """From 0, or from its negative, up to a little more than the largest."""
    most = min(int(tensor.long().abs().max()) + 2, torch.iinfo(tensor.dtype).max)
    generator = torch.Generator().manual_seed(seed)
    tensor.copy_(torch.randint(low * most, most + 1, tensor.shape, generator=generator, device="cpu"))


def _repeated(tensor: torch.Tensor) -> None:
    picked = torch.randint(
        min(2, tensor.numel()), tensor.shape, generator=torch.Generator().manual_seed(0), device="cpu"
    )
    tensor.copy_(tensor.flatten()[picked.to(tensor.device)])


def _large(tensor: torch.Tensor) -> None:
    """Two such numbers multiplied overflow; as sizes they fill no memory."""
    if tensor.dtype in (torch.int8, torch.int16):
        tensor.fill_(torch.iinfo(tensor.dtype).max)
    elif tensor.dtype is torch.int32:
        tensor.abs_().add_(1).mul_(50_000)


def _huge(value: int, tensor: torch.Tensor) -> None:
    """One number that no smaller dtype holds: as a size torch refuses it before it asks for memory."""
    if tensor.dtype is torch.int64:
        tensor[tuple(size // 2 for size in tensor.shape)] = value


_WHOLE: tuple[tuple[str, Fill], ...] = (
    *((f"other whole numbers, {seed}", _whole(partial(_drawn, seed, 0))) for seed in range(2)),
    ("two of the whole numbers, repeated", _whole(_repeated)),
    ("large whole numbers", _whole(_large)),
    ("a huge whole number", _whole(partial(_huge, 2**62 + 3))),
)
_NEGATIVE: tuple[tuple[str, Fill], ...] = (
    ("a huge negative number", _whole(partial(_huge, -(2**62) - 2**61 - 3))),
    ("signs of whole numbers flipped", _whole(lambda tensor: tensor.mul_(-1))),
    *((f"whole numbers of either sign, {seed}", _whole(partial(_drawn, seed, -1))) for seed in range(2)),
)
_EDGES: tuple[tuple[str, Fill], ...] = (
    ("random values", partial(_noise, 1.0, 0)),
    ("random values times 30", partial(_noise, 30.0, 1)),
    ("zeros", partial(_constant, 0.0)),
    ("negative zeros", partial(_constant, -0.0)),
    ("signs flipped", partial(_scaled, -1.0)),
    ("positive", partial(_signed, 1.0)),
    ("negative", partial(_signed, -1.0)),
    ("times 1e4", partial(_scaled, 1e4)),
    ("times 1e-6", partial(_scaled, 1e-6)),
    ("NaN in one element", partial(_one_element, float("nan"))),
    ("inf in one element", partial(_one_element, float("inf"))),
    ("-inf in one element", partial(_one_element, float("-inf"))),
    ("NaN in some elements", partial(_some_elements, float("nan"))),
    ("inf in some elements", partial(_some_elements, float("inf"))),
    ("NaN beside inf and -inf", _unfinite),
    ("NaN everywhere", partial(_constant, float("nan"))),
    ("inf everywhere", partial(_constant, float("inf"))),
    ("-inf everywhere", partial(_constant, float("-inf"))),
    ("largest finite values", partial(_extreme, "max")),
    ("smallest normal values", partial(_extreme, "tiny")),
    ("ones", partial(_constant, 1.0)),
    ("minus ones", partial(_constant, -1.0)),
    ("random values, small", partial(_noise, 1e-3, 2)),
    *(
        (f"{count} values, {seed}", partial(_few, count, seed))
        for count, seed in ((5, 3), (3, 4), (2, 5), (3, 6))
    ),
)
_ALONE_TOO = {
    *("random values", "zeros", "signs flipped", "times 1e4", "positive", "negative", "ones"),
    *("largest finite values", "NaN in one element", "inf in one element"),
    *("NaN in some elements", "inf in some elements"),
}
_ALONE = tuple(pair for pair in _EDGES if pair[0] in _ALONE_TOO)


_STATES = tuple(
    pair
    for pair in _EDGES
    if pair[0] in ("inf in one element", "largest finite values", "signs flipped", "zeros", "times 1e4")
    or pair[0] == "minus ones"
)


def _around(constants: Iterable[float]) -> Iterator[tuple[str, Fill]]:
    """The numbers in the code, and what lies beside them."""
    for constant in constants:
        for name, value in (
            (constant, constant),
            ("above", constant * 1.5 + 1),
            ("below", constant * 0.5 - 1),
        ):
            label = f"all {value:g}" if name is constant else f"all {value:g}, {name} {constant:g}"
            yield label, partial(_constant, value)


def _beside(constants: Iterable[float]) -> Iterator[tuple[str, Fill]]:
    """One element at a number of the code, or beyond it, among others: two conditions at once."""
    constants = tuple(constants)
    for value in constants:
        yield f"{value:g} among zeros", partial(_odd_one, value, 0.0)
    odd = [v for c in constants for v in (c * 1.5 + 1, c * 0.5 - 1, -c * 1.5 - 1)]
    for value in dict.fromkeys((*odd, 1e4, -1e4)):
        for rest in (2e4, -2e4, 1e-2):
            yield f"{value:g} among {rest:g}", partial(_odd_one, value, rest)


def _odd_one(value: float, rest: float, tensor: torch.Tensor) -> None:
    if tensor.is_floating_point():
        tensor.fill_(_within(rest, tensor))
        _one_element(value, tensor)


def _wild(seed: int, tensor: torch.Tensor) -> None:
    if tensor.is_floating_point():
        generator = torch.Generator().manual_seed(seed)
        power = torch.rand(tensor.shape, generator=generator, device="cpu") * 8 - 3
        lean = 0.1 + 0.1 * seed  # from mostly positive to mostly negative
        sign = torch.where(torch.rand(tensor.shape, generator=generator, device="cpu") < lean, -1.0, 1.0)
        tensor.copy_(sign * 10.0**power)
    else:
        _noise(1.0, seed, tensor)


# ---- arguments ----


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in arguments, in order; also those in objects of the user's, each object once."""
    return _tensors(value, set(), 0)


def _tensors(value: Any, seen: set[int], depth: int) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _tensors(item, seen, depth)
    elif depth < _DEEPEST and _is_record(value) and id(value) not in seen:
        seen.add(id(value))
        for holder in reach.holders(value):
            for _, item in holder.read():
                yield from _tensors(item, seen, depth + 1)


def _is_record(value: Any) -> bool:
    """Whether it is an object that holds things and is no module: a batch, a state, a dict of one's own."""
    if isinstance(value, dict | list | types.SimpleNamespace):
        return True
    # A class of Python's or torch's looks after its own state, and what can be called is code.
    strange = reach.foreign(type(value).__module__) or callable(value) or hasattr(value, "__next__")
    return not (strange or reach.is_atom(value))


def rebuilt(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Arguments with other tensors: built-in containers are built again, everything else stays itself."""
    if isinstance(value, torch.Tensor):
        return change(value)
    return _mapped(lambda item: rebuilt(item, change), value)


def in_place_of(
    function: Callable[..., Any],
    at: int,
    other: Callable[[Call, Sequence[torch.Tensor]], torch.Tensor],
    calls: Sequence[Call],
) -> Sequence[Call]:
    """Calls in a test with another tensor in the place of one.

    Args:
        other: which, of a call and the tensors that it gets.
    """
    same: dict[int, torch.Tensor] = {}
    for call in calls:
        there = list(tensors(without_self(function, call)))
        if len(there) > at:
            same[id(there[at])] = other(call, there)
    return changed(function, calls, lambda tensor: same.get(id(tensor), tensor))


def changed(
    function: Callable[..., Any], calls: Sequence[Call], change: Callable[[torch.Tensor], torch.Tensor]
) -> Sequence[Call]:
    """Calls in a test with other tensors, also in objects of the user's, which stay themselves.

    Those get their own tensors back with the world. The object whose method is called is left as it is: what
    it holds goes with numbers that it holds.
    """
    seen: set[int] = {id(call[0][0]) for call in calls if call[0] and is_method(function)}

    def made(depth: int, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return change(value)
        if type(value) in (dict, list) or isinstance(value, tuple):
            return _mapped(partial(made, depth), value)
        if depth < _DEEPEST and _is_record(value) and id(value) not in seen:
            seen.add(id(value))
            for holder in reach.holders(value):
                content = holder.read()
                other = [(label, made(depth + 1, item)) for label, item in content]
                if any(one is not was for (_, one), (_, was) in zip(other, content, strict=True)):
                    holder.write(other)
        return value

    return [made(0, call) for call in calls]


def is_method(function: Callable[..., Any]) -> bool:
    """Whether its first argument is the object that it belongs to."""
    return next(iter(inspect.signature(inspect.unwrap(function)).parameters), "") == "self"


def without_self(function: Callable[..., Any], call: Call) -> Call:
    """A call without the object that its method belongs to."""
    args, kwargs = call
    return (args[1:], kwargs) if is_method(function) else call


def stretched(tensor: torch.Tensor, dimension: int, size: int) -> torch.Tensor:
    """A tensor whose dimension has another size: its parts from the first on again, or fewer of them."""
    index = torch.arange(size, device=tensor.device) % tensor.shape[dimension]
    return tensor.index_select(dimension, index)


def resized(
    function: Callable[..., Any],
    size: int,
    other: int,
    calls: Sequence[Call],
    place: int | None = None,
    only: Collection[int] | None = None,
) -> Sequence[Call]:
    """Calls in which every dimension of one size has another.

    Args:
        place: that dimension alone. only: in these tensors of each call alone, by their places.
    """
    wanted = {
        id(tensor)
        for call in calls
        for at, tensor in enumerate(tensors(without_self(function, call)))
        if only is None or at in only
    }

    def change(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in wanted:
            return tensor
        for dimension, length in enumerate(tensor.shape):
            if length == size and place in (None, dimension):
                tensor = stretched(tensor, dimension, other)
        return tensor

    return changed(function, calls, change)


def _limits(calls: Sequence[Call], constants: Iterable[float]) -> list[float]:
    """Numbers at which a function may do something else: those of its code, and sizes of what it gets."""
    sizes = dict.fromkeys(size for tensor in tensors(calls[0]) for size in tensor.shape)
    return [*constants, *list(sizes)[:_MOST_SIZES]]


def others(value: Any, limits: Collection[float] = ()) -> Iterator[Any]:
    """Other numbers in place of one, also at the limits and beyond them; the other flag for a flag."""
    if isinstance(value, bool):
        yield not value
    if type(value) not in (int, float):
        return
    whole = isinstance(value, int)
    # A whole number may be a size: a larger one could fill the memory.
    within = {one for one in limits if not whole or abs(one) <= _LARGE}
    known = sorted(within, key=abs, reverse=True)[:_MOST_LIMITS]
    beside = [step for one in known for step in (one, one + 1)]
    wanted = [value + 1, 0, _THOUSAND, *beside] if whole else [value * 2 + 1, -value, 0.0, *beside]
    made = [int(one) if whole else float(one) for one in wanted if not whole or float(one).is_integer()]
    yield from (candidate for candidate in dict.fromkeys(made) if candidate != value)


def odd_numbers(value: Any) -> Iterator[tuple[str, Any]]:
    """Numbers of another kind than one that the script has, by the limit that a difference there would be."""
    if type(value) is bool:
        yield "with a number for a flag", 2 * value
    elif type(value) is int:
        yield from (("with a negative number", other) for other in (-value or -1, -value - 1))
        yield "with a negative number", -100 - abs(value)
        yield "with a fraction for a whole number", value + 0.5
    elif type(value) is float:
        yield from (("with a number that is not finite", other) for other in (math.inf, math.nan))
        yield "with a whole number for a fraction", round(value) if math.isfinite(value) else 1


def with_argument(key: int | str, other: Any, calls: Sequence[Call]) -> Sequence[Call]:
    """Calls with another value for one argument."""
    changed = []
    for args, kwargs in calls:
        if isinstance(key, str):
            changed.append((args, {**kwargs, key: other}))
        else:
            changed.append(((*args[:key], other, *args[key + 1 :]), kwargs))
    return changed
