"""Scans in forks of a process that has imported torch: a third of a second each, and otherwise as any scan."""

from __future__ import annotations

import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

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


def coded(report: Report, code: str) -> list[Finding]:
    """The findings with a code."""
    return [finding for finding in report.findings if finding.code == code]
