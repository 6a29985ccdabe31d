"""One benchmark, from a command line to a report."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType

from breakscope.bench import assemble
from breakscope.bench import count as counting
from breakscope.bench.conduct import Conductor
from breakscope.bench.conducted import Conducted
from breakscope.errors import UsageError
from breakscope.inside import overlay
from breakscope.inside.bench.plan import ArmSettings, Options
from breakscope.inside.settings import Settings
from breakscope.report.benchmark import Benchmark, to_dict
from breakscope.report.model import Report
from breakscope.run import launch
from breakscope.run.launch import Program
from breakscope.run.observe import Observed, observe
from breakscope.run.program import check_torch, project_roots
from breakscope.run.scan import check_target

_COUNTED_STEPS = 6
_COUNTING_S = 180.0  # a script whose few steps have a long tail: what was counted up to then counts


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
    if options.fixes is not None and not (Path(options.fixes) / overlay.MANIFEST).is_file():
        raise UsageError(f"--fixes: {options.fixes} holds no fixes; breakscope fix writes such a folder")
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
        counted: dict[str, Report] = {}

        def count() -> None:
            say("counting crossings")
            fixed = None
            if options.fixes is not None:
                fixed_settings = replace(settings, fixes=options.fixes)
                fixed = counting.start(program, fixed_settings, folder / "fixed", _COUNTING_S)
            try:
                seen.append(_scan(program, settings, folder / "scan", _COUNTING_S))
                if fixed is not None:
                    fixed_report = counting.finish(fixed, folder / "fixed")
                    if fixed_report is not None:
                        counted["fixed"] = fixed_report
            finally:
                if fixed is not None:
                    fixed.terminate()  # which it passes on to its script
            counted["compiled"] = seen[0].report

        conductor = Conductor(program, options, shared, folder, say)
        with _interruptible():
            found = conductor.run(meanwhile=count)
        report = seen[0].report
        calls = max(1, len(assemble.calls_of_a_step(found)))
        crossings = {variant: _crossings(one, calls) for variant, one in counted.items()}
        result = assemble.benchmark(found, options, crossings, time.monotonic() - began)
        result = _with_kernels(result, found, options, folder)
    return replace(report, benchmark=to_dict(result)), result


def _scan(program: Program, settings: Settings, folder: Path, timeout_s: float) -> Observed:
    folder.mkdir()
    with (folder / "log").open("wb") as log:
        seen = observe(program, settings, folder, timeout_s, stdout=log.fileno())
    if seen.ended.status == "interrupted":
        raise KeyboardInterrupt
    return seen


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


def _crossings(report: Report, calls: int) -> float | None:
    """Of a step, on average; the first one may hold an evaluation and is left out where there are others.

    Args:
        calls: of a step, each of which the scan takes for one.
    """
    each = [step.crossings for step in report.steps if step.crossings is not None][calls:]
    steps = len(each) // calls
    if steps:
        return sum(each[-steps * calls :]) / steps
    total = report.totals
    return None if not total.steps or total.crossings is None else calls * total.crossings / total.steps


def _with_kernels(result: Benchmark, found: Conducted, options: Options, folder: Path) -> Benchmark:
    if not options.kernels or found.interrupted:
        return result
    from breakscope.bench import kernels

    if options.export is not None and (folder / "export").is_dir():
        shutil.copytree(folder / "export", options.export, dirs_exist_ok=True)
    return kernels.add(result, found, options)
