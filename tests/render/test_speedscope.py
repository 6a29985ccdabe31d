"""Compile phases for speedscope: an evented profile in which everything that opens is closed, in order."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from report_samples import CLEAN, HOSTILE_TEXT, SAMPLES

from breakscope.diagnose.merge import Identity, as_rank, merge
from breakscope.render import FORMATS, Options
from breakscope.report.model import Compile, Report

PHASES = {"dynamo": 0.3, "aot_autograd": 0.2, "inductor": 0.3}


def made(at: float | None, seconds: float | None, **more: Any) -> Compile:
    return Compile("0/0", "Net.forward", "model.py", 30, 0, at, seconds, **more)


def file_of(report: Report) -> dict[str, Any]:
    """The file, held against the rules that speedscope has for its format."""
    data: dict[str, Any] = json.loads(FORMATS["speedscope"](report, Options()))
    assert data["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert all(isinstance(frame["name"], str) for frame in data["shared"]["frames"])
    assert data["profiles"]
    assert 0 <= data["activeProfileIndex"] < len(data["profiles"])
    for profile in data["profiles"]:
        assert profile["type"] == "evented"
        assert profile["unit"] == "seconds"
        at, opened = profile["startValue"], []
        for event in profile["events"]:
            assert event["at"] >= at  # in order, and not before the profile begins
            at = event["at"]
            assert 0 <= event["frame"] < len(data["shared"]["frames"])
            if event["type"] == "O":
                opened.append(event["frame"])
            else:
                assert event["type"] == "C"
                assert opened.pop() == event["frame"]  # what was opened last is closed first
        assert opened == []
        assert at <= profile["endValue"]
    return data


def words(data: dict[str, Any], profile: int = 0) -> list[tuple[str, str, float]]:
    frames = data["shared"]["frames"]
    return [
        (event["type"], frames[event["frame"]]["name"], round(event["at"], 6))
        for event in data["profiles"][profile]["events"]
    ]


def test_phases_lie_inside_of_one_another_as_torch_times_them() -> None:
    data = file_of(replace(CLEAN, compiles=(made(1.0, 0.8, phases=PHASES),)))
    assert words(data) == [
        ("O", "Net.forward [0/0]", 1.0),
        ("O", "Dynamo", 1.0),
        ("O", "AOTAutograd", 1.3),
        ("O", "Inductor", 1.5),
        ("C", "Inductor", 1.8),
        ("C", "AOTAutograd", 1.8),
        ("C", "Dynamo", 1.8),
        ("C", "Net.forward [0/0]", 1.8),
    ]
    assert data["shared"]["frames"][0] == {"name": "Net.forward [0/0]", "file": "model.py", "line": 30}


def test_each_rank_has_a_profile_and_what_overlaps_one_more() -> None:
    overlapping = replace(CLEAN, compiles=(made(0.0, 2.0), made(1.0, 2.0)))
    ranks = [as_rank(overlapping, Identity(rank, "job", began=1_000.0)) for rank in range(2)]
    names = [profile["name"] for profile in file_of(merge(ranks))["profiles"]]
    assert names == ["rank 0", "rank 0, thread 2", "rank 1", "rank 1, thread 2"]


def test_what_has_no_time_is_counted_in_the_name() -> None:
    data = file_of(replace(CLEAN, compiles=(made(None, 1.0), made(0.0, None), made(0.0, 1.0))))
    assert data["name"].endswith(", 2 compiles without a time left out")
    assert len(words(data)) == 2


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(0, 10), st.floats(-1, 5), st.lists(st.floats(-1, 5), max_size=4)), max_size=10
    )
)
def test_every_file_is_valid_whatever_the_times(times: list[tuple[float, float, list[float]]]) -> None:
    compiles = (
        made(at, seconds, phases={f"phase {i}": length for i, length in enumerate(phases)})
        for at, seconds, phases in times
    )
    file_of(replace(CLEAN, compiles=tuple(compiles)))


def test_every_sample_and_hostile_names_are_data() -> None:
    for report in SAMPLES.values():
        file_of(report)
    hostile = Compile(HOSTILE_TEXT, HOSTILE_TEXT, HOSTILE_TEXT, 1, 0, 0.0, 1.0, {HOSTILE_TEXT: 0.5})
    FORMATS["speedscope"](replace(CLEAN, compiles=(hostile,)), Options()).encode()  # type: ignore[union-attr]
