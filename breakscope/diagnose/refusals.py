"""What only a real backend refuses: regions without CUDA graphs, ops without a kernel of Inductor's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from breakscope import catalog
from breakscope.diagnose.collect import Collected, FrameRef
from breakscope.diagnose.places import Places
from breakscope.diagnose.records import RawFrame, unresumed
from breakscope.report.model import Counts, Finding, Location

_AT = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<name>\S+)')


@dataclass(frozen=True, slots=True)
class _Refused:
    code: str
    reason: str
    location: Location
    compile_id: str | None
    step: int | None


def findings(found: Collected, places: Places) -> list[Finding]:
    """One finding for each place and reason."""
    refused = [*_cudagraphs(found, places), *_fallbacks(found, places)]
    grouped: dict[tuple[str, str, str, int], list[_Refused]] = {}
    for one in refused:
        key = (one.code, one.reason, one.location.file, one.location.line)
        grouped.setdefault(key, []).append(one)
    return [_finding(group, places) for group in grouped.values()]


def _cudagraphs(found: Collected, places: Places) -> list[_Refused]:
    """From Inductor's warnings and, where those were not heard (a trace), from Dynamo's metrics."""
    said = [(e["cid"], e["text"], FrameRef.read(e.get("frame")), e["step"]) for e in found.cudagraphs]
    heard = {(cid, _reason(text)) for cid, text, _, _ in said}
    for event in found.metrics:
        text = event["metrics"].get("cudagraph_skip_reason")
        if text and (event["cid"], _reason(text)) not in heard:
            said.append((event["cid"], text, FrameRef.read(event.get("frame")), event.get("step")))
    made = []
    for cid, text, frame, step in said:
        location = _place(text, frame, places)
        if location is not None:
            made.append(_Refused("BS307", _reason(text), location, cid, step))
    return made


def _fallbacks(found: Collected, places: Places) -> list[_Refused]:
    made = []
    for event in found.fallbacks:
        location = _place("", FrameRef.read(event.get("frame")), places)
        if location is not None:
            made += [_Refused("BS308", op, location, event["cid"], event["step"]) for op in event["ops"]]
    return made


def _reason(text: str) -> str:
    """``mutated inputs (1 instances)`` of Inductor's sentence."""
    first = text.strip().splitlines()[0]
    return first.removeprefix("skipping cudagraphs due to ").split(". Found from")[0].strip()


def _place(text: str, frame: FrameRef | None, places: Places) -> Location | None:
    """The line that Inductor blames; else the function that was being compiled."""
    blamed = list(_AT.finditer(text))
    if blamed:
        at = blamed[-1]
        return places.location(RawFrame(at["file"], int(at["line"]), unresumed(at["name"]), None), None)
    if frame is None:
        return None
    return places.definition(frame.file, frame.line, frame.name, frame.qualname)


def _finding(group: Sequence[_Refused], places: Places) -> Finding:
    first = group[0]
    entry = catalog.entry(first.code)
    steps = [one.step for one in group if one.step is not None]
    return Finding(
        fingerprint=places.fingerprint(first.code, first.location, first.reason),
        code=first.code,
        kind="skip",
        gb_id=None,
        title=f"{entry.title}: {first.reason}",
        reason=first.reason,
        explanation=entry.why,
        hints=(),
        location=first.location,
        stack=(),
        counts=Counts(
            len(group), None, tuple(dict.fromkeys(one.compile_id for one in group if one.compile_id))
        ),
        called_from=places.caller(first.location, ()),
        first_step=min(steps, default=None),
        last_step=max(steps, default=None),
        not_measured="what the backend refuses has no gap to measure; breakscope bench compares modes",
    )
