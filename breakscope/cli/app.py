"""The commands, put together. A command's module is imported when the command is called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import chain
from typing import Any

import typer
from typer.core import TyperGroup

import breakscope
from breakscope.cli import values

# As the help shows them.
GROUPS: dict[str, tuple[str, ...]] = {
    "Look": ("scan", "report", "explain", "show"),
    "Repair": ("fix", "prove", "remedy", "run"),
    "Measure": ("bench",),
    "Keep": ("check", "lint", "config"),
    "Jobs and reports": ("import", "merge", "diff", "schema"),
}
NAMES = tuple(chain.from_iterable(GROUPS.values()))
_WHOLE = 200  # characters of a command's first sentence: it is never cut


class Commands(Mapping[str, Any]):
    """The click commands by name, where click's group looks them up; each is made then."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in NAMES:
            raise KeyError(name)
        if name not in self._made:
            module = import_module("breakscope.cli." + ("import_traces" if name == "import" else name))
            app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
            module.add(app)
            self._made[name] = values.lighten(typer.main.get_command(app))
            if name == "check":
                self._made[name].inherit(self["scan"])
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


class _Grouped(TyperGroup):
    """The commands by what they are for."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - click passes both
        """Called by click, which writes the help."""
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(name, self.commands[name].get_short_help_str(limit=_WHOLE)) for name in names]
                )


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"breakscope {breakscope.__version__}")
        raise typer.Exit


def command() -> Any:
    """The click command that holds every command of ours."""
    app = typer.Typer(
        name="breakscope",
        cls=_Grouped,
        help="Where torch.compile breaks in your script, how often that is paid for, and what to do.",
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )

    @app.callback()
    def options(
        version: bool = typer.Option(
            False, "--version", callback=_version, is_eager=True, help="Show the version and exit."
        ),
        debug: bool = typer.Option(False, "--debug", help="Show tracebacks of breakscope's own failures."),
    ) -> None:
        pass

    group = values.lighten(typer.main.get_command(app))
    group.commands = Commands()
    return group
