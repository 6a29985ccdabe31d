"""Scans of real scripts in real child processes."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

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
