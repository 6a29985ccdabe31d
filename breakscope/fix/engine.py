"""``breakscope fix`` and ``remedy``: proposers → patches → trials → verdicts → suggestions.

Rules propose for what breaks, remedies for what recompiles, on top of the rewrites that were accepted.
``fix`` takes up what works together; ``remedy`` asks the proposer of remedies alone, and takes up nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from breakscope.fix import from_rules, kept, with_command
from breakscope.fix.apply import as_written
from breakscope.fix.evidence import Evidence, Verdict
from breakscope.fix.hoist import propose as hoist
from breakscope.fix.judge import judge
from breakscope.fix.outcomes import (
    Fixed,
    NoPatch,
    Outcome,
    Written,
    in_order,
    outcome_of_none,
    outcomes_of_patch,
    place,
)
from breakscope.fix.patch import Edit, Patch, alike, claims_of, clash, edits_by_file
from breakscope.fix.proofs import Proofs
from breakscope.fix.remedies.engine import likely, treat, treats
from breakscope.fix.runs import Script
from breakscope.fix.side import Side
from breakscope.fix.source_file import NotTextError, Source
from breakscope.fix.together import FIXABLE, Whole, beside, check, only_moved
from breakscope.fix.trials import Trials, eagerly
from breakscope.fix.under_inductor import begin_under_inductor, under_inductor
from breakscope.fix.work import DECLINED, Choose, Options, Work
from breakscope.report.model import Finding, Report
from breakscope.run import warm

MAX_ROUNDS = 4
# What the runs under Inductor load when they first compile.
INDUCTOR = ("torch._inductor.compile_fx",)
# What the proof copies and compares; of all else it knows nothing.
_PLAIN = "the tensors that it gets stay plain ones: of no subclass, and not inside torch.func transforms"
_CLASH = "it changes text that another rewrite changes: write that one, then scan again"


def fix(
    report: Report,
    script: Script,
    options: Options,
    progress: Callable[[str], None],
    choose: Choose | None = None,
) -> Fixed:
    """Find rewrites and remedies for a report's findings, and prove them.

    Args:
        progress: told what is being done, a few words at a time.
        choose: asked about each patch that could be accepted, with its diff; None accepts them all.

    Raises:
        BreakscopeError: the script could not be run.
    """
    findings = [finding for finding in report.findings if options.wants(finding)]
    earlier = kept.load(report, script, options) if choose is None else None
    if earlier is not None:
        return earlier
    sources = from_rules.read_sources(findings, report.run.sources)
    with warm.forking(script.what, list(sources), script.folder, allowed=options.forks) as forks:
        if options.inductor and _loads_inductor_first(report):
            forks.load_first(INDUCTOR)
        fixed = _fixed(report, replace(script, warm=forks), options, sources, progress, choose)
        if choose is None and forks.plain is not None:
            kept.save(report, script, options, fixed, forks.plain.files)
        wanted = options.forks and forks.plain is not None
        return replace(fixed, unforked=forks.trouble if wanted else "")


def _loads_inductor_first(report: Report) -> bool:
    """Whether Inductor is loaded beside the first run: where that asks for no GPU, and starts no thread."""
    return report.run.device is None or report.run.device.type == "cpu"


def _fixed(
    report: Report,
    script: Script,
    options: Options,
    sources: dict[str, Source],
    progress: Callable[[str], None],
    choose: Choose | None,
) -> Fixed:
    findings = [finding for finding in report.findings if options.wants(finding)]
    side = Side(script)
    trials = Trials(script, options.settings, sources, progress=progress, known=report, side=side)
    proofs = Proofs(script, side, options.proofs)
    work = Work(report, script, options, proofs, trials, sources, progress, choose, Path(report.run.cwd))
    try:
        return _answered(work, report, findings)
    finally:
        side.close()


def _answered(work: Work, report: Report, findings: Sequence[Finding]) -> Fixed:
    whole = _rewrite(work, findings)
    rewritten = in_order(_outcomes(work, whole), report)
    whole, treated = _treat(work, report, whole)
    known = {one.finding.fingerprint for one in treated}
    others = [one for one in rewritten if one.finding.fingerprint not in known]
    return Fixed((*others, *treated), work.sources, whole, written=_written(work, whole))


def _written(work: Work, whole: Whole | None) -> Written | None:
    """What the script gives with what ``--write`` writes; run once more where that is not all."""
    accepted = work.accepted()
    if not accepted:
        return None
    written = as_written(accepted, work.root)
    fixed = _report_with(work, accepted, whole)
    after = fixed if _content(written) == _content(accepted) else _report_with(work, written, None)
    settings = {name: value for one in accepted for name, value in one.rewrite.config.items()}
    return Written(
        work.trials.before.report.totals.sites,
        fixed.totals.sites,
        after.totals.sites,
        tuple(finding for finding in after.findings if finding.kind in FIXABLE),
        tuple(f"torch._dynamo.config.{name} = {value}" for name, value in settings.items()),
    )


def _report_with(work: Work, patches: Sequence[Patch], whole: Whole | None) -> Report:
    """The report of the script with patches; of the last trial, if that was with them."""
    if whole is not None and whole.after is not None and _content(whole.tried) == _content(patches):
        return whole.after
    if not patches:
        return work.trials.before.report
    work.progress("the script as its files would be")
    with work.trials.with_patches(patches) as ran:
        return ran.report


def _content(patches: Sequence[Patch]) -> tuple[frozenset[Edit], frozenset[tuple[str, object]]]:
    """All that patches change."""
    named = [(*patch.rewrite.config.items(), *patch.rewrite.options.items()) for patch in patches]
    return frozenset(e for patch in patches for e in patch.edits), frozenset(
        one for each in named for one in each
    )


def remedies(
    report: Report,
    script: Script,
    options: Options,
    progress: Callable[[str], None] = lambda _text: None,
    select: Collection[str] = (),
) -> Fixed:
    """Find remedies for a report's recompiles and exhausted limits, each on the script as it is.

    Args:
        select: codes, or beginnings of fingerprints, of the findings to treat; empty for all.
    """
    trials = Trials(script, options.settings, {}, progress=progress)
    root = Path(report.run.cwd)
    outcomes: list[Outcome] = []
    for answer in treat(
        report, trials, [finding for finding in report.findings if _selected(finding, report, select)]
    ):
        outcomes += (
            [outcome_of_none(answer)]
            if isinstance(answer, NoPatch)
            else outcomes_of_patch(*answer, None, trials.sources, root)
        )
    return Fixed(tuple(outcomes), trials.sources, None)


def _selected(finding: Finding, report: Report, select: Collection[str]) -> bool:
    named = any(finding.code == one or finding.fingerprint.startswith(one) for one in select)
    return treats(finding, report) and (named or not select)


# ---- rewrites ----


def _rewrite(work: Work, findings: Sequence[Finding]) -> Whole | None:
    """Prove what rules propose, and find what of it works together. What else comes to light has its turn."""
    whole: Whole | None = None
    for _ in range(MAX_ROUNDS):
        _round(work, findings)
        hoist.propose(work)
        accepted = work.accepted()
        if not accepted:
            break
        work.progress(f"the whole script with {_count(len(accepted), 'patch', 'patches')}")
        whole = _together(work)
        if hoist.propose(work):  # for what was taken back
            whole = _together(work)
        tried = {place(f) for one, _ in work.judged for f in one.findings}
        tried |= {place(one.finding) for one in work.unpatched}
        findings = [f for f in whole.revealed if work.options.wants(f) and place(f) not in tried]
        if not findings:
            break
        work.revealed |= {finding.fingerprint for finding in findings}
        read = from_rules.read_sources(findings, {})
        work.sources.update({file: source for file, source in read.items() if file not in work.sources})
    if whole is not None and (moved := only_moved(work.accepted(), whole)):
        whole = _without(work, moved)
    if work.options.command and with_command.propose(work, work.options.command, work.options.tries):
        whole = _together(work)
    _begin_remedies(work, whole)
    return _measured(work, whole)


def _without(work: Work, moved: Mapping[int, str]) -> Whole:
    """The whole script without settings with which the break only moved, and without what came of them."""
    accepted = work.accepted()
    for position, why in moved.items():
        _withdraw(work, [accepted[position]], why)
    whole = _together(work)
    gone = work.revealed - {finding.fingerprint for finding in whole.revealed}
    work.unpatched = [one for one in work.unpatched if one.finding.fingerprint not in gone]
    work.judged = [
        (patch, verdict)
        for patch, verdict in work.judged
        if not gone.issuperset(finding.fingerprint for finding in patch.findings)
    ]
    return whole


def _begin_remedies(work: Work, whole: Whole | None) -> None:
    """Begin what will be tried for the recompiles that are left, where first Inductor is asked."""
    accepted = work.accepted()
    if accepted and work.options.inductor and whole is not None and whole.after is not None:
        left = _recompiles(whole.after, work.options).values()
        work.trials.begin(accepted, (), likely(whole.after, work.trials, list(left)))


def _together(work: Work) -> Whole:
    """The whole script with what is accepted; patches with which it goes wrong are taken back."""
    accepted = work.accepted()
    whole = check(work.trials, accepted)
    for position, why in whole.dropped.items():
        _withdraw(work, [accepted[position]], why)
    return whole


def _measured(work: Work, whole: Whole | None) -> Whole | None:
    """What is accepted once more under Inductor; then its evidence has what the whole script said."""
    accepted = work.accepted()
    inductor = None
    if accepted and work.options.inductor:
        work.progress("the whole script under Inductor, without and with the patches")
        inductor = under_inductor(work.trials, accepted, work.options.settings)
        if inductor["verdict"] == "slower" and _others(work, accepted, str(inductor["why"])):
            whole = _together(work)
            accepted = work.accepted()
            work.progress("the whole script under Inductor, with other rewrites")
            inductor = under_inductor(work.trials, accepted, work.options.settings) if accepted else inductor
        if inductor["verdict"] in ("differs", "slower"):
            _withdraw(work, accepted, str(inductor["why"]))
    if whole is not None and whole.comparison is not None:
        seen = {"whole_script": whole.evidence, "inductor": inductor}
        for index, (patch, verdict) in enumerate(work.judged):
            if work.acceptable(patch, verdict):
                work.judged[index] = patch, _with(verdict, **seen)
    return whole


def _round(work: Work, findings: Sequence[Finding]) -> None:
    work.progress(f"recording what {_count(len(findings), 'place', 'places')} see")
    patches, unpatched = from_rules.propose(findings, work.sources, work.script)
    work.unpatched += unpatched
    groups = [] if work.choose is not None else alike(patches)
    _begin(work, patches, groups)
    began, before = time.monotonic(), work.proofs.ended
    for group in groups:
        work.judged += _judged_as_one(work, group)
    known = {id(patch) for patch, _ in work.judged}
    for index, patch in enumerate(patches, 1):
        if id(patch) in known:
            continue
        # Those begun ahead end in any order.
        done = max(index - 1, work.proofs.ended - before)
        names = ", ".join(dict.fromkeys(finding.code for finding in patch.findings))
        left = _left(time.monotonic() - began, done, len(patches))
        work.progress(f"proof {index} of {len(patches)}{left}: {names} {patch.function}, {patch.rule}")
        work.judged.append(_judged(work, patch))


def _left(spent_s: float, done: int, count: int) -> str:
    """An estimate of what the proofs still take, once some of them are done."""
    return f", about {spent_s / done * (count - done):.0f} s left" if 0 < done < count else ""


def _judged_as_one(work: Work, group: Sequence[Patch]) -> list[tuple[Patch, Verdict]]:
    """Prove rewrites as the one change that they are together; nothing, where each has to be asked about.

    All of them are what is written. Where one is wrong, or not shown, its own proof has to say so.
    """
    *others, last = group
    names = ", ".join(dict.fromkeys(finding.code for patch in group for finding in patch.findings))
    work.progress(f"proof of {len(group)} rewrites as one: {names} {last.function}, {last.rule}")
    verdict = _compared(work, last, others)
    if verdict.status != "proved":
        _begin_each(work, group)
        return []
    note = f"proved as one with {_count(len(others), 'other rewrite', 'other rewrites')} of the function"
    verdict = _with(verdict, notes=(*(verdict.evidence.notes or ()), note))
    return [(patch, _said(patch, verdict)) for patch in group]


def _begin(work: Work, patches: Sequence[Patch], groups: Sequence[Sequence[Patch]]) -> None:
    """Begin what will be asked for, if all goes well: each proof on top of the others of its function."""
    as_one = [patch for group in groups for patch in group]
    provable = _provable([*as_one, *(patch for patch in patches if patch not in as_one)])
    settings = [patch for patch in patches if not patch.edits]
    wanted = [patch for patch in (*provable, *settings) if _may_be_accepted(work, patch)]
    everything = [*work.accepted(), *wanted] if wanted else []
    first = work.options.inductor and _loads_inductor_first(work.report)
    if first and wanted:  # it takes longest
        begin_under_inductor(work.trials, everything, work.options.settings)
    for group in groups:
        edits = edits_by_file(group)[group[0].file]
        work.proofs.begin(group[0].file, edits, claims_of([each.rewrite for each in group]))
    _begin_each(work, provable, as_one)
    if provable or wanted:
        _begin_trials(work, wanted, everything)
    if work.options.inductor and not first and (provable or wanted):
        if everything:
            begin_under_inductor(work.trials, everything, work.options.settings)
        if work.script.warm is not None:
            work.script.warm.load_also(INDUCTOR)  # while the proofs are made


def _provable(patches: Sequence[Patch]) -> list[Patch]:
    """Those of which all in one function can be compared together."""
    together: dict[tuple[str, str], list[Patch]] = {}
    for patch in patches:
        same = together.setdefault((patch.file, patch.function), [])
        if patch.edits and not patch.rewrite.scaffold and not clash([*same, patch]):
            same.append(patch)
    return [patch for same in together.values() for patch in same]


def _begin_each(work: Work, patches: Sequence[Patch], known: Sequence[Patch] = ()) -> None:
    """Begin the proof of each patch, but for those known, on top of those before it in its function."""
    for index, patch in enumerate(patches):
        if patch not in known:
            function = patch.file, patch.function
            same = [one for one in patches[: index + 1] if (one.file, one.function) == function]
            edits = edits_by_file(same)[patch.file]
            work.proofs.begin(patch.file, edits, claims_of([each.rewrite for each in same]))


def _begin_trials(work: Work, wanted: Sequence[Patch], everything: Sequence[Patch]) -> None:
    """Begin runs of the whole script, and those with the remedies that will likely be tried."""
    # What only leaves messages out changes no result under Inductor; only its own run could show that.
    held = work.trials.untimed or any(not patch.rewrite.silent for patch in wanted)
    eager = [eagerly(work.options.settings)] if work.options.inductor and held else []
    recompiles = _recompiles(work.report, work.options).values() if wanted and not work.judged else ()
    causes = [finding for finding in recompiles if finding.caused_by is None]
    work.trials.begin(everything, eager, likely(work.report, work.trials, causes))


def _may_be_accepted(work: Work, patch: Patch) -> bool:
    """Whether a patch is one of the fixes if its proof says nothing against it and nobody is asked."""
    return patch.applies and work.choose is None and (work.options.unsafe or not patch.rewrite.consent)


def _judged(work: Work, patch: Patch) -> tuple[Patch, Verdict]:
    """Prove a patch; if it is refused, another one of the same place."""
    tried: list[tuple[Patch, Verdict]] = []
    for one in (patch, *patch.others):
        verdict = _prove(work, one)
        tried.append((one, verdict))
        if verdict.status != "refused":
            break
    else:
        one, verdict = tried[0]  # what is said of the place is what the best patch came to
    if verdict.status == "needs consent":
        # Who consents to it consents to what the whole script then says otherwise.
        one = replace(one, rewrite=replace(one.rewrite, consent=True))
    # Asked now, because what is proved next is proved on top of what is accepted.
    if work.declined(one, verdict):
        verdict = replace(verdict, status="unproved", why=DECLINED)
    return one, verdict


def _prove(work: Work, patch: Patch) -> Verdict:
    """The verdict on a patch, with what it says of itself."""
    return _said(patch, _compared(work, patch))


def _said(patch: Patch, verdict: Verdict) -> Verdict:
    """A verdict with what the patch says of itself."""
    rewrite = patch.rewrite
    meant = verdict.status != "refused" or rewrite.differs
    if rewrite.consent and verdict.works and meant and verdict.status != "needs consent":
        why = f"it needs your consent: {'; '.join(rewrite.notes)} ({verdict.why})"
        verdict = replace(verdict, status="needs consent", why=why)
    return _with(
        verdict,
        notes=(*(verdict.evidence.notes or ()), *rewrite.notes),
        assumes=(*rewrite.assumes, *([_PLAIN] if rewrite.branches else [])),
        config=dict(rewrite.config),
    )


def _compared(work: Work, patch: Patch, others: Sequence[Patch] = ()) -> Verdict:
    """What the proof says of a patch, or of it and others of its function as one."""
    if not patch.edits:
        why = "source unchanged; the whole script agrees"
        return Verdict("proved", why, Evidence(conditions="none"))
    if patch.rewrite.scaffold:
        why = f"a scaffold to finish by hand, nothing was compared: {patch.rewrite.scaffold}"
        return Verdict("unproved", why, works=False)
    proved = [one for one, verdict in work.judged if verdict.status == "proved"]
    if clash([*proved, *work.accepted(), *others, patch]):
        return Verdict("refused", _CLASH, works=False)
    # On top of what is proved already in the same function: the function as it will be is what is proved.
    function = patch.file, patch.function
    together = [*(one for one in proved if (one.file, one.function) == function), *others, patch]
    edits = edits_by_file(together)[patch.file]
    try:
        work.sources[patch.file].changed(edits)
    except NotTextError as error:
        return Verdict("refused", str(error), works=False)
    claims = claims_of([one.rewrite for one in together])
    return judge(work.proofs.of(patch.file, edits, claims), claims, work.observers)


def _others(work: Work, accepted: Sequence[Patch], why: str) -> bool:
    """Exchange patches that made the script slower for others; whether any was accepted."""
    found = False
    for one in (one for one in accepted if one.others):
        _withdraw(work, [one], f"measured slower: {why}")
        work.progress(f"proof of another rewrite: {one.function}, {one.others[0].rule}")
        other, verdict = _judged(work, replace(one.others[0], others=one.others[1:]))
        note = f"instead of {one.rule}, with which {why}"
        verdict = _with(verdict, notes=(*(verdict.evidence.notes or ()), note))
        work.judged.append((other, verdict))
        found = found or work.acceptable(other, verdict)
    return found


def _withdraw(work: Work, patches: Sequence[Patch], why: str) -> None:
    gone = {id(patch) for patch in patches}
    functions = {(patch.file, patch.function) for patch in patches}
    before = work.judged
    work.judged = []
    for one, verdict in before:
        if id(one) in gone:
            verdict = replace(verdict, status="unproved", why=why)
        elif verdict.status == "proved" and one.function and (one.file, one.function) in functions:
            # It was proved on top of what is gone now.
            verdict = _prove(work, one)
        work.judged.append((one, verdict))


def _outcomes(work: Work, whole: Whole | None) -> list[Outcome]:
    """The answers to what rules were asked about."""
    found: list[Outcome] = []
    for patch, verdict in work.judged:
        accepted = work.acceptable(patch, verdict)
        found += outcomes_of_patch(patch, verdict, accepted, work.sources, work.root)
    left = None
    if whole is not None and whole.after is not None and work.accepted():
        # By function: lines and columns of code that was rewritten are not those of the report.
        left = {_function(finding) for finding in whole.after.findings if finding.kind in FIXABLE}
    for answer in work.unpatched:
        if whole is not None and left is not None and _function(answer.finding) not in left:
            answer = NoPatch(answer.finding, whole.gone, summary="no rewrite of its own")
        found.append(outcome_of_none(answer))
    return [replace(one, revealed=one.finding.fingerprint in work.revealed) for one in found]


def _function(finding: Finding) -> tuple[str, str | None]:
    return finding.location.file, finding.location.function


# ---- remedies ----


def _treat(work: Work, report: Report, whole: Whole | None) -> tuple[Whole | None, list[Outcome]]:
    """Try remedies on top of what is accepted, and take up those that work together with all of it."""
    asked = _recompiles(report, work.options)
    after = whole.after if whole is not None and work.accepted() else None
    left = _recompiles(after, work.options) if after is not None else asked
    answers: dict[str, Outcome] = {}
    if whole is not None:
        for name in asked.keys() - left.keys():
            none = NoPatch(asked[name], whole.gone, summary="no change of its own")
            answers[name] = outcome_of_none(none)
    found = treat(after or report, work.trials.on_top(work.accepted()), list(left.values())) if left else []
    for name, answer in zip(left, found, strict=True):
        # What the report knows of is answered as it knows it; the rest came to light with the rewrites.
        finding = asked.get(name, left[name])
        if isinstance(answer, NoPatch):
            outcome = outcome_of_none(replace(answer, finding=finding))
        else:
            patch, verdict = replace(answer[0], findings=(finding,)), answer[1]
            if work.acceptable(patch, verdict):
                verdict, whole = _admitted(work, patch, verdict, whole)
            accepted = work.acceptable(patch, verdict)
            if accepted:
                work.judged.append((patch, verdict))
            (outcome,) = outcomes_of_patch(patch, verdict, accepted, work.sources, work.root)
        answers[name] = replace(outcome, revealed=name not in asked)
    order = [*asked, *(name for name in left if name not in asked)]
    return whole, [answers[name] for name in order if name in answers]


def _recompiles(report: Report, options: Options) -> dict[str, Finding]:
    """The findings that remedies are for, by fingerprint.

    The remedy for long compiles needs consent and several runs under the real backend: only with consent.
    """
    return {
        finding.fingerprint: finding
        for finding in report.findings
        if treats(finding, report)
        and options.asked(finding)
        and (options.unsafe or finding.kind != "compile")
    }


def _admitted(
    work: Work, patch: Patch, verdict: Verdict, whole: Whole | None
) -> tuple[Verdict, Whole | None]:
    """The verdict on a remedy beside all that is accepted, and the whole script with it."""
    accepted = work.accepted()
    together = [*accepted, patch]
    known = {edit for one in accepted for edit in one.edits}
    if work.declined(patch, verdict):
        why = DECLINED
    elif clash(together):
        why = _CLASH
    elif not accepted or known.issuperset(patch.edits):
        return verdict, whole
    else:
        work.progress(f"the whole script with the fixes and: {patch.rewrite.summary}")
        base = whole.after if whole is not None and whole.after is not None else work.trials.before.report
        why, tried = beside(work.trials, together, base)
        if not why:
            return _with(verdict, whole_script=tried.evidence), tried
    return replace(verdict, status="unproved", why=why), whole


def _with(verdict: Verdict, **seen: object) -> Verdict:
    """A verdict with more evidence."""
    return replace(verdict, evidence=replace(verdict.evidence, **seen))  # type: ignore[arg-type]


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
