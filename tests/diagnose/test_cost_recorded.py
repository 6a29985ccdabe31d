"""Costs of runs on an H100, the eighth and ninth on an H200 (torch 2.11), recorded by ``benchmarks/cost_truth.py``, beside what was gained there.

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
from breakscope.view import gain

FOLDER = Path(__file__).resolve().parents[1] / "data/cost"
RUNS = sorted(str(path.relative_to(FOLDER)).removesuffix(".json.gz") for path in FOLDER.glob("*/*.json.gz"))
NEAR, NEAR_MS, NEAR_TOGETHER = 0.25, 0.02, 0.16
SPREADS = 1.5  # a gain may be off by more than it says, too
# What is not reached: an .item() in one of three runs (0.110 predicted of 0.083 ± 0.017); all of device_bound in a run whose
# two breaks gained 0.268 one by one (0.228 of 0.315 ± 0.030); a branch (0.131 of 0.098 ± 0.020); an LSTM in one of two runs
# (0.194 of 0.262 ± 0.020); and convolutions, of which too little is predicted (0.281 of 0.344 ± 0.014). In the fifth run, whose
# host was up to 1.7 times slower than at its best, single gains share the windows of the whole program that they are held
# against: 0.62 of 0.74 and 0.48 of 0.66 ms in sum. In the seventh, the first with an entry that is scaled to the steps, two whose
# repair also saves launches because operations are fused (looks/branch, tagging/counts), a logger without which one more kernel
# is launched, and an .item() (0.075 of 0.053 ± 0.007). In the eighth a calibration that a noisy host spoilt (host_bound: what one
# input takes came out ten times too long), convolutions again, a branch between copies, and training, whose gains are to ± 0.07.
# In the ninth the card was at its power limit (device_bound), copies and training as before, an LSTM (0.105 of 0.074 ± 0.010), and
# too little of two breaks between CUDA graphs.
KNOWN_OFF = {
    ("eighth/convolutions", "all"),
    ("eighth/copies", "branch"),
    *(("eighth/host_bound", name) for name in ("item", "tolist")),
    *(("eighth/training", name) for name in ("item", "logger")),
    *(("fifth/host_bound", name) for name in ("branch", "item", "logger")),
    *(("fifth/looks", name) for name in ("print_early", "item", "print_late", "float")),
    ("fifth/ranking", "print"),
    ("fifth/tagging", "report"),
    ("seventh/host_bound", "item"),
    ("seventh/looks", "branch"),
    *(("ninth/copies", name) for name in ("branch", "numpy")),
    *(("ninth/device_bound", name) for name in ("branch", "item", "all")),
    *(("ninth/lstm", name) for name in ("lstm", "all")),
    *(("ninth/reduce_overhead", name) for name in ("branch", "item", "tolist")),
    ("ninth/training", "item"),
    *(("seventh/tagging", name) for name in ("counts", "report")),
    ("second/device_bound", "all"),
    ("second/lstm", "all"),
    ("second/lstm", "lstm"),
    ("third/convolutions", "all"),
    ("third/copies", "branch"),
    ("third/host_bound", "item"),
}


@cache
def run_of(program: str) -> dict[str, Any]:
    return json.loads(gzip.decompress((FOLDER / f"{program}.json.gz").read_bytes()))  # type: ignore[no-any-return]


@cache
def report_of(program: str) -> Report:
    return with_more(program)


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
            places = [*finding.stack, finding.location]  # a library that breaks was called from somewhere
            line = next(place.line for place in reversed(places) if place.file.endswith("cost_programs.py"))
            found[run["break_at_line"][str(line)]] += pace * finding.cost.ms_per_step
    return {**found, "all": pace * timing.gain_ms}


def is_near(program: str, name: str) -> bool:
    gain, spread = run_of(program)["gained"][name]
    together = name == "all" and len(run_of(program)["gained"]) > 2
    near = NEAR_TOGETHER * gain if together else max(NEAR * gain, NEAR_MS)
    return abs(predicted(program)[name] - gain) <= max(near, SPREADS * spread)


def test_every_prediction_but_those_known_is_near_the_gain() -> None:
    names = ((program, name) for program in RUNS for name in run_of(program)["gained"])
    assert {(program, name) for program, name in names if not is_near(program, name)} == KNOWN_OFF


# There pairs are the other way round.
ORDER_OFF = {"first/cpu", "fifth/host_bound", "fifth/tagging", "eighth/host_bound", "ninth/training"} | {
    f"seventh/{name}" for name in ("host_bound", "looks", "tagging")
}


@pytest.mark.parametrize("program", sorted({*RUNS} - ORDER_OFF))
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


@pytest.mark.parametrize("program", RUNS)
def test_an_entry_is_as_long_as_it_was_calibrated_however_slow_marks_make_a_step(program: str) -> None:
    entered = [one.cost.parts["entry"] for one in report_of(program).findings if one.cost is not None]
    calibrated = timing_of(program).entry_us
    assert calibrated
    regions = [round(entry * 1e3 / calibrated, 2) for entry in entered]
    assert set(regions) <= {0.0, 1.0}  # 0: two breaks before one region
    assert 1.0 in regions


def test_joining_a_short_region_saves_no_more_than_the_short_one_takes() -> None:
    timing, said = timing_of("fifth/tagging"), predicted("fifth/tagging")
    gap, region = 0.052, 0.052  # the host's, between the number that is looked at and the texts' embedding
    assert timing.entry_us
    assert said["longest"] < 1.3 * (gap + region) < gap + timing.entry_us / 1e3


@pytest.mark.parametrize("program", RUNS)
def test_a_step_is_made_shorter_and_all_of_it_is_accounted_for(program: str) -> None:
    timing = timing_of(program)
    assert timing.step_ms
    assert timing.gain_ms is not None
    assert 0 < timing.gain_ms < timing.step_ms
    assert timing.steady_steps
    assert timing.step_kinds == 1


def with_more(program: str, *events: dict[str, Any]) -> Report:
    """The report of a run that saw more than the recorded one."""
    run = run_of(program)
    outcome = {
        name: tuple(value) if isinstance(value, list) else value for name, value in run["outcome"].items()
    }
    return build([*run["recorded"], *events], run["slots"], Outcome(**outcome))


def test_steps_that_were_only_added_up_count_in_the_runs_time_and_in_no_samples() -> None:
    program = "first/host_bound"
    gains = next(row[3] for e in run_of(program)["recorded"] if e["t"] == "sample" for row in rows_at(e))
    before, more = timing_of(program), {"t": "later", "rows": [[gains, 5_000, 10_000_000_000]]}
    after = with_more(program, more, more).timing
    assert after is not None
    assert before.steady_steps is not None
    assert before.steady_ms is not None
    assert after.steady_steps == before.steady_steps + 10_000
    assert after.steady_ms == pytest.approx(before.steady_ms + 20_000)
    assert (after.steps, after.step_ms, after.step_kinds) == (before.steps, before.step_ms, 1)


def rows_at(sample: dict[str, Any]) -> list[list[Any]]:
    """The row of a sampled step in the timeline, with what it counted."""
    gains, found = None, []
    for event in run_of("first/host_bound")["recorded"]:
        for index, begin, length, changed in event["rows"] if event["t"] == "steps" else ():
            gains = changed if changed is not None else gains
            if index == sample["of"]:
                found.append([index, begin, length, gains])
    return found


def test_a_busy_machine_is_told_and_makes_ranges_of_costs() -> None:
    program = "first/host_bound"
    told = with_more(program, {"t": "busy", "load": 5.5, "samples": 42, "preempted": 30})
    assert any("costs were measured on a busy machine: load 5.5 per CPU" in note for note in told.run.notes)
    for quiet, wide in zip(report_of(program).findings, told.findings, strict=True):
        if quiet.cost is not None and wide.cost is not None:
            assert wide.cost.ms_per_step == quiet.cost.ms_per_step
            assert (wide.cost.least_ms or 0.0) < (quiet.cost.least_ms or 0.0)
            assert (wide.cost.most_ms or 0.0) > (quiet.cost.most_ms or 0.0)


def test_a_card_at_its_power_limit_is_told_and_gains_less_than_its_pauses() -> None:
    """On an H200 at its limit these breaks gained 0.4 of what the device waits at them (a loop of 2.5 s)."""
    program = "first/device_bound"
    seen = {"t": "busy", "load": 0.1, "samples": 42, "preempted": 0}
    told, free = (with_more(program, {**seen, "power": [limited, 12]}) for limited in (8, 6))
    assert any("power limit (8 of 12 times when asked)" in note for note in told.run.notes)
    assert not any("power limit" in note for note in free.run.notes)
    assert free.timing == timing_of(program)
    assert told.timing is not None
    assert free.timing is not None
    assert told.timing.gain_ms == free.timing.gain_ms
    assert told.timing.least_gain_ms == pytest.approx((free.timing.least_gain_ms or 0.0) / 3, abs=1e-6)
    line = gain.faster(told)
    assert line is not None
    assert "1.03x to 1.10x faster" in line
    for limited, other in zip(told.findings, free.findings, strict=True):
        if limited.cost is not None and other.cost is not None:
            assert limited.cost.ms_per_step == other.cost.ms_per_step
            assert limited.cost.least_ms == pytest.approx((other.cost.least_ms or 0.0) / 3, abs=1e-6)


@pytest.mark.parametrize(("load", "preempted"), [(5.5, 0), (1.2, 30)])
def test_a_machine_that_took_nothing_from_the_samples_was_not_busy(load: float, preempted: int) -> None:
    seen = {"t": "busy", "load": load, "samples": 42, "preempted": preempted}
    told = with_more("first/host_bound", seen)
    assert not any("busy machine" in note for note in told.run.notes)
    assert told.timing == timing_of("first/host_bound")


@pytest.mark.parametrize(
    ("program", "name", "least"),
    [("first/device_bound", "item", 0.135), ("second/device_bound", "all", 0.24)],
)
def test_pauses_between_regions_are_no_work_of_the_device(program: str, name: str, least: float) -> None:
    assert least < predicted(program)[name] < run_of(program)["gained"][name][0]
