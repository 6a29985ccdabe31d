"""Arguments and options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Saved = Annotated[
    Path | None,
    typer.Argument(metavar="[REPORT]", help="Report file (default .breakscope/latest.json)."),
]
NewReport = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Report file (default .breakscope/latest.json; earlier ones stay)."),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="File to write it to (default: standard output)."),
]
OpenPage = Annotated[bool, typer.Option("--open", help="Write the page and show it in a browser.")]
Artifacts = Annotated[
    bool,
    typer.Option(
        "--artifacts", help="Keep graphs, generated code, guards and bytecode, for breakscope show."
    ),
]
Limit = Annotated[int, typer.Option(min=1, help="How many findings to show.")]
Everything = Annotated[bool, typer.Option("--all", help="Show every finding.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Write the report, show nothing.")]
Executor = Annotated[
    str,
    typer.Option(
        metavar="local|dask://HOST:PORT",
        help="Where to work: local processes, or the workers of a Dask cluster, which must see the files "
        "under the same names.",
    ),
]
