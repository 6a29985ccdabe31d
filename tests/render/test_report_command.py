"""``breakscope report`` and ``breakscope diff`` as commands."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from report_samples import BRANCH, COSTS, HOSTILE, HUNDRED, ITEM, LOOP

from breakscope.cli import main
from breakscope.render import FORMATS
from breakscope.report import schema
from breakscope.report.model import Report


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository's folder, which is the current one, with a report in the default place."""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".breakscope").mkdir()
    save(COSTS, tmp_path / ".breakscope" / "latest.json")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "100")  # as wide as what is written to a file
    return tmp_path


def save(report: Report, path: Path) -> Path:
    schema.save(report, path)
    return path


@pytest.mark.parametrize("name", sorted(FORMATS.keys() - {"parquet"}))
def test_every_format_prints_and_writes_the_same(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "--format", name]) == 0
    printed = capsys.readouterr().out
    assert main(["report", "--format", name, "-o", "out"]) == 0
    assert capsys.readouterr().out == ""
    written = (folder / "out").read_text(encoding="utf-8")
    if name == "terminal":  # no next steps in a file
        assert printed.startswith(written)
    else:
        assert printed == written
    assert sorted(path.name for path in folder.iterdir()) == [".breakscope", ".git", "out"]


def test_parquet_goes_to_a_file_or_says_what_is_missing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["report", "--format", "parquet", "-o", "out.parquet"])
    captured = capsys.readouterr()
    if code:
        assert (code, captured.err) == (
            2,
            "breakscope: parquet needs pyarrow: pip install 'torch-breakscope[parquet]'\n",
        )
        assert not (folder / "out.parquet").exists()
    else:
        assert (folder / "out.parquet").read_bytes()[:4] == b"PAR1"


def test_a_format_that_is_none_is_a_usage_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--format", "pdf"]) == 2
    assert capsys.readouterr().err == (
        "breakscope: no format 'pdf': "
        "there are terminal, json, markdown, sarif, github, junit, csv, parquet, warmup, perfetto, speedscope, issue\n"
    )


def test_an_unwritable_output_is_an_error_and_leaves_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "--format", "sarif", "-o", "missing/out.sarif"]) == 2
    assert capsys.readouterr().err.startswith("breakscope: cannot write the report to missing/out.sarif: ")
    assert not (folder / "missing").exists()


def test_an_earlier_file_stays_when_writing_fails(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "LOG.md").write_text("the old one")

    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(schema.os, "replace", fail)
    assert main(["report", "--format", "markdown", "-o", "LOG.md"]) == 2
    assert (folder / "LOG.md").read_text() == "the old one"
    assert "No space left on device" in capsys.readouterr().err


def test_limit_and_all_still_count(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(HUNDRED, folder / "r.json")
    assert main(["report", "r.json", "--limit", "3"]) == 0
    assert "and 97 more" in capsys.readouterr().out
    assert main(["report", "r.json", "--all"]) == 0
    assert "97 more" not in capsys.readouterr().out


def test_hostile_reports_go_through_every_format(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(HOSTILE, folder / "h.json")
    for name in FORMATS.keys() - {"parquet"}:
        assert main(["report", "h.json", "--format", name, "-o", "out"]) == 0, capsys.readouterr().err
        (folder / "out").read_text(encoding="utf-8")


def test_paths_are_relative_to_the_repository(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inside = folder / "pkg"
    inside.mkdir()
    moved = replace(BRANCH, location=replace(BRANCH.location, file=str(inside / "model.py")))
    run = replace(COSTS.run, cwd=str(inside))
    save(replace(COSTS, run=run, findings=(moved,)), folder / "r.json")
    assert main(["report", "r.json", "--format", "sarif"]) == 0
    result = json.loads(capsys.readouterr().out)["runs"][0]["results"][0]
    artifact = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert artifact == {"uri": "pkg/model.py", "uriBaseId": "SRCROOT"}


def test_known_findings_come_from_an_earlier_report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(replace(COSTS, findings=(BRANCH,)), folder / "old.json")
    assert main(["report", "--format", "github", "--known", "old.json"]) == 0
    titles = capsys.readouterr().out.splitlines()
    assert ["title=new%3A" in line for line in titles[:3]] == [True, True, False]


# ---- the step summary ----


def test_the_summary_of_a_workflow_step_gets_the_whole_report(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = folder / "summary.md"
    summary.write_text("# earlier\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    save(HUNDRED, folder / "r.json")
    assert main(["report", "r.json", "--format", "github"]) == 0
    text = summary.read_text()
    assert text.startswith("# earlier\n\n## breakscope: 100 findings")
    assert text.count("<details>") == 100
    assert main(["report", "r.json", "--format", "markdown"]) == 0
    assert summary.read_text() == text


@pytest.mark.parametrize("room", [0, 100, 5_000, 40_000])
def test_the_summary_never_outgrows_what_github_takes(
    room: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = 1024 * 1024
    summary = folder / "summary.md"
    summary.write_bytes(b"x" * (limit - room))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    save(HUNDRED, folder / "r.json")
    assert main(["report", "r.json", "--format", "github"]) == 0
    assert summary.stat().st_size <= limit
    assert (summary.stat().st_size > limit - room) == (room > 0)


def test_a_summary_that_cannot_be_written_is_an_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder))
    assert main(["report", "--format", "github"]) == 2
    assert "cannot write the step summary" in capsys.readouterr().err


# ---- diff ----


@pytest.fixture
def two(folder: Path) -> list[str]:
    save(replace(COSTS, findings=(BRANCH, ITEM)), folder / "old.json")
    save(replace(COSTS, findings=(BRANCH, LOOP), run=replace(COSTS.run, torch="2.15.0")), folder / "new.json")
    return ["diff", "old.json", "new.json"]


def test_diff_prints_and_exits_with_zero(two: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(two) == 0
    out = capsys.readouterr().out
    assert "1 new, 1 fixed, 1 unchanged" in out
    assert "torch  2.13.0 -> 2.15.0" in out
    assert "\x1b" not in out


def test_diff_in_other_formats(two: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*two, "--format", "json"]) == 0
    assert [one["code"] for one in json.loads(capsys.readouterr().out)["new"]] == ["BS301"]
    assert main([*two, "--format", "markdown", "-o", "diff.md"]) == 0
    assert (folder / "diff.md").read_text().startswith("## breakscope: 1 new, 1 fixed, 1 unchanged")


def test_diff_of_something_that_is_no_report(
    two: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", "old.json", "none.json"]) == 2
    assert "none.json: no such file" in capsys.readouterr().err
