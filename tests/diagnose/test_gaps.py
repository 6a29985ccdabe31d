"""A step taken apart: marks written by hand, each test one shape of a step. Times in microseconds here."""

from __future__ import annotations

from typing import Any

import pytest

from breakscope.diagnose.collect import RegionEvent
from breakscope.diagnose.gaps import CALL, ENTER, LEAVE, RETURN, TICK, Sampled, take_apart
from breakscope.inside.capture import clock as clock_module
from breakscope.inside.capture.clock import BURST, FREE_BURSTS, MOST_SAMPLES, MOST_SHARE, Clock

A, B, C = 10, 11, 12  # slots of regions; A ends at site 0, B at site 1, C with its function
SITE_0, SITE_1, SKIP_1 = 20, 21, 22
REGIONS = {
    A: RegionEvent("0/0", A, 3, True, SITE_0, None),
    B: RegionEvent("1/0", B, 3, True, SITE_1, None),
    C: RegionEvent("2/0", C, 3, False, None, None),
}
OWNERS = {SITE_0: 0, SITE_1: 1, SKIP_1: 1}


def step(*marks: tuple[Any, ...], length: int = 1000) -> Sampled:
    """Marks as (kind, slot, host us[, device us[, stream]])."""
    rows = [
        [kind, slot, host * 1000, 0, *([device[0] * 1000, *(device[1:] or [7])] if device else [])]
        for kind, slot, host, *device in marks
    ]
    on_device = any(len(row) > 4 for row in rows)
    event = {"ns": length * 1000, "marks": rows, "of": 5}
    return take_apart(
        event | ({"anchor": 0, "device_end": length * 1000} if on_device else {}), REGIONS, OWNERS
    )


def gaps(one: Sampled) -> dict[int, float]:
    return {site: ns / 1000 for site, ns in one.gaps.items() if ns}


def test_the_gap_runs_from_the_end_of_a_region_to_the_beginning_of_the_next() -> None:
    one = step(
        (CALL, 0, 0), (TICK, SITE_0, 10), (ENTER, A, 20), (LEAVE, A, 50), (ENTER, C, 90), (LEAVE, C, 120),
        (RETURN, 0, 130),
    )  # fmt: skip
    assert gaps(one) == {0: 40}
    assert one.entries == {0: 1}
    assert one.total("prologue") == 20_000
    assert [(span.slot, span.ns) for span in one.spans if span.what == "region"] == [(A, 30_000), (C, 30_000)]
    assert sum(span.ns for span in one.spans) == 1_000_000


def test_the_prologue_of_a_resumed_frame_belongs_to_the_break_before_it() -> None:
    one = step(
        (CALL, 0, 0), (TICK, SITE_0, 10), (ENTER, A, 20), (LEAVE, A, 50),
        (TICK, SITE_1, 80), (ENTER, B, 90), (LEAVE, B, 100), (ENTER, C, 105), (LEAVE, C, 110), (RETURN, 0, 111),
    )  # fmt: skip
    assert gaps(one) == {0: 40, 1: 5}


def test_a_site_before_the_first_op_owns_the_time_from_its_tick() -> None:
    one = step((CALL, 0, 0), (TICK, SITE_0, 10), (ENTER, C, 70), (LEAVE, C, 80), (RETURN, 0, 90))
    assert gaps(one) == {0: 60}


def test_two_sites_in_one_gap_share_it_by_time() -> None:
    one = step(
        (CALL, 0, 0), (TICK, SITE_0, 10), (ENTER, A, 20), (LEAVE, A, 50),
        (TICK, SITE_1, 60), (ENTER, C, 100), (LEAVE, C, 110), (RETURN, 0, 120),
    )  # fmt: skip
    assert gaps(one) == {0: 10, 1: 40}
    assert one.entries == {1: 1}


def test_a_break_after_the_last_region_ends_with_the_call() -> None:
    one = step((CALL, 0, 0), (TICK, SITE_0, 1), (ENTER, A, 2), (LEAVE, A, 10), (RETURN, 0, 60))
    assert gaps(one) == {0: 50}
    assert not one.entries


def test_compiled_functions_called_from_a_skipped_one_leave_the_rest_to_its_site() -> None:
    one = step(
        (CALL, 0, 0), (TICK, SKIP_1, 10), (ENTER, C, 30), (LEAVE, C, 40), (ENTER, C, 55), (LEAVE, C, 60),
        (RETURN, 0, 65),
    )  # fmt: skip
    assert gaps(one) == {1: 35}


def test_an_ordinary_call_costs_no_site_anything() -> None:
    one = step((CALL, 0, 0), (ENTER, C, 30), (LEAVE, C, 40), (RETURN, 0, 65))
    assert gaps(one) == {}


def test_time_between_two_calls_is_nobodys() -> None:
    one = step(
        (CALL, 0, 0), (TICK, SITE_0, 1), (ENTER, A, 2), (LEAVE, A, 10), (RETURN, 0, 20),
        (CALL, 0, 500), (ENTER, C, 510), (LEAVE, C, 520), (RETURN, 0, 530),
    )  # fmt: skip
    assert gaps(one) == {0: 10}


def test_spans_know_when_the_device_was_done() -> None:
    # The device ends A at 500: at the host's 50 it is 450 behind.
    one = step(
        (CALL, 0, 0, 2), (TICK, SITE_0, 10), (ENTER, A, 20, 25), (LEAVE, A, 50, 500), (ENTER, C, 90, 505),
        (LEAVE, C, 120, 900), (RETURN, 0, 130, 901),
    )  # fmt: skip
    [gap] = [span for span in one.spans if span.owner == 0 and span.what == "gap"]
    assert gap.device == (500_000, 505_000)
    assert one.late == (900 - 120) * 1000


def test_a_held_step_says_when_the_device_was_let_go() -> None:
    # Kept busy from 25 to 225, the device then works on A for 40.
    marks = [
        [CALL, 0, 0, 0, 1_000, 7],
        [ENTER, A, 20_000, 0, 25_000, 7, 225_000],
        [LEAVE, A, 50_000, 0, 265_000, 7],
    ]
    one = take_apart({"ns": 300_000, "anchor": 0, "device_end": 270_000, "marks": marks}, REGIONS, OWNERS)
    [region] = [span for span in one.spans if span.what == "region"]
    assert region.device == (225_000, 265_000)


def test_a_partial_sample_begins_at_a_site() -> None:
    marks = [
        [TICK, SITE_0, 400_000, 0],
        [ENTER, A, 410_000, 0],
        [LEAVE, A, 420_000, 0],
        [ENTER, C, 470_000, 0],
    ]
    one = take_apart({"ns": 600_000, "marks": marks}, REGIONS, OWNERS)
    assert (gaps(one), dict(one.crossings)) == ({0: 50}, {0: 1})


@pytest.mark.parametrize("unknown", [99, 0])
def test_a_tick_of_an_unknown_slot_changes_nothing(unknown: int) -> None:
    one = step((CALL, 0, 0), (TICK, unknown, 5), (ENTER, C, 30), (LEAVE, C, 40), (RETURN, 0, 65))
    assert gaps(one) == {}


def test_streams_are_told_apart() -> None:
    one = step((CALL, 0, 0, 1, 7), (ENTER, C, 10, 11, 7), (LEAVE, C, 20, 21, 9), (RETURN, 0, 30, 31, 7))
    assert one.streams == {7, 9}


def test_the_time_that_marks_take_is_nobodys() -> None:
    # Each mark took 7 us of the host after the time that stands in it.
    marks = [
        (CALL, 0, 0),
        (TICK, SITE_0, 10),
        (ENTER, A, 20),
        (LEAVE, A, 50),
        (ENTER, C, 90),
        (LEAVE, C, 120),
    ]
    rows = [[kind, slot, host * 1000, 7000] for kind, slot, host in marks]
    one = take_apart({"ns": 200_000, "marks": rows, "of": 5}, REGIONS, OWNERS)
    assert gaps(one) == {0: 40 - 7}
    assert [span.ns for span in one.spans if span.what == "region"] == [23_000, 23_000]
    assert (one.own, one.total("prologue")) == (6 * 7000, 3000 + 3000)


class Slots:
    """Counters that count nothing."""

    def used(self) -> list[int]:
        return []


def sampled_steps(
    number: int, compiles: frozenset[int] = frozenset(), *, extra_ns: int = 0, patched: pytest.MonkeyPatch
) -> list[int]:
    """Which of so many steps a clock samples, if a step takes a millisecond and marks take so much more."""
    found: list[int] = []
    now = 0

    def emit(kind: str, **event: Any) -> None:
        if kind == "sample":
            found.append(event["of"])

    patched.setattr(clock_module, "perf_counter_ns", lambda: now)
    clock = Clock(emit, Slots(), 0, sample=True)  # type: ignore[arg-type]
    for step in range(number):
        now += 1_000_000 + (extra_ns if clock.marks is not None else 0)
        if step in compiles:
            clock.compiling()
        clock.call()
        clock.region(0, int, (), {}) if clock.marks is not None else None
        clock.returned()
        clock.step_ended()
    clock.finish()
    return found


def test_steps_are_sampled_in_bursts_with_ever_longer_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    found = sampled_steps(70, frozenset({0}), patched=monkeypatch)
    first = [*range(3, 9), *range(15, 21), *range(33, 39), *range(63, 69)]
    assert found == first
    assert len(sampled_steps(100_000, patched=monkeypatch)) == MOST_SAMPLES


def test_a_compile_begins_the_bursts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    found = sampled_steps(60, frozenset({0, 40}), patched=monkeypatch)
    assert [step for step in found if step > 38] == [*range(43, 43 + BURST), *range(43 + 2 * BURST, 60)]


def test_after_two_bursts_sampling_waits_until_it_is_a_small_share_of_the_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = sampled_steps(2_000, frozenset({0}), extra_ns=1_000_000, patched=monkeypatch)
    free = FREE_BURSTS * BURST
    assert found[:free] == [*range(3, 9), *range(15, 21)]
    assert found[free] == pytest.approx(free / MOST_SHARE, abs=free)  # steps that take as long again
    assert free < len(found) <= MOST_SHARE * 2_000 + BURST
