"""``breakscope scan``."""

from __future__ import annotations

import sys
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from breakscope.cli import arguments, torchrun
from breakscope.cli.script_words import ScriptCommand, program_of
from breakscope.errors import UsageError

if TYPE_CHECKING:
    from breakscope.run.scan import Scan


class Backend(StrEnum):
    """Choices of ``--backend``."""

    EAGER = "eager"
    AOT_EAGER = "aot_eager"
    INDUCTOR = "inductor"
    AS_SCRIPT = "as-script"


class Dynamic(StrEnum):
    """Choices of ``--dynamic``."""

    AUTO = "auto"
    TRUE = "true"
    FALSE = "false"


def add(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(
        "scan",
        cls=ScriptCommand,
        options_metavar="[OPTIONS] SCRIPT|-m MODULE [ARGS]...",
        epilog="Everything after SCRIPT or -m MODULE is passed to the script.",
    )
    def scan(
        ctx: typer.Context,
        compile_: Annotated[
            str,
            typer.Option(
                "--compile",
                metavar="auto|script|FUNCTION",
                help="What to compile. auto: what the script compiles; if it compiles nothing, every "
                "outermost module call. script: only what the script compiles. FUNCTION: one function, "
                "such as train_step, model.py:Net.forward or pkg.mod:fn.",
            ),
        ] = "auto",
        backend: Annotated[
            Backend, typer.Option(metavar="|".join(Backend), help="Backend to compile with.")
        ] = Backend.EAGER,
        mode: Annotated[
            str | None,
            typer.Option("--mode", metavar="MODE", help="Mode of Inductor; needs --backend inductor."),
        ] = None,
        dynamic: Annotated[
            Dynamic, typer.Option(metavar="|".join(Dynamic), help="Value of dynamic= for torch.compile.")
        ] = Dynamic.AUTO,
        keep_fullgraph: Annotated[
            bool,
            typer.Option("--keep-fullgraph", help="Keep fullgraph=True, so that the first break raises."),
        ] = False,
        cost: Annotated[
            bool,
            typer.Option(
                "--cost/--no-cost",
                help="Time up to 60 steady steps to find what each site costs.",
            ),
        ] = True,
        profile: Annotated[
            bool,
            typer.Option(
                "--profile",
                help="Also run 6 steady steps under torch's profiler to see what happens inside the gaps.",
            ),
        ] = False,
        steps: Annotated[
            int | None,
            typer.Option(
                min=1,
                metavar="N",
                help="Stop after N optimizer steps, or after N compiled calls if there is no optimizer.",
            ),
        ] = None,
        timeout: Annotated[
            float | None,
            typer.Option(min=0.1, metavar="SECONDS", help="End the script after this many seconds."),
        ] = None,
        children: Annotated[
            bool,
            typer.Option(
                "--children/--no-children", help="Also scan the Python processes that the script starts."
            ),
        ] = True,
        fixes: Annotated[
            Path | None,
            typer.Option(metavar="DIR", help="Apply the fixes in DIR to the source code while it is loaded."),
        ] = None,
        python: arguments.Python = None,
        output: arguments.NewReport = None,
        artifacts: arguments.Artifacts = False,
        nproc_per_node: torchrun.NprocPerNode = None,
        nnodes: torchrun.Nnodes = None,
        node_rank: torchrun.NodeRank = None,
        rdzv_id: torchrun.RdzvId = None,
        rdzv_backend: torchrun.RdzvBackend = None,
        rdzv_endpoint: torchrun.RdzvEndpoint = None,
        max_restarts: torchrun.MaxRestarts = None,
        torchrun_options: torchrun.Others = None,
        limit: arguments.Limit = 20,
        all_: arguments.Everything = False,
        quiet: arguments.Quiet = False,
    ) -> int:
        """Run a script under torch.compile and report where it breaks.

        The script runs exactly as under `python SCRIPT ARGS`. scan exits with the exit status of the script.
        """
        launcher = torchrun.options(
            nproc_per_node,
            nnodes=nnodes,
            node_rank=node_rank,
            rdzv_id=rdzv_id,
            rdzv_backend=rdzv_backend,
            rdzv_endpoint=rdzv_endpoint,
            max_restarts=max_restarts,
            others=torchrun_options,
        )
        result = run(
            ctx.meta["breakscope.program"],
            compile_=compile_,
            backend=backend,
            mode=mode,
            dynamic=dynamic,
            keep_fullgraph=keep_fullgraph,
            cost=cost,
            profile=profile,
            steps=steps,
            timeout=timeout,
            output=output,
            fixes=fixes,
            children=children,
            python=python,
            live=not quiet,
            artifacts=artifacts,
            launcher=launcher,
        )
        if not quiet:
            show(result, limit=limit, everything=all_)
        if result.problem is not None:
            print(f"breakscope: {result.problem}", file=sys.stderr)
            return 2
        return result.exit_code


def fixes_folder(folder: Path | None) -> str | None:
    """The folder of ``--fixes``, absolute. Raises UsageError where there are no fixes."""
    from breakscope.inside import overlay

    if folder is None:
        return None
    try:
        overlay.check(folder)
    except OSError as error:
        raise UsageError(
            f"there are no fixes in {folder}: {error.strerror}; breakscope fix writes them"
        ) from None
    except ValueError as error:
        raise UsageError(f"cannot read the fixes in {folder}: {error}") from None
    return str(folder.resolve())


def run(
    words: list[str],
    *,
    compile_: str,
    backend: str,
    mode: str | None,
    dynamic: str,
    keep_fullgraph: bool,
    cost: bool,
    steps: int | None,
    timeout: float | None,
    output: Path | None,
    live: bool,
    artifacts: bool = False,
    launcher: Any = None,
    profile: bool = False,
    fixes: Path | None = None,
    children: bool = True,
    python: Path | None = None,
) -> Scan:
    """Scan what stands on the command line after our options, here and for ``breakscope check``."""
    from breakscope.inside.capture.artifacts import FOLDER
    from breakscope.inside.settings import Settings
    from breakscope.report.latest import place_of
    from breakscope.run import interpreter
    from breakscope.run import scan as engine

    interpreter.use(python)
    what = program_of(words, "scan")
    if mode is not None and backend != Backend.INDUCTOR:
        raise UsageError("--mode needs --backend inductor")
    if profile and not cost:
        raise UsageError("--profile divides what --cost measures; leave out --no-cost")
    settings = Settings(
        compile_,
        str(backend),
        mode,
        Dynamic(dynamic).value,
        keep_fullgraph,
        steps,
        cost=cost,
        profile=profile,
        fixes=fixes_folder(fixes),
        children=children and launcher is None,
    )
    if artifacts:
        settings = replace(settings, artifacts=str(place_of(output).parent / FOLDER))
    if live:
        _offer_what_was_left(place_of(output).parent)
    return engine.scan(what, settings, output=output, timeout_s=timeout, live=live, torchrun=launcher)


def _offer_what_was_left(folder: Path) -> None:
    from breakscope.run.recover import left

    for scan in left(folder):
        if not scan.running:
            print(
                f"breakscope: a scan of {scan.script} was killed ({scan.started_at}); "
                "breakscope report --recover shows what it had seen",
                file=sys.stderr,
            )


def show(result: Scan, *, limit: int, everything: bool) -> None:
    """Print a finished scan."""
    from breakscope.cli import output

    default = result.path.name == "latest.json"
    name = "" if default else f" {output.relative(result.path)}"
    output.terminal(
        result.report,
        limit=limit,
        everything=everything,
        next_steps=output.next_steps(result.report, name),
    )
