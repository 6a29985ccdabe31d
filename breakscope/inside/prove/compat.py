"""Private torch API of the proof, each name with its reason and what happens without it.

- ``UntypedStorage._cdata``: which memory a tensor looks at, also where it is empty. Without it: its address;
  empty memories are then one.
- ``torch._C._functorch.is_functorch_wrapped_tensor``: a tensor inside ``vmap`` or ``grad`` cannot be copied.
  Without it: not asked.
- ``Tensor._backward_hooks``, ``Tensor._post_accumulate_grad_hooks``: hooks that a tensor carries. Without
  them: a rewrite that loses a hook is found only where a gradient is compared.
- ``torch.overrides._len_torch_function_stack``: how many modes are entered that see every call. Without it:
  a mode that is left entered is not seen.
- ``torch._tensor_str.PRINT_OPTS``: how tensors are printed. Without it: a change of that is not seen.
"""

from __future__ import annotations

from typing import Any

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


def hooks_of(tensor: torch.Tensor) -> tuple[int, int]:
    """How many hooks a tensor carries: on its gradient, and after the gradient is accumulated."""
    kinds = ("_backward_hooks", "_post_accumulate_grad_hooks")
    first, second = (len(getattr(tensor, kind, None) or ()) for kind in kinds)
    return first, second


def modes_entered() -> int:
    """How many torch function modes are entered."""
    count = getattr(torch.overrides, "_len_torch_function_stack", None)
    if count is None:
        count = getattr(getattr(torch, "_C", None), "_len_torch_function_stack", None)
    return int(count()) if count is not None else 0


def print_options() -> dict[str, Any]:
    """How tensors are printed, as ``torch.set_printoptions`` takes it; empty where that is not known."""
    options = getattr(getattr(torch, "_tensor_str", None), "PRINT_OPTS", None)
    return dict(vars(options)) if options is not None else {}
