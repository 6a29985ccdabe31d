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
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from breakscope.errors import UsageError
from breakscope.fix.patch import Edit
from breakscope.fix.source_file import NotTextError, Source, lines_of, read
from breakscope.view import unified
from breakscope.view.unified import FileDiff, Hunk

_BLOBS = re.compile(r"index ([0-9a-f]{4,})\.\.([0-9a-f]{4,})")
_NO_TEXT = ("rename from", "copy from", "Binary files", "GIT binary patch")

Side = Literal["old", "new"]


class DiffError(UsageError):
    """The diff cannot be read, or is not of these files."""

    slug = "diff"


@dataclass(frozen=True, slots=True)
class Change:
    """A file that a diff changes.

    Attributes:
        file: real path. on_disk: the side that it holds now.
        base: what it holds, where that is neither: the patch is one on top of others.
    """

    file: str
    old: Source
    new: Source
    on_disk: Side
    base: Source | None = None

    @property
    def disk(self) -> Source:
        """What the file holds now."""
        if self.base is not None:
            return self.base
        return self.old if self.on_disk == "old" else self.new

    def edits(self, side: Side) -> tuple[Edit, ...]:
        """What makes one side of what the file holds now: nothing for the side that it has."""
        return edits_between(self.disk.text, (self.old if side == "old" else self.new).text, self.file)


def changes(text: str, folders: Sequence[Path]) -> list[Change]:
    """The files that a diff changes, as they are found.

    Args:
        folders: to which names in the diff may be relative, the likeliest first; then those of libraries.

    Raises:
        DiffError: it is none, does not fit the files, or makes, removes or renames files.
    """
    files = list(_read(text))
    if not files:
        raise DiffError("this is no unified diff: it has no lines with --- and +++")
    found = [_change(one, folders) for one in files]
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
    lines, other = lines_of(old), lines_of(new)
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


def _read(text: str) -> Iterator[FileDiff]:
    for file in unified.read(text):
        if any(line.startswith(_NO_TEXT) for line in file.head):
            raise DiffError("the diff renames a file, or is of one that is no text")
        if file.hunks and not file.new:
            raise DiffError("the diff names no file: it needs lines with --- and +++")
        for hunk in file.hunks:
            if hunk.damage:
                raise DiffError(hunk.damage)
        if file.new:
            yield file


def _blobs(file: FileDiff) -> tuple[str, str] | None:
    """What git calls the two sides."""
    found = [match for line in file.head if (match := _BLOBS.match(line))]
    return (found[-1][1], found[-1][2]) if found else None


def _side(hunk: Hunk, side: Side) -> list[str]:
    left_out = "+" if side == "old" else "-"
    return [
        text if at in hunk.unended else text + "\n"
        for at, (mark, text) in enumerate(hunk.lines)
        if mark != left_out
    ]


def _first(hunk: Hunk, side: Side) -> int:
    """The first line's index; a side without lines stands behind the line that is named."""
    first = hunk.old if side == "old" else hunk.new
    return first - 1 if _side(hunk, side) else first


def _ends_the_file(hunk: Hunk) -> bool:
    """Whether fewer lines follow the change than come before it: the file ends there."""
    marks = [mark for mark, _ in hunk.lines]
    before = next((i for i, mark in enumerate(marks) if mark != " "), len(marks))
    behind = next((i for i, mark in enumerate(reversed(marks)) if mark != " "), len(marks))
    return behind < before


# ---- finding the files, and the side that they hold ----


def _change(file: FileDiff, folders: Sequence[Path]) -> Change:
    if unified.NOTHING in (file.old, file.new):
        verb, name = ("makes", file.new) if file.old == unified.NOTHING else ("removes", file.old)
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


def _places(file: FileDiff, folders: Sequence[Path]) -> Iterator[Path]:
    names = [name for one in (file.old, file.new) for name in (one, one.partition("/")[2]) if name]
    libraries = [Path(one) for one in sys.path if one.endswith(("site-packages", "dist-packages"))]
    seen: set[str] = set()
    for folder in (*folders, *libraries):
        for name in dict.fromkeys(names):
            place = folder / name
            if place.is_file() and os.path.realpath(place) not in seen:
                seen.add(os.path.realpath(place))
                yield place


def _sided(file: FileDiff, source: Source, place: str) -> Change | None:
    """The change of a file, if it holds one of the diff's sides."""
    sides: tuple[Side, ...] = ("old", "new")
    blobs = _blobs(file)
    if blobs is not None:
        blob = hashlib.sha1(b"blob %d\0" % len(source.data) + source.data, usedforsecurity=False)
        known = [side for side, name in zip(sides, blobs, strict=True) if blob.hexdigest().startswith(name)]
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


def _applied(hunks: Sequence[Hunk], text: str, side: Side, *, exact: bool) -> str | None:
    """A text that holds one side, with the other side in its place; None where it does not.

    Args:
        exact: each hunk stands at its line; else at the next place that has its lines.
    """
    lines, made, last = lines_of(text), [], 0
    other: Side = "new" if side == "old" else "old"
    for hunk in hunks:
        wanted = _side(hunk, side)
        at = _found(lines, wanted, hunk, last, _first(hunk, side), exact=exact)
        if at is None:
            return None
        made += [*lines[last:at], *_side(hunk, other)]
        last = at + len(wanted)
    return "".join([*made, *lines[last:]])


def _found(
    lines: Sequence[str], wanted: Sequence[str], hunk: Hunk, first: int, near: int, *, exact: bool
) -> int | None:
    places = [near] if exact else sorted(range(first, len(lines) + 1), key=lambda at: abs(at - near))
    for at in places:
        ends = at + len(wanted)
        if at >= first and lines[at:ends] == wanted and (ends == len(lines) or not _ends_the_file(hunk)):
            return at
    return None
