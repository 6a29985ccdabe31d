"""Copies of tensors that behave like them: views stay views of one memory, leaves stay leaves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from breakscope.inside.prove.compat import in_transform, memory_of

PLAIN = (torch.Tensor, torch.nn.Parameter, getattr(torch.nn, "Buffer", torch.nn.Parameter))
Change = Callable[[torch.Tensor], torch.Tensor]


class NotCopiedError(Exception):
    """A tensor of a kind that cannot be copied faithfully; the message says which."""


@dataclass(slots=True)
class Copies:
    """Copies of a set of tensors, made together.

    Args:
        tensors: what to copy.
        change: what to do to each piece of memory; the default copies it.
        with_grad: ids of tensors that take part in autograd though they need no gradient by themselves.

    Attributes:
        leaves: what gradients are taken with respect to, in the order of ``tensors``.
        own: for each leaf, whether the script itself wants its gradient: none where autograd is off.
    """

    tensors: Iterable[torch.Tensor]
    change: Change = torch.clone
    with_grad: Collection[int] = ()
    leaves: list[torch.Tensor] = field(default_factory=list)
    own: list[bool] = field(default_factory=list)
    made: dict[int, torch.Tensor] = field(default_factory=dict)
    _memories: dict[tuple[Any, torch.dtype], tuple[torch.Tensor, torch.Tensor]] = field(default_factory=dict)
    _recorded: bool = True

    def __post_init__(self) -> None:
        tensors = list(self.tensors)
        dtypes: dict[int, set[torch.dtype]] = {}
        for tensor in tensors:
            check(tensor)
            dtypes.setdefault(memory_of(tensor), set()).add(tensor.dtype)
        if any(len(kinds) > 1 for kinds in dtypes.values()):
            raise NotCopiedError("two tensors look at one memory with different dtypes")
        self._recorded = torch.is_grad_enabled()  # asked here: inference_mode(False) switches it on
        # Copies of a user's inference tensors must be able to take part in autograd.
        with torch.inference_mode(False):
            for tensor in tensors:
                self.made[id(tensor)] = self._copy(tensor)
        for tensor in tensors:
            carried = {
                name: self(item) if isinstance(item, torch.Tensor) else item
                for name, item in tensor.__dict__.items()
            }
            self.made[id(tensor)].__dict__.update(carried)

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        """The copy of a tensor; a tensor that is not among those copied is itself."""
        return self.made.get(id(tensor), tensor)

    def _copy(self, tensor: torch.Tensor) -> torch.Tensor:
        leaf, floating = tensor.is_leaf, tensor.is_floating_point() or tensor.is_complex()
        wants = tensor.requires_grad or (id(tensor) in self.with_grad and floating)
        memory = self._memory(tensor)
        if wants and not (leaf and tensor.requires_grad):
            made = self._inner(tensor, memory)
        else:
            # Not as_strided: a view refuses some of what a tensor of its own allows.
            made = torch.empty(0, dtype=memory.dtype, device=memory.device).set_(
                memory.untyped_storage(), tensor.storage_offset(), tensor.size(), tensor.stride()
            )
            if type(tensor) is torch.nn.Parameter:
                made = torch.nn.Parameter(made, requires_grad=tensor.requires_grad and floating)
            elif type(tensor) is not torch.Tensor:
                made = made.as_subclass(type(tensor))
            made.requires_grad_(wants and (made.is_floating_point() or made.is_complex()))
            if made.requires_grad:
                self.leaves.append(made)
                self.own.append(tensor.requires_grad and self._recorded)
        if leaf and tensor.grad is not None and made.is_leaf:
            made.grad = tensor.grad.detach().clone().to(made.dtype)
        return made

    def _memory(self, tensor: torch.Tensor) -> torch.Tensor:
        """The whole memory that a tensor looks at, copied, as a flat tensor."""
        key = (memory_of(tensor), tensor.dtype)
        if key not in self._memories:
            with torch.no_grad():
                storage = tensor.untyped_storage()
                flat = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(storage)
                changed = self.change(flat)
            self._memories[key] = (changed, changed)
        return self._memories[key][0]

    def _inner(self, tensor: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        """A tensor inside a graph: what autograd allows for it, and its views, is as for the original."""
        key = (memory_of(tensor), tensor.dtype)
        _, base = self._memories[key]
        if base is memory:
            leaf = memory.detach().requires_grad_()
            self.leaves.append(leaf)
            self.own.append(tensor.requires_grad and self._recorded)
            with torch.enable_grad():
                base = leaf.clone()
            self._memories[key] = (memory, base)
        with torch.enable_grad():
            if base.numel() == tensor.numel() and tensor.is_contiguous():
                return base.view(tensor.shape)
            return base.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())


def check(tensor: torch.Tensor) -> None:
    """Raise NotCopiedError for a tensor whose copy would not be like it."""
    if type(tensor) not in PLAIN:
        raise NotCopiedError(f"a tensor is of the class {type(tensor).__qualname__}")
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_meta:
        raise NotCopiedError(f"a tensor has the layout {str(tensor.layout).removeprefix('torch.')}")
    if tensor.is_conj() or tensor.is_neg() or in_transform(tensor):
        raise NotCopiedError("a tensor is a lazy conjugate, or inside a transform such as vmap")
