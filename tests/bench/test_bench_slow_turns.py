"""Turns beside which the CPU was slow are left out, if others remain, and it is said."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from breakscope.bench import slow_turns
from breakscope.bench.players import Player
from breakscope.inside.bench import pace
from breakscope.inside.bench.plan import Arm


def player(*paces: tuple[float, float], name: str = "compiled") -> Player:
    """A process that has made a turn of two steps beside each pace."""
    made = Player(Arm(name), 0, None, Path(), None, None, 1.0)  # type: ignore[arg-type]
    made.paces = list(paces)
    made.rounds = [[{"ms": 1.0}, {"ms": 1.0}] for _ in paces]
    return made


QUIET, SHARED, CAUGHT = (2.0, 2.1), (3.3, 3.2), (2.0, 3.3)


def test_turns_on_a_slow_cpu_count_in_no_figure() -> None:
    one = player(QUIET, SHARED, CAUGHT, QUIET, QUIET)
    found = slow_turns.leave_out([one], least=3)
    assert [len(samples) for samples in one.rounds] == [2, 0, 0, 2, 2]
    assert one.discarded == {slow_turns.REASON: 4}
    assert (found.turns, found.left_out, found.kept_by) == (5, 2, [])
    assert found.worst == pytest.approx(1.65)
    assert found.pace_ms == 2.0


def test_all_are_kept_where_too_few_would_remain() -> None:
    poor, rich = player(SHARED, SHARED, QUIET, name="eager"), player(QUIET, QUIET, QUIET)
    found = slow_turns.leave_out([poor, rich], least=2)
    assert [len(samples) for samples in poor.rounds] == [2, 2, 2]
    assert found.kept_by == ["eager"]
    assert found.left_out == 0


def test_threads_that_are_awake_after_every_step_make_no_turn_slow() -> None:
    """A pool of threads that spins for a while after its work slows down what comes right after the steps."""
    one = player((2.0, 3.0), (2.1, 3.1), (2.0, 2.9))
    assert slow_turns.leave_out([one], least=1).left_out == 0


def test_rounds_go_on_until_everybody_has_enough() -> None:
    assert not slow_turns.enough([player(QUIET, QUIET), player(QUIET, SHARED)], 2)
    assert slow_turns.enough([player(QUIET, QUIET), player(QUIET, SHARED, QUIET)], 2)
    assert slow_turns.enough([player()], 2)  # nothing is known, so nothing is waited for


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system has no CPU affinity")
def test_a_search_for_a_fast_cpu_leaves_the_thread_free_to_go_anywhere() -> None:
    before = os.sched_getaffinity(0)
    assert pace.settle_on_a_fast_cpu(1e-6) > 0  # no CPU is that fast: all are tried
    assert os.sched_getaffinity(0) == before
    assert pace.best_of_all_ms()
    assert os.sched_getaffinity(0) == before


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no CPU affinity")
def test_without_a_best_there_is_nothing_to_look_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def moved(*_args: object) -> None:
        raise AssertionError("moved")

    monkeypatch.setattr(os, "sched_setaffinity", moved)
    assert pace.settle_on_a_fast_cpu(None) > 0
    assert pace.settle_on_a_fast_cpu(1e6) > 0
