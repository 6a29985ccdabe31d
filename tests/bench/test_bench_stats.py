"""Intervals cover what they claim to cover, and verdicts need evidence."""

from __future__ import annotations

import random
import statistics

import pytest

from breakscope.bench import stats


def rounds(
    generator: random.Random, median: float, scatter: float, count: int = 10, size: int = 6
) -> list[list[float]]:
    """Log-normal step times, which have a long tail as real ones do."""
    return [[median * generator.lognormvariate(0.0, scatter) for _ in range(size)] for _ in range(count)]


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [([3.0, 1.0, 2.0], 0.5, 2.0), ([1.0, 2.0], 0.25, 1.25), ([5.0], 0.9, 5.0), ([0.0, 10.0], 1.0, 10.0)],
)
def test_a_quantile_lies_between_its_neighbours(values: list[float], share: float, expected: float) -> None:
    assert stats.quantile(values, share) == expected


def test_a_quantile_of_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="no values"):
        stats.quantile([], 0.5)


def test_spread_is_half_the_distance_of_the_quartiles() -> None:
    assert stats.spread([1.0, 2.0, 3.0, 4.0, 5.0]) == 1.0
    assert stats.spread([7.0]) == 0.0


def test_an_estimate_pools_processes_and_orders_its_bounds() -> None:
    found = stats.estimate([[[1.0, 1.1], [0.9]], [[1.2, 1.0]]])
    assert found is not None
    assert found.samples == 5
    assert found.low <= found.median <= found.high
    assert found.median == statistics.median([1.0, 1.1])  # of the processes' medians: 1.0 and 1.1


def test_no_samples_are_not_zero() -> None:
    assert stats.estimate([]) is None
    assert stats.estimate([[[], []]]) is None


def test_identical_samples_have_the_width_that_one_run_cannot_see() -> None:
    found = stats.estimate([[[2.0] * 5] * 4])
    assert found is not None
    assert (found.low, found.high) == pytest.approx((2.0 * (1 - 0.005), 2.0 * (1 + 0.005)))


def test_the_clock_has_a_resolution() -> None:
    found = stats.estimate([[[0.002] * 9]], resolution=0.001)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((0.001, 0.003))


def test_the_interval_covers_processes_that_disagree() -> None:
    found = stats.estimate([[[1.0] * 9], [[1.3] * 9]])
    assert found is not None
    assert found.low <= 1.0 < 1.3 <= found.high


@pytest.mark.slow
@pytest.mark.parametrize("scatter", [0.02, 0.2])
def test_the_interval_covers_the_truth_as_often_as_it_says(scatter: float) -> None:
    generator = random.Random(7)
    hits = 0
    runs = 120
    for number in range(runs):
        found = stats.estimate([rounds(generator, 1.0, scatter)], seed=number)
        assert found is not None
        hits += found.low <= 1.0 <= found.high
    # 95% wanted; 120 runs of a fair interval stay above 90% nearly always.
    assert hits / runs >= 0.9
    assert found.high - found.low < 8 * scatter  # and it is no interval that says nothing


def test_rounds_that_drift_make_the_interval_wider() -> None:
    generator = random.Random(1)
    still = [[1 + generator.gauss(0, 0.01) for _ in range(6)] for _ in range(10)]
    drifting = [[value + 0.05 * (number % 3) for value in samples] for number, samples in enumerate(still)]
    calm, restless = stats.estimate([still]), stats.estimate([drifting])
    assert calm is not None
    assert restless is not None
    assert restless.high - restless.low > 2 * (calm.high - calm.low)


def test_a_faster_arm_is_faster() -> None:
    generator = random.Random(3)
    verdict = stats.compare("a", "b", [rounds(generator, 1.0, 0.05)], [rounds(generator, 1.3, 0.05)])
    assert verdict is not None
    assert verdict.judgement == "faster"
    assert verdict.low <= verdict.ratio <= verdict.high
    assert verdict.ratio == pytest.approx(1.3, rel=0.05)
    assert verdict.confidence > 0.95


def test_a_slower_arm_is_slower() -> None:
    generator = random.Random(4)
    verdict = stats.compare("a", "b", [rounds(generator, 1.3, 0.05)], [rounds(generator, 1.0, 0.05)])
    assert verdict is not None
    assert (verdict.judgement, verdict.confidence > 0.95) == ("slower", True)


@pytest.mark.slow
def test_equal_arms_are_rarely_told_apart() -> None:
    generator = random.Random(5)
    verdicts = [
        stats.compare("a", "b", [rounds(generator, 1.0, 0.1)], [rounds(generator, 1.0, 0.1)], seed=number)
        for number in range(60)
    ]
    wrong = [one for one in verdicts if one is not None and one.judgement != "no evidence"]
    assert len(wrong) <= 6  # 5% wanted


def test_drift_that_both_arms_share_does_not_hide_a_difference() -> None:
    generator = random.Random(6)
    drift = [1 + 0.5 * number / 10 for number in range(10)]
    fast = [[moment * generator.gauss(1.0, 0.01) for _ in range(6)] for moment in drift]
    slow = [[moment * generator.gauss(1.05, 0.01) for _ in range(6)] for moment in drift]
    verdict = stats.compare("fast", "slow", [fast], [slow])
    assert verdict is not None
    assert verdict.judgement == "faster"


def test_a_difference_within_what_processes_differ_by_is_no_evidence() -> None:
    one = [[[1.00] * 6] * 5, [[1.10] * 6] * 5]
    two = [[[1.05] * 6] * 5, [[1.04] * 6] * 5]
    verdict = stats.compare("a", "b", one, two)
    assert verdict is not None
    assert verdict.judgement == "no evidence"


def test_less_than_what_two_runs_differ_by_is_no_evidence() -> None:
    verdict = stats.compare("a", "b", [[[1.0] * 9] * 5], [[[1.004] * 9] * 5])
    assert verdict is not None
    assert verdict.judgement == "no evidence"


def test_four_samples_are_too_few_for_a_verdict() -> None:
    verdict = stats.compare("a", "b", [[[1.0, 1.0], [1.0, 1.0]]], [[[9.0, 9.0], [9.0, 9.0]]])
    assert verdict is not None
    assert verdict.judgement == "no evidence"
    assert stats.compare("a", "b", [[]], [[[1.0]]]) is None


def test_zeros_do_not_break_the_ratio() -> None:
    verdict = stats.compare("a", "b", [[[0.0] * 9]], [[[0.0] * 9]])
    assert verdict is not None
    assert verdict.ratio == 1.0


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([9.0, 5.0, 3.0, 2.0, 1.5, 1.2, 1.1, 1.0], False),  # still getting faster
        ([9.0, 1.0, 1.0, 1.02, 1.0, 1.01, 1.0, 1.0, 1.0], True),
        ([1.0] * 7, False),  # too few to tell
        ([1.0, 2.0] * 8, True),  # two kinds of step in turn
    ],
)
def test_a_warm_up_ends_when_steps_are_steady(times: list[float], expected: bool) -> None:
    assert stats.steady(times) is expected


def test_the_least_interval_is_asked_for() -> None:
    quiet = [[[1.0] * 6] * 10]
    for least in (stats.REPEATABILITY, stats.TUNED_REPEATABILITY):
        found = stats.estimate(quiet, least=least)
        assert found is not None
        assert (found.low, found.high) == pytest.approx((1 - least, 1 + least))


def test_two_compiles_must_differ_by_more_than_compiles_do() -> None:
    one, other = [[[1.0] * 6] * 10], [[[1.015] * 6] * 10]
    plain = stats.compare("a", "b", one, other)
    tuned = stats.compare("a", "b", one, other, least=stats.TUNED_REPEATABILITY)
    assert plain is not None
    assert tuned is not None
    assert (plain.judgement, tuned.judgement) == ("faster", "no evidence")
    far = stats.compare("a", "b", one, [[[1.04] * 6] * 10], least=stats.TUNED_REPEATABILITY)
    assert far is not None
    assert far.judgement == "faster"
