"""Does the script make enough steps? The eager arm knows in seconds, before anything is compiled.

Only where a step is more than its calls: steps of an optimizer are the script's own and cannot be made again.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from breakscope.bench import stats
from breakscope.bench.players import ArmFailedError, Player, wait_until_ready
from breakscope.inside.bench.wire import RUN

_CHUNK = 4
_PATIENCE_S = 10.0  # of looking for more steps than are needed at all


@dataclass(frozen=True, slots=True)
class Plan:
    """How many optimizer steps a benchmark makes of a script.

    Attributes:
        warmup: steps that a compiled arm takes until its steps are steady, if all goes well.
        least: with fewer there is no verdict; whole: with so many all rounds can be made.
    """

    warmup: int
    least: int
    whole: int


def plan(warmup: int, rounds: int, steps: int, settle: int) -> Plan:
    """The steps of ``rounds`` rounds, each of ``settle`` steps that are not timed and ``steps`` that are."""
    needed = math.ceil(stats.MIN_SAMPLES / steps)
    return Plan(warmup, warmup + needed * (steps + settle), warmup + rounds * (steps + settle))


def steps_of_script(player: Player, planned: Callable[[float], Plan], deadline: float) -> int | None:
    """How many steps the script makes; None where they are enough for all rounds, or cannot be counted.

    Args:
        player: a process of the eager arm that is asked for nothing else; it is over afterwards.
        planned: the plan for steps of so many milliseconds.
        deadline: ``time.monotonic()`` at which it must have reached its first step.
    """
    try:
        wait_until_ready(player, deadline)
        return _count(player, planned)
    except ArmFailedError:
        return None  # the arms will fail alike, and say so
    finally:
        player.kill()


def _count(player: Player, planned: Callable[[float], Plan]) -> int | None:
    began = time.monotonic()
    while player.unit == "optimizer":
        reply = player.ask(RUN, steps=_CHUNK, settle=0, timed=False)
        player.warmup += reply["samples"]
        if player.unit != "optimizer":
            break
        made = len(player.warmup)
        wanted = planned(statistics.median(sample["ms"] for sample in player.warmup or [{"ms": 1.0}]))
        if reply["ended"]:
            return made if made < wanted.whole else None
        if made >= wanted.whole or (made >= wanted.least and time.monotonic() - began > _PATIENCE_S):
            break
    return None


def too_few(made: int, wanted: Plan) -> str:
    """What to do about it, in a sentence."""
    return (
        f"the script makes {_steps(made)}, and {wanted.least} are needed: {wanted.warmup} until compiled "
        f"steps are steady, {wanted.least - wanted.warmup} for a first verdict ({wanted.whole} for all "
        "rounds); let it make more, or measure its calls alone, made again on copies of their inputs, "
        "with --repeat"
    )


def repeated(made: int) -> str:
    """What ``--repeat`` does instead."""
    return (
        f"the script makes only {_steps(made)}: its compiled calls are measured instead, made again on "
        "copies of their inputs; backward and optimizer are not in the time (--repeat)"
    )


def _steps(number: int) -> str:
    return f"{number} optimizer {'step' if number == 1 else 'steps'}"
