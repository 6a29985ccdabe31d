"""``breakscope prove``: a patch by anybody, held to the proof that ours are held to.

Each changed function is compared in both forms, on recorded and on invented inputs; then the whole script.
What cannot be compared function by function is compared by the whole script alone, and not called proved.
"""

from __future__ import annotations

import ast
import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from breakscope.fix import runs, unseen
from breakscope.fix.diff import Change
from breakscope.fix.evidence import Evidence, Verdict
from breakscope.fix.judge import how, judge
from breakscope.fix.observers import Observers
from breakscope.fix.patch import Exactness, Patch, Rewrite
from breakscope.fix.runs import Script
from breakscope.fix.source_file import Source
from breakscope.fix.together import FIXABLE
from breakscope.fix.trials import Trials, recompiled
from breakscope.fix.under_inductor import under_inductor
from breakscope.inside.prove.claims import Claims
from breakscope.inside.settings import Settings
from breakscope.report.model import Finding, Report

RULE = "by-hand"
# From the worst to the best.
_CHECKS = ("torch._check", "_assert_async", "torch._assert")
_MESSAGES = ("print(", "warn", "log")


@dataclass(frozen=True, slots=True)
class Options:
    """What ``breakscope prove`` was asked for.

    Attributes:
        exact: how far results may be from the old ones.
        whole: run the whole script as well; without it, functions alone are compared.
    """

    settings: Settings
    exact: Exactness = "bitwise"
    inductor: bool = True
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Counterexample:
    """What tells the forms apart, to be seen again by :func:`breakscope.fix.counterexample.show`.

    Attributes:
        function: its dotted path, or "" where the whole script tells them apart.
        key: of the function in the proof run. call: the number of the captured call. input: its name.
        arguments, old, new: what went in and what came out, a line each.
    """

    difference: str
    function: str = ""
    file: str = ""
    key: str = ""
    call: int = 0
    input: str = ""
    arguments: tuple[str, ...] = ()
    old: tuple[str, ...] = ()
    new: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FunctionProof:
    """What became of one changed function."""

    name: str
    file: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Proved:
    """What became of a patch.

    Attributes:
        functions: those that were compared.
        gone, left, new: breaks in the report of the script as it was that are in it no more; those of changed
            functions that still are; and those that were not there.
        through: functions that are compared through their callers, by key of the proof run.
    """

    verdict: Verdict
    functions: tuple[FunctionProof, ...] = ()
    counterexample: Counterexample | None = None
    gone: tuple[Finding, ...] = ()
    left: tuple[Finding, ...] = ()
    new: tuple[Finding, ...] = ()
    through: tuple[tuple[str, str], ...] = ()


def prove(
    changes: Sequence[Change],
    script: Script,
    options: Options,
    progress: Callable[[str], None] = lambda _text: None,
) -> Proved:
    """Prove a patch on a script.

    Raises:
        BreakscopeError: the script could not be run.
    """
    progress("comparing the changed functions")
    found = _functions(changes, script, options)
    if found.verdict.status == "refused" or not options.whole:
        return found
    return _whole(found, changes, script, options, progress)


# ---- functions ----


def _functions(changes: Sequence[Change], script: Script, options: Options) -> Proved:
    claims = claims_of(changes, options.exact)
    first = _once(changes, script, claims, ())
    alone = [one for one in first.compared if one["mismatch"]]
    parts = [one for one in alone if not one["outside"]]
    if not alone or len(parts) < len(alone) or len(alone) == len(first.compared):
        return first.proved
    # What only other changed functions call may do something else, if they take it for what it is.
    through = tuple((part["file"], part["function"]) for part in parts)
    second = _once(changes, script, claims, through)
    if second.proved.verdict.status == "refused":
        return first.proved
    return replace(second.proved, through=through)


@dataclass(frozen=True, slots=True)
class _Compared:
    compared: Sequence[Mapping[str, Any]]
    proved: Proved


def settings_of(
    changes: Sequence[Change], claims: Claims, through: Sequence[tuple[str, str]]
) -> dict[str, Any]:
    """What :func:`breakscope.fix.runs.prove_files` takes."""
    return {
        "files": {
            change.file: {
                "sha256": change.disk.sha256,
                **{side: [[e.start, e.end, e.text] for e in change.edits(side)] for side in ("old", "new")},
            }
            for change in changes
        },
        "claims": dataclasses.asdict(claims),
        "through": [list(one) for one in through],
    }


def claims_of(changes: Sequence[Change], exact: Exactness) -> Claims:
    """What a patch by anybody may do: as little as can be, but for what its own text says."""
    added = "\n".join(edit.text for change in changes for edit in _forward(change))
    compiling = "is_compiling" in added
    return Claims(
        exact=exact == "bitwise",
        # Noted where it does, and judged afterwards: who shares less with whom.
        unaliased=True,
        compiled_only=compiling,
        raises=any(name in added for name in _CHECKS),
        silent=compiling and any(word in added for word in _MESSAGES),
    )


def _forward(change: Change) -> Iterator[Any]:
    from breakscope.fix.diff import edits_between

    yield from edits_between(change.old.text, change.new.text)


def _once(
    changes: Sequence[Change], script: Script, claims: Claims, through: Sequence[tuple[str, str]]
) -> _Compared:
    proof = runs.prove_files(script, settings_of(changes, claims, through))
    loaded, functions = proof["loaded"], [_strict(one) for one in proof["functions"]]
    parts = {(file, name) for file, said in loaded.items() for name in said.get("through", ())}
    compared = [function for function in functions if (function["file"], function["function"]) not in parts]
    verdict = _verdict(changes, proof, functions, compared, parts, claims)
    refused = next((one for one in compared if one["mismatch"]), None)
    proofs = tuple(
        FunctionProof(one["function"], one["file"], _judged([one], proof, claims)) for one in compared
    )
    return _Compared(
        compared, Proved(verdict, proofs, _counterexample(refused), through=tuple(sorted(parts)))
    )


def _strict(one: dict[str, Any]) -> dict[str, Any]:
    """An object of a class of its own that decides a condition: of a patch by anybody nothing is believed."""
    return {**one, "conditions": [{**condition, "unknown": False} for condition in one["conditions"]]}


def _judged(functions: Sequence[dict[str, Any]], proof: Mapping[str, Any], claims: Claims) -> Verdict:
    # Who asks which tensor it has matters only where the new code has another one.
    claims = replace(claims, unaliased=any(function["apart"] for function in functions))
    return judge({"functions": functions, "files": proof["files"]}, claims, Observers())


def _verdict(
    changes: Sequence[Change],
    proof: Mapping[str, Any],
    functions: Sequence[dict[str, Any]],
    compared: Sequence[dict[str, Any]],
    parts: set[tuple[str, str]],
    claims: Claims,
) -> Verdict:
    """The verdict on all functions; where they could not be compared, the reason, at level "whole script"."""
    whole = why_not_functions(changes, proof, compared)
    if whole is not None and not any(one["mismatch"] for one in compared):
        return Verdict("unproved", whole, Evidence(level="whole script"))
    verdict = _judged(functions, proof, claims)
    through = tuple(f"{name}: compared through the functions that call it" for _, name in sorted(parts))
    limits = (*(verdict.evidence.limits or ()), *_limits(changes, parts))
    evidence = replace(verdict.evidence, level="functions", through=through or None, limits=limits)
    why = how(evidence) if verdict.status == "proved" else verdict.why
    verdict = replace(verdict, why=why, evidence=evidence)
    if verdict.status == "refused":
        return verdict
    if left := next(_not_covered(changes, proof, functions, parts), None):
        return replace(verdict, status="unproved", why=left)
    return verdict


def why_not_functions(
    changes: Sequence[Change], proof: Mapping[str, Any], compared: Sequence[Mapping[str, Any]]
) -> str | None:
    """Why the whole script alone can be compared; None if functions were."""
    loaded = proof["loaded"]
    for change in changes:
        name = os.path.basename(change.file)
        if change.file not in loaded:
            return f"{name} was not loaded in the proof run, which ended with {proof['ended']}"
        if "whole" in loaded[change.file]:
            return f"{name}: {loaded[change.file]['whole']}"
    if proof["troubles"]:
        return str(proof["troubles"][0])
    if not any(said["functions"] or said["through"] for said in loaded.values()):
        added = [name for said in loaded.values() for name in (*said["added"], *said["removed"])]
        return (
            f"no function changes: it adds or removes {', '.join(added)}" if added else "only comments change"
        )
    if not compared and proof["ended"] != "ok":
        return f"no changed function was compared in the proof run, which ended with {proof['ended']}"
    if not compared:
        return "no changed function could be compared: the signature of each changes, or it is a generator"
    return None


def _not_covered(
    changes: Sequence[Change],
    proof: Mapping[str, Any],
    functions: Sequence[Mapping[str, Any]],
    parts: set[tuple[str, str]],
) -> Iterator[str]:
    """What of a patch nobody compared, a sentence each."""
    called = {(function["file"], function["function"]): function for function in functions}
    for file, said in proof["loaded"].items():
        for name in (*said["functions"], *said["through"]):
            if (file, name) not in called or not called[file, name]["calls"]:
                yield f"{name} was not called in the proof run"
    for file, name in parts:
        one = called[file, name]
        if one["outside"]:
            place, line = one["outside"][0]
            yield (
                f"{name} is not compared by itself, and is called from outside of the compared functions "
                f"({os.path.basename(place)}:{line})"
            )
    for change in changes:
        for effect in unseen.effects(change.old.text, change.new.text):
            yield f"{effect} in one of the forms only, which no comparison of calls sees"
    yield from _elsewhere(changes, proof, parts)


def _limits(changes: Sequence[Change], parts: set[tuple[str, str]]) -> tuple[str, ...]:
    """For what the functions were not compared."""
    made = dict.fromkeys(
        one for change in changes for one in unseen.placed_by_default(change.old.text, change.new.text)
    )
    devices = tuple(f"on another device: `{one}` is on one of its own" for one in made)
    left = (one for change in changes for one in unseen.moved_no_more(change.old.text, change.new.text))
    devices += tuple(f"on another device: `{one}` is done no more" for one in dict.fromkeys(left))
    forwards = [name for _, name in sorted(parts) if name.rpartition(".")[2] == "forward"]
    calls = tuple(f"other calls of {name} than the script makes: nobody looked for them" for name in forwards)
    others = [name for _, name in sorted(parts) if name not in forwards]
    calls += tuple(
        f"callers of {name} outside of this script: it is compared through those here" for name in others
    )
    gone = dict.fromkeys(
        one for change in changes for one in unseen.read_no_more(change.old.text, change.new.text)
    )
    unread = tuple(f"other values of `{one}`, which the new code does not read" for one in gone)
    told = (one for change in changes for one in unseen.limits(change.old.text, change.new.text))
    return devices + calls + unread + tuple(dict.fromkeys(told))


def _elsewhere(
    changes: Sequence[Change], proof: Mapping[str, Any], parts: set[tuple[str, str]]
) -> Iterator[str]:
    """Other code of the user's that mentions what is gone, or what takes other arguments now."""
    new = {change.file: change.new.text for change in changes}
    removed = {name for said in proof["loaded"].values() for name in said["removed"]}
    known = {name.rpartition(".")[2] for said in proof["loaded"].values() for name in said["functions"]}
    known |= {name.rpartition(".")[2] for _, name in parts}
    known |= {name.rpartition(".")[2] for said in proof["loaded"].values() for name in said["added"]}
    for name in {name.rpartition(".")[2] for _, name in parts} | removed:
        if name == "forward":
            continue  # called as the module is called: only the run shows by whom
        for file in dict.fromkeys([*new, *proof["files"]]):
            line = _mention(new.get(file), file, name, known if name not in removed else frozenset())
            if line is not None:
                what = "is gone" if name in removed else "is not compared by itself"
                yield f"`{name}` {what}, and {os.path.basename(file)}:{line} uses it"


def _mention(text: str | None, file: str, name: str, known: set[str] | frozenset[str]) -> int | None:
    """The first line that mentions a name outside of functions of other names."""
    try:
        tree = ast.parse(text if text is not None else Path(file).read_bytes())
    except (OSError, ValueError, SyntaxError):
        return None
    nodes: list[ast.AST] = [tree]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name in known:
            continue
        if (compiled := _compiled_as(node, name)) is not None:
            # Not called there; whoever calls what was made of it calls it.
            if compiled != name and (line := _mention(text, file, compiled, known)) is not None:
                return line
            continue
        read = isinstance(getattr(node, "ctx", None), ast.Load)
        if read and name in (getattr(node, "id", None), getattr(node, "attr", None)):
            return getattr(node, "lineno", 0)
        nodes += ast.iter_child_nodes(node)
    return None


def _compiled_as(node: ast.AST, name: str) -> str | None:
    """The name that the result of ``torch.compile(name)`` gets in an assignment."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
        return None
    called, target = node.value, node.targets[0]
    of_it = any(isinstance(arg, ast.Name) and arg.id == name for arg in called.args)
    if ast.unparse(called.func) != "torch.compile" or not of_it or not isinstance(target, ast.Name):
        return None
    return target.id


def _counterexample(one: Mapping[str, Any] | None) -> Counterexample | None:
    if one is None or one["found"] is None:
        return None
    found = one["found"]
    return Counterexample(
        str(one["mismatch"]),
        one["function"],
        one["file"],
        one["key"],
        found["call"],
        found["input"],
        tuple(found["arguments"]),
        tuple(found["old"]),
        tuple(found["new"]),
    )


# ---- the whole script ----


def trials_of(
    changes: Sequence[Change], script: Script, options: Options, progress: Callable[[str], None]
) -> tuple[Trials, Patch]:
    """Trials of the script as it was, and the patch."""
    summary = "the patch"
    old, new = (
        Patch(
            (),
            RULE,
            Rewrite(tuple(e for change in changes for e in change.edits(side)), summary, exact=options.exact),
        )
        for side in ("old", "new")
    )
    sources: dict[str, Source] = {change.file: change.disk for change in changes}
    return Trials(script, options.settings, sources, (), progress, [old] if old.edits else ()), new


def _whole(
    found: Proved,
    changes: Sequence[Change],
    script: Script,
    options: Options,
    progress: Callable[[str], None],
) -> Proved:
    trials, patch = trials_of(changes, script, options, progress)
    before = trials.before.report
    progress("running the script with the patch")
    with trials.with_patches([patch]) as after:
        report = after.report
        ended = trials.ended_otherwise(after)
        seen = trials.agreement(after, [patch])
    gone, left, new = _breaks(before, report, found, changes)
    evidence = _evidence(before, report, seen)
    verdict = replace(found.verdict, evidence=replace(found.verdict.evidence, whole_script=evidence))
    found = replace(found, gone=gone, left=left, new=new)
    if seen.difference is not None:
        chance = seen.difference.startswith("the script's outputs differ from run to run")
        status = "unproved" if chance else "refused"
        what = seen.difference if ended is None else ended
        verdict = replace(verdict, status=status, why=f"in the whole script: {what}")  # type: ignore[arg-type]
        return replace(found, verdict=verdict, counterexample=None if chance else Counterexample(what))
    if why := _worse(before, report, new):
        return replace(found, verdict=_at_most(verdict, why))
    if options.inductor:
        progress("the whole script under Inductor, without and with the patch")
        inductor = under_inductor(trials, [patch], options.settings)
        verdict = replace(verdict, evidence=replace(verdict.evidence, inductor=inductor))
        if inductor["verdict"] == "differs":
            verdict = _at_most(verdict, str(inductor["why"]))
    if verdict.evidence.level == "whole script":
        calls = seen.outputs.calls if seen.outputs else 0
        agrees = f"the whole script agrees ({calls} outermost calls, and what it says)"
        verdict = replace(verdict, why=f"compared by the whole script alone, because {verdict.why}; {agrees}")
    return replace(found, verdict=verdict)


def _at_most(verdict: Verdict, why: str) -> Verdict:
    if verdict.status == "unproved" and verdict.evidence.level == "functions":
        return replace(verdict, why=f"{verdict.why}; and {why}")
    return replace(verdict, status="unproved", why=why)


def _evidence(before: Report, after: Report, seen: Any) -> dict[str, Any]:
    outputs = seen.outputs
    found: dict[str, Any] = {
        "sites": [before.totals.sites, after.totals.sites],
        "crossings": [before.totals.crossings, after.totals.crossings],
        "recompiles": [before.totals.recompiles, after.totals.recompiles],
        "regions": [before.totals.regions, after.totals.regions],
    }
    if outputs is not None:
        found["outermost_calls"], found["tensors"] = outputs.calls, outputs.tensors
        found["bitwise"], found["max_difference"] = outputs.bitwise, outputs.max_abs
    if seen.words is not None:
        found["words"] = seen.words.evidence
    if seen.uncompiled:
        found["uncompiled"] = True
    return found


def _worse(before: Report, after: Report, new: Sequence[Finding]) -> str | None:
    """What is worse with the patch than without."""
    if new:
        where = new[0].location
        return f"the new code breaks: {new[0].title} ({os.path.basename(where.file)}:{where.line})"
    return recompiled(before, after, before.findings)


def _breaks(
    before: Report, after: Report, found: Proved, changes: Sequence[Change]
) -> tuple[tuple[Finding, ...], tuple[Finding, ...], tuple[Finding, ...]]:
    """Breaks that are gone, left in changed functions, and new in changed files."""
    old = [finding for finding in before.findings if finding.kind in FIXABLE]
    now = [finding for finding in after.findings if finding.kind in FIXABLE]
    files = {one.file for one in changes}
    functions = {(function.file, function.name) for function in found.functions} | set(found.through)
    # The file on disk has the lines of one side only, and both ran.
    was = {change.file: change.old.text.split("\n") for change in changes}
    became = {change.file: change.new.text.split("\n") for change in changes}
    left_over, gone = list(now), []
    for one in old:
        same = next((other for other in left_over if _alike(one, was) & _alike(other, became)), None)
        gone += [one] if same is None else []
        if same is not None:
            left_over.remove(same)
    left = [one for one in now if (os.path.realpath(one.location.file), one.location.function) in functions]
    new = [
        one for one in left_over if os.path.realpath(one.location.file) in files and one.kind == "graph_break"
    ]
    return tuple(gone), tuple(one for one in left if one not in new), tuple(new)


def _alike(finding: Finding, lines_of: Mapping[str, Sequence[str]]) -> set[tuple[str, str | None, str, str]]:
    """What a break has in common with itself in the other form: all but its line's number.

    Its line is that of the form that ran, or of the file on disk where the overlay keeps the numbers.
    """
    where = finding.location
    file = os.path.realpath(where.file)
    texts = {(where.source or "").strip()}
    lines = lines_of.get(file, ())
    if where.line <= len(lines):
        texts.add(lines[where.line - 1].strip())
    return {(file, where.function, finding.code, text) for text in texts}
