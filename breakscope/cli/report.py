"""``breakscope report``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Format(StrEnum):
    """Choices of ``--format``."""

    TERMINAL = "terminal"
    JSON = "json"


def add(app: typer.Typer) -> None:
    """Add the command."""

    @app.command("report")
    def report(
        path: Annotated[
            Path | None, typer.Argument(metavar="[REPORT]", help="Report file (default .breakscope/latest.json).")
        ] = None,
        format_: Annotated[
            Format, typer.Option("--format", "-f", help="How to show it.")
        ] = Format.TERMINAL,
        limit: Annotated[int, typer.Option(min=1, help="How many findings to show.")] = 20,
        all_: Annotated[bool, typer.Option("--all", help="Show every finding.")] = False,
    ) -> int:
        """Show a report again."""
        from breakscope import schema
        from breakscope.capture.scan import FOLDER, LATEST
        from breakscope.cli import output

        place = path or Path(FOLDER) / LATEST
        loaded = schema.load(place)
        if format_ is Format.JSON:
            from breakscope.render import json as renderer

            output.write(renderer.render(loaded))
        else:
            name = "" if path is None else f" {path}"
            output.terminal(
                loaded, limit=limit, everything=all_, next_steps=output.next_steps(loaded, name)
            )
        return 0
