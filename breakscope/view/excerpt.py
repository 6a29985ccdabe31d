"""A source line with its broken expression marked, cut to fit."""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len

from breakscope.report.place import Location
from breakscope.view.text import harmless_character

ELLIPSIS = "…"
_KEPT = 4_000  # characters that are looked at around the expression; no terminal is wider


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A line to show.

    Attributes:
        text: harmless, at most as many cells wide as was asked for.
        mark: (offset, width) in cells of the expression inside ``text``; None where not known.
    """

    text: str
    mark: tuple[int, int] | None


def excerpt(location: Location, width: int) -> Excerpt | None:
    """The location's source in at most ``width`` cells, or None where the source is not known."""
    if location.source is None:
        return None
    source = location.source
    span = expression_span(location)
    goes_on = location.end_line is not None and location.end_line > location.line
    return _cut(f"{source} {ELLIPSIS}" if goes_on else source, span, width)


def expression_span(location: Location) -> tuple[int, int] | None:
    """Where in ``location.source`` the expression stands: (start, end) in characters, end excluded.

    Of an expression of several lines, the part on its first. None where a column or the indentation
    is not known: a wrong caret is worse than none, and the place is printed anyway.
    """
    column, end, indent = location.column, location.end_column, location.indent
    if location.source is None or column is None or end is None or indent is None:
        return None
    start = column - 1 - indent
    goes_on = location.end_line is not None and location.end_line > location.line
    stop = len(location.source) if goes_on else end - 1 - indent
    return (start, stop) if 0 <= start < stop <= len(location.source) else None


def _cut(source: str, span: tuple[int, int] | None, width: int) -> Excerpt:
    """As much of the line as fits, with as much of the expression as fits, and … where it was cut."""
    start, end = span or (0, 0)
    first = max(0, start - _KEPT)
    pieces = [harmless_character(character) for character in source[first : start + _KEPT]]
    cut_before, cut_after = first > 0, start + _KEPT < len(source)
    start, end = start - first, min(end - first, len(pieces))
    cells = [cell_len(piece) for piece in pieces]
    low, high = 0, len(pieces)
    if sum(cells) + cut_before + cut_after > width:
        low, high = _window(cells, start, end, width - 2)
    left = ELLIPSIS if low > 0 or cut_before else ""
    right = ELLIPSIS if high < len(pieces) or cut_after else ""
    mark = None
    if span is not None:
        mark = (len(left) + sum(cells[low:start]), sum(cells[start : min(end, high)]))
    return Excerpt(left + "".join(pieces[low:high]) + right, mark)


def _window(cells: list[int], start: int, end: int, room: int) -> tuple[int, int]:
    """The range of characters to show: the expression first, then what is left and right of it in turn."""
    low = high = start
    used = 0
    while high < end and used + cells[high] <= room:
        used += cells[high]
        high += 1
    grown = True
    while grown and high >= end:
        grown = False
        if low > 0 and used + cells[low - 1] <= room:
            low, used, grown = low - 1, used + cells[low - 1], True
        if high < len(cells) and used + cells[high] <= room:
            high, used, grown = high + 1, used + cells[high], True
    return low, high
