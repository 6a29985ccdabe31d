"""The trace for Perfetto: one process a rank, on one clock, slices that nest."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from report_samples import CLEAN, HOSTILE, HOSTILE_TEXT

from breakscope.diagnose.merge import Identity, as_rank, merge
from breakscope.render import FORMATS, Options
from breakscope.report.model import Compile, Step


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
