"""A unified diff as rows of two columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from breakscope.render.html import highlight
from breakscope.render.html.lines import Line, lay_out
from breakscope.view import unified

_MOST_ROWS = 600

RowKind = Literal["same", "change", "gap"]


@dataclass(frozen=True, slots=True)
class Side:
    """One line of one column."""

    number: int
    line: Line


@dataclass(frozen=True, slots=True)
class Row:
    """Both columns of one line; a side that has no line there is None, both are in a gap."""

    kind: RowKind
    old: Side | None
    new: Side | None


@dataclass(frozen=True, slots=True)
class Diff:
    """A diff to show; ``left_out`` rows are not in ``rows``."""

    rows: tuple[Row, ...]
    left_out: int


def side_by_side(text: str) -> Diff:
    """The rows of a unified diff, with a gap between its hunks. Text that is none gives no rows."""
    rows: list[Row] = []
    for hunk in (hunk for file in unified.read(text) for hunk in file.hunks):
        if rows:
            rows.append(Row("gap", None, None))
        rows += _hunk(hunk)
    return Diff(tuple(rows[:_MOST_ROWS]), max(0, len(rows) - _MOST_ROWS))


def _hunk(hunk: unified.Hunk) -> Iterator[Row]:
    removed: list[Side] = []
    added: list[Side] = []
    old, new = hunk.old, hunk.new
    for mark, text in hunk.lines:
        if mark == "-":
            if added:
                yield from _changes(removed, added)
            removed.append(_side(old, text))
        elif mark == "+":
            added.append(_side(new, text))
        else:
            yield from _changes(removed, added)
            yield Row("same", _side(old, text), _side(new, text))
        old, new = old + (mark != "+"), new + (mark != "-")
    yield from _changes(removed, added)


def _changes(removed: list[Side], added: list[Side]) -> Iterator[Row]:
    for index in range(max(len(removed), len(added))):
        yield Row(
            "change",
            removed[index] if index < len(removed) else None,
            added[index] if index < len(added) else None,
        )
    removed.clear()
    added.clear()


def _side(number: int, raw: str) -> Side:
    return Side(number, lay_out(raw, highlight.line_spans(raw)))
