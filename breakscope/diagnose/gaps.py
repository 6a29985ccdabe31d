"""A sampled step taken apart: which site had execution out of compiled code, and for how long.

Marks come from :mod:`breakscope.inside.capture.clock`. A piece of time outside of regions belongs to

- the site at which the region before it ended;
- a site without a region before it, from the moment at which compiled code ran into it;
- after a region that ends with its own function, and before another one: the site that was left last,
  whose function runs eagerly and calls compiled ones;
- nobody, where an outermost call begins or ends in the ordinary way: that is not the price of a break.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from breakscope.diagnose.collect import Event, RegionEvent

CALL, RETURN, ENTER, LEAVE, TICK = range(5)  # as capture.clock writes them

# Below this a difference between the device's clock and the host's says nothing.
DRY_NS = 20_000


@dataclass(slots=True)
class Sampled:
    """One step. Times in nanoseconds.

    Attributes:
        ns: its length, by the slower of host and device, with our own work in it.
        own: host time that making the marks took.
        gaps: time lost at each site, by the site's index.
        pieces: what the gaps are made of, on the host's clock: the site's index, beginning and end.
        entries: how many regions were entered from a site's gap with nobody else to wait for.
        runs: host time of each run of a region, by the region's slot.
        prologue: host time from the beginning of each outermost call to its first compiled code.
        late: how far the device fell behind the host, at the most.
        streams: CUDA streams that regions ran in.
    """

    ns: int
    own: int = 0
    gaps: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    pieces: list[tuple[int, int, int]] = field(default_factory=list)
    entries: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    runs: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    prologue: int = 0
    late: int = 0
    streams: set[int] = field(default_factory=set)
    on_device: bool = False


@dataclass(frozen=True, slots=True)
class _At:
    """A mark: when the host came to it and went on, and when the device did; all from the step's start."""

    host: int
    on: int
    device: int | None


@dataclass(slots=True)
class _Outside:
    """Time outside of regions: from ``begin`` on, in pieces of (owner, from, to) on the host's clock."""

    begin: _At
    pieces: list[tuple[int | None, int, int]] = field(default_factory=list)


def take_apart(event: Event, regions: Mapping[int, RegionEvent], owners: Mapping[int, int]) -> Sampled:
    """One sampled step.

    Args:
        regions: by counting slot; owners: index of the site that a counting slot belongs to.
    """
    one = Sampled(event["ns"])
    anchor, device_end = event.get("anchor"), event.get("device_end")
    one.on_device = device_end is not None
    _Walk(one, regions, owners).over(event["marks"], anchor)
    return one


class _Walk:
    """Goes through the marks of a step."""

    def __init__(self, one: Sampled, regions: Mapping[int, RegionEvent], owners: Mapping[int, int]) -> None:
        self._one = one
        self._regions = regions
        self._owners = owners
        self._outside: _Outside | None = None  # None before a call, after it, and inside a region
        self._since = 0  # host time from which the latest piece runs
        self._owner: int | None = None  # whose piece it is
        # Whose it is, and what was left last, if the compiled frame that ticked has a region of its own.
        self._before: tuple[int | None, int | None] = (None, None)
        self._ticked: int | None = None  # the site that compiled code just ran into
        self._last: int | None = None  # the site left last in this call
        self._entered = _At(0, 0, None)
        self._called: _At | None = None  # when the call began in which no compiled code has run yet

    def over(self, marks: list[list[Any]], anchor: int | None) -> None:
        for kind, slot, host, took, *rest in marks:
            device = anchor + rest[0] if rest and anchor is not None else None
            if len(rest) > 1:
                self._one.streams.add(rest[1])
            self._one.own += took
            if self._called is not None and kind in (TICK, ENTER):
                self._one.prologue += host - self._called.on
                self._called = None
            at = _At(host, host + took, device)
            if kind == CALL:
                self._open(at, None)
                self._last, self._called = None, at
            elif kind == TICK:
                self._tick(slot, at)
            elif kind == ENTER:
                self._enter(slot, at)
            elif kind == LEAVE:
                self._leave(slot, at)
            elif kind == RETURN:
                self._return(at)

    def _open(self, at: _At, owner: int | None) -> None:
        self._outside = _Outside(at)
        self._since, self._owner, self._ticked = at.on, owner, None

    def _piece(self, at: _At) -> None:
        if self._outside is not None and at.host > self._since:
            self._outside.pieces.append((self._owner, self._since, at.host))
        self._since = at.on

    def _tick(self, slot: int, at: _At) -> None:
        site = self._owners.get(slot)
        if self._outside is None or site is None:
            return
        self._piece(at)
        self._before, self._owner = (self._owner, self._last), site
        self._ticked = self._last = site

    def _enter(self, slot: int, at: _At) -> None:
        outside = self._outside
        if outside is not None:
            region = self._regions.get(slot)
            if self._ticked is not None and _ends_at(region, self._owners) == self._ticked:
                # Between the tick and this region lies the prologue of one compiled frame, not the break.
                self._owner, self._last = self._before
            if self._owner is None:
                self._owner = self._last
            self._piece(at)
            self._close(outside, at, into_region=True)
        self._outside, self._entered = None, at

    def _leave(self, slot: int, at: _At) -> None:
        one = self._one
        one.runs[slot].append(at.host - self._entered.on)
        if at.device is not None:
            one.late = max(one.late, at.device - at.on)
        site = _ends_at(self._regions.get(slot), self._owners)
        self._open(at, site)
        if site is not None:
            self._last = site

    def _return(self, at: _At) -> None:
        if self._outside is not None:
            self._piece(at)
            self._close(self._outside, at, into_region=False)
        self._outside = None

    def _close(self, outside: _Outside, at: _At, *, into_region: bool) -> None:
        """Book the time from the end of one region to the beginning of the next."""
        one = self._one
        done = outside.begin.device or outside.begin.host
        begin = max(outside.begin.on, done)
        # A device that had ended the region before when the host asked for the next one has run dry: what it
        # then takes to record our event is no part of the gap, but the way to the next kernel is lost.
        dry = done <= at.host + DRY_NS
        end = at.host if dry else max(at.host, at.device or 0)
        for owner, start, stop in outside.pieces:
            if owner is not None:
                one.pieces.append((owner, start, stop))
            lost = min(stop, end) - max(start, begin)
            if owner is not None and lost > 0:
                one.gaps[owner] += lost
        last = outside.pieces[-1][0] if outside.pieces else None
        if last is not None:
            # The device came to the next region later than the host: what it did meanwhile is the gap's too.
            one.gaps[last] += max(0, end - max(begin, at.host))
            one.entries[last] += into_region and dry


def _ends_at(region: RegionEvent | None, owners: Mapping[int, int]) -> int | None:
    if region is None or not region.breaks or region.site is None:
        return None
    return owners.get(region.site)
