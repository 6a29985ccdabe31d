"""Regional compilation: layers that are alike are compiled one by one, where the whole module was compiled.

One compile then serves all of them, so that the first step comes sooner; nothing is fused across two layers,
so that later steps may take longer. Both are measured, in turn, and the user decides.
"""

from __future__ import annotations

import ast
import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from breakscope.diagnose.compile_time import about_layers
from breakscope.fix.evidence import Verdict
from breakscope.fix.outcomes import NoPatch
from breakscope.fix.patch import Edit, Patch, Refusal
from breakscope.fix.remedies.calls import compiling, is_simple
from breakscope.fix.remedies.prove import Tried, agreeing
from breakscope.fix.remedies.source import File, Files
from breakscope.fix.remedies.subject import Proposal, Subject
from breakscope.fix.trials import Trials
from breakscope.inside.events import WATCHED
from breakscope.report.model import Finding, Report, Signature
from breakscope.run.observe import Observed

RULE = "regional-compile"
CODES = ("BS402", "BS403")
ROUNDS = 2
# Less than this is not worth the change: seconds to the first step, and their share.
LEAST_S, LEAST_SHARE = 1.0, 0.2
_WARM_UP, _FEWEST = 3, 3  # steps
_MOST_VERSIONS = 2  # of a layer, besides the first
_NAMES = ("layer", "block", "alike_layer")


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a run was.

    Attributes:
        first_s: from the start of the process to the end of its first step.
        step_ms: median of later steps; None where there were too few.
    """

    first_s: float
    step_ms: float | None


_SLOWER = (
    "a step may take longer, because nothing is fused across two layers, each is entered from Python, and "
    "what {} does beside them runs eagerly"
)
_NAMES_OF_STATE = (
    "where torch.compile returned a wrapper, names in its state_dict() began with _orig_mod., and no longer "
    "do"
)


def signature_of(report: Report, finding: Finding | None = None) -> Signature | None:
    """The call of a module with alike layers: that of a finding's compiles, or any; None without one."""
    frames = None
    if finding is not None:
        frames = {compile_id.partition("/")[0] for compile_id in finding.counts.compile_ids}
    return next(
        (
            one
            for one in report.signatures
            if one.alike and (frames is None or (one.compile_id or "").partition("/")[0] in frames)
        ),
        None,
    )


def treats(finding: Finding, report: Report) -> bool:
    """Whether a finding about compile time is of a module with alike layers."""
    return finding.code in CODES and signature_of(report, finding) is not None


def asked_for(report: Report, roots: tuple[str, ...]) -> Report:
    """The report with a finding about the module that holds alike layers, if it has none: somebody asked.

    Args:
        roots: directories of the user's project.
    """
    call = signature_of(report)
    if call is None or any(treats(finding, report) for finding in report.findings):
        return report
    return replace(report, findings=(*report.findings, about_layers(report, call, roots)))


# ---- the change ----


def propose(subject: Subject, call: Signature, files: Files) -> Proposal:
    """``torch.compile(model)`` -> ``for layer in model.layers: layer.compile()``."""
    targets = subject.report.run.targets
    names = " and ".join(f"each {layers.name} of {layers.path}" for layers in call.alike)
    if not call.forward:
        return Refusal(f"{call.entry} is one of torch's own modules: compile {names} by itself in its place")
    if any(target.name == call.entry and target.by == "breakscope" for target in targets):
        most = max(call.alike, key=lambda layers: layers.count)
        return subject.patch(
            RULE,
            f"compile each {most.name} by itself: for layer in model.{most.path}: layer.compile()",
            (),
            caveat=_SLOWER.format(call.entry),
            options={"compile": most.function, "watch": call.forward},
        )
    place = compiling(call.entry, targets, files)
    if place is None:
        return Refusal(f"the torch.compile of {call.entry} is not in your own files")
    file, node = place
    edits = _edits(file, node, call)
    if edits is None:
        return Refusal(
            f"the torch.compile of {call.entry} is no statement of its own: compile {names} by itself instead"
        )
    return subject.patch(
        RULE,
        f"compile {names} by itself, and not {call.entry} as a whole",
        edits,
        caveat=f"{_SLOWER.format(call.entry)}; {_NAMES_OF_STATE}",
        options={"watch": call.forward},
    )


def _edits(file: File, node: ast.expr, call: Signature) -> tuple[Edit, ...] | None:
    """The changes of source; None where it says neither ``x = torch.compile(…)`` nor ``x.compile()``."""
    statement = next(file.parents(node), None)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    start, end = (0, 0) if not isinstance(statement, ast.stmt) else file.span(statement)
    alone = not file.text[end:].partition("\n")[0].strip() and file.begins_line(start)
    if any(keyword.arg is None for keyword in node.keywords) or not alone:
        return None
    options = ", ".join(
        file.source(keyword.value).join((f"{keyword.arg}=", ""))
        for keyword in node.keywords
        if keyword.arg != "model"
    )
    name = next((name for name in _NAMES if name not in file.names_around(node)), None)
    match statement:
        case ast.Assign([target], value) if value is node and is_simple(target) and len(node.args) == 1:
            given = file.source(node.args[0])
            model, edits = target, [file.replace(node, given)] if given != file.source(target) else []
        case ast.Expr(value) if value is node and is_simple(node.func.value) and not node.args:
            model, edits = node.func.value, []
        case _:
            return None
    if name is None or (isinstance(model, ast.Name) and model.id == "torch"):
        return None
    indent = file.indent_of(start)
    loops = [
        f"for {name} in {file.source(model)}.{layers.path}:\n{indent}    {name}.compile({options})"
        for layers in call.alike
    ]
    text = f"\n{indent}".join(loops)
    if edits:
        return (*edits, file.after(statement, f"\n{indent}{text}"))
    return (file.replace(statement, text),)


# ---- the trial ----


def treated(subject: Subject, trials: Trials, files: Files) -> tuple[Patch, Verdict] | NoPatch:
    """Whether the script computes the same with its layers compiled one by one, and how fast it is."""
    finding, call = subject.finding, signature_of(subject.report, subject.finding)
    assert call is not None
    patch = propose(subject, call, files)
    if isinstance(patch, Refusal):
        return NoPatch(finding, Verdict("refused", patch.reason), "none", "no change is proposed")
    rewrite = patch.rewrite
    tried = _agrees(patch, trials)
    if not tried.proved:
        why = f"rejected: {rewrite.summary}: {tried.why}"
        return NoPatch(finding, Verdict("refused", why, tried.evidence), RULE, rewrite.summary)
    paces = _measure(patch, call, trials)
    if isinstance(paces, str):
        return patch, Verdict("unproved", f"{tried.why}, but nothing could be timed: {paces}", tried.evidence)
    whole, layers = paces
    steps = None
    if whole.step_ms is not None and layers.step_ms is not None:
        steps = whole.step_ms, layers.step_ms
    evidence = replace(
        tried.evidence,
        first_step_s=(whole.first_s, layers.first_s),
        step_ms=steps,
        caveat="; ".join(rewrite.notes) or None,
        notes=rewrite.notes,
    )
    figures = describe(whole, layers)
    if not is_worth_it(whole, layers):
        why = f"rejected: {rewrite.summary}: it is not worth it: {figures}"
        return NoPatch(finding, Verdict("refused", why, evidence), RULE, rewrite.summary)
    why = f"{figures}; {tried.why}"
    if patch.applies:
        return patch, Verdict("needs consent", f"it needs your consent: {evidence.caveat} ({why})", evidence)
    return patch, Verdict("proved", why, evidence)


def is_worth_it(whole: Pace, layers: Pace) -> bool:
    """Whether the first step comes sooner by a second, and by a fifth."""
    saved = whole.first_s - layers.first_s
    return saved >= max(LEAST_S, LEAST_SHARE * whole.first_s)


def describe(whole: Pace, layers: Pace) -> str:
    """Both ways side by side, in words."""
    first = f"{whole.first_s:.1f} -> {layers.first_s:.1f} s to the first step"
    if whole.step_ms is None or layers.step_ms is None:
        return f"{first}, too few steps to time them (the better of {ROUNDS} runs each, in turn)"
    later = f"{whole.step_ms:.3g} -> {layers.step_ms:.3g} ms a step"
    return f"{first}, {later} (the better of {ROUNDS} runs each, in turn, with empty caches)"


def _agrees(patch: Patch, trials: Trials) -> Tried:
    """Whether outputs and words are the same, and nothing new is found."""
    after, seen = trials.seen(patch)
    tried = agreeing(patch, seen)
    if not tried.proved:
        return tried
    before = trials.before.report
    known = {finding.fingerprint for finding in before.findings}
    fresh = [one for one in after.findings if one.fingerprint not in known and one.kind != "compile"]
    if not after.totals.regions:
        return replace(tried, proved=False, why="nothing would be compiled")
    versions = sum(finding.counts.occurrences for finding in fresh)
    if any(one.kind != "recompile" for one in fresh) or versions > _MOST_VERSIONS:
        return replace(tried, proved=False, why=f"instead there would be: {fresh[0].title}")
    if fresh:
        counted = "one more version" if versions == 1 else f"{versions} more versions"
        # The first layer is often called in another way than the others; what that takes is in what is timed.
        return replace(tried, why=f"{tried.why}; {counted} of a layer: {fresh[0].title}")
    return tried


def _measure(patch: Patch, call: Signature, trials: Trials) -> tuple[Pace, Pace] | str:
    """The pace of the script without and with the change, in turn; or why it could not be measured."""
    paces: dict[bool, list[Pace]] = {False: [], True: []}
    for number in range(2 * ROUNDS):
        changed = number in (
            1,
            2,
        )  # first one way, then the other way twice, so that neither has the better half
        way = "layer by layer" if changed else "as a whole"
        seen = trials.timed([patch] if changed else [], f"timing {number + 1} of {2 * ROUNDS}: {way}")
        pace = pace_of(seen, call.entry)
        if pace is None:
            return f"a run ended with {seen.ended.status} before its first step was over"
        paces[changed].append(pace)
    return _best(paces[False]), _best(paces[True])


def pace_of(seen: Observed, name: str) -> Pace | None:
    """The pace of a run whose outermost calls were timed: of the calls of one class."""
    ends = next((event["ends"].get(name) for event in seen.recorded if event["t"] == WATCHED), None)
    if not ends:
        return None
    steps = [(later - earlier) * 1e3 for earlier, later in itertools.pairwise(ends)][_WARM_UP:]
    return Pace(ends[0], statistics.median(steps) if len(steps) >= _FEWEST else None)


def _best(paces: Sequence[Pace]) -> Pace:
    """Of several runs the better: what others do on the machine makes them longer, never shorter."""
    steps = [pace.step_ms for pace in paces if pace.step_ms is not None]
    return Pace(min(pace.first_s for pace in paces), min(steps, default=None))
