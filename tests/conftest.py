"""Scans of real scripts in real child processes."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

import breakscope
from breakscope.model import Report

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


@pytest.fixture
def scan(tmp_path: Path) -> Callable[..., Scanned]:
    """Write a script, scan it, and return what came of it."""

    def run(
        source: str,
        *options: str,
        args: Sequence[str] = (),
        name: str = "script.py",
        stdin: bytes = b"",
        quiet: bool = True,
        timeout: float = 120,
        **environment: str,
    ) -> Scanned:
        (tmp_path / name).write_text(textwrap.dedent(source))
        words = ["scan", *(["-q"] if quiet else []), *options, name, *args]
        done = subprocess.run(
            command(*words),
            cwd=tmp_path,
            input=stdin,
            capture_output=True,
            timeout=timeout,
            env=clean_environment(**environment),
            check=False,
        )
        return Scanned(done.returncode, done.stdout, done.stderr.decode(errors="replace"), tmp_path)

    return run
