"""What became of each finding, as the report's suggestions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from breakscope.fix.candidates import FIXABLE, Candidate, Refused
from breakscope.fix.text import Source
from breakscope.fix.together import Whole, WholeScript
from breakscope.fix.work import Work, acceptable, diff, needs_consent, place
from breakscope.report.model import Finding, Report, Suggestion, SuggestionStatus

# What the proof copies and compares; of all else it knows nothing.
_PLAIN = "the tensors that it gets stay plain ones: of no subclass, and not inside torch.func transforms"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one finding.

    Attributes:
        patch: the rewrite, where there is one. accepted: it is part of the fixes.
        revealed: it was found only once other breaks were gone, and is not in the report.
        beside: what belongs to the patch in other files.
    """

    finding: Finding
    suggestion: Suggestion
    patch: Candidate | None = None
    accepted: bool = False
    revealed: bool = False
    beside: tuple[Candidate, ...] = ()

    @property
    def patches(self) -> tuple[Candidate, ...]:
        """All that is changed for it."""
        return (self.patch, *self.beside) if self.patch is not None else ()


@dataclass(frozen=True, slots=True)
class Fixed:
    """What became of a report.

    Attributes:
        whole: the last trial with all accepted patches. trials: for more of them.
        inductor: what Inductor says of them, as a sentence with figures; None if it was not asked.
    """

    outcomes: tuple[Outcome, ...]
    sources: dict[str, Source]
    whole: Whole | None
    inductor: dict[str, Any] | None = None
    trials: WholeScript | None = None

    @property
    def accepted(self) -> list[Candidate]:
        """The patches that are part of the fixes, each once."""
        return list({id(one): one for o in self.outcomes if o.accepted for one in o.patches}.values())


def outcomes(
    work: Work, report: Report, whole: Whole | None, inductor: dict[str, Any] | None
) -> Iterator[Outcome]:
    """The answer to each finding, in the order of the report; what came to light on the way comes last."""
    found: dict[tuple[str, int, int | None, str], Outcome] = {}
    root = Path(report.run.cwd)
    for patch, judgement in work.judged:
        accepted = acceptable(patch, judgement, work.options)
        evidence = dict(judgement.evidence)
        evidence.pop("works", None)
        consent = needs_consent(patch, judgement)
        evidence.update(
            consent=consent,
            notes=[*evidence.get("notes", ()), *patch.rewrite.notes],
            assumes=[*patch.rewrite.assumes, *([_PLAIN] if patch.rewrite.branches else [])],
            config=dict(patch.rewrite.config),
            accepted=accepted,
        )
        if accepted and whole is not None and whole.comparison is not None:
            evidence["whole_script"] = whole_evidence(whole)
            if inductor is not None:
                evidence["inductor"] = inductor
        status, why = judgement.status, judgement.why
        told = judgement.evidence.get("needs_consent", False)
        if patch.rewrite.consent and not told and judgement.evidence.get("works", True):
            status, why = "unproved", f"it needs your consent: {'; '.join(patch.rewrite.notes)} ({why})"
        suggestion = Suggestion(
            patch.rule, patch.rewrite.summary, diff(work, patch, root), status, why, evidence
        )
        for finding in patch.findings:
            revealed = finding.fingerprint in work.revealed
            found[(*place(finding), finding.fingerprint)] = Outcome(
                finding, suggestion, patch, accepted, revealed
            )
    for one in work.refused:
        suggestion, accepted = _without_rewrite(work, one, whole)
        revealed = one.finding.fingerprint in work.revealed
        found[(*place(one.finding), one.finding.fingerprint)] = Outcome(
            one.finding, suggestion, None, accepted, revealed
        )
    order = {(*place(one), one.fingerprint): index for index, one in enumerate(report.findings)}
    yield from (
        found[key] for key in sorted(found, key=lambda key: (order.get(key, len(order)), key[1], key[2] or 0))
    )


def _without_rewrite(work: Work, one: Refused, whole: Whole | None) -> tuple[Suggestion, bool]:
    """What is said of a finding that no rule rewrites; and whether it is gone all the same."""
    if whole is not None and whole.after is not None and work.accepted():
        # By function: lines and columns of code that was rewritten are not those of the report.
        left = {(f.location.file, f.location.function) for f in whole.after.findings if f.kind in FIXABLE}
        if (one.finding.location.file, one.finding.location.function) not in left:
            consent = whole.consented
            why = "in the whole script it is gone with the accepted rewrites of other places"
            evidence = {"consent": consent, "accepted": True, "whole_script": whole_evidence(whole)}
            status: SuggestionStatus = "unproved" if consent else "proved"
            return Suggestion(one.rule, "no rewrite of its own", "", status, why, evidence), True
    return Suggestion(one.rule, "no rewrite", "", "refused", one.why), False


def whole_evidence(whole: Whole) -> dict[str, Any]:
    """What a trial with patches says, for a suggestion's evidence."""
    assert whole.comparison is not None
    assert whole.after is not None
    # Not compared where a patch changes behaviour with consent.
    words = {} if whole.words is None else {"words": whole.words.evidence}
    return {
        **words,
        "outermost_calls": whole.comparison.calls,
        "tensors": whole.comparison.tensors,
        "bitwise": whole.comparison.bitwise,
        "consented": whole.consented,
        "max_difference": whole.comparison.max_abs,
        "sites": [whole.before.totals.sites, whole.after.totals.sites],
        "crossings": [whole.before.totals.crossings, whole.after.totals.crossings],
        "recompiles": [whole.before.totals.recompiles, whole.after.totals.recompiles],
        "regions": [whole.before.totals.regions, whole.after.totals.regions],
    }


def suggested(report: Report, fixed: Fixed) -> Report:
    """The report with the suggestions in it."""
    answers = {(*place(o.finding), o.finding.fingerprint): o.suggestion for o in fixed.outcomes}
    findings = tuple(
        replace(one, suggestion=answers.get((*place(one), one.fingerprint), one.suggestion))
        for one in report.findings
    )
    return replace(report, findings=findings)
