"""Private torch API of the proof, each name with its reason and what happens without it.

- ``UntypedStorage._cdata``: which memory a tensor looks at, also where it is empty. Without it: its address;
  empty memories are then one.
- ``torch._C._functorch.is_functorch_wrapped_tensor``: a tensor inside ``vmap`` or ``grad`` cannot be copied.
  Without it: not asked.
"""

from __future__ import annotations

import torch


def memory_of(tensor: torch.Tensor) -> int:
    """A number for the memory that a tensor looks at; valid while the tensor lives."""
    storage = tensor.untyped_storage()
    return int(getattr(storage, "_cdata", storage.data_ptr()))


def in_transform(tensor: torch.Tensor) -> bool:
    """Whether a tensor is inside a function transform."""
    functorch = getattr(getattr(torch, "_C", None), "_functorch", None)
    ask = getattr(functorch, "is_functorch_wrapped_tensor", None)
    return bool(ask(tensor)) if ask is not None else False
