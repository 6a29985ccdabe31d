"""One trace file, from its bytes to a report for each process that wrote into it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from breakscope.capture.events import Event
from breakscope.diagnose.build import build
from breakscope.diagnose.outcome import Outcome
from breakscope.errors import TraceError
from breakscope.model import Report, Timing
from breakscope.traces.assemble import Assembler
from breakscope.traces.damage import Damage
from breakscope.traces.envelopes import CHUNK, Envelope, Reader, Source
from breakscope.traces.files import TraceFile, rank_of
from breakscope.traces.text_log import LogProcess, TextLog

NOT_IN_A_TRACE = (
    "imported: crossings, steps, cost and what the failing call's values were are known only to a live scan, "
    "and not measured here"
)
LOG_LACKS = (
    "a text log: regions, compile times and failures are not in it, and skipped frames only if it says so; "
    "TORCH_TRACE has them"
)
_YEAR_S = 366 * 24 * 3600


Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Imported:
    """What came of one file.

    Attributes:
        reports: one for each process that wrote into the file; empty if it was no trace.
        size: bytes on disk.
        problem: one sentence where nothing could be used.
    """

    path: str
    reports: tuple[Report, ...]
    size: int
    problem: str | None = None


class TraceProcesses:
    """The processes that wrote into a trace file; most files have one.

    Attributes:
        is_trace: whether there was a record of any kind.
    """

    def __init__(self, damage: Damage) -> None:
        self._damage = damage
        self._reader = Reader(damage)
        self.by_pid: dict[int, Assembler] = {}

    @property
    def is_trace(self) -> bool:
        return self._reader.is_trace

    def read(self, source: Source) -> None:
        """Take every record of a source, to its end."""
        while chunk := source.read(CHUNK):
            self.feed(chunk)
        self._take(self._reader.finish())
        for assembler in self.by_pid.values():
            assembler.finish()

    def feed(self, chunk: bytes) -> None:
        """Take the records that some more bytes complete."""
        self._take(self._reader.feed(chunk))

    def _take(self, envelopes: Iterable[Envelope]) -> None:
        for envelope in envelopes:
            assembler = self.by_pid.get(envelope.pid)
            if assembler is None:
                assembler = self.by_pid[envelope.pid] = Assembler(self._damage)
            assembler.take(envelope)


def import_file(path: str, progress: Progress | None = None) -> Imported:
    """Read one trace or log. Never raises for what the file holds; uses all of it that is readable.

    Args:
        progress: told after each piece how many bytes of the file were read, and its size.
    """
    damage = Damage()
    try:
        with TraceFile(Path(path), damage) as file:
            trace = TraceProcesses(damage)
            trace.read(_watched(file, progress))
            size = file.taken
        if trace.is_trace:
            # A trace without a record that we need is still one: nothing was compiled.
            read = list(trace.by_pid.values()) or [Assembler(damage)]
            return Imported(path, tuple(report_of(path, one, damage, len(read)) for one in read), size)
        damage = Damage()
        with TraceFile(Path(path), damage) as file:
            log = TextLog()
            found = log.read(_watched(file, progress))
    except TraceError as error:
        return Imported(path, (), 0, str(error))
    if found:
        return Imported(path, tuple(_of_log(path, one, damage) for one in log.processes.values()), size)
    what = "it is empty" if size == 0 else "it holds no record of TORCH_TRACE or TORCH_LOGS"
    return Imported(path, (), size, f"{path} is not a trace: {what}")


def report_of(path: str, process: Assembler, damage: Damage, processes: int = 1) -> Report:
    """The report of one process of a trace file, as far as it was read.

    Args:
        processes: how many wrote into the file.
    """
    sentences = damage.sentences()
    if processes > 1:
        sentences.append(f"{processes} processes wrote into this file, and are told apart by their ids")
    rank = process.rank if process.rank is not None else rank_of(Path(path))
    return _with_rank(build(process.events, None, _outcome(path, process, sentences)), rank or 0)


def _of_log(path: str, process: LogProcess, damage: Damage) -> Report:
    """The report of one process of a text log, which tells of no regions."""
    report = build(process.events, None, _outcome(path, process, (LOG_LACKS, *damage.sentences())))
    return _with_rank(
        replace(
            report,
            totals=replace(report.totals, regions=None, ops=None),
            reconciliation=replace(report.reconciliation, vacuous=False),
        ),
        process.rank or 0,
    )


def _outcome(path: str, read: Assembler | LogProcess, sentences: Sequence[str]) -> Outcome:
    first = read.first_time or 0.0
    began = read.began
    name = Path(path).name
    return Outcome(
        script=path,
        argv=(),
        cwd="",
        status="unknown",
        exit_code=None,
        started_at=datetime.fromtimestamp(began, UTC).isoformat(timespec="seconds") if began else "",
        # A job that ran over New Year.
        duration_s=round((read.last_time - first) % _YEAR_S, 3),
        backend="inductor" if read.inductor else "not known",
        mode=None,
        roots=project_roots(read.events),
        notes=(NOT_IN_A_TRACE, *(f"{name}: {sentence}" for sentence in sentences)),
    )


def _with_rank(report: Report, rank: int) -> Report:
    return replace(
        report,
        findings=tuple(
            replace(finding, ranks=(rank,), not_measured="a trace tells no cost")
            for finding in report.findings
        ),
        compiles=tuple(replace(compile_, rank=rank) for compile_ in report.compiles),
        timing=Timing("not measured: a trace does not tell when a step ends", 0),
    )


def project_roots(events: Sequence[Event]) -> tuple[str, ...]:
    """Directories of the project that a trace is of.

    The trace may be of another machine. So whatever is not installed counts as the project's, and the
    folder of the script comes first, as in a scan: fingerprints are then the same.
    """
    script = next((frame for event in events if (frame := _script(event))), None)
    folders = [os.getcwd(), *([os.path.dirname(script)] if script else []), os.path.abspath(os.sep)]
    return tuple(dict.fromkeys(folders))


def _script(event: Event) -> str | None:
    from breakscope.diagnose import records

    if event["t"] != "graph_break":
        return None
    frames = records.parse_break(event["payload"]).frames
    return frames[0].file if frames and frames[0].name == "<module>" else None


def _watched(file: TraceFile, progress: Progress | None) -> Source:
    if progress is None:
        return file
    return _Watched(file, progress)


@dataclass(frozen=True, slots=True)
class _Watched:
    """A file that tells how far it was read."""

    file: TraceFile
    progress: Progress

    def read(self, size: int, /) -> bytes:
        data = self.file.read(size)
        self.progress(self.file.taken, self.file.size)
        return data
