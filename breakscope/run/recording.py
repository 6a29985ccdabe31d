"""The files of a run, held open: what was written to them is ours even if the script removed them."""

from __future__ import annotations

import os
from array import array
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from breakscope.inside import events


class Recording:
    """The events and the counters of one process.

    Attributes:
        lost: what could not be set up, as sentences for the report. The script runs all the same.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[str, BinaryIO] = {}
        self._stack = ExitStack()
        self.lost: list[str] = []

    def __enter__(self) -> Recording:
        self._make("events", "nothing could be recorded", _empty)
        self._make("counters", "what was counted is lost", events.Counters.create)
        return self

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    def _make(self, name: str, loss: str, make: object) -> None:
        path = self._folder / name
        try:
            make(path)  # type: ignore[operator]
            self._open[name] = self._stack.enter_context(path.open("rb"))
        except OSError as error:
            path.unlink(missing_ok=True)
            self.lost.append(f"{loss}: {self._folder}: {error.strerror}")

    def place_of(self, name: str) -> str:
        """Path of a file, for the agent; empty where there is none."""
        return str(self._folder / name) if name in self._open else ""

    def events(self) -> tuple[events.Event, ...]:
        """What the agent has told."""
        file = self._open.get("events")
        return () if file is None else tuple(events.parse_events(file))

    def slots(self) -> array[int] | None:
        """The values of the counters; None where there were none."""
        file = self._open.get("counters")
        return None if file is None else events.Counters.parse(file.read())


def _empty(path: Path) -> None:
    path.touch(0o600)


def stand_somewhere(cwd: Path) -> None:
    """Stay in the folder where we began, or the nearest above it, if the script removed or replaced it."""
    try:
        os.getcwd()
    except OSError:
        os.chdir(next(folder for folder in (cwd, *cwd.parents) if folder.is_dir()))
