"""A step played again on two clocks, host and device: how long it would take with parts of it taken out.

The host goes through its stretches one after the other. In each it may give the device work, which the
device does in order, when it gets to it; and it may wait until the device has done all of it. A step that
waits for the host, one that waits for the device and one that does both by turns are the same arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LATENCY_NS = 5_000.0  # from the host's giving work to the device's beginning, on the cards of today
_ROUNDS, _SETTLING = 6, 3


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of the host's time. Nanoseconds.

    Attributes:
        host: time in which the host works, without waiting.
        device: time for which the device works on what it is given here.
        lead: host time until the device gets the first of that.
        wait: the host ends no sooner than so long after the device has done everything; None if it does not
            wait.
    """

    host: float
    device: float = 0.0
    lead: float = 0.0
    wait: float | None = None


@dataclass(slots=True)
class Clocks:
    """How far host and device have come."""

    host: float = 0.0
    device: float = 0.0

    def play(self, stretch: Stretch) -> None:
        """Go through one stretch."""
        begin = self.host
        self.host = begin + stretch.host
        if stretch.device:
            done = max(self.device, begin + stretch.lead) + stretch.device
            # The last of the work cannot be done before it was given.
            self.device = max(done, self.host + LATENCY_NS)
        if stretch.wait is not None:
            self.host = max(self.host, self.device + stretch.wait)


def period(step: Sequence[Stretch]) -> float:
    """How long a step takes that is made again and again."""
    if not any(stretch.device or stretch.wait is not None for stretch in step):
        return sum(stretch.host for stretch in step)
    clocks, ends = Clocks(), []
    for _ in range(_ROUNDS):
        for stretch in step:
            clocks.play(stretch)
        ends.append(max(clocks.host, clocks.device))
    return (ends[-1] - ends[_SETTLING - 1]) / (_ROUNDS - _SETTLING)


def with_waits(step: Sequence[Stretch], waiting: Sequence[bool]) -> list[Stretch]:
    """The same stretches with the waits of some told apart: until now they stand in ``host``.

    What the device does meanwhile is played beside the host's measured times; the wait is what the host had
    to spare until the device was done with the work before.
    """
    found: list[Stretch] = []
    lag = 0.0
    for _ in range(2):  # the second time with what the step before it left to the device
        found, clocks = [], Clocks(0.0, lag)
        for stretch, waits in zip(step, waiting, strict=True):
            begin, behind = clocks.host, clocks.device
            clocks.play(stretch)
            if not waits:
                found.append(stretch)
                continue
            waited = min(max(0.0, behind - begin), stretch.host)
            rest = clocks.host - clocks.device
            found.append(Stretch(stretch.host - waited, stretch.device, stretch.lead, rest))
        lag = max(0.0, clocks.device - clocks.host)
    return found
