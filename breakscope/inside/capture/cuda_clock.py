"""The device's side of a sampled step: CUDA events, read after the step and never waited for in it."""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter_ns
from typing import Any

import torch

from breakscope.inside import card, torch_api

_CYCLES_PER_NS = 2  # no card's clock is faster: a hold may be longer than asked for, not shorter
_LONGEST_HOLD_NS = 20_000_000

Anchor = tuple[Any, int]
Event = tuple[Any, int]


class CudaClock:
    """Records events in whatever stream is current. Quickly: this happens in the steps that are timed."""

    def __init__(self) -> None:
        self._free: list[Any] = []
        self._card = card.current()

    def event(self) -> Event | None:
        """An event at this point of the current stream; None where none can be recorded (graph capture)."""
        if torch.cuda.is_current_stream_capturing():
            return None
        stream = torch.cuda.current_stream()
        event = self._free.pop() if self._free else torch.cuda.Event(enable_timing=True)
        event.record(stream)
        return event, stream.cuda_stream

    def reuse(self, events: Iterable[Event | None]) -> None:
        """Take events back that have been read."""
        self._free.extend(event[0] for event in events if event is not None)

    def hold(self, ns: int) -> Event | None:
        """Keep the current stream busy for so long, and an event after that."""
        if torch.cuda.is_current_stream_capturing():
            return None
        if torch_api.available("hold_device"):
            torch_api.get("hold_device")(min(ns, _LONGEST_HOLD_NS) * _CYCLES_PER_NS)
        return self.event()

    def anchor(self) -> Anchor | None:
        """A moment that both clocks know: waits for the device."""
        mark = self.event()
        if mark is None:
            return None
        mark[0].synchronize()
        return mark[0], perf_counter_ns()

    def at_power_limit(self) -> bool | None:
        """Whether the card keeps its clock down to save power; None where nobody tells."""
        return None if self._card is None else self._card.at_power_limit()

    def done(self, mark: Event | None, *, wait: bool) -> bool:
        """Whether the device has come as far as ``mark``."""
        if mark is None:
            return True
        if wait:
            mark[0].synchronize()
        return bool(mark[0].query())

    def since(self, anchor: Anchor, mark: Event) -> tuple[int, int]:
        """Nanoseconds from the anchor to ``mark`` on the device, and the stream of ``mark``."""
        return round(anchor[0].elapsed_time(mark[0]) * 1e6), mark[1]
