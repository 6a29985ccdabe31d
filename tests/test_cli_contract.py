"""What people's scripts and CI rely on: every command with its options, and the exit code of every kind of ending.

The help of each command lies in ``recorded/help``. A change of it is a change of the contract: record it with
``python tests/test_cli_contract.py`` and say in the changelog what was added. What is taken away needs a new
minor version (CONTRIBUTING.md, "Versions").
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from unittest import mock

import pytest
import report_samples as samples

from breakscope.cli import main
from breakscope.cli.app import NAMES
from breakscope.report import schema
from breakscope.report.model import Report

RECORDED = Path(__file__).parent / "recorded" / "help"
COMMANDS = ("", *NAMES)


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


def breakscope(*words: str) -> Ended:
    """A command line, run in this process."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(words)
        out.flush()
    return Ended(code, out.buffer.getvalue().decode(), err.getvalue())


def help_of(name: str) -> str:
    """The help as a terminal of 100 columns shows it, whatever this one is and says."""
    plain = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "FORCE_COLOR")}
    with mock.patch.dict(os.environ, {**plain, "COLUMNS": "100", "NO_COLOR": "1"}, clear=True):
        ended = breakscope(*filter(None, [name, "--help"]))
    assert ended.code == 0, ended.err
    return ended.out


def file_of(name: str) -> Path:
    return RECORDED / f"{name or 'breakscope'}.txt"


@pytest.mark.parametrize("name", COMMANDS, ids=lambda name: name or "breakscope")
def test_the_help_is_as_recorded(name: str) -> None:
    assert help_of(name) == file_of(name).read_text()


def test_every_recorded_command_is_still_there() -> None:
    assert {file.stem for file in RECORDED.iterdir()} == {*NAMES, "breakscope"}


def test_without_a_command_it_says_what_there_is() -> None:
    alone = breakscope()
    assert alone.code == 0
    assert "Repair:\n  fix" in alone.out
    assert alone.err == ""


# ---- exit codes ----


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that holds a report with findings, one without, one in which nothing was compiled, and rubbish."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / "train.py").write_text("print('not run')\n")
    (tmp_path / "branchy.py").write_text(
        "import torch\n\n\n@torch.compile\ndef f(x):\n    if x.sum() > 0:\n        x = x + 1\n    return x\n"
    )
    for name, report in {
        "broken": samples.COSTS,
        "healthy": samples.CLEAN,
        "vacuous": samples.VACUOUS,
    }.items():
        save(report, tmp_path, tmp_path / f"{name}.json")
    (tmp_path / "rubbish.json").write_text("{")
    return tmp_path


def save(report: Report, folder: Path, file: Path) -> None:
    run = replace(report.run, cwd=str(folder), script="train.py")
    schema.save(replace(report, run=run), file)


CODES = [
    ("0: what was asked for was done", 0, "--version"),
    ("0: what was asked for was done", 0, "report broken.json"),
    ("0: what was asked for was done", 0, "diff broken.json healthy.json"),
    ("0: what was asked for was done", 0, "merge broken.json healthy.json -o both.json"),
    ("0: what was asked for was done", 0, "explain BS101"),
    ("0: what was asked for was done", 0, "config"),
    ("0: what was asked for was done", 0, "schema"),
    ("0: nothing new was found", 0, "check healthy.json"),
    ("0: lint found nothing", 0, "lint train.py"),
    ("1: something new was found", 1, "check broken.json"),
    ("1: lint found a likely break", 1, "lint branchy.py"),
    ("2: usage", 2, "nonsense"),
    ("2: usage", 2, "report --no-such-option"),
    ("2: usage", 2, "scan"),
    ("2: usage", 2, "scan no_such_script.py"),
    ("2: usage", 2, "scan --steps many train.py"),
    ("2: usage", 2, "report no_such_report.json"),
    ("2: usage", 2, "report rubbish.json"),
    ("2: usage", 2, "report broken.json -f no-such-format"),
    ("2: usage", 2, "check rubbish.json"),
    ("2: usage", 2, "explain BS999"),
    ("2: usage", 2, "lint no_such_file.py"),
    ("3: a report that means nothing", 3, "check vacuous.json"),
]


@pytest.mark.parametrize(("meaning", "code", "line"), CODES, ids=[line for _, _, line in CODES])
def test_exit_codes_mean_what_the_readme_says(folder: Path, meaning: str, code: int, line: str) -> None:
    ended = breakscope(*line.split())
    assert ended.code == code, f"{meaning}\n{ended.out}\n{ended.err}"
    if code == 2:
        sentence = ended.err.strip()
        assert sentence.startswith("breakscope: ")
        assert "\n" not in sentence
        assert "Traceback" not in sentence


if __name__ == "__main__":
    RECORDED.mkdir(parents=True, exist_ok=True)
    for stale in RECORDED.iterdir():
        stale.unlink()
    for command in COMMANDS:
        file_of(command).write_text(help_of(command))
    print(f"recorded the help of {len(COMMANDS)} commands in {RECORDED}", file=sys.stderr)
