"""Inputs on which only what is wrong in a rare way shows itself: of a patch by anybody.

Layouts that views have, and values at which float32 and Python's doubles, or two ways to count, part.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import torch

from breakscope.inside.prove import inputs
from breakscope.inside.prove.attempt import Call, Conditions

_MOST = 3  # tensors, and numbers of the code
# Elements in front of a tensor in its memory: on another alignment kernels round otherwise.
_BEHIND = 64
_STRIDES, _OFFSET = "with other strides", "with tensors that begin anywhere in memory"
_EXACT = 2**24  # the first whole number after which float32 leaves some out


def laid_out(function: Callable[..., Any]) -> Iterator[Conditions]:
    """The script's values in other places: behind others in memory, expanded, conjugated lazily."""
    for name, change, limit in (
        ("behind others in memory", _behind, ""),
        ("expanded from their first", _expanded, "with tensors that are expanded"),
        ("conjugated lazily", _conjugated, "with complex tensors that are conjugated lazily"),
        # What is rounded may hang on where it begins; what is not must not.
        ("of whole numbers behind one other in memory", _behind_one_whole, ""),
        ("behind one other in memory", _behind_one, _OFFSET),
        ("with their second dimension last in memory", partial(_last_in_memory, 1), _STRIDES),
        ("with their first dimension last in memory", partial(_last_in_memory, 0), _STRIDES),
        ("in every second place of memory", _spread, _STRIDES),
    ):
        made = partial(inputs.changed, function, change=change)
        yield Conditions(f"all tensors {name}", calls=made, beyond=limit)


# A permutation of seven, and what is none and has its sum and its sum of squares: 0, 4, 5 against 1, 2, 6.
_PERMUTED = ((3, 0, 4, 6, 5, 1, 2), (3, 1, 1, 6, 6, 2, 2))


def alike_in_sums(function: Callable[..., Any], given: Sequence[torch.Tensor]) -> Iterator[Conditions]:
    """Whole numbers whose sums say that they are a permutation: one that is, and one that is none."""
    rows = [at for at, tensor in enumerate(given) if tensor.dim() == 1 and inputs.is_whole(tensor)]
    if not rows:
        return
    # They become longer, and what is as long as they are does not.
    lengths = {given[at].shape[0] for at in rows}
    others = [tensor for at, tensor in enumerate(given) if at not in rows]
    alike = any(not lengths.isdisjoint(tensor.shape) for tensor in others)
    for name, numbers in zip(("a permutation", "sums as of a permutation"), _PERMUTED, strict=True):
        calls = partial(inputs.changed, function, change=partial(_numbered, numbers))
        yield Conditions(name, calls=calls, beyond=inputs.UNEVEN if alike else "")


def _numbered(numbers: Sequence[int], tensor: torch.Tensor) -> torch.Tensor:
    is_row = tensor.dim() == 1 and inputs.is_whole(tensor)
    return tensor.new_tensor(numbers) if is_row else tensor


def kept_too(function: Callable[..., Any], call: Call) -> Iterator[Conditions]:
    """A tensor that the module keeps whose method is called, in the place of one that the call gets."""
    given, kept = list(inputs.tensors(inputs.without_self(function, call))), _kept(function, call)
    pairs = [
        (at, which)
        for at, tensor in enumerate(given)
        for which, one in enumerate(kept)
        if (one.shape, one.dtype, one.device) == (tensor.shape, tensor.dtype, tensor.device)
    ]
    for at, which in pairs[:_MOST]:
        yield Conditions(
            f"input {at + 1} is what the module keeps",
            mutate=inputs.filled("random values"),
            of_modules=True,
            calls=partial(inputs.in_place_of, function, at, partial(_kept_at, function, which)),
            beyond="with one tensor in two places",
        )


def _kept(function: Callable[..., Any], call: Call) -> list[torch.Tensor]:
    owner = call[0][0] if call[0] and inputs.is_method(function) else None
    return [*owner.parameters(), *owner.buffers()] if isinstance(owner, torch.nn.Module) else []


def _kept_at(
    function: Callable[..., Any], which: int, call: Call, _there: Sequence[torch.Tensor]
) -> torch.Tensor:
    return _kept(function, call)[which]


def _behind(tensor: torch.Tensor, count: int = _BEHIND) -> torch.Tensor:
    if not tensor.is_contiguous() or not tensor.dim():
        return tensor
    flat = tensor.detach().flatten()
    return torch.cat([flat.new_zeros(count), flat])[count:].view(tensor.shape)


def _behind_one(tensor: torch.Tensor) -> torch.Tensor:
    return _behind(tensor, 1)


def _behind_one_whole(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if tensor.is_floating_point() or tensor.is_complex() else _behind(tensor, 1)


def _last_in_memory(dimension: int, tensor: torch.Tensor) -> torch.Tensor:
    """As ``channels_last`` has it with the second; of two dimensions a transposed one has it so."""
    if tensor.dim() < 3:
        return tensor
    return (
        tensor.detach()
        .movedim(dimension, -1)
        .clone(memory_format=torch.contiguous_format)
        .movedim(-1, dimension)
    )


def _spread(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().repeat_interleave(2, -1)[..., ::2] if tensor.dim() else tensor


def _expanded(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach()[:1].clone().expand_as(tensor) if tensor.dim() else tensor


def _conjugated(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().conj().resolve_conj().conj() if tensor.is_complex() else tensor


def near_limits(given: Sequence[torch.Tensor], constants: Iterable[float]) -> Iterator[Conditions]:
    """Values that lie on a limit of the code only in one of two precisions."""
    told = sorted({abs(one) for one in constants if 0 < abs(one) < _EXACT}, key=lambda one: (one == 1, one))
    reals = [at for at, tensor in enumerate(given) if tensor.is_floating_point()][:_MOST]
    alike = [
        pair for pair in itertools.permutations(reals, 2) if given[pair[0]].shape == given[pair[1]].shape
    ]
    for number in told[:_MOST]:
        for at in reals if len(given) > 1 else ():
            name = f"{number:g} in input {at + 1}, and zeros"
            yield Conditions(name, mutate=partial(_alone, at, number))
        for one, other in alike:
            name = f"input {other + 1} is {number:g} times input {one + 1}"
            yield Conditions(name, mutate=partial(inputs.copied, one, other, number))
    for number in [one for one in told if one > 1 and one == int(one)][:_MOST]:
        yield Conditions(f"parts of {number:g}", mutate=partial(_parts, int(number)))
    if any(inputs.is_whole(tensor) for tensor in given):
        yield Conditions("neighbours behind 2 ** 24", mutate=_neighbours)


def _alone(at: int, number: float, given: list[torch.Tensor]) -> None:
    for index, tensor in enumerate(given):
        if tensor.is_floating_point():
            inputs.write(_copying(torch.full_like(tensor, number if index == at else 0.0)), tensor)


def _parts(number: int, given: list[torch.Tensor]) -> None:
    for tensor in given:
        if is_free(tensor) and tensor.is_floating_point():
            inputs.write(_copying(counted(tensor) % number / number), tensor)


def _neighbours(given: list[torch.Tensor]) -> None:
    for tensor in given:
        if is_free(tensor) and inputs.is_whole(tensor) and torch.iinfo(tensor.dtype).max > _EXACT:
            inputs.write(_copying(_EXACT + counted(tensor) % 2), tensor)


def _copying(values: torch.Tensor) -> inputs.Fill:
    return lambda free: free.copy_(values)


def counted(tensor: torch.Tensor) -> torch.Tensor:
    """The number of each element, in the tensor's shape."""
    return torch.arange(tensor.numel(), device=tensor.device).reshape(tensor.shape)


def is_free(tensor: torch.Tensor) -> bool:
    """Whether each element is one of its own."""
    return tensor.numel() > 0 and 0 not in tensor.stride()
