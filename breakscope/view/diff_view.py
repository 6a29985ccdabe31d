"""What every format shows of a comparison, before any layout: order and words.

Every text is harmless and without a line break.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from breakscope.diagnose.compare import Change, Comparison, CompileTime, Difference, Pair
from breakscope.report import benchmark
from breakscope.report.model import Finding, Report
from breakscope.view import bench_view
from breakscope.view.compiling import CACHES, PHASES
from breakscope.view.text import NOT_MEASURED, count, harmless, milliseconds, seconds, short_path
from breakscope.view.words import said

SectionName = Literal["new", "fixed", "unseen", "changed", "moved", "unchanged"]
ARROW = " -> "

_HEADINGS: dict[SectionName, str] = {
    "new": "new",
    "fixed": "fixed",
    "unseen": "not seen again, and not known to be fixed",
    "changed": "changed",
    "moved": "moved",
    "unchanged": "unchanged",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One finding.

    Attributes:
        where: its place in the new report; in the old one if only that has it.
        amount: what it costs, else how often it happens; by the report of ``where``.
        changes: what is not as it was.
    """

    fingerprint: str
    code: str
    title: str
    where: str
    function: str
    amount: str
    changes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """Findings that had the same fate."""

    name: SectionName
    heading: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class DiffView:
    """A whole comparison.

    Attributes:
        title: the two runs in one line.
        settings: (what, ``old -> new``) pairs: what else may explain the differences.
        doubts: why a section must not be taken at face value.
        verdict: how many findings had which fate.
        totals: (what, old, new) of the sums that differ.
        sections: those that hold something.
    """

    title: str
    settings: tuple[tuple[str, str], ...]
    doubts: tuple[str, ...]
    verdict: str
    totals: tuple[tuple[str, str, str], ...]
    sections: tuple[Section, ...]


def build(comparison: Comparison, *, root: str | None) -> DiffView:
    """The view of a comparison, with paths relative to the root or to where the scripts ran."""
    old, new = comparison.before, comparison.after
    sections = (
        _alone("new", new, comparison.new, root),
        _alone("fixed", old, comparison.fixed, root),
        _alone("unseen", old, comparison.unseen, root),
        _pairs("changed", new, comparison.changed, root),
        _pairs("moved", new, comparison.moved, root),
        _pairs("unchanged", new, comparison.unchanged, root),
    )
    return DiffView(
        title=f"{_run(old, root)}{ARROW}{_run(new, root)}",
        settings=tuple((setting.what, _difference(setting)) for setting in comparison.settings),
        doubts=tuple(map(harmless, comparison.doubts)),
        verdict=_verdict(sections) + compile_time(comparison.compile_time),
        totals=(*_totals(old, new), *_benchmarks(old, new)),
        sections=tuple(section for section in sections if section.rows),
    )


def _verdict(sections: Sequence[Section]) -> str:
    numbers = [f"{len(section.rows):,} {section.name}" for section in sections if section.rows]
    return ", ".join(numbers).replace("unseen", "not seen again") or "no findings in either report"


def compile_time(found: CompileTime | None) -> str:
    """``; compile time 17.6 s -> 3.3 s: …``, and why as far as the reports say; empty for no difference."""
    if found is None:
        return ""
    reasons = [
        f"{CACHES.get(cache, harmless(cache))} cache hits {_of(old)}{ARROW}{_of(new)}"
        for cache, (old, new) in found.hits.items()
    ]
    if found.compiles[0] != found.compiles[1]:
        reasons.append(f"compiles {found.compiles[0]:,}{ARROW}{found.compiles[1]:,}")
    if found.phase is not None:
        phase, old, new = found.phase
        name = PHASES.get(phase, harmless(phase))
        reasons.append(f"most of it in {name}, {seconds(old)}{ARROW}{seconds(new)}")
    why = "; ".join(reasons) or "the reports do not say why"
    return f"; compile time {seconds(found.old)}{ARROW}{seconds(found.new)}: {why}"


def _of(hits: tuple[int, int]) -> str:
    return f"{hits[0]:,} of {hits[1]:,}"


def _run(report: Report, root: str | None) -> str:
    folders = [folder for folder in (root, report.run.cwd) if folder]
    return f"{short_path(report.run.script, folders)} ({harmless(report.run.started_at)})"


def _difference(one: Difference) -> str:
    left, right = ("not known" if value is None else value or "none" for value in (one.old, one.new))
    return harmless(f"{left}{ARROW}{right}")


def _totals(old: Report, new: Report) -> tuple[tuple[str, str, str], ...]:
    names = ("sites", "occurrences", "crossings", "recompiles", "skips", "regions", "ops", "steps")
    rows = [(name, getattr(old.totals, name), getattr(new.totals, name)) for name in names]
    return tuple((name, _number(left), _number(right)) for name, left, right in rows if left != right)


def _benchmarks(old: Report, new: Report) -> tuple[tuple[str, str, str], ...]:
    """Steps of the arms that both were measured in; what differs within the intervals is said to be noise."""
    before, after = (benchmark.from_dict(report.benchmark) for report in (old, new))
    if before is None or after is None:
        return ()
    now = {arm.name: arm.step for arm in after.arms}
    rows = []
    for arm in before.arms:
        step = now.get(arm.name)
        if arm.step is not None and step is not None:
            overlap = step.low <= arm.step.high and arm.step.low <= step.high
            verdict = "within the noise" if overlap else f"{arm.step.median / step.median:.2f}x as fast"
            other = "" if before.device == after.device else ", on another device"
            what = harmless(f"step of {arm.name}")
            rows.append(
                (what, bench_view.interval(arm.step), f"{bench_view.interval(step)}, {verdict}{other}")
            )
    return tuple(rows)


def _number(value: int | None) -> str:
    return NOT_MEASURED if value is None else f"{value:,}"


# ---- findings ----


def _alone(name: SectionName, report: Report, findings: Sequence[Finding], root: str | None) -> Section:
    rows = tuple(_row(report, finding, root, ()) for finding in findings)
    return Section(name, _HEADINGS[name], rows)


def _pairs(name: SectionName, report: Report, pairs: Sequence[Pair], root: str | None) -> Section:
    rows = tuple(_row(report, pair.new, root, _changes(pair)) for pair in pairs)
    return Section(name, _HEADINGS[name], rows)


def _row(report: Report, finding: Finding, root: str | None, changes: tuple[str, ...]) -> Row:
    words = said(report, finding, root)
    return Row(
        fingerprint=harmless(finding.fingerprint),
        code=harmless(finding.code),
        title=words.title,
        where=words.where,
        function=words.function,
        amount=words.amount,
        changes=changes,
    )


def _changes(pair: Pair) -> tuple[str, ...]:
    changes = [_change(change) for change in pair.changes]
    if pair.moved:
        old, new = pair.old.location, pair.new.location
        if old.line != new.line:
            changes.append(f"moved from line {old.line} to {new.line}")
        else:
            changes.append(f"moved from column {old.column or 'unknown'} to {new.column or 'unknown'}")
    return tuple(changes)


def _change(change: Change) -> str:
    if change.what == "cost":
        return f"{milliseconds(change.old)}{ARROW}{milliseconds(change.new)} ms a step{_percent(change)}"
    if change.per_step:
        return f"{change.old:,.2f}{ARROW}{change.new:,.2f} {change.what} a step"
    return f"{change.old:,.0f}{ARROW}{count(round(change.new), change.what[:-1])}"


def _percent(change: Change) -> str:
    return f" ({(change.new - change.old) / change.old:+.0%})" if change.old > 0 else ""
