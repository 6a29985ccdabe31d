"""Reads what is known to be true of a fixture from the block at its top.

The keys are explained in ``fixtures/README.md``. Counts that hold for every supported version stand
first; ``[torch."2.9"]`` and ``[python."3.11"]`` replace some of them for one minor version.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"

_START, _END = "# /// breakscope", "# ///"
_AXES = ("torch", "python")
_Row = TypeVar("_Row", "TrueFinding", "TrueRecompile", "TrueSkip")


class TruthError(ValueError):
    """A fixture's block is missing or wrong; the message names the file and says what to change."""


@dataclass(frozen=True, slots=True)
class TrueFinding:
    """A site, or a function that ran out of recompiles.

    Attributes:
        line: the source line without indentation; None if the finding is about a whole function.
        expression: the text of Dynamo's column range; None where that is the whole line or where it
            spans several.
        crossings: None where the finding is not a site.
    """

    code: str
    function: str
    line: str | None = None
    expression: str | None = None
    crossings: int | None = None


@dataclass(frozen=True, slots=True)
class TrueRecompile:
    """A cause of recompiles in one function; ``expected`` and ``actual`` are those of its first time."""

    code: str
    function: str
    times: int
    source: str | None = None
    dimension: int | None = None
    expected: str | None = None
    actual: str | None = None


@dataclass(frozen=True, slots=True)
class TrueSkip:
    """A function that Dynamo gave up on; ``calls`` counts those from the one that made it give up."""

    function: str
    calls: int


@dataclass(frozen=True, slots=True)
class Truth:
    """What a scan of one fixture must report.

    Attributes:
        occurrences: None where it is not fixed.
        regions: None where it is not fixed.
    """

    path: Path
    idea: str
    sites: int
    crossings: int
    recompiles: int
    skips: int
    vacuous: bool
    exit_code: int
    options: tuple[str, ...]
    args: tuple[str, ...]
    occurrences: int | None
    regions: int | None
    findings: tuple[TrueFinding, ...]
    recompile_causes: tuple[TrueRecompile, ...]
    skipped: tuple[TrueSkip, ...]


_NUMBERS = ("sites", "crossings", "recompiles", "skips", "exit_code")
_OPTIONAL_NUMBERS = ("occurrences", "regions")
_TEXTS = ("options", "args")
_TABLES = ("finding", "recompile", "skip")
_KEYS = {*_NUMBERS, *_OPTIONAL_NUMBERS, *_TEXTS, *_TABLES, "vacuous"}


def all_fixtures() -> list[Path]:
    """Every fixture, sorted by name."""
    return sorted(FIXTURES.glob("*.py"))


def read(path: Path, *, torch: str | None = None, python: str | None = None) -> Truth:
    """The truth about one fixture.

    Args:
        torch: the version that the fixture runs on, such as ``2.9.1+cpu``; None reads the truth
            without what only holds for one version.
        python: the same for Python.

    Raises:
        TruthError: the block is missing, is not TOML, or has a wrong or missing key.
    """
    source = path.read_text(encoding="utf-8")
    table = _block(path, source)
    overrides = {axis: _mapping(path, axis, table.pop(axis, {})) for axis in _AXES}
    for axis, version in zip(_AXES, (torch, python), strict=True):
        for minor, changes in overrides[axis].items():
            _check_keys(path, _mapping(path, f'{axis}."{minor}"', changes))
            if version is not None and version.split(".")[:2] == minor.split("."):
                table |= changes
    return _truth(path, ast.get_docstring(ast.parse(source)) or "", table)


def line_number(path: Path, text: str) -> int:
    """The number, from 1, of the one line of a fixture that is ``text`` but for its indentation.

    Raises:
        TruthError: no line or more than one is.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    found = [number for number, line in enumerate(lines, 1) if line.strip() == text]
    if len(found) != 1:
        raise TruthError(f"{path.name}: the line {text!r} stands {len(found)} times in the script, not once")
    return found[0]


def _block(path: Path, source: str) -> dict[str, Any]:
    lines = source.splitlines()
    if not lines or lines[0] != _START or _END not in lines:
        raise TruthError(f"{path.name}: begin the file with a block from '{_START}' to '{_END}'")
    block = lines[1 : lines.index(_END)]
    if strangers := [line for line in block if not line.startswith("#")]:
        raise TruthError(
            f"{path.name}: {strangers[0]!r} in the block is no comment; is the '{_END}' in place?"
        )
    try:
        return tomllib.loads("\n".join(line.removeprefix("#").removeprefix(" ") for line in block))
    except tomllib.TOMLDecodeError as error:
        raise TruthError(f"{path.name}: the block is not TOML: {error}") from error


def _mapping(path: Path, name: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TruthError(f"{path.name}: {name} must be a table")
    return value


def _check_keys(path: Path, table: Mapping[str, Any]) -> None:
    if unknown := sorted(table.keys() - _KEYS):
        raise TruthError(f"{path.name}: unknown key {unknown[0]!r}; known are {', '.join(sorted(_KEYS))}")


def _truth(path: Path, idea: str, table: Mapping[str, Any]) -> Truth:
    _check_keys(path, table)
    for name in (*_NUMBERS, *_OPTIONAL_NUMBERS):
        if name in _NUMBERS and name not in table:
            raise TruthError(f"{path.name}: the block lacks {name!r}")
        if name in table and type(table[name]) is not int:
            raise TruthError(f"{path.name}: {name} must be a whole number")
    if not isinstance(table.get("vacuous"), bool):
        raise TruthError(f"{path.name}: vacuous must be true or false")
    for name in _TEXTS:
        if not _is_list_of(str, table.get(name, [])):
            raise TruthError(f"{path.name}: {name} must be a list of strings")
    for name in _TABLES:
        if not _is_list_of(dict, table.get(name, [])):
            raise TruthError(f"{path.name}: write {name} as [[{name}]]")
    return Truth(
        path=path,
        idea=idea,
        sites=table["sites"],
        crossings=table["crossings"],
        recompiles=table["recompiles"],
        skips=table["skips"],
        vacuous=table["vacuous"],
        exit_code=table["exit_code"],
        options=tuple(table.get("options", ())),
        args=tuple(table.get("args", ())),
        occurrences=table.get("occurrences"),
        regions=table.get("regions"),
        findings=_rows(path, "finding", TrueFinding, table),
        recompile_causes=_rows(path, "recompile", TrueRecompile, table),
        skipped=_rows(path, "skip", TrueSkip, table),
    )


def _is_list_of(kind: type, value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, kind) for item in value)


def _rows(path: Path, name: str, kind: type[_Row], table: Mapping[str, Any]) -> tuple[_Row, ...]:
    types = get_type_hints(kind)
    required = {field.name for field in fields(kind) if field.default is MISSING}
    for row in table.get(name, []):
        if unknown := sorted(row.keys() - types.keys()):
            raise TruthError(f"{path.name}: unknown key {unknown[0]!r} in [[{name}]]")
        if missing := sorted(required - row.keys()):
            raise TruthError(f"{path.name}: a [[{name}]] lacks {missing[0]!r}")
        for key, value in row.items():
            if type(value) not in (get_args(types[key]) or (types[key],)):
                raise TruthError(f"{path.name}: {key} in [[{name}]] has the wrong type: {value!r}")
    return tuple(kind(**row) for row in table.get(name, []))
