"""Findings that only some ranks of a job have, have more often, or have for other values."""

from __future__ import annotations

from collections.abc import Sequence

from breakscope.diagnose.guards import describe
from breakscope.diagnose.rank_groups import Group, stopped
from breakscope.report.model import Divergence, Finding, Rank, RankCounts, Report

Entries = dict[str, RankCounts]
"""What each process has of a finding, by process."""

_VERBS = {"recompile": "recompiled", "graph_break": "broke the graph in", "skip": "ran eagerly"}


def entries(report: Report, groups: Sequence[Group]) -> dict[int, list[tuple[Finding, Entries]]]:
    """For each group, by its place in ``groups``, the findings that its ranks have, with what each has."""
    home = {process: number for number, group in enumerate(groups) for process in group.numbers}
    found: dict[int, list[tuple[Finding, Entries]]] = {}
    for finding in report.findings:
        own: dict[int, Entries] = {}
        for entry in finding.by_rank:
            if entry.process in home:
                own.setdefault(home[entry.process], {})[entry.process] = entry
        for number, those in own.items():
            found.setdefault(number, []).append((finding, those))
    return found


def find(group: Group, findings: Sequence[tuple[Finding, Entries]]) -> list[Divergence]:
    """At most one divergence for each finding of a group."""
    found = []
    for finding, own in findings:
        missing = [r for r in group.ranks if r.process not in own and _was_there(r, own)]
        made = _only_some(finding, group, own, missing) if missing else _unlike(finding, group, own)
        if made is not None:
            found.append(made)
    return found


def _was_there(rank: Rank, own: Entries) -> bool:
    """Whether a rank got as far as the step at which others met the finding."""
    steps = [entry.first_step for entry in own.values() if entry.first_step is not None]
    if not steps or rank.totals.steps is None or (rank.run.status == "ok" and rank.ended is None):
        return True
    # One that was stopped had most likely done its part of the step, and waited; one that died had not.
    waited = stopped(rank) or rank.run.status == "timeout"
    return rank.totals.steps > min(steps) or (waited and rank.totals.steps == min(steps))


def _only_some(finding: Finding, group: Group, own: Entries, missing: list[Rank]) -> Divergence:
    step = min((e.first_step for e in own.values() if e.first_step is not None), default=None)
    when = "" if step is None else f" at step {step}"
    function = finding.location.function or finding.location.file
    alone = " alone" if len(own) == 1 else ""
    text = f"{group.words(own)}{alone} {_VERBS[finding.kind]} {function}{when}: {what(finding, own)}"
    by_rank = {process: _amount(entry) for process, entry in own.items()}
    by_rank |= {rank.process: "not once" for rank in missing}
    return group.made(
        "finding",
        text,
        own,
        place=finding.location,
        step=step,
        fingerprint=finding.fingerprint,
        dimension=finding.guard.dimension if finding.guard else None,
        by_rank=by_rank,
    )


def what(finding: Finding, own: Entries) -> str:
    """What it is about on these ranks: a guard has its own values on each."""
    guards = [entry.guard for entry in own.values() if entry.guard]
    return describe(guards[0]) if guards else finding.title


def _unlike(finding: Finding, group: Group, own: Entries) -> Divergence | None:
    """All ranks have it, but not alike: other values, another number of times, or from another step on."""
    values = group.comparable({process: _values(entry) for process, entry in own.items()})
    early = group.early & own.keys()
    times = {
        process: (None if early else entry.counts.occurrences, entry.first_step)
        for process, entry in own.items()
    }
    first = next(iter(own))
    other_values = [process for process in own if values[process] != values[first]]
    other_times = [process for process in own if times[process] != times[first]]
    if not other_values and not other_times:
        return None
    function = finding.location.function or finding.location.file
    by_rank = {process: _amount(entry) for process, entry in own.items()}
    odd = _minority(other_values or other_times, own)
    about = {process: own[process] for process in odd}
    rest = {process: entry for process, entry in own.items() if process not in about}
    subject = f"guards of {function}" if finding.kind == "recompile" else function
    text = (
        f"{group.words(odd)} and {group.words(rest)} differ in {subject}: {finding.title}; "
        f"{by_rank[odd[0]]} against {by_rank[next(iter(rest))]}"
    )
    return group.made(
        "values" if other_values else "finding",
        text,
        odd,
        place=finding.location,
        step=_parted(own),
        fingerprint=finding.fingerprint,
        dimension=finding.guard.dimension if finding.guard else None,
        by_rank=by_rank,
    )


def _minority(some: list[str], own: Entries) -> list[str]:
    rest = [process for process in own if process not in some]
    return some if len(some) <= len(rest) else rest


def _parted(own: Entries) -> int | None:
    """The first step that not all had in common; the last that all have says no more."""
    firsts = {entry.first_step for entry in own.values()}
    lasts = {entry.last_step for entry in own.values()}
    unlike = firsts if len(firsts) > 1 else lasts
    return min((step for step in unlike if step is not None), default=None)


def _values(entry: RankCounts) -> tuple[str, ...]:
    if entry.guard is None:
        return ()
    return (entry.guard.expected or "", entry.guard.actual or "", *entry.guard.values)


def _amount(entry: RankCounts) -> str:
    times = f"{entry.counts.occurrences:,} time{'' if entry.counts.occurrences == 1 else 's'}"
    since = "" if entry.first_step is None else f", first at step {entry.first_step}"
    guard = entry.guard
    got = list(guard.values or ((guard.actual,) if guard.actual else ())) if guard else []
    shown = ", ".join(got[:5]) + (" …" if len(got) > 5 else "")
    return times + since + (f", for {shown}" if shown else "")
