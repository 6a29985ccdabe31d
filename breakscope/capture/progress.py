"""What a scan under way has come to, for its live line."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from breakscope.capture import events


class Progress:
    """What a run has come to so far, read from its own files.

    Args:
        began: ``time.monotonic()`` at the start.
    """

    def __init__(self, folder: Path, began: float) -> None:
        self._folder = folder
        self._began = began
        self._read = 0
        self._counts = {events.METRICS: 0, events.GRAPH_BREAK: 0}

    def line(self) -> str:
        """One line: seconds, compiled frames, reported breaks, steps."""
        with suppress(OSError), (self._folder / "events").open("rb") as stream:
            stream.seek(self._read)
            new = stream.read()
            self._read += len(new)
            for kind in self._counts:
                self._counts[kind] += new.count(b'{"t":"%s"' % kind.encode())
        with suppress(OSError):
            slots = events.Counters.read(self._folder / "counters")
            steps = slots[events.SLOT_STEPS] or slots[events.SLOT_CALLS]
            frames, breaks = self._counts.values()
            elapsed = time.monotonic() - self._began
            return (
                f"breakscope: {elapsed:.0f} s, {frames} frames compiled, "
                f"{breaks} breaks reported, {steps} steps"
            )
        return "breakscope"
