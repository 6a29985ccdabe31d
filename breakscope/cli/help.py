"""The help of a command, written from what its options say of themselves.

typer's own help differs from version to version, and that of the oldest fails beside the newest click. This
one is the same for all of them: coloured on a terminal, plain text in a pipe.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, get_type_hints

from breakscope.cli.output import wants_color

_WIDEST_NAME = 30  # columns; the text of a longer name begins in the next line
_GAP = 2
_HEADING, _NAME, _PLAIN = "\x1b[1m", "\x1b[36m", "\x1b[0m"

Rows = Sequence[tuple[str, str]]


def give_help(command: Any) -> Any:
    """Have a command write its help and name its arguments in errors our way; return it."""
    command.format_help = partial(_write, command)
    for parameter in command.params:
        parameter.make_metavar = partial(_metavar, parameter)
        if parameter.help is None:
            parameter.help = _annotated(command).get(parameter.name)
    return command


def _annotated(command: Any) -> dict[str, str | None]:
    """The help of each parameter as our function says it: the newest click drops that of older typers."""
    hints = get_type_hints(inspect.unwrap(command.callback), include_extras=True)
    infos = {name: getattr(hint, "__metadata__", (None,))[0] for name, hint in hints.items()}
    return {name: getattr(info, "help", None) for name, info in infos.items()}


def _write(command: Any, ctx: Any, formatter: Any) -> None:
    """As click's ``format_help``."""
    width = formatter.width
    formatter.write(_usage(command, ctx, width))
    text = command.help or ""
    for paragraph in filter(None, (" ".join(one.split()) for one in text.split("\n\n"))):
        formatter.write(f"\n{_filled(paragraph, width)}\n")
    for title, rows in _sections(command, ctx).items():
        if rows:
            formatter.write(f"\n{_styled(f'{title}:', _HEADING)}\n{_table(rows, width)}")
    if command.epilog:
        formatter.write(f"\n{_filled(command.epilog, width)}\n")


def _usage(command: Any, ctx: Any, width: int) -> str:
    words = [command.options_metavar or "[OPTIONS]"]
    if words == ["[OPTIONS]"]:  # else it names the arguments as well
        words += [_metavar(param) for param in command.params if param.param_type_name == "argument"]
    if hasattr(command, "commands"):
        words.append("COMMAND [ARGS]...")
    start = f"Usage: {ctx.command_path} "
    text = textwrap.fill(" ".join(words), width, initial_indent=start, subsequent_indent=" " * len(start))
    return text.replace("Usage:", _styled("Usage:", _HEADING), 1) + "\n"


def _sections(command: Any, ctx: Any) -> Mapping[str, Rows]:
    shown = [parameter for parameter in command.get_params(ctx) if not parameter.hidden]
    arguments = [one for one in shown if one.param_type_name == "argument"]
    of_scan, old = getattr(command, "inherited", ()), getattr(command, "old_spellings", ())
    options = [one for one in shown if one not in arguments and one.name not in of_scan]
    sections: dict[str, Rows] = {
        "Arguments": [(_metavar(argument), argument.help or "") for argument in arguments],
        "Options": _rows(options, old),
        "Options for running a script, as in breakscope scan": _rows(
            (one for one in shown if one.name in of_scan), old
        ),
    }
    return {**sections, **getattr(command, "sections", dict)()}


def _rows(options: Iterable[Any], old: Collection[str]) -> Rows:
    return [
        (_names(option, old), " ".join(filter(None, (option.help, _default(option))))) for option in options
    ]


def _names(option: Any, old: Collection[str]) -> str:
    # The short form first, as everywhere.
    names = ", ".join(sorted(set(option.opts) - set(old), key=lambda name: name.startswith("--")))
    if option.secondary_opts:
        names += f" / {', '.join(option.secondary_opts)}"
    return names if option.is_flag else f"{names} {_metavar(option)}"


def _metavar(parameter: Any, *_ctx: object) -> str:
    return str(parameter.metavar or parameter.name.upper().strip("_"))


def _default(option: Any) -> str:
    if option.required:
        return "[required]"
    value = option.default
    if isinstance(value, bool):
        named = (option.opts if value else option.secondary_opts) if option.secondary_opts else []
        return f"[default: {named[0].lstrip('-')}]" if named else ""
    if isinstance(value, Enum):
        value = value.value
    return f"[default: {value}]" if isinstance(value, str | int | float | Path) and value != "" else ""


def _table(rows: Rows, width: int) -> str:
    column = min(max(len(name) for name, _ in rows), _WIDEST_NAME) + _GAP
    lines = []
    for name, text in rows:
        first, *more = textwrap.wrap(text, max(width - column - 2, 20)) or [""]
        head = f"  {_styled(name, _NAME)}"
        if len(name) + _GAP > column:
            lines += [head, f"{' ' * (column + 2)}{first}".rstrip()]
        else:
            lines.append(f"{head}{' ' * (column - len(name))}{first}".rstrip())
        lines += [" " * (column + 2) + line for line in more]
    return "\n".join(lines) + "\n"


def _filled(paragraph: str, width: int) -> str:
    return textwrap.fill(paragraph, width, initial_indent="  ", subsequent_indent="  ")


def _styled(text: str, style: str) -> str:
    return f"{style}{text}{_PLAIN}" if wants_color() else text
