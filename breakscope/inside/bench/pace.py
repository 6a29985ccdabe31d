"""How fast the host's CPU is just now: the same small piece of work, timed beside every turn.

On a machine that is shared, a core that has its other hyperthread lent to somebody else does the same work
1.6 times slower, for tenths of a second or for minutes. Steps that wait for the host are slower by as much,
and their median jumps between two values. So a turn begins on a CPU that is as fast as the best one seen, and
a turn beside which the work took longer can be told from the others, by something that is not the step.
"""

from __future__ import annotations

import os
import random
import statistics
import time

SLOW = 1.25  # of the best: two values this far apart are two states of the machine
_LIKE_THE_BEST = 1.1
_ITERATIONS = 30_000  # some 2 ms
_REPEATS = 3
_TRIES = 12
_MOST_PROBED = 32


def probe_ms() -> float:
    """Milliseconds that the work takes on the CPU that this thread happens to be on."""
    return statistics.median(_work() for _ in range(_REPEATS))


def _work() -> float:
    began = time.perf_counter()
    total = 0
    for number in range(_ITERATIONS):
        total += number * number % 7
    return (time.perf_counter() - began) * 1e3


def best_of_all_ms() -> float | None:
    """The best probe of all CPUs that this thread may be on, or of some where there are many.

    None where a thread cannot choose its CPU.
    """
    if not hasattr(os, "sched_setaffinity"):
        return None
    allowed, found = os.sched_getaffinity(0), []
    try:
        for cpu in random.sample(sorted(allowed), min(len(allowed), _MOST_PROBED)):
            os.sched_setaffinity(0, {cpu})
            found.append(probe_ms())
    finally:
        os.sched_setaffinity(0, allowed)
    return min(found)


def settle_on_a_fast_cpu(best_ms: float | None) -> float:
    """Leave a CPU that is slow just now for another one; returns the last probe.

    The thread is put onto a CPU and let go at once: what it starts from here on may run anywhere it could
    before, and as long as nothing else wants that CPU, the system lets it stay.

    Args:
        best_ms: the best probe so far; None where nothing is known.
    """
    found = probe_ms()
    if best_ms is None or not hasattr(os, "sched_setaffinity"):
        return found
    allowed = os.sched_getaffinity(0)
    choices = random.sample(sorted(allowed), len(allowed))
    for cpu in choices[:_TRIES]:
        if found <= _LIKE_THE_BEST * best_ms:
            break
        try:
            os.sched_setaffinity(0, {cpu})
        finally:
            os.sched_setaffinity(0, allowed)
        found = probe_ms()
    return found
