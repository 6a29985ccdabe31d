"""Causes, and what follows from each: lists show the one and count the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from breakscope.report.model import Finding
from breakscope.view.text import and_more, harmless

_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Following:
    """Findings, as causes with what would go with them.

    Attributes:
        causes: those that follow from no other of the findings.
        of: what follows from a cause, by its fingerprint, at any remove.
        by: the finding that each consequence follows from, by the consequence's fingerprint.
    """

    causes: tuple[Finding, ...]
    of: Mapping[str, tuple[Finding, ...]]
    by: Mapping[str, Finding]


def following(findings: Sequence[Finding]) -> Following:
    """A consequence whose cause is not among the findings counts as a cause."""
    known = {finding.fingerprint: finding for finding in findings}
    by = {
        finding.fingerprint: known[finding.caused_by]
        for finding in findings
        if finding.caused_by in known and finding.caused_by is not None
    }
    causes, of = [], dict[str, list[Finding]]()
    for finding in findings:
        root = _root(finding, by)
        if root is finding:
            causes.append(finding)
        else:
            of.setdefault(root.fingerprint, []).append(finding)
    return Following(tuple(causes), {name: tuple(some) for name, some in of.items()}, by)


def _root(finding: Finding, by: Mapping[str, Finding]) -> Finding:
    """The cause of causes; the finding itself where a report says that it follows from itself."""
    seen = {finding.fingerprint}
    at = finding
    while (cause := by.get(at.fingerprint)) is not None:
        if cause.fingerprint in seen:
            return finding
        seen.add(cause.fingerprint)
        at = cause
    return at


def counted(findings: Sequence[Finding]) -> str:
    """``+ 9 that follow: 7 BS201, 2 BS207``; empty where there is none."""
    if not findings:
        return ""
    codes = Counter(finding.code for finding in findings)
    kinds = (f"{number:,} {harmless(code)}" for code, number in codes.most_common())
    verb = "follows" if len(findings) == 1 else "follow"
    return f"+ {len(findings):,} that {verb}: {and_more(kinds, _SHOWN)}"
