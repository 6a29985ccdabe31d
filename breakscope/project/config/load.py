"""Finds the configuration file and makes a :class:`Config` of it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from breakscope.errors import ConfigError
from breakscope.project.config.keys import config
from breakscope.project.config.model import Config

PYPROJECT, OWN_FILE = "pyproject.toml", "breakscope.toml"


def load(start: Path | None = None, file: Path | None = None) -> Config:
    """The configuration for a folder.

    Args:
        start: where to begin to look; None for the current folder.
        file: the file to read instead of looking for one.

    Raises:
        ConfigError: it cannot be read, or says what cannot be; names the file and the key.
    """
    if file is not None:
        table = _table(file, file.name != PYPROJECT, must_exist=True)
        return config(table or {}, file.absolute())
    here = (start or Path()).absolute()
    for folder in (here, *here.parents):
        found = [
            (path, table)
            for path in (folder / OWN_FILE, folder / PYPROJECT)
            if (table := _table(path, path.name == OWN_FILE)) is not None
        ]
        if len(found) > 1:
            raise ConfigError(f"{OWN_FILE} and {PYPROJECT} in {folder} both configure breakscope; keep one")
        if found:
            return config(found[0][1], found[0][0])
        if (folder / ".git").exists():
            return Config(root=folder)
    return Config(root=here)


def _table(path: Path, whole: bool, *, must_exist: bool = False) -> dict[str, Any] | None:
    """The table of a file, which is all of breakscope.toml; None if there is none."""
    try:
        text = path.read_bytes().decode("utf-8")
    except (FileNotFoundError, NotADirectoryError) as error:
        if must_exist:
            raise ConfigError(f"cannot read {path}: {error.strerror}") from None
        return None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"cannot read {path}: it is not UTF-8 text") from None
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"cannot read {path}: it is not TOML: {error}") from None
    if whole:
        return data
    tool = data.get("tool")
    table = tool.get("breakscope") if isinstance(tool, dict) else None
    if table is None:
        return {} if must_exist else None
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: tool.breakscope is not a table")
    return table
