"""When a search has nothing left to learn: what a test call shows, and kinds of inputs that show nothing new.

Most inputs of a kind take the ways that others took before, and leave results of the same kind. A kind may
end once as many in a row did so as :data:`ENOUGH`; how many were left out is in the evidence. It may around
a second call of the same kind as the first. What is tried around the first never ends early: an input that
drives two things at once, of which the old form evaluates only one, shows nothing new there and may be the
one that tells the forms apart. Nor do edge values, and as long as a condition has not gone both ways,
nothing ends.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch

from breakscope.inside.prove.attempt import Outcome
from breakscope.inside.prove.picture import TensorEntry

# In a row, without anything new.
ENOUGH = 12


class Kinds:
    """What kinds of inputs had to show of late."""

    def __init__(self) -> None:
        self._idle: Counter[str] = Counter()

    def note(self, kind: str, *, new: bool) -> None:
        """An input of a kind was tried; ``new``: it showed something that none had shown."""
        self._idle[kind] = 0 if new else self._idle[kind] + 1

    def ended(self, kind: str) -> bool:
        """Whether the next input of a kind may be left out."""
        return self._idle[kind] >= ENOUGH


def novelty(old: Outcome, ways: tuple[tuple[bool, bool], ...]) -> Any:
    """What a call of the old form shows: its ways, its end, and of what kind results and gradients are.

    A tensor's kind: dtype, number of dimensions, sizes told 0 and 1 from more, whether gradients flow, and
    whether it holds NaN, infinity, zeros, values below zero.
    """
    ended = old.raised.partition(":")[0] if old.raised else None
    results = (entry.what for entry in old.picture.entries if entry.path.startswith("result"))
    tensors = frozenset(_kind(result.values) for result in results if isinstance(result, TensorEntry))
    gradients = frozenset("none" if gradient is None else _kind(gradient) for gradient in old.gradients)
    return ways, ended, bool(old.printed), tensors, gradients, old.backward_failed is None


def _kind(tensor: torch.Tensor) -> Any:
    sizes = tuple(min(size, 2) for size in tensor.shape)
    if not tensor.is_floating_point() or not tensor.numel():
        return tensor.dtype, sizes, tensor.requires_grad
    nan, inf = tensor.isnan().any(), tensor.isinf().any()
    told = torch.stack([nan, inf, (tensor == 0).any(), (tensor < 0).any()])
    return tensor.dtype, sizes, tensor.requires_grad, tuple(told.tolist())
