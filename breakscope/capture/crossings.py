"""Counting crossings: how often execution left compiled code at a site.

Compiled code that ends at a break is made to call a ticker each time it runs, and Dynamo's callback
ticks for each call of a frame that it gave up on. One break may tick more than once for one
crossing: when ``f`` inlines ``helper`` and the break is in ``helper``, ``f``'s compiled code ends at
the call, and then ``helper``, now called for real, is compiled on its own and ends at the same
place. Those ticks are told apart by how many inlined calls deep the site was: the nearer one to the
site continues the crossing that the farther one began.
"""

from __future__ import annotations

import threading
import types
from collections.abc import Callable
from typing import Any

from breakscope.capture.events import Counters

SiteKey = tuple[Any, ...]
RESUMED = -1


class Crossings:
    """The tickers of all sites.

    Args:
        never_compile: keeps Dynamo from compiling a code object of ours.
    """

    def __init__(self, counters: Counters, never_compile: Callable[[types.CodeType], None]) -> None:
        self._counters = counters
        self._local = threading.local()
        self._never_compile = never_compile
        self._slots: dict[SiteKey, int] = {}

    def slot(self, site: SiteKey) -> int:
        """The counting slot of a site."""
        if site not in self._slots:
            self._slots[site] = self._counters.new()
        return self._slots[site]

    def ticker(self, slot: int, depth: int) -> Callable[[], None]:
        """What the compiled code of one frame calls when it runs into the site.

        Args:
            slot: the site's counter.
            depth: how many inlined calls lie between that frame and the site: 0 if the site is in the
                frame itself, :data:`RESUMED` if the frame is a resume function that Dynamo gave up on,
                which is only reached from a crossing.
        """
        counters, local = self._counters, self._local

        def tick() -> None:
            latest: dict[Any, int] = local.__dict__
            before = latest.get(slot)
            # Nearer to the site than the tick before: the same crossing goes on. Else a new one begins.
            if before is None or depth >= before:
                counters.slots[slot] += 1
            latest[slot] = depth

        # Compiled code runs with Dynamo listening: it must not compile the ticker in its turn.
        self._never_compile(tick.__code__)
        return tick
