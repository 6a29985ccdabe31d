"""Scans of real scripts in real child processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import breakscope
from breakscope.report.model import Report

os.environ.setdefault("OMP_NUM_THREADS", "1")


@dataclass(frozen=True)
class Scanned:
    """A scan that is over."""

    exit_code: int
    stdout: bytes
    stderr: str
    folder: Path

    @property
    def report(self) -> Report:
        return breakscope.load(self.folder / ".breakscope" / "latest.json")

    @property
    def text(self) -> str:
        return self.stdout.decode()


def command(*words: str) -> list[str]:
    """A breakscope command line of the interpreter under test."""
    return [sys.executable, "-m", "breakscope", *words]


def clean_environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("BREAKSCOPE", "COV_"))}
    # The package is found as the user's own: installed, or beside the tests.
    return {**kept, **more}


def run_python(
    *words: str,
    folder: Path | None = None,
    stdin: str | None = None,
    timeout: float = 600,
    check: bool = False,
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """Run the Python under test in a fresh process."""
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout,
        env=clean_environment(**environment),
        check=check,
    )


def run_cold(*words: str, folder: Path | None = None, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command of breakscope in a fresh process; ``warm_scanning.run_command`` takes a tenth of the time."""
    return run_python("-m", "breakscope", *words, folder=folder, **options)


def elsewhere(text: str) -> str:
    """A text as it would be in a checkout of another name: a folder called breakscope is no frame of ours."""
    return text.replace(str(Path(__file__).resolve().parent.parent), "")


def rows(table: Iterable[Any], every_run: Collection[str], quick: Collection[str] | None = None) -> list[Any]:
    """Parameters of a test from a table of names, or of what has a name.

    Args:
        every_run: names of the rows that are in every run; the others are left to the night.
        quick: names of those that are in ``make quick``, too; without it, the test's own marks say that.
    """
    params = []
    for row in table:
        name = getattr(row, "name", row)
        slow = quick is not None and name not in quick
        marks = [pytest.mark.slow] * slow if name in every_run else [pytest.mark.nightly]
        params.append(pytest.param(row, id=name, marks=marks))
    return params
