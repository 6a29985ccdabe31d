"""In what the ranks of one job differ, worst first: what makes the others wait, or die.

Pure functions of a merged report. Every statement is about ranks of one attempt of one job, and is made only
of what those ranks measured: a rank that ended before the step of a finding does not lack the finding.
"""

from __future__ import annotations

from collections import Counter

from breakscope.diagnose import divergent_compiles, divergent_findings
from breakscope.diagnose.outcome import killer
from breakscope.diagnose.rank_groups import Group, groups, stopped
from breakscope.report.model import Divergence, Rank, Report

_ORDER = ("ended", "waited", "finding", "values", "collectives", "graphs", "cache", "skew", "setup")


def find(report: Report) -> tuple[Divergence, ...]:
    """Every divergence of every job in a merged report."""
    found: list[Divergence] = []
    together = groups(report.ranks)
    entries = divergent_findings.entries(report, together)
    records = divergent_compiles.Records.of(report)
    for number, group in enumerate(together):
        by_findings = divergent_findings.find(group, entries.get(number, []))
        found += _ends(group)
        found += by_findings
        found += divergent_compiles.find(records, group, by_findings)
        found += _setups(group)
    return tuple(
        sorted(
            found, key=lambda one: (one.job, one.attempt, _ORDER.index(one.kind), -(one.ms or 0.0), one.text)
        )
    )


def parted(divergences: tuple[Divergence, ...], job: str) -> int | None:
    """The step at which the ranks of a job first did something else; None if that is not known.

    Of the first attempt in which they did. Waiting is what came of it.
    """
    first = min(
        (
            (divergence.attempt, divergence.step)
            for divergence in divergences
            if divergence.job == job
            and divergence.step is not None
            and divergence.kind not in ("waited", "skew")
        ),
        default=None,
    )
    return None if first is None else first[1]


def _ends(group: Group) -> list[Divergence]:
    """Ranks that did not end well by themselves. Those that were stopped because of them are named along."""
    bad = [rank for rank in group.ranks if rank.run.status not in ("ok", "unknown")]
    by_themselves = [rank for rank in bad if not stopped(rank)] or bad
    others = [rank for rank in bad if rank not in by_themselves]
    return [_end(group, rank, others) for rank in by_themselves]


def _end(group: Group, rank: Rank, others: list[Rank]) -> Divergence:
    steps = rank.totals.steps
    when = "" if steps is None else f" in step {steps}"
    text = f"rank {rank.rank} {how(rank)}{when}"
    if others:
        text += f"; {group.words(other.process for other in others)} stopped because of it"
    by_rank = {one.process: one.ended or how(one) for one in group.ranks}
    return group.made("ended", text, [rank.process], step=steps, by_rank=by_rank)


def how(rank: Rank) -> str:
    """How a process ended, as a verb."""
    code = rank.run.exit_code
    match rank.run.status:
        case "ok":
            return "ended well"
        case "killed":
            return f"was killed by {killer(code) or f'exit status {code}'}"
        case "timeout":
            return "was stopped at the time limit"
        case "interrupted":
            return "was interrupted"
        case "script_error":
            return f"failed with exit status {code}"
        case _:
            return "ended in a way that is not known"


def _setups(group: Group) -> list[Divergence]:
    """Versions, devices and what was compiled at all: ranks that were not set up alike cannot run alike."""
    found = []
    for what, values in (
        ("Python", {r.process: r.run.python for r in group.ranks}),
        ("torch", {r.process: r.run.torch or "not known" for r in group.ranks}),
        ("triton", {r.process: r.run.triton or "none" for r in group.ranks}),
        ("device", {r.process: device_of(r) for r in group.ranks}),
        ("compiled", {r.process: "nothing" if r.reconciliation.vacuous else "graphs" for r in group.ranks}),
    ):
        usual, _ = Counter(values.values()).most_common(1)[0]
        odd = [process for process, value in values.items() if value != usual]
        if odd:
            theirs = ", ".join(dict.fromkeys(values[process] for process in odd))
            text = f"{group.words(odd)}: {what} {theirs}; the others: {usual}"
            found.append(group.made("setup", text, odd, by_rank=values))
    return found


def device_of(rank: Rank) -> str:
    """On what a process ran, in words."""
    device = rank.run.device
    if device is None:
        return "none seen"
    return device.type if device.name.lower() == device.type else f"{device.type} {device.name}"
