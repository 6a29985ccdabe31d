"""What makes two calls of the script alike, for a proof."""

from __future__ import annotations

from typing import Any

import torch

from breakscope.inside.prove import reach


def signature(value: Any) -> Any:
    """What makes two calls alike: the shapes, dtypes and flags of tensors, and all scalars."""
    if isinstance(value, torch.Tensor):
        return (value.dtype, tuple(value.shape), value.device.type, value.requires_grad)
    if isinstance(value, dict):
        return tuple((key, signature(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return tuple(signature(item) for item in value)
    if isinstance(value, torch.nn.Module):
        return (type(value), value.training)
    return (type(value), repr(value)) if reach.is_scalar(value) else type(value)


def classified(value: Any) -> Any:
    """What makes two calls of one kind: as :func:`signature`, with sizes only told 0 and 1 from more."""
    if isinstance(value, torch.Tensor):
        sizes = tuple(min(size, 2) for size in value.shape)
        return (value.dtype, sizes, value.device.type, value.requires_grad)
    if isinstance(value, dict):
        return tuple((key, classified(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return tuple(classified(item) for item in value)
    return signature(value)
