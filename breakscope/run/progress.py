"""What a scan under way has come to, for its live line."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path

from breakscope.inside import events


class Progress:
    """What a run has come to so far, read from its own files: one pair of them for each process.

    Args:
        folder: holds ``events`` and ``counters``, or ``events-NAME`` and ``counters-NAME`` of each rank.
        began: ``time.monotonic()`` at the start.
    """

    def __init__(self, folder: Path, began: float) -> None:
        self._folder = folder
        self._began = began
        self._read: dict[Path, int] = {}
        self._counts = {events.METRICS: 0, events.GRAPH_BREAK: 0}
        self._compiling: dict[Path, tuple[events.Event, float]] = {}

    def line(self) -> str:
        """One line: seconds, ranks where there are several, compiled frames, reported breaks, steps."""
        for file in self._folder.glob("events*"):
            self._count(file)
        steps = [self._steps(file) for file in self._folder.glob("counters*")]
        if not steps:
            return "breakscope"
        frames, breaks = self._counts.values()
        elapsed = time.monotonic() - self._began
        ranks = f"{len(steps)} processes, " if len(steps) > 1 else ""
        return (
            f"breakscope: {elapsed:.0f} s, {ranks}{frames} frames compiled, "
            f"{breaks} breaks reported, {max(steps)} steps{self._at_work()}"
        )

    def _at_work(self) -> str:
        """The compile that has taken longest so far, of those under way."""
        now = time.monotonic()
        under_way = [(event["seconds"] + now - seen, event) for event, seen in self._compiling.values()]
        if not under_way:
            return ""
        taken, event = max(under_way, key=lambda one: one[0])
        doing = "tracing" if event["phase"] == "dynamo" else "compiling"
        return f"; {doing} {event['frame']['qualname']}: {event['ops']:,} ops, {taken:.0f} s"

    def _count(self, file: Path) -> None:
        with suppress(OSError), file.open("rb") as stream:
            stream.seek(self._read.get(file, 0))
            new = stream.read()
            self._read[file] = self._read.get(file, 0) + len(new)
            for kind in self._counts:
                self._counts[kind] += new.count(b'{"t":"%s"' % kind.encode())
            for line in new.splitlines():
                if line.startswith(b'{"t":"%s"' % events.COMPILING.encode()):
                    self._take(file, line)

    def _take(self, file: Path, line: bytes) -> None:
        with suppress(ValueError):  # half of it is not written yet
            event = json.loads(line)
            self._compiling.pop(file, None)
            if event["phase"] in ("dynamo", "backend"):
                self._compiling[file] = event, time.monotonic()

    def _steps(self, file: Path) -> int:
        with suppress(OSError, IndexError):
            slots = events.Counters.read(file)
            return slots[events.SLOT_STEPS] or slots[events.SLOT_CALLS]
        return 0
