"""The report of one process of a trace or log, and of all processes of an import together."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from breakscope.diagnose import records
from breakscope.diagnose.build import build
from breakscope.diagnose.outcome import Outcome
from breakscope.inside.events import Event
from breakscope.report.model import Device, Report
from breakscope.traces.assemble import Assembler
from breakscope.traces.damage import Damage
from breakscope.traces.files import rank_of

if TYPE_CHECKING:
    from breakscope.traces.text_log import LogProcess

NOT_IN_A_TRACE = (
    "imported: crossings, steps, cost, and the values that the failing calls had are known only to a live "
    "scan, and not measured here"
)
LOG_LACKS = (
    "a text log: regions, compile times and failures are not in it, and skipped frames only in part; "
    "TORCH_TRACE has them"
)
OLD_TORCH = (
    "the trace does not name its torch: 2.9 and older write no record of some breaks, such as those at "
    "unsupported context managers"
)
_YEAR_S = 366 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Part:
    """What one process left.

    Attributes:
        rank: None where neither the file's name nor any record says it.
        began: seconds since 1970, or None; order: seconds of the year of its first record.
    """

    report: Report
    path: str
    rank: int | None
    pid: int | None
    began: float | None
    order: float


def of_trace(
    path: str,
    pid: int,
    read: Assembler,
    damage: Damage,
    processes: int = 1,
    device: str | None = None,
    here: str | None = None,
) -> Part:
    """One process of a trace file, as far as it was read.

    Args:
        processes: how many wrote into the file.
        here: see :func:`project_roots`.
        device: type of device that its tensors were on.
    """
    notes = [f"{Path(path).name}: {sentence}" for sentence in damage.sentences()]
    if processes > 1:
        notes.append(
            f"{Path(path).name}: {processes} processes wrote into this file; their ids tell them apart"
        )
    if read.names_no_torch:
        notes.append(OLD_TORCH)
    rank = read.rank if read.rank is not None else rank_of(Path(path))
    report = build(read.events, None, _outcome(path, read, notes, here))
    if device is not None:
        # A process of a job computes on one; how many its machine has is not in a trace.
        report = replace(report, run=replace(report.run, device=Device(device, device, 1)))
    return Part(report, path, rank, pid, read.began, read.first_time or 0.0)


def of_log(path: str, pid: int, read: LogProcess, damage: Damage, here: str | None = None) -> Part:
    """One process of a text log, which tells of no regions."""
    name = Path(path).name
    notes = [LOG_LACKS, *(f"{name}: {sentence}" for sentence in damage.sentences())]
    report = build(read.events, None, _outcome(path, read, notes, here))
    report = replace(
        report,
        totals=replace(report.totals, regions=None, ops=None),
        # Something was compiled, or there were no messages.
        reconciliation=replace(report.reconciliation, vacuous=False),
    )
    return Part(report, path, read.rank, pid, None, read.first_time or 0.0)


def _outcome(path: str, read: Assembler | LogProcess, notes: Sequence[str], here: str | None) -> Outcome:
    first, began = read.first_time or 0.0, read.began
    return Outcome(
        script=path,
        argv=(),
        cwd="",
        status="unknown",
        exit_code=None,
        started_at=datetime.fromtimestamp(began, UTC).isoformat(timespec="seconds") if began else "",
        duration_s=round((read.last_time - first) % _YEAR_S, 3),  # also of a job that ran over New Year
        backend="inductor" if read.inductor else "not known",
        mode=None,
        roots=project_roots(read.events, here),
        notes=(NOT_IN_A_TRACE, *notes),
    )


def project_roots(events: Sequence[Event], here: str | None = None) -> tuple[str, ...]:
    """Directories of the project that a trace is of.

    Args:
        here: the folder in which the user stands; None for the current one, which that of a cluster's
            worker is not.

    The trace may be of another machine. So whatever is not installed counts as the project's, and the
    folder of the script comes before that, as in a scan: fingerprints are then the same.
    """
    script = next((file for event in events if (file := _script(event))), None)
    folders = [here or os.getcwd(), *([os.path.dirname(script)] if script else []), os.path.abspath(os.sep)]
    return tuple(dict.fromkeys(folders))


def _script(event: Event) -> str | None:
    if event["t"] != "graph_break":
        return None
    frames = records.parse_break(event["payload"]).frames
    return frames[0].file if frames and frames[0].name == "<module>" else None


def combine(parts: Sequence[Part], name: str) -> Report:
    """One report of all processes. Ranks in one folder are one job; the same rank again is a restart.

    Args:
        name: what was imported, for the report to name.
    """
    if len(parts) == 1:
        return parts[0].report
    from breakscope.diagnose import merge

    seen: dict[tuple[str, int], int] = {}
    reports = []
    for part in sorted(parts, key=lambda part: (part.began or 0.0, part.order)):
        folder = os.path.dirname(os.path.abspath(part.path))
        # A process without a rank is nobody's rank 0: it is a job by itself.
        job = folder if part.rank is not None else f"{part.path}#{part.pid}"
        attempt = seen[job, part.rank or 0] = seen.get((job, part.rank or 0), -1) + 1
        who = merge.Identity(part.rank or 0, job, attempt, pid=part.pid, began=part.began)
        reports.append(merge.as_rank(part.report, who))
    merged = merge.merge(reports)
    return replace(merged, run=replace(merged.run, script=name))
