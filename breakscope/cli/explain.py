"""``breakscope explain``."""

from __future__ import annotations

import shutil
from typing import Annotated

import typer

from breakscope.errors import UsageError


def add(app: typer.Typer) -> None:
    """Add the command."""

    @app.command("explain")
    def explain(
        code: Annotated[
            str | None,
            typer.Argument(metavar="[CODE]", help="Code of breakscope (BS101) or of torch (GB0170)."),
        ] = None,
        list_: Annotated[bool, typer.Option("--list", help="List every code.")] = False,
    ) -> int:
        """Explain the code of a finding and what to do about it. Works offline."""
        from breakscope import catalog
        from breakscope.cli import output

        if list_:
            output.write(catalog.list_text())
        elif code is None:
            raise UsageError("name a code, such as BS101 or GB0170, or use --list")
        else:
            output.write(catalog.explain(code, shutil.get_terminal_size((100, 24)).columns))
        return 0
