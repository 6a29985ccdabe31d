"""Markdown: what a reader sees once GitHub has rendered it, and that it fits."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt
from report_samples import BRANCH, CLEAN, COSTS, FIXES, HOSTILE, HUNDRED, ITEM, MARKUP, SAMPLES, VACUOUS

from breakscope.render import markdown
from breakscope.report.model import Counts, Finding, Report
from breakscope.report.ranking import is_open
from breakscope.view.markup import block, code, plain
from breakscope.view.text import harmless

TAGS = {
    *("h2", "p", "blockquote", "table", "thead", "tbody", "tr", "th", "td", "code", "pre"),
    *("details", "summary", "b", "strong", "ul", "li", "br"),
}
VOID = {"br"}


class Page(HTMLParser):
    """Rendered Markdown: its tags, its text, and its text outside of code."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.attributes: list[str] = []
        self.rows: list[list[str]] = []
        self.text = ""
        self.prose = ""
        self.summaries: list[str] = []
        self.feed(MarkdownIt("commonmark", {"html": True}).enable("table").render(text))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag == "summary":
            self.summaries.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if "code" not in self.open:
            self.prose += data
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data
        if "summary" in self.open:
            self.summaries[-1] += data


def page(report: Report, **options: object) -> Page:
    return Page(markdown.render(report, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", SAMPLES)
def test_every_report_renders_to_our_tags_only(name: str) -> None:
    text = markdown.render(SAMPLES[name])
    shown = Page(text)
    assert set(shown.tags) <= TAGS
    assert shown.open == []
    assert set(shown.attributes) <= {"class"}
    assert text.endswith("\n")
    assert len(text.encode()) <= 65_536
    assert all(character.isprintable() or character == "\n" for character in text)


@pytest.mark.parametrize("name", sorted(SAMPLES.keys() - {"hundred"}))
def test_one_row_and_one_fold_for_each_finding(name: str) -> None:
    shown = page(SAMPLES[name])
    findings = [one for one in SAMPLES[name].findings if is_open(one)]
    assert len(shown.rows) == (len(findings) + 1 if findings else 0)
    assert {len(row) for row in shown.rows} <= {5}
    assert len([one for one in shown.summaries if "on this run" not in one]) == len(findings)


def test_worst_first_with_its_numbers() -> None:
    rows = page(COSTS).rows[1:]
    assert [row[1] for row in rows] == ["BS101", "BS102", "BS104"]
    assert rows[0][3] == "model.py:41:12 Block.forward"
    assert rows[0][4] == "1.42 ms a step (35%)"


def test_markup_in_a_report_stays_text() -> None:
    shown = page(MARKUP)
    assert "a" not in shown.tags
    assert "img" not in shown.tags
    said = harmless(MARKUP.run.notes[0])
    for part in (
        "<b onclick=x>b</b>",
        "</details>",
        "[k](http://evil.example)",
        "**s**",
        "_e_",
        "~~d~~",
        r"\|",
    ):
        assert part in said
        assert part in shown.text
    # Eight copies of the text in places, each whole.
    assert shown.text.replace("\u2060", "").count(said) >= 8


def test_nobody_is_mentioned_and_no_issue_is_linked() -> None:
    shown = page(MARKUP)
    assert "@\u2060ada" in shown.prose
    assert "@ada" not in shown.prose
    assert "#12" not in shown.prose
    assert "#3" not in shown.prose
    assert "@ada" in shown.text  # in code, where GitHub leaves it alone


def test_hostile_characters_are_shown_escaped() -> None:
    assert r"\x1b[31mred" in page(HOSTILE).text
    assert "\x1b" not in markdown.render(HOSTILE)


@pytest.mark.parametrize(
    "text", ["a`b``c", "```", "````\n```", "</code>|", "\\", "\\|", "a\\|b`", "_x_ __init__", "&amp;"]
)
def test_code_and_blocks_hold_any_text(text: str) -> None:
    assert Page(f"| h |\n| --- |\n| {code(text)} |\n").rows[1] == [harmless(text)]
    assert Page(f"| h |\n| --- |\n| {plain(text)} |\n").rows[1] == [harmless(text)]
    assert Page(block(text, "python")).text.removesuffix("\n") == f"{text}\n"


def test_a_suggestion_is_shown_as_a_diff() -> None:
    text = markdown.render(FIXES)
    assert "```diff\n--- a/model.py\n" in text
    assert "Suggested rewrite: torch.where instead of the branch (proved)" in Page(text).text


def test_a_vacuous_report_says_so_first() -> None:
    assert "VACUOUS" in page(VACUOUS).text[:200]


def test_a_clean_report_has_a_verdict_and_no_table() -> None:
    assert "Healthy: no graph break, no recompile, no skipped frame." in page(CLEAN).text
    assert "table" not in page(CLEAN).tags


def test_known_findings_are_told_from_new_ones() -> None:
    rows = page(COSTS, known=frozenset({BRANCH.fingerprint})).rows
    assert [row[5] for row in rows] == ["new", "known", "new", "new"]


# ---- size ----


def many(number: int, source: str = "y = x") -> Report:
    def one(index: int) -> Finding:
        place = replace(BRANCH.location, line=index + 1, end_line=None, source=source)
        return replace(
            BRANCH, fingerprint=f"f{index}", location=place, cost=None, counts=Counts(1, number - index)
        )

    return replace(CLEAN, findings=tuple(one(index) for index in range(number)))


@pytest.mark.parametrize("number", [60, 150, 2_000])
def test_what_does_not_fit_is_cut_from_the_end_and_said(number: int) -> None:
    text = markdown.render(many(number))
    assert len(text.encode()) <= markdown.MAX_BYTES
    shown = Page(text)
    rows = [int(row[0]) for row in shown.rows[1:]]
    folds = [int(one.split(".")[0]) for one in shown.summaries]
    assert rows == list(range(1, len(rows) + 1))
    assert folds == list(range(1, len(folds) + 1))
    assert 0 < len(folds) <= len(rows)
    # Worst first: the first row is the one with the most crossings.
    assert shown.rows[1][4].startswith(f"{number} crossings" if number < 1000 else f"{number:,} crossings")
    if len(folds) < number:
        assert f"the details of all but the first {len(folds)}." in shown.text
    if len(rows) < number:
        assert f"the {number - len(rows):,} least costly of {number:,} findings" in shown.text


def test_a_hundred_findings_fill_a_comment_and_no_more() -> None:
    text = markdown.render(HUNDRED)
    assert 50_000 < len(text.encode()) <= 65_536


def test_one_huge_line_takes_no_room_from_the_others() -> None:
    report = replace(CLEAN, findings=(*many(2, "x" * 1_000_000).findings, ITEM))
    shown = page(report)
    assert len(shown.rows) == 4
    assert "characters more" in shown.text


def test_limits_hold_in_bytes() -> None:
    wide = many(300, "値" * 500)
    assert len(markdown.render(wide).encode()) <= 65_536
    assert len(markdown.render(wide, max_bytes=5_000).encode()) <= 5_000
    assert markdown.render(wide, max_bytes=10).startswith("breakscope: 300 findings")
    assert len(markdown.render(wide, max_bytes=1024 * 1024)) > 65_536
