"""The trace for Perfetto: one process a rank, on one clock, slices that nest."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_samples import BRANCH, CLEAN, HOSTILE, HOSTILE_TEXT
from scanning import Scanned

from breakscope.diagnose.merge import Identity, as_rank, merge
from breakscope.render import FORMATS, Options
from breakscope.report.model import Compile, Region, Step, StepPart


def trace(report):
    return json.loads(FORMATS["perfetto"](report, Options()))


def slices(data, category):
    return [one for one in data["traceEvents"] if one.get("cat") == category]


def compile_(at, seconds, **more):
    return Compile("0/0", "Net.forward", "model.py", 30, 0, at, seconds, **more)


TIMED = replace(
    CLEAN,
    steps=(Step(0, 0.0, 900.0, 800.0, 1, 2, 3),),
    compiles=(
        compile_(0.1, 0.8, phases={"dynamo": 0.3, "aot_autograd": 0.2, "inductor": 0.3}, cache="miss"),
    ),
)


def test_a_compile_holds_its_phases_one_after_the_other():
    data = trace(TIMED)
    (whole,) = slices(data, "compile")
    assert (whole["name"], whole["ts"], whole["dur"]) == ("Net.forward [0/0]", 100_000, 800_000)
    assert whole["args"] == {"file": "model.py", "line": 30, "step": 0, "cache": "miss"}
    phases = [(one["name"], one["ts"], one["dur"]) for one in slices(data, "phase")]
    assert phases == [
        ("dynamo", 100_000, 300_000),
        ("aot_autograd", 400_000, 200_000),
        ("inductor", 600_000, 300_000),
    ]
    (step,) = slices(data, "step")
    assert (step["ts"], step["dur"], step["args"]["launches"]) == (0, 900_000, 3)


def test_ranks_are_processes_on_one_clock():
    ranks = [as_rank(TIMED, Identity(rank, "job", began=1_000.0 + rank / 4)) for rank in range(2)]
    data = trace(merge(ranks))
    assert [one["args"]["name"] for one in data["traceEvents"] if one["name"] == "process_name"] == [
        "rank 0",
        "rank 1",
    ]
    assert [(one["pid"], one["ts"]) for one in slices(data, "step")] == [(0, 0), (1, 250_000)]


def test_what_has_no_time_is_counted_and_not_drawn():
    report = replace(
        CLEAN, compiles=(compile_(None, 1.0), compile_(0.0, None)), steps=(Step(0, None, None, None, 0),)
    )
    data = trace(report)
    assert data["otherData"]["without_time"] == 3
    assert not slices(data, "compile") + slices(data, "step")


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0, 10), st.floats(0, 5)), max_size=12))
def test_slices_of_one_thread_never_overlap(times):
    data = trace(replace(CLEAN, compiles=tuple(compile_(at, seconds) for at, seconds in times)))
    ends = {}
    for one in sorted(slices(data, "compile"), key=lambda one: (one["tid"], one["ts"], one["dur"])):
        assert one["ts"] >= ends.get(one["tid"], 0) - 0.01
        ends[one["tid"]] = max(ends.get(one["tid"], 0), one["ts"] + one["dur"])


def test_hostile_names_are_data():
    report = replace(HOSTILE, compiles=(Compile(HOSTILE_TEXT, HOSTILE_TEXT, HOSTILE_TEXT, 1, 0, 0.0, 1.0),))
    text = FORMATS["perfetto"](report, Options())
    assert json.loads(text.encode())["traceEvents"]


PARTS = (
    StepPart("prologue", 0.5, 0.1),
    StepPart("region", 0.6, 0.3, region="0/0"),
    StepPart("gap", 0.9, 0.2, finding=BRANCH.fingerprint),
    StepPart("region", 1.1, 5.0, region="1/0"),  # as a report may say that was rounded, or written by hand
)


def test_a_sampled_step_holds_its_regions_and_gaps_by_name():
    step = Step(7, 2.0, 4.0, 0.0, 0, 1, 2, parts=PARTS)
    regions = (
        Region("0/0", "Net.forward", 3, 8, None, BRANCH.fingerprint),
        Region("1/0", "Net.forward", 1, 8, None, None),
    )
    data = trace(replace(CLEAN, findings=(BRANCH,), regions=regions, steps=(step,), compiles=()))
    (whole,) = slices(data, "step")
    drawn = [one for kind in ("prologue", "region", "gap") for one in slices(data, kind)]
    assert [one["name"] for one in drawn] == [
        "prologue",
        "Net.forward [0/0]",
        "Net.forward [1/0]",
        "gap: BS101 Block.forward",
    ]
    for one in drawn:
        assert one["tid"] == whole["tid"]
        assert whole["ts"] <= one["ts"] <= one["ts"] + one["dur"] <= whole["ts"] + whole["dur"] + 0.01
    assert [(one["name"], one["ts"], one["args"]) for one in slices(data, "count")] == [
        ("crossings", 2e6, {"crossings": 1}),
        ("launches", 2e6, {"launches": 2}),
    ]


SCRIPT = """
    import torch

    @torch.compile
    def f(x, n):
        y = x + n
        if y.sum() > 0:
            y = y * 2
        return y.cos()

    for i in range(40):
        f(torch.ones(8), 1 if i < 30 else 2)
"""


@pytest.mark.torch
def test_compiles_steps_regions_and_gaps_of_a_run_share_one_clock(scan: Callable[..., Scanned]) -> None:
    report = scan(SCRIPT).report
    data = trace(report)
    steps = {one["name"]: one for one in slices(data, "step")}
    compiles = slices(data, "compile")
    assert {one["args"]["step"] for one in compiles} >= {0, 30}
    for one in compiles:
        around = steps[f"step {one['args']['step']}"]
        assert around["ts"] <= one["ts"]
        assert one["ts"] + one["dur"] <= around["ts"] + around["dur"]
    ends = {}
    for one in sorted(steps.values(), key=lambda one: one["ts"]):
        assert one["ts"] >= ends.get("step", 0) - 0.01
        ends["step"] = one["ts"] + one["dur"]
    inner = [one for kind in ("region", "gap", "prologue") for one in slices(data, kind)]
    assert {one["name"] for one in inner} >= {"f [0/0]", "gap: BS101 f"}
    for one in inner:
        assert any(
            step["ts"] <= one["ts"] and one["ts"] + one["dur"] <= step["ts"] + step["dur"] + 0.01
            for step in steps.values()
        )
    inner.sort(key=lambda one: one["ts"])
    for one, after in pairwise(inner):
        assert one["ts"] + one["dur"] <= after["ts"] + 0.01
    counted = [one for one in slices(data, "count") if one["name"] == "crossings"]
    assert [one["ts"] for one in counted] == sorted(step["ts"] for step in steps.values())
    assert counted[-1]["args"]["crossings"] == 1
