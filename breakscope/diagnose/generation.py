"""A compiled ``generate()`` of transformers: what breaks in it goes once the model alone is compiled."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from breakscope.diagnose.places import Places
from breakscope.report.model import Finding, Frame

_OF_THEM = re.compile(r"[/\\]transformers[/\\]")
_FILES = re.compile(r"[/\\]transformers[/\\](generation[/\\]|models[/\\]\w+[/\\]generation_\w+\.py$)")
_MODEL = ("forward", "__call__")


def led_back(made: Sequence[Finding], places: Places) -> list[Finding]:
    """The findings; those of generate()'s own code follow from one of them, which says what to compile.

    What the model itself breaks at, whose ``forward`` is between, stays by itself.
    """
    inside = [finding for finding in made if _is_inside(finding.stack)]
    reached = {
        (frame.file, frame.function)
        for finding in inside
        for frame in finding.stack[_begin(finding.stack) :]
        if frame.owner == "library"
    }
    calls = {(frame.file, frame.line) for finding in inside for frame in finding.stack[:1]}
    again = [
        finding
        for finding in made
        if finding.kind == "recompile" and (_is_of(finding, reached) or _is_call(finding, calls))
    ]
    own = {finding.fingerprint: finding for finding in (*inside, *again)}
    lead = max(inside, key=lambda one: (one.caused_by is None, one.counts.crossings or 0), default=None)
    if lead is None:
        return list(made)
    told = replace(lead, caused_by=None, advice=_advice(lead, len(own) - 1, places))

    def with_lead(finding: Finding) -> Finding:
        if finding.fingerprint == told.fingerprint:
            return told
        if finding.fingerprint not in own:
            return finding
        at = places.short(told.location.file, told.location.line)
        said = f"It is in what generate() does around the model, and goes with {told.code} at {at}"
        return replace(finding, caused_by=told.fingerprint, advice=f"{said}: do what is said there")

    return [with_lead(finding) for finding in made]


def _is_generate(frame: Frame) -> bool:
    if frame.owner != "library":
        return False
    named = (frame.function or "").rpartition(".")[2] == "generate" and _OF_THEM.search(
        frame.file
    ) is not None
    return named or _FILES.search(frame.file) is not None


def _begin(stack: Sequence[Frame]) -> int:
    return next(at for at, frame in enumerate(stack) if _is_generate(frame))


def _is_inside(stack: Sequence[Frame]) -> bool:
    """Whether a place is reached through generate(), and through no model that it calls."""
    through = [at for at, frame in enumerate(stack) if _is_generate(frame)]
    after = stack[through[-1] + 1 :] if through else ()
    return bool(through) and not any((one.function or "").rpartition(".")[2] in _MODEL for one in after)


def _is_of(finding: Finding, reached: set[tuple[str, str]]) -> bool:
    place = finding.location
    if _FILES.search(place.file) is not None:
        return True
    name = (place.function or "").rpartition(".")[2]
    return name not in _MODEL and (place.file, place.function or "") in reached


def _is_call(finding: Finding, calls: set[tuple[str, int]]) -> bool:
    """Whether it is in what torch wraps a compiled method in, for a call of generate() itself."""
    at, wrapped = finding.called_from, finding.location.file.endswith("external_utils.py")
    return wrapped and at is not None and (at.file, at.line) in calls


def _advice(lead: Finding, others: int, places: Places) -> str:
    # The first frame of the project's own calls what is compiled, those after it are compiled with it.
    compiled = [frame for frame in lead.stack[1 : _begin(lead.stack)] if frame.owner == "project"]
    call = f" outside of what is compiled (at {_at(compiled[-1], places)})" if compiled else " as it is"
    go = "finding goes" if others == 1 else "findings go"
    too = f"; {others} more {go} with this one" if others else ""
    return (
        "Compile the model's forward in place of generate(): model.forward = torch.compile(model.forward),"
        f" and call generate(){call}. What generate() does itself, to copy, count and stop, is Python's work"
        f" and breaks the graph all over{too}"
    )


def _at(frame: Frame, places: Places) -> str:
    return places.short(frame.file, frame.line)
