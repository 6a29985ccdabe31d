"""``breakscope import``."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from breakscope.cli import arguments
from breakscope.cli.output import draw
from breakscope.errors import OutputError, UsageError

if TYPE_CHECKING:
    from breakscope.report.model import Report

MOST_PROBLEMS = 5


def add(app: typer.Typer) -> None:
    """Add the command."""

    @app.command("import")
    def import_(
        paths: Annotated[
            list[Path],
            typer.Argument(
                metavar="PATH...",
                help="Files that TORCH_TRACE or TORCH_LOGS wrote, or folders of them; plain, .gz or .zst.",
            ),
        ],
        output: arguments.NewReport = None,
        jobs: arguments.Jobs = None,
        executor: arguments.Executor = "local",
        follow: Annotated[
            bool,
            typer.Option("--follow", help="Show the findings of a running job until you press Ctrl-C."),
        ] = False,
        artifacts: arguments.Artifacts = False,
        limit: arguments.Limit = 20,
        all_: arguments.Everything = False,
        quiet: arguments.Quiet = False,
    ) -> int:
        """Make a report from the traces or logs of a job that was not scanned.

        Crossings, steps and cost are not measured: only a scan can count them.
        """
        from breakscope.inside.capture.artifacts import FOLDER as FOLDER_OF_ARTIFACTS
        from breakscope.report.latest import FOLDER, LATEST, save

        place = output.absolute() if output else Path.cwd() / FOLDER / LATEST
        if place.is_dir():
            raise OutputError(f"cannot write the report to {output}: it is a directory")
        if follow and artifacts:
            raise UsageError("--artifacts does not go with --follow: import again when the job is over")
        if follow and executor != "local":
            raise UsageError("--executor does not go with --follow: import again when the job is over")
        if follow:
            from breakscope.cli.follow import follow as run

            report = run(paths, quiet=quiet)
        else:
            keep = place.parent / FOLDER_OF_ARTIFACTS if artifacts else None
            report, problems = read(paths, jobs=jobs, executor=executor, keep=keep, quiet=quiet)
            for problem in problems[:MOST_PROBLEMS]:
                print(f"breakscope: {problem}", file=sys.stderr)
            if len(problems) > MOST_PROBLEMS:
                more = len(problems) - MOST_PROBLEMS
                print(
                    f"breakscope: {more} more files could not be used; the report names them", file=sys.stderr
                )
        make_folder(place.parent)
        save(report, place, keep=output is None)
        if not quiet:
            show(report, place, limit=limit, everything=all_)
        return 0


def read(
    paths: list[Path], *, jobs: int | None, executor: str, keep: Path | None, quiet: bool
) -> tuple[Report, list[str]]:
    """One report of all traces, and why some could not be used. Arguments as those of the command."""
    from breakscope.traces.importing import import_traces

    def drawn(text: str) -> None:
        if not quiet:
            draw(text)

    with ExitStack() as stack:
        where = None
        if executor != "local":
            from breakscope.fleet import executors

            where = stack.enter_context(executors.executor(executor, jobs, len(paths)))
        stack.callback(drawn, "")
        return import_traces(paths, jobs=jobs, watch=lambda now: drawn(now.line()), keep=keep, executor=where)


def make_folder(folder: Path) -> None:
    """Make the folder that a report goes to. Raises OutputError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot make the folder {folder}: {error.strerror}") from None


def show(report: Report, place: Path, *, limit: int, everything: bool) -> None:
    """Print an imported report."""
    from breakscope.cli import output

    name = "" if place.name == "latest.json" else f" {output.relative(place)}"
    output.terminal(report, limit=limit, everything=everything, next_steps=output.next_steps(report, name))
