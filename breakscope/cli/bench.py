"""``breakscope bench``."""

from __future__ import annotations

import re
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from breakscope.cli import arguments
from breakscope.cli.script_words import ScriptCommand, program_of
from breakscope.errors import UsageError

_INTERRUPTED = 130
_DEFAULT = Path(".breakscope") / "bench.json"


class Backend(StrEnum):
    """Choices of ``--backend``."""

    AS_SCRIPT = "as-script"
    INDUCTOR = "inductor"
    AOT_EAGER = "aot_eager"
    EAGER = "eager"


class Unit(StrEnum):
    """Choices of ``--step``."""

    AUTO = "auto"
    CALL = "call"
    OPTIMIZER = "optimizer"


def add(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(
        "bench",
        cls=ScriptCommand,
        options_metavar="[OPTIONS] SCRIPT|-m MODULE [ARGS]...",
        epilog="Everything after SCRIPT, or after -m MODULE, belongs to the script.",
    )
    def bench(
        ctx: typer.Context,
        fixes: Annotated[
            Path | None, typer.Option(metavar="DIR", help="Also measure with these fixes (breakscope fix).")
        ] = None,
        modes: Annotated[
            str, typer.Option(help="Comma list of Inductor's modes; as-script is what the script asks for.")
        ] = "as-script",
        dynamic: Annotated[str, typer.Option(help="Comma list of auto, true, false.")] = "auto",
        function: Annotated[
            str | None,
            typer.Option(
                metavar="FUNCTION",
                help="Measure this one function on its first inputs: train_step, model.py:Net.forward.",
            ),
        ] = None,
        backend: Annotated[Backend, typer.Option(help="Backend to compile with.")] = Backend.AS_SCRIPT,
        step: Annotated[
            Unit, typer.Option(help="What a step is: an outermost compiled call, or an optimizer step.")
        ] = Unit.AUTO,
        steps: Annotated[int | None, typer.Option(min=1, help="Timed steps per process.")] = None,
        seconds: Annotated[float, typer.Option(min=0.01, help="Most timed seconds per process.")] = 10.0,
        repeat: Annotated[
            bool,
            typer.Option(
                "--repeat",
                help="If the script makes too few optimizer steps, measure its calls, again and again.",
            ),
        ] = False,
        processes: Annotated[
            int, typer.Option(min=1, max=8, help="Processes per arm; from the second on the cache is warm.")
        ] = 2,
        device: Annotated[
            str | None, typer.Option(metavar="cuda:N|cpu", help="The only device that the script sees.")
        ] = None,
        threads: Annotated[int | None, typer.Option(min=1, help="CPU threads of each arm.")] = None,
        timeout: Annotated[
            float, typer.Option(min=1, help="End an arm that does not answer for this many seconds.")
        ] = 900.0,
        horizon: Annotated[int, typer.Option(min=1, help="Steps for which to recommend an arm.")] = 10_000,
        kernels: Annotated[
            bool, typer.Option("--kernels", help="Say which kernels a step launches, and how good they are.")
        ] = False,
        export: Annotated[
            Path | None,
            typer.Option(metavar="DIR", help="With --kernels: a script for each kernel and graph."),
        ] = None,
        budget: Annotated[
            Path | None,
            typer.Option(metavar="REPORT", help="Fail if an arm is slower than in this report."),
        ] = None,
        output: Annotated[
            Path | None, typer.Option("--output", "-o", help="Report file (default .breakscope/bench.json).")
        ] = None,
        json: Annotated[bool, typer.Option("--json", help="Print the report's benchmark as JSON.")] = False,
        quiet: arguments.Quiet = False,
    ) -> int:
        """Measure a script eager, compiled, and compiled with fixes, and say what pays.

        Exits with 1 if an arm failed, computes something else than eager or is slower than --budget allows,
        and with 3 if nothing could be measured. Interrupted (130), it writes what it has measured so far.
        """
        from breakscope.bench import run as engine
        from breakscope.inside.bench import plan
        from breakscope.report import schema

        what = program_of(ctx.meta["breakscope.program"], "measure")
        if export is not None and not kernels:
            raise UsageError("--export needs --kernels")
        if device is not None and not re.fullmatch(r"cpu|cuda(:\d+)?", device):
            raise UsageError(f"--device is cpu or cuda:N, not {device!r}")
        options = plan.Options(
            modes=plan.words(modes, plan.MODES, "--modes"),
            dynamics=plan.words(dynamic, plan.DYNAMICS, "--dynamic"),
            fixes=None if fixes is None else str(fixes.absolute()),
            function=function,
            backend=backend.value,
            unit=step.value,
            steps=steps,
            seconds=seconds,
            processes=processes,
            device=device,
            threads=threads,
            timeout_s=timeout,
            horizon=horizon,
            repeat=repeat,
            kernels=kernels,
            export=None if export is None else str(export.absolute()),
        )
        stored = None if budget is None else _stored(budget)
        place = (output or _DEFAULT).absolute()
        report, result = engine.bench(what, options, place.parent, _say(quiet))
        schema.save(report, place)
        if json:
            import json as json_module

            print(json_module.dumps(report.benchmark, indent=1))
        elif not quiet:
            _show(result, place)
        return _judge(result, stored)


def _say(quiet: bool) -> Any:
    """Takes the live line: drawn on a terminal only."""
    if quiet or not sys.stderr.isatty():
        return lambda _text: None

    def say(text: str) -> None:
        sys.stderr.write(f"\r\x1b[2K{text}")
        sys.stderr.flush()

    return say


def _stored(path: Path) -> Any:
    from breakscope.report import benchmark, schema

    stored = benchmark.from_dict(schema.load(path).benchmark)
    if stored is None:
        raise UsageError(f"--budget: {path} holds no benchmark; breakscope bench SCRIPT writes one")
    return stored


def _show(result: Any, place: Path) -> None:
    import shutil

    from breakscope.cli import output
    from breakscope.render import bench_terminal

    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[2K")
    name = output.relative(place)
    steps = [(f"breakscope report {name} --html", "the same as a page, with the scan's findings")]
    width = shutil.get_terminal_size((160, 24)).columns
    text = bench_terminal.render(result, width=width, color=output.wants_color(), next_steps=steps)
    output.write(text)


def _judge(result: Any, stored: Any) -> int:
    from breakscope.bench import budget

    if all(arm.status == "failed" for arm in result.arms):
        reason = result.arms[0].reason
        print(f"breakscope: nothing could be measured: {reason}", file=sys.stderr)
        return 3
    problems = [f"{arm.name} failed: {arm.reason}" for arm in result.arms if arm.status == "failed"]
    problems += [
        f"{arm.name} computes something else than eager: {arm.outputs.why}"
        for arm in result.arms
        if arm.outputs is not None and arm.outputs.status == "different"
    ]
    if stored is not None:
        problems += [f"over budget: {sentence}" for sentence in budget.exceeded(result, stored)]
    for problem in problems:
        print(f"breakscope: {problem}", file=sys.stderr)
    return _INTERRUPTED if result.interrupted else 1 if problems else 0
