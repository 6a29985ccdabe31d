"""`breakscope prove` on a script and a patch, in a fork of the warm process."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patches import SCRIPT, Patched
from warm import Warm

# Seconds for the comparisons of one function: small functions are compared on some 500 inputs in 3, and a busy
# machine is slower.
BUDGET_S = "10"
EXAMPLE = "counterexample.py"


@dataclass(frozen=True)
class Asked:
    """What the command said."""

    exit_code: int
    answer: dict[str, Any]
    errors: str

    @property
    def status(self) -> str:
        return str(self.answer["status"])

    @property
    def why(self) -> str:
        return str(self.answer["why"])


def prove(warm: Warm, patched: Patched, folder: Path) -> Asked:
    """Prove a patch. Its script and, where the forms part, a counterexample are in the folder afterwards."""
    (folder / SCRIPT).write_text(patched.script)
    (folder / "my.patch").write_text(patched.diff)
    return ask(warm, folder, "my.patch", *patched.options)


def ask(warm: Warm, folder: Path, *words: str, script: tuple[str, ...] = ("--", SCRIPT)) -> Asked:
    log = folder / "log"
    usual = ("--no-inductor", "--budget", BUDGET_S, "--timeout", "60", "--counterexample", EXAMPLE)
    code = warm.commands([("prove", *words, *usual, "--format", "json", *script)], folder, log)
    text, errors = log.read_text(), log.with_suffix(".err").read_text()
    start, end = text.find("{"), text.rfind("}")
    return Asked(code, json.loads(text[start : end + 1]) if start >= 0 else {}, errors)
