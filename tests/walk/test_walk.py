"""Fourteen programs of the kinds that people bring: the first screen is the one that they need.

What a person should be told stands at the top of each program, in lines of ``# key: value``:

    first line      how the report begins; "-" where anything but "healthy" will do
    first finding   its code, and the line of the program that is shown with it; or none
    expected        codes that are in the report and not to be acted on: below the line
    told            words that stand in the first finding
    exit            status of scan, of check on its report, of bench
    options         of scan and bench
    waits           what is not yet so, each with the item of the issue that brings it: strictly expected to fail
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from first_screen import first_finding, first_line
from scanning import clean_environment, command

import breakscope

pytestmark = [pytest.mark.torch, pytest.mark.slow]

PROGRAMS = Path(__file__).parent / "programs"
_KEY = re.compile(r"^# ([a-z ]+): (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Walked:
    """A program that was scanned and checked: what a person sees."""

    scan: int
    check: int
    screen: str
    codes: frozenset[str]

    @property
    def first_line(self) -> str:
        return first_line(self.screen)

    @property
    def first_finding(self) -> tuple[str, str]:
        """Its code, and all that is said of it, in one line; empty where there is none."""
        return first_finding(self.screen)


@cache
def said(program: str) -> dict[str, str]:
    """What stands at the program's top."""
    return dict(_KEY.findall((PROGRAMS / program).read_text()))


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Scan and check a program, once for all that is asked of it."""

    # One folder for all workers of the test run: whoever comes first walks, the others read what it saw.
    shared = tmp_path_factory.getbasetemp().parent / "walk"

    @cache
    def walk(program: str) -> Walked:
        folder = shared / program.removesuffix(".py")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            return seen(folder / "walked.json")
        walked = walk_in(folder, program)
        kept = {**asdict(walked), "codes": sorted(walked.codes)}
        (folder / "walked.new").write_text(json.dumps(kept))
        (folder / "walked.new").rename(folder / "walked.json")
        return walked

    def walk_in(folder: Path, program: str) -> Walked:
        (folder / program).write_text((PROGRAMS / program).read_text())
        scanned = run(folder, "scan", "-q", *said(program).get("options", "").split(), program)
        checked = run(folder, "check", ".breakscope/latest.json")
        shown = run(folder, "report")
        report = breakscope.load(folder / ".breakscope" / "latest.json")
        codes = frozenset(finding.code for finding in report.findings)
        return Walked(scanned.returncode, checked.returncode, shown.stdout, codes)

    return walk


def seen(file: Path) -> Walked:
    """What another worker saw, as soon as it has."""
    for _ in range(3_000):
        if file.exists():
            kept = json.loads(file.read_text())
            return Walked(**{**kept, "codes": frozenset(kept["codes"])})
        time.sleep(0.1)
    raise AssertionError(f"{file.parent.name} was not walked to its end")


def run(folder: Path, *words: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*words),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=timeout,
        env=clean_environment(COLUMNS="160", OMP_NUM_THREADS="1"),
        check=False,
    )


def programs(aspect: str, key: str | None = None) -> pytest.MarkDecorator:
    """The programs that say something of an aspect; those that wait for an item of the issue fail until it comes."""
    cases = []
    for file in sorted(PROGRAMS.glob("*.py")):
        if (key or aspect) in said(file.name):
            item = dict(re.findall(r"([a-z][a-z ]*): (\d+)", said(file.name).get("waits", ""))).get(aspect)
            marks = [] if item is None else [pytest.mark.xfail(reason=f"item {item}", strict=True)]
            cases.append(pytest.param(file.name, marks=marks, id=file.stem))
    return pytest.mark.parametrize("program", cases)


def test_there_are_fourteen_and_each_says_what_is_to_be_told() -> None:
    files = sorted(PROGRAMS.glob("*.py"))
    assert len(files) == 14
    for file in files:
        assert {"walk", "first line", "first finding", "exit"} <= said(file.name).keys(), file.name


@programs("first line")
def test_the_first_line(walked: Any, program: str) -> None:
    wanted, shown = said(program)["first line"], walked(program).first_line
    if wanted == "-":
        assert "healthy" not in shown
    elif wanted == "healthy":
        assert "healthy" in shown
    else:
        assert shown.startswith(wanted)


@programs("first finding")
def test_the_first_finding(walked: Any, program: str) -> None:
    code, _, line = said(program)["first finding"].partition(" | ")
    shown, text = walked(program).first_finding
    assert shown == code
    assert line in text


@programs("expected")
def test_what_is_expected_is_in_the_report(walked: Any, program: str) -> None:
    assert set(said(program)["expected"].split(", ")) <= walked(program).codes


@programs("told")
def test_what_the_first_finding_tells_to_do(walked: Any, program: str) -> None:
    assert said(program)["told"] in walked(program).first_finding[1]


@programs("scan", "exit")
def test_the_exit_status_of_scan(walked: Any, program: str) -> None:
    assert walked(program).scan == status(program, "scan")


@programs("check", "exit")
def test_the_exit_status_of_check(walked: Any, program: str) -> None:
    assert walked(program).check == status(program, "check")


@pytest.mark.nightly
@programs("bench", "exit")
def test_the_exit_status_of_bench(tmp_path: Path, program: str) -> None:
    (tmp_path / program).write_text((PROGRAMS / program).read_text())
    backend = said(program).get("options", "--backend aot_eager").split()
    words = ("bench", "-q", *backend, "--processes", "1", "--steps", "20", program)
    done = run(tmp_path, *words, timeout=600)
    assert done.returncode == status(program, "bench"), done.stderr


def status(program: str, of: str) -> int:
    """What the program says that a command of breakscope's exits with."""
    return int(dict(re.findall(r"([a-z]+) (\d)", said(program)["exit"]))[of])
