"""``breakscope report``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from breakscope.cli import arguments
from breakscope.errors import OutputError, UsageError
from breakscope.render import FORMATS, Options, format_named

if TYPE_CHECKING:
    from breakscope.render.html.sources import SourceReader
    from breakscope.report.model import Report


def add(app: typer.Typer) -> None:
    """Add the command."""

    @app.command("report")
    def report(
        path: arguments.Saved = None,
        format_: Annotated[
            str, typer.Option("--format", "-f", metavar="|".join(FORMATS), help="Output format.")
        ] = "terminal",
        output: arguments.Output = None,
        known: Annotated[
            Path | None,
            typer.Option(metavar="REPORT", help="Earlier report; findings that it lacks are marked as new."),
        ] = None,
        limit: arguments.Limit = 20,
        all_: arguments.Everything = False,
        horizon: Annotated[
            int | None,
            typer.Option(min=1, metavar="STEPS", help="Rank findings by their cost over this many steps."),
        ] = None,
        html: Annotated[
            bool, typer.Option("--html", help="Write an HTML page (default: breakscope.html).")
        ] = False,
        open_: arguments.OpenPage = False,
        recover: Annotated[
            bool, typer.Option("--recover", help="Make the report of a scan that was killed.")
        ] = False,
    ) -> int:
        """Show a report again, or write it in another format."""
        from breakscope.report import schema
        from breakscope.report.latest import FOLDER, LATEST
        from breakscope.report.ranking import over

        if recover:
            from breakscope.run.recover import recover as take_up

            if path is not None:
                raise UsageError("--recover makes the report of this folder; leave out the file")
            take_up(Path(FOLDER).absolute())

        render = format_named(format_)
        place = path or Path(FOLDER) / LATEST
        loaded = schema.load(place)
        if horizon is not None:
            loaded = over(loaded, horizon)
        earlier = (
            None
            if known is None
            else frozenset(finding.fingerprint for finding in schema.load(known).findings)
        )
        if html or open_:
            from breakscope.cli import report_html

            print(report_html.write(loaded, place, output, open_, earlier))
            return 0
        options = Options(
            root=repository(loaded),
            known=earlier,
            limit=limit,
            everything=all_,
            sources=_sources(loaded, place) if "sources" in render.takes else None,
        )
        if format_ == "terminal" and output is None:
            show(loaded, path, options)
        else:
            publish(render(loaded, options), output)
        if format_ == "github":
            summarize(loaded, options)
        return 0


def _sources(report: Report, path: Path) -> SourceReader:
    """The files that may be shown of a report: the user's own, as they were when they were scanned."""
    from breakscope.cli.trust import own_projects
    from breakscope.render.html.sources import OnDisk, evidenced

    return OnDisk(evidenced(report, own_projects(report, path)))


def repository(report: Report) -> str:
    """The folder of the repository in which the script ran; without one here, the current folder."""
    for start in (Path(report.run.cwd), Path.cwd()):
        for folder in (start, *start.parents):
            if (folder / ".git").exists():
                return str(folder)
    return str(Path.cwd())


def show(report: Report, path: Path | None, options: Options) -> None:
    """Print a report as wide as the terminal, with the commands that go on from it."""
    from breakscope.cli import output

    name = "" if path is None else f" {path}"
    output.terminal(
        report,
        limit=options.limit,
        everything=options.everything,
        next_steps=output.next_steps(report, name),
    )


def publish(rendered: str | bytes, path: Path | None) -> None:
    """Write a rendered report to a file, whole or not at all, or to standard output."""
    from breakscope.cli import output
    from breakscope.report.files import write

    if path is not None:
        # What no file can hold is made visible before it comes here; a path may still be damaged.
        write(rendered.encode(errors="backslashreplace") if isinstance(rendered, str) else rendered, path)
    elif isinstance(rendered, str):
        output.write(rendered)
    elif sys.stdout.isatty():
        raise UsageError("this format is not text: name a file with --output")
    else:
        sys.stdout.buffer.write(rendered)
        sys.stdout.buffer.flush()


def summarize(report: Report, options: Options) -> None:
    """Add the whole report to the summary of the workflow step, as far as GitHub has room for it."""
    from breakscope.render import markdown

    append_summary(
        lambda room: markdown.render(report, root=options.root, known=options.known, max_bytes=room)
    )


def append_summary(make: Callable[[int], str]) -> None:
    """Add Markdown to the summary of the workflow step that runs us, if one does and if it fits.

    Args:
        make: gives the text for the bytes that are left.
    """
    from breakscope.render import github

    name = os.environ.get("GITHUB_STEP_SUMMARY")
    if not name:
        return
    try:
        with open(name, "ab") as file:
            room = github.SUMMARY_BYTES - file.tell()
            data = f"\n{make(room)}".encode()
            if len(data) <= room:
                file.write(data)
    except OSError as error:
        raise OutputError(f"cannot write the step summary to {name}: {error.strerror}") from None
