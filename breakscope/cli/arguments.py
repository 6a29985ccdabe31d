"""Arguments and options that several commands have."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from breakscope.errors import UsageError

Saved = Annotated[
    Path | None,
    typer.Argument(metavar="[REPORT]", help="Report file to read (default .breakscope/latest.json)."),
]
NewReport = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Report file to write (default .breakscope/latest.json; earlier reports are kept beside it).",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="File to write the result to (default: standard output)."
    ),
]
OpenPage = Annotated[bool, typer.Option("--open", help="Write the page and open it in a browser.")]
Artifacts = Annotated[
    bool,
    typer.Option("--artifacts", help="Keep graphs, generated code, guards and bytecode for breakscope show."),
]
Baseline = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="File of known findings (default .breakscope/baseline.json)."),
]
UpdateBaseline = Annotated[
    bool, typer.Option("--update-baseline", help="Accept the present findings: rewrite the baseline.")
]
NoSuppress = Annotated[
    bool, typer.Option("--no-suppress", help="Ignore suppression comments in the source code.")
]
Configuration = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Configuration file (default: the nearest breakscope.toml or pyproject.toml)."
    ),
]
RunTimeout = Annotated[
    float | None,
    typer.Option(min=1, metavar="SECONDS", help="End each run of the script after this many seconds."),
]
Limit = Annotated[
    int, typer.Option(min=1, metavar="N", help="Maximum number of findings to show on a terminal.")
]
Everything = Annotated[bool, typer.Option("--all", help="Show every finding on a terminal.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Write the report and show nothing.")]
Python = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help="Python that runs the script (default: that of breakscope; without torch there, that of the "
        "active environment).",
    ),
]
Select = Annotated[
    list[str] | None,
    typer.Option(metavar="CODES", help="Only findings with these codes or prefixes of codes: BS101,BS2."),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(metavar="CODES", help="Leave out findings with these codes or prefixes of codes."),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", "-j", min=1, metavar="N", help="Maximum number of processes (default: one for each core)."
    ),
]
Executor = Annotated[
    str,
    typer.Option(
        metavar="local|dask://HOST:PORT",
        help="Run in local processes, or on the workers of a Dask cluster. The workers must see the files "
        "under the same paths.",
    ),
]


def codes(options: Sequence[str] | None) -> tuple[str, ...]:
    """The codes of ``--select`` or ``--ignore``, which take commas and may be repeated.

    Raises:
        UsageError: no code begins with one of them.
    """
    from breakscope.project.config import check_codes

    named = words(options)
    if wrong := check_codes(tuple(name.upper() for name in named)):
        raise UsageError(wrong)
    return tuple(name.upper() for name in named)


def words(options: Sequence[str] | None) -> tuple[str, ...]:
    """The words of an option that takes commas and may be repeated."""
    return tuple(word.strip() for option in options or () for word in option.split(",") if word.strip())
