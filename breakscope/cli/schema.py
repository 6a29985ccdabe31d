"""``breakscope schema``."""

from __future__ import annotations

import json

import typer


def add(app: typer.Typer) -> None:
    """Add the command."""

    @app.command("schema")
    def schema() -> int:
        """Print the JSON Schema of report files."""
        from breakscope.cli import output
        from breakscope.report import schema as report_schema

        output.write(json.dumps(report_schema.json_schema(), indent=2))
        return 0
