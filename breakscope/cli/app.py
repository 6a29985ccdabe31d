"""The commands, put together. A command's module is imported when the command is called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

import breakscope
from breakscope.cli import values
from breakscope.cli.help import Rows, give_help
from breakscope.cli.output import wants_color
from breakscope.cli.spelling import accept_old

# As the help shows them.
GROUPS: dict[str, tuple[str, ...]] = {
    "Look": ("scan", "report", "explain", "show"),
    "Repair": ("fix", "prove", "remedy", "run"),
    "Measure": ("bench",),
    "Keep": ("check", "lint", "config"),
    "Jobs and reports": ("import", "merge", "diff", "schema"),
}
NAMES = tuple(chain.from_iterable(GROUPS.values()))


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
            made = give_help(values.lighten(typer.main.get_command(app)))
            self._made[name] = accept_old(name, made)
            if name == "check":
                self._made[name].inherit(self["scan"])
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


class _Grouped(TyperGroup):
    """The commands by what they are for."""

    def sections(self) -> dict[str, Rows]:
        """What the help shows after the options."""
        return {
            title: [(name, _title(self.commands[name])) for name in names] for title, names in GROUPS.items()
        }


def _title(command: Any) -> str:
    """The first sentence of a command's help."""
    first: str = " ".join(command.help.partition("\n\n")[0].split())
    return first.partition(". ")[0].rstrip(".")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"breakscope {breakscope.__version__}")
        raise typer.Exit


def _install(typers: Any, ctx: Any, parameter: Any, value: Any) -> Any:
    """Install completion. The function file that typer writes for zsh answers from the second Tab on only."""
    try:
        return typers(ctx, parameter, value)
    finally:
        file = Path.home() / ".zfunc" / "_breakscope"
        call = '\n_breakscope_completion "$@"\n'
        if value and file.is_file() and not file.read_text().endswith(call):
            file.write_text(file.read_text() + call)


def command() -> Any:
    """The click command that holds every command of ours."""
    app = typer.Typer(
        name="breakscope",
        cls=_Grouped,
        help="Find where torch.compile breaks in your script, what that costs, and how to fix it.",
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={
            "color": wants_color(),
            "help_option_names": ["-h", "--help"],
            "max_content_width": 100,
        },
    )

    @app.callback()
    def options(
        version: bool = typer.Option(
            False, "--version", callback=_version, is_eager=True, help="Show the version and exit."
        ),
        debug: bool = typer.Option(False, "--debug", help="Show the traceback when breakscope itself fails."),
    ) -> None:
        pass

    group = give_help(values.lighten(typer.main.get_command(app)))
    for parameter in group.params:
        if parameter.name == "install_completion":
            parameter.callback = partial(_install, parameter.callback)
    group.commands = Commands()
    return group
