"""The fixture that measures a script; each test makes few runs, for each has several processes."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from warm_scanning import run_command

import breakscope
from breakscope.report import benchmark
from breakscope.report.benchmark import ArmResult, Benchmark
from breakscope.report.model import Report


@dataclass(frozen=True)
class Measured:
    """A benchmark that is over."""

    exit_code: int
    stdout: str
    stderr: str
    folder: Path

    @property
    def report(self) -> Report:
        return breakscope.load(self.folder / ".breakscope" / "bench.json")

    @property
    def benchmark(self) -> Benchmark:
        found = benchmark.from_dict(self.report.benchmark)
        assert found is not None
        return found

    def arm(self, name: str) -> ArmResult:
        return next(arm for arm in self.benchmark.arms if arm.name == name)


@pytest.fixture
def bench(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., Measured]:
    """Write a script, measure it, and return what came of it."""
    needs_torch = request.node.get_closest_marker("torch") is not None

    def run(source: str, *options: str, args: tuple[str, ...] = (), timeout: float = 400) -> Measured:
        (tmp_path / "script.py").write_text(textwrap.dedent(source))
        done = run_command(
            *("bench", *options, "script.py", *args),
            folder=tmp_path,
            torch=needs_torch,
            timeout=timeout,
            COLUMNS="200",
            XDG_CACHE_HOME=str(tmp_path / "cache"),
        )
        return Measured(done.returncode, done.stdout, done.stderr, tmp_path)

    return run
