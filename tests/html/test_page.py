"""The page as text: one file that loads nothing, and data that is never markup."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import html_samples
import pytest
from report_samples import BRANCH, CLEAN, COSTS, SAMPLES
from scanning import run_python

from breakscope.cli import main, report_html
from breakscope.diagnose.compare import compare
from breakscope.errors import OutputError
from breakscope.render import html
from breakscope.report.schema import from_dict, save, to_dict

SAME = compare(CLEAN, CLEAN)
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028\u202e\u2066\ufeff\ud800-\udfff]")


class Tags(HTMLParser):
    """Every tag with its attributes, and what stands in scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[str] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")
        self.inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self.inside[-1:] == ["script"]:
            self.scripts[-1] += data


@pytest.mark.parametrize("name", [*SAMPLES, "evil"])
def test_no_text_of_a_report_becomes_markup(name: str, tmp_path: Path) -> None:
    report = html_samples.hostile(tmp_path) if name == "evil" else SAMPLES[name]
    page = html.render(report, sources=html.OnDisk(lambda _file: True))
    page.encode("utf-8")
    assert not HIDDEN.search(page)
    tags = Tags(page)
    assert len(tags.scripts) == 3
    assert not [one for one in tags.tags if one[0] in ("img", "iframe", "object", "embed", "base")]
    assert not [
        attributes
        for _, attributes in tags.tags
        if any(key.startswith("on") or key == "style" for key in attributes)
    ]
    assert {attributes["href"][0] for tag, attributes in tags.tags if tag == "a" and attributes["href"]} <= {
        "#"
    }
    data = json.loads(tags.scripts[1])
    assert len(data["findings"]) == len(report.findings)


@pytest.mark.parametrize("new", [*SAMPLES, "evil"])
@pytest.mark.parametrize("old", ["costs", "evil", "hostile"])
def test_no_text_of_a_comparison_becomes_markup(old: str, new: str, tmp_path: Path) -> None:
    reports = {**SAMPLES, "evil": html_samples.hostile(tmp_path)}
    page = html.render_diff(compare(reports[old], reports[new]), root=str(tmp_path))
    page.encode("utf-8")
    assert not HIDDEN.search(page)
    assert len(page) < 400_000
    tags = Tags(page)
    assert len(tags.scripts) == 2
    assert not [one for one in tags.tags if one[0] in ("img", "iframe", "object", "embed", "base")]
    assert not [
        attributes
        for _, attributes in tags.tags
        if any(key.startswith("on") or key == "style" for key in attributes)
    ]
    links = {attributes["href"] for tag, attributes in tags.tags if tag == "a"}
    assert {link[0] for link in links if link} == {"#"}


@pytest.mark.parametrize("page", [html.render(CLEAN, sources=None), html.render_diff(SAME, root=None)])
def test_the_policy_allows_the_page_and_nothing_else(page: str) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy
    assert "default-src &#39;none&#39;" in policy[1]
    assert "unsafe" not in policy[1]
    assert policy[1].count("sha256-") == 3
    assert not re.search(r"""(?:src|href|url)\s*[=(]\s*["']?(?:https?:)?//""", page)


def test_a_line_of_a_megabyte_is_cut_in_the_page_and_whole_in_the_report(tmp_path: Path) -> None:
    report = html_samples.hostile(tmp_path)
    assert len(html.render(report, sources=html.OnDisk(lambda _file: True))) < 400_000
    source = report.findings[0].location.source
    assert source is not None
    assert len(source) > 1_000_000
    assert from_dict(to_dict(report)) == report


@pytest.mark.parametrize("name", ["costs", "recompiles", "skips", "suggestions", "clean"])
def test_a_page_of_a_few_findings_is_small(name: str) -> None:
    assert len(html.render(SAMPLES[name], sources=None).encode()) < 100_000


def test_the_page_stands_beside_its_report(tmp_path: Path) -> None:
    report_path = tmp_path / "latest.json"
    assert report_html.write(COSTS, report_path, None, open_=False) == tmp_path / "breakscope.html"
    assert "BS101" in (tmp_path / "breakscope.html").read_text(encoding="utf-8")
    other = tmp_path / "page.html"
    assert report_html.write(COSTS, report_path, other, open_=False) == other


def test_open_shows_the_file_that_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr("webbrowser.open", shown.append)
    target = report_html.write(COSTS, tmp_path / "r.json", None, open_=True)
    assert shown == [target.as_uri()]


def test_a_page_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"cannot write .*: No such file or directory"):
        report_html.write(COSTS, tmp_path / "r.json", tmp_path / "no" / "page.html", open_=False)
    report_path = tmp_path / "r.json"
    report_path.write_text("{}")
    with pytest.raises(OutputError, match="that is the report itself"):
        report_html.write(COSTS, report_path, report_path, open_=False)
    assert report_path.read_text() == "{}"


def test_the_page_of_a_comparison_stands_beside_the_new_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = tmp_path / "old.json", tmp_path / "later" / "new.json"
    new.parent.mkdir()
    save(CLEAN, old)
    save(COSTS, new)
    assert main(["diff", str(old), str(new), "--html"]) == 0
    page = new.parent / "diff.html"
    assert capsys.readouterr().out == f"{page}\n"
    assert '<h1 id="verdict">3 new.</h1>' in page.read_text(encoding="utf-8")
    shown: list[str] = []
    monkeypatch.setattr("webbrowser.open", shown.append)
    other = tmp_path / "page.html"
    assert main(["diff", str(old), str(new), "--open", "-o", str(other)]) == 0
    assert shown == [other.as_uri()]
    assert other.read_bytes() == page.read_bytes()


@pytest.mark.parametrize("name", ["old.json", "new.json"])
def test_the_page_of_a_comparison_never_replaces_a_report(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new, target = tmp_path / "old.json", tmp_path / "new.json", tmp_path / name
    save(CLEAN, old)
    save(COSTS, new)
    before = target.read_bytes()
    assert main(["diff", str(old), str(new), "--html", "-o", str(target)]) == 2
    assert "that is the report itself" in capsys.readouterr().err
    assert target.read_bytes() == before


def test_the_page_says_what_an_earlier_report_does_not_have(tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    save(replace(COSTS, findings=(BRANCH,)), old)
    save(COSTS, new)
    assert main(["report", str(new), "--html", "--known", str(old)]) == 0
    data = json.loads(Tags((tmp_path / "breakscope.html").read_text(encoding="utf-8")).scripts[1])
    assert {one["code"]: one["news"] for one in data["findings"]} == {
        "BS101": "known",
        "BS102": "new",
        "BS104": "new",
    }


def test_importing_the_format_leaves_jinja_alone() -> None:
    code = "import sys, breakscope.render.html; print({'jinja2', 'torch', 'pandas', 'libcst'} & set(sys.modules))"
    assert run_python("-c", code, check=True).stdout == "set()\n"
