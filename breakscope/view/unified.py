"""Unified diffs read back: by whoever shows, applies or proves one."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
NOTHING = "/dev/null"


@dataclass(slots=True)
class Hunk:
    """Lines of a hunk.

    Attributes:
        old, new: where it begins in the two files, from 1; of an empty side, the line before it.
        lines: each with its mark, a blank, ``-`` or ``+``.
        unended: indices of those that end the file without a line break.
        damage: why it does not hold the lines that its header promises; empty where it does.
    """

    old: int
    new: int
    lines: list[tuple[str, str]] = field(default_factory=list)
    unended: set[int] = field(default_factory=set)
    damage: str = ""


@dataclass(slots=True)
class FileDiff:
    """What a diff has on one file; names are as they stand there, with ``a/`` and ``b/``.

    Attributes:
        head: lines between the file before and this one.
    """

    old: str
    new: str
    head: tuple[str, ...] = ()
    hunks: list[Hunk] = field(default_factory=list)


def read(text: str) -> list[FileDiff]:
    """The files of a diff; hunks in front of the first, and lines behind the last, have one without names."""
    files: list[FileDiff] = []
    lines = text.replace("\r\n", "\n").split("\n")
    at = before = 0
    while at < len(lines):
        if lines[at].startswith("--- "):
            named = at + 1 < len(lines) and lines[at + 1].startswith("+++ ")
            new = _name(lines[at + 1]) if named else ""
            files.append(FileDiff(_name(lines[at]), new, tuple(lines[before:at])))
            before = at = at + 1 + named
        elif match := _HUNK.match(lines[at]):
            if not files:
                files.append(FileDiff("", ""))
            hunk, at = _hunk(match, lines, at + 1)
            files[-1].hunks.append(hunk)
            before = at
        else:
            at += 1
    return [*files, FileDiff("", "", tuple(lines[before:]))]


def _hunk(match: re.Match[str], lines: list[str], at: int) -> tuple[Hunk, int]:
    """A hunk and where it ends. Only its counts tell: a removed line may look like a header."""
    hunk = Hunk(int(match[1]), int(match[3]))
    left = {"-": int(match[2] or 1), "+": int(match[4] or 1)}
    while left["-"] > 0 or left["+"] > 0:
        if at >= len(lines):
            hunk.damage = "the diff ends within a hunk"
            return hunk, at
        line = lines[at] or " "  # editors and mailers take the space off an empty line of context
        mark = line[0]
        if mark == "\\":
            hunk.unended.add(len(hunk.lines) - 1)
        elif mark in " -+":
            hunk.lines.append((mark, line[1:]))
            left["-"] -= mark != "+"
            left["+"] -= mark != "-"
        else:
            hunk.damage = f"a hunk of the diff has a line that belongs to none: {line[:60]!r}"
            return hunk, at
        at += 1
    if at < len(lines) and lines[at].startswith("\\"):
        hunk.unended.add(len(hunk.lines) - 1)
        at += 1
    return hunk, at


def _name(line: str) -> str:
    return line[4:].partition("\t")[0].strip().strip('"')  # behind the tab stands a time


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
    for file in read(diff):
        if not file.new or NOTHING in (file.old, file.new):
            continue
        name = file.old.removeprefix("a/")
        for hunk in file.hunks:
            found[name] = (*found.get(name, ()), *_changes(hunk))
    return found


def _changes(hunk: Hunk) -> list[Replacement]:
    if hunk.damage:
        raise ValueError(
            f"a hunk of the diff does not hold the lines that its header promises: {hunk.damage}"
        )
    done: list[Replacement] = []
    removed: list[str] = []
    added: list[str] = []
    open_end = False
    # Of an empty side, the header names the line before it.
    line = hunk.old if any(mark != "+" for mark, _ in hunk.lines) else hunk.old + 1
    for index, (mark, text) in enumerate([*hunk.lines, (" ", "")]):  # what follows closes the last change
        if mark == " ":
            if removed or added:
                done.append(Replacement(line, tuple(removed), tuple(added), open_end))
            line += len(removed) + 1
            removed, added, open_end = [], [], False
        else:
            (removed if mark == "-" else added).append(text)
            open_end = open_end or index in hunk.unended
    return done
