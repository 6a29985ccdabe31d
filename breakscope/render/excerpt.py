"""A source line with its broken expression marked, cut to fit.

A location gives the line without its indentation and columns that count the indentation in. How deep
the line was indented follows from its syntax: the columns give the width of the expression, and mostly
only one expression of the line has that width. Where two fit, none is marked: a wrong caret is worse
than none, and the place is printed anyway.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from rich.cells import cell_len

from breakscope.model import Location
from breakscope.render.text import harmless_character

ELLIPSIS = "…"
_LONGEST_PARSED = 10_000  # characters; a longer line is data, and parsing it would take seconds
_KEPT = 4_000  # characters that are looked at around the expression; no terminal is wider
_CLOSING = {")": "(", "]": "[", "}": "{"}
_OPENING = {opening: closing for closing, opening in _CLOSING.items()}
# Where a line can stand: alone, as the head of a block, as a later clause of an if, a try or a match.
_SETTINGS = (
    ("", ""),
    ("", "\n pass"),
    ("", "\ndef f(): pass"),
    ("if 1: pass\n", ""),
    ("if 1: pass\n", "\n pass"),
    ("try: pass\n", "\n pass"),
)


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
    source = location.source.strip()
    span = expression_span(location)
    goes_on = location.end_line is not None and location.end_line > location.line
    return _cut(f"{source} {ELLIPSIS}" if goes_on else source, span, width)


def expression_span(location: Location) -> tuple[int, int] | None:
    """Where in ``location.source`` the expression stands: (start, end) in characters, end excluded."""
    column, end = location.column, location.end_column
    if location.source is None or column is None or end is None or end <= column:
        return None
    source = location.source.strip()
    if location.end_line not in (None, location.line) or len(source) > _LONGEST_PARSED:
        return None
    # Both ends must be those of a node, and the indentation that follows cannot be negative.
    nodes = {span for span in _nodes(source) if span[1] - span[0] == end - column and span[0] < column}
    if len(nodes) > 1:  # an odd indentation is possible, but not likely enough to keep a doubt for
        nodes = {span for span in nodes if (column - 1 - span[0]) % 2 == 0}
    return nodes.pop() if len(nodes) == 1 else None


def _nodes(source: str) -> Iterator[tuple[int, int]]:
    """The extent of every statement and expression on a line, which may be a part of a statement."""
    before, after = _missing_brackets(source)
    for head, tail in _SETTINGS:
        text = f"{head}{before}{source}{after}{tail}"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # SyntaxWarning about somebody else's code
                tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        line = head.count("\n") + 1
        encoded = text.splitlines()[line - 1].encode()
        for node in ast.walk(tree):
            if getattr(node, "lineno", 0) == line and getattr(node, "end_lineno", 0) == line:
                # ast counts UTF-8 bytes.
                start = len(encoded[: node.col_offset].decode()) - len(before)  # type: ignore[attr-defined]
                end = len(encoded[: node.end_col_offset].decode()) - len(before)  # type: ignore[attr-defined]
                if start >= 0 and end <= len(source):
                    yield start, end
        return


def _missing_brackets(source: str) -> tuple[str, str]:
    """What to put before and after one line of a longer expression, so that its brackets match."""
    open_brackets: list[str] = []
    before = ""
    for character in source:
        if character in _OPENING:
            open_brackets.append(character)
        elif character in _CLOSING:
            if not open_brackets:
                before = _CLOSING[character] + before
            elif open_brackets.pop() != _CLOSING[character]:
                return "", ""
    return before, "".join(_OPENING[bracket] for bracket in reversed(open_brackets))


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
