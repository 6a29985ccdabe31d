"""One trace or log file, from its bytes to a report of each process that wrote into it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from breakscope.errors import TraceError
from breakscope.inside.capture import artifacts
from breakscope.inside.capture.artifacts import Store
from breakscope.traces import processes
from breakscope.traces.assemble import Assembler
from breakscope.traces.damage import Damage
from breakscope.traces.envelopes import ARTIFACTS, CHUNK, KINDS, Envelope, Reader, Source
from breakscope.traces.files import TraceFile
from breakscope.traces.processes import Part

Progress = Callable[[int, int], None]
_STRAY = 10
# Of the tensors that a compile was given; the first ones tell where a process computes.
_DEVICE = re.compile(rb'"device": "device\(type=\'(\w+)\'')
_DEVICE_WITHIN = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Imported:
    """What came of one file.

    Attributes:
        parts: one for each process that wrote into the file; empty if it was no trace.
        size: bytes on disk.
        problem: one sentence where nothing could be used.
    """

    path: str
    parts: tuple[Part, ...]
    size: int
    problem: str | None = None


class TraceProcesses:
    """The processes that wrote into a trace file; most files have one.

    Attributes:
        is_trace: whether there was a record of any kind.
    """

    def __init__(
        self, path: str, damage: Damage, store: Store | None = None, here: str | None = None
    ) -> None:
        """As :func:`import_file` has them; ``store`` keeps what each compile produced, None for nothing."""
        self._path = path
        self._damage = damage
        self._store = store
        self._here = here
        if store is None:
            self._reader = Reader(damage, with_payload=("inductor_output_code",))
        else:
            kinds = tuple(dict.fromkeys((*KINDS, *artifacts.KINDS)))
            self._reader = Reader(damage, kinds, (*ARTIFACTS, *artifacts.NAMED), artifacts.KINDS)
        self._by_pid: dict[int, Assembler] = {}
        self._devices: set[str] = set()
        self._fed = 0

    @property
    def is_trace(self) -> bool:
        return self._reader.is_trace

    def read(self, source: Source) -> None:
        """Take every record of a source, to its end."""
        while chunk := source.read(CHUNK):
            self.feed(chunk)
        self._take(self._reader.finish())
        self._drop_strays()
        for assembler in self._by_pid.values():
            assembler.finish()

    def feed(self, chunk: bytes) -> None:
        """Take the records that some more bytes complete."""
        if self._fed < _DEVICE_WITHIN and not self._devices - {"cpu", "meta"}:
            self._devices.update(found.decode() for found in _DEVICE.findall(chunk))
        self._fed += len(chunk)
        self._take(self._reader.feed(chunk))

    def parts(self) -> list[Part]:
        """What each process has left up to now."""
        # A trace without a record that we need is still one: nothing was compiled.
        read = self._by_pid or ({0: Assembler(self._damage)} if self.is_trace else {})
        device = min(self._devices - {"meta"}, key=lambda name: (name == "cpu", name), default=None)
        return [
            processes.of_trace(self._path, pid, one, self._damage, len(read), device, self._here)
            for pid, one in read.items()
        ]

    def _take(self, envelopes: Iterable[Envelope]) -> None:
        for envelope in envelopes:
            assembler = self._by_pid.get(envelope.pid)
            if assembler is None:
                assembler = self._by_pid[envelope.pid] = Assembler(self._damage, self._store)
            assembler.take(envelope)

    def _drop_strays(self) -> None:
        """A process with a single record beside one with many is a damaged process id."""
        most = max((one.records for one in self._by_pid.values()), default=0)
        for pid in [pid for pid, one in self._by_pid.items() if one.records == 1 and most >= _STRAY]:
            del self._by_pid[pid]
            self._damage.add("envelopes")


def import_file(
    path: str, progress: Progress | None = None, keep: Path | None = None, here: str | None = None
) -> Imported:
    """Read one trace or log. Never raises for what the file holds; uses all of it that is readable.

    Args:
        progress: told after each piece how many bytes of the file were read, and its size.
        keep: folder that gets what each compile produced; None to keep nothing.
        here: the folder that ``path`` is relative to and that places are shown from; None for the current.

    Raises:
        OutputError: ``keep`` cannot be written.
    """
    damage = Damage()
    place = Path(here or "", path)
    try:
        with TraceFile(place, damage) as file:
            trace = TraceProcesses(path, damage, Store(keep) if keep else None, here)
            trace.read(_watched(file, progress))
            size = file.taken
        if trace.is_trace:
            return Imported(path, tuple(trace.parts()), size)
        from breakscope.traces.text_log import TextLog

        damage = Damage()
        with TraceFile(place, damage) as file:
            log = TextLog()
            found = log.read(_watched(file, progress))
    except TraceError as error:
        return Imported(path, (), 0, str(error))
    if found:
        parts = (processes.of_log(path, int(key[1]), one, damage, here) for key, one in log.processes.items())
        return Imported(path, tuple(parts), size)
    what = "it is empty" if size == 0 else "it holds no record of TORCH_TRACE or TORCH_LOGS"
    return Imported(path, (), size, "; ".join([f"{path} is not a trace: {what}", *damage.sentences()]))


def _watched(file: TraceFile, progress: Progress | None) -> Source:
    return file if progress is None else _Watched(file, progress)


@dataclass(frozen=True, slots=True)
class _Watched:
    """A file that tells how far it was read."""

    file: TraceFile
    progress: Progress

    def read(self, size: int, /) -> bytes:
        data = self.file.read(size)
        self.progress(self.file.taken, self.file.size)
        return data
