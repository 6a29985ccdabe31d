"""The whole answer of a ``fix``, kept for the next one that asks the same of the same script.

It depends on what a proof depends on (:mod:`breakscope.fix.proofs`), on the report, and on what was asked
for; on ``--timeout`` only where that ended one of the runs. JSON, because a folder that comes with a
repository is data and must not be run.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from breakscope.fix import proofs
from breakscope.fix.outcomes import Fixed, Outcome, Written
from breakscope.fix.patch import Edit, Patch, Rewrite
from breakscope.fix.rules import all_rules
from breakscope.fix.runs import Script
from breakscope.fix.source_file import NotTextError, Source, read
from breakscope.fix.work import Options
from breakscope.report import codec
from breakscope.report.model import Finding, Report, Suggestion

_OURS = "breakscope."


def load(report: Report, script: Script, options: Options) -> Fixed | None:
    """The answer that was kept; None if there is none, or anything that it depends on has changed."""
    if options.proofs is None or options.command:  # what a command answers, nobody knows
        return None
    for timeout_s in {None, script.timeout_s}:
        found = _load(options.proofs / f"{_name(report, script, options, timeout_s)}.json")
        if found is not None:
            return found
    return None


def _load(place: Path) -> Fixed | None:
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, IndexError, codec.MismatchError):
        data = json.loads(place.read_text(encoding="utf-8"))
        # Read first: a file that another fix writes now must not get the edits of what it held before.
        sources = _sources(data["sources"])
        known = data["files"]
        unchanged = all(known[file] == source.sha256 for file, source in sources.items())
        if unchanged and known == proofs.digests(known):
            patches = [_patch(one) for one in data["patches"]]
            said = [codec.decode(one, Suggestion) for one in data["suggestions"]]
            outcomes = tuple(_outcome(one, patches, said) for one in data["outcomes"])
            written = _written(data["written"])
            return Fixed(outcomes, sources, None, kept=True, written=written)
    return None


def save(report: Report, script: Script, options: Options, fixed: Fixed, files: Sequence[str]) -> None:
    """Keep an answer.

    Args:
        files: of the project, that the script loads.
    """
    if options.proofs is None or options.command or any(map(_may_come_out_otherwise, fixed.outcomes)):
        return
    patches = list(
        {id(outcome.patch): outcome.patch for outcome in fixed.outcomes if outcome.patch is not None}.values()
    )
    numbers = {id(one): index for index, one in enumerate(patches)}
    # The findings of a patch share one.
    suggestions = list({id(outcome.suggestion): outcome.suggestion for outcome in fixed.outcomes}.values())
    numbers |= {id(one): index for index, one in enumerate(suggestions)}
    data = {
        "sources": sorted(fixed.sources),
        "patches": [_patch_data(patch) for patch in patches],
        "suggestions": [codec.encode(suggestion, Suggestion) for suggestion in suggestions],
        "outcomes": [_outcome_data(outcome, numbers) for outcome in fixed.outcomes],
        "written": _written_data(fixed.written),
    }
    ended_by = script.timeout_s if script.timeouts else None
    place = options.proofs / f"{_name(report, script, options, ended_by)}.json"
    proofs.keep(place, data, {*files, *fixed.sources, script.what.path})


def _may_come_out_otherwise(one: Outcome) -> bool:
    """Whether another time may prove it: the machine was busy, or a step was measured slower."""
    patch, said = one.patch, one.suggestion
    return bool(patch and not patch.rewrite.scaffold) and said.status == "unproved" and not said.needs_consent


def _name(report: Report, script: Script, options: Options, ended_by_s: float | None) -> str:
    """A name made of all that an answer depends on; ``ended_by_s``: the --timeout, if that ended a run."""
    bare = replace(report, findings=tuple(replace(finding, suggestion=None) for finding in report.findings))
    asked = {**dataclasses.asdict(options), "proofs": None}
    said = [codec.encode(bare, Report), asked, script.budget_s, ended_by_s]
    about = [*said, _rules_of_others(), *proofs.setting(script)]
    return "fix-" + proofs.digest(json.dumps(about, sort_keys=True).encode())


def _rules_of_others() -> dict[str, str]:
    """Digests of the modules of installed rules: a version number says too little of one that is edited."""
    modules = {type(rule).__module__ for rule in all_rules()}
    files = [
        getattr(sys.modules[module], "__file__", None) or ""
        for module in modules
        if not module.startswith(_OURS)
    ]
    return proofs.digests(sorted(files))


def _sources(files: Sequence[str]) -> dict[str, Source]:
    try:
        return {file: read(file) for file in files}
    except (SyntaxError, NotTextError) as error:
        raise ValueError(str(error)) from error


def _outcome_data(one: Outcome, numbers: Mapping[int, int]) -> dict[str, Any]:
    return {
        "finding": codec.encode(one.finding, Finding),
        "suggestion": numbers[id(one.suggestion)],
        "patch": None if one.patch is None else numbers[id(one.patch)],
        "accepted": one.accepted,
        "revealed": one.revealed,
    }


def _outcome(data: Mapping[str, Any], patches: Sequence[Patch], suggestions: Sequence[Suggestion]) -> Outcome:
    return Outcome(
        codec.decode(data["finding"], Finding),
        suggestions[data["suggestion"]],
        None if data["patch"] is None else patches[data["patch"]],
        bool(data["accepted"]),
        bool(data["revealed"]),
    )


def _written_data(written: Written | None) -> dict[str, Any] | None:
    if written is None:
        return None
    data = {field.name: getattr(written, field.name) for field in dataclasses.fields(Written)}
    return {**data, "left": [codec.encode(one, Finding) for one in written.left]}


def _written(data: Mapping[str, Any] | None) -> Written | None:
    if data is None:
        return None
    left = tuple(codec.decode(one, Finding) for one in data["left"])
    return Written(**{**data, "left": left, "lines": tuple(data["lines"])})


def _patch_data(patch: Patch) -> dict[str, Any]:
    findings = [codec.encode(finding, Finding) for finding in patch.findings]
    names = [
        field.name for field in dataclasses.fields(Rewrite) if field.name != "branches"
    ]  # of the old source
    rewrite = {name: getattr(patch.rewrite, name) for name in names}
    rewrite |= {
        "edits": [dataclasses.astuple(edit) for edit in patch.edits],
        "config": dict(patch.rewrite.config),
    }
    rewrite |= {"options": dict(patch.rewrite.options)}
    return {"findings": findings, "rule": patch.rule, "rewrite": rewrite, "at": [patch.file, patch.function]}


def _patch(data: Mapping[str, Any]) -> Patch:
    fields = {name: _tuples(value) for name, value in data["rewrite"].items()}
    fields["edits"] = tuple(Edit(*one) for one in data["rewrite"]["edits"])
    findings = tuple(codec.decode(one, Finding) for one in data["findings"])
    return Patch(findings, data["rule"], Rewrite(**fields), *data["at"])


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
