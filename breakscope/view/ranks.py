"""What every format says of ranks: in what they differ, and what each did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from breakscope.report.model import Divergence, DivergenceKind, Rank, Report
from breakscope.view.text import NOT_MEASURED, count, harmless, seconds, short_path

_LABELS: dict[DivergenceKind, str] = {
    "ended": "died",
    "waited": "waited",
    "finding": "differ",
    "values": "values",
    "collectives": "order",
    "graphs": "graphs",
    "cache": "cache",
    "skew": "skew",
    "setup": "setup",
}
_MOST_RANKS = 8  # of which one line says what each has


@dataclass(frozen=True, slots=True)
class Line:
    """One divergence.

    Attributes:
        where: the place in source, empty where it has none.
        each: what each rank has, as one line; empty where the text says it.
        fingerprint: of the finding that it is about.
    """

    label: str
    text: str
    where: str
    each: str
    fingerprint: str | None


@dataclass(frozen=True, slots=True)
class Row:
    """One process of the job, every cell as text."""

    rank: str
    ended: str
    steps: str
    recompiles: str
    regions: str
    compile_time: str
    device: str
    host: str


@dataclass(frozen=True, slots=True)
class RanksView:
    """The ranks of a merged report.

    Attributes:
        sentence: whether they agree; alarming says that they do not.
        unknown: what could not be compared.
    """

    sentence: str
    alarming: bool
    lines: tuple[Line, ...]
    left_out: int
    rows: tuple[Row, ...]
    more_rows: int
    unknown: tuple[str, ...]


def build(
    report: Report, folders: Sequence[str], most: int | None, most_rows: int | None = None
) -> RanksView | None:
    """The view of a report's ranks, with at most so many lines; None for a report of one process."""
    if len(report.ranks) < 2:
        return None
    shown = report.divergences[:most]
    several_jobs = len({rank.job for rank in report.ranks}) > 1
    spent: dict[str, float] = {}
    for one in report.compiles:
        if one.process and one.seconds is not None:
            spent[one.process] = spent.get(one.process, 0.0) + one.seconds
    rows = report.ranks[:most_rows]
    return RanksView(
        sentence=_sentence(report),
        alarming=bool(report.divergences),
        lines=tuple(_line(one, folders, several_jobs) for one in shown),
        left_out=len(report.divergences) - len(shown),
        rows=tuple(_row(rank, report.ranks, spent.get(rank.process)) for rank in rows),
        more_rows=len(report.ranks) - len(rows),
        unknown=_unknown(report),
    )


def _sentence(report: Report) -> str:
    jobs = dict.fromkeys(rank.job for rank in report.ranks)
    processes = count(len(report.ranks), "process", "processes")
    whole = processes if len(jobs) == 1 else f"{processes} of {count(len(jobs), 'job')}"
    if not report.divergences:
        alike = "no rank differs from the others in findings, graphs, compile cache, setup or ending"
        return f"{whole}: {alike}" if _together(report) else f"{whole}; no two ranks of one job to compare"
    from breakscope.diagnose.divergence import parted

    apart = {job: parted(report.divergences, job) for job in jobs}
    differ = count(len(report.divergences), "difference")
    if len(jobs) > 1:
        unlike = len({divergence.job for divergence in report.divergences})
        return f"{whole}: {differ} between ranks, in {count(unlike, 'job')}"
    step = next(iter(apart.values()))
    since = "" if step is None else f"; they parted at step {step}"
    return f"{whole}: {differ} between ranks{since}"


def _together(report: Report) -> bool:
    seen: dict[tuple[str, int], set[int]] = {}
    for rank in report.ranks:
        seen.setdefault((rank.job, rank.attempt), set()).add(rank.rank)
    return any(len(ranks) > 1 for ranks in seen.values())


def _line(one: Divergence, folders: Sequence[str], several_jobs: bool) -> Line:
    text = harmless(one.text)
    if one.attempt:
        text = f"after restart {one.attempt}: {text}"
    if several_jobs:
        text = f"job {harmless(one.job)}: {text}"
    where = f"{short_path(one.file, folders)}:{one.line}" if one.file else ""
    each = ""
    if one.kind not in ("ended", "waited", "skew") and len(one.by_rank) <= _MOST_RANKS:
        each = " · ".join(f"rank {harmless(rank)}: {harmless(has)}" for rank, has in one.by_rank.items())
    return Line(_LABELS[one.kind], text, where, each, one.fingerprint)


def _row(rank: Rank, ranks: Sequence[Rank], spent: float | None) -> Row:
    from breakscope.diagnose.divergence import device_of, how  # reports of one process need none of it

    totals = rank.totals
    return Row(
        rank=harmless(_name(rank, ranks)),
        ended=harmless(rank.ended or how(rank)),
        steps=NOT_MEASURED if totals.steps is None else f"{totals.steps:,}",
        recompiles=f"{totals.recompiles:,}",
        regions=NOT_MEASURED if totals.regions is None else f"{totals.regions:,}",
        compile_time=NOT_MEASURED if spent is None else seconds(spent),
        device=harmless(device_of(rank)),
        host=harmless(rank.host or "not known"),
    )


def _name(rank: Rank, ranks: Sequence[Rank]) -> str:
    name = str(rank.rank)
    if any(other.job != rank.job for other in ranks):
        name = f"{rank.job} {name}"
    if any(other.attempt and other.job == rank.job for other in ranks):
        name += f", attempt {rank.attempt}"
    return name


def _unknown(report: Report) -> tuple[str, ...]:
    """What the report cannot say about the ranks together."""
    missing = []
    if all(region.collectives is None for region in report.regions):
        missing.append(f"order of collectives: {NOT_MEASURED}")
    else:
        missing.append(f"order of collectives outside of compiled graphs: {NOT_MEASURED}")
    if not any(step.ms is not None for step in report.steps):
        missing.append(f"who waited for whom: {NOT_MEASURED}, no step was timed")
    return tuple(missing)
