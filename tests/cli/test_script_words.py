"""Options of ours that stand after the script go to it, as with Python; that is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from scanning import run_cold

from breakscope.cli.app import Commands

PLAIN = "import sys\nprint(sys.argv)\n"
PARSER = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('-o', \"--steps\")\n"
FIELDS = "class Asked:\n    max_restarts: int = 0\n    mode: str = ''\n\ndef steps(timeout): ...\n"


@pytest.fixture(autouse=True)
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plain.py").write_text(PLAIN)
    (tmp_path / "far.py").write_text("from jobs import command_line\n")
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "__init__.py").touch()
    (tmp_path / "jobs" / "command_line.py").write_text("from .fields import Asked\n")
    (tmp_path / "jobs" / "fields.py").write_text(FIELDS)
    (tmp_path / "parser.py").write_text(PARSER)
    (tmp_path / "parsing.py").write_text(PARSER)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        (
            "scan plain.py -o r.json",
            "`-o` stood after the script and went to it; options of scan go before it",
        ),
        ("scan plain.py --steps=3 --no-cost --steps 4", "`--steps`, `--no-cost` stood"),
        ("scan -m plain -o r.json", "`-o`"),
        ("run plain.py --fixes x", "options of run go"),
        ("bench plain.py 1 --seconds 3", "options of bench go"),
        ("check -- plain.py --max-sites 3", "options of check go"),
        ("check -- plain.py --backend eager", "`--backend`"),
        ("scan parser.py -o x --steps 3 --quiet", "note: `--quiet` stood"),
        ("scan missing.py -o r.json", "`-o`"),
        ("scan -m missing.module -o r.json", "`-o`"),
        ("scan far.py --mode a --steps 3 --timeout 3", "note: `--steps`, `--timeout` stood"),
    ],
)
def test_it_is_said(line: str, named: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = closed(line, capsys)
    assert named in said
    assert said.startswith("breakscope: note: ")
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(
    "line",
    [
        "scan -o r.json plain.py",
        "scan plain.py --epochs 3 x-o",
        "scan plain.py --help",
        "scan plain.py -- -o x",
        "scan -- plain.py",
        "scan parser.py -o x --steps 3",
        "scan -m parsing -o x --steps 3",
        "scan far.py --mode a --max-restarts 3",
        "check -- parser.py -o x",
        "check r.json --max-sites 3",
        "check",
        "scan",
        "scan -m",
    ],
)
def test_nothing_is_said(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert closed(line, capsys) == ""


def closed(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What is said when the command is over."""
    name, *words = line.split()
    context = Commands()[name].make_context(name, words)
    assert capsys.readouterr().err == ""
    context.close()
    return capsys.readouterr().err


def test_a_command_says_it_on_stderr() -> None:
    done = run_cold("check", "--", "missing.py", "--strict")
    assert done.returncode == 2
    assert "`--strict` stood after the script" in done.stderr
    assert "there is no file missing.py" in done.stderr
