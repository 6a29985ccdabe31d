"""Inputs of another kind than the script's: what the forms do on them says how far a proof reaches.

A rewrite relies on what the recorded run saw: that a tensor is one, its dtype, its number of dimensions.
Where the old form takes such an input too and the new one does something else, the rewrite is right for the
script and has a limit, which is told.
"""

from __future__ import annotations

import copy
import inspect
import itertools
import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from breakscope.inside.prove import inputs
from breakscope.inside.prove.attempt import Call, Conditions
from breakscope.inside.prove.world import World

_MOST_ALONE = 4
_WRITES = {"debug", "info", "warning", "warn", "error", "critical", "exception", "log"}
_HOOK = -1  # no handle of torch's has this number
_Change = Callable[[torch.Tensor], torch.Tensor]


def beyond(
    function: Callable[..., Any], calls: Sequence[Call], names: Collection[str]
) -> Iterator[Conditions]:
    """Calls of another kind, each with the limit that a difference there would be (``Conditions.beyond``).

    With the script's values, then with others, because a difference may show in one branch only.

    Args:
        names: that the forms mention.
    """
    for name, fill in (("", None), ("signs flipped, ", "signs flipped"), ("zeros, ", "zeros")):
        for kind in _kinds(function, calls):
            yield kind if fill is None else replace(kind, name=name + kind.name, mutate=inputs.filled(fill))
    yield from inputs.uneven(function, calls)
    yield from _around(names)


def _kinds(function: Callable[..., Any], calls: Sequence[Call]) -> Iterator[Conditions]:
    tensors = list(inputs.tensors(inputs.without_self(function, calls[0])))
    changes: list[tuple[str, str, _Change]] = [
        ("with another number of dimensions", "one dimension fewer", _fewer),
        ("with another number of dimensions", "one dimension more", _more),
        ("with other strides", "transposed in memory", _transposed),
        ("in other dtypes", "int64", partial(_cast, torch.int64)),
        ("in other dtypes", "bool", partial(_cast, torch.bool)),
        ("in other dtypes", "complex64", partial(_cast, torch.complex64)),
    ]
    if any(tensor.dtype is torch.bool for tensor in tensors):
        changes.append(("in other dtypes", "of bool int64", _counted))
    if any(inputs.is_whole(tensor) for tensor in tensors):
        changes.append(("in other dtypes", "of whole numbers float32", _fractional))
    for limit, name, change in changes:
        yield Conditions(
            f"all tensors {name}", calls=partial(inputs.changed, function, change=change), beyond=limit
        )
    alike = [
        pair
        for pair in itertools.combinations(range(min(len(tensors), _MOST_ALONE)), 2)
        if _layout(tensors[pair[0]]) == _layout(tensors[pair[1]])
    ]
    for first, second in alike:
        name, limit = f"input {second + 1} is input {first + 1}", "with one tensor in two places"
        made = partial(inputs.in_place_of, function, second, partial(_given, first))
        yield Conditions(name, calls=made, beyond=limit)
    for text, more in (("a key more", True), ("a key fewer", False)):
        if any(isinstance(value, dict) and value for value in _arguments(calls[0])):
            limit = "with other keys in a dict"
            yield Conditions(f"dicts with {text}", calls=partial(_rekeyed, more), beyond=limit)
    if any(type(value) in (list, tuple) and value for value in _arguments(calls[0])):
        limit = "with a tuple for a list, or a list for a tuple"
        yield Conditions("lists as tuples, and tuples as lists", calls=_swapped_kinds, beyond=limit)
    for key, name, other in _omitted(function, calls[0]):
        yield Conditions(
            f"{name} = None", calls=partial(inputs.with_argument, key, other), beyond="without it"
        )
    yield from _odd_numbers(calls[0])
    yield Conditions(
        "gradients of gradients", gradients=True, twice=True, beyond="with gradients of gradients"
    )
    inferred = partial(_inferred, function)
    yield Conditions("all tensors made in inference mode", calls=inferred, beyond="with inference tensors")
    yield from _modes(tensors)
    for index, tensor in enumerate(tensors[:_MOST_ALONE]):
        for limit, name, alone in _of_one(tensor):
            if len(tensors) > 1 or limit == "with a number":
                made = partial(_one, function, index, alone)
                yield Conditions(f"input {index + 1} alone {name}", calls=made, beyond=limit)


def _around(names: Collection[str]) -> Iterator[Conditions]:
    """The script's calls, with somebody around who is not there in the script."""
    yield Conditions(
        "every module with a forward hook",
        prepare=_hook,
        beyond="with forward hooks that change what modules return",
    )
    if not _WRITES.isdisjoint(names):
        yield Conditions(
            "loggers of every level", mode=_all_levels, beyond="with loggers that are enabled", words=True
        )


def _hook(world: World) -> None:
    for holder, _ in world.content:
        if isinstance(holder.owner, torch.nn.Module):
            holder.owner._forward_hooks[_HOOK] = _doubled


def _doubled(_module: torch.nn.Module, _given: Any, result: Any) -> Any:
    return result * 2 if isinstance(result, torch.Tensor) and result.is_floating_point() else result


@contextmanager
def _all_levels() -> Iterator[None]:
    real = logging.Logger.isEnabledFor
    logging.Logger.isEnabledFor = lambda *_: True  # type: ignore[method-assign]
    try:
        yield
    finally:
        logging.Logger.isEnabledFor = real  # type: ignore[method-assign]


def _of_one(tensor: torch.Tensor) -> Iterator[tuple[str, str, Callable[[torch.Tensor], Any]]]:
    if tensor.numel() == 1:
        yield "with a number", "as a Python number", torch.Tensor.item
    if tensor.dim():
        yield "with sizes that broadcast", "of size 1", _of_size_one
    if tensor.dim() > 1:
        yield "with other strides", "transposed in memory", _transposed
    if tensor.is_floating_point():
        other = torch.float32 if tensor.dtype is torch.float64 else torch.float64
        yield "in other dtypes", f"in {str(other).removeprefix('torch.')}", partial(_cast, other)
        yield "in other dtypes", "in int64", partial(_cast, torch.int64)
        yield "in other dtypes", "in complex64", partial(_cast, torch.complex64)
    elif tensor.dtype is torch.bool:
        yield "in other dtypes", "in int64", partial(_to, torch.int64)


def _modes(tensors: Sequence[torch.Tensor]) -> Iterator[Conditions]:
    device = next((tensor.device.type for tensor in tensors), "cpu")
    low = torch.bfloat16 if device == "cpu" else torch.float16
    modes: list[tuple[str, Callable[[], AbstractContextManager[Any]]]] = [
        ("inference mode", torch.inference_mode),
        ("no_grad", torch.no_grad),
        ("another default dtype", _other_default_dtype),
    ]
    if device in ("cpu", "cuda") and not torch.is_autocast_enabled(device):
        modes.append(("autocast", partial(torch.autocast, device, low)))
    for name, mode in modes:
        yield Conditions(name, mode=mode, beyond=f"under {name}")


@contextmanager
def _other_default_dtype() -> Iterator[None]:
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32 if usual is torch.float64 else torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(usual)


def _odd_numbers(call: Call) -> Iterator[Conditions]:
    for key, value in inputs.arguments(call):
        for limit, other in inputs.odd_numbers(value):
            name = f"argument {inputs.named(key)} = {other!r}"
            yield Conditions(name, calls=partial(inputs.with_argument, key, other), beyond=limit)


def _omitted(function: Callable[..., Any], call: Call) -> Iterator[tuple[int | str, str, None]]:
    """Arguments that were given although their default is None."""
    args, kwargs = call
    parameters = list(inspect.signature(inspect.unwrap(function)).parameters.values())
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    for index, parameter in enumerate(parameters):
        if parameter.default is not None:
            continue
        if index < len(args) and parameter.kind in plain and args[index] is not None:
            yield index, parameter.name, None
        elif kwargs.get(parameter.name) is not None:
            yield parameter.name, parameter.name, None


def _one(function: Callable[..., Any], index: int, change: _Change, calls: Sequence[Call]) -> Sequence[Call]:
    """Another value in the place of one tensor of each call."""
    there = [list(inputs.tensors(inputs.without_self(function, call))) for call in calls]
    wanted = {id(one[index]) for one in there if len(one) > index}
    return inputs.changed(function, calls, lambda tensor: change(tensor) if id(tensor) in wanted else tensor)


def _arguments(call: Call) -> list[Any]:
    args, kwargs = call
    return [*args, *kwargs.values()]


def _layout(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.dtype, tensor.shape, tensor.device, tensor.requires_grad


def _given(at: int, _call: Call, there: Sequence[torch.Tensor]) -> torch.Tensor:
    return there[at]


def _swapped_kinds(calls: Sequence[Call]) -> Sequence[Call]:
    def made(value: Any) -> Any:
        return tuple(value) if type(value) is list else list(value) if type(value) is tuple else value

    return inputs.each_argument(made, calls)


def _rekeyed(more: bool, calls: Sequence[Call]) -> Sequence[Call]:
    """Dicts among the arguments with a key more, or without their last one."""

    def made(value: Any) -> Any:
        if not isinstance(value, dict) or not value:
            return value
        copied = copy.copy(value)
        *_, (key, last) = value.items()
        with suppress(Exception):  # one of a library's own may have the keys that it has
            if more and isinstance(key, str):
                copied[f"{key}_"] = last.detach().clone() if isinstance(last, torch.Tensor) else last
            else:
                del copied[key]
        return copied

    return inputs.each_argument(made, calls)


def _inferred(function: Callable[..., Any], calls: Sequence[Call]) -> Sequence[Call]:
    with torch.inference_mode():
        return inputs.changed(function, calls, torch.clone)


def _fewer(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach()[0].clone() if tensor.dim() and tensor.shape[0] else tensor


def _more(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach()[None].clone()


def _transposed(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().mT.contiguous().mT if tensor.dim() > 1 else tensor


def _of_size_one(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach()[(slice(0, 1),) * tensor.dim()].clone()


def _cast(dtype: torch.dtype, tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().to(dtype) if tensor.is_floating_point() else tensor


def _counted(tensor: torch.Tensor) -> torch.Tensor:
    """A mask that counts: more than one where it is true, and below zero in every second place."""
    if tensor.dtype is not torch.bool:
        return tensor
    places = torch.arange(tensor.numel(), device=tensor.device).reshape(tensor.shape)
    return tensor * (3 - 6 * (places % 2))


def _fractional(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.float32) + 0.5 if inputs.is_whole(tensor) else tensor


def _to(dtype: torch.dtype, tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().to(dtype)
