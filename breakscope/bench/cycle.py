"""Which calls of compiled things make up a step: from one call of the first of them to its next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from breakscope.bench.ambient import Ambient

_MOST_CALLS = 64  # what was called once, before a loop of others, does not come back

_METHODS = ("forward", "_call_impl", "_wrapped_call_impl", "__call__")


@dataclass(slots=True)
class Call:
    """An outermost call.

    Attributes:
        untouched: ``args`` and ``kwargs`` are copies, which the call itself does not get and cannot change.
            Only such a call can be made again: a cache that it has grown would not fit its other inputs.
    """

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    ambient: Ambient
    untouched: bool = False

    def of(self) -> tuple[int, int | None]:
        """What is called: modules that a script does not compile itself are called through one function."""
        module = id(self.args[0]) if self.args and isinstance(self.args[0], torch.nn.Module) else None
        return id(self.function), module

    def name(self) -> str:
        """For people."""
        name = str(getattr(self.function, "__name__", type(self.function).__name__))
        if name not in _METHODS:
            return name
        inner = getattr(self.function, "__wrapped__", self.function)
        module = getattr(inner, "__self__", self.args[0] if self.args else None)
        return type(module).__name__ if isinstance(module, torch.nn.Module) else name


class Cycle:
    """The calls of the step under way, and of the one before. All arms see the same calls, so the same steps.

    Attributes:
        several: whether more than one thing is called: a step then ends where the next one begins.
        last: the calls of the last step that began.
        again: those of the last one whose calls can be made again.
    """

    def __init__(self) -> None:
        self.several = False
        self.last: list[Call] = []
        self.again: list[Call] = []
        self._first: tuple[int, int | None] | None = None

    def begins_with(self, call: Call) -> bool:
        """Whether ``call`` is the first one of another step."""
        first = self._first
        if first is None or call.of() == first:
            return True
        self.several = True
        return len(self.last) >= _MOST_CALLS

    def begin(self) -> None:
        """A step begins; the call that begins it is added next."""
        self.end()
        self.last = []
        self._first = None

    def end(self) -> None:
        """The step is over."""
        if self.last and all(call.untouched for call in self.last):
            self.again = self.last

    def add(self, call: Call) -> None:
        """A call of this step."""
        if self._first is None:
            self._first = call.of()
        self.last.append(call)

    def names(self) -> list[str]:
        """What a step of several calls calls, in order; empty for one."""
        return [call.name() for call in self.last] if self.several else []
