"""The commands, put together."""

from __future__ import annotations

from typing import Any

import typer

import breakscope


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"breakscope {breakscope.__version__}")
        raise typer.Exit


def command() -> Any:
    """The click command that holds every command of ours."""
    from breakscope.cli import check, config, diff, explain, fix, remedy, report, run, scan, schema

    app = typer.Typer(
        name="breakscope",
        help="Where torch.compile breaks in your script, how often that is paid for, and what to do.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )

    @app.callback()
    def options(
        version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Show it."),
        debug: bool = typer.Option(False, "--debug", help="Show tracebacks of breakscope's own failures."),
    ) -> None:
        pass

    for module in (scan, report, check, fix, run, remedy, diff, explain, config, schema):
        module.add(app)
    group: Any = typer.main.get_command(app)
    group.commands["check"].inherit(group.commands["scan"])
    return group
