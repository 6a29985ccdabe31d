"""What each site takes from a steady step, from the steps that were sampled.

A gap (:mod:`breakscope.diagnose.gaps`) costs what host and device *together* lose. It begins when both have
ended the region before, since a host that is far ahead of its device may pause for free; it ends when the
device, or without one the host, begins the next region. Without the break that region would not have been
entered at all, so its entry (the runtime wrappers around a graph, and on a GPU the way to the first kernel)
is lost too. How long an entry takes is read off the regions of the same run: what is left of the shortest
one's time on the host without its launches.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from breakscope.diagnose.collect import Collected, Event
from breakscope.diagnose.gaps import Sampled, take_apart
from breakscope.diagnose.inside import look
from breakscope.diagnose.sites import Site
from breakscope.report.model import Cost, Timing

FEWEST = 3  # sampled steps below which nothing is said
# A region of more operations than this is no measure of an entry: it holds real work.
_MOST_OPS = 12
_ONE_BY_ONE = ("eager", "aot_eager")  # backends that launch every operation of a graph by itself


@dataclass(frozen=True, slots=True)
class Costs:
    """What sampling came to.

    Attributes:
        by_site: cost by the site's index; region_ms: host time of one run, by the region's slot.
        why_not: why there is none, as the end of a sentence.
        note: what became of ``--profile``, if it was asked for.
    """

    timing: Timing
    by_site: Mapping[int, Cost]
    region_ms: Mapping[int, float]
    why_not: str | None = None
    note: str | None = None


def costs(found: Collected, sites: Sequence[Site], backend: str) -> Costs:
    """The cost of every site."""
    why_not = _why_not(found)
    if why_not is not None:
        return _nothing(why_not, look(found.profile, {}, {}, {}).note)
    regions = {region.slot: region for region in found.regions if region.slot is not None}
    owners = _owners(found, sites)
    sampled = [take_apart(event, regions, owners) for event in found.samples]
    _device_steps(found.samples, sampled)
    streams = set().union(*(one.streams for one in sampled))
    if len(streams) > 1:
        return _nothing(f"compiled code ran in {len(streams)} CUDA streams, whose work may overlap")
    on_device = any(one.on_device for one in sampled)
    what = "device and host gaps" if on_device else "gaps"
    method = f"measured {what}, {len(sampled)} steps, backend {backend}"
    entry = _entry_ns(sampled, {slot: region.ops for slot, region in regions.items()}, backend)
    bound = _bound(sampled)
    # A host that has time to spare makes its marks in that time.
    lengths = [one.ns - (one.own if bound == "host" else 0) for one in sampled]
    step = statistics.median(lengths)
    made = {
        index: _cost(index, sampled, entry, step, method)
        for index in range(len(sites))
        if any(one.gaps.get(index) for one in sampled)
    }
    seen = look(found.profile, regions, owners, {i: cost.parts["gap"] for i, cost in made.items()})
    made = {index: replace(cost, inside=seen.by_site.get(index)) for index, cost in made.items()}
    runs: dict[int, list[int]] = defaultdict(list)
    for one in sampled:
        for slot, times in one.runs.items():
            runs[slot].extend(times)
    timing = Timing(
        method=method,
        steps=len(sampled),
        step_ms=_ms(step),
        spread_ms=_ms(_spread(lengths)),
        regions_ms=_ms(statistics.median(sum(map(sum, one.runs.values())) for one in sampled)),
        breaks_ms=round(sum(cost.ms_per_step for cost in made.values()), 6),
        bound=bound,
        device_busy_ms=seen.busy_ms,
        guard_us=round(statistics.median(one.prologue for one in sampled) / 1e3, 3),
    )
    region_ms = {slot: statistics.fmean(times) / 1e6 for slot, times in runs.items()}
    return Costs(timing, made, region_ms, note=seen.note)


def _device_steps(events: Sequence[Event], sampled: Sequence[Sampled]) -> None:
    """Lengthen steps in which the device took longer than the host, which was running ahead of it."""
    for (before, event), one in zip(pairwise(events), sampled[1:], strict=True):
        begin, end = before.get("device_end"), event.get("device_end")
        if event["of"] == before["of"] + 1 and begin is not None and end is not None:
            one.ns = max(one.ns, end - begin)


def _nothing(why: str, note: str | None = None) -> Costs:
    return Costs(Timing(f"not measured: {why}", 0), {}, {}, why, note)


def _why_not(found: Collected) -> str | None:
    if found.slots is None:
        return "the report was not made from a live run"
    if len(found.samples) >= FEWEST:
        return None
    if not found.sampling:
        return "the scan was made with --no-cost"
    untimed = sorted({device["type"] for device in found.devices} - {"cpu", "cuda", "meta"})
    if untimed:
        return f"breakscope cannot time regions on {', '.join(untimed)}"
    if not found.regions:
        return "no compiled code ran"
    seen = len(found.samples) or "no"
    return (
        f"{seen} steady {'step' if seen == 1 else 'steps'} after warm-up in a run of {found.steps}; "
        f"{FEWEST} are needed"
    )


def _owners(found: Collected, sites: Sequence[Site]) -> dict[int, int]:
    """Index of the site that each counting slot belongs to."""
    owners: dict[int, int] = {}
    for index, site in enumerate(sites):
        for item in site.breaks:
            for slot in (item.site, item.counting):
                if slot is not None:
                    owners.setdefault(slot, index)
    for skip in found.skips:
        if skip.site in owners and skip.counting is not None:
            owners.setdefault(skip.counting, owners[skip.site])
    return owners


def _entry_ns(sampled: Sequence[Sampled], ops: Mapping[int, int], backend: str) -> float:
    """How long the host takes to enter a region and to leave it, without its operations; 0 if unknown.

    It is the time of the shortest small region less what its launches take, which would be left without the
    break: one for each operation, or at least one where a compiler has fused them. What a launch takes (on
    a CPU: with its work) is the least by which a region with more operations is longer, for each of them.
    """
    times: dict[int, list[int]] = defaultdict(list)
    for one in sampled:
        for slot, runs in one.runs.items():
            times[slot].extend(runs)
    regions = [(ops[slot], statistics.median(runs)) for slot, runs in times.items() if slot in ops]
    few = [(time, size) for size, time in regions if size <= _MOST_OPS]
    if not few:
        return 0.0
    shortest, least = min(few)
    launch = max(0.0, min(((t - shortest) / (n - least) for n, t in regions if n > least), default=0.0))
    return max(0.0, shortest - launch * (least if backend in _ONE_BY_ONE else 1))


def _cost(index: int, sampled: Sequence[Sampled], entry: float, step: float, method: str) -> Cost:
    gaps = [one.gaps.get(index, 0) for one in sampled]
    whole = [gap + one.entries.get(index, 0) * entry for gap, one in zip(gaps, sampled, strict=True)]
    ms, gap = statistics.median(whole), statistics.median(gaps)
    return Cost(
        ms_per_step=_ms(ms),
        share=round(min(1.0, ms / step), 6) if step else None,
        method=method,
        spread_ms=_ms(_spread(whole)),
        parts={"gap": _ms(gap), "entry": _ms(max(0.0, ms - gap))},
    )


def _bound(sampled: Sequence[Sampled]) -> Literal["host", "device"]:
    """What a step waits for: the device, if that is behind the host by more than half of the step."""
    return "device" if statistics.median(one.late / one.ns for one in sampled) > 0.5 else "host"


def _spread(values: Sequence[float]) -> float:
    """Half of the distance between the quartiles."""
    if len(values) < 2:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / 2


def _ms(ns: float) -> float:
    return round(ns / 1e6, 6)
