"""What is expected or meant to be so is told apart in every format, and is nothing to act on in any."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from report_samples import BACKWARD, BRANCH, COSTS, EVALUATION, HEALTHY, LAST_BATCH, SIZE

from breakscope.project.baseline import Baseline
from breakscope.project.judge import accept, judge
from breakscope.project.verdict import Check, Policy, Verdict
from breakscope.render import FORMATS, Options, check, html, terminal
from breakscope.render.html import view as page
from breakscope.report.model import Report, Status
from breakscope.report.ranking import worst_first
from breakscope.view import report_view

CLOSED = (EVALUATION, LAST_BATCH, BACKWARD)
MIXED = replace(HEALTHY, findings=(*CLOSED, SIZE))


def rendered(name: str, shown: Report = HEALTHY) -> str:
    text = FORMATS[name](shown, Options(width=120))
    assert isinstance(text, str)
    return text


def verdict(shown: Report = HEALTHY, **policy: object) -> Verdict:
    return judge("train.py", shown, Baseline(), Policy(**policy))  # type: ignore[arg-type]


# ---- the screen ----


def test_the_first_line_says_healthy_and_why() -> None:
    said = "healthy: 1 graph break that is meant to be, 2 recompiles that are expected, no skipped frame"
    assert rendered("terminal").splitlines()[0] == said


def test_they_stand_below_a_line_without_a_number_and_without_advice() -> None:
    above, below = rendered("terminal", MIXED).split("─" * 120)
    assert above.count("BS2") == 1
    assert " 1  BS201" in above
    assert "do this" not in below
    assert "expected  BS212 model.py:30 Net.forward · global state changed: grad_mode · one graph" in below
    assert "          BS201 model.py:30 Net.forward · size of x, dimension 0" in below
    assert "meant     BS107 model.py:41 Block.forward · call of a function that is not compiled" in below


def test_all_shows_them_in_full_below_the_line() -> None:
    text = terminal.render(MIXED, width=120, color=False, everything=True)
    below = text.split("─" * 120)[1]
    assert all(one.title in below for one in CLOSED)
    assert "expected one graph with gradients and one without" in below
    assert "do this" not in below


def test_a_cost_of_what_is_meant_to_be_is_no_loss() -> None:
    assert "lost at breaks" not in rendered("terminal") or "nothing of" in rendered("terminal")


@pytest.mark.parametrize("status", ["killed", "timeout", "interrupted", "script_error"])
def test_a_run_that_did_not_end_well_is_not_healthy(status: Status) -> None:
    ended = replace(HEALTHY, run=replace(HEALTHY.run, status=status, exit_code=1))
    assert not report_view.is_healthy(ended)
    assert "healthy" not in rendered("terminal", ended)


def test_a_script_that_says_it_failed_is_not_healthy() -> None:
    assert not report_view.is_healthy(replace(HEALTHY, run=replace(HEALTHY.run, exit_code=3)))


def test_what_ended_the_run_comes_first_then_what_hides_the_rest_then_cost() -> None:
    ended = replace(SIZE, code="BS306", kind="skip", fingerprint="a", effect="ended")
    hides = replace(SIZE, code="BS306", kind="skip", fingerprint="b", effect="incomplete")
    shown = replace(HEALTHY, findings=(EVALUATION, BRANCH, hides, ended))
    assert sorted(shown.findings, key=worst_first) == [ended, hides, BRANCH, EVALUATION]
    failed = replace(shown, run=replace(shown.run, status="script_error", exit_code=1))
    text = terminal.render(failed, width=120, color=False)
    assert text.startswith("FAILED with exit status 1 because of finding 1: ")
    assert [
        line.split("  ")[1:3] for line in text.splitlines() if line.startswith((" 1  ", " 2  ", " 3  "))
    ] == [
        ["BS306", "ended the run"],
        ["BS306", "report incomplete"],
        ["BS101", "warning"],
    ]


# ---- the page ----


def test_the_page_has_nothing_to_repair_first() -> None:
    made = page.build(HEALTHY, None)
    assert made.verdict.tone == "good"
    assert made.verdict.first is None
    assert made.verdict.sentence.startswith("Healthy: ")
    assert "Repair this first" not in html.render(HEALTHY, sources=None)


def test_the_page_lists_them_last_and_says_why_nothing_is_to_be_done() -> None:
    made = page.build(MIXED, None)
    assert [one.closed for one in made.findings] == ["", "meant to be so", "expected", "expected"]
    assert all(one.why_closed and not one.advice for one in made.findings[1:])
    assert made.verdict.first == made.findings[0]
    assert "Guards failed 5 times, each a new compile; 2 of them are expected" in made.verdict.sentence


# ---- check ----


def test_check_passes_and_lists_them() -> None:
    answer = verdict()
    assert (answer.outcome, answer.exit_code) == ("clean", 0)
    assert {one.finding.code: one.state for one in answer.judged} == {
        "BS201": "expected",
        "BS212": "expected",
        "BS107": "meant",
    }
    screen = check.render(Check((answer,), (), (), "baseline.json"), "terminal", Options(width=120))
    assert screen.splitlines()[0] == "passed: no finding"
    assert "BS212 model.py:30: one graph with gradients and one without" in screen


def test_strict_and_budgets_do_not_count_them_and_a_baseline_does_not_keep_them() -> None:
    assert verdict(strict=True).exit_code == 0
    assert accept(HEALTHY, verdict()).findings == ()


def test_a_cause_that_grows_is_new_though_it_was_expected_before() -> None:
    known = Baseline({"train.py": accept(HEALTHY, verdict())})
    grown = replace(HEALTHY, findings=(replace(LAST_BATCH, expected=None), EVALUATION))
    assert judge("train.py", grown, known, Policy()).outcome == "new"


# ---- files ----


def test_sarif_calls_them_notes() -> None:
    results = json.loads(rendered("sarif", MIXED))["runs"][0]["results"]
    assert [one["level"] for one in results] == ["warning", "note", "note", "note"]
    assert results[-2]["properties"]["expected"] in (EVALUATION.expected, LAST_BATCH.expected)


def test_github_does_not_annotate_them() -> None:
    lines = rendered("github", MIXED).splitlines()
    assert [line.startswith("::warning ") for line in lines] == [True, False]
    assert lines[-1] == "breakscope: 1 finding, and 3 expected or meant to be so"


def test_junit_skips_them() -> None:
    suite = ET.fromstring(rendered("junit"))[0]
    assert (suite.get("failures"), suite.get("skipped")) == ("0", "3")
    assert len(suite.findall("testcase")) == 4  # and one that passes
    assert all("nothing to do: " in one.attrib["message"] for one in suite.iter("skipped"))


def test_markdown_lists_them_apart() -> None:
    text = rendered("markdown", MIXED)
    assert "## breakscope: 1 finding in" in text
    assert text.count("<details><summary>") == 1
    assert "**Nothing to do**" in text


def test_csv_has_their_reasons_in_columns() -> None:
    rows = list(csv.DictReader(io.StringIO(rendered("csv", MIXED))))
    assert [bool(row["expected"] or row["intended"]) for row in rows] == [False, True, True, True]
    assert [row["severity"] for row in rows] == ["warning", "info", "info", "info"]


@pytest.mark.parametrize(("calls", "said"), [(1, "1 graph launch a step"), (2, "2 graph launches a step")])
def test_one_launch_is_not_counted_as_several(calls: int, said: str) -> None:
    regions = tuple(replace(one, calls=calls * COSTS.totals.steps) for one in COSTS.regions[:1])
    assert said in terminal.render(replace(COSTS, regions=regions), width=200, color=False)
