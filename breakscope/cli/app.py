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
    from breakscope.cli import (
        bench,
        check,
        config,
        diff,
        explain,
        fix,
        import_traces,
        lint,
        merge,
        remedy,
        report,
        run,
        scan,
        schema,
        show,
    )

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

    for module in (
        *(scan, import_traces, report, check, fix, run, remedy, bench),
        *(diff, merge, explain, lint, show, config, schema),
    ):  # fmt: skip
        module.add(app)
    group: Any = typer.main.get_command(app)
    group.commands["check"].inherit(group.commands["scan"])
    return group
