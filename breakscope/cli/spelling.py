"""Options that had another name before: the old one works for a release, and says what the new one is."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

# By command: the old spelling, and what to write instead. They go with version 0.3.
OLD: Mapping[str, Mapping[str, str]] = {
    "bench": {"--budget": "--against", "--json": "--format json"},
    "fix": {"--output": "--fixes", "-o": "--fixes", "--format text": "--format terminal"},
    "prove": {"--format text": "--format terminal"},
}


def accept_old(name: str, command: Any) -> Any:
    """Have a command say so where an old spelling is used; return it."""
    if name in OLD:
        command.old_spellings = OLD[name]
        command.parse_args = partial(_parse, command, command.parse_args)
    return command


def _parse(command: Any, parse: Any, ctx: Any, args: list[str]) -> list[str]:
    split = getattr(command, "split", None)  # what stands after a script is the script's
    for old, new in _used(split(ctx, args)[0] if split else args, command.old_spellings).items():
        print(f"breakscope: note: {old} is now {new}; the old spelling goes away in 0.3", file=sys.stderr)
    rest: list[str] = parse(ctx, args)
    return rest


def _used(words: Sequence[str], old: Mapping[str, str]) -> dict[str, str]:
    used = {}
    for index, word in enumerate(words):
        option, equals, value = word.partition("=")
        if not equals and index + 1 < len(words):
            value = words[index + 1]
        for spelling in (option, f"{option} {value}"):
            if spelling in old:
                used[spelling] = old[spelling]
    return used
