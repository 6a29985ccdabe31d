"""What lies inside of the gaps, from the steps that ran under torch's profiler (``scan --profile``).

The profiler makes everything slower, and not evenly. So what it saw only divides the gap that was measured
without it: so much of it waits for the device, so much is operations that run eagerly, the rest is Python.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from breakscope.diagnose.collect import Event, RegionEvent
from breakscope.diagnose.gaps import ENTER, Sampled, take_apart
from breakscope.report.model import Inside

_MOST_NAMES = 5


@dataclass(slots=True)
class _Seen:
    """What the profiler saw in the gaps of one site. Times in microseconds, over all steps."""

    gap: float = 0.0
    waits: float = 0.0
    eager: float = 0.0
    launches: int = 0
    ops: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Look:
    """What the profiler saw.

    Attributes:
        by_site: by the site's index; busy_ms: the device's working time in a step, None without a device.
        note: what the reader of the report must know; None where nothing was asked.
    """

    by_site: Mapping[int, Inside]
    busy_ms: float | None = None
    note: str | None = None


def look(
    event: Event | None,
    regions: Mapping[int, RegionEvent],
    owners: Mapping[int, int],
    gaps_ms: Mapping[int, float],
) -> Look:
    """Divide the gaps.

    Args:
        event: what the profiler saw; None if it was not asked for.
        gaps_ms: the measured gap of each site.
    """
    if event is None:
        return Look({})
    why = event.get("why") or _unusable(event)
    if why is not None:
        return Look({}, note=f"--profile: not measured: {why}")
    steps = event["steps"]
    offset = _offset_us(steps, event["regions"])
    seen: dict[int, _Seen] = defaultdict(_Seen)
    # The first step is the one in which the profiler settles.
    for step in steps[1:]:
        one = take_apart(step, regions, owners)
        for owner, start, stop in _pieces(one):
            begin, end = ((step["at"] + at) / 1e3 + offset for at in (start, stop))
            _add(seen[owner], event, begin, end)
    number = len(steps) - 1
    made = {
        owner: _divided(one, number, gaps_ms[owner])
        for owner, one in seen.items()
        if owner in gaps_ms and one.gap
    }
    first, last = steps[0]["of"], steps[-1]["of"]
    note = f"steps {first} to {last} ran under torch's profiler (--profile), which makes them slower"
    return Look(made, _busy_ms(event["busy"], steps[1:], offset), note)


def _pieces(step: Sampled) -> list[tuple[int, int, int]]:
    """The gaps of a step: site, beginning and end."""
    return [(s.owner, s.begin, s.end) for s in step.spans if s.what == "gap" and s.owner is not None]


def _unusable(event: Event) -> str | None:
    if len(event["steps"]) < 2:
        return "the script ended before the profiler had seen two steps"
    if event["compiled"]:
        return "something was compiled under the profiler"
    if len(_entries_ns(event["steps"])) != len(event["regions"]):
        return "the profiler did not see every region"
    return None


def _entries_ns(steps: Sequence[Mapping[str, Any]]) -> list[int]:
    """When the host went into each region, by our clock."""
    marks = [(step["at"], mark) for step in steps for mark in step["marks"]]
    return [began + at + took for began, (kind, _, at, took, *_) in marks if kind == ENTER]


def _offset_us(steps: Sequence[Mapping[str, Any]], regions: Sequence[float]) -> float:
    """The profiler's clock less ours."""
    pairs = zip(regions, _entries_ns(steps), strict=True)
    return statistics.median(theirs - ours / 1e3 for theirs, ours in pairs)


def _add(seen: _Seen, event: Event, begin: float, end: float) -> None:
    """Count what lies in one piece of a gap."""
    seen.gap += end - begin
    waits = _overlap(event["waits"], begin, end)
    seen.waits += waits
    # An operation that reads a value waits inside of itself.
    inside = [(at, took) for at, took, _ in event["ops"] if at < end and at + took > begin]
    waits_in_ops = sum(_overlap(event["waits"], max(begin, at), min(end, at + took)) for at, took in inside)
    seen.eager += _overlap(inside, begin, end) - waits_in_ops
    seen.launches += sum(begin <= at < end for at in event["launches"])
    seen.ops.update(name for at, _, name in event["ops"] if begin <= at < end)


def _overlap(spans: Iterable[Sequence[float]], begin: float, end: float) -> float:
    return sum(max(0.0, min(end, at + took) - max(begin, at)) for at, took in spans)


def _divided(seen: _Seen, steps: int, gap_ms: float) -> Inside:
    scale = gap_ms / seen.gap
    waiting, eager = seen.waits * scale, seen.eager * scale
    return Inside(
        method=f"profiler window, {steps} steps, scaled to the measured gap",
        waiting_ms=round(waiting, 6),
        eager_ms=round(eager, 6),
        python_ms=round(max(0.0, gap_ms - waiting - eager), 6),
        launches=round(seen.launches / steps, 3),
        ops={name: round(count / steps, 3) for name, count in seen.ops.most_common(_MOST_NAMES)},
    )


def _busy_ms(
    stretches: Sequence[Sequence[float]], steps: Sequence[Mapping[str, Any]], offset: float
) -> float | None:
    """How long the device worked in a step; None where there was none."""
    if not stretches:
        return None
    begin = steps[0]["at"] / 1e3 + offset
    end = (steps[-1]["at"] + steps[-1]["ns"]) / 1e3 + offset
    busy: float = sum(max(0.0, min(end, stop) - max(begin, start)) for start, stop in stretches)
    return round(busy / len(steps) / 1e3, 6)
