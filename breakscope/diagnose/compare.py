"""Two reports of the same script: what is new, what is fixed, what changed."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from breakscope.report.model import Finding, Report, Run
from breakscope.report.owners import display_path
from breakscope.report.ranking import worst_first

# Two measurements of one thing differ: a cost has changed when it did so by both of these.
COST_SHARE = 0.10
COST_MS = 0.02
# Compile times of one script differ by a third from run to run: they differ much by both of these.
COMPILE_RATIO = 1.5
COMPILE_S = 0.5


@dataclass(frozen=True, slots=True)
class Difference:
    """Something about the two runs, or about their scans, that is not the same; None: not known."""

    what: str
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class Change:
    """A number of a finding that is not the same.

    Attributes:
        what: cost in milliseconds a step; crossings or occurrences as counts.
        per_step: whether a count was divided by the steps, because the runs made different numbers of them.
    """

    what: Literal["cost", "crossings", "occurrences"]
    old: float
    new: float
    per_step: bool


@dataclass(frozen=True, slots=True)
class Pair:
    """One finding in both reports.

    Attributes:
        moved: whether it stands at another line or column.
        changes: the numbers that differ.
    """

    old: Finding
    new: Finding
    moved: bool
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class CompileTime:
    """Seconds that the runs compiled, where they differ much.

    Attributes:
        phase: in which most of the difference lies, with its seconds in both runs; None if not known.
        hits: of each cache that answered differently, graphs found and asked for: (old, new).
        compiles: how many compiles there were.
    """

    old: float
    new: float
    phase: tuple[str, float, float] | None
    hits: dict[str, tuple[tuple[int, int], tuple[int, int]]]
    compiles: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What became of every finding of two reports; each is in one list. Worst first.

    Attributes:
        before: the old report.
        after: the new report.
        settings: what differs about the runs; another torch alone can explain all the rest.
        doubts: sentences that say why a list must not be taken at face value.
        new: findings that only the new report has.
        fixed: findings that only the old report has, although the new run got to where they showed.
        unseen: findings that only the old report has, where the new run may not have got to them.
        changed: findings in both whose numbers differ; some of them moved too.
        moved: findings in both that only moved.
        compile_time: None where both compiled for about as long, or that is not known.
    """

    before: Report
    after: Report
    settings: tuple[Difference, ...]
    doubts: tuple[str, ...]
    new: tuple[Finding, ...]
    fixed: tuple[Finding, ...]
    unseen: tuple[Finding, ...]
    changed: tuple[Pair, ...]
    moved: tuple[Pair, ...]
    unchanged: tuple[Pair, ...]
    compile_time: CompileTime | None = None


def compare(old: Report, new: Report) -> Comparison:
    """Match two reports' findings by fingerprint, which knows no line number: a moved line is not new."""
    pairs, gone, fresh = _match(old, new)
    fixed: list[Finding] = []
    unseen: list[Finding] = []
    for finding in gone:
        (unseen if _may_be_unseen(finding, old, new) else fixed).append(finding)
    return Comparison(
        before=old,
        after=new,
        settings=_settings(old, new),
        doubts=_doubts(old, new),
        new=_ordered(fresh),
        fixed=_ordered(fixed),
        unseen=_ordered(unseen),
        changed=_ordered_pairs([pair for pair in pairs if pair.changes]),
        moved=_ordered_pairs([pair for pair in pairs if pair.moved and not pair.changes]),
        unchanged=_ordered_pairs([pair for pair in pairs if not pair.moved and not pair.changes]),
        compile_time=_compile_time(old, new),
    )


def _ordered(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=worst_first))


def _ordered_pairs(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    return tuple(sorted(pairs, key=lambda pair: worst_first(pair.new)))


# ---- findings ----


def _match(old: Report, new: Report) -> tuple[list[Pair], list[Finding], list[Finding]]:
    """(in both, only in the old, only in the new)."""
    waiting: dict[str, list[Finding]] = defaultdict(list)
    for finding in old.findings:
        waiting[finding.fingerprint].append(finding)
    pairs, fresh = [], []
    for finding in new.findings:
        if waiting[finding.fingerprint]:
            before = waiting[finding.fingerprint].pop(0)
            pairs.append(
                Pair(before, finding, _place(before) != _place(finding), _changes(before, finding, old, new))
            )
        else:
            fresh.append(finding)
    return pairs, [finding for left in waiting.values() for finding in left], fresh


def _place(finding: Finding) -> tuple[int, int | None]:
    # Not the file: its path relative to the project is part of the fingerprint, the rest is the machine's.
    return finding.location.line, finding.location.column


def _changes(before: Finding, after: Finding, old: Report, new: Report) -> tuple[Change, ...]:
    found = []
    if before.cost and after.cost:
        left, right = before.cost.ms_per_step, after.cost.ms_per_step
        if abs(left - right) > max(COST_MS, COST_SHARE * max(abs(left), abs(right))):
            found.append(Change("cost", left, right, per_step=False))
    crossings = _crossings(
        before.counts.crossings, after.counts.crossings, old.totals.steps, new.totals.steps
    )
    if crossings:
        found.append(crossings)
    if before.counts.occurrences != after.counts.occurrences:
        found.append(
            Change("occurrences", before.counts.occurrences, after.counts.occurrences, per_step=False)
        )
    return tuple(found)


def _crossings(
    left: int | None, right: int | None, old_steps: int | None, new_steps: int | None
) -> Change | None:
    if left is None or right is None or left == right:  # not measured, or only once at the start
        return None
    if old_steps == new_steps or not old_steps or not new_steps:
        return Change("crossings", left, right, per_step=False)
    if left * new_steps == right * old_steps:
        return None
    return Change("crossings", left / old_steps, right / new_steps, per_step=True)


# ---- the runs ----


def _ended_early(report: Report, reference: Report) -> bool:
    """Whether a run ended badly, and not as the reference did: a script may always exit with 1."""
    run, like = report.run, reference.run
    return run.status not in ("ok", "unknown") and (run.status, run.exit_code) != (
        like.status,
        like.exit_code,
    )


def _may_be_unseen(finding: Finding, old: Report, new: Report) -> bool:
    if new.reconciliation.vacuous or _ended_early(new, old):
        return True
    steps = new.totals.steps
    return finding.first_step is not None and steps is not None and finding.first_step >= steps


def _compile_time(old: Report, new: Report) -> CompileTime | None:
    left, right = _seconds(old), _seconds(new)
    if left is None or right is None or abs(left - right) < COMPILE_S:
        return None
    if max(left, right) < COMPILE_RATIO * min(left, right):
        return None
    phases = {phase for report in (old, new) for one in report.compiles for phase in one.phases}
    spent = [(phase, _in_phase(old, phase), _in_phase(new, phase)) for phase in sorted(phases)]
    caches = {cache for report in (old, new) for one in report.compiles for cache in one.caches}
    hits = {cache: (_hits(old, cache), _hits(new, cache)) for cache in sorted(caches)}
    return CompileTime(
        old=left,
        new=right,
        phase=max(spent, key=lambda row: (row[1] - row[2]) * (left - right), default=None),
        hits={cache: pair for cache, pair in hits.items() if pair[0] != pair[1]},
        compiles=(len(old.compiles), len(new.compiles)),
    )


def _seconds(report: Report) -> float | None:
    known = [one.seconds for one in report.compiles if one.seconds is not None]
    return sum(known) if known else None


def _in_phase(report: Report, phase: str) -> float:
    return sum(one.phases.get(phase, 0.0) for one in report.compiles)


def _hits(report: Report, cache: str) -> tuple[int, int]:
    answers = [one.caches[cache] for one in report.compiles if cache in one.caches]
    return answers.count("hit"), len(answers)


def _settings(old: Report, new: Report) -> tuple[Difference, ...]:
    """The most telling first."""
    rows = (
        ("torch", old.run.torch, new.run.torch),
        ("triton", old.run.triton, new.run.triton),
        ("device", _device(old.run), _device(new.run)),
        ("backend", old.run.backend, new.run.backend),
        ("mode", old.run.mode, new.run.mode),
        ("ranks", str(old.run.world_size), str(new.run.world_size)),
        ("script", *_scripts(old.run, new.run)),
        ("arguments", " ".join(old.run.argv), " ".join(new.run.argv)),
        ("compiled", ", ".join(old.run.compiled), ", ".join(new.run.compiled)),
        ("steps", _number(old.totals.steps), _number(new.totals.steps)),
        ("status", _status(old.run), _status(new.run)),
        ("python", old.run.python, new.run.python),
        ("breakscope", old.tool.version, new.tool.version),
    )
    return tuple(Difference(what, left, right) for what, left, right in rows if left != right)


def _device(run: Run) -> str | None:
    return f"{run.device.count} x {run.device.type} {run.device.name}" if run.device else None


def _scripts(old: Run, new: Run) -> tuple[str, str]:
    """Both scripts as a reader knows them; the same name twice for one script run from two folders."""
    full = [posixpath.normpath(posixpath.join(run.cwd, run.script)) for run in (old, new)]
    left, right = (display_path(run.script, (run.cwd,)) for run in (old, new))
    return (left, left) if full[0] == full[1] else (left, right)


def _number(value: int | None) -> str | None:
    return None if value is None else str(value)


def _status(run: Run) -> str:
    return run.status if run.exit_code is None else f"{run.status}, exit status {run.exit_code}"


def _doubts(old: Report, new: Report) -> tuple[str, ...]:
    found = []
    if len({posixpath.basename(script) for script in _scripts(old.run, new.run)}) > 1:
        found.append(
            "these are reports of two scripts: what is called new or fixed may just not be in the other"
        )
    if new.reconciliation.vacuous:
        found.append("nothing was compiled in the new run, so none of the old findings can be called fixed")
    elif _ended_early(new, old):
        found.append("the new run ended early, so none of the old findings can be called fixed")
    if old.reconciliation.vacuous:
        found.append("nothing was compiled in the old run, so everything looks new")
    elif _ended_early(old, new):
        found.append("the old run ended early, so what looks new may have been there before")
    steps = old.totals.steps, new.totals.steps
    if steps[0] is not None and steps[1] is not None and steps[1] < steps[0]:
        found.append("the new run made fewer steps, so what shows later is not seen")
    return tuple(found)
