"""How many steps a round has, and how many before them that are not counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from breakscope.bench import stats
from breakscope.bench.conduct import Conductor
from breakscope.bench.players import Player, repeatability
from breakscope.inside.bench.plan import Arm, Options
from breakscope.report.benchmark import GpuState


def player(step_ms: float, unit: str = "call") -> Player:
    """A process that has warmed up."""
    made = Player(Arm("eager"), 0, None, Path(), None, None, 1.0, unit=unit)  # type: ignore[arg-type]
    made.warmup = [{"ms": step_ms, "compiles": 0}] * 4
    return made


def conductor(**options: Any) -> Conductor:
    return Conductor(None, Options(**options), None, Path(), print)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("steps_ms", "unit", "expected"),
    [
        ((1.0, 1.0), "call", (20, 60)),
        ((1.0, 10.0), "call", (20, 6)),  # the slow one sets the pace, and the fast one spins
        ((1.0, 500.0), "call", (2, 3)),
        ((1.0, 10.0), "optimizer", (5, 2)),  # the script's own steps are all there is
    ],
)
def test_steps_of_a_round(steps_ms: tuple[float, ...], unit: str, expected: tuple[int, int]) -> None:
    players = [player(step_ms, unit) for step_ms in steps_ms]
    assert conductor()._round_size(players) == expected


def test_a_fast_process_spins_until_it_has_worked_as_long_as_a_slow_one() -> None:
    asked: list[dict[str, Any]] = []

    def ask(_kind: str, **fields: Any) -> dict[str, Any]:
        asked.append(fields)
        return {"samples": [], "peak_mib": 1.0, "pace_ms": [2.0, 2.0]}

    for step_ms in (1.0, 10.0):
        conductor()._round(_Asking(player(step_ms), ask), 0, 20, 6)  # type: ignore[arg-type]
    assert [fields["spin_ms"] for fields in asked] == [54.0, 0.0]


class _Asking:
    """A player whose process is a function."""

    def __init__(self, one: Player, ask: Any) -> None:
        self.warmup, self.rounds, self.discarded, self.peak_mib = one.warmup, [], {}, None
        self.paces: list[tuple[float, float]] = []
        self.compiled_why: list[str] = []
        self.ask = ask


@pytest.mark.parametrize(
    ("on_gpu", "phases", "expected"),
    [
        (True, {"async_compile.wait": 0.1}, stats.TUNED_REPEATABILITY),
        (True, {"backend_compile": 1.0}, stats.REPEATABILITY),  # another backend times no kernels
        (False, {"inductor_compile": 1.0}, stats.REPEATABILITY),  # nor does Inductor for a CPU
        (True, {}, stats.REPEATABILITY),
    ],
)
def test_how_far_another_run_may_be(on_gpu: bool, phases: dict[str, float], expected: float) -> None:
    one = player(1.0)
    one.last, one.warmed = {"on_gpu": on_gpu}, {"phases": phases}
    assert repeatability(one) == expected


@pytest.mark.parametrize(
    ("throttle", "unit", "steps"), [("power cap", "call", 60), ("", "call", 0), ("power cap", "optimizer", 0)]
)
def test_a_card_at_its_limit_works_longer_before_it_is_timed(throttle: str, unit: str, steps: int) -> None:
    made = conductor()
    assert made._steps_to_tire([player(5.0, unit)]) == 0
    made.found.gpu.append(GpuState(1.0, 1600.0, 1980.0, 2619.0, 50.0, 690.0, throttle, 0))
    assert made._steps_to_tire([player(10.0, unit), player(5.0, unit)]) == steps
