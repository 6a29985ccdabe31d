"""What repairs would gain, in words: the first line, a finding's amount, ranks."""

from __future__ import annotations

from dataclasses import replace

import pytest
from report_samples import COSTS

from breakscope.report.model import Cost, Finding, FunctionGain, Report, SkippedFrame, Timing
from breakscope.view import gain
from breakscope.view.report_view import build

STEADY = Timing("replayed, 40 steps, backend as-script", 40, step_ms=2.1, steady_ms=420.0, steady_steps=200)


def cost(ms: float, **more: float | dict[str, float]) -> Cost:
    fields = {"share": 0.1, "method": STEADY.method, "spread_ms": 0.0, "steps": 200, **more}
    return Cost(ms, **fields)  # type: ignore[arg-type]


def report(timing: Timing, *costs: Cost) -> Report:
    one = next(finding for finding in COSTS.findings if finding.cost is not None)
    findings = (replace(one, fingerprint=f"f{number}", cost=each) for number, each in enumerate(costs))
    return replace(COSTS, timing=timing, findings=tuple(findings))


def finding(ms: float, spread: float) -> list[Finding]:
    return list(report(STEADY, cost(ms, spread_ms=spread)).findings)


def test_the_first_line_says_what_repairing_all_places_gains() -> None:
    timing = replace(STEADY, gain_ms=0.7, least_gain_ms=0.69, most_gain_ms=0.71)
    said = report(timing, cost(0.3), cost(0.5))
    sentence = "repairing both places would make a step about 1.5x faster (2.10 → 1.40 ms)"
    assert gain.faster(said) == sentence
    assert any(sentence in line for line in build(said, limit=10, all=False, root=None).totals)


def test_a_gain_that_depends_on_the_repair_is_a_range() -> None:
    timing = replace(STEADY, gain_ms=0.4, least_gain_ms=0.3, most_gain_ms=1.1)
    said = "repairing the one place would make a step about 1.17x to 2.1x faster (2.10 → 1.00 to 1.80 ms)"
    assert gain.faster(report(timing, cost(0.4))) == said


def test_breaks_that_cost_nothing_are_no_promise() -> None:
    timing = replace(STEADY, gain_ms=0.002, least_gain_ms=0.0, most_gain_ms=0.003)
    said = "repairing the breaks would gain next to nothing of 2.10 ms a step"
    assert gain.faster(report(timing, cost(0.002))) == said


def test_a_break_that_few_steps_come_to_is_told_by_those_steps_and_the_run() -> None:
    timing = replace(STEADY, gain_ms=5.0, least_gain_ms=5.0, most_gain_ms=5.0, steady_ms=3000.0)
    said = report(timing, cost(50.0, steps=20, share=1 / 3))
    assert (
        gain.amount(said, [one.cost for one in said.findings if one.cost])
        == "50.0 ms in each of 20 steps (33%)"
    )
    whole = "repairing the one place would make the steady steps about 1.5x faster (3.00 → 2.00 s in all)"
    assert gain.faster(said) == whole


def test_an_older_report_speaks_of_what_is_lost() -> None:
    assert gain.faster(report(Timing("measured gaps", 9, step_ms=2.0), cost(0.4))) is None


@pytest.mark.parametrize(
    ("least", "most", "said"),
    [(0.2, 0.31, "0.20 to 0.31 ms a step (10%)"), (0.24, 0.26, "0.25 ms a step (10%)")],
)
def test_an_amount_is_two_figures_where_readings_part(least: float, most: float, said: str) -> None:
    one = report(STEADY, cost(0.25, least_ms=least, most_ms=most))
    assert gain.amount(one, [each.cost for each in one.findings if each.cost]) == said


def test_what_several_sites_of_a_function_cost_together_is_said_where_it_is_not_the_sum() -> None:
    one = report(STEADY, cost(0.3), cost(0.5))
    names = tuple(finding.fingerprint for finding in one.findings)

    def said(ms: float) -> str:
        timing = replace(STEADY, functions=(FunctionGain(names, ms),))
        return gain.together(replace(one, timing=timing), one.findings)

    assert (said(0.6), said(0.78)) == (", 0.60 together", "")


def test_eager_work_is_said_not_to_be_a_gain() -> None:
    [one] = report(STEADY, cost(0.1, parts={"gap": 3.2, "eager_work": 3.1})).findings
    words = "3.10 ms a step of operations run eagerly here; that is not what a repair gains"
    assert gain.stays(one) == words
    [small] = report(STEADY, cost(0.1, parts={"gap": 3.2, "eager_work": 0.1})).findings
    assert gain.stays(small) == ""
    skipped = replace(small, skipped=(SkippedFrame("f", "a.py", 1, "loop", 3),))
    assert gain.stays(skipped).startswith("0.10 ms a step of operations")


def test_costs_within_each_others_spread_have_the_same_rank() -> None:
    groups = [
        finding(0.50, 0.03),
        finding(0.46, 0.02),
        finding(0.30, 0.01),
        finding(0.1, 0.0),
        finding(0.1, 0.0),
    ]
    assert gain.ranks(groups) == [1, 1, 3, 4, 4]
