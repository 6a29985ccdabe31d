"""The answer of ``breakscope prove``: as data, and as text."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from breakscope.fix.diff import Change
from breakscope.fix.prove import Counterexample, Proved
from breakscope.report.model import Finding

VERSION = 1


def answer(proved: Proved, changes: Sequence[Change], wrote: str | None = None) -> dict[str, Any]:
    """The answer as JSON data.

    Args:
        wrote: the file of the counterexample, if one was written.
    """
    verdict = proved.verdict
    return {
        "prove_version": VERSION,
        "status": verdict.status,
        "why": verdict.why,
        "level": verdict.evidence.level,
        "files": [{"file": change.file, "on_disk": change.on_disk} for change in changes],
        "functions": [
            {
                "function": function.name,
                "file": function.file,
                "status": function.verdict.status,
                "why": function.verdict.why,
            }
            for function in proved.functions
        ],
        "evidence": verdict.evidence.json(),
        "breaks": {
            "gone": [_finding(one) for one in proved.gone],
            "left": [_finding(one) for one in proved.left],
            "new": [_finding(one) for one in proved.new],
        },
        "counterexample": None if proved.counterexample is None else _example(proved.counterexample, wrote),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    where = finding.location
    return {"code": finding.code, "title": finding.title, "file": where.file, "line": where.line}


def _example(example: Counterexample, wrote: str | None) -> dict[str, Any]:
    return {
        "function": example.function or None,
        "input": example.input or None,
        "call": example.call or None,
        "arguments": list(example.arguments),
        "old": list(example.old),
        "new": list(example.new),
        "difference": example.difference,
        "script": wrote,
    }


def text(found: Mapping[str, Any], *, bench: bool = False) -> str:
    """The answer for a terminal."""
    return "\n".join(_lines(found, bench=bench))


def _lines(found: Mapping[str, Any], *, bench: bool) -> Iterator[str]:
    yield f"{found['status']}: {found['why']}"
    for one in found["functions"]:
        yield f"  {one['function']}  {os.path.relpath(one['file'])}  {one['status']}: {one['why']}"
    evidence = found["evidence"]
    yield from (f"  {one}" for one in evidence.get("through", ()))
    yield from (f"  limit: {one}" for one in evidence.get("limits", ()))
    yield from (f"  identity: {one}" for one in evidence.get("identity", ()))
    whole = evidence.get("whole_script")
    if whole is not None:
        (sites, sites_now), (recompiles, recompiles_now) = whole["sites"], whole["recompiles"]
        equal = "equal" if whole.get("bitwise") else f"apart by {whole.get('max_difference', 0):.2g}"
        calls = f"{whole['outermost_calls']} outermost calls {equal}" if "outermost_calls" in whole else ""
        calls += " to the script uncompiled" if whole.get("uncompiled") else ""
        yield (
            f"  whole script: {calls or 'not compared'}, breaks {sites} -> {sites_now}, "
            f"recompiles {recompiles} -> {recompiles_now}"
        )
    for word in ("gone", "left", "new"):
        for one in found["breaks"][word]:
            yield f"  {word}: {one['code']} {one['title']} ({os.path.basename(one['file'])}:{one['line']})"
    inductor = evidence.get("inductor")
    if inductor is not None:
        yield f"  Inductor: {inductor['verdict']}, {inductor['why']}"
        if bench:
            steps = inductor.get("step_ms")
            yield (
                f"  a step: {steps[0]:.3g} ms -> {steps[1]:.3g} ms"
                if steps
                else "  a step: could not be timed"
            )
    example = found["counterexample"]
    if example is not None:
        yield from _of_example(example)


def _of_example(example: Mapping[str, Any]) -> Iterator[str]:
    if example["function"] is not None:
        yield f"  counterexample: {example['function']}, input: {example['input']}"
        for word in ("arguments", "old", "new"):
            yield from (f"    {word}: {line}" for line in example[word])
    if example["script"] is not None:
        yield f"  to see it: python {os.path.relpath(example['script'])}"
