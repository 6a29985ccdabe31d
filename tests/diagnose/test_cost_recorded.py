"""Costs of runs on an H100 (torch 2.11), recorded by ``benchmarks/cost_truth.py``, beside what was gained there.

Each break was taken out and all variants were timed in turn in one process, 100 rounds; the file holds what a scan of the
same program saw meanwhile. A gain stands with how far off it may be.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from breakscope.diagnose.build import build
from breakscope.diagnose.outcome import Outcome
from breakscope.report.model import Report, Timing

FOLDER = Path(__file__).resolve().parents[1] / "data/cost"
RUNS = sorted(str(path.relative_to(FOLDER)).removesuffix(".json.gz") for path in FOLDER.glob("*/*.json.gz"))
NEAR, NEAR_MS, NEAR_TOGETHER = 0.25, 0.02, 0.16
SPREADS = 1.5  # a gain may be off by more than it says, too
# What is not reached: 0.144 predicted of 0.088 ± 0.030, and 0.228 of 0.315 ± 0.030 in a run whose two breaks gained 0.268
# one by one.
KNOWN_OFF = {("first/host_bound", "item"), ("second/device_bound", "all")}


@cache
def run_of(program: str) -> dict[str, Any]:
    return json.loads(gzip.decompress((FOLDER / f"{program}.json.gz").read_bytes()))  # type: ignore[no-any-return]


@cache
def report_of(program: str) -> Report:
    run = run_of(program)
    outcome = {
        name: tuple(value) if isinstance(value, list) else value for name, value in run["outcome"].items()
    }
    return build(run["recorded"], run["slots"], Outcome(**outcome))


def timing_of(program: str) -> Timing:
    timing = report_of(program).timing
    assert timing is not None
    return timing


def predicted(program: str) -> dict[str, float]:
    """Milliseconds of each break, at the pace of the process in which gains were measured."""
    run, timing = run_of(program), timing_of(program)
    assert timing.step_ms
    assert timing.gain_ms is not None
    pace = run["alone_ms"] / timing.step_ms
    found: dict[str, float] = defaultdict(float)
    for finding in report_of(program).findings:
        if finding.cost is not None:
            found[run["break_at_line"][str(finding.location.line)]] += pace * finding.cost.ms_per_step
    return {**found, "all": pace * timing.gain_ms}


def is_near(program: str, name: str) -> bool:
    gain, spread = run_of(program)["gained"][name]
    together = name == "all" and len(run_of(program)["gained"]) > 2
    near = NEAR_TOGETHER * gain if together else max(NEAR * gain, NEAR_MS)
    return abs(predicted(program)[name] - gain) <= max(near, SPREADS * spread)


def test_every_prediction_but_those_known_is_near_the_gain() -> None:
    names = ((program, name) for program in RUNS for name in run_of(program)["gained"])
    assert {(program, name) for program, name in names if not is_near(program, name)} == KNOWN_OFF


@pytest.mark.parametrize("program", sorted({*RUNS} - {"first/cpu"}))  # there one pair is the other way round
def test_what_clearly_gains_more_is_ranked_higher(program: str) -> None:
    gained = {name: value for name, value in run_of(program)["gained"].items() if name != "all"}
    said = predicted(program)
    wrong = [
        (more, less)
        for more, (gain, spread) in gained.items()
        for less, (other, unsure) in gained.items()
        if gain - other > spread + unsure and said[more] < said[less]
    ]
    assert wrong == []


def test_loggers_in_a_full_queue_cost_nothing() -> None:
    said = predicted("second/device_bound")
    assert said["early_logger"] < 0.01 < 0.09 < said["branch"]


def test_the_work_of_an_lstm_is_no_cost() -> None:
    [finding] = [one for one in report_of("first/lstm").findings if one.cost is not None]
    assert finding.cost is not None
    gap, stays = finding.cost.parts["gap"], finding.cost.parts["eager_work"]
    assert stays > 0.15
    assert finding.cost.ms_per_step < gap
    assert finding.cost.most_ms is not None
    assert finding.cost.most_ms > 1.5 * finding.cost.ms_per_step  # if it became part of a graph


def test_the_sites_of_a_function_are_played_together() -> None:
    timing, findings = timing_of("second/reduce_overhead"), report_of("second/reduce_overhead").findings
    most = max(timing.functions, key=lambda one: len(one.fingerprints))
    costs = {one.fingerprint: one.cost.ms_per_step for one in findings if one.cost}
    assert len(most.fingerprints) == 4
    assert timing.gain_ms is not None
    assert max(costs[name] for name in most.fingerprints) < most.ms < timing.gain_ms


@pytest.mark.parametrize("program", RUNS)
def test_parts_of_a_gap_fill_it(program: str) -> None:
    for finding in report_of(program).findings:
        if finding.cost is not None:
            parts = finding.cost.parts
            known = sum(parts[name] for name in ("wait", "resume", "guards", "eager_work"))
            assert known == pytest.approx(parts["gap"], rel=0.05)
            assert parts["entry"] > 0


@pytest.mark.parametrize("program", RUNS)
def test_a_step_is_made_shorter_and_all_of_it_is_accounted_for(program: str) -> None:
    timing = timing_of(program)
    assert timing.step_ms
    assert timing.gain_ms is not None
    assert 0 < timing.gain_ms < timing.step_ms
    assert timing.steady_steps
    assert timing.step_kinds == 1
