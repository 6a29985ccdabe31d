"""Counting crossings: how often execution left compiled code at a site.

Compiled code that ends at a break is made to call a ticker each time it runs, and Dynamo's callback
ticks for each call of a frame that it gave up on.

One break ticks in several frames: when ``f`` inlines ``helper`` and the break is in ``helper``, ``f``'s
compiled code ends at the call, and then ``helper``, now called for real, is compiled on its own and ends
at the same place. So each depth has a counter of its own, and the largest counts: a frame between may
not tick (a callee in torch's own files, which Dynamo never takes), but none ticks twice for one crossing.
Callers that Dynamo gave up on are counted apart and asked last: a decorator's wrapper is one code object,
given up for the break in one function and called for many.
"""

from __future__ import annotations

import threading
import types
from collections.abc import Callable
from typing import Any

from breakscope.inside.capture.clock import Clock

SiteKey = tuple[Any, ...]
RESUMED = -1


class Crossings:
    """The tickers of all sites.

    Args:
        clock: is told of each crossing in steps that are sampled; its counters count.
        never_compile: keeps Dynamo from compiling a code object of ours.
    """

    def __init__(self, clock: Clock, never_compile: Callable[[types.CodeType], None]) -> None:
        self._clock = clock
        self._counters = clock.counters
        self._local = threading.local()
        self._never_compile = never_compile
        self._slots: dict[SiteKey, int] = {}

    def slot(self, site: SiteKey, depth: int, *, given_up: bool = False) -> int:
        """The counting slot of a site, or of its callers from ``depth`` inlined calls away.

        Args:
            given_up: whether it is for callers that Dynamo gave up on.
        """
        key = (*site, max(depth, 0), given_up and depth > 0)
        if key not in self._slots:
            self._slots[key] = self._counters.new()
        return self._slots[key]

    def ticker(self, slot: int, depth: int) -> Callable[[], None]:
        """What the compiled code of one frame calls when it runs into the site.

        Args:
            slot: the counter for that depth.
            depth: how many inlined calls lie between that frame and the site: 0 if the site is in the
                frame itself, :data:`RESUMED` if the frame is a resume function that Dynamo gave up on.
        """
        clock, counters, local = self._clock, self._counters, self._local

        def tick() -> None:
            latest: dict[Any, int] = local.__dict__
            # What is given up at the site where the function was just left is no second crossing.
            if depth != RESUMED or latest.get(slot) != 0:
                counters.slots[slot] += 1
            latest[slot] = depth
            if clock.marks is not None:
                clock.tick(slot)
            elif slot not in clock.enough:
                clock.tick_of_a_rare_site(slot)

        # Compiled code runs with Dynamo listening: it must not compile the ticker in its turn.
        self._never_compile(tick.__code__)
        self._never_compile(Clock.tick.__code__)
        self._never_compile(Clock.tick_of_a_rare_site.__code__)
        return tick
