"""Where the steps of a script end, which may have several optimizers."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


class _Count:
    def __init__(self, steps: int) -> None:
        self.steps = steps


class Pace:
    """Which of a script's optimizers ends a step: the busiest one.

    One that has parameters of another, as that of a second phase, goes on with its count.

    Attributes:
        steps: how many there were.
    """

    def __init__(self) -> None:
        self.steps = 0
        self._done: weakref.WeakKeyDictionary[torch.optim.Optimizer, _Count] = weakref.WeakKeyDictionary()
        # By the id of a parameter. An optimizer may be gone when the next one makes its first step.
        self._reached: dict[int, tuple[weakref.ref[torch.Tensor], _Count]] = {}

    def stepped(self, optimizer: torch.optim.Optimizer) -> bool:
        """An optimizer has made a step. Returns whether that ends a step of the script."""
        count = self._done.get(optimizer)
        if count is None:
            count = self._done[optimizer] = self._begun(optimizer)
        count.steps += 1
        if count.steps <= self.steps:
            return False
        self.steps = count.steps
        return True

    def _begun(self, optimizer: torch.optim.Optimizer) -> _Count:
        parameters = [one for group in optimizer.param_groups for one in group["params"]]
        held = [(one, self._reached[id(one)]) for one in parameters if id(one) in self._reached]
        made = _Count(max((count.steps for one, (seen, count) in held if seen() is one), default=0))
        self._reached.update((id(one), (weakref.ref(one), made)) for one in parameters)
        return made
