"""Fourteen programs of the kinds that people bring: the first screen is the one that they need.

What a person should be told stands at the top of each program, in lines of ``# key: value``:

    first line      how the report begins; "-" where anything but "healthy" will do
    first finding   its code, and the line of the program that is shown with it; or none
    expected        codes that are in the report and not to be acted on: below the line
    told            words that stand in the first finding
    exit            status of scan, of check on its report, of bench
    options         of scan and bench
"""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest
from first_screen import first_finding, first_line
from scanning import rows, run_cold

import breakscope

pytestmark = [pytest.mark.torch, pytest.mark.slow]

PROGRAMS = Path(__file__).parent / "programs"
NAMES = sorted(file.name for file in PROGRAMS.glob("*.py"))
# One of each kind of screen: breaks, a healthy script, recompiles, a backend that fails, other processes, rare ones.
IN_EVERY_RUN = (
    "backend_crash.py",
    "classifier.py",
    "gan.py",
    "rare_break.py",
    "rl_loop.py",
    "service.py",
    "spawned.py",
)
_KEY = re.compile(r"^# ([a-z ]+): (.*)$", re.MULTILINE)


@cache
def said(program: str) -> dict[str, str]:
    """What stands at the program's top."""
    return dict(_KEY.findall((PROGRAMS / program).read_text()))


def run(folder: Path, *words: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    return run_cold(*words, folder=folder, timeout=timeout, COLUMNS="160", OMP_NUM_THREADS="1")


def test_there_are_fourteen_and_each_says_what_is_to_be_told() -> None:
    assert len(NAMES) == 14
    for program in NAMES:
        assert {"walk", "first line", "first finding", "exit"} <= said(program).keys(), program


@pytest.mark.parametrize("program", rows(NAMES, IN_EVERY_RUN))
def test_what_a_person_sees_first(tmp_path: Path, program: str) -> None:
    told = said(program)
    (tmp_path / program).write_text((PROGRAMS / program).read_text())
    scanned = run(tmp_path, "scan", "-q", *told.get("options", "").split(), program)
    screen = run(tmp_path, "report").stdout
    line, (code, finding) = first_line(screen), first_finding(screen)
    assert ("healthy" in line) == (told["first line"] == "healthy")
    if told["first line"] not in {"-", "healthy"}:
        assert line.startswith(told["first line"])
    wanted, _, place = told["first finding"].partition(" | ")
    assert code == wanted
    assert place in finding
    assert told.get("told", "") in finding
    codes = {shown.code for shown in breakscope.load(tmp_path / ".breakscope" / "latest.json").findings}
    assert codes >= {expected for expected in told.get("expected", "").split(", ") if expected}
    assert scanned.returncode == status(program, "scan")
    assert run(tmp_path, "check", ".breakscope/latest.json").returncode == status(program, "check")


@pytest.mark.nightly
@pytest.mark.parametrize("program", NAMES)
def test_the_exit_status_of_bench(tmp_path: Path, program: str) -> None:
    (tmp_path / program).write_text((PROGRAMS / program).read_text())
    backend = said(program).get("options", "--backend aot_eager").split()
    words = ("bench", "-q", *backend, "--processes", "1", "--steps", "20", program)
    done = run(tmp_path, *words, timeout=600)
    assert done.returncode == status(program, "bench"), done.stderr


def status(program: str, of: str) -> int:
    """What the program says that a command of breakscope's exits with."""
    return int(dict(re.findall(r"([a-z]+) (\d)", said(program)["exit"]))[of])
