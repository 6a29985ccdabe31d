"""What a report is believed: it is data, and may come from anybody.

To run what it names, and to show the files that it names, it must be the user's own: made on this machine, of
a script of the present project.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from breakscope.errors import UsageError

if TYPE_CHECKING:  # `--help` needs no report
    from breakscope.report.model import Report

TrustReport = Annotated[
    bool,
    typer.Option(
        "--trust-report", help="Run the script that the report names, even if others made the report."
    ),
]


def own_projects(report: Report, path: Path) -> list[str]:
    """The folders whose files a page of the report may show.

    They are the present project, that in whose ``.breakscope`` the report lies, and, if it was made here,
    that in which the script ran.
    """
    from breakscope.report.latest import FOLDER
    from breakscope.report.machine import this_machine
    from breakscope.report.owners import repository_of

    folders = [os.getcwd()]
    if path.absolute().parent.name == FOLDER:
        folders.append(str(path.absolute().parent.parent))
    if report.run.machine == this_machine():
        folders.append(report.run.cwd)
    return [repository_of(folder) or folder for folder in map(os.path.abspath, folders)]


def confirm_run(report: Report, command: str, *, trusted: bool) -> None:
    """Make sure that the user wants to run what a report names. Call it before leaving the current folder.

    Raises:
        UsageError: the report is not the user's own, and there is nobody to ask, or they said no.
    """
    why = None if trusted else _doubt(report)
    if why is None:
        return
    run = report.run
    words = f"python {shlex.join([*run.script.split(' ', 1), *run.argv])} in {run.cwd}"
    words = "".join(c if c.isprintable() else "?" for c in words)
    if sys.stdin.isatty() and sys.stderr.isatty():
        print(f"breakscope: {why}; {command} runs {words}", file=sys.stderr)
        if typer.confirm("Run it?", default=False, err=True):
            return
    raise UsageError(f"{why}; {command} would run {words}: add --trust-report to allow that")


def _doubt(report: Report) -> str | None:
    """Why the report may not be the user's own; None if it is."""
    from breakscope.report.machine import this_machine
    from breakscope.report.owners import repository_of

    run = report.run
    if run.machine != this_machine():
        return "this report was not made on this machine"
    here = os.getcwd()
    project = os.path.realpath(repository_of(here) or here)
    script = run.cwd if run.script.startswith("-m ") else os.path.join(run.cwd, run.script)
    inside = os.path.join(os.path.realpath(script), "").startswith(os.path.join(project, ""))
    return None if inside else f"the script of this report is not in {project}"
