"""A sampled step taken apart into spans of the host's time: in a region, in the gap at a site, or outside.

Marks come from :mod:`breakscope.inside.capture.clock`. A piece of time between regions belongs to

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
from typing import Any, Literal

from breakscope.diagnose.collect import Event, RegionEvent

CALL, RETURN, ENTER, LEAVE, TICK = range(5)  # as capture.clock writes them

What = Literal["outside", "prologue", "region", "gap"]


@dataclass(frozen=True, slots=True)
class Span:
    """A span of the host's time, without what our marks take. Nanoseconds from the beginning of the step.

    Attributes:
        owner: index of the site that it belongs to; of a region, the site without which it would not be
            entered, for it would be one with the region before it.
        slot: the counting slot of a region.
        device: when the device had done all that it was given before, at the beginning and at the end of the
            span, on the host's clock; None where no device event stands there.
        on: when the host went on after the mark at the end.
    """

    what: What
    begin: int
    end: int
    owner: int | None = None
    slot: int | None = None
    device: tuple[int | None, int | None] = (None, None)
    on: int = 0

    @property
    def ns(self) -> int:
        """How long it takes."""
        return self.end - self.begin


@dataclass(slots=True)
class Sampled:
    """One step. Times in nanoseconds.

    Attributes:
        ns: its length, by the slower of host and device, with our own work in it.
        own: host time that making the marks took.
        spans: all of it, in order.
        crossings: runs into each site, by its index.
        late: how far the device fell behind the host, at the most.
        streams: CUDA streams that regions ran in.
    """

    ns: int
    own: int = 0
    spans: list[Span] = field(default_factory=list)
    crossings: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    late: int = 0
    streams: set[int] = field(default_factory=set)
    on_device: bool = False

    @property
    def shape(self) -> tuple[tuple[What, int | None, int | None], ...]:
        """What ran, without times: steps of one shape can be laid over each other."""
        return tuple((span.what, span.owner, span.slot) for span in self.spans)

    @property
    def gaps(self) -> dict[int, int]:
        """Host time outside of regions at each site."""
        found: dict[int, int] = defaultdict(int)
        for span in self.spans:
            if span.what == "gap" and span.owner is not None:
                found[span.owner] += span.ns
        return dict(found)

    @property
    def entries(self) -> dict[int, int]:
        """How many regions were entered from each site's gap."""
        found: dict[int, int] = defaultdict(int)
        for span in self.spans:
            if span.what == "region" and span.owner is not None:
                found[span.owner] += 1
        return dict(found)

    def total(self, what: What) -> int:
        """Host time in spans of one kind."""
        return sum(span.ns for span in self.spans if span.what == what)


@dataclass(frozen=True, slots=True)
class _At:
    """A mark, from the step's start: when the host came to it and when it went on.

    Attributes:
        device: when the device had done all before it; after: when it went on, in a held step.
    """

    host: int
    on: int
    device: int | None = None
    after: int | None = None


def take_apart(event: Event, regions: Mapping[int, RegionEvent], owners: Mapping[int, int]) -> Sampled:
    """One sampled step.

    Args:
        regions: by counting slot; owners: index of the site that a counting slot belongs to.
    """
    step = Sampled(event["ns"])
    anchor, device_end = event.get("anchor"), event.get("device_end")
    step.on_device = device_end is not None
    end = None if device_end is None or anchor is None else anchor + device_end
    _Walk(step, regions, owners).over(event["marks"], anchor, _At(event["ns"], event["ns"], end))
    return step


class _Walk:
    """Goes through the marks of a step."""

    def __init__(self, step: Sampled, regions: Mapping[int, RegionEvent], owners: Mapping[int, int]) -> None:
        self._step = step
        self._regions = regions
        self._owners = owners
        self._open_at: _At | None = None  # where the time outside of regions began; None inside a region
        self._pieces: list[tuple[int | None, int, int]] = []  # of it: owner, from, to
        self._since = 0  # host time from which the latest piece runs
        self._owner: int | None = None  # whose piece it is
        # Whose it is, and what was left last, if the compiled frame that ticked has a region of its own.
        self._before: tuple[int | None, int | None] = (None, None)
        self._ticked: int | None = None  # the site that compiled code just ran into
        self._last: int | None = None  # the site left last in this call
        self._entered = _At(0, 0)
        self._leads_in: int | None = None  # whose gap led into the region under way
        self._in_call = self._fresh = False  # fresh: no compiled code has run in this call yet

    def over(self, marks: list[list[Any]], anchor: int | None, end: _At) -> None:
        begin = 0
        if marks and marks[0][0] == TICK:  # a partial sample begins in the middle of a call
            begin, self._in_call = marks[0][2], True
        self._open(_At(begin, begin), None)
        for kind, slot, host, took, *rest in marks:
            device = [anchor + rest[i] if anchor is not None and len(rest) > i else None for i in (0, 2)]
            if len(rest) > 1:
                self._step.streams.add(rest[1])
            self._step.own += took
            at = _At(host, host + took, device[0], device[1] if device[1] is not None else device[0])
            if kind == CALL:
                self._close(at)
                self._open(at, None)
                self._last, self._in_call, self._fresh = None, True, True
            elif kind == TICK:
                self._tick(slot, at)
            elif kind == ENTER:
                self._enter(slot, at)
            elif kind == LEAVE:
                self._leave(slot, at)
            elif kind == RETURN:
                self._close(at)
                self._in_call = False
                self._open(at, None)
        self._close(end)

    def _open(self, at: _At, owner: int | None) -> None:
        self._open_at = at
        self._since, self._owner, self._ticked = at.on, owner, None

    def _piece(self, at: _At) -> None:
        if self._open_at is not None and at.host > self._since:
            self._pieces.append((self._owner, self._since, at.host))
        self._since = at.on

    def _tick(self, slot: int, at: _At) -> None:
        site = self._owners.get(slot)
        if site is None:
            return
        self._step.crossings[site] += 1
        if self._open_at is None or not self._in_call:
            return
        self._piece(at)
        self._before, self._owner = (self._owner, self._last), site
        self._ticked = self._last = site

    def _enter(self, slot: int, at: _At) -> None:
        self._leads_in = None
        if self._open_at is not None:
            region = self._regions.get(slot)
            if self._ticked is not None and _ends_at(region, self._owners) == self._ticked:
                # Between the tick and this region lies the prologue of one compiled frame, not the break.
                self._owner, self._last = self._before
            if self._owner is None and self._in_call:
                self._owner = self._last
            self._leads_in = self._owner
            self._close(at)
        self._open_at, self._entered = None, at

    def _leave(self, slot: int, at: _At) -> None:
        step, entered = self._step, self._entered
        if at.device is not None:
            step.late = max(step.late, at.device - at.on)
        device = (entered.after, at.device)
        step.spans.append(Span("region", entered.on, at.host, self._leads_in, slot, device, at.on))
        site = _ends_at(self._regions.get(slot), self._owners)
        self._fresh = False
        self._open(at, site)
        if site is not None:
            self._last = site

    def _close(self, at: _At) -> None:
        """Book the time since the latest region or call."""
        if self._open_at is None:
            return
        self._piece(at)
        pieces, self._pieces = _joined(self._pieces), []
        for number, (owner, begin, end) in enumerate(pieces):
            first, last = number == 0, number == len(pieces) - 1
            what: What = "gap" if owner is not None else "outside"
            if owner is None and self._in_call:
                what = "prologue" if self._fresh else "gap"
            device = self._open_at.after if first else None, at.device if last else None
            self._step.spans.append(Span(what, begin, end, owner, None, device, at.on if last else end))


def _joined(pieces: list[tuple[int | None, int, int]]) -> list[tuple[int | None, int, int]]:
    """Pieces of one owner that follow each other, as one."""
    joined: list[tuple[int | None, int, int]] = []
    for owner, begin, end in pieces:
        if joined and joined[-1][0] == owner and joined[-1][2] == begin:
            joined[-1] = owner, joined[-1][1], end
        else:
            joined.append((owner, begin, end))
    return joined


def _ends_at(region: RegionEvent | None, owners: Mapping[int, int]) -> int | None:
    if region is None or not region.breaks or region.site is None:
        return None
    return owners.get(region.site)
