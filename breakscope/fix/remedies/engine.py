"""From a report to remedies: propose, try, say what was found."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from breakscope.fix.remedies import limits
from breakscope.fix.remedies.candidate import Base, Candidate, Edit, Proposal, Refusal, Subject, subject
from breakscope.fix.remedies.propose import propose
from breakscope.fix.remedies.prove import Prover, Verdict, diff
from breakscope.fix.remedies.source import Files
from breakscope.inside.settings import Settings
from breakscope.report.model import Finding, Report, Suggestion
from breakscope.run.launch import Program

NOTHING = Base()


@dataclass(frozen=True, slots=True)
class _Tried:
    candidate: Candidate
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Treatment:
    """What came of one finding.

    Attributes:
        edits: the change of the user's own files; empty where nothing is proposed, or settings only.
    """

    suggestion: Suggestion
    edits: tuple[Edit, ...] = ()


def remedies(
    report: Report,
    what: Program,
    settings: Settings,
    folder: Path,
    *,
    timeout_s: float | None = None,
    select: Collection[str] = (),
    progress: Callable[[str], None] = lambda _text: None,
) -> dict[str, Suggestion]:
    """The suggestions of :func:`treatments`, which says what the arguments are."""
    found = treatments(report, what, settings, folder, timeout_s=timeout_s, select=select, progress=progress)
    return {name: one.suggestion for name, one in found.items()}


def treatments(
    report: Report,
    what: Program,
    settings: Settings,
    folder: Path,
    *,
    timeout_s: float | None = None,
    select: Collection[str] = (),
    progress: Callable[[str], None] = lambda _text: None,
    base: Base = NOTHING,
) -> dict[str, Treatment]:
    """A suggestion, with its edits, for each recompile finding and exhausted limit, by fingerprint.

    The script runs once as it is and once for each remedy that is tried, in the current folder.

    Args:
        settings: as the report's scan had them.
        folder: empty; gets the files of the runs. The caller removes it.
        timeout_s: for one run.
        select: codes, or beginnings of fingerprints, of the findings to treat; empty for all.
        progress: told what is done next.
        base: what has been changed already; the report is of a run with it.
    """
    wanted = [finding for finding in report.findings if treats(finding) and _selected(finding, select)]
    files = Files()
    prover: Prover | None = None
    found: dict[str, Treatment] = {}
    for finding in wanted:
        about = subject(finding, report, what.path)
        proposals = propose(about, files)
        tried: list[_Tried] = []
        if any(isinstance(one, Candidate) for one in proposals) or not _current(about, files):
            if prover is None:
                prover = Prover(what, settings, folder, timeout_s, files, progress, base)
            # From here on what the script is now counts, not what it was when it was scanned.
            again = next(
                (f for f in prover.before.report.findings if f.fingerprint == finding.fingerprint), None
            )
            if again is None:
                found[finding.fingerprint] = _gone(prover)
                continue
            about = subject(again, prover.before.report, what.path)
            proposals = propose(about, files)
            tried = _try_all(about, proposals, prover)
        found[finding.fingerprint] = _treatment(about, proposals, tried, files)
    return found


def _current(about: Subject, files: Files) -> bool:
    """Whether the report knows the calls, and they stand where they stood when it was made."""
    for one in about.signatures:
        file = files.open(one.call.file) if one.call is not None else None
        if file is not None and one.call is not None and file.line(one.call.line) != one.call.source:
            return False
    return bool(about.signatures)


def _gone(prover: Prover) -> Treatment:
    ended = prover.before.ended
    why = "run again, the script no longer has this finding: scan it again"
    if ended.status != "ok":
        why = (
            f"run again, the script ended with {ended.status} (exit code {ended.exit_code}) before it came up"
        )
    return Treatment(Suggestion("none", "no change is proposed", "", "refused", why))


def treats(finding: Finding) -> bool:
    """Whether a finding is one that remedies are for."""
    return finding.kind == "recompile" or finding.code == "BS303"


def applied(report: Report, found: dict[str, Suggestion]) -> Report:
    """The report with suggestions put to their findings."""
    return replace(
        report,
        findings=tuple(
            replace(one, suggestion=found.get(one.fingerprint, one.suggestion)) for one in report.findings
        ),
    )


def _selected(finding: Finding, select: Collection[str]) -> bool:
    return not select or any(finding.code == one or finding.fingerprint.startswith(one) for one in select)


def _try_all(about: Subject, proposals: list[Proposal], prover: Prover) -> list[_Tried]:
    """Try candidates until one is proved."""
    tried: list[_Tried] = []
    for proposal in proposals:
        if isinstance(proposal, Candidate):
            tried.append(_Tried(proposal, prover.try_(proposal, about.finding)))
            if tried[-1].verdict.proved:
                break
    return tried


def _treatment(about: Subject, proposals: list[Proposal], tried: list[_Tried], files: Files) -> Treatment:
    refusals = [one.why for one in proposals if isinstance(one, Refusal)]
    sharing = limits.instances(about) if about.finding.code == "BS303" else None
    extra: dict[str, Any] = {"shares_code": sharing} if sharing else {}
    best = next((one for one in tried if one.verdict.proved), None)
    if best is None:
        best = next((one for one in tried if one.verdict.helped), None)
    others = [
        {"rule": one.candidate.rule, "summary": one.candidate.summary, "why": one.verdict.why}
        for one in tried
        if one is not best
    ]
    if others:
        extra["also_tried"] = others
    if refusals:
        extra["left_out"] = refusals
    if best is not None:
        if best.candidate.caveat:
            extra["caveat"] = best.candidate.caveat
        if best.candidate.limits:
            extra["limits"] = list(best.candidate.limits)
        suggestion = Suggestion(
            rule=best.candidate.rule,
            summary=best.candidate.summary,
            diff=diff(best.candidate.edits, files, about.report.run.cwd),
            status="proved" if best.verdict.proved else "unproved",
            why="; ".join(filter(None, (best.verdict.why, sharing))),
            evidence={**best.verdict.evidence, **extra},
        )
        return Treatment(suggestion, best.candidate.edits)
    if tried:
        # What was tried and failed comes before what was not tried at all.
        why = f"to {tried[0].candidate.summary} is not right here: {tried[0].verdict.why}"
        evidence = {**tried[0].verdict.evidence, **extra}
        candidate = tried[0].candidate
        return Treatment(Suggestion(candidate.rule, candidate.summary, "", "refused", why, evidence))
    why = refusals[0] if refusals else "no remedy is known"
    return Treatment(Suggestion("none", "no change is proposed", "", "refused", why, extra))
