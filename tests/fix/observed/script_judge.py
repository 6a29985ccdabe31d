"""The judge: runs two forms of a script as scripts, and compares all that they say.

It shares no code with breakscope and knows nothing of rewrites: two folders, a script in each, and what
`python SCRIPT` prints there on both streams, the exception that it ends with, and its exit status.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from warm import LIMIT_S, Warm

SCRIPT = "script.py"
# What torch itself says about compiling, which is what a rewrite is to change. Nothing else is left out:
# - lines of torch's own loggers: "W1122 13:00:00.000000 123 torch/_dynamo/…] text", all lines of one record
# - warnings at a line of torch's own files, with the line of source that Python shows under them
TORCH_LOG = re.compile(r"^(\[rank\d+\]:)?[VIWEC]\d{4} \d\d:\d\d:\d\d\.\d+ \d+ torch/\S+:\d+\] ?")
TORCH_WARNING = re.compile(r"^\S*/site-packages/torch/\S+\.py:\d+: \w+: ")
# Where in the script something was said moves with a rewrite; what was said must not.
PLACE = re.compile(r"^(\S+\.py):\d+: (\w+: )")


class UnstableError(Exception):
    """The old script does not say the same twice: nothing can be judged."""


@dataclass(frozen=True)
class Ran:
    """What one run said.

    Attributes:
        stdout, stderr: lines, those of torch about compiling left out; a traceback is its last line alone.
        exit_code: 124 where it was killed for its time, below zero where a signal ended it.
    """

    stdout: tuple[str, ...]
    stderr: tuple[str, ...]
    exit_code: int


def run(warm: Warm, folder: Path, environment: Mapping[str, str] | None = None) -> Ran:
    """Run the script of a folder, there."""
    out, err = folder / "stdout.txt", folder / "stderr.txt"
    code = warm.python(SCRIPT, folder, out, err, environment, LIMIT_S)
    said = [one.read_text(errors="replace").replace(str(folder), "FOLDER").splitlines() for one in (out, err)]
    return Ran(tuple(said[0]), tuple(of_the_script(said[1])), code)


def of_the_script(lines: list[str]) -> list[str]:
    """The lines of stderr that are the script's, without the numbers of its lines."""
    kept: list[str] = []
    shown_under = in_traceback = False
    for line in lines:
        if shown_under and line.startswith("  "):  # the line of source under a warning
            shown_under = False
            continue
        shown_under = False
        if in_traceback and (line.startswith(" ") or not line):
            continue
        in_traceback = line.startswith("Traceback (most recent call last)")
        if in_traceback or TORCH_LOG.match(line):
            continue
        shown_under = bool(PLACE.match(line))
        if not TORCH_WARNING.match(line):
            kept.append(PLACE.sub(r"\1: \2", line))
    return kept


def differences(old: Ran, new: Ran) -> list[str]:
    """How two runs differ, in sentences; none where they said the same."""
    found = []
    for name in ("stdout", "stderr"):
        lines = zip_longest(getattr(old, name), getattr(new, name))
        for number, (one, other) in enumerate(lines, 1):
            if one != other:
                found.append(f"{name} line {number}: {_shown(one)} before, {_shown(other)} after")
                break
    if old.exit_code != new.exit_code:
        found.append(f"exit status {old.exit_code} before, {new.exit_code} after")
    return found


def judge(warm: Warm, old: Path, new: Path, environment: Mapping[str, str] | None = None) -> list[str]:
    """What an observer of the two scripts could tell apart.

    Args:
        old, new: folders, each with a ``script.py``; files that a script writes stay there.

    Raises:
        UnstableError: the old script was run again, and said something else.
    """
    before, after = run(warm, old, environment), run(warm, new, environment)
    found = differences(before, after)
    if found and (unstable := differences(before, run(warm, old, environment))):
        raise UnstableError(unstable[0])
    return found


def _shown(line: str | None) -> str:
    return "nothing" if line is None else repr(line[:200])
