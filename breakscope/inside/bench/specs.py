"""Tensors by shape and stride: enough to make fresh ones that a kernel cannot tell from the real ones.

A kernel that looks something up by an index, run on an index that never was, ends the process's CUDA
context. So integers keep their values, with all the memory that their strides span; and where there are
too many, they are zero, an index that exists.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

_KEPT_BYTES = 64 * 1024**2


@dataclass(slots=True)
class Spec:
    """A tensor by shape and stride, with its values where they must be the real ones.

    Attributes:
        values: a flat copy of the memory that shape and stride span, gaps between rows included; None for
            values that do not matter, or too many to keep.
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

    @property
    def reach(self) -> int:
        """Elements from the first to the last in memory, gaps included."""
        if 0 in self.shape:
            return 0
        return 1 + sum((size - 1) * step for size, step in zip(self.shape, self.stride, strict=True))

    def memory(self) -> Any:
        """New memory for it, flat: with the values that were kept, else with random ones."""
        if self.values is not None:
            return self.values.clone()
        memory = torch.empty(self.reach, dtype=self.dtype, device=self.device)
        _fill(memory)
        return memory


def _fill(memory: Any) -> None:
    if not memory.is_floating_point() and not memory.is_complex():
        memory.zero_()
        return
    if memory.element_size() == 1:  # float8 has no random fill of its own
        memory.copy_(torch.randn(memory.shape, device=memory.device).to(memory.dtype))
        return
    memory.normal_()


def spec(leaf: Any) -> Any:
    """A Spec for a tensor, anything else as it is."""
    if not isinstance(leaf, torch.Tensor) or leaf.layout is not torch.strided:
        return leaf
    return Spec(leaf.dtype, tuple(leaf.shape), tuple(leaf.stride()), leaf.device, leaf.requires_grad)


def spec_with_values(leaf: Any, *, floats: bool = False) -> Any:
    """A Spec that has kept its values, where they are integers and not too many.

    Args:
        floats: keep those of any dtype: for what computes an index, or checks a range.
    """
    made = spec(leaf)
    if not isinstance(made, Spec) or made.device.type == "meta":
        return made
    wanted = floats or not (leaf.is_floating_point() or leaf.is_complex())
    if wanted and made.reach * leaf.element_size() <= _KEPT_BYTES:
        made.values = leaf.detach().as_strided((made.reach,), (1,), leaf.storage_offset()).clone()
    return made


class Inputs:
    """Fresh inputs of something that is run again and again.

    Attributes:
        args, kwargs: with a tensor for each Spec.
    """

    def __init__(
        self, arguments: tuple[Any, Any], tree_map: Callable[[Callable[[Any], Any], Any], Any]
    ) -> None:
        self._kept: list[tuple[Any, Any]] = []
        self.args, self.kwargs = tree_map(self._fresh, arguments)

    def _fresh(self, leaf: Any) -> Any:
        if not isinstance(leaf, Spec):
            return leaf
        memory = leaf.memory()
        if leaf.values is not None:
            self._kept.append((memory, leaf.values))
        return memory.as_strided(leaf.shape, leaf.stride)

    def restore(self) -> None:
        """Put back the values that were kept: a run may have counted an index up."""
        for memory, values in self._kept:
            memory.copy_(values)


def shapeless(leaf: Any) -> Any:
    """The tensor of a Spec on no device: what an op makes of it can be told, not computed."""
    if not isinstance(leaf, Spec):
        return leaf
    return torch.empty_strided(leaf.shape, leaf.stride, dtype=leaf.dtype, device="meta")
