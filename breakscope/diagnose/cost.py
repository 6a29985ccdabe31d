"""What each site takes from a steady step, from the steps that were sampled.

Each sampled step is played again (:mod:`breakscope.diagnose.replay`) as it was, and without the break at a
site: the difference is what the break costs. A site's cost in the run is that of one step of each kind, for
all steady steps of that kind; steps are of one kind if they ran the same regions and crossed the same
sites.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

from breakscope.diagnose.collect import Collected, Event
from breakscope.diagnose.gaps import Sampled, take_apart
from breakscope.diagnose.inside import look
from breakscope.diagnose.segments import (
    LEAST,
    LIKELY,
    MOST,
    Alike,
    Entry,
    Reading,
    entry_of,
    play,
    sort_out,
    timeline,
)
from breakscope.diagnose.sites import Site
from breakscope.report.model import Cost, Timing

FEWEST = 3  # sampled steps below which nothing is said
_FEWEST_BARE = 10  # steps without marks, to compare those with marks to
_MOST_REPLAYED = 24  # samples of one kind
_CROWDED = 1.5  # load per CPU; bench calls a run on a CPU noisy from there on too
# Of a pause of a card at its power limit, what is gained at least: a resting card takes about a third of the
# power of one that works. Products 2,048 wide on an H200 gained 0.4 of their pauses.
_AT_POWER_LIMIT = 1 / 3


@dataclass(frozen=True, slots=True)
class Costs:
    """What sampling came to.

    Attributes:
        by_site: cost by the site's index; region_ms: host time of one run, by the region's slot.
        why_not: why there is none, as the end of a sentence.
        note: what became of ``--profile``, if it was asked for.
        machine: what the reader must know of it: that it was busy while steps were sampled, or short of
            power.
        together: milliseconds that an average steady step would be shorter without several sites.
    """

    timing: Timing
    by_site: Mapping[int, Cost]
    region_ms: Mapping[int, float]
    why_not: str | None = None
    note: str | None = None
    machine: tuple[str, ...] = ()
    together: Callable[[Collection[int]], float] | None = None


def costs(found: Collected, sites: Sequence[Site], backend: str, meant: Collection[int] = ()) -> Costs:
    """The cost of every site.

    Args:
        meant: sites where torch itself means to break: nobody repairs them, and no gain counts them.
    """
    why_not = _why_not(found)
    if why_not is not None:
        return _nothing(why_not, look(found.profile, {}, {}, {}).note)
    regions = {region.slot: region for region in found.regions if region.slot is not None}
    owners = owners_of(found, sites)

    def apart(events: Sequence[Event]) -> list[Sampled]:
        return [take_apart(event, regions, owners) for event in events]

    sampled = apart(found.samples)
    _device_steps(found.samples, sampled)
    streams = set().union(*(step.streams for step in sampled))
    if len(streams) > 1:
        return _nothing(f"compiled code ran in {len(streams)} CUDA streams, whose work may overlap")
    glances = list(zip(apart(found.glances), found.glances, strict=True))
    kinds = sort_out(sampled, apart(found.held), glances)
    run = _Run(found, kinds, sampled, owners)
    inputs = {slot: region.inputs for slot, region in regions.items()}
    entry = entry_of(found.calibration, glances, inputs)
    priced = _Priced(kinds, entry, run, apart([*found.samples, *found.partial]))
    method = f"replayed, {len(sampled)} steps, backend {backend}"
    made = {index: cost for index in range(len(sites)) if (cost := priced.cost(index, method)) is not None}
    seen = look(found.profile, regions, owners, {i: cost.parts["gap"] for i, cost in made.items()})
    made = {index: replace(cost, inside=seen.by_site.get(index)) for index, cost in made.items()}
    timing = replace(
        priced.timing(sampled, method, [index for index in made if index not in meant]),
        device_busy_ms=seen.busy_ms,
        calibration_s=_calibration_s(found.calibration),
    )
    machine = tuple(said for said in (busy(found), at_power_limit(found)) if said is not None)
    return Costs(
        timing, made, _region_ms(sampled), None, seen.note, machine, lambda some: _ms(priced.gain(some))
    )


def busy(found: Collected) -> str | None:
    """How the machine was busy, if it was, and took the CPU from sampled steps."""
    seen = found.busy
    if seen is None or not seen["preempted"] or seen["load"] <= _CROWDED:
        return None
    return (
        f"costs were measured on a busy machine: load {seen['load']:.1f} per CPU, and the script lost its "
        f"CPU {seen['preempted']} times in {seen['samples']} sampled steps; ranges hold the middle half "
        "of the samples, and shares are to be trusted more than milliseconds"
    )


def at_power_limit(found: Collected) -> str | None:
    """That the card's power set the pace of the sampled steps, if it did so in most of them."""
    limited, asked = (found.busy or {}).get("power") or (0, 0)
    if 2 * limited <= asked:
        return None
    return (
        f"the card was at its power limit ({limited} of {asked} times when asked): with fewer pauses its "
        "clock falls, so a repair gains less than the pauses that it ends; ranges begin at a third of them"
    )


def _region_ms(sampled: Sequence[Sampled]) -> dict[int, float]:
    runs: dict[int, list[int]] = defaultdict(list)
    for step in sampled:
        for span in step.spans:
            if span.slot is not None:
                runs[span.slot].append(span.ns)
    return {slot: statistics.fmean(times) / 1e6 for slot, times in runs.items()}


def _calibration_s(event: Event | None) -> float | None:
    return None if event is None else round(event["compile_s"] + event["run_s"], 3)


# ---- the steps of the run, by kind ----


class _Run:
    """The steady steps of a run: how many are of which kind.

    Attributes:
        wall: of all steady steps, in nanoseconds; steps: their number; of_kind: how many are of each shape
            that was sampled; bare: how long those of each shape take without marks, where there are enough;
            others: what slots counted in steps of no such shape, and how many those are; busy: whether the
            machine was; certain: the part of a gain that is gained at least.
    """

    def __init__(
        self,
        found: Collected,
        kinds: Sequence[Alike],
        sampled: Sequence[Sampled],
        owners: Mapping[int, int],
    ) -> None:
        self._owners = owners
        rows = _steady_rows(found)
        kind_of = {id(step): number for number, kind in enumerate(kinds) for step in kind.samples}
        by_gains: dict[Any, Counter[int]] = defaultdict(Counter)
        gains_of = {index: gains for index, _, gains in rows}
        for event, step in zip(found.samples, sampled, strict=True):
            by_gains[gains_of.get(event["of"])][kind_of[id(step)]] += 1
        self.wall = sum(ns for _, ns, _ in rows)
        self.steps = len(rows)
        self.busy = busy(found) is not None
        self.certain = 1.0 if at_power_limit(found) is None else _AT_POWER_LIMIT
        self.of_kind: Counter[int] = Counter()
        self.others: Counter[Any] = Counter()
        touched = {e["of"] + after for e in (*found.samples, *found.held, *found.glances) for after in (0, 1)}
        bare: dict[int, list[int]] = defaultdict(list)
        number_of = {gains: numbers.most_common(1)[0][0] for gains, numbers in by_gains.items()}
        for index, ns, gains in rows:
            self._count(number_of.get(gains), gains, 1)
            if gains in number_of and index not in touched:
                bare[number_of[gains]].append(ns)
        for changed, steps, ns in found.later_steps:
            gains = _gains(changed)
            self._count(number_of.get(gains), gains, steps)
            self.wall += ns
            self.steps += steps
        self.bare = {n: statistics.median(times) for n, times in bare.items() if len(times) >= _FEWEST_BARE}
        if not rows:
            self.of_kind.update({number: len(kind.samples) for number, kind in enumerate(kinds)})
            self.steps = sum(self.of_kind.values())
            self.wall = sum(step.ns for step in sampled)

    def _count(self, number: int | None, gains: Any, steps: int) -> None:
        """Some steps more of a kind; of none that was sampled, if there is no number."""
        if number is None:
            self.others[gains] += steps
        else:
            self.of_kind[number] += steps

    def crossings(self, index: int) -> tuple[int, int]:
        """How often steps of no sampled shape come to a site, and how many of them do."""
        times = steps = 0
        for gains, number in self.others.items():
            gained = max((gain for slot, gain in gains if self._owners.get(slot) == index), default=0)
            times += gained * number
            steps += number if gained else 0
        return times, steps


def _steady_rows(found: Collected) -> list[tuple[int, int, Any]]:
    """Index, length and gains of each step after the first in which nothing was compiled."""
    compiling = {event["step"] for event in found.metrics}
    rows: list[tuple[int, int, Any]] = []
    gains: Any = ()
    for index, _, length, changed in found.step_rows:
        if changed is not None:
            gains = _gains(changed)
        if index not in compiling and index > 0:
            rows.append((index, length, gains))
    return rows


def _gains(changed: Mapping[Any, int]) -> tuple[tuple[int, int], ...]:
    return tuple(sorted((int(slot), gain) for slot, gain in changed.items()))


# ---- prices ----


class _Priced:
    """Replays every kind of step without this or that."""

    def __init__(
        self, kinds: Sequence[Alike], entry: Entry, run: _Run, everything: Sequence[Sampled]
    ) -> None:
        self._kinds = kinds
        self._everything = everything  # partial samples too
        self._entry = entry
        self._run = run
        self._few = [kind.timed[:: -(-len(kind.timed) // _MOST_REPLAYED)] for kind in kinds]
        self._as_is = [
            [play(kind, step, entry) for step in few] for kind, few in zip(kinds, self._few, strict=True)
        ]
        # A step with marks is slower than the marks' own time says: they leave the caches colder.
        self._scale = [
            run.bare[number] / statistics.median(whole) if number in run.bare and whole else 1.0
            for number, whole in enumerate(self._as_is)
        ]

    def _gains(self, number: int, without: Collection[int], reading: Reading) -> list[float]:
        kind, few = self._kinds[number], self._few[number]
        scale = self._scale[number]
        entry = replace(self._entry.read_as(reading), scale=scale)
        return [
            scale * (whole - play(kind, step, entry, without, reading))
            for whole, step in zip(self._as_is[number], few, strict=True)
        ]

    def _medians(self, kinds: list[int], without: Collection[int], reading: Reading) -> dict[int, float]:
        return {number: statistics.median(self._gains(number, without, reading)) for number in kinds}

    def _crossing(self, index: int) -> list[int]:
        """The kinds of steps that come to a site."""
        return [
            number
            for number, kind in enumerate(self._kinds)
            if any(span.owner == index for span in kind.samples[0].spans)
        ]

    def cost(self, index: int, method: str) -> Cost | None:
        """What one site costs; None where no sampled step came to it."""
        kinds, run = self._crossing(index), self._run
        times, other_steps = run.crossings(index)
        one = self._one_crossing(index) if times else 0.0
        steps = sum(run.of_kind[number] for number in kinds) + (other_steps if one else 0)
        if not steps:
            return None
        gains = {number: self._gains(number, {index}, LIKELY) for number in kinds}

        def each(of: Callable[[int], float], other: float = 0.0) -> float:
            """The average over the steps that come here."""
            return (sum(run.of_kind[number] * of(number) for number in kinds) + times * other) / steps

        ns = max(0.0, each(lambda number: statistics.median(gains[number]), one))
        readings = [self._medians(kinds, {index}, reading) for reading in (LEAST, MOST)]
        least, most = (max(0.0, each(medians.__getitem__, one)) for medians in readings)
        spread = each(lambda number: _spread(gains[number]))
        if run.busy:  # what others took of single steps is in some of the samples
            least, most = max(0.0, least - spread), most + spread
        return Cost(
            ms_per_step=_ms(ns),
            share=round(min(1.0, ns * steps / run.wall), 6) if run.wall else None,
            method=method,
            spread_ms=_ms(spread),
            parts=self._parts(index, each, kinds, one),
            least_ms=_ms(run.certain * min(ns, least)),
            most_ms=_ms(max(ns, most)),
            steps=steps,
            of_steps=run.steps,
        )

    def _one_crossing(self, index: int) -> float:
        """What one run into a site takes, in whichever step it was seen; 0 if in none."""
        seen = [
            (step.gaps.get(index, 0) + step.entries.get(index, 0) * self._entry.forward) / times
            for step in self._everything
            if (times := step.crossings.get(index, 0))
        ]
        return statistics.median(seen) if seen else 0.0

    def _parts(
        self, index: int, each: Callable[..., float], kinds: list[int], one_crossing: float
    ) -> dict[str, float]:
        """What the host does for one site, in milliseconds."""
        if not kinds:
            return {"gap": _ms(each(lambda _: 0.0, one_crossing))}

        def median(part: Callable[[Alike, Sampled], float]) -> float:
            def of(number: int) -> float:
                kind = self._kinds[number]
                return self._scale[number] * statistics.median(part(kind, step) for step in self._few[number])

            return each(of)

        gap = median(lambda _, step: step.gaps.get(index, 0))
        wait = median(lambda kind, step: self._waited(kind, step, index))
        entry = self._entry.forward + self._entry.backward
        found = {
            "gap": gap,
            "wait": wait,
            "entry": each(lambda number: self._kinds[number].samples[0].entries.get(index, 0) * entry),
        }
        inside = {
            number: [
                inside
                for span, inside in zip(kind.samples[0].spans, kind.inside, strict=True)
                if span.owner == index and span.what == "gap"
            ]
            for number, kind in enumerate(self._kinds)
            if number in kinds
        }
        if all(one.guards is not None for number in kinds for one in inside[number]):
            scale = self._scale
            guards = each(lambda number: scale[number] * sum(one.guards or 0.0 for one in inside[number]))
            eager = each(lambda number: scale[number] * sum(one.eager or 0.0 for one in inside[number]))
            found |= {"guards": guards, "eager_work": eager, "resume": max(0.0, gap - wait - guards - eager)}
        else:
            found["resume"] = max(0.0, gap - wait)
        return {name: _ms(ns) for name, ns in found.items()}

    def _waited(self, kind: Alike, step: Sampled, index: int) -> float:
        played = timeline(kind, step, self._entry)
        return sum(
            max(0.0, span.ns - self._entry.own - stretch.host)
            for span, stretch in zip(step.spans, played, strict=True)
            if span.owner == index and stretch.wait is not None
        )

    def gain(self, sites: Collection[int], reading: Reading = LIKELY) -> float:
        """By how much an average steady step would be shorter without some sites."""
        run = self._run
        medians = self._medians(list(range(len(self._kinds))), sites, reading)
        known = sum(run.of_kind[number] * ns for number, ns in medians.items())
        # Of steps of no sampled shape only single crossings are known.
        rare = sum(run.crossings(index)[0] * self._one_crossing(index) for index in sites)
        return max(0.0, (known + rare) / run.steps) if run.steps else 0.0

    def timing(self, sampled: Sequence[Sampled], method: str, sites: Collection[int]) -> Timing:
        """What a steady step is made of, and what sites together take of it."""
        run = self._run
        bound = _bound(sampled)
        # A host that has time to spare makes its marks in that time.
        lengths = [step.ns - (step.own if bound == "host" else 0) for step in sampled]
        bare = run.bare.get(0)
        likely = self.gain(sites)
        return Timing(
            method=method,
            steps=len(sampled),
            step_ms=_ms(statistics.median(lengths) if bare is None else bare),
            spread_ms=_ms(_spread(lengths)),
            regions_ms=_ms(statistics.median(step.total("region") for step in sampled)),
            breaks_ms=_ms(statistics.median(sum(step.gaps.values()) for step in sampled)),
            bound=bound,
            guard_us=round(statistics.median(step.total("prologue") for step in sampled) / 1e3, 3),
            gain_ms=_ms(likely),
            least_gain_ms=_ms(run.certain * min(likely, self.gain(sites, LEAST))),
            most_gain_ms=_ms(max(likely, self.gain(sites, MOST))),
            steady_ms=_ms(run.wall),
            steady_steps=run.steps,
            step_kinds=len(self._kinds) + len(run.others),
            entry_us=round((self._entry.forward + self._entry.backward) / 1e3, 3) or None,
        )


def _device_steps(events: Sequence[Event], sampled: Sequence[Sampled]) -> None:
    """Lengthen steps in which the device took longer than the host, which was running ahead of it."""
    for (before, event), step in zip(pairwise(events), sampled[1:], strict=True):
        begin, end = before.get("device_end"), event.get("device_end")
        if event["of"] == before["of"] + 1 and begin is not None and end is not None:
            step.ns = max(step.ns, end - begin)


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


def owners_of(found: Collected, sites: Sequence[Site]) -> dict[int, int]:
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


def _bound(sampled: Sequence[Sampled]) -> Literal["host", "device"]:
    """What a step waits for: the device, if that is behind the host by more than half of the step."""
    late = [step.late / step.ns for step in sampled if step.on_device]
    return "device" if late and statistics.median(late) > 0.5 else "host"


def _spread(values: Sequence[float]) -> float:
    """Half of the distance between the quartiles."""
    if len(values) < 2:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / 2


def _ms(ns: float) -> float:
    return round(ns / 1e6, 6)
