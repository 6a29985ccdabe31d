"""Which finding is the worst, and which of them are sites."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # `breakscope explain` needs no report
    from breakscope.report.model import Effect, Finding, FindingKind, Report

_KINDS: dict[FindingKind, int] = {"skip": 0, "compile": 1, "graph_break": 2, "recompile": 3}
_EFFECTS: dict[Effect | None, int] = {"ended": 0, "incomplete": 1, None: 2}
_INFORMATION = "BS308"


def worst_first(*findings: Finding) -> tuple[Any, ...]:
    """Sort key of a finding, or of several that are shown as one with the worst of them first.

    What ended the run, then what made the report incomplete. By what they take over a number of steps, where
    one was asked for (:func:`over`); by measured cost, then crossings, then skips, compile times, breaks,
    recompiles, then occurrences. What is only for information comes last but for what nothing is to be done
    about.
    """
    place = findings[0].location
    return (
        min(map(_group, findings)),
        -sum(finding.horizon_ms or 0.0 for finding in findings),
        -sum(finding.cost.ms_per_step for finding in findings if finding.cost),
        -sum(finding.counts.crossings or 0 for finding in findings),
        min(_KINDS[finding.kind] for finding in findings),
        -sum(finding.counts.occurrences for finding in findings),
        place.file,
        place.line,
        place.column or 0,
    )


def _group(finding: Finding) -> int:
    if not is_open(finding):
        return 4
    return 3 if finding.code == _INFORMATION else _EFFECTS[finding.effect]


def is_open(finding: Finding) -> bool:
    """Whether something is to be done about a finding: it is neither meant to be so nor expected."""
    return finding.intended is None and finding.expected is None


def over(report: Report, steps: int) -> Report:
    """The report, with breaks and recompiles ranked on one scale: what they take in so many steps."""
    findings = [replace(finding, horizon_ms=_taken_ms(finding, steps)) for finding in report.findings]
    return replace(report, findings=tuple(sorted(findings, key=worst_first)))


def _taken_ms(finding: Finding, steps: int) -> float | None:
    """Compile time once, and every step's share of the rest; None where neither is known."""
    cost, compiling = finding.cost, finding.compiling
    if cost is None and compiling is None:
        return None
    each = 0.0
    if cost is not None:
        come = cost.steps / cost.of_steps if cost.steps is not None and cost.of_steps else 1.0
        each += cost.ms_per_step * come
    once = 0.0
    if compiling is not None:
        each += compiling.guards_ms_per_step or 0.0
        once = compiling.seconds * 1e3
    return round(once + each * steps, 6)


def is_site(finding: Finding) -> bool:
    """Whether a finding counts among the sites: a place where execution leaves compiled code."""
    if finding.kind == "graph_break" or finding.code == "BS301":
        return True
    gave_up = finding.code in ("BS302", "BS306")
    return gave_up and (finding.counts.crossings is not None or bool(finding.skipped))
