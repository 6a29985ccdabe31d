"""``breakscope fix`` as a whole: rewrites of what breaks, then remedies for the recompiles that are left.

Rewrites and remedies know nothing of each other. Here their changes meet: each remedy is tried on top of the
rewrites, and becomes a fix only if the script also agrees with it on top of the remedies before it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from breakscope.fix import engine
from breakscope.fix.candidates import Candidate
from breakscope.fix.judge import Judgement
from breakscope.fix.outcomes import Fixed, Outcome, whole_evidence
from breakscope.fix.remedies import candidate as remedies
from breakscope.fix.remedies.engine import Treatment, treatments, treats
from breakscope.fix.remedies.prove import TOLERANCE
from breakscope.fix.rule import Edit, Rewrite
from breakscope.fix.runs import Script
from breakscope.fix.store import shown_name, together
from breakscope.fix.text import NotTextError, Source
from breakscope.fix.together import ROUNDED, Whole, WholeScript
from breakscope.fix.work import Choose, Options
from breakscope.report.model import Finding, Report, Suggestion, SuggestionStatus
from breakscope.run.trial import compare


@dataclass(frozen=True, slots=True)
class _Offer:
    """A proved remedy that may become a fix."""

    finding: Finding
    suggestion: Suggestion
    patches: tuple[Candidate, ...]


def repair(
    report: Report,
    script: Script,
    options: Options,
    progress: Callable[[str], None],
    choose: Choose | None = None,
) -> Fixed:
    """Find rewrites and remedies for a report's findings, and prove them.

    Args:
        progress, choose: as :func:`breakscope.fix.engine.fix` takes them.

    Raises:
        BreakscopeError: the script could not be run.
    """
    fixed = engine.fix(report, script, options, progress, choose)
    asked = _recompiles(report, options)
    after = fixed.whole.after if fixed.whole is not None and fixed.accepted else None
    left = _recompiles(after, options) if after is not None else asked
    answers: dict[str, Outcome] = {}
    if fixed.whole is not None:
        gone = asked.keys() - left.keys()
        answers = {name: _gone(one, fixed.whole) for name, one in asked.items() if name in gone}
    if left:
        patches = fixed.accepted
        edits = [remedies.Edit(one.file, *edit) for one in patches for edit in one.edits]
        config = {name: value for one in patches for name, value in one.rewrite.config.items()}
        found = treatments(
            after or report,
            script.what,
            options.settings,
            Path(tempfile.mkdtemp(dir=script.folder)),
            timeout_s=script.timeout_s,
            select=list(left),
            progress=progress,
            base=remedies.Base(tuple(dict.fromkeys(edits)), config),
        )
        root = Path(report.run.cwd)
        # What the report knows of is answered as it knows it; the rest came to light with the rewrites.
        offers = [
            _offer(asked.get(name, one), found[name], fixed.sources, root) for name, one in left.items()
        ]
        answered, fixed = _admitted(offers, fixed, script, options, progress, choose)
        for one in answered:
            name = one.finding.fingerprint
            answers[name] = replace(one, revealed=name not in asked)
    kept = [one for one in fixed.outcomes if one.finding.fingerprint not in answers]
    order = [*asked, *(name for name in left if name not in asked)]
    return replace(fixed, outcomes=(*kept, *(answers[name] for name in order if name in answers)))


def _recompiles(report: Report, options: Options) -> dict[str, Finding]:
    """The findings that remedies are for, by fingerprint."""
    return {one.fingerprint: one for one in report.findings if treats(one) and options.asked(one)}


def _gone(finding: Finding, whole: Whole) -> Outcome:
    """A recompile that came of a break."""
    status: SuggestionStatus = "unproved" if whole.consented else "proved"
    evidence = {"consent": whole.consented, "accepted": True, "whole_script": whole_evidence(whole)}
    why = "in the whole script it is gone with the accepted rewrites of other places"
    return Outcome(finding, Suggestion("", "no change of its own", "", status, why, evidence), accepted=True)


def _offer(finding: Finding, treatment: Treatment, sources: dict[str, Source], root: Path) -> _Offer:
    """A treatment's edits as patches, which the overlay and ``--write`` take. Reads files that are new."""
    suggestion = treatment.suggestion
    caveat = suggestion.evidence.get("caveat")
    files: dict[str, dict[tuple[int, int], list[str]]] = {}
    for edit in treatment.edits:
        texts = files.setdefault(os.path.realpath(edit.file), {}).setdefault((edit.start, edit.end), [])
        if edit.text not in texts:
            texts.append(edit.text)
    patches: list[Candidate] = []
    diffs: list[str] = []
    for file, changes in files.items():
        try:
            now = Source.of(Path(file).read_bytes())
            source = sources.setdefault(file, now)
            if source.data != now.data:
                raise NotTextError("its source has changed")
            # What goes in at one place goes in together, in the order in which it was made.
            edits = tuple(Edit(*place, "".join(texts)) for place, texts in changes.items())
            rewrite = Rewrite(
                edits,
                suggestion.summary,
                notes=(str(caveat),) if caveat else (),
                consent=bool(caveat),
            )
            patch = Candidate((finding,), file, finding.location.function or "", suggestion.rule, rewrite)
            diffs.append(source.diff(source.changed(patch.edits), shown_name(file, root)))
        except (OSError, SyntaxError, NotTextError) as error:
            refused = replace(suggestion, status="refused", why=f"{file} cannot be changed: {error}")
            return _Offer(finding, refused, ())
        patches.append(patch)
    if diffs:
        suggestion = replace(suggestion, diff="".join(diffs))
    notes = [str(caveat)] if caveat else []
    proved = suggestion.status == "proved"
    if proved and not patches:
        notes.append("there is nothing to write: it is an option of the compile, which breakscope made")
    consent = proved and bool(caveat and patches)
    if consent:
        why = f"it needs your consent: {caveat} ({suggestion.why})"
        suggestion = replace(suggestion, status="unproved", why=why)
    return _Offer(finding, _with(suggestion, notes=notes, consent=consent), tuple(patches))


def _admitted(
    offers: Sequence[_Offer],
    fixed: Fixed,
    script: Script,
    options: Options,
    progress: Callable[[str], None],
    choose: Choose | None,
) -> tuple[list[Outcome], Fixed]:
    """Take up what works together with all that is accepted; say of the others why they are not."""
    accepted = fixed.accepted
    whole = fixed.whole
    trials = fixed.trials or WholeScript(script, options.settings, fixed.sources)
    taken: list[_Offer] = []
    answered: list[Outcome] = []
    for offer in offers:
        suggestion, why = offer.suggestion, ""
        consent = bool(suggestion.evidence.get("consent"))
        if not offer.patches or not (suggestion.status == "proved" or (consent and options.unsafe)):
            answered.append(_answer(offer, accepted=False))
            continue
        judgement = Judgement(suggestion.status, suggestion.why, suggestion.evidence)
        if choose is not None and not choose(offer.patches[0], judgement, suggestion.diff):
            why = "you declined it"
        elif _clash([*accepted, *offer.patches]):
            why = "it changes text that another rewrite changes: write that one, then scan again"
        elif accepted and not set(_changes(offer.patches)) <= set(_changes(accepted)):
            progress(f"the whole script with the fixes and: {suggestion.summary}")
            findings = [one.finding for one in [*taken, offer]]
            why, tried = _try(trials, [*accepted, *offer.patches], findings, whole, options)
            if tried is not None:
                whole = tried
                suggestion = _with(suggestion, whole_script=whole_evidence(tried))
        if why:
            suggestion = replace(_with(suggestion, consent=False), status="unproved", why=why)
            answered.append(_answer(replace(offer, suggestion=suggestion), accepted=False))
            continue
        accepted = [*accepted, *offer.patches]
        taken.append(offer)
        answered.append(_answer(replace(offer, suggestion=suggestion), accepted=True))
    return answered, replace(fixed, whole=whole)


def _with(suggestion: Suggestion, **more: Any) -> Suggestion:
    """A suggestion with more evidence."""
    return replace(suggestion, evidence={**suggestion.evidence, **more})


def _answer(offer: _Offer, *, accepted: bool) -> Outcome:
    suggestion = _with(offer.suggestion, accepted=accepted)
    patch, beside = (offer.patches[0], offer.patches[1:]) if offer.patches else (None, ())
    return Outcome(offer.finding, suggestion, patch, accepted, beside=beside)


def _changes(patches: Sequence[Candidate]) -> list[tuple[str, int, int, str]]:
    return [(one.file, *edit) for one in patches for edit in one.edits]


def _clash(patches: Sequence[Candidate]) -> bool:
    """Whether two patches replace the same text. Two of them may put something in at one place."""
    for file in {one.file for one in patches}:
        edits = together([one for one in patches if one.file == file])
        last = 0
        for start, end, _ in edits:
            if start < last:
                return True
            last = max(last, end)
    return False


def _try(
    trials: WholeScript,
    patches: Sequence[Candidate],
    findings: Sequence[Finding],
    whole: Whole | None,
    options: Options,
) -> tuple[str, Whole | None]:
    """Run the script with patches. Why they do not work together, or "", and what was seen."""
    before = trials.before
    base = whole.after if whole is not None and whole.after is not None else before.report
    with trials.with_patches(patches, options.settings) as after:
        report = after.report
        if (after.ended.status, after.ended.exit_code) != (before.ended.status, before.ended.exit_code):
            return f"with the other fixes the script ends with {after.ended.status}", None
        there = {one.fingerprint for one in report.findings}
        if any(one.fingerprint in there for one in findings):
            return "with the other fixes its recompiles are still there", None
        old, new = base.totals, report.totals
        if new.recompiles > old.recompiles or new.sites > old.sites or new.skips > old.skips:
            return "with the other fixes there are more breaks, skips or recompiles", None
        compared = compare(before, after)
        consent = any(one.rewrite.consent for one in patches)
        exact = all(one.rewrite.exact == "bitwise" for one in patches)
        if not consent and not compared.within(TOLERANCE if exact else ROUNDED):
            first = "; ".join(compared.differences[:1]) or f"largest difference {compared.max_abs:.3g}"
            return f"with the other fixes the outputs of the script differ: {first}", None
        said = None if consent else trials.words(after, patches)
        if said is not None and said.difference is not None:
            return f"beside the other fixes: {said.difference}", None
        return "", Whole({}, (), compared, before.report, report, consent, said)
