"""What a merged report says of its processes together: how they ended, and sums over all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from breakscope.diagnose.rank_groups import stopped
from breakscope.report.model import Compiled, Finding, Rank, Reconciliation, Run, Timing, Totals
from breakscope.report.ranking import is_site

# What the whole is called when its ranks ended in several ways: the first of these that one of them has.
_WORST_FIRST = ("killed", "timeout", "script_error", "interrupted", "unknown", "ok")

_Value = TypeVar("_Value")


def last_attempts(ranks: Sequence[Rank]) -> list[Rank]:
    """The processes of the last attempt of each job: how a job ended is how these did."""
    last: dict[str, int] = {}
    for rank in ranks:
        last[rank.job] = max(rank.attempt, last.get(rank.job, 0))
    return [rank for rank in ranks if rank.attempt == last[rank.job]]


def run(ranks: Sequence[Rank]) -> Run:
    """The run as a whole, described by its first process and ended as its worst one."""
    ending = worst(last_attempts(ranks))
    targets: dict[Compiled, None] = dict.fromkeys(target for rank in ranks for target in rank.run.targets)
    return replace(
        ranks[0].run,
        status=ending.run.status,
        exit_code=ending.run.exit_code,
        started_at=min(rank.run.started_at for rank in ranks),
        duration_s=max(rank.run.duration_s for rank in ranks),
        world_size=sum(_by_job(ranks, lambda of_job: max(rank.run.world_size for rank in of_job))),
        compiled=tuple(dict.fromkeys(name for rank in ranks for name in rank.run.compiled)),
        device=next((rank.run.device for rank in ranks if rank.run.device), None),
        torch=next((rank.run.torch for rank in ranks if rank.run.torch), None),
        targets=tuple(targets),
        notes=_notes(ranks),
        sources=_sources(ranks),
        machine=_machine(ranks),
    )


def worst(ranks: Sequence[Rank]) -> Rank:
    """The rank whose end is told: one that ended by itself before those that were stopped because of it."""
    return min(ranks, key=_by_blame)


def _by_blame(rank: Rank) -> tuple[bool, int]:
    failed = rank.run.status not in ("ok", "unknown")
    return not failed or stopped(rank), _WORST_FIRST.index(rank.run.status)


def name(rank: Rank, ranks: Sequence[Rank]) -> str:
    """A process as the reader knows it: its rank, with job and attempt where there are several."""
    several_jobs = any(other.job != rank.job for other in ranks)
    several_attempts = any(other.job == rank.job and other.attempt for other in ranks)
    return (
        f"rank {rank.rank}"
        + (f" of job {rank.job}" if several_jobs else "")
        + (f", attempt {rank.attempt}" if several_attempts else "")
    )


def _machine(ranks: Sequence[Rank]) -> str | None:
    machines = {rank.run.machine for rank in ranks}
    return machines.pop() if len(machines) == 1 else None


def _sources(ranks: Sequence[Rank]) -> dict[str, str]:
    """The files that every rank that read them saw alike: another one is not what any report is about."""
    seen: dict[str, set[str]] = {}
    for rank in ranks:
        for file, digest in rank.run.sources.items():
            seen.setdefault(file, set()).add(digest)
    return {file: next(iter(digests)) for file, digests in sorted(seen.items()) if len(digests) == 1}


def _notes(ranks: Sequence[Rank]) -> tuple[str, ...]:
    """Each note once, with the processes that it is about unless it is about all of them."""
    about: dict[str, list[Rank]] = {}
    for rank in ranks:
        for note in dict.fromkeys(rank.run.notes):
            about.setdefault(note, []).append(rank)
    notes = []
    for note, those in about.items():
        if len(those) == len(ranks):
            notes.append(note)
        elif len(those) <= 3:
            notes.append(f"{'; '.join(name(one, ranks) for one in those)}: {note}")
        else:
            notes.append(f"{len(those):,} of {len(ranks):,} processes: {note}")
    return tuple(notes)


def totals(ranks: Sequence[Rank], findings: Sequence[Finding]) -> Totals:
    """Sums over all processes; sites once each, skips and steps of the rank that has most."""
    each = [rank.totals for rank in ranks]
    return Totals(
        sites=sum(map(is_site, findings)),
        occurrences=sum(one.occurrences for one in each),
        crossings=_sum(one.crossings for one in each),
        recompiles=sum(one.recompiles for one in each),
        skips=max(one.skips for one in each),
        regions=_sum(one.regions for one in each),
        ops=_sum(one.ops for one in each),
        steps=_sum(_by_job(ranks, _steps)),
    )


def _steps(of_job: Sequence[Rank]) -> int | None:
    """The steps of a job, over all its attempts."""
    most: dict[int, int] = {}
    for rank in of_job:
        if rank.totals.steps is None:
            return None
        most[rank.attempt] = max(most.get(rank.attempt, 0), rank.totals.steps)
    return sum(most.values())


def reconciliation(ranks: Sequence[Rank]) -> Reconciliation:
    """Dynamo's numbers summed. Vacuous only where every process was: one that was is a divergence."""
    dynamo: Counter[str] = Counter()
    for rank in ranks:
        dynamo.update(rank.reconciliation.dynamo)
    return Reconciliation(
        dict(sorted(dynamo.items())),
        tuple(one for rank in ranks for one in rank.reconciliation.unattributed),
        nothing := all(rank.reconciliation.vacuous for rank in ranks),
        ranks[0].reconciliation.why if nothing else None,
    )


def timing(ranks: Sequence[Rank]) -> Timing | None:
    """That of the slowest process, for which the others wait."""
    known = [rank.timing for rank in ranks if rank.timing]
    return max(known, key=lambda one: one.step_ms or 0.0, default=None)


def _sum(numbers: Iterable[int | None]) -> int | None:
    known = list(numbers)
    return None if None in known else sum(one for one in known if one is not None)


def _by_job(ranks: Sequence[Rank], of: Callable[[list[Rank]], _Value]) -> list[_Value]:
    jobs: dict[str, list[Rank]] = {}
    for rank in ranks:
        jobs.setdefault(rank.job, []).append(rank)
    return [of(of_job) for of_job in jobs.values()]
