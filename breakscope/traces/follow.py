"""The traces of a running job, read as they grow."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from breakscope.errors import TraceError
from breakscope.report.model import Report
from breakscope.traces.damage import Damage
from breakscope.traces.envelopes import CHUNK
from breakscope.traces.files import find, is_compressed
from breakscope.traces.importing import shown
from breakscope.traces.one_file import TraceProcesses, import_file
from breakscope.traces.processes import combine


@dataclass(slots=True)
class _Growing:
    """One file that a process may still be writing."""

    path: Path
    damage: Damage = field(default_factory=Damage)
    position: int = 0
    identity: tuple[int, int] | None = None
    trace: TraceProcesses = field(init=False)

    def __post_init__(self) -> None:
        self.trace = TraceProcesses(str(self.path), self.damage)

    def read(self) -> bool:
        """Take what was added. Returns whether there was anything."""
        try:
            with self.path.open("rb") as stream:
                status = os.fstat(stream.fileno())
                identity = status.st_dev, status.st_ino
                if self.identity not in (None, identity) or status.st_size < self.position:
                    # Another file of the same name: a restarted job, or a log that was rotated.
                    self.position, self.damage = 0, Damage()
                    self.trace = TraceProcesses(str(self.path), self.damage)
                self.identity = identity
                stream.seek(self.position)
                start = self.position
                while chunk := stream.read(CHUNK):
                    self.position += len(chunk)
                    self.trace.feed(chunk)
        except OSError:
            return False  # gone for now; what was read stays
        return self.position > start


class Follower:
    """Follows every trace below some paths, also those that appear later."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._files: dict[Path, _Growing] = {}

    @property
    def files(self) -> int:
        """Traces found so far."""
        return len(self._files)

    @property
    def bytes(self) -> int:
        """Bytes read so far."""
        return sum(file.position for file in self._files.values())

    def poll(self) -> bool:
        """Read what is new. Returns whether there was anything."""
        for path in self._paths:
            try:
                found = find([path])
            except TraceError:
                continue  # not there yet, or still empty
            for file in found:
                if file not in self._files and not is_compressed(file):
                    self._files[file] = _Growing(file)
        return sum(file.read() for file in self._files.values()) > 0

    def report(self) -> Report | None:
        """Everything up to now; None where no process has written yet."""
        parts = [part for file in self._files.values() for part in file.trace.parts()]
        return combine(parts, shown(self._paths)) if parts else None

    def close(self) -> Report:
        """The report of all files as they are now, read once more from their beginning.

        Raises:
            TraceError: nothing was written that is a trace.
        """
        self.poll()
        parts = [part for file in self._files for part in import_file(str(file)).parts]
        if not parts:
            raise TraceError(f"nothing was imported: no trace was written to {shown(self._paths)}")
        return combine(parts, shown(self._paths))
