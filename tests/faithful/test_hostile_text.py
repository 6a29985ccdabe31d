"""Whatever text a report holds, every format stays what it is: no command, cell, tag, link or escape comes of it."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
import unicodedata
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from report_samples import BRANCH, CLEAN, FIXES, RUN

from breakscope.catalog.links import torch_page
from breakscope.diagnose.compare import compare
from breakscope.render import FORMATS, Options, html
from breakscope.report import schema
from breakscope.report.model import Report

CORPUS: list[str] = json.loads((Path(__file__).parent.parent / "data" / "hostile.json").read_text())
TEXTS = st.one_of(
    st.text(max_size=60), st.sampled_from(CORPUS), st.lists(st.sampled_from(CORPUS), max_size=3).map("".join)
)
SAMPLE = dataclasses.replace(FIXES, run=dataclasses.replace(RUN, notes=("a note",)))
# Fields whose values the format fixes, and those that places are found by.
FIXED = {"kind", "status", "owner", "cause", "severity", "method", "by", "started_at"}


def filled(value: Any, text: str, name: str = "") -> Any:
    """A report with every free text replaced."""
    if isinstance(value, str):
        return value if name in FIXED else text
    if isinstance(value, tuple):
        return tuple(filled(item, text, name) for item in value)
    if isinstance(value, dict):
        return {key: filled(item, text, name) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changed = {f.name: filled(getattr(value, f.name), text, f.name) for f in dataclasses.fields(value)}
        return dataclasses.replace(value, **changed)
    return value


def hostile(text: str) -> Report:
    report = filled(SAMPLE, text)
    findings = [dataclasses.replace(one, fingerprint=f"f{i}") for i, one in enumerate(report.findings)]
    return dataclasses.replace(report, findings=tuple(findings))


def every_text(test: Any) -> Any:
    for text in CORPUS:
        test = example(text)(test)
    relaxed = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
    return relaxed(given(TEXTS)(test))


def rendered(name: str, text: str) -> str:
    shown = FORMATS[name](hostile(text), Options())
    assert isinstance(shown, str)
    return shown


def acts(character: str) -> bool:
    """Whether a terminal, or a reader's eye, is moved by a character."""
    bidi = unicodedata.bidirectional(character) in {
        "LRE",
        "RLE",
        "LRO",
        "RLO",
        "PDF",
        "LRI",
        "RLI",
        "FSI",
        "PDI",
    }
    return (unicodedata.category(character) in ("Cc", "Cs") and character != "\n") or bidi


@every_text
def test_a_terminal_is_sent_nothing_that_acts(text: str) -> None:
    for name in ("terminal", "warmup", "markdown", "issue"):
        assert [one for one in rendered(name, text) if acts(one)] == []


@every_text
def test_no_workflow_command_comes_of_a_text(text: str) -> None:
    own = re.compile(r"::(error|warning|notice) [^\r\n]*::[^\r\n]*\Z")
    benign = rendered("github", "x").splitlines()
    lines = re.split(r"[\r\n]", rendered("github", text).rstrip("\n"))
    assert len(lines) == len(benign)
    for line in lines:
        assert own.match(line) or not re.match(r"\s*(::|##\[)", line), line


@every_text
def test_no_cell_of_a_table_is_a_formula(text: str) -> None:
    rows = list(csv.reader(io.StringIO(rendered("csv", text), newline="")))
    assert len(rows) == len(list(csv.reader(io.StringIO(rendered("csv", "x"), newline=""))))
    assert len({len(row) for row in rows}) == 1
    cells = [cell for row in rows for cell in row]
    assert [cell for cell in cells if cell[:1] in "=+-@\t\r" and cell and not _is_number(cell)] == []


def _is_number(cell: str) -> bool:
    return bool(re.fullmatch(r"[+-]?\d+(\.\d+)?", cell))


@every_text
def test_markdown_keeps_its_structure(text: str) -> None:
    def shape(source: str) -> tuple[set[str], int]:
        tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(source)
        inner = [child for token in tokens for child in token.children or ()]
        kinds = {token.type for token in (*tokens, *inner)}
        return kinds, sum(token.type == "th_open" for token in tokens)

    assume(torch_page(text) is None)  # what torch may call a break so has a page, and is a link
    for name in ("markdown", "issue"):
        kinds, columns = shape(rendered(name, text))
        benign, expected = shape(rendered(name, "x"))
        assert kinds - benign <= {"code_inline", "softbreak", "hardbreak", "text_special", "fence", "text"}
        assert columns == expected


@every_text
def test_documents_for_machines_stay_valid(text: str) -> None:
    for name in ("json", "sarif", "perfetto", "speedscope"):
        json.loads(rendered(name, text).encode("utf-8"))
    ET.fromstring(rendered("junit", text).encode("utf-8"))
    schema.from_dict(json.loads(schema.dumps(hostile(text))))


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.acting: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            outward = name in ("src", "href", "action", "data") and re.match(
                r"\s*(?!#|data:)\w+:", value or ""
            )
            if name.startswith("on") or outward:
                self.acting.append((name, value))


@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(TEXTS)
@example("".join(CORPUS[:70]))
@example("</script><script>alert(1)</script><img src=x onerror=alert(1)>")
def test_a_page_gets_no_tag_and_no_request(text: str) -> None:
    for page, benign in (
        (html.render(hostile(text), sources=None), html.render(hostile("x"), sources=None)),
        (
            html.render_diff(compare(CLEAN, hostile(text)), root=None),
            html.render_diff(compare(CLEAN, hostile("x")), root=None),
        ),
    ):
        seen, plain = _Tags(), _Tags()
        seen.feed(page)
        plain.feed(benign)
        assert seen.tags.count("script") == plain.tags.count("script")
        assert set(seen.tags) <= {*plain.tags, "mark", "span", "br", "details", "summary", "button", "code"}
        assert seen.acting == plain.acting


@pytest.mark.parametrize("text", CORPUS)
def test_a_diff_says_no_more_than_text(text: str) -> None:
    from breakscope.render import diff_markdown, diff_terminal

    compared = compare(CLEAN, hostile(text))
    said = diff_terminal.render(compared, width=100, color=False)
    assert [one for one in said if acts(one)] == []
    assert [one for one in diff_markdown.render(compared) if acts(one)] == []


def test_the_sample_has_text_in_every_field() -> None:
    assert hostile("QQ").findings[0].title == "QQ"
    assert BRANCH.title != "QQ"
