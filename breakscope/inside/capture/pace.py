"""Where the steps of a script end, which may have several optimizers."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


class _Count:
    """The steps of one optimizer: its own, and with those that were made before it."""

    def __init__(self, before: int) -> None:
        self.own, self.steps = 0, before


class Pace:
    """Which of a script's optimizers ends a step: the busiest one.

    One that takes others' place goes on with their count: it has parameters of theirs, they are gone, or none
    of them steps between its first two steps.

    Attributes:
        steps: how many there were.
    """

    def __init__(self) -> None:
        self.steps = 0
        self._done: weakref.WeakKeyDictionary[torch.optim.Optimizer, _Count] = weakref.WeakKeyDictionary()
        # By the id of a parameter. An optimizer may be gone when the next one makes its first step.
        self._reached: dict[int, tuple[weakref.ref[torch.Tensor], _Count]] = {}
        self._latest: _Count | None = None
        self._mixed = False  # one has stepped after another one that stepped after it

    def stepped(self, optimizer: torch.optim.Optimizer) -> bool:
        """An optimizer has made a step. Returns whether that ends a step of the script."""
        count = self._done.get(optimizer)
        if count is None:
            count = self._done[optimizer] = self._begun(optimizer)
        self._mixed |= count.own > 0 and self._latest is not count
        count.own += 1
        if count.own == 2 and not self._mixed:
            count.steps = max(count.steps, self.steps)
        count.steps += 1
        self._latest = count
        if count.steps <= self.steps:
            return False
        self.steps = count.steps
        return True

    def _begun(self, optimizer: torch.optim.Optimizer) -> _Count:
        parameters = [one for group in optimizer.param_groups for one in group["params"]]
        held = [(one, self._reached[id(one)]) for one in parameters if id(one) in self._reached]
        before = max((count.steps for one, (seen, count) in held if seen() is one), default=0)
        made = _Count(before if len(self._done) else self.steps)
        self._reached.update((id(one), (weakref.ref(one), made)) for one in parameters)
        return made
