"""When compiling pays, which arm to use, and whether a budget holds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from bench_samples import BENCHMARK, EAGER, FAILED, FAST, WRONG, around, process

from breakscope.bench import budget
from breakscope.bench.choose import break_even, extra_s, recommend
from breakscope.errors import UsageError


def test_the_first_steps_cost_what_they_take_beyond_steady_ones() -> None:
    assert extra_s(process((10_000.0, 20.0, 1.0), 1.0), around(1.0)) == pytest.approx(10.018)
    assert extra_s(process((0.5, 0.5), 1.0), around(1.0)) == 0.0


def test_break_even_is_the_cost_over_the_gain() -> None:
    assert FAST.step is not None
    cold, warm = FAST.processes
    # (10.018 s - 0.006 s of eager's own) / 3 ms a step
    assert break_even(cold, FAST.step, EAGER) == 3338
    assert break_even(warm, FAST.step, EAGER) == 1004


def test_an_arm_that_is_not_faster_never_pays() -> None:
    slow = around(5.0)
    assert break_even(process((100.0, 5.0), 5.0), slow, EAGER) is None
    assert break_even(process((4.0, 4.0), 4.0), around(3.0), EAGER) == 0


def test_a_short_run_is_told_not_to_compile_and_a_long_one_to() -> None:
    short, long = recommend([EAGER, FAST, FAILED], 100), recommend([EAGER, FAST, FAILED], 100_000)
    assert short is not None
    assert long is not None
    assert (short.arm, long.arm) == ("eager", "compiled · reduce-overhead")
    assert [total.arm for total in long.totals] == ["compiled · reduce-overhead", "eager"]
    assert long.totals[0].arithmetic == "10.02 s at the start + 100,000 x 1 ms = 110.02 s"
    assert "110.02 s against 400.01 s of eager" in long.why


def test_near_the_break_even_there_is_no_evidence() -> None:
    found = recommend([EAGER, FAST], 3338)
    assert found is not None
    assert found.arm is None
    assert found.why.startswith("no evidence")


def test_an_arm_that_computes_something_else_is_never_recommended() -> None:
    found = recommend([EAGER, WRONG], 1_000_000)
    assert found is not None
    assert found.arm == "eager"
    assert [total.arm for total in found.totals] == ["eager"]


def test_without_measured_arms_there_is_no_recommendation() -> None:
    assert recommend([FAILED], 10) is None


def test_an_arm_that_failed_is_no_reason_to_recommend_another() -> None:
    found = recommend([EAGER, FAILED], 10_000)
    assert found is not None
    assert found.arm is None
    assert found.why == f"no recommendation: {FAILED.name} failed, so eager was held against nothing"


# ---- budget ----


def test_a_benchmark_is_within_its_own_budget() -> None:
    assert budget.exceeded(BENCHMARK, BENCHMARK) == []


def test_slower_beyond_both_intervals_exceeds() -> None:
    slower = replace(BENCHMARK, arms=(EAGER, replace(FAST, step=around(1.1)), FAILED))
    [sentence] = budget.exceeded(slower, BENCHMARK)
    assert sentence == (
        "compiled · reduce-overhead: 1.1 ms a step, 1.10x the stored 1 ms "
        "(intervals 1.089 to 1.111 and 0.99 to 1.01)"
    )
    assert budget.exceeded(BENCHMARK, slower) == []  # faster is fine


def test_a_slower_host_is_named_beside_the_slower_arm() -> None:
    slower = replace(BENCHMARK, arms=(EAGER, replace(FAST, step=around(1.1)), FAILED), pace_ms=2.6)
    [sentence] = budget.exceeded(slower, BENCHMARK)
    assert sentence.endswith(
        "; but the host was slower too: the same piece of Python work took 2.6 ms, and 2.12 ms then"
    )
    for pace_ms in (2.2, None):
        [sentence] = budget.exceeded(replace(slower, pace_ms=pace_ms), BENCHMARK)
        assert "host" not in sentence


def test_slower_within_the_noise_does_not_exceed() -> None:
    noisy = replace(BENCHMARK, arms=(EAGER, replace(FAST, step=around(1.1, share=0.2)), FAILED))
    assert budget.exceeded(noisy, BENCHMARK) == []


def test_an_arm_that_fails_or_is_gone_exceeds() -> None:
    failed = replace(FAST, status="failed", step=None, reason="out of memory")
    assert budget.exceeded(replace(BENCHMARK, arms=(EAGER, failed)), BENCHMARK) == [
        "compiled · reduce-overhead: failed: out of memory"
    ]
    assert budget.exceeded(replace(BENCHMARK, arms=(EAGER,)), BENCHMARK) == [
        "compiled · reduce-overhead: in the earlier report, but not measured"
    ]


@pytest.mark.parametrize("what", ["device", "unit"])
def test_a_budget_of_another_device_or_step_is_refused(what: str) -> None:
    other = replace(BENCHMARK, **{what: "something else"})
    with pytest.raises(UsageError, match=f"its {what} is 'something else'"):
        budget.exceeded(BENCHMARK, other)
