"""Words of the command line made into values, where that is plain, without the library typer uses for it.

Newer versions of typer build a pydantic model for each option that is read, given or not. Importing pydantic
takes as long as lint does on a file. What is anything but plain, and almost every error, is left to typer.
"""

from __future__ import annotations

import os
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, get_args, get_origin

from breakscope.errors import UsageError

_LEFT = object()  # typer's own conversion is wanted
_PATH_CHECKS = ("exists", "writable", "resolve_path", "allow_dash", "path_type")


def lighten(command: Any) -> Any:
    """Give a command's parameters the short way, and return it."""
    for parameter in command.params:
        _lighten(parameter)
    get_help_option = command.get_help_option
    # The one of --help is made by click, and is not among the others.
    command.get_help_option = lambda ctx: _lighten(get_help_option(ctx))
    return command


def _lighten(parameter: Any) -> Any:
    if isinstance(parameter.process_value, partial):
        return parameter
    info = getattr(getattr(parameter, "type_descriptor", None), "parameter_info", None)
    short = _process if info is not None and not getattr(info, "parser", None) else _prepare
    parameter.process_value = partial(short, parameter, parameter.process_value)
    return parameter


def _process(parameter: Any, thorough: Any, ctx: Any, value: Any) -> Any:
    """As ``process_value`` of click's parameters, which typer's own conversion is a part of."""
    try:
        plain = _plain(parameter, value)
    except AttributeError:  # a version that describes its parameters in another way
        plain = _LEFT
    if plain is _LEFT or (parameter.required and plain in (None, (), [])):
        return _prepare(parameter, thorough, ctx, value)
    return plain if parameter.callback is None else parameter.callback(ctx, parameter, plain)


def _prepare(parameter: Any, thorough: Any, ctx: Any, value: Any) -> Any:
    """Typer's own conversion, of what each version of typer takes from each version of click.

    Versions before 0.17 beside click 8.3 and newer let a missing argument pass, and take no default that is
    a member of an Enum.
    """
    if parameter.required and value in (None, (), []) and not ctx.resilient_parsing:
        kind = "option" if parameter.param_type_name == "option" else "argument"
        name = " / ".join(parameter.opts) if kind == "option" else parameter.make_metavar()
        raise UsageError(f"missing {kind} {name}")
    return thorough(ctx, value.value if isinstance(value, Enum) else value)


def _plain(parameter: Any, value: Any) -> Any:
    several = parameter.multiple or parameter.nargs == -1
    if value is None:
        return () if several else None
    described = parameter.type_descriptor
    wanted, info = described.annotation, described.parameter_info
    if not several:
        return _LEFT if parameter.nargs != 1 else _one(wanted, info, value)
    if get_origin(wanted) is not list or not isinstance(value, list | tuple):
        return _LEFT
    [item] = get_args(wanted)
    made = [_one(item, info, one) for one in value]
    return _LEFT if any(one is _LEFT for one in made) else made


def _one(wanted: Any, info: Any, value: Any) -> Any:
    """One word, or one default."""
    if not isinstance(wanted, type):
        return _LEFT
    if wanted is str or wanted is bool:
        return value if type(value) is wanted else _LEFT
    if issubclass(wanted, Enum):
        named = [one for one in wanted if value is one or value == str(one.value)]
        return named[0] if named else _LEFT
    if wanted is int or wanted is float:
        return _number(wanted, info, value)
    return _path(info, value) if wanted is Path else _LEFT


def _number(wanted: type[int | float], info: Any, value: Any) -> Any:
    if wanted is int and isinstance(value, str) and value.isascii() and value.isdecimal():
        value = int(value)
    if type(value) is not wanted or info.clamp:
        return _LEFT
    low, high = info.min, info.max
    return value if (low is None or value >= low) and (high is None or value <= high) else _LEFT


def _path(info: Any, value: Any) -> Any:
    if any(getattr(info, check) for check in _PATH_CHECKS) or not (info.file_okay and info.dir_okay):
        return _LEFT
    readable = os.access(value, os.R_OK) or not Path(value).exists()
    return Path(value) if readable or not info.readable else _LEFT
