"""Clocks of an arm: CUDA events where the step runs on a GPU, else the host's monotonic clock.

Nothing here waits for the device inside a step: events are put into the stream and read after the
window, when the process waits for its next turn anyway.
"""

from __future__ import annotations

import resource
import sys
import time
from dataclasses import dataclass
from typing import Any

import torch

_MIB = 1024**2


@dataclass(slots=True)
class Mark:
    """A moment: the host's, and the device's if there is one."""

    host_ns: int
    event: Any = None


class Meter:
    """Makes marks and reads what lies between them.

    Attributes:
        on_gpu: whether marks are put into the CUDA stream. Set when the step is seen to use a GPU.
    """

    def __init__(self) -> None:
        self.on_gpu = False
        self._spare: list[Any] = []
        self._used: list[Any] = []

    def prepare(self, marks: int) -> None:
        """Have that many events ready, so that none is created inside a step."""
        self._spare += self._used
        self._used.clear()
        while self.on_gpu and len(self._spare) < marks:
            event = torch.cuda.Event(enable_timing=True)
            event.record()  # created lazily: the first record does it
            self._spare.append(event)

    def mark(self) -> Mark:
        """This moment."""
        if not self.on_gpu:
            return Mark(time.perf_counter_ns())
        event = self._spare.pop() if self._spare else torch.cuda.Event(enable_timing=True)
        self._used.append(event)
        event.record()
        return Mark(time.perf_counter_ns(), event)

    @staticmethod
    def between(first: Mark, last: Mark) -> float:
        """Milliseconds on the device where both marks are on it, else on the host. It must be done."""
        if first.event is not None and last.event is not None:
            return float(first.event.elapsed_time(last.event))
        return Meter.host(first, last)

    @staticmethod
    def host(first: Mark, last: Mark) -> float:
        """Milliseconds on the host."""
        return (last.host_ns - first.host_ns) / 1e6

    def settle(self) -> None:
        """Wait until the device is done."""
        if self.on_gpu or (torch.cuda.is_available() and torch.cuda.is_initialized()):
            torch.cuda.synchronize()

    def reset_peak(self) -> None:
        """Forget the peak of memory."""
        if self.on_gpu:
            torch.cuda.reset_peak_memory_stats()

    def peak_mib(self) -> tuple[float, str]:
        """The peak of memory since, and whose it is."""
        if self.on_gpu:
            return torch.cuda.max_memory_allocated() / _MIB, "allocated by torch on the GPU"
        # Linux counts in KiB, macOS in bytes.
        unit = 1 if sys.platform == "darwin" else 1024
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak * unit / _MIB, "resident, the whole process"


@dataclass(frozen=True, slots=True)
class Sample:
    """One step, as it was marked.

    Attributes:
        spans: from when to when it lasted: its calls, or as a whole.
        calls: the outermost compiled calls in it.
    """

    spans: list[tuple[Mark, Mark]]
    calls: list[tuple[Mark, Mark]]
    compiles: int
    compile_s: float

    def told(self, timed: bool) -> dict[str, Any]:
        """In milliseconds; the device must be done.

        Args:
            timed: by the device's clock where there is one; steps that are not were waited for one by one.
        """
        between = Meter.between if timed else Meter.host
        return {
            "ms": sum(between(*span) for span in self.spans),
            "host_ms": sum(Meter.host(*span) for span in self.spans),
            "calls_ms": sum(between(*span) for span in self.calls),
            "compiles": self.compiles,
            "compile_s": self.compile_s,
        }


def spin(ms: float) -> None:
    """Keep the CPU busy: one that has slept is slow at first."""
    deadline = time.perf_counter() + ms / 1e3
    while time.perf_counter() < deadline:
        pass
