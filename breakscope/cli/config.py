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
            typer.Option(
                "--config",
                metavar="FILE",
                help="Configuration file (default: the nearest breakscope.toml or pyproject.toml).",
            ),
        ] = None,
    ) -> int:
        """Print the configuration as TOML, with the file that each value comes from."""
        from breakscope.cli import output
        from breakscope.project import config as configuration
        from breakscope.project.config.show import show

        output.write(show(configuration.load(file=file)))
        return 0
