"""Tensors by shape and stride: enough to make fresh ones that a kernel cannot tell from the real ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

_KEPT_BYTES = 64 * 1024**2


@dataclass(slots=True)
class Spec:
    """A tensor without its values; integers keep theirs, because they may be indices.

    Attributes:
        values: a copy of an integer or boolean tensor; None for all others.
    """

    dtype: Any
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    device: Any
    requires_grad: bool = False
    values: Any = None

    @property
    def bytes(self) -> int:
        """What reading each element once moves; a broadcast dimension (stride 0) counts once."""
        elements = 1
        for size, step in zip(self.shape, self.stride, strict=True):
            elements *= size if step != 0 else min(size, 1)
        return elements * int(self.dtype.itemsize)

    def __str__(self) -> str:
        dtype = str(self.dtype).removeprefix("torch.")
        return f"{dtype}{list(self.shape)} stride {list(self.stride)}"

    def fresh(self) -> Any:
        """A new tensor with random values."""
        with torch.no_grad():
            if self.values is not None:
                return self.values.clone(memory_format=torch.preserve_format)
            reach = 1 + sum((size - 1) * step for size, step in zip(self.shape, self.stride, strict=True))
            reach = 0 if 0 in self.shape else reach
            base = torch.empty(reach, dtype=self.dtype, device=self.device)
            _fill(base)
            return base.as_strided(self.shape, self.stride)


def _fill(base: Any) -> None:
    if not base.is_floating_point() and not base.is_complex():
        base.zero_()  # too many integers to have kept: zero is an index that always exists
        return
    if base.element_size() == 1:  # float8 has no random fill of its own
        base.copy_(torch.randn(base.shape, device=base.device).to(base.dtype))
        return
    base.normal_()


def spec(leaf: Any) -> Any:
    """A Spec for a tensor, anything else as it is."""
    if not isinstance(leaf, torch.Tensor) or leaf.layout is not torch.strided:
        return leaf
    values = None
    countable = not leaf.is_floating_point() and not leaf.is_complex()
    if countable and leaf.numel() * leaf.element_size() <= _KEPT_BYTES and leaf.device.type != "meta":
        values = leaf.detach().clone(memory_format=torch.preserve_format)
    return Spec(leaf.dtype, tuple(leaf.shape), tuple(leaf.stride()), leaf.device, leaf.requires_grad, values)


def fresh(leaf: Any) -> Any:
    """What a Spec stands for; anything else as it is."""
    return leaf.fresh() if isinstance(leaf, Spec) else leaf
