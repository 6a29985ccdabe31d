"""A comparison as text, Markdown and JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from markdown_it import MarkdownIt
from report_samples import (
    BRANCH,
    CLEAN,
    COSTS,
    HOSTILE,
    HUNDRED,
    ITEM,
    LOGGER,
    LOOP,
    MARKUP,
    SAMPLES,
    VACUOUS,
)
from rich.cells import cell_len

from breakscope.diagnose.compare import Comparison, compare
from breakscope.render import diff_json, diff_markdown, diff_terminal
from breakscope.report.codec import decode
from breakscope.report.model import Cost, Finding, Run
from breakscope.view import diff_view

OLD = replace(CLEAN, findings=(BRANCH, ITEM, LOGGER))
CHEAPER = replace(BRANCH, cost=Cost(0.9, 0.3, "gaps"), location=replace(BRANCH.location, line=52))
MOVED = replace(LOGGER, location=replace(LOGGER.location, line=1040))
NEW = replace(CLEAN, findings=(CHEAPER, MOVED, LOOP), run=replace(CLEAN.run, torch="2.15.0"))
COMPARISON = compare(OLD, NEW)
PAIRS = [(old, new) for old in SAMPLES for new in ("costs", "hostile", "markup", "vacuous", "wide")]


def terminal(comparison: Comparison, width: int = 100, **options: Any) -> list[str]:
    return diff_terminal.render(comparison, width=width, color=False, **options).splitlines()


def test_the_view_holds_the_words() -> None:
    view = diff_view.build(COMPARISON, root=None)
    assert view.verdict == "1 new, 1 fixed, 1 changed, 1 moved"
    assert view.settings == (("torch", "2.13.0 -> 2.15.0"),)
    changed = next(one for one in view.sections if one.name == "changed").rows[0]
    assert changed.changes == ("1.42 -> 0.90 ms a step (-37%)", "moved from line 41 to 52")
    assert changed.where == "model.py:52:12"


# ---- terminal ----


def test_the_terminal_names_the_settings_before_the_findings() -> None:
    lines = terminal(COMPARISON)
    assert lines.index("  torch  2.13.0 -> 2.15.0") < lines.index("1 new, 1 fixed, 1 changed, 1 moved")
    assert lines.index("new (1)") < lines.index("fixed (1)") < lines.index("changed (1)")
    assert lines[-1] == "1 moved: --all lists them"
    assert "moved (1)" in terminal(COMPARISON, all=True)


@pytest.mark.parametrize(("old", "new"), PAIRS)
@pytest.mark.parametrize("width", [20, 80])
def test_the_terminal_keeps_to_its_width_and_shows_no_control_code(old: str, new: str, width: int) -> None:
    for line in terminal(compare(SAMPLES[old], SAMPLES[new]), width, all=True):
        assert cell_len(line) <= width
        assert line.isprintable()


def test_colour_is_the_callers_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[1;32m" in diff_terminal.render(COMPARISON, width=80, color=True)
    assert "\x1b" not in diff_terminal.render(COMPARISON, width=80, color=False)


def test_a_doubt_is_shown() -> None:
    assert any(line.startswith("but: nothing was compiled") for line in terminal(compare(COSTS, VACUOUS)))


def test_two_clean_reports() -> None:
    assert terminal(compare(CLEAN, CLEAN))[-1] == "no findings in either report"


# ---- Markdown ----


def html(text: str) -> str:
    rendered: str = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    return rendered


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_markdown_holds_no_markup_of_a_report(old: str, new: str) -> None:
    text = diff_markdown.render(compare(SAMPLES[old], SAMPLES[new]))
    assert len(text.encode()) <= 65_536
    shown = html(text)
    assert "<b " not in shown
    assert "<a " not in shown
    assert "<img" not in shown
    assert "<script" not in shown
    assert shown.count("<details>") == shown.count("</details>")


def test_markdown_has_a_table_for_each_fate_and_folds_what_asks_for_nothing() -> None:
    text = diff_markdown.render(COMPARISON)
    assert text.startswith("## breakscope: 1 new, 1 fixed, 1 changed, 1 moved\n")
    assert "- torch: <code>2.13.0 -> 2.15.0</code>" in text
    assert text.index("### New (1)") < text.index("### Fixed (1)") < text.index("<details><summary>Moved (1)")
    assert html(text).count("<table>") == 4


def test_markdown_that_does_not_fit_is_cut_and_says_so() -> None:
    many = tuple(
        replace(one, fingerprint=f"{one.fingerprint}-{copy}")
        for copy in range(10)
        for one in HUNDRED.findings
    )
    text = diff_markdown.render(compare(CLEAN, replace(HUNDRED, findings=many)))
    assert 60_000 < len(text.encode()) <= 65_536
    assert "of these 1,000 do not fit here." in text
    small = diff_markdown.render(compare(HUNDRED, COSTS), max_bytes=2_000)
    assert len(small.encode()) <= 2_000
    assert "of these 100 do not fit here." in small


# ---- JSON ----


def test_json_holds_findings_as_a_report_does() -> None:
    data = json.loads(diff_json.render(COMPARISON))
    assert data["schema_version"] == diff_json.SCHEMA_VERSION
    assert decode(data["new"][0], Finding) == LOOP
    assert decode(data["fixed"][0], Finding) == ITEM
    assert decode(data["changed"][0]["new"], Finding) == CHEAPER
    assert data["changed"][0]["changes"] == [{"what": "cost", "old": 1.42, "new": 0.9, "per_step": False}]
    assert data["moved"][0]["moved"] is True
    assert decode(data["after"]["run"], Run) == NEW.run
    assert data["settings"] == [{"what": "torch", "old": "2.13.0", "new": "2.15.0"}]


def test_json_loses_nothing_of_hostile_text() -> None:
    text = diff_json.render(compare(MARKUP, HOSTILE))
    text.encode("ascii")
    found = [decode(one, Finding) for one in json.loads(text)["new"]]
    assert {one.fingerprint: one for one in found} == {one.fingerprint: one for one in HOSTILE.findings}
