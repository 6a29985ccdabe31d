"""``breakscope fix``: findings → rewrites → proofs → the whole script again → suggestions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from breakscope.fix import runs, store
from breakscope.fix.candidates import Candidate, propose, read_sources
from breakscope.fix.claimed import claims_of
from breakscope.fix.judge import Judgement, judge
from breakscope.fix.outcomes import Fixed, outcomes
from breakscope.fix.runs import Script
from breakscope.fix.text import NotTextError
from breakscope.fix.together import Whole, WholeScript
from breakscope.fix.under_inductor import under_inductor
from breakscope.fix.work import Choose, Options, Work, acceptable, diff, needs_consent, place
from breakscope.report.model import Finding, Report

MAX_ROUNDS = 4
# How many times the budget a proof gets that ran out of time before it had driven every branch.
PATIENCE = 4


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
    work = Work(script, options, trials, sources, progress, choose, Path(report.run.cwd))
    whole: Whole | None = None
    for _ in range(MAX_ROUNDS):
        _round(work, findings)
        accepted = work.accepted()
        if not accepted:
            break
        progress(f"the whole script with {_count(len(accepted), 'patch', 'patches')}")
        whole = work.trials.check(accepted)
        _drop(work, accepted, whole)
        tried = {place(f) for one, _ in work.judged for f in one.findings} | {
            place(one.finding) for one in work.refused
        }
        findings = [f for f in whole.revealed if options.wants(f) and place(f) not in tried]
        if not findings:
            break
        work.revealed |= {one.fingerprint for one in findings}
        sources.update({k: v for k, v in read_sources(findings, {}).items() if k not in sources})
    accepted = work.accepted()
    inductor = None
    if accepted and options.inductor:
        progress("the whole script under Inductor, without and with the patches")
        inductor = under_inductor(work.trials, accepted, options.settings)
        if inductor["verdict"] == "slower" and _others(work, accepted, str(inductor["why"])):
            whole = work.trials.check(accepted := work.accepted())
            _drop(work, accepted, whole)
            accepted = work.accepted()
            work.progress("the whole script under Inductor, with other rewrites")
            inductor = under_inductor(work.trials, accepted, options.settings) if accepted else inductor
        if inductor["verdict"] in ("differs", "slower"):
            _withdraw(work, accepted, str(inductor["why"]))
    return Fixed(tuple(outcomes(work, report, whole, inductor)), sources, whole, inductor, trials)


def _round(work: Work, findings: Sequence[Finding]) -> None:
    work.progress(f"recording what {_count(len(findings), 'place', 'places')} see")
    candidates, refused = propose(findings, work.sources, work.script)
    work.refused += refused
    for index, candidate in enumerate(candidates, 1):
        names = ", ".join(dict.fromkeys(one.code for one in candidate.findings))
        work.progress(f"proof {index} of {len(candidates)}: {names} {candidate.function}, {candidate.rule}")
        _judge(work, candidate)


def _judge(work: Work, candidate: Candidate) -> tuple[Candidate, Judgement]:
    """Prove a rewrite; if it is refused, another one of the same place."""
    tried: list[tuple[Candidate, Judgement]] = []
    for one in (candidate, *candidate.others):
        judgement = _prove(work, one)
        tried.append((one, judgement))
        consentable = needs_consent(one, judgement) and judgement.evidence.get("works", True)
        if judgement.status != "refused" or consentable:
            break
    else:
        one, judgement = tried[0]  # what is said of the place is what the best rewrite came to
    if judgement.evidence.get("needs_consent"):
        # Who consents to it consents to what the whole script then says otherwise.
        one = replace(one, rewrite=replace(one.rewrite, consent=True))
    # Asked now, because what is proved next is proved on top of what is accepted.
    if (
        work.choose is not None
        and acceptable(one, judgement, work.options)
        and not work.choose(one, judgement, diff(work, one, work.root))
    ):
        judgement = Judgement("unproved", "you declined it", {**judgement.evidence, "works": False})
    work.judged.append((one, judgement))
    return one, judgement


def _others(work: Work, accepted: Sequence[Candidate], why: str) -> bool:
    """Exchange patches that made the script slower for others; whether any was accepted."""
    found = False
    for one in (one for one in accepted if one.others):
        _withdraw(work, [one], f"measured slower: {why}")
        work.progress(f"proof of another rewrite: {one.function}, {one.others[0].rule}")
        other, judgement = _judge(work, replace(one.others[0], others=one.others[1:]))
        notes = [*judgement.evidence.get("notes", ()), f"instead of {one.rule}, with which {why}"]
        work.judged[-1] = (other, replace(judgement, evidence={**judgement.evidence, "notes": notes}))
        found = found or acceptable(other, judgement, work.options)
    return found


def _prove(work: Work, candidate: Candidate) -> Judgement:
    if not candidate.edits:
        return Judgement("proved", "source unchanged; the whole script agrees", {"conditions": "none"})
    if candidate.rewrite.scaffold:
        why = f"a scaffold to finish by hand, nothing was compared: {candidate.rewrite.scaffold}"
        return Judgement("unproved", why, {"works": False})
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
    claims = claims_of(rewrites)
    judgement = judge(runs.prove(work.script, candidate.file, edits, claims), claims, work.observers)
    if (
        judgement.status == "unproved"
        and judgement.evidence.get("ran_out")
        and (judgement.evidence["not_driven"] or judgement.evidence["untried"])
    ):
        # More inputs may drive it: on a slow machine, or where a call takes long, there was time for few.
        longer = replace(work.script, budget_s=work.script.budget_s * PATIENCE)
        judgement = judge(runs.prove(longer, candidate.file, edits, claims), claims, work.observers)
    return judgement


def _drop(work: Work, tried: Sequence[Candidate], whole: Whole) -> None:
    for position, why in whole.dropped.items():
        _withdraw(work, [tried[position]], why)


def _withdraw(work: Work, patches: Sequence[Candidate], why: str) -> None:
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


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
