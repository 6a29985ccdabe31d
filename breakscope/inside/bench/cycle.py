"""Which calls of compiled things make up a step: from one call of the first of them to its next."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from breakscope.inside.bench.ambient import Ambient
from breakscope.inside.bench.copies import Repeated
from breakscope.inside.capture.signatures import owner_called

_MOST_CALLS = 64  # what was called once, before a loop of others, does not come back


@dataclass(slots=True)
class Call:
    """An outermost call.

    Attributes:
        untouched: ``args`` and ``kwargs`` are copies, which the call itself does not get and cannot change.
            Only such a call can be made again: a cache that it has grown would not fit its other inputs.
        again: the inputs for making it again.
    """

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    ambient: Ambient
    untouched: bool = False
    again: Repeated = field(init=False)

    def __post_init__(self) -> None:
        self.again = Repeated(self.args, self.kwargs)

    def of(self) -> tuple[int, int | None]:
        """What is called: modules that a script does not compile itself are called through one function."""
        module = id(self.args[0]) if self.args and isinstance(self.args[0], torch.nn.Module) else None
        return id(self.function), module

    def name(self) -> str:
        """For people."""
        function = getattr(self.function, "__wrapped__", self.function)
        owner, _ = owner_called(function, self.args)
        if isinstance(owner, torch.nn.Module):
            return type(owner).__name__
        return str(getattr(function, "__name__", type(function).__name__))


class Cycle:
    """The calls of the step under way, and of the one before. All arms see the same calls, so the same steps.

    Attributes:
        several: whether more than one thing is called: a step then ends where the next one begins.
        last: the calls of the last step that began.
    """

    def __init__(self) -> None:
        self.several = False
        self.last: list[Call] = []
        self._kept: list[Call] = []

    @property
    def again(self) -> list[Call]:
        """The calls of the last step whose calls can be made again."""
        return self.last if self.last and all(call.untouched for call in self.last) else self._kept

    def begins_with(self, call: Call) -> bool:
        """Whether ``call`` is the first one of another step."""
        return not self.last or call.of() == self.last[0].of() or len(self.last) >= _MOST_CALLS

    def begin(self, call: Call) -> None:
        """The first call of a step."""
        self._kept = self.again
        self.last = [call]

    def add(self, call: Call) -> None:
        """Another call of this step."""
        self.several = True
        self.last.append(call)

    def names(self) -> list[str]:
        """What a step of several calls calls, in order; empty for one."""
        return [call.name() for call in self.last] if self.several else []
