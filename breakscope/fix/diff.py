"""A unified diff by anybody: which files it changes, and which of its two sides they hold now.

``git diff`` is made of a working tree that has the change already; a patch file is made for one that has
not. Both are read, and which one it is, is told from the files themselves.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from breakscope.errors import UsageError
from breakscope.fix.patch import Edit
from breakscope.fix.source_file import NotTextError, Source, read

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_BLOBS = re.compile(r"index ([0-9a-f]{4,})\.\.([0-9a-f]{4,})")
_NOTHING = "/dev/null"

Side = Literal["old", "new"]


class DiffError(UsageError):
    """The diff cannot be read, or is not of these files."""

    slug = "diff"


@dataclass(frozen=True, slots=True)
class Change:
    """A file that a diff changes.

    Attributes:
        file: real path. on_disk: the side that it holds now.
    """

    file: str
    old: Source
    new: Source
    on_disk: Side

    @property
    def disk(self) -> Source:
        """What the file holds now."""
        return self.old if self.on_disk == "old" else self.new

    def edits(self, side: Side) -> tuple[Edit, ...]:
        """What makes one side of what the file holds now: nothing for the side that it has."""
        return edits_between(self.disk.text, (self.old if side == "old" else self.new).text, self.file)


@dataclass(slots=True)
class _Hunk:
    """Lines of a hunk, each with its mark; ``old`` and ``new``: where it begins, from 1."""

    old: int
    new: int
    lines: list[tuple[str, str]] = field(default_factory=list)
    unended: set[int] = field(default_factory=set)

    def side(self, side: Side) -> list[str]:
        left_out = "+" if side == "old" else "-"
        return [
            text if at in self.unended else text + "\n"
            for at, (mark, text) in enumerate(self.lines)
            if mark != left_out
        ]

    def at(self, side: Side) -> int:
        """The first line's index; a side without lines stands behind the line that is named."""
        first = self.old if side == "old" else self.new
        return first - 1 if self.side(side) else first

    @property
    def at_the_end(self) -> bool:
        """Whether fewer lines follow the change than come before it: the file ends there."""
        marks = [mark for mark, _ in self.lines]
        before = next((i for i, mark in enumerate(marks) if mark != " "), len(marks))
        behind = next((i for i, mark in enumerate(reversed(marks)) if mark != " "), len(marks))
        return behind < before


@dataclass(slots=True)
class _File:
    old: str
    new: str
    blobs: tuple[str, str] | None = None
    hunks: list[_Hunk] = field(default_factory=list)


def changes(text: str, folders: Sequence[Path]) -> list[Change]:
    """The files that a diff changes, as they are found.

    Args:
        folders: to which names in the diff may be relative, the likeliest first; then those of libraries.

    Raises:
        DiffError: it is none, does not fit the files, or makes, removes or renames files.
    """
    found = [_change(one, folders) for one in _parse(text)]
    found = [one for one in found if one.old.text != one.new.text]
    if not found:
        raise DiffError("the diff changes no file")
    if len({one.file for one in found}) < len(found):
        raise DiffError("the diff changes a file twice")
    if len({one.on_disk for one in found}) > 1:
        raise DiffError("some of the files have the change already and some have not")
    return found


def against(file: Path, old: Path) -> Change:
    """A file as it is now, against a file with what it was before. Raises DiffError."""
    sources = []
    for place in (old, file):
        try:
            sources.append(read(str(place)))
        except (OSError, SyntaxError, NotTextError) as error:
            raise DiffError(f"cannot read {place}: {error}") from None
    before, after = sources
    if before.text == after.text:
        raise DiffError(f"{file} and {old} hold the same")
    return Change(os.path.realpath(file), before, after, "new")


def edits_between(old: str, new: str, file: str = "") -> tuple[Edit, ...]:
    """The lines that differ, as edits of the old text."""
    lines, other = _split(old), _split(new)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    matcher = difflib.SequenceMatcher(None, lines, other, autojunk=False)
    return tuple(
        Edit(starts[a], starts[b], "".join(other[c:d]), file)
        for tag, a, b, c, d in matcher.get_opcodes()
        if tag != "equal"
    )


# ---- reading ----


def _parse(text: str) -> Iterator[_File]:
    current: _File | None = None
    blobs: tuple[str, str] | None = None
    lines = text.splitlines() if "\r\n" in text else text.split("\n")
    at = 0
    while at < len(lines):
        line = lines[at]
        if line.startswith(("rename from", "copy from", "Binary files", "GIT binary patch")):
            raise DiffError("the diff renames a file, or is of one that is no text")
        if line.startswith("diff "):
            blobs = None
        if match := _BLOBS.match(line):
            blobs = match[1], match[2]
        if line.startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ "):
            if current is not None:
                yield current
            current = _File(_name(line[4:]), _name(lines[at + 1][4:]), blobs)
            at += 2
            continue
        if match := _HUNK.match(line):
            if current is None:
                raise DiffError("the diff names no file: it needs lines with --- and +++")
            hunk, at = _hunk(match, lines, at + 1)
            current.hunks.append(hunk)
            continue
        at += 1
    if current is None:
        raise DiffError("this is no unified diff: it has no lines with --- and +++")
    yield current


def _hunk(match: re.Match[str], lines: Sequence[str], at: int) -> tuple[_Hunk, int]:
    hunk = _Hunk(int(match[1]), int(match[3]))
    left = {"-": int(match[2] or 1), "+": int(match[4] or 1)}
    while left["-"] > 0 or left["+"] > 0:
        if at >= len(lines):
            raise DiffError("the diff ends within a hunk")
        line = lines[at]
        # Editors and mailers take the space off an empty line of context.
        mark, text = (line[0], line[1:]) if line else (" ", "")
        if mark == "\\":
            hunk.unended.add(len(hunk.lines) - 1)
        elif mark in " +-":
            hunk.lines.append((mark, text))
            left["-"] -= mark != "+"
            left["+"] -= mark != "-"
        else:
            raise DiffError(f"a hunk of the diff has a line that belongs to none: {line[:60]!r}")
        at += 1
    if at < len(lines) and lines[at].startswith("\\"):
        hunk.unended.add(len(hunk.lines) - 1)
        at += 1
    return hunk, at


def _name(text: str) -> str:
    name = text.partition("\t")[0].strip()
    return name.strip('"')


# ---- finding the files, and the side that they hold ----


def _change(file: _File, folders: Sequence[Path]) -> Change:
    if _NOTHING in (file.old, file.new):
        verb, name = ("makes", file.new) if file.old == _NOTHING else ("removes", file.old)
        raise DiffError(f"the diff {verb} the file {name}: only changes of files can be proved")
    places = list(_places(file, folders))
    if not places:
        raise DiffError(f"there is no file {file.old}, from here or among the installed libraries")
    if places[0].suffix not in (".py", ""):
        raise DiffError(f"{places[0].name} is no Python source, and nothing else can be proved")
    for place in places:
        try:
            source = read(str(place))
        except (OSError, SyntaxError, NotTextError) as error:
            raise DiffError(f"cannot read {place}: {error}") from None
        found = _sided(file, source, os.path.realpath(place))
        if found is not None:
            return found
    raise DiffError(f"the diff does not fit {places[0]}, neither before the change nor after it")


def _places(file: _File, folders: Sequence[Path]) -> Iterator[Path]:
    names = [name for one in (file.old, file.new) for name in (one, one.partition("/")[2]) if name]
    libraries = [Path(one) for one in sys.path if one.endswith(("site-packages", "dist-packages"))]
    seen: set[str] = set()
    for folder in (*folders, *libraries):
        for name in dict.fromkeys(names):
            place = folder / name
            if place.is_file() and os.path.realpath(place) not in seen:
                seen.add(os.path.realpath(place))
                yield place


def _sided(file: _File, source: Source, place: str) -> Change | None:
    """The change of a file, if it holds one of the diff's sides."""
    sides: tuple[Side, ...] = ("old", "new")
    if file.blobs is not None:
        blob = hashlib.sha1(b"blob %d\0" % len(source.data) + source.data, usedforsecurity=False)
        known = [
            side for side, name in zip(sides, file.blobs, strict=True) if blob.hexdigest().startswith(name)
        ]
        sides = tuple(known) or sides
    for exact in (True, False):
        for side in sides:
            text = _applied(file.hunks, source.text, side, exact=exact)
            if text is None:
                continue
            try:
                other = source.changed(edits_between(source.text, text))
            except NotTextError as error:
                raise DiffError(f"{place}: {error}") from None
            old, new = (source, other) if side == "old" else (other, source)
            return Change(place, old, new, side)
    return None


def _applied(hunks: Sequence[_Hunk], text: str, side: Side, *, exact: bool) -> str | None:
    """A text that holds one side, with the other side in its place; None where it does not.

    Args:
        exact: each hunk stands at its line; else at the next place that has its lines.
    """
    lines, made, last = _split(text), [], 0
    other: Side = "new" if side == "old" else "old"
    for hunk in hunks:
        wanted = hunk.side(side)
        at = _found(lines, wanted, hunk, last, hunk.at(side), exact=exact)
        if at is None:
            return None
        made += [*lines[last:at], *hunk.side(other)]
        last = at + len(wanted)
    return "".join([*made, *lines[last:]])


def _found(
    lines: Sequence[str], wanted: Sequence[str], hunk: _Hunk, first: int, near: int, *, exact: bool
) -> int | None:
    places = [near] if exact else sorted(range(first, len(lines) + 1), key=lambda at: abs(at - near))
    for at in places:
        ends = at + len(wanted)
        if at >= first and lines[at:ends] == wanted and (ends == len(lines) or not hunk.at_the_end):
            return at
    return None


def _split(text: str) -> list[str]:
    return [line for line in text.replace("\n", "\n\0").split("\0") if line]
