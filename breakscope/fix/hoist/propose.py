"""From findings that no rule repairs to patches that hand the value down from the caller."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from breakscope.fix import from_rules, runs
from breakscope.fix.evidence import Verdict
from breakscope.fix.hoist import chain as chains
from breakscope.fix.hoist.chain import Chain
from breakscope.fix.hoist.edits import Form, edits
from breakscope.fix.hoist.expression import leaves
from breakscope.fix.hoist.proof import compared
from breakscope.fix.hoist.reading import read_at
from breakscope.fix.hoist.reads import Read
from breakscope.fix.outcomes import place
from breakscope.fix.patch import Edit, Patch, Rewrite, clash
from breakscope.fix.remedies.source import Files
from breakscope.fix.rule import Unsafe
from breakscope.fix.trials import eagerly
from breakscope.fix.work import DECLINED, Work
from breakscope.inside.record.evidence import Evidence
from breakscope.report.model import Finding, Report

RULE = "hoist"
# Breaks at which Python asks for a value.
_CODES = ("BS101", "BS102")
# What is no word of a name.
_PLAIN = ("item", "bool", "int", "float", "detach", "cpu", "to", "long", "view", "reshape", "flatten")


@dataclass(frozen=True, slots=True)
class Left:
    """A finding whose value stays where it is read, and why."""

    finding: Finding
    why: str


def propose(work: Work) -> bool:
    """Try the findings that are open, each once. Returns whether anything was accepted."""
    files = Files(work.sources)
    findings = _open(work)
    work.hoisted |= set(map(place, findings))
    reads: list[Read] = []
    for answer in look(
        findings, work.report, files, work.script.what.path, partial(runs.record, work.script)
    ):
        if isinstance(answer, Read):
            reads.append(answer)
        else:
            _tell(work, answer.finding, answer.why)
    accepted = [_tried(work, same, files) for same in together(reads)]
    return any(accepted)


def look(
    findings: Iterable[Finding],
    report: Report,
    files: Files,
    script: str,
    record: Callable[[Mapping[str, Sequence[str]]], Mapping[str, Mapping[str, Evidence]]],
) -> Iterator[Read | Left]:
    """What each of some findings reads, in the arguments of the compiled call, or why it stays there.

    Args:
        files: what is read of them is added. script: path of the script. record: what functions see in a run
            without compiling.
    """
    found: list[tuple[Finding, Chain]] = []
    for finding in findings:
        files.open(finding.location.file)
        site = from_rules.site_of(finding, files.sources, Evidence())
        if isinstance(site, str):
            continue
        try:
            found.append((finding, chains.find(finding, site, report, files)))
        except Unsafe as error:
            yield Left(finding, str(error))
    wanted: dict[str, list[str]] = {}
    for step in (step for _, chain in found for step in chain.steps):
        names = wanted.setdefault(step.file, [])
        names += [step.site.qualname] if step.site.qualname not in names else []
    seen = record(wanted) if wanted else {}
    for finding, bare in found:
        try:
            yield read_at(finding, chains.with_evidence(bare, seen, script))
        except Unsafe as error:
            yield Left(finding, str(error))


def together(reads: Iterable[Read]) -> list[list[Read]]:
    """Reads of one value of one compiled function: they become one."""
    groups: dict[object, list[Read]] = {}
    for read in reads:
        key = (read.entry.file, read.entry.site.qualname, read.cast, ast.dump(read.value))
        groups.setdefault(key, []).append(read)
    return list(groups.values())


def _open(work: Work) -> list[Finding]:
    """Breaks that are left, and were not looked at here before."""
    judged = [
        finding
        for patch, verdict in work.judged
        if not work.acceptable(patch, verdict) and not _declined(verdict)
        for finding in patch.findings
    ]
    closed = {place(finding) for patch in work.accepted() for finding in patch.findings} | work.hoisted
    findings = [*(one.finding for one in work.unpatched if one.verdict.status == "refused"), *judged]
    left = {place(finding): finding for finding in findings if finding.code in _CODES}
    return [finding for where, finding in left.items() if where not in closed]


def _declined(verdict: Verdict) -> bool:
    """Whether somebody was asked about a patch and did not want it: nothing is offered in its place."""
    return verdict.status == "unproved" and verdict.why == DECLINED


def _tell(work: Work, finding: Finding, why: str) -> None:
    """Add to the answer that a finding has why its value cannot be read before the compiled call."""
    note = f"its value cannot be read before the compiled call: {why}"
    for index, one in enumerate(work.unpatched):
        if one.finding is finding:
            work.unpatched[index] = replace(one, verdict=_noted(one.verdict, note))
    for index, (patch, verdict) in enumerate(work.judged):
        if any(one is finding for one in patch.findings):
            work.judged[index] = patch, _noted(verdict, note)


def _noted(verdict: Verdict, note: str) -> Verdict:
    notes = (*(verdict.evidence.notes or ()), note)
    return replace(verdict, evidence=replace(verdict.evidence, notes=notes))


def _tried(work: Work, reads: Sequence[Read], files: Files) -> bool:
    """Try one value for all places that read it."""
    text = ast.unparse(reads[0].value)
    work.progress(f"{text} read before the compiled call")
    try:
        name = name_of(reads, files, work.accepted())
        patch = patch_of(reads, name, files, "written")
        if clash([*work.accepted(), patch]):
            raise Unsafe("it changes text that another rewrite changes: write that one, then scan again")
        verdict = _proved(work, reads, name, files)
    except Unsafe as error:
        for read in reads:
            _tell(work, read.finding, str(error))
        return False
    if verdict.status != "proved":
        for read in reads:
            _tell(work, read.finding, verdict.why)
        return False
    own = (limit for read in reads for limit in read.limits)
    limits = dict.fromkeys((*(verdict.evidence.limits or ()), *own))
    notes = (*(verdict.evidence.notes or ()), *patch.rewrite.notes)
    evidence = replace(verdict.evidence, limits=tuple(limits), notes=notes)
    verdict = replace(verdict, evidence=evidence)
    if work.declined(patch, verdict):
        verdict = replace(verdict, status="unproved", why=DECLINED)
    answered = {place(read.finding) for read in reads}
    work.unpatched = [one for one in work.unpatched if place(one.finding) not in answered]
    kept = [pair for pair in work.judged if not answered.issuperset(map(place, pair[0].findings))]
    work.judged = [*kept, (patch, verdict)]
    return work.acceptable(patch, verdict)


def _proved(work: Work, reads: Sequence[Read], name: str, files: Files) -> Verdict:
    """Compared on recorded and invented inputs, and checked at each read of the script."""
    verdict = compared(work, reads, name, files)
    if verdict.status != "proved":
        return verdict
    checked = patch_of(reads, name, files, "checked")
    settings = eagerly(work.options.settings)
    with work.trials.with_patches([*work.accepted(), checked], settings) as ran:
        ended = work.trials.ended_otherwise(ran)
    return verdict if ended is None else Verdict("refused", f"what is passed is not what is read: {ended}")


def patch_of(reads: Sequence[Read], name: str, files: Files, form: Form) -> Patch:
    """The patch of all places that read one value. Raises Unsafe: one cannot be changed, as it is written."""
    made: dict[Edit, None] = {}
    for read in reads:
        made.update(dict.fromkeys(edits(read, name, files, form)))
    text = ast.unparse(reads[0].value)
    summary = f"`{text}` read once, before the compiled call, and passed as `{name}`"
    rewrite = Rewrite(tuple(made), summary, notes=_notes(reads))
    return Patch(tuple(read.finding for read in reads), RULE, rewrite)


def _notes(reads: Sequence[Read]) -> tuple[str, ...]:
    crossings = sum(read.finding.counts.crossings or 0 for read in reads)
    site = reads[0].chain.steps[-1].site
    seen = site.seen(reads[0].node)
    boolean = reads[0].cast == "bool" or (seen is not None and seen.only("bool"))
    versions = (
        "there is a graph for True and one for False"
        if boolean
        else "what Python decides by a number (how many turns a loop has) is a graph for each of its values"
    )
    entry = reads[0].entry.site.qualname
    price = (
        f"one wait for the device before each call of {entry}, in place of {crossings} crossings in the run"
    )
    return price, versions


def name_of(reads: Sequence[Read], files: Files, others: Iterable[Patch] = ()) -> str:
    """A name that no module on the way uses, and no other patch."""
    value = reads[0].value
    calls = [one.func for one in ast.walk(value) if isinstance(one, ast.Call)]
    words = [one.attr for one in calls if isinstance(one, ast.Attribute) and one.attr not in _PLAIN]
    wish = f"{leaves(value)[0]}_{words[0] if words else 'value'}"
    paths = {step.file for read in reads for step in read.chain.steps}
    modules = [file.module for path in paths if (file := files.open(path)) is not None]
    modules += [entry.file.module for read in reads for entry in read.chain.entries]
    taken = {name for module in modules for name in module.names | module.imported}
    taken.update(word for patch in others for edit in patch.edits for word in re.findall(r"\w+", edit.text))
    candidates = (wish, *(f"{wish}_{number}" for number in range(1, 1000)))
    return next(one for one in candidates if one not in taken)
