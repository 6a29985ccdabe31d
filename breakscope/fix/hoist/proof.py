"""The comparison of what is compiled, with the value read where it was and read before all else."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from breakscope.fix import prove, runs
from breakscope.fix.diff import Change
from breakscope.fix.evidence import Verdict
from breakscope.fix.hoist.edits import edits
from breakscope.fix.hoist.reads import Read
from breakscope.fix.judge import judge
from breakscope.fix.observers import Observers
from breakscope.fix.patch import Edit, edits_by_file
from breakscope.fix.remedies.source import Files
from breakscope.fix.work import Work

_NEW = " (in the new code)"


def compared(work: Work, reads: Sequence[Read], name: str, files: Files) -> Verdict:
    """The verdict on what is compiled, computing the value at its beginning, on top of what is accepted.

    Raises:
        Unsafe: it cannot be written so.
    """
    made = [edit for read in reads for edit in edits(read, name, files, "compared")]
    changes = list(_changes(work, made))
    # The text of each function on the way shows that it is None only where nobody passes it.
    never = tuple(f"{name} is None{end}" for end in ("", _NEW))
    claims = replace(prove.claims_of(changes, "bitwise"), never=never)
    proof = runs.prove_files(work.script, prove.settings_of(changes, claims, ()))
    functions = [_relevant(one, reads) for one in proof["functions"]]
    if why := prove.why_not_functions(changes, proof, functions):
        return Verdict("unproved", why)
    entry = reads[0].entry
    alone = [one for one in functions if (one["file"], one["function"]) == (entry.file, entry.site.qualname)]
    if not alone or not alone[0]["calls"]:
        return Verdict("unproved", f"{entry.site.qualname} was not called in the proof run")
    called = {(one["file"], one["function"]) for one in functions if one["calls"]}
    for step in (step for read in reads for step in read.chain.steps[1:]):
        if (step.file, step.site.qualname) not in called:
            return Verdict("unproved", f"{step.site.qualname} was not called in the proof run")
    claims = replace(claims, unaliased=bool(alone[0]["apart"]))
    verdict = judge({"functions": functions, "files": proof["files"]}, claims, Observers())
    names = dict.fromkeys(step.site.qualname for read in reads for step in read.chain.steps[1:])
    through = tuple(f"{one}: compared through the functions that call it" for one in names)
    evidence = replace(verdict.evidence, level="functions", through=through or None)
    return replace(verdict, evidence=evidence)


def _changes(work: Work, made: Sequence[Edit]) -> Iterator[Change]:
    """The files with what is accepted, and with the changes besides."""
    accepted = edits_by_file(work.accepted())
    by_file: dict[str, list[Edit]] = {}
    for edit in dict.fromkeys(made):
        by_file.setdefault(edit.file, []).append(edit)
    for file, own in by_file.items():
        disk, before = work.sources[file], accepted.get(file, [])
        yield Change(file, disk.changed(before), disk.changed([*before, *own]), "old", disk)


def _relevant(one: Mapping[str, Any], reads: Sequence[Read]) -> dict[str, Any]:
    """What was seen of a function, with those conditions as limits that both forms have.

    Only calls inside of their blocks pass one value more: what no input drove there is what it was. Where
    nobody passes the value, the new code reads it by the very text of the old one.
    """
    read = [f"{each.cast}({ast.unparse(each.node)})" for each in reads]
    texts = {condition["text"] for condition in one["conditions"]}
    limits: dict[str, None] = {}
    left = []
    for condition in one["conditions"]:
        text = condition["text"].removesuffix(_NEW)
        ways = [way for way in ("true", "false") if not condition[way]]
        if len(ways) == 2 and text != condition["text"] and any(text in each for each in read):
            continue
        if ways and {text, f"{text}{_NEW}"} <= texts:
            limits.update({f"`{text}` was never {way}: nothing was compared there": None for way in ways})
        else:
            left.append(condition)
    return {**one, "conditions": left, "limits": list(dict.fromkeys([*one["limits"], *limits]))}
