"""``breakscope fix``: findings → rewrites → proofs → the whole script again → suggestions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from breakscope.capture.settings import Settings
from breakscope.model import Finding, Report, Suggestion, SuggestionStatus
from breakscope.rewrite import runs, store
from breakscope.rewrite.candidates import FIXABLE, Candidate, Refused, propose, read_sources
from breakscope.rewrite.judge import Judgement, judge
from breakscope.rewrite.runs import Script
from breakscope.rewrite.text import NotTextError, Source
from breakscope.rewrite.together import Whole, WholeScript
from breakscope.rewrite.under_inductor import under_inductor

MAX_ROUNDS = 4


@dataclass(frozen=True, slots=True)
class Options:
    """What ``breakscope fix`` was asked for.

    Attributes:
        select, ignore: codes, or prefixes of codes.
        unsafe: accept rewrites that change behaviour.
        inductor: compare under Inductor in the end.
        settings: how the script is compiled in trials.
    """

    settings: Settings
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    unsafe: bool = False
    inductor: bool = True

    def asked(self, finding: Finding) -> bool:
        """Whether a finding's code was asked for."""
        chosen = not self.select or finding.code.startswith(self.select)
        return chosen and not finding.code.startswith(self.ignore or ("\0",))

    def wants(self, finding: Finding) -> bool:
        """Whether a finding is to be looked at: it was asked for, and it is not a recompile."""
        return finding.kind in FIXABLE and self.asked(finding)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one finding.

    Attributes:
        patch: the rewrite, where there is one. accepted: it is part of the fixes.
        revealed: it was found only once other breaks were gone, and is not in the report.
    """

    finding: Finding
    suggestion: Suggestion
    patch: Candidate | None = None
    accepted: bool = False
    revealed: bool = False


@dataclass(frozen=True, slots=True)
class Fixed:
    """What became of a report.

    Attributes:
        whole: the last trial with all accepted patches.
        inductor: what Inductor says of them, as a sentence with figures; None if it was not asked.
    """

    outcomes: tuple[Outcome, ...]
    sources: dict[str, Source]
    whole: Whole | None
    inductor: dict[str, Any] | None = None

    @property
    def accepted(self) -> list[Candidate]:
        """The patches that are part of the fixes, each once."""
        return list({id(o.patch): o.patch for o in self.outcomes if o.accepted and o.patch}.values())


Choose = Callable[[Candidate, Judgement, str], bool]


@dataclass(slots=True)
class _Work:
    """A report being fixed."""

    script: Script
    options: Options
    trials: WholeScript
    sources: dict[str, Source]
    progress: Callable[[str], None]
    choose: Choose | None
    root: Path
    judged: list[tuple[Candidate, Judgement]] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    revealed: set[str] = field(default_factory=set)

    def accepted(self) -> list[Candidate]:
        return [one for one, judgement in self.judged if _acceptable(one, judgement, self.options)]


def _acceptable(patch: Candidate, judgement: Judgement, options: Options) -> bool:
    if _needs_consent(patch, judgement):
        return options.unsafe and judgement.evidence.get("works", True)
    return judgement.status == "proved"


def _needs_consent(patch: Candidate, judgement: Judgement) -> bool:
    return patch.rewrite.consent or bool(judgement.evidence.get("needs_consent"))


def fix(
    report: Report,
    script: Script,
    options: Options,
    progress: Callable[[str], None],
    choose: Choose | None = None,
) -> Fixed:
    """Find rewrites for a report's findings, and prove them.

    Args:
        progress: told what is being done, a few words at a time.
        choose: asked about each rewrite that could be accepted, with its diff; None accepts them all.

    Raises:
        BreakscopeError: the script could not be run.
    """
    findings = [one for one in report.findings if options.wants(one)]
    sources = read_sources(findings, report.run.sources)
    trials = WholeScript(script, options.settings, sources)
    work = _Work(script, options, trials, sources, progress, choose, Path(report.run.cwd))
    whole: Whole | None = None
    for _ in range(MAX_ROUNDS):
        _round(work, findings)
        accepted = work.accepted()
        if not accepted:
            break
        progress(f"the whole script with {_count(len(accepted), 'patch', 'patches')}")
        whole = work.trials.check(accepted)
        _drop(work, accepted, whole)
        tried = {_place(f) for one, _ in work.judged for f in one.findings} | {
            _place(one.finding) for one in work.refused
        }
        findings = [f for f in whole.revealed if options.wants(f) and _place(f) not in tried]
        if not findings:
            break
        work.revealed |= {one.fingerprint for one in findings}
        sources.update({k: v for k, v in read_sources(findings, {}).items() if k not in sources})
    accepted = work.accepted()
    inductor = None
    if accepted and options.inductor:
        progress("the whole script under Inductor, without and with the patches")
        inductor = under_inductor(work.trials, accepted, options.settings)
        if inductor["verdict"] in ("differs", "slower"):
            _withdraw(work, accepted, str(inductor["why"]))
    return Fixed(tuple(_outcomes(work, report, whole, inductor)), sources, whole, inductor)


def _round(work: _Work, findings: Sequence[Finding]) -> None:
    work.progress(f"recording what {_count(len(findings), 'place', 'places')} see")
    candidates, refused = propose(findings, work.sources, work.script)
    work.refused += refused
    for index, candidate in enumerate(candidates, 1):
        names = ", ".join(dict.fromkeys(one.code for one in candidate.findings))
        work.progress(f"proof {index} of {len(candidates)}: {names} {candidate.function}, {candidate.rule}")
        judgement = _prove(work, candidate)
        # Asked now, because what is proved next is proved on top of what is accepted.
        if (
            work.choose is not None
            and _acceptable(candidate, judgement, work.options)
            and not work.choose(candidate, judgement, _diff(work, candidate, work.root))
        ):
            judgement = Judgement("unproved", "you declined it", {**judgement.evidence, "works": False})
        work.judged.append((candidate, judgement))


def _prove(work: _Work, candidate: Candidate) -> Judgement:
    if not candidate.edits:
        return Judgement("proved", "source unchanged; the whole script agrees", {"conditions": "none"})
    # On top of what is already accepted in the same function: the function as it will be is what is proved.
    beside = [
        one
        for one, judgement in work.judged
        if judgement.status == "proved"
        and (one.file, one.function) == (candidate.file, candidate.function)
        and not one.rewrite.consent
    ]
    everywhere = [
        one for one, judgement in work.judged if judgement.status == "proved" and one.file == candidate.file
    ]
    if store.overlapping(store.together([*everywhere, candidate])):
        return Judgement(
            "refused", "it changes text that another rewrite changes: write that one, then scan again"
        )
    edits = store.together([*beside, candidate])
    try:
        work.sources[candidate.file].changed(edits)
    except NotTextError as error:
        return Judgement("refused", str(error))
    rewrites = [one.rewrite for one in [*beside, candidate]]
    exact = all(one.exact == "bitwise" for one in rewrites)
    claims = {
        "exact": exact,
        "unaliased": any(one.unaliased for one in rewrites),
        "conditional": any(one.assumes for one in rewrites),
        "early": [path.rpartition(".")[2] for one in rewrites for path in one.early],
    }
    return judge(runs.prove(work.script, candidate.file, edits, claims), exact=exact)


def _drop(work: _Work, tried: Sequence[Candidate], whole: Whole) -> None:
    for position, why in whole.dropped.items():
        _withdraw(work, [tried[position]], why)


def _withdraw(work: _Work, patches: Sequence[Candidate], why: str) -> None:
    gone = {id(one) for one in patches}
    functions = {(one.file, one.function) for one in patches}
    before = work.judged
    work.judged = []
    for one, judgement in before:
        if id(one) in gone:
            judgement = Judgement("unproved", why, {**judgement.evidence, "works": False})
        elif judgement.status == "proved" and (one.file, one.function) in functions:
            # It was proved on top of what is gone now.
            judgement = _prove(work, one)
        work.judged.append((one, judgement))


def _outcomes(
    work: _Work, report: Report, whole: Whole | None, inductor: dict[str, Any] | None
) -> Iterator[Outcome]:
    found: dict[tuple[str, int, int | None, str], Outcome] = {}
    root = Path(report.run.cwd)
    for patch, judgement in work.judged:
        accepted = _acceptable(patch, judgement, work.options)
        evidence = dict(judgement.evidence)
        evidence.pop("works", None)
        consent = _needs_consent(patch, judgement)
        evidence.update(
            consent=consent,
            notes=[*evidence.get("notes", ()), *patch.rewrite.notes],
            assumes=list(patch.rewrite.assumes),
            config=dict(patch.rewrite.config),
            accepted=accepted,
        )
        if accepted and whole is not None and whole.comparison is not None:
            evidence["whole_script"] = _whole_evidence(whole)
            if inductor is not None:
                evidence["inductor"] = inductor
        status, why = judgement.status, judgement.why
        if patch.rewrite.consent:
            status, why = "unproved", f"it needs your consent: {'; '.join(patch.rewrite.notes)} ({why})"
        suggestion = Suggestion(
            patch.rule, patch.rewrite.summary, _diff(work, patch, root), status, why, evidence
        )
        for finding in patch.findings:
            revealed = finding.fingerprint in work.revealed
            found[(*_place(finding), finding.fingerprint)] = Outcome(
                finding, suggestion, patch, accepted, revealed
            )
    for one in work.refused:
        suggestion, accepted = _without_rewrite(work, one, whole)
        revealed = one.finding.fingerprint in work.revealed
        found[(*_place(one.finding), one.finding.fingerprint)] = Outcome(
            one.finding, suggestion, None, accepted, revealed
        )
    order = {(*_place(one), one.fingerprint): index for index, one in enumerate(report.findings)}
    yield from (
        found[key] for key in sorted(found, key=lambda key: (order.get(key, len(order)), key[1], key[2] or 0))
    )


def _without_rewrite(work: _Work, one: Refused, whole: Whole | None) -> tuple[Suggestion, bool]:
    """What is said of a finding that no rule rewrites; and whether it is gone all the same."""
    if whole is not None and whole.after is not None and work.accepted():
        # By function: lines and columns of code that was rewritten are not those of the report.
        left = {(f.location.file, f.location.function) for f in whole.after.findings if f.kind in FIXABLE}
        if (one.finding.location.file, one.finding.location.function) not in left:
            consent = whole.consented
            why = "in the whole script it is gone with the accepted rewrites of other places"
            evidence = {"consent": consent, "accepted": True, "whole_script": _whole_evidence(whole)}
            status: SuggestionStatus = "unproved" if consent else "proved"
            return Suggestion(one.rule, "no rewrite of its own", "", status, why, evidence), True
    return Suggestion(one.rule, "no rewrite", "", "refused", one.why), False


def _whole_evidence(whole: Whole) -> dict[str, Any]:
    assert whole.comparison is not None
    assert whole.after is not None
    return {
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


def _diff(work: _Work, patch: Candidate, root: Path) -> str:
    source = work.sources[patch.file]
    if not patch.edits:
        lines = (f"torch._dynamo.config.{name} = {value}" for name, value in patch.rewrite.config.items())
        return "".join(f"+{line}\n" for line in lines)
    return source.diff(source.changed(patch.edits), store.shown_name(patch.file, root))


def suggested(report: Report, fixed: Fixed) -> Report:
    """The report with the suggestions in it."""
    answers = {(*_place(o.finding), o.finding.fingerprint): o.suggestion for o in fixed.outcomes}
    findings = tuple(
        replace(one, suggestion=answers.get((*_place(one), one.fingerprint), one.suggestion))
        for one in report.findings
    )
    return replace(report, findings=findings)


def _place(finding: Finding) -> tuple[str, int, int | None]:
    where = finding.location
    return os.path.realpath(where.file), where.line, where.column


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
