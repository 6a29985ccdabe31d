"""What is known of steps of one shape, so that a step can be played again without some of its breaks.

Samples say how long the host takes in every span. Held steps say how long the device works on what it is
given there, glances what the guards and the eager operations take, the calibration what it is to enter a
region: there, and by what glances see of the wrappers around a region in the script's steps.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from breakscope.diagnose.collect import Event
from breakscope.diagnose.gaps import Sampled, Span
from breakscope.diagnose.replay import Stretch, period, with_waits

HELD_ALIKE = 1.25  # a region that took longer in one held step than in another waited for the host there
DRY_NS = 20_000  # below this a difference between the device's clock and the host's says nothing
_FEWEST_SEEN = 4  # entries that glances saw, to speak of a quarter of them
_INPUTS = 2  # of a region of one operation in the calibration
_GRAPH_NS = 1_000  # a launch that takes less is none: the region is one CUDA graph

# Operations that bring a value to the host, or only look at a tensor in another way: they go with the break.
_CARRIES = frozenset(
    {
        *("aten::item", "aten::is_nonzero", "aten::_local_scalar_dense", "aten::equal"),
        *("aten::to", "aten::_to_copy", "aten::copy_", "aten::detach", "aten::alias", "aten::lift_fresh"),
        *("aten::resolve_conj", "aten::resolve_neg", "aten::view", "aten::reshape", "aten::as_strided"),
        *("aten::select", "aten::slice", "aten::narrow", "aten::squeeze", "aten::unsqueeze", "aten::expand"),
        *("aten::t", "aten::transpose", "aten::permute"),
    }
)


@dataclass(frozen=True, slots=True)
class Entry:
    """What a region that is no longer entered saves the host. Nanoseconds.

    Attributes:
        forward: entering it; backward: entering its backward, where there is one.
        launch: giving the device one operation more.
        own: what our own wrappers take of each gap.
        scale: how much longer than played a step really takes. An entry is calibrated apart from the steps
            and their marks, so that it is as long as it is.
        least, most: how much shorter and longer than this the middle half of the entries in the steps are.
    """

    forward: float = 0.0
    backward: float = 0.0
    launch: float = 0.0
    own: float = 0.0
    scale: float = 1.0
    least: float = 1.0
    most: float = 1.0

    def read_as(self, reading: Reading) -> Entry:
        """The entry of a reading."""
        factor = {LEAST: self.least, MOST: self.most}.get(reading, 1.0)
        return replace(self, forward=factor * self.forward, backward=factor * self.backward)


def entry_of(
    calibration: Event | None,
    glances: Sequence[tuple[Sampled, Event]] = (),
    inputs: Mapping[int, int | None] | None = None,
) -> Entry:
    """What the calibration came to: sixteen regions of one operation against one of sixteen.

    Args:
        inputs: of each region, by its counting slot.
    """
    if calibration is None:
        return Entry()
    low, pace, high = _pace(calibration, glances, inputs or {})
    forward = _each(calibration["forward"])
    backward = _each(calibration.get("backward") or {})
    launch = max(0.0, (calibration["forward"]["16"] - forward) / 16)
    own = pace * calibration.get("own", 0.0)
    return Entry(pace * forward, pace * backward, pace * launch, own, least=low / pace, most=high / pace)


def _pace(
    calibration: Event, glances: Sequence[tuple[Sampled, Event]], inputs: Mapping[int, int | None]
) -> tuple[float, float, float]:
    """How long a region's wrappers take in the script's steps, as a part of what they did in the calibration.

    In the middle, between a quarter that takes less and one that takes more. The same host is up to twice as
    slow a minute later, and in most steps caches are not quite as cold. They cannot be much colder: what
    seems longer is what the glance itself does to a step.
    """
    calibrated = calibration.get("around") or {}
    if not all(calibrated.get(size) for size in ("1", "16")):
        return 1.0, 1.0, 1.0
    each = max(0.0, (calibrated["16"] - calibrated["1"]) / 15)  # what one input more takes

    def expected(slot: int | None) -> float:
        more = (inputs.get(slot or 0) or _INPUTS) - _INPUTS
        return float(calibrated["1"] + each * more)

    seen = [
        min(1.0, around / expected(slot))
        for step, event in glances
        for slot, around in _wrappers(step, event)
    ]
    if len(seen) < _FEWEST_SEEN:
        return (statistics.median(seen),) * 3 if seen else (1.0, 1.0, 1.0)
    low, middle, high = statistics.quantiles(seen, n=4, method="inclusive")
    return low, middle, high


def _wrappers(step: Sampled, event: Event) -> Iterator[tuple[int | None, int]]:
    """Regions that a break is before, and what the wrappers of each take around what Inductor made of it."""
    for span in step.spans:
        if span.what == "region" and span.owner is not None:
            inside = [took for at, took, _ in event.get("calls", ()) if span.begin <= at < span.end]
            if inside:
                yield span.slot, span.ns - sum(inside)


def _each(times: Mapping[str, float]) -> float:
    return max(0.0, (times["1"] - times["16"]) / 15) if times else 0.0


@dataclass(frozen=True, slots=True)
class Inside:
    """What lies in one span. Nanoseconds, scaled to the span as it is without the glance; None: not known.

    Attributes:
        guards: checking guards; eager: operations that would still be needed without the break.
        waits: whether the host waits for the device.
    """

    guards: float | None = None
    eager: float | None = None
    waits: bool = False


@dataclass(slots=True)
class Alike:
    """Steps of one shape.

    Attributes:
        samples: their spans; device: for how long the device works on what it is given in each; inside: of
            each.
    """

    samples: list[Sampled] = field(default_factory=list)
    device: list[float] = field(default_factory=list)
    inside: list[Inside] = field(default_factory=list)

    @property
    def timed(self) -> list[Sampled]:
        """The samples to take the host's times from: those without device events, if there are."""
        return [step for step in self.samples if not step.on_device] or self.samples

    @property
    def on_device(self) -> bool:
        """Whether there is a device that the host may wait for."""
        return any(step.on_device for step in self.samples)


def sort_out(
    samples: Iterable[Sampled], held: Iterable[Sampled], glances: Sequence[tuple[Sampled, Event]]
) -> list[Alike]:
    """Samples by shape, with what is known of each shape; the most frequent shape first."""
    kinds: dict[Any, Alike] = defaultdict(Alike)
    for sample in samples:
        kinds[sample.shape].samples.append(sample)
    held = list(held)
    for shape, alike in kinds.items():
        alike.device = _device_work(alike.samples, [step for step in held if step.shape == shape])
        seen = [(step, event) for step, event in glances if step.shape == shape]
        alike.inside = _insides(alike.samples, seen)
    return sorted(kinds.values(), key=lambda alike: -len(alike.samples))


def _device_work(samples: Sequence[Sampled], held: Sequence[Sampled]) -> list[float]:
    """For how long the device works on what it is given in each span.

    The time between its two events, unless it waited for the host meanwhile. In a held step it does not, but
    where the host took longer than the device was held for.
    """
    work = []
    for index in range(len(samples[0].spans)):
        times = [_between(step.spans[index]) for step in samples]
        unbroken = _known(_between(step.spans[index]) for step in held)
        held_long_enough = [ns for ns in unbroken if ns <= HELD_ALIKE * min(unbroken)]
        known = [statistics.median(ns) for ns in (_known(times), held_long_enough) if ns]
        work.append(max(0.0, min(known, default=0.0)))
    return work


def _between(span: Span) -> int | None:
    begin, end = span.device
    return None if begin is None or end is None else end - begin


def _known(values: Iterable[int | None]) -> list[int]:
    return [value for value in values if value is not None]


def _insides(samples: Sequence[Sampled], glances: Sequence[tuple[Sampled, Event]]) -> list[Inside]:
    found = []
    for index, span in enumerate(samples[0].spans):
        inside = Inside()
        if glances and span.what != "region":
            timed = [step for step in samples if not step.on_device] or samples
            usual = statistics.median(step.spans[index].ns for step in timed)
            looks = [_look(step.spans[index], event, usual) for step, event in glances]
            guards = statistics.median(look.guards or 0.0 for look in looks)
            eager = statistics.median(look.eager or 0.0 for look in looks)
            inside = Inside(guards, eager, 2 * sum(look.waits for look in looks) > len(looks))
        found.append(inside)
    for gap in _gaps(samples[0].spans):
        if not any(found[index].waits for index in gap) and _runs_dry(samples, gap):
            found[gap.start] = replace(found[gap.start], waits=True)
    return found


def _gaps(spans: Sequence[Span]) -> Iterator[range]:
    """The stretches between two regions, whose parts may have several owners."""
    begin = 0
    for index, span in enumerate(spans):
        if span.device[1] is not None or span.what == "region":
            if span.what != "region":
                yield range(begin, index + 1)
            begin = index + 1


def _look(span: Span, event: Event, usual: float) -> Inside:
    """What a glance saw in one span."""
    scale = usual / span.ns if span.ns else 0.0
    here = [op for op in event["ops"] if span.begin <= op[0] + op[1] / 2 < span.end]
    guards = sum(took for at, took in event["lookups"] if span.begin <= at < span.end)
    stays = sum(took for _, took, name, waits in here if not waits and name not in _CARRIES)
    return Inside(guards * scale, stays * scale, any(waits for *_, waits in here))


def _runs_dry(samples: Sequence[Sampled], gap: range) -> bool:
    """Whether the device is behind the host at the beginning, and the host ends when it has caught up."""
    first = [step.spans[gap.start] for step in samples]
    last = [step.spans[gap.stop - 1] for step in samples]
    before = [span.device[0] - span.begin for span in first if span.device[0] is not None]
    after = [span.device[1] - span.on for span in last if span.device[1] is not None]
    if not before or not after:
        return False
    return statistics.median(before) > DRY_NS and statistics.median(after) < DRY_NS


@dataclass(frozen=True, slots=True)
class Reading:
    """What is taken to stay where a break was. The truth lies between the least and the most.

    Attributes:
        eager: operations that ran eagerly, at the price that they had; else they cost the host nothing, as
            part of a graph.
        guards: guards of what goes on, which are then checked with those of its beginning.
    """

    eager: bool
    guards: bool


LEAST, LIKELY, MOST = Reading(True, True), Reading(True, False), Reading(False, False)


def play(
    alike: Alike, sample: Sampled, entry: Entry, without: Collection[int] = (), reading: Reading = LIKELY
) -> float:
    """How long such a step takes without the breaks at some sites, by their indices."""
    return period(_taken_out(alike, timeline(alike, sample, entry), sample, entry, without, reading))


def timeline(alike: Alike, sample: Sampled, entry: Entry) -> list[Stretch]:
    """The step as it was, a stretch for each of its spans."""
    step = [
        Stretch(max(0.0, span.ns - (entry.own if span.what == "gap" else 0.0)), work, _lead(span, entry))
        for span, work in zip(sample.spans, _given(alike), strict=True)
    ]
    return with_waits(step, [inside.waits and alike.on_device for inside in alike.inside])


def _given(alike: Alike) -> list[float]:
    """Device work by span: between regions the host's pauses lie between the events, and are no work."""
    return [
        work if span.what == "region" or inside.guards is None or inside.eager else 0.0
        for span, inside, work in zip(alike.samples[0].spans, alike.inside, alike.device, strict=True)
    ]


def _taken_out(
    alike: Alike,
    step: list[Stretch],
    sample: Sampled,
    entry: Entry,
    without: Collection[int],
    reading: Reading,
) -> list[Stretch]:
    if not without:
        return step
    left, saved = [], 0.0
    fixed = 0.0  # at the most, of the region before
    for span, stretch, inside in zip(sample.spans, step, alike.inside, strict=True):
        beyond = max(0.0, span.ns - entry.launch / entry.scale)  # a region gives the device something
        if span.owner not in without:
            if span.what == "outside" and saved:
                # Backward runs outside of the call.
                less = min(saved, stretch.host)
                stretch, saved = replace(stretch, host=stretch.host - less), saved - less
            fixed = beyond if span.what == "region" else fixed
            left.append(stretch)
        elif span.what == "region":
            # Of two regions that become one, the shorter's fixed part is saved.
            less = min(entry.forward / entry.scale, beyond, fixed)
            left.append(replace(stretch, host=stretch.host - less, lead=0.0))
            saved += entry.backward / entry.scale
            fixed = max(fixed, beyond)
        else:
            eager = min(inside.eager or 0.0, stretch.host) if reading.eager else 0.0
            guards = min(inside.guards or 0.0, stretch.host - eager) if reading.guards else 0.0
            left.append(Stretch(eager + guards, stretch.device if inside.eager else 0.0))
    return left


def _lead(span: Span, entry: Entry) -> float:
    if span.what != "region":
        return 0.0
    return (
        float(span.ns) if 0 < entry.launch < _GRAPH_NS else min(float(span.ns), entry.forward + entry.launch)
    )
