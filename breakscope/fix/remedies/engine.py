"""The proposer of remedies, and its trials: from a recompile to the first change that the script proves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import replace
from functools import partial

from breakscope.fix.evidence import NOTHING_SEEN, Evidence, Verdict
from breakscope.fix.outcomes import NoPatch
from breakscope.fix.patch import Patch, Refusal
from breakscope.fix.remedies import limits, regional
from breakscope.fix.remedies.propose import propose
from breakscope.fix.remedies.prove import Tried, try_remedy
from breakscope.fix.remedies.source import Files
from breakscope.fix.remedies.subject import Proposal, Subject, subject
from breakscope.fix.trials import Trials
from breakscope.report.model import Finding, Report

Answer = tuple[Patch, Verdict] | NoPatch

_NOTHING = "no change is proposed"


def treats(finding: Finding, report: Report) -> bool:
    """Whether a finding is one that remedies are for."""
    return finding.kind == "recompile" or finding.code == "BS303" or regional.treats(finding, report)


def treat(report: Report, trials: Trials, findings: Sequence[Finding]) -> Iterator[Answer]:
    """An answer to each finding, in order.

    The script runs once as it is and once for each remedy that is tried, in the current folder.

    Args:
        report: of the script with what ``trials`` have as their base.
    """
    files = Files(trials.sources)
    begun = _begin(report, trials, findings, files)
    for finding in findings:
        if regional.treats(finding, report):
            wait(begun.values())  # it is timed, and so alone
        ahead = begun.get(finding.fingerprint)
        answer = ahead.result() if ahead is not None else _treated(finding, report, trials, files)
        yield (
            replace(answer, finding=finding)
            if isinstance(answer, NoPatch)
            else (replace(answer[0], findings=(finding,)), answer[1])
        )


def likely(report: Report, trials: Trials, findings: Sequence[Finding]) -> list[Patch]:
    """What will be tried first for some findings of a report, as far as it tells; not what is timed."""
    files = Files(trials.sources)
    untimed = (one for one in findings if not regional.treats(one, report))
    proposed = (propose(subject(one, report, trials.main), files) for one in untimed)
    firsts = (next((one for one in each if isinstance(one, Patch)), None) for each in proposed)
    return [one for one in firsts if one is not None]


def _begin(
    report: Report, trials: Trials, findings: Sequence[Finding], files: Files
) -> dict[str, Future[Answer]]:
    """Treat findings at one time, where each of several needs runs of the script; by fingerprint."""
    several = [
        finding
        for finding in findings
        if not regional.treats(finding, report)
        and any(isinstance(one, Patch) for one in propose(subject(finding, report, trials.main), files))
    ]
    if len(several) < 2:
        return {}
    trials.before  # noqa: B018 -- run once for all of them
    begun = {}
    for finding in several:
        future = trials.begin_beside(partial(_treated, finding, report, files=files))
        if future is not None:
            begun[finding.fingerprint] = future
    return begun


def _treated(finding: Finding, report: Report, trials: Trials, files: Files) -> Answer:
    about = subject(finding, report, trials.main)
    if regional.treats(finding, report):
        return regional.treated(about, trials, files)
    proposals = propose(about, files)
    if not any(isinstance(proposal, Patch) for proposal in proposals) and _current(about, files):
        return _answer(about, proposals, [])
    # From here on what the script is now counts, not what it was when it was scanned.
    now = trials.before.report
    again = next((one for one in now.findings if one.fingerprint == finding.fingerprint), None)
    if again is None:
        return _gone(finding, trials)
    about = subject(again, now, trials.main)
    proposals = propose(about, files)
    tried: list[Tried] = []
    for patch in proposals:
        if isinstance(patch, Patch):
            tried.append(try_remedy(patch, again, trials))
            if tried[-1].proved:
                break
    return _answer(about, proposals, tried)


def _current(about: Subject, files: Files) -> bool:
    """Whether the report knows the calls, and they stand where they stood when it was made."""
    for signature in about.signatures:
        file = files.open(signature.call.file) if signature.call is not None else None
        if (
            file is not None
            and signature.call is not None
            and file.line(signature.call.line) != signature.call.source
        ):
            return False
    return bool(about.signatures)


def _gone(finding: Finding, trials: Trials) -> NoPatch:
    ended = trials.before.ended
    why = "run again, the script no longer has this finding: scan it again"
    if ended.status != "ok":
        why = (
            f"run again, the script ended with {ended.status} (exit code {ended.exit_code}) before it came up"
        )
    return NoPatch(finding, Verdict("refused", why), "none", _NOTHING)


def _answer(about: Subject, proposals: Sequence[Proposal], tried: Sequence[Tried]) -> Answer:
    refusals = tuple(proposal.reason for proposal in proposals if isinstance(proposal, Refusal))
    sharing = limits.instances(about) if about.finding.code == "BS303" else None
    best = next((one for one in tried if one.proved), next((one for one in tried if one.helped), None))
    others = tuple(
        {"rule": one.patch.rule, "summary": one.patch.rewrite.summary, "why": one.why}
        for one in tried
        if one is not best
    )
    # What was tried and failed comes before what was not tried at all.
    shown = best or next(iter(tried), None)
    evidence = replace(
        shown.evidence if shown else NOTHING_SEEN,
        shares_code=sharing,
        also_tried=others or None,
        left_out=refusals or None,
    )
    if best is not None:
        return best.patch, _verdict(best, evidence, sharing)
    if shown is not None:
        rewrite = shown.patch.rewrite
        why = f"rejected: {rewrite.summary}: {shown.why}"
        return NoPatch(about.finding, Verdict("refused", why, evidence), shown.patch.rule, rewrite.summary)
    why = next(iter(refusals), "no remedy is known")
    return NoPatch(about.finding, Verdict("refused", why, evidence), "none", _NOTHING)


def _verdict(best: Tried, evidence: Evidence, sharing: str | None) -> Verdict:
    rewrite = best.patch.rewrite
    notes = rewrite.notes
    if best.proved and not best.patch.applies:
        notes = (*notes, "there is nothing to write: it is an option of the compile, which breakscope made")
    evidence = replace(
        evidence, caveat="; ".join(rewrite.notes) or None, limits=rewrite.limits or None, notes=notes
    )
    why = "; ".join(filter(None, (best.why, sharing)))
    if not best.proved:
        return Verdict("unproved", why, evidence)
    if rewrite.consent and best.patch.applies:
        return Verdict("needs consent", f"it needs your consent: {evidence.caveat} ({why})", evidence)
    return Verdict("proved", why, evidence)
