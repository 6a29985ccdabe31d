"""Unified diffs read back, for formats that want each replacement by itself."""

from __future__ import annotations

import re
from dataclasses import dataclass

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_TIMESTAMP = re.compile(r"\t.*$")


@dataclass(frozen=True, slots=True)
class Replacement:
    """Whole lines that become other whole lines.

    Attributes:
        start: first line to take out, counted from 1; where ``removed`` is empty, new lines go before it.
        removed: the lines to take out.
        added: the lines to put there.
        open_end: whether one side ends the file without a line break.
    """

    start: int
    removed: tuple[str, ...]
    added: tuple[str, ...]
    open_end: bool = False


def replacements(diff: str) -> dict[str, tuple[Replacement, ...]]:
    """Path of the old file -> what changes in it.

    Files that a diff adds or removes as a whole are left out. Raises ValueError for a hunk that does not
    hold the lines that its header promises: a damaged diff must not become a wrong edit.
    """
    found: dict[str, tuple[Replacement, ...]] = {}
    old = new = None
    lines = diff.split("\n")
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if line.startswith("--- "):
            old, new = _path(line[4:], "a/"), None
        elif line.startswith("+++ ") and old is not None:
            new = _path(line[4:], "b/")
        elif (match := _HUNK.match(line)) and old and new:
            start, size, new_size = int(match[1]), int(match[2] or 1), int(match[3] or 1)
            end = _end(lines, at, size, new_size)
            # Of an empty range, the header names the line before it.
            changes = _changes(lines[at:end], start if size else start + 1)
            found[old] = (*found.get(old, ()), *changes)
            at = end
    return found


def _end(lines: list[str], start: int, old_left: int, new_left: int) -> int:
    """Where the body of a hunk ends. Only its counts tell: a removed line may look like a header."""
    at = start
    while (old_left or new_left) and at < len(lines):
        mark = lines[at][:1]
        if mark not in ("", " ", "-", "+", "\\"):
            break
        old_left -= mark in ("", " ", "-")  # editors strip the blank of an empty line
        new_left -= mark in ("", " ", "+")
        at += 1
    if old_left or new_left:
        raise ValueError("a hunk of the diff does not hold the lines that its header promises")
    return at + (at < len(lines) and lines[at].startswith("\\"))


def _changes(body: list[str], line: int) -> list[Replacement]:
    done: list[Replacement] = []
    removed: list[str] = []
    added: list[str] = []
    open_end = False
    for text in [*body, " "]:  # what follows the hunk closes its last change
        mark, rest = text[:1], text[1:].removesuffix("\r")
        if mark == "-":
            removed.append(rest)
        elif mark == "+":
            added.append(rest)
        elif mark == "\\":
            open_end = bool(removed or added)
        else:
            if removed or added:
                done.append(Replacement(line, tuple(removed), tuple(added), open_end))
            line += len(removed) + 1
            removed, added, open_end = [], [], False
    return done


def _path(text: str, prefix: str) -> str | None:
    path = _TIMESTAMP.sub("", text).strip()
    return None if path == "/dev/null" else path.removeprefix(prefix)
