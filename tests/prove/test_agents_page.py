"""docs/agents.md, followed: its commands, its exit codes, and the keys of its answers."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import right
from patches import SCRIPT
from scanning import run_cold

pytestmark = pytest.mark.torch

PAGE = (Path(__file__).parent.parent.parent / "docs" / "agents.md").read_text()
PATCH = next(one for one in right.PATCHES if one.name == "while_loop")


def commands() -> list[list[str]]:
    """The commands of the page, with the script of this test."""
    block = re.search(r"```console\n(.*?)```", PAGE, re.DOTALL)
    assert block is not None
    lines = [line.removeprefix("$ ").replace("train.py", SCRIPT) for line in block[1].splitlines()]
    return [shlex.split(line.rpartition("| ")[2]) for line in lines]


def documented(title: str) -> dict[str, Any]:
    block = re.search(rf"## `{title}`\n\n```json\n(.*?)```", PAGE, re.DOTALL)
    assert block is not None
    found: dict[str, Any] = json.loads(block[1])
    return found


def ran(folder: Path, words: list[str], given: str = "") -> tuple[int, str]:
    assert words[0] == "breakscope"
    done = run_cold(*words[1:], folder=folder, stdin=given)
    return done.returncode, done.stdout + ("" if done.stdout else done.stderr)


@pytest.mark.nightly
def test_the_loop_of_the_page_ends_clean(tmp_path: Path) -> None:
    scan, fix, prove, check = commands()
    (tmp_path / SCRIPT).write_text(PATCH.script)
    assert ran(tmp_path, scan)[0] == 0
    code, text = ran(tmp_path, fix)
    answer = json.loads(text)
    assert code == 1, "no rule repairs it"
    assert answer.keys() == documented("fix --format json").keys()
    assert answer["findings"][0].keys() == documented("fix --format json")["findings"][0].keys()
    assert ran(tmp_path, check)[0] == 1
    (tmp_path / SCRIPT).write_text(PATCH.patched)
    code, text = ran(tmp_path, prove, PATCH.diff)
    answer = json.loads(text)
    assert (code, answer["status"]) == (0, "proved"), answer["why"]
    assert answer.keys() == documented("prove --format json").keys()
    assert ran(tmp_path, check)[0] == 0


def test_the_counterexample_of_the_page_has_the_keys_of_the_answer() -> None:
    from breakscope.fix.answer import _example
    from breakscope.fix.prove import Counterexample

    shown = documented("prove --format json")["counterexample"]
    assert _example(Counterexample("a difference"), None).keys() == shown.keys()
