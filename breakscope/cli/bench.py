"""``breakscope bench``."""

from __future__ import annotations

import re
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from breakscope.cli import arguments
from breakscope.cli.progress import Progress
from breakscope.cli.script_words import ScriptCommand, program_of
from breakscope.errors import UsageError
from breakscope.report.files import BENCHMARK, OWN_FOLDER

_INTERRUPTED = 130
_DEFAULT = Path(OWN_FOLDER) / BENCHMARK


class Backend(StrEnum):
    """Choices of ``--backend``."""

    AS_SCRIPT = "as-script"
    INDUCTOR = "inductor"
    AOT_EAGER = "aot_eager"
    EAGER = "eager"


class Format(StrEnum):
    """Choices of ``--format``."""

    TERMINAL = "terminal"
    JSON = "json"


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
        epilog="Everything after SCRIPT or -m MODULE is passed to the script.",
    )
    def bench(
        ctx: typer.Context,
        fixes: Annotated[
            Path | None, typer.Option(metavar="DIR", help="Also measure with the fixes in DIR.")
        ] = None,
        modes: Annotated[
            str,
            typer.Option(
                "--modes",
                metavar="MODES",
                help="Modes of Inductor, separated by commas; as-script is the mode that the script uses.",
            ),
        ] = "as-script",
        dynamic: Annotated[
            str,
            typer.Option(
                metavar="VALUES", help="Values of dynamic=: auto, true, false, separated by commas."
            ),
        ] = "auto",
        function: Annotated[
            str | None,
            typer.Option(
                "--function",
                metavar="FUNCTION",
                help="Measure only this function, on its first inputs: train_step, model.py:Net.forward.",
            ),
        ] = None,
        backend: Annotated[
            Backend, typer.Option(metavar="|".join(Backend), help="Backend to compile with.")
        ] = Backend.AS_SCRIPT,
        step: Annotated[
            Unit,
            typer.Option(
                metavar="|".join(Unit),
                help="What a step is: an outermost compiled call or an optimizer step.",
            ),
        ] = Unit.AUTO,
        steps: Annotated[
            int | None, typer.Option(min=1, metavar="N", help="Number of timed steps in each process.")
        ] = None,
        seconds: Annotated[
            float,
            typer.Option(
                "--seconds", min=0.01, metavar="SECONDS", help="Maximum timed seconds in each process."
            ),
        ] = 10.0,
        repeat: Annotated[
            bool,
            typer.Option(
                "--repeat",
                help="If the script makes too few optimizer steps, repeat its calls and measure those.",
            ),
        ] = False,
        processes: Annotated[
            int,
            typer.Option(
                min=1,
                max=8,
                metavar="N",
                help="Number of processes for each arm, at most 8; from the second on, the cache is warm.",
            ),
        ] = 2,
        device: Annotated[
            str | None, typer.Option(metavar="cuda:N|cpu", help="Device that the script may use.")
        ] = None,
        threads: Annotated[
            int | None, typer.Option(min=1, metavar="N", help="Number of CPU threads for each arm.")
        ] = None,
        timeout: Annotated[
            float,
            typer.Option(
                min=1, metavar="SECONDS", help="End a run of the script that hangs for this many seconds."
            ),
        ] = 900.0,
        horizon: Annotated[
            int, typer.Option(min=1, metavar="STEPS", help="Recommend an arm for a run of this many steps.")
        ] = 10_000,
        kernels: Annotated[
            bool, typer.Option("--kernels", help="Show which kernels a step launches and how fast they are.")
        ] = False,
        export: Annotated[
            Path | None,
            typer.Option(metavar="DIR", help="Write a script for each kernel and graph; needs --kernels."),
        ] = None,
        against: Annotated[
            Path | None,
            typer.Option(
                "--against",
                "--budget",
                metavar="REPORT",
                help="Fail if an arm is slower than in this report.",
            ),
        ] = None,
        format_: Annotated[
            Format, typer.Option("--format", "-f", metavar="|".join(Format), help="Output format.")
        ] = Format.TERMINAL,
        python: arguments.Python = None,
        output: Annotated[
            Path | None,
            typer.Option(
                "--output",
                "-o",
                metavar="FILE",
                help="Report file to write (default .breakscope/bench.json).",
            ),
        ] = None,
        json: Annotated[bool, typer.Option("--json", hidden=True)] = False,
        quiet: arguments.Quiet = False,
    ) -> int:
        """Compare the speed of a script in eager mode, compiled, and compiled with fixes.

        Exits with 1 if an arm failed, computes another result than eager mode or is slower than --against
        allows, and with 3 if nothing could be measured. Ctrl-C ends it with 130; what was measured is kept.
        """
        from breakscope.bench import run as engine
        from breakscope.cli import output as output_of
        from breakscope.inside.bench import plan
        from breakscope.report import schema
        from breakscope.run import interpreter

        interpreter.use(python)
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
        stored = None if against is None else _stored(against)
        place = (output or _DEFAULT).absolute()
        try:
            with Progress(quiet=quiet) as progress:
                report, result = engine.bench(what, options, place.parent, progress)
        except KeyboardInterrupt:
            print(
                "breakscope: interrupted before anything was measured; nothing was written", file=sys.stderr
            )
            raise
        schema.save(report, place)
        if json or format_ is Format.JSON:
            import json as json_module

            from breakscope.report.secrets import masked

            print(json_module.dumps(masked(report.benchmark), indent=1))
        elif not quiet:
            _show(result, place)
        if result.interrupted:
            kept = output_of.relative(place)
            print(f"breakscope: interrupted; what was measured until then is in {kept}", file=sys.stderr)
        return _judge(result, stored)


def _stored(path: Path) -> Any:
    from breakscope.report import benchmark, schema

    stored = benchmark.from_dict(schema.load(path).benchmark)
    if stored is None:
        raise UsageError(f"--against: {path} holds no benchmark; breakscope bench SCRIPT writes one")
    return stored


def _show(result: Any, place: Path) -> None:
    import shutil

    from breakscope.cli import output
    from breakscope.render import bench_terminal
    from breakscope.report.secrets import mask

    name = output.relative(place)
    steps = [(f"breakscope report {name} --html", "the same as a page, with the scan's findings")]
    width = shutil.get_terminal_size((160, 24)).columns
    text = bench_terminal.render(result, width=width, color=output.wants_color(), next_steps=steps)
    output.write(mask(text))


def _judge(result: Any, stored: Any) -> int:
    from breakscope.bench import budget
    from breakscope.report.secrets import mask

    if all(arm.status == "failed" for arm in result.arms):
        reason = mask(str(result.arms[0].reason))
        print(f"breakscope: nothing could be measured: {reason}", file=sys.stderr)
        return 3
    problems = [f"{arm.name} failed: {arm.reason}" for arm in result.arms if arm.status == "failed"]
    problems += [
        f"{arm.name} computes another result than eager mode: {arm.outputs.why}"
        for arm in result.arms
        if arm.outputs is not None and arm.outputs.status == "different"
    ]
    if stored is not None:
        problems += [f"slower than --against: {sentence}" for sentence in budget.exceeded(result, stored)]
    for problem in problems:
        print(f"breakscope: {mask(problem)}", file=sys.stderr)
    return _INTERRUPTED if result.interrupted else 1 if problems else 0
