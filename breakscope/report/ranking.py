"""Which finding is the worst, and which of them are sites."""

from __future__ import annotations

from typing import Any

from breakscope.report.model import Finding, FindingKind

_KINDS: dict[FindingKind, int] = {"skip": 0, "compile": 1, "graph_break": 2, "recompile": 3}
_INFORMATION = "BS308"


def worst_first(*findings: Finding) -> tuple[Any, ...]:
    """Sort key of a finding, or of several that are shown as one with the worst of them first.

    By measured cost, then crossings, then skips, compile times, breaks, recompiles, then occurrences.
    What is meant to be so, and what is only for information, comes last.
    """
    place = findings[0].location
    return (
        all(finding.intended is not None or finding.code == _INFORMATION for finding in findings),
        -sum(finding.cost.ms_per_step for finding in findings if finding.cost),
        -sum(finding.counts.crossings or 0 for finding in findings),
        min(_KINDS[finding.kind] for finding in findings),
        -sum(finding.counts.occurrences for finding in findings),
        place.file,
        place.line,
        place.column or 0,
    )


def is_site(finding: Finding) -> bool:
    """Whether a finding counts among the sites: a place where execution leaves compiled code."""
    if finding.kind == "graph_break" or finding.code == "BS301":
        return True
    gave_up = finding.code in ("BS302", "BS306")
    return gave_up and (finding.counts.crossings is not None or bool(finding.skipped))
