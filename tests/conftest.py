"""The fixture that scans a script; what it returns is in ``scanning``."""

from __future__ import annotations

import subprocess
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from scanning import Scanned, clean_environment, command


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
