"""``breakscope config``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def add(app: typer.Typer) -> None:
    """Add the command."""

    @app.command("config")
    def config(
        file: Annotated[
            Path | None,
            typer.Option("--config", metavar="FILE", help="Configuration file, instead of the one found."),
        ] = None,
    ) -> int:
        """Show the configuration that is in force, and where each value comes from, as TOML."""
        from breakscope.cli import output
        from breakscope.project import config as configuration
        from breakscope.project.config.show import show

        output.write(show(configuration.load(file=file)))
        return 0
