"""A source line for a template: the same runs and mark that the page's script draws from data."""

from __future__ import annotations

import re
from dataclasses import dataclass

from breakscope.render.html.lines import Line

_RUN = re.compile(r"([a-z.])(\d+)")

Piece = tuple[str, str]
"""Text and the letter of its colour; empty for no colour."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """The line in three parts, each in its colours; ``marked`` is empty where nothing is marked."""

    before: tuple[Piece, ...]
    marked: tuple[Piece, ...]
    after: tuple[Piece, ...]


def pieces(line: Line) -> Pieces:
    """The coloured parts of a line, apart from each other where the marked part starts and ends."""
    data = line.text.encode("utf-16-le")  # lengths count in its units, as JavaScript's do
    whole = len(data) // 2
    start, end = line.mark or (whole, whole)
    runs = _runs(line.runs, whole)
    return Pieces(
        _between(data, runs, 0, start), _between(data, runs, start, end), _between(data, runs, end, whole)
    )


def _runs(text: str, whole: int) -> list[tuple[int, int, str]]:
    """(start, end, colour) of the whole line."""
    runs = []
    at = 0
    for match in _RUN.finditer(text):
        length = int(match[2])
        runs.append((at, at + length, match[1].strip(".")))
        at += length
    return [*runs, (at, whole, "")]


def _between(data: bytes, runs: list[tuple[int, int, str]], low: int, high: int) -> tuple[Piece, ...]:
    cuts = ((max(start, low), min(end, high), colour) for start, end, colour in runs)
    return tuple((data[2 * a : 2 * b].decode("utf-16-le"), colour) for a, b, colour in cuts if a < b)
