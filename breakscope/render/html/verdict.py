"""The first thing on the page: what is wrong in one sentence, and the numbers behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from breakscope.render.html.findings import FindingView
from breakscope.report.model import Report
from breakscope.report.ranking import is_site
from breakscope.view import gain, report_view
from breakscope.view.report_view import lost_ms, step_ms
from breakscope.view.text import NOT_MEASURED, count, harmless, milliseconds, per_step

Tone = Literal["good", "bad", "void"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict.

    Attributes:
        sentence: the one that a reader must not miss; ``rest`` is the next one.
        alarm: why all else must not be taken at face value; None where it may.
        first: the finding to repair first; None where there is none.
        weight: how much of the whole that finding is, in words.
    """

    tone: Tone
    alarm: str | None
    sentence: str
    rest: str
    first: FindingView | None
    weight: str


@dataclass(frozen=True, slots=True)
class Card:
    """A number that matters: the number, its unit, and what it means."""

    number: str
    unit: str
    meaning: str


def verdict(report: Report, findings: Sequence[FindingView]) -> Verdict:
    """The verdict on a report whose findings come worst first; last, what nothing is to be done about."""
    alarm = _alarm(report)
    if report.reconciliation.vacuous and not findings:
        sentence = "Nothing was compiled, so this report says nothing about the script."
        why = report.reconciliation.why
        reason = f"{harmless(why[0].upper() + why[1:])}." if why else ""
        return Verdict("void", alarm, sentence, reason, None, "")
    open_ = [finding for finding in findings if not finding.closed]
    if not open_:
        said = report_view.nothing_open(report)
        return Verdict("good", alarm, f"{said[:1].upper()}{said[1:]}.", _in_steps(report), None, "")
    first = next((finding for finding in open_ if not finding.follows), open_[0])
    sentence, *rest = _sentences(report, open_)
    return Verdict("bad", alarm, sentence, " ".join(rest), first, _weight(first, open_))


def _in_steps(report: Report) -> str:
    return f"Seen in {count(report.totals.steps, 'step')}." if report.totals.steps else ""


def cards(report: Report, step: float | None) -> tuple[Card, ...]:
    """The key numbers; ``step`` is how long a step takes in milliseconds, where that is known."""
    totals = report.totals
    lost = lost_ms(report)
    crossings = "not measured" if totals.crossings is None else f"{totals.crossings:,}"
    a_step = ""
    if totals.crossings is not None and totals.steps:
        a_step = f" ({per_step(totals.crossings, totals.steps)})"
    return (
        Card(
            f"{totals.sites:,}",
            "site" if totals.sites == 1 else "sites",
            "places in source that break the graph",
        ),
        Card(crossings, f"crossings{a_step}", "times that execution left compiled code there"),
        Card(
            f"{totals.recompiles:,}",
            "recompile" if totals.recompiles == 1 else "recompiles",
            "times that a guard failed and a frame was compiled again",
        ),
        Card(
            f"{totals.skips:,}",
            "skipped frame" if totals.skips == 1 else "skipped frames",
            "functions that run eagerly, as a whole or in part",
        ),
        Card(
            NOT_MEASURED if totals.regions is None else f"{totals.regions:,}",
            f"{'region' if totals.regions == 1 else 'regions'}, {count(totals.ops, 'op')}",
            "compiled graphs",
        ),
        Card(
            NOT_MEASURED if lost is None else milliseconds(lost),
            "time lost a step" if lost is None else _lost_unit(step),
            f"what the breaks cost, one by one; {gain.ASSUMED}"
            if lost
            else "what the breaks cost, one by one",
        ),
    )


def _lost_unit(step: float | None) -> str:
    return f"of {milliseconds(step)} ms a step lost" if step else "ms a step lost"


def _alarm(report: Report) -> str | None:
    run = report.run
    ended = {
        "ok": "",
        "script_error": "The script failed",
        "timeout": "The run was stopped at its time limit",
        "interrupted": "The run was interrupted",
        "killed": "The run was killed",
        "unknown": "",
    }[run.status]
    code = f" (exit status {run.exit_code})" if ended and run.exit_code is not None else ""
    if report.reconciliation.vacuous:
        return (
            f"{ended}{code} and nothing was compiled up to then."
            if ended
            else "Vacuous: nothing was compiled."
        )
    return f"{ended}{code}: this report holds what was seen up to then." if ended else None


def _sentences(report: Report, findings: Sequence[FindingView]) -> list[str]:
    totals = report.totals
    costs = [finding.cost for finding in findings if finding.cost]
    parts = []
    if (gains := gain.faster(report)) is not None:
        parts.append(gains)
    elif costs:
        step = step_ms(report)
        share = f" ({sum(costs) / step:.0%})" if step and sum(costs) <= step else ""
        where = count(sum(cost > 0 for cost in costs), "place")
        parts.append(f"about {milliseconds(sum(costs))} ms of each step{share} are lost at {where}")
    meant = [one.counts.crossings for one in report.findings if one.intended is not None and is_site(one)]
    if (sites := totals.sites - len(meant)) > 0:
        one = sites == 1
        text = f"{count(sites, 'site')} {'breaks' if one else 'break'} the graph"
        crossings = (totals.crossings or 0) - sum(crossed or 0 for crossed in meant)
        if crossings > 0 and totals.steps:
            rate = _times(crossings, totals.steps)
            text += f", and execution crosses {'it' if one else 'them'} {rate}"
        parts.append(text)
    if totals.skips:
        verb = "runs" if totals.skips == 1 else "run"
        given_up = (one for finding in report.findings for one in finding.skipped)
        part = " or in part" if any(one.since for one in given_up) else ""
        parts.append(f"{count(totals.skips, 'function')} {verb} eagerly as a whole{part}")
    recompiles = sum(finding.occurrences for finding in findings if finding.kind == "recompile")
    if recompiles:  # those that follow from a break count as well
        every = [finding for finding in report.findings if finding.kind == "recompile"]
        expected = sum(finding.counts.occurrences for finding in every if finding.expected is not None)
        told = f"; {expected} of them {'is' if expected == 1 else 'are'} expected" if expected else ""
        total = count(sum(finding.counts.occurrences for finding in every), "time")
        parts.append(f"guards failed {total}, each a new compile{told}")
    parts = parts or [count(len(findings), "finding")]
    return [f"{text[:1].upper()}{text[1:]}." for text in parts]


def _times(crossings: int, steps: int) -> str:
    rate = per_step(crossings, steps)
    amount = rate.removesuffix(" a step")
    return "once a step" if amount == "1" else f"{amount} times a step"


def _weight(first: FindingView, findings: Sequence[FindingView]) -> str:
    if first.cost:
        total = sum(finding.cost or 0.0 for finding in findings)
        return f"{first.cost / total:.0%} of all time lost" if len(findings) > 1 else ""
    if first.crossings:
        known = sum(finding.crossings or 0 for finding in findings)
        return f"{first.crossings:,} of {count(known, 'crossing')}"
    return first.amount
