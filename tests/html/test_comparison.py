"""What the page of a comparison says, and the source lines that its template draws."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import html_samples
import pytest
from report_samples import BRANCH, CLEAN, COSTS, ITEM, KILLED, SAMPLES, VACUOUS

from breakscope.diagnose.compare import compare
from breakscope.render.html.comparison import ComparisonView, Count, build
from breakscope.render.html.highlight import line_spans
from breakscope.render.html.lines import WIDEST, lay_out
from breakscope.render.html.pieces import pieces
from breakscope.report.model import Cost, Counts, Report


def view(old: Report, new: Report) -> ComparisonView:
    return build(compare(old, new), root=None)


@pytest.mark.parametrize("old", SAMPLES)
@pytest.mark.parametrize("new", ["costs", "vacuous", "hostile", "hundred"])
def test_every_finding_is_on_the_page(old: str, new: str) -> None:
    comparison = compare(SAMPLES[old], SAMPLES[new])
    made = build(comparison, root=None)
    names = ("new", "fixed", "unseen", "changed", "moved", "unchanged")
    expected = {name: len(getattr(comparison, name)) for name in names if getattr(comparison, name)}
    assert {panel.name: len(panel.rows) for panel in made.panels} == expected


def test_a_row_stands_beside_the_source_of_its_own_finding(tmp_path: Path) -> None:
    made = build(html_samples.compared(tmp_path), root=None)
    marked = {
        panel.name: "".join(text for text, _ in row.source.marked)
        for panel in made.panels
        for row in panel.rows
        if row.source
    }
    assert marked == {
        "new": "time.time()",
        "fixed": "x.mean()",
        "changed": "y.abs().max() > 1e4",
        "moved": "logger.warning_once(",
        "unchanged": "",
    }


def test_a_number_that_is_not_there_is_not_zero() -> None:
    (panel,) = view(CLEAN, replace(COSTS, findings=(BRANCH,))).panels
    assert panel.rows[0].counts == (
        Count("occurrences", "-", "5", False),
        Count("crossings", "-", "24", False),
        Count("ms a step", "-", "1.42", False),
    )
    uncounted = replace(BRANCH, counts=Counts(5, None), cost=None)
    (panel,) = view(replace(COSTS, findings=(BRANCH,)), replace(COSTS, findings=(uncounted,))).panels
    assert [(one.before, one.after) for one in panel.rows[0].counts] == [
        ("5", "5"),
        ("24", "not measured"),
        ("1.42", "not measured"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "tone"),
    [
        (CLEAN, COSTS, "bad"),
        (COSTS, CLEAN, "good"),
        (COSTS, COSTS, "void"),
        (COSTS, VACUOUS, "void"),
        (COSTS, KILLED, "void"),
    ],
)
def test_the_tone_is_good_only_where_something_is_surely_better(old: Report, new: Report, tone: str) -> None:
    assert view(old, new).tone == tone


def test_a_cost_that_grew_is_not_good() -> None:
    dearer = replace(BRANCH, cost=Cost(2.9, None, "gaps"))
    old, new = replace(COSTS, findings=(BRANCH, ITEM)), replace(COSTS, findings=(dearer,))
    assert [panel.name for panel in view(old, new).panels] == ["fixed", "changed"]
    assert view(old, new).tone == "bad"
    assert view(new, replace(COSTS, findings=(BRANCH,))).tone == "good"


def test_pieces_hold_the_whole_line_in_its_colours() -> None:
    raw = "x = '\u202e😀' + y.item()  # 😀"
    start = raw.index("y.item()")
    parts = pieces(lay_out(raw, line_spans(raw), (start, start + 8)))
    assert parts.before == (("x = ", ""), ("'\\u202e😀'", "s"), (" + ", ""))
    assert parts.marked == (("y.item()", ""),)
    assert parts.after == (("  ", ""), ("# 😀", "c"))


def test_a_mark_may_start_inside_a_colour() -> None:
    parts = pieces(lay_out("x = 'abc'", line_spans("x = 'abc'"), (6, 8)))
    assert (parts.before, parts.marked, parts.after) == (
        (("x = ", ""), ("'a", "s")),
        (("bc", "s"),),
        (("'", "s"),),
    )


def test_a_line_without_end_is_cut_in_a_comparison_too() -> None:
    raw = "x = [" + "1, " * 5_000 + "y.item()]"
    start = raw.index("y.item()")
    parts = pieces(lay_out(raw, (), (start, start + 8)))
    assert "".join(text for text, _ in parts.marked) == "y.item()"
    assert sum(len(text) for text, _ in (*parts.before, *parts.marked, *parts.after)) <= WIDEST + 2
