"""A merged report as tables of one process each, for fleets: every row says of which process it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from breakscope.diagnose.rank_groups import by_process
from breakscope.diagnose.tables import table
from breakscope.report.model import Compile, Finding, Rank, RankCounts, Region, Report, Step
from breakscope.report.owners import display_path

if TYPE_CHECKING:
    import pandas as pd

# Column -> dtype, as in ``tables``: a contract, new columns go to the end. Job and rank are not among them:
# they are the folders in which a file lies, where every reader of partitioned tables finds them.
_TEXT, _COUNT, _NUMBER, _FLAG = "string", "Int64", "Float64", "boolean"
_PROCESS = {"process": _TEXT, "attempt": _COUNT}
RANKS = _PROCESS | {
    "status": _TEXT,
    "exit_code": _COUNT,
    "ended": _TEXT,
    "host": _TEXT,
    "pid": _COUNT,
    "began": _NUMBER,
    "duration_s": _NUMBER,
    "torch": _TEXT,
    "python": _TEXT,
    "device": _TEXT,
    "script": _TEXT,
    "backend": _TEXT,
    "vacuous": _FLAG,
    "sites": _COUNT,
    "occurrences": _COUNT,
    "crossings": _COUNT,
    "recompiles": _COUNT,
    "skips": _COUNT,
    "regions": _COUNT,
    "ops": _COUNT,
    "steps": _COUNT,
    "step_ms": _NUMBER,
}
FINDINGS = _PROCESS | {
    "fingerprint": _TEXT,
    "code": _TEXT,
    "kind": _TEXT,
    "title": _TEXT,
    "file": _TEXT,
    "line": _COUNT,
    "function": _TEXT,
    "owner": _TEXT,
    "occurrences": _COUNT,
    "crossings": _COUNT,
    "cost_ms_per_step": _NUMBER,
    "first_step": _COUNT,
    "last_step": _COUNT,
    "compile_ids": _TEXT,
    "guard_cause": _TEXT,
    "guard_source": _TEXT,
    "guard_dimension": _COUNT,
    "guard_expected": _TEXT,
    "guard_actual": _TEXT,
}
REGIONS = _PROCESS | {
    "compile_id": _TEXT,
    "function": _TEXT,
    "ops": _COUNT,
    "calls": _COUNT,
    "ms": _NUMBER,
    "ended_by": _TEXT,
    "split": _TEXT,
}
COMPILES = _PROCESS | {
    "compile_id": _TEXT,
    "function": _TEXT,
    "file": _TEXT,
    "line": _COUNT,
    "step": _COUNT,
    "at_s": _NUMBER,
    "seconds": _NUMBER,
    "cache": _TEXT,
    "finding": _TEXT,
    "failed": _TEXT,
}
STEPS = _PROCESS | {
    "step": _COUNT,
    "at_s": _NUMBER,
    "ms": _NUMBER,
    "compile_ms": _NUMBER,
    "compiles": _COUNT,
    "crossings": _COUNT,
    "launches": _COUNT,
}


def frames(report: Report) -> Iterator[tuple[Rank, dict[str, pd.DataFrame]]]:
    """The tables ``ranks``, ``findings``, ``regions``, ``compiles`` and ``steps`` of each process.

    Times are in milliseconds where the name ends in ``ms``, else in seconds. What is not known is ``pd.NA``.
    """
    regions, compiles = by_process(report.regions), by_process(report.compiles)
    steps = by_process(report.steps)
    findings: dict[str, list[tuple[Finding, RankCounts]]] = {}
    for finding in report.findings:
        for entry in finding.by_rank:
            findings.setdefault(entry.process, []).append((finding, entry))
    for rank in report.ranks:
        key = rank.process
        own = (regions.get(key, []), compiles.get(key, []), steps.get(key, []))
        yield rank, _frames(rank, findings.get(key, []), *own)


def _frames(
    rank: Rank,
    findings: Sequence[tuple[Finding, RankCounts]],
    regions: Sequence[Region],
    compiles: Sequence[Compile],
    steps: Sequence[Step],
) -> dict[str, pd.DataFrame]:
    own = rank.process, rank.attempt
    folders = (rank.run.cwd,)
    return {
        "ranks": table(RANKS, [(*own, *_rank(rank))]),
        "findings": table(FINDINGS, ((*own, *_finding(*finding, folders)) for finding in findings)),
        "regions": table(
            REGIONS,
            (
                (
                    *own,
                    region.compile_id,
                    region.function,
                    region.ops,
                    region.calls,
                    region.ms,
                    region.ended_by,
                    region.split,
                )
                for region in regions
            ),
        ),
        "compiles": table(
            COMPILES,
            (
                (
                    *(*own, one.compile_id, one.function),
                    *(display_path(one.file, folders) if one.file else None, one.line),
                    *(one.step, one.at_s, one.seconds, one.cache, one.finding, one.failed),
                )
                for one in compiles
            ),
        ),
        "steps": table(
            STEPS,
            (
                (
                    *own,
                    step.index,
                    step.at_s,
                    step.ms,
                    step.compile_ms,
                    step.compiles,
                    step.crossings,
                    step.launches,
                )
                for step in steps
            ),
        ),
    }


def _rank(rank: Rank) -> tuple[Any, ...]:
    run, totals, timing = rank.run, rank.totals, rank.timing
    device = f"{run.device.type} {run.device.name}" if run.device else None
    return (
        *(run.status, run.exit_code, rank.ended, rank.host, rank.pid, rank.began, run.duration_s),
        *(run.torch, run.python, device, run.script, run.backend, rank.reconciliation.vacuous),
        *(totals.sites, totals.occurrences, totals.crossings, totals.recompiles, totals.skips),
        *(totals.regions, totals.ops, totals.steps, timing.step_ms if timing else None),
    )


def _finding(finding: Finding, entry: RankCounts, folders: tuple[str, ...]) -> tuple[Any, ...]:
    place, guard = finding.location, entry.guard
    return (
        *(finding.fingerprint, finding.code, finding.kind, finding.title),
        *(display_path(place.file, folders), place.line, place.function, place.owner),
        *(entry.counts.occurrences, entry.counts.crossings, entry.cost.ms_per_step if entry.cost else None),
        *(entry.first_step, entry.last_step, " ".join(entry.counts.compile_ids)),
        *(
            (guard.cause, guard.source, guard.dimension, guard.expected, guard.actual)
            if guard
            else [None] * 5
        ),
    )
