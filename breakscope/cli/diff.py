"""``breakscope diff``."""

from __future__ import annotations

import shutil
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from breakscope.cli import arguments


class Format(StrEnum):
    """Choices of ``--format``."""

    TERMINAL = "terminal"
    MARKDOWN = "markdown"
    JSON = "json"


def add(app: typer.Typer) -> None:
    """Add the command."""

    @app.command("diff")
    def diff(
        old: Annotated[Path, typer.Argument(metavar="OLD", help="Earlier report.")],
        new: Annotated[Path, typer.Argument(metavar="NEW", help="Later report.")],
        format_: Annotated[
            Format, typer.Option("--format", "-f", metavar="|".join(Format), help="Output format.")
        ] = Format.TERMINAL,
        output: arguments.Output = None,
        all_: Annotated[
            bool, typer.Option("--all", help="Also list findings that only moved or did not change.")
        ] = False,
        html: Annotated[
            bool, typer.Option("--html", help="Write an HTML page (default: diff.html beside NEW).")
        ] = False,
        open_: arguments.OpenPage = False,
    ) -> int:
        """Show what is new, fixed, changed or moved between two reports. Always exits with 0."""
        from breakscope.cli import report as report_command
        from breakscope.cli.output import wants_color
        from breakscope.diagnose.compare import compare
        from breakscope.report import schema

        comparison = compare(schema.load(old), schema.load(new))
        root = report_command.repository(comparison.after)
        if html or open_:
            from breakscope.cli import report_html

            print(report_html.write_diff(comparison, (old, new), output, open_, root))
            return 0
        if format_ is Format.JSON:
            from breakscope.render import diff_json

            text = diff_json.render(comparison)
        elif format_ is Format.MARKDOWN:
            from breakscope.render import diff_markdown

            text = diff_markdown.render(comparison, root=root)
        else:
            from breakscope.render import diff_terminal

            on_screen = output is None
            text = diff_terminal.render(
                comparison,
                width=shutil.get_terminal_size((100, 24)).columns if on_screen else 100,
                color=on_screen and wants_color(),
                all=all_,
                root=root,
            )
        report_command.publish(text, output)
        return 0
