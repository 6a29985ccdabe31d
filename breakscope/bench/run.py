"""One benchmark, from a command line to a report."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType

from breakscope import schema
from breakscope.bench import assemble
from breakscope.bench.conduct import Conducted, Conductor
from breakscope.bench.plan import ArmSettings, Options
from breakscope.benchmark import Benchmark, to_dict
from breakscope.capture.observe import Observed, observe
from breakscope.capture.scan import check_target
from breakscope.capture.settings import Settings
from breakscope.child import launch
from breakscope.child.launch import Program
from breakscope.child.program import check_torch, project_roots
from breakscope.errors import ReportError, UsageError
from breakscope.model import Report

_COUNTED_STEPS = 6


def bench(
    program: Program, options: Options, beside: Path, say: Callable[[str], None]
) -> tuple[Report, Benchmark]:
    """Measure every arm, and count the crossings by a short scan while the arms start.

    Args:
        beside: folder for the run's own files, removed in the end.
        say: takes the live line.

    Raises:
        BreakscopeError: if nothing could be run.
    """
    check_torch()
    settings = Settings(compile=options.function or "auto", steps=_COUNTED_STEPS, seed=options.seed)
    check_target(program, settings)
    if options.fixes is not None and not Path(options.fixes).is_dir():
        raise UsageError(f"--fixes: there is no folder {options.fixes}")
    began = time.monotonic()
    with launch.workspace(beside) as folder:
        shared = ArmSettings(
            variant="eager",
            mode="as-script",
            dynamic="auto",
            backend=options.backend,
            unit=options.unit,
            function=options.function,
            fixes=None,
            channel=-1,
            outputs="",
            script=program.path,
            roots=project_roots(program, Path.cwd()),
            seed=options.seed,
            kernels=options.kernels,
        )
        seen: list[Observed] = []
        crossings: dict[str, float | None] = {}

        def count() -> None:
            say("counting crossings")
            fixed = _start_fixed_scan(program, options, folder)
            (folder / "scan").mkdir()
            with (folder / "scan" / "log").open("wb") as log:
                seen.append(
                    observe(program, settings, folder / "scan", options.timeout_s, stdout=log.fileno())
                )
            if seen[0].ended.status == "interrupted":
                raise KeyboardInterrupt
            crossings["compiled"] = _crossings(seen[0].report)
            if fixed is not None:
                crossings["fixed"] = _read_fixed_scan(fixed, folder, options.timeout_s)

        conductor = Conductor(program, options, shared, folder, say)
        with _interruptible():
            found = conductor.run(meanwhile=count)
        report = seen[0].report
        result = assemble.benchmark(found, options, crossings, time.monotonic() - began)
        result = _with_kernels(result, found, options, folder)
    return replace(report, benchmark=to_dict(result)), result


@contextmanager
def _interruptible() -> Iterator[None]:
    """Have whoever ends us end the arms' processes too: they have sessions of their own."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _start_fixed_scan(program: Program, options: Options, folder: Path) -> subprocess.Popen[bytes] | None:
    """The same short scan with the fixes, beside the first one; as a command, since a scan needs signals."""
    if options.fixes is None:
        return None
    words = ["scan", "--quiet", "--fixes", options.fixes, "--steps", str(_COUNTED_STEPS)]
    words += [
        "--compile",
        options.function or "auto",
        "--output",
        str(folder / "fixed.json"),
        *program.command,
    ]
    path = os.pathsep.join(filter(None, [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")]))
    with (folder / "fixed.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "breakscope", *words],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "PYTHONPATH": path},
        )


def _read_fixed_scan(scan: subprocess.Popen[bytes], folder: Path, timeout_s: float) -> float | None:
    try:
        scan.wait(timeout_s)
        return _crossings(schema.load(folder / "fixed.json"))
    except (subprocess.TimeoutExpired, ReportError):
        return None  # the arm's own failure will say why; without a scan its crossings are not known
    finally:
        scan.kill()


def _crossings(report: Report) -> float | None:
    steps, crossings = report.totals.steps, report.totals.crossings
    return None if not steps or crossings is None else crossings / steps


def _with_kernels(result: Benchmark, found: Conducted, options: Options, folder: Path) -> Benchmark:
    if not options.kernels:
        return result
    from breakscope.bench import kernels

    if options.export is not None and (folder / "export").is_dir():
        shutil.copytree(folder / "export", options.export, dirs_exist_ok=True)
    return kernels.add(result, found, options)
