"""What a step of a script is, where nobody said: guessed at its first call, held against what comes after."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from typing import Literal

import torch

Kind = Literal["call", "optimizer"]

_MOST_CALLS = 2_500  # before the first optimizer step: what a validation or a rollout may take
_MOST_WATCHED, _FIRST_VALUES = 16, 256


class StepUnit:
    """An outermost call, or from one optimizer step to the next.

    A script that has an optimizer trains, though it may evaluate first: that is believed until it has ended
    without an optimizer step, or its weights change inside a call. Such a call is a whole step (a compiled
    ``train_step``). A script without an optimizer may make one after a first call of its network.

    Nothing is asked that compiled code does not show, for all arms of a benchmark must guess alike: it runs
    no hooks of an optimizer that it has in its graph.

    Attributes:
        kind: what a step is.
        open: whether ``kind`` is a guess still.
        why: for people, where the guess was wrong.
    """

    def __init__(self, asked: Kind | Literal["auto"]) -> None:
        self.open = asked == "auto"
        self.kind: Kind = "call" if asked == "auto" else asked
        self.why: str | None = None
        self._calls = 0
        self._weights: list[torch.Tensor] = []
        self._before: list[torch.Tensor] = []

    def guess(self) -> None:
        """The first call is about to be made."""
        if not self.open:
            return
        optimizers = [thing for thing in gc.get_objects() if issubclass(type(thing), torch.optim.Optimizer)]
        if optimizers:
            self.kind = "optimizer"
            self._weights = _some_weights(optimizers)

    def settle(self) -> None:
        """It is what it is taken for: the guess has come true, or steps are about to be timed."""
        self.open = False
        self._weights, self._before = [], []

    def stepped(self) -> bool:
        """An optimizer has made a step outside of calls. Returns whether that ends a step."""
        if self.open:
            self.kind = "optimizer"
            self.settle()
        return self.kind == "optimizer"

    def calling(self) -> None:
        """A call is about to be made, while ``kind`` is open."""
        self._before = self._values()

    def called(self) -> None:
        """It is over."""
        if self.kind == "call":
            return
        self._calls += 1
        if not all(map(torch.equal, self._before, self._values())):
            self._is_a_call("the optimizer steps inside of the calls, so a step is a call")
        elif self._calls >= _MOST_CALLS:
            self._is_a_call(f"no optimizer step came in the first {_MOST_CALLS:,} calls, so a step is a call")

    def ended(self) -> None:
        """The script is at its end."""
        if self.open and self.kind == "optimizer":
            self._is_a_call("the script made no optimizer step, so a step is a call")

    def _is_a_call(self, why: str) -> None:
        self.kind, self.why = "call", why
        self.settle()

    def _values(self) -> list[torch.Tensor]:
        # Not the counters of writes: fused optimizers write to weights without counting.
        try:
            return [weight.detach().flatten()[:_FIRST_VALUES].clone() for weight in self._weights]
        except RuntimeError:  # sharded, not initialized, on no device: they say nothing
            self._weights = []
            return []


def _some_weights(optimizers: Iterable[torch.optim.Optimizer]) -> list[torch.Tensor]:
    """From the first to the last one: the first alone may be frozen."""
    groups = (group for optimizer in optimizers for group in optimizer.param_groups)
    weights = [
        weight
        for group in groups
        for weight in group["params"]
        if type(weight) in (torch.Tensor, torch.nn.Parameter) and weight.layout is torch.strided
    ]
    return weights[:: max(1, len(weights) // _MOST_WATCHED)]
