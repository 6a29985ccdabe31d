"""What became of each finding, as the report's suggestions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from breakscope.fix.evidence import Verdict
from breakscope.fix.patch import Patch, edits_by_file
from breakscope.fix.source_file import Source, shown_diff
from breakscope.fix.together import Whole
from breakscope.report.model import Finding, Report, Suggestion


@dataclass(frozen=True, slots=True)
class NoPatch:
    """A finding for which there is no patch, and why: it is refused, or gone with patches of other places."""

    finding: Finding
    verdict: Verdict
    rule: str = ""
    summary: str = "no rewrite"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one finding.

    Attributes:
        patch: where there is one. accepted: it is part of the fixes, or the finding is gone with them.
        revealed: it was found only once other breaks were gone, and is not in the report.
    """

    finding: Finding
    suggestion: Suggestion
    patch: Patch | None = None
    accepted: bool = False
    revealed: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """What the files give once ``--write`` has written what is accepted: settings and libraries it does not.

    Attributes:
        before, fixed, written: sites of the script as it was, with all fixes, and as written.
        left: breaks of the script as written.
        lines: settings, as the lines that a person adds.
    """

    before: int
    fixed: int
    written: int
    left: tuple[Finding, ...]
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fixed:
    """What became of a report.

    Attributes:
        whole: the last trial with all accepted patches; None if none was made.
        kept: nothing was run: it is the answer of an earlier time.
        written: None where nothing is accepted.
        unforked: why runs of the script were started anew instead of forked; "" if they were forked, or
            nobody wanted that.
    """

    outcomes: tuple[Outcome, ...]
    sources: dict[str, Source]
    whole: Whole | None
    kept: bool = False
    written: Written | None = None
    unforked: str = ""

    @property
    def accepted(self) -> list[Patch]:
        """The patches that are part of the fixes, each once."""
        patches = (outcome.patch for outcome in self.outcomes if outcome.accepted)
        return list({id(patch): patch for patch in patches if patch is not None}.values())


def outcomes_of_patch(
    patch: Patch,
    verdict: Verdict,
    accepted: bool | None,
    sources: Mapping[str, Source],
    root: Path,
) -> list[Outcome]:
    """The answers to a patch's findings, which share one suggestion.

    Args:
        accepted: None where nothing is accepted or written.
    """
    try:
        diff = shown_diff(patch, sources, root)
    except ValueError:  # it is refused: the file cannot hold it, or it changes the same text twice
        diff = ""
    evidence = replace(verdict.evidence, consent=verdict.status == "needs consent", accepted=accepted)
    suggestion = Suggestion(
        patch.rule,
        patch.rewrite.summary,
        diff,
        verdict.reported,
        verdict.why,
        evidence.json(),
        tuple(edit for file, edits in edits_by_file([patch]).items() for edit in sources[file].placed(edits)),
    )
    return [Outcome(finding, suggestion, patch, bool(accepted)) for finding in patch.findings]


def outcome_of_none(answer: NoPatch) -> Outcome:
    """The answer to a finding without a patch."""
    verdict = answer.verdict
    suggestion = Suggestion(
        answer.rule, answer.summary, "", verdict.reported, verdict.why, verdict.evidence.json()
    )
    return Outcome(answer.finding, suggestion, accepted=verdict.status != "refused")


def in_order(outcomes: Sequence[Outcome], report: Report) -> list[Outcome]:
    """One outcome a finding, in the order of the report; what came to light on the way comes last."""
    found = {(*place(outcome.finding), outcome.finding.fingerprint): outcome for outcome in outcomes}
    order = {(*place(one), one.fingerprint): index for index, one in enumerate(report.findings)}
    keys = sorted(found, key=lambda key: (order.get(key, len(order)), key[1], key[2] or 0))
    return [found[key] for key in keys]


def suggested(report: Report, fixed: Fixed) -> Report:
    """The report with the suggestions in it."""
    answers = {(*place(o.finding), o.finding.fingerprint): o.suggestion for o in fixed.outcomes}
    findings = tuple(
        replace(finding, suggestion=answers.get((*place(finding), finding.fingerprint), finding.suggestion))
        for finding in report.findings
    )
    return replace(report, findings=findings)


def place(finding: Finding) -> tuple[str, int, int | None]:
    """Where a finding stands: real path, line, column."""
    where = finding.location
    return os.path.realpath(where.file), where.line, where.column


ANSWER_VERSION = 1


def answer(
    fixed: Fixed, folder: Path, written: Sequence[str], left: Mapping[str, str], code: int
) -> dict[str, Any]:
    """What ``fix --format json`` writes.

    Args:
        folder: of fixes. written, left: files of ``--write``, and why others were not. code: of the exit.
    """
    return {
        "fix_version": ANSWER_VERSION,
        "exit_code": code,
        "folder": str(folder),
        "findings": [
            {
                "fingerprint": outcome.finding.fingerprint,
                "code": outcome.finding.code,
                "title": outcome.finding.title,
                "file": outcome.finding.location.file,
                "line": outcome.finding.location.line,
                "function": outcome.finding.location.function,
                "status": outcome.suggestion.label,
                "accepted": outcome.accepted,
                "revealed": outcome.revealed,
                "rule": outcome.suggestion.rule,
                "summary": outcome.suggestion.summary,
                "why": outcome.suggestion.why,
                "diff": outcome.suggestion.diff,
                "evidence": outcome.suggestion.evidence,
            }
            for outcome in fixed.outcomes
        ],
        "sites": _sites(fixed.written),
        "written": list(written),
        "not_written": dict(left),
    }


def _sites(written: Written | None) -> dict[str, Any] | None:
    if written is None:
        return None
    return {
        "before": written.before,
        "with_fixes": written.fixed,
        "as_written": written.written,
        "left": [one.fingerprint for one in written.left],
        "lines_to_add": list(written.lines),
    }
