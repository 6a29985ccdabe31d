"""Arguments that are neither tensors nor numbers, and how they could come otherwise: of a patch by anybody.

A dtype, a slice, a member of an enum, a set, a dict that lacks a key: a script gives one of each, and a form
that has that one written out agrees with the old one on every call of the script.
"""

from __future__ import annotations

import enum
import inspect
import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any

import torch

from breakscope.inside.prove import inputs
from breakscope.inside.prove.attempt import Call, Conditions

_MOST = 4  # others of one argument
_MOST_TEXTS = 6
_SIZE = 10_000  # above every size
_HUGE = 200_000  # none that a test has memory for, but as many steps as training has
_FLOATS = (torch.float16, torch.float64, torch.bfloat16)
_WHOLE = (torch.int32, torch.int64, torch.uint8)


def others(
    function: Callable[..., Any],
    calls: Sequence[Call],
    constants: Collection[float],
    texts: Collection[str],
) -> Iterator[Conditions]:
    """Other arguments of these kinds, one at a time.

    Args:
        constants: numbers of the code; texts: and texts: keys that it asks for, parts that it looks for.
    """
    for key, value in inputs.arguments(calls[0]) if calls else ():
        for limit, other in itertools.chain(
            _of_torch(value),
            _of_python(value),
            _of_dict(value, texts),
            _of_text(value, texts),
            (("", other) for other in huge(value, constants)),
        ):
            name = f"argument {inputs.named(key)} = {other!r}"
            yield Conditions(name[:120], calls=_given(key, other), beyond=limit)
    yield from _flags(function, calls)


def never_given(function: Callable[..., Any], calls: Sequence[Call]) -> list[str]:
    """The parameters that are None at every call of the script, given or left out."""
    try:
        signature = inspect.signature(function)
        bound = [signature.bind(*args, **kwargs) for args, kwargs in calls]
    except (TypeError, ValueError):
        return []
    for one in bound:
        one.apply_defaults()
    names = bound[0].arguments if bound else {}
    return [name for name in names if all(one.arguments.get(name, 0) is None for one in bound)]


def _given(key: int | str, other: Any) -> Callable[[Sequence[Call]], Sequence[Call]]:
    return lambda calls: inputs.with_argument(key, other, calls)


def _of_torch(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, torch.dtype):
        kinds = _FLOATS if value.is_floating_point else _WHOLE
        yield from (("", one) for one in kinds if one is not value)


def _of_python(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, enum.Enum):
        yield from (("", one) for one in list(type(value))[:_MOST] if one is not value)
    elif isinstance(value, slice):
        for other in (
            slice(value.start, value.stop, 2),
            slice(-2, None),
            slice(None, -1),
            slice(None),
            slice(1, 1),
        ):
            yield "with another slice", other
    elif type(value) in (set, frozenset) and all(type(one) is int for one in value):
        between = range(min(value, default=0) + 1, max(value, default=0))
        for more in (between, (max(value, default=0) + 2,)):
            yield "with another set", type(value)({*value, *list(more)[:1]})
        yield "with another set", type(value)(sorted(value)[:1])


def _of_dict(value: Any, texts: Collection[str]) -> Iterator[tuple[str, Any]]:
    """A key more that the code may ask for, with a value as others have; one text in place of another."""
    if type(value) is not dict:
        return
    alike = next((one for one in value.values() if type(one) in (int, float, str, bool)), None)
    for text in list(texts)[:_MOST_TEXTS] if alike is not None else ():
        if text not in value:
            other = next(iter(inputs.others(alike)), inputs.TEXT)
            yield "", {**value, text: other}
    for key, held in value.items():
        if type(held) in (list, tuple) and len(set(held)) > 1 and all(type(one) is str for one in held):
            yield "", {**value, key: type(held)(held[::-1])}
            yield "", {**value, key: type(held)([held[0]] * len(held))}


def _of_text(value: Any, texts: Collection[str]) -> Iterator[tuple[str, Any]]:
    """A text that has what the code looks for twice, in the middle or at its end; and letters of others."""
    if type(value) is not str:
        return
    parts = [one for one in dict.fromkeys((*texts, ".", " ")) if one and len(one) <= len(value) + 8]
    for part in parts[:_MOST_TEXTS]:
        yield "", f"{value}{part}{value}{part}{value}"
    yield "", f"{value}  {value} "
    yield "", f"é{value}é"


def huge(value: Any, constants: Collection[float]) -> Iterator[int]:
    """Numbers of the code that are too large for sizes: those that steps are counted by."""
    if type(value) is int:
        large = [int(one) for one in constants if _SIZE < one <= _HUGE and one == int(one)]
        yield from (other for one in large[:_MOST] for other in (one, one + one // 2))


def _flags(function: Callable[..., Any], calls: Sequence[Call]) -> Iterator[Conditions]:
    """All flags at once, on and off, also those that are left out: pairs of them are tried elsewhere."""
    keys: list[int | str] = [key for key, value in inputs.arguments(calls[0]) if type(value) is bool]
    keys += [one.name for one in inputs.at_default(function, calls[0]) if type(one.default) is bool]
    for flag in (True, False) if len(keys) > 2 else ():
        yield Conditions(f"all flags {flag}", calls=partial(_all, keys, flag))


def _all(keys: Sequence[int | str], flag: bool, calls: Sequence[Call]) -> Sequence[Call]:
    for key in keys:
        calls = inputs.with_argument(key, flag, calls)
    return calls
