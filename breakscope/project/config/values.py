"""From TOML's values to ours: each reader says what a key may be, and names the key that is not so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any

from breakscope import catalog
from breakscope.errors import ConfigError
from breakscope.project.config.model import OWNERS


@dataclass(frozen=True, slots=True)
class At:
    """Where in the configuration a value stands, for errors."""

    file: Path
    key: str = ""

    def __truediv__(self, key: str) -> At:
        return At(self.file, f"{self.key}.{key}" if self.key else key)

    def error(self, said: str) -> ConfigError:
        """One that names the file and the key."""
        where = f"{self.key} " if self.key else ""
        return ConfigError(f"{self.file}: {where}{said}")


Reader = Callable[[Any, At], Any]


def text(value: Any, at: At) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value:
        raise at.error("must be a text that is not empty")
    return value


def texts(value: Any, at: At) -> tuple[str, ...]:
    """A list of texts."""
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise at.error("must be a list of texts")
    return tuple(value)


def flag(value: Any, at: At) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise at.error("must be true or false")
    return value


def whole(least: int) -> Reader:
    """A whole number from ``least``."""

    def read(value: Any, at: At) -> int:
        if type(value) is not int or value < least:
            raise at.error(f"must be a whole number from {least}")
        return value

    return read


def number(least: float) -> Reader:
    """A number from ``least``."""

    def read(value: Any, at: At) -> float:
        # Neither of TOML's nan and inf passes the comparison.
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not least <= value < float("inf"):
            raise at.error(f"must be a number from {least:g}")
        return float(value)

    return read


def one_of(*choices: str) -> Reader:
    """One of some texts."""

    def read(value: Any, at: At) -> str:
        if value not in choices:
            near = get_close_matches(str(value), choices, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise at.error(f"must be one of {', '.join(choices)}{hint}")
        return str(value)

    return read


def check_codes(named: tuple[str, ...]) -> str | None:
    """What is wrong with codes or prefixes of codes that a user wrote, as the end of a sentence."""
    known = [entry.code for entry in catalog.codes()]
    for code in named:
        if not code or not any(one.startswith(code) for one in known):
            near = get_close_matches(code.upper(), known, n=1)
            hint = f"did you mean {near[0]}?" if near else "`breakscope explain --list` shows all"
            return f"{code!r} is no code and no beginning of one; {hint}"
    return None


def codes(value: Any, at: At) -> tuple[str, ...]:
    """Codes, or prefixes of codes, that exist."""
    named = texts(value, at)
    if wrong := check_codes(named):
        raise at.error(f"has an unknown code: {wrong}")
    return named


def codes_by_path(value: Any, at: At) -> Mapping[str, tuple[str, ...]]:
    """A table from patterns of paths to codes."""
    if not isinstance(value, dict):
        raise at.error('must be a table of patterns, such as "legacy/**" = ["BS101"]')
    return MappingProxyType({pattern: codes(named, at / pattern) for pattern, named in value.items()})


def owners(value: Any, at: At) -> tuple[str, ...]:
    """Whose code."""
    return tuple(one_of(*OWNERS)(one, at) for one in texts(value, at))
