"""Reports of several processes made into one: the ranks of a job, or the jobs of a fleet.

A merged report keeps what each process reported (``Report.ranks``, ``Finding.by_rank``, and the ``process``
of regions, steps and compiles), and everything else in it is computed from that. So the order and the
grouping of merges cannot matter, and a report that comes twice counts once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any, TypeVar

from breakscope import __version__
from breakscope.diagnose import divergence, rank_findings, rank_runs
from breakscope.errors import ReportError
from breakscope.report import codec
from breakscope.report.model import Compile, Finding, Rank, RankCounts, Region, Report, Signature, Step, Tool
from breakscope.report.ranking import worst_first
from breakscope.report.schema import dumps

_Record = TypeVar("_Record", Region, Compile, Step, Signature)


@dataclass(frozen=True, slots=True)
class Identity:
    """Which process of which job a report of one process is about.

    Attributes:
        job: the same for all ranks of one job, and for no other job; None to make a name from the report.
        attempt: how often the job had been restarted before.
        began: seconds since 1970 by the host's clock.
        ended: what ended it, in words, where its exit code alone would mislead.
    """

    rank: int = 0
    job: str | None = None
    attempt: int = 0
    host: str | None = None
    pid: int | None = None
    began: float | None = None
    ended: str | None = None


def merge(reports: Sequence[Report]) -> Report:
    """One report of all processes that the given reports are about.

    Associative, commutative and idempotent: any order and any grouping gives the same report, byte for byte.
    A report that no launcher or importer has named (:func:`as_rank`) counts as rank 0 of a job of its own. A
    benchmark is of one machine and is not carried over.

    Raises:
        ValueError: if there is no report.
    """
    if not reports:
        raise ValueError("there is nothing to merge")
    parts = [report if report.ranks else as_rank(report, Identity()) for report in reports]
    ranks = _ranks(parts)
    order = {rank.process: index for index, rank in enumerate(ranks)}
    findings = [
        rank_findings.combine(versions, order)
        for versions in _grouped((one for part in parts for one in part.findings), lambda f: f.fingerprint)
    ]
    findings.sort(key=lambda finding: (*worst_first(finding), finding.fingerprint))
    merged = Report(
        tool=Tool("breakscope", __version__),
        run=rank_runs.run(ranks),
        totals=rank_runs.totals(ranks, findings),
        reconciliation=rank_runs.reconciliation(ranks),
        findings=tuple(findings),
        regions=_records([part.regions for part in parts], order, Region),
        steps=_records([part.steps for part in parts], order, Step),
        compiles=_records([part.compiles for part in parts], order, Compile),
        timing=rank_runs.timing(ranks),
        signatures=_records([part.signatures for part in parts], order, Signature),
        ranks=ranks,
        artifacts=tuple(sorted({artifact for part in parts for artifact in part.artifacts}, key=astuple)),
    )
    return replace(merged, divergences=divergence.find(merged))


def as_rank(report: Report, who: Identity) -> Report:
    """The report of one process in the form that :func:`merge` returns, with its place in its job."""
    digest = hashlib.sha256(f"{who}\n{dumps(report)}".encode()).hexdigest()[:12]
    rank = Rank(
        process=digest,
        job=who.job if who.job is not None else f"job-{digest}",
        rank=who.rank,
        attempt=who.attempt,
        run=report.run,
        totals=report.totals,
        reconciliation=report.reconciliation,
        timing=report.timing,
        host=who.host,
        pid=who.pid,
        began=who.began,
        ended=who.ended,
    )
    return replace(
        report,
        findings=tuple(_finding_of(finding, rank) for finding in report.findings),
        regions=tuple(replace(region, rank=rank.rank, process=digest) for region in report.regions),
        steps=tuple(replace(step, rank=rank.rank, process=digest) for step in report.steps),
        compiles=tuple(replace(one, rank=rank.rank, process=digest) for one in report.compiles),
        signatures=tuple(
            replace(signature, rank=rank.rank, process=digest) for signature in report.signatures
        ),
        benchmark=None,
        artifacts=tuple(replace(artifact, rank=rank.rank) for artifact in report.artifacts),
        ranks=(rank,),
        divergences=(),
    )


def _finding_of(finding: Finding, rank: Rank) -> Finding:
    own = RankCounts(
        rank.process,
        rank.rank,
        finding.counts,
        finding.first_step,
        finding.last_step,
        finding.cost,
        finding.guard,
        finding.skipped,
    )
    return replace(finding, ranks=(rank.rank,), by_rank=(own,))


def _ranks(parts: Sequence[Report]) -> tuple[Rank, ...]:
    same = _grouped((rank for part in parts for rank in part.ranks), lambda rank: rank.process)
    ranks = (least(versions, Rank) for versions in same)
    return tuple(sorted(ranks, key=lambda one: (one.job, one.rank, one.attempt, one.process)))


def _records(
    parts: Sequence[tuple[_Record, ...]], order: dict[str, int], kind: type[_Record]
) -> tuple[_Record, ...]:
    """What the processes have, process by process, each from one of the reports that hold it."""
    by_process: dict[str, list[tuple[_Record, ...]]] = {}
    for part in parts:
        for group in _grouped(part, lambda record: record.process or ""):
            by_process.setdefault(group[0].process or "", []).append(tuple(group))
    if unknown := by_process.keys() - order.keys():
        raise ReportError(
            f"a {kind.__name__.lower()} is of process {min(unknown)!r}, which the report does not list"
        )
    shape = tuple[kind, ...]  # type: ignore[valid-type]
    known = sorted(by_process, key=order.__getitem__)
    return tuple(record for process in known for record in least(by_process[process], shape))


def least(versions: Sequence[Any], kind: Any) -> Any:
    """One of several records that should be the same one: any order of them gives the same choice.

    They differ only where a report was changed after it was made.
    """
    first = versions[0]
    if all(other == first for other in versions):
        return first
    return min(versions, key=lambda version: json.dumps(codec.encode(version, kind), sort_keys=True))


_Item = TypeVar("_Item")


def _grouped(items: Iterable[_Item], key: Callable[[_Item], str]) -> list[list[_Item]]:
    groups: dict[str, list[_Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return list(groups.values())
