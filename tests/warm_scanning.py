"""Commands in forks of a process that has imported what they need, and otherwise as any command.

A scan takes a third of a second then, a command that needs no torch some hundredths.
"""

from __future__ import annotations

import atexit
import functools
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

from scanning import clean_environment, command

import breakscope
from breakscope.report.model import Finding, Report

sys.path.append(str(Path(__file__).parent / "fix" / "observed"))
from warm import Warm


@dataclass(frozen=True)
class Seen:
    """What a person sees of a script: the report, the screen of ``report``, and how ``check`` ends."""

    report: Report
    screen: str
    check: int


class WarmScans:
    """Scans scripts, one after the other."""

    def __init__(self, warm: Warm) -> None:
        self._warm = warm

    def scan(self, folder: Path, source: str, *options: str, name: str = "script.py") -> Report:
        """Write a script, scan it, and return the report. Its output goes nowhere."""
        (folder / name).write_text(textwrap.dedent(source))
        log = folder / f"{name}.log"
        self._warm.commands([["scan", "-q", *options, name]], folder, log)
        return breakscope.load(folder / ".breakscope" / "latest.json")

    def see(self, folder: Path, source: str, *options: str, name: str = "script.py") -> Seen:
        """Write a script, scan it, show the report and check it."""
        report = self.scan(folder, source, *options, name=name)
        wide = {"COLUMNS": "160"}
        self._warm.commands([["report"]], folder, folder / "screen", environment=wide)
        checked = self._warm.commands([["check", ".breakscope/latest.json"]], folder, folder / "checked")
        screen = (folder / "screen").read_text().partition("\n")[2]  # below the command line
        return Seen(report, screen, checked)

    def scan_both(self, folder: Path, sources: tuple[str, str], *options: str) -> list[tuple[Report, str]]:
        """Scan two scripts; return each one's report and what it left in ``said.json``."""
        commands = []
        for name, source in zip(("before", "after"), sources, strict=True):
            (folder / name).mkdir()
            script, report = folder / name / "script.py", folder / name / "report.json"
            script.write_text(f"import os\nos.chdir({str(folder / name)!r})\n{source}")
            commands.append(["scan", "-q", "-o", str(report), *options, str(script)])
        self._warm.commands(commands, folder, folder / "log")
        return [
            (breakscope.load(folder / name / "report.json"), (folder / name / "said.json").read_text())
            for name in ("before", "after")
        ]


@functools.cache
def warm_process(*, torch: bool = True) -> Warm:
    """A process that has imported breakscope, and torch or not: one of each for all tests."""
    warm = Warm("breakscope", torch=torch)
    atexit.register(warm.close)
    return warm


def run_command(
    *words: str, folder: Path, torch: bool = False, timeout: float = 120, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command of breakscope in a folder.

    Args:
        torch: whether it starts a script that imports torch, which is a fork then. Else it is a fresh process.
    """
    done: subprocess.CompletedProcess[bytes]
    if "PYTHONPATH" in environment:  # which counts only where Python starts
        variables = clean_environment(**environment)
        done = subprocess.run(
            command(*words), cwd=folder, capture_output=True, timeout=timeout, env=variables, check=False
        )
    else:
        done = warm_process(torch=torch).command(*words, folder=folder, limit_s=timeout, **environment)
    said, errors = (text.decode(errors="replace") for text in (done.stdout, done.stderr))
    return subprocess.CompletedProcess(done.args, done.returncode, said, errors)


def coded(report: Report, code: str) -> list[Finding]:
    """The findings with a code."""
    return [finding for finding in report.findings if finding.code == code]
