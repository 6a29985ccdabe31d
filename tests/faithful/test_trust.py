"""A report is data: nothing that it names is shown or run unless it is the user's own."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from report_samples import BRANCH
from scanning import run_cold

import breakscope
from breakscope.cli import main
from breakscope.inside import overlay
from breakscope.report import schema
from breakscope.report.model import Report

PRIVATE = "line one of a private file\nline two of it\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def scanned(folder: Path) -> Report:
    """A report of a script that breaks nowhere, made here."""
    (folder / "script.py").write_text("open('ran', 'a').close()\n")
    run_cold("scan", "-q", "script.py", folder=folder, check=True)
    (folder / "ran").unlink()
    return breakscope.load(folder / ".breakscope" / "latest.json")


def naming(report: Report, file: Path, line: str, *, hashed: bool) -> Report:
    """The report with a finding in a file."""
    place = replace(BRANCH.location, file=str(file), line=1, end_line=1, source=line)
    finding = replace(BRANCH, location=place, stack=())
    sources = {str(file): sha256(file.read_bytes()).hexdigest()} if hashed else {}
    return replace(report, findings=(finding,), run=replace(report.run, sources=sources))


def page_of(folder: Path, report: Report) -> str:
    place = folder / "report.json"
    schema.save(report, place)
    assert main(["report", str(place), "--html"]) == 0
    return (folder / "breakscope.html").read_text()


@pytest.mark.parametrize("hashed", [True, False])
def test_a_page_shows_no_file_outside_of_the_project(project: Path, hashed: bool) -> None:
    secret = project.parent / "elsewhere" / "key.py"
    secret.parent.mkdir()
    secret.write_text(PRIVATE)
    page = page_of(project, naming(scanned(project), secret, "line one of a private file", hashed=hashed))
    assert "line two of it" not in page


def test_a_page_shows_no_file_that_the_scan_did_not_see(project: Path) -> None:
    file = project / "notes.py"
    file.write_text(PRIVATE)
    report = scanned(project)
    assert "line two of it" not in page_of(
        project, naming(report, file, "line one of a private file", hashed=False)
    )
    assert "line two of it" in page_of(
        project, naming(report, file, "line one of a private file", hashed=True)
    )


def test_a_link_out_of_the_project_is_not_followed(project: Path) -> None:
    secret = project.parent / "key.py"
    secret.write_text(PRIVATE)
    (project / "link.py").symlink_to(secret)
    report = naming(scanned(project), project / "link.py", "line one of a private file", hashed=True)
    assert "line two of it" not in page_of(project, report)


@pytest.mark.parametrize("name", ["fix", "remedy", "prove my.patch --report"])
@pytest.mark.parametrize("how", ["another machine", "unknown machine", "another project", "up and out"])
def test_a_foreign_report_runs_nothing_unasked(
    project: Path, name: str, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    report = scanned(project)
    other = project.parent / "other"
    other.mkdir()
    (other / "script.py").write_text("open('ran', 'a').close()\n")
    changed = {
        "another machine": {"machine": "0" * 32},
        "unknown machine": {"machine": None},
        "another project": {"cwd": str(other)},
        "up and out": {"script": "../other/script.py"},
    }[how]
    schema.save(replace(report, run=replace(report.run, **changed)), project / "report.json")
    (project / "my.patch").write_text("--- a/script.py\n+++ b/script.py\n@@ -1 +1 @@\n-1\n+2\n")
    assert main([*name.split(), "report.json"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "--trust-report" in said
    assert not list(project.parent.rglob("ran"))


def test_a_report_of_ones_own_runs(project: Path) -> None:
    scanned(project)
    assert main(["remedy"]) == 0


# ---- fixes ----


FIX = {"file": "/project/model.py", "module": None, "sha256": "0" * 64, "edits": [[0, 1, "x"]], "rules": []}


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"file": "../model.py"}, "no plain absolute path"),
        ({"file": "/project/../etc/x.py"}, "no plain absolute path"),
        ({"file": "model.py"}, "no plain absolute path"),
        ({"file": 3}, "damaged"),
        ({"edits": "x"}, "damaged"),
        ({"edits": [[3, 1, "x"]]}, "damaged"),
        ({"edits": [[0, 1]]}, "damaged"),
        ({"module": 3}, "damaged"),
    ],
)
def test_a_manifest_that_no_fix_of_ours_writes_is_refused(
    tmp_path: Path, changed: dict[str, object], why: str
) -> None:
    _manifest(tmp_path, {**FIX, **changed})
    with pytest.raises(ValueError, match=why):
        overlay.check(tmp_path)


def test_a_manifest_that_is_a_link_or_names_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / "fixes").mkdir()
    _manifest(tmp_path, FIX)
    (tmp_path / "fixes" / "manifest.json").symlink_to(tmp_path / "manifest.json")
    with pytest.raises(ValueError, match="is a link"):
        overlay.check(tmp_path / "fixes")
    (tmp_path / "model.py").symlink_to(tmp_path / "elsewhere.py")
    _manifest(tmp_path, {**FIX, "file": str(tmp_path / "model.py")})
    with pytest.raises(ValueError, match="which is a link"):
        overlay.check(tmp_path)


def test_a_manifest_that_sets_what_fixes_do_not_set_is_refused(tmp_path: Path) -> None:
    _manifest(tmp_path, FIX, config={"a.b": True})
    with pytest.raises(ValueError, match="sets what fixes do not set"):
        overlay.check(tmp_path)


@pytest.mark.skipif(os.getuid() != 0, reason="giving a file away needs root")
def test_a_manifest_of_another_user_is_refused(tmp_path: Path) -> None:
    _manifest(tmp_path, FIX)
    overlay.check(tmp_path)
    os.chown(tmp_path / "manifest.json", 12345, -1)
    with pytest.raises(ValueError, match="belongs to another user"):
        overlay.check(tmp_path)


def _manifest(folder: Path, fix: dict[str, object], config: dict[str, object] | None = None) -> None:
    data = {"version": overlay.VERSION, "config": config or {}, "files": [fix]}
    (folder / "manifest.json").write_text(json.dumps(data))
