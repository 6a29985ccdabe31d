"""Trees of tensors and how far two tensors are apart: one answer for trials, benchmarks, tests and the proof.

Loaded in processes that have torch.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

_BITS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


def on_host(tensor: torch.Tensor) -> torch.Tensor:
    """A copy on the host. Strides belong to a result: ``clone`` keeps them, where a plain copy would not.

    One of a class of the user's becomes a plain tensor: its class cannot be loaded elsewhere.
    """
    with torch.no_grad():
        copied = tensor.detach().clone(memory_format=torch.preserve_format).cpu()
        return copied if _holds_others(copied) else copied.as_subclass(torch.Tensor)


def _holds_others(tensor: torch.Tensor) -> bool:
    """Whether a tensor is of a class that computes with tensors that it wraps."""
    return type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__


# Said of a tensor whose class keeps its values where nobody can look: equal to no other.
HIDDEN = "whose values cannot be seen"


def _held(tensor: torch.Tensor) -> tuple[str, ...] | None:
    """The names under which a tensor holds those that it computes with; None for one with its own values."""
    if not _holds_others(tensor):
        return None
    if hasattr(tensor, "__tensor_flatten__"):
        return tuple(tensor.__tensor_flatten__()[0])
    return tuple(name for name, value in vars(tensor).items() if isinstance(value, torch.Tensor))


def flatten(
    value: Any, path: str = "", take: Callable[[torch.Tensor], torch.Tensor] = on_host
) -> Iterator[tuple[str, Any]]:
    """The leaves of a result with their paths: tensors as copies on the host, all else as text.

    Args:
        take: what to make of a tensor instead of a copy.
    """
    if isinstance(value, torch.Tensor):
        held = _held(value) if take is on_host else None
        # A DTensor and its kin are not loaded elsewhere: their class, their shape, and what they hold.
        said = f"{type(value).__qualname__} {tuple(value.shape)}{'' if held else f', {HIDDEN}'}"
        yield path, take(value) if held is None else said
        for name in held or ():
            yield from flatten(getattr(value, name), f"{path}.{name}")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from flatten(item, f"{path}[{key!r}]", take)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from flatten(item, f"{path}[{index}]", take)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from flatten(getattr(value, field.name), f"{path}.{field.name}", take)
    elif isinstance(value, bool | int | float | complex | str | bytes | None):
        yield path, repr(value)
    else:
        # An object: its own attributes, so that a result class without fields is still compared.
        inside = vars(value) if hasattr(value, "__dict__") and not callable(value) else {}
        yield path, type(value).__qualname__
        for name, item in inside.items():
            if isinstance(item, torch.Tensor):
                yield from flatten(item, f"{path}.{name}", take)


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in a result, themselves."""
    return (leaf for _, leaf in flatten(value, take=lambda tensor: tensor) if isinstance(leaf, torch.Tensor))


def described_otherwise(old: torch.Tensor, new: torch.Tensor) -> str | None:
    """In what two tensors differ besides values: ``dtype torch.float32 became torch.float64``."""
    for what in ("dtype", "shape", "layout", "is_quantized"):
        if getattr(old, what) != getattr(new, what):
            return f"{what} {getattr(old, what)} became {getattr(new, what)}"
    return None


def dense(tensor: torch.Tensor) -> torch.Tensor:
    """A sparse or quantized tensor as a plain one; others themselves."""
    if tensor.is_quantized:
        return tensor.dequantize()
    return tensor if tensor.layout is torch.strided else tensor.to_dense()


def same_bits(old: torch.Tensor, new: torch.Tensor) -> bool:
    """Equal values in two tensors of one dtype and shape: -0.0 is not 0.0, and any NaN equals any other."""
    if old is new:
        return True
    if old.is_complex():
        return same_bits(torch.view_as_real(old.resolve_conj()), torch.view_as_real(new.resolve_conj()))
    if not old.is_floating_point():
        return bool(torch.equal(old, new))
    # Nearly always they are the very same, which is one question instead of six.
    bits = _BITS.get(old.itemsize) if not (old.is_neg() or new.is_neg()) else None
    if bits is not None and torch.equal(old.detach().view(bits), new.detach().view(bits)):
        return True
    equal = (old == new) & (torch.signbit(old) == torch.signbit(new))
    return bool((equal | (torch.isnan(old) & torch.isnan(new))).all())


def gaps(old: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
    """Absolute differences, element by element, in double precision.

    Equal elements, NaN and NaN, and infinities of one sign are 0 apart; where one of the two alone is NaN or
    infinite it is infinity. Complex tensors get a last dimension of 2, for the real and the imaginary part.
    """
    if old.is_complex():
        old, new = torch.view_as_real(old.resolve_conj()), torch.view_as_real(new.resolve_conj())
    old, new = old.double(), new.double()
    same = (old == new) | (torch.isnan(old) & torch.isnan(new))
    return torch.nan_to_num((old - new).abs(), nan=math.inf, posinf=math.inf).masked_fill(same, 0.0)


def magnitudes(tensor: torch.Tensor) -> torch.Tensor:
    """Absolute values in the layout of :func:`gaps`; 0 for NaN and infinity."""
    parts = torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
    return torch.nan_to_num(parts.double().abs(), nan=0.0, posinf=0.0)
