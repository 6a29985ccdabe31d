"""The source in the page: whole files of the project, parts of libraries, checked against the report.

A page is made later than its report, and maybe elsewhere. A line that is not what the scan saw is not
shown as if it were: then the line that the report stored stands alone, and the page says why.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, Protocol

from breakscope.project.sources import Sources
from breakscope.render.html import highlight
from breakscope.render.html.highlight import Span
from breakscope.render.html.lines import WIDEST, Line, lay_out
from breakscope.report.model import Finding, Location, Owner, Report
from breakscope.report.owners import is_installed
from breakscope.report.secrets import mask
from breakscope.view.excerpt import expression_span

AROUND = 5  # lines shown before and after a place
_LONGEST_PLACE = 25  # lines of one expression that are shown
_WHOLE_FILE = 1_200  # lines; of a longer file, and of a library's, only the surroundings of places
_WHOLE_CHARACTERS = 150_000  # characters of whole files in one page
_CHARACTERS = 2_000_000  # characters of source in one page
_COLOURED = 2_000_000  # characters that are read for colours: half a second a million
_LARGEST_FILE = 4_000_000  # bytes; nobody wrote such a file by hand

State = Literal["read", "changed", "unreadable", "left_out"]


class SourceReader(Protocol):
    """What the page needs of :class:`~breakscope.project.sources.Sources`."""

    def line(self, file: str, number: int, /) -> str | None:
        """One line as it stands in the file; None if it cannot be read."""

    def lines(self, file: str, /) -> Sequence[str]:
        """All lines; none of a file that cannot be read."""


class OnDisk:
    """Reads sources from disk, but only ordinary files that may be shown.

    A report is data that may come from anybody, and the page may be published: what it names may be a device,
    a private key, another person's file.

    Args:
        may_show: whether a page may hold the text of a file; see :func:`evidenced`.

    Attributes:
        masks: whether a secret was hidden in what was read so far.
    """

    def __init__(self, may_show: Callable[[str], bool]) -> None:
        self.masks = False
        self._sources = Sources()
        self._may_show = cache(lambda file: _is_ordinary(file) and may_show(file))
        self._masked = cache(self._read)

    def line(self, file: str, number: int, /) -> str | None:
        """One line; None if the file cannot be read."""
        lines = self.lines(file)
        return lines[number - 1] if 0 < number <= len(lines) else None

    def lines(self, file: str, /) -> Sequence[str]:
        """All lines; none of a file that cannot be read or is too large to be source."""
        return self._masked(file)

    def _read(self, file: str) -> Sequence[str]:
        lines = self._sources.lines(file) if self._may_show(file) else ()
        shown = tuple(mask("\n".join(lines)).split("\n")) if lines else ()
        self.masks = self.masks or shown != tuple(lines)
        return shown


def evidenced(report: Report, projects: Sequence[str]) -> Callable[[str], bool]:
    """Whether a file is one that the scan has seen with this very content, in a project or a library.

    Args:
        projects: folders of the user's, as the caller knows them; the report is not asked.
    """
    roots = tuple(os.path.join(os.path.realpath(project), "") for project in projects)

    def may_show(file: str) -> bool:
        seen = report.run.sources.get(file)
        place = os.path.realpath(file)
        if seen is None or not (place.startswith(roots) or is_installed(place)):
            return False
        try:
            return hashlib.sha256(Path(place).read_bytes()).hexdigest() == seen
        except OSError:
            return False

    return may_show


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive lines of a file; ``first`` is the number of the first one."""

    first: int
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """The marked part of one line, as :class:`Line` counts."""

    line: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A finding's place in source.

    Attributes:
        first, last: the lines to show, all in one chunk of the file; None where only ``stored`` is known.
        stored: the line as the report has it, where the file does not (any more).
    """

    state: State
    first: int | None
    last: int | None
    marks: tuple[Mark, ...]
    stored: Line | None


@dataclass(frozen=True, slots=True)
class File:
    """What the page has of one file, and whether all of it."""

    file: str
    owner: Owner
    state: State
    whole: bool
    chunks: tuple[Chunk, ...]


class Shelf:
    """Collects what the places of a report need of their files, within the page's limits."""

    def __init__(self, reader: SourceReader | None) -> None:
        self._reader = reader
        self._whole_left = _WHOLE_CHARACTERS
        self._left = _CHARACTERS
        self._colours_left = _COLOURED

    def read(self, file: str, findings: Sequence[Finding]) -> tuple[File, list[Excerpt]]:
        """One file, and the excerpt of each of the findings in it."""
        places = [finding.location for finding in findings]
        lines = self._reader.lines(file) if self._reader else ()
        states = [self._state(lines, place) for place in places]
        wanted = self._wanted(lines, places, states)
        if not self._take(lines, wanted):
            states = ["left_out" if state == "read" else state for state in states]
            wanted = set()
        colours = self._colours(lines[: max(wanted)]) if wanted else []
        focus = {
            place.line: place.column - 1
            for place, state in zip(places, states, strict=True)
            if state == "read" and place.column is not None
        }
        chunks = tuple(
            Chunk(run[0], tuple(_line(lines, colours, number, focus) for number in run))
            for run in _runs(wanted)
        )
        excerpts = [
            self._excerpt(place, state, lines, focus) for place, state in zip(places, states, strict=True)
        ]
        order: tuple[State, ...] = ("read", "changed", "left_out", "unreadable")
        best: State = min(states, key=order.index, default="unreadable")
        whole = bool(lines) and len(wanted) == len(lines)
        return File(file, places[0].owner if places else "project", best, whole, chunks), excerpts

    @staticmethod
    def _state(lines: Sequence[str], place: Location) -> State:
        if not 0 < place.line <= len(lines):
            return "changed" if lines else "unreadable"
        known = place.source is not None and mask(place.source.strip()) == lines[place.line - 1].strip()
        return "read" if known else "changed"

    def _wanted(self, lines: Sequence[str], places: Sequence[Location], states: Sequence[State]) -> set[int]:
        good = [place for place, state in zip(places, states, strict=True) if state == "read"]
        if not good:
            return set()
        whole = len(good) == len(places) and good[0].owner == "project" and len(lines) <= _WHOLE_FILE
        size = sum(min(len(line), WIDEST) for line in lines) if whole else 0
        if whole and size <= self._whole_left:
            self._whole_left -= size
            return set(range(1, len(lines) + 1))
        return {number for place in good for number in range(*_around(place, len(lines)))}

    def _take(self, lines: Sequence[str], wanted: set[int]) -> bool:
        size = sum(min(len(lines[number - 1]), WIDEST) for number in wanted)
        if size > self._left:
            return False
        self._left -= size
        return True

    def _colours(self, lines: Sequence[str]) -> list[list[Span]]:
        size = sum(map(len, lines))
        if size > self._colours_left:
            return []
        self._colours_left -= size
        return highlight.spans(lines)

    @staticmethod
    def _excerpt(place: Location, state: State, lines: Sequence[str], focus: dict[int, int]) -> Excerpt:
        if state != "read":
            stored = None
            if place.source is not None:
                stored = lay_out(place.source, highlight.line_spans(place.source), expression_span(place))
            return Excerpt(state, None, None, (), stored)
        first, stop = _around(place, len(lines))
        marks = []
        for number, start, end in _spots(place, lines):
            shown = lay_out(lines[number - 1], (), (start, end), focus.get(number)).mark
            if shown:
                marks.append(Mark(number, *shown))
        return Excerpt(state, first, stop - 1, tuple(marks), None)


def _around(place: Location, count: int) -> tuple[int, int]:
    """First line, and line after the last, to show of a place."""
    last = min(max(place.end_line or place.line, place.line), place.line + _LONGEST_PLACE)
    return max(1, place.line - AROUND), min(count, last + AROUND) + 1


def _spots(place: Location, lines: Sequence[str]) -> list[tuple[int, int, int]]:
    """(line, start, end) of what to underline, in characters from 0; without indentation."""
    if place.column is None or place.end_column is None:
        return []
    end_line = max(place.end_line or place.line, place.line)
    last = min(end_line, place.line + _LONGEST_PLACE, len(lines))
    spots = []
    for number in range(place.line, last + 1):
        raw = lines[number - 1]
        start = place.column - 1 if number == place.line else len(raw) - len(raw.lstrip())
        end = place.end_column - 1 if number == end_line else len(raw.rstrip())
        spots.append((number, start, min(end, len(raw))))
    return [spot for spot in spots if spot[1] < spot[2]]


def _line(lines: Sequence[str], colours: list[list[Span]], number: int, focus: dict[int, int]) -> Line:
    spans = colours[number - 1] if number <= len(colours) else []
    return lay_out(lines[number - 1], spans, None, focus.get(number))


def _runs(numbers: set[int]) -> list[list[int]]:
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def _is_ordinary(file: str) -> bool:
    try:
        status = Path(file).stat()
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size <= _LARGEST_FILE
