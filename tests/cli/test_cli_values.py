"""The short way from a word of the command line to its value gives what typer's own way gives."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from breakscope.cli import values
from breakscope.cli.app import NAMES, Commands

LINES = [
    "lint",
    "lint a.py b --level possible --select BS1 --select BS2 -j 3 -o out.txt --format json --no-cache",
    "lint --level LIKELY",
    "lint -j 0",
    "lint -j 2.5",
    "lint -j ٣",
    "lint -j ' 3'",
    "scan --backend inductor --mode max-autotune --dynamic true --steps 5 --timeout 2.5 --no-cost a.py -o x",
    "scan --backend Inductor a.py",
    "scan --timeout 0.01 a.py",
    "scan --max-restarts -1 --fixes . a.py",
    "check r.json --max-sites 0 --max-ms-per-step 1e3 --target a --target b --write html=x -- a.py",
    "check --max-sites -1",
    "check --fixes f --backend eager -- a.py",
    "import",
    "import a b/ '' -o . --jobs 16 --limit 1 --all",
    "import a --limit 0",
    "merge a.json",
    "merge a.json b.json -o x --executor dask://127.0.0.1:8786",
    "bench --processes 9 a.py",
    "bench --seconds 3 --step optimizer --device cpu --budget none.json a.py",
    "fix --no-inductor --budget 0",
    "fix --with cmd --tries 2 --format json",
    "prove - --exact reassociated --counterexample a.py --bench --format json -- a.py --x",
    "prove a.patch --budget 0",
    "diff one.json",
    "show 0/0 --rank -1",
    "explain BS101 --list",
    "report --html --known k.json",
    "schema",
    "config --config pyproject.toml",
    "remedy --select A --timeout 1",
    "run --fixes . a.py",
]


def parsed(words: list[str]) -> Any:
    """What a command gets; or the sentence of the error."""
    command = Commands()[words[0]]
    try:
        found = command.make_context(words[0], words[1:]).params
    except Exception as error:  # noqa: BLE001 -- the class is that of click or of a copy of it in typer
        # What is missing, we say ourselves, without the quotation marks.
        said = error.format_message() if hasattr(error, "format_message") else str(error)
        return said.lower().replace("'", "").rstrip(".")
    return {name: (type(value), value) for name, value in found.items()}


@pytest.mark.parametrize("line", LINES)
def test_the_same_values(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words = shlex.split(line)
    ours = parsed(words)
    monkeypatch.setattr(values, "lighten", lambda command: command)
    assert ours == parsed(words)


def test_every_command_is_compared() -> None:
    assert {line.split()[0] for line in LINES} == set(NAMES)
