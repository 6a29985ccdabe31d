"""A unified diff as rows of two columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from breakscope.render.html import highlight
from breakscope.render.html.lines import Line, lay_out

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
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
    lines = iter(text.split("\n"))
    for line in lines:
        if match := _HUNK.match(line):
            if rows:
                rows.append(Row("gap", None, None))
            old, old_count, new, new_count = (1 if part is None else int(part) for part in match.groups())
            rows += _hunk(lines, old, old_count, new, new_count)
    return Diff(tuple(rows[:_MOST_ROWS]), max(0, len(rows) - _MOST_ROWS))


def _hunk(lines: Iterator[str], old: int, old_left: int, new: int, new_left: int) -> Iterator[Row]:
    """The rows of one hunk. Its head says how many lines it has: a removed ``-- x`` is no file's head."""
    removed: list[Side] = []
    added: list[Side] = []
    while old_left > 0 or new_left > 0:
        line = next(lines, None)
        if line is None:
            break
        if line.startswith("-"):
            if added:
                yield from _changes(removed, added)
            removed.append(_side(old, line[1:]))
            old, old_left = old + 1, old_left - 1
        elif line.startswith("+"):
            added.append(_side(new, line[1:]))
            new, new_left = new + 1, new_left - 1
        elif not line.startswith("\\"):
            yield from _changes(removed, added)
            yield Row("same", _side(old, line[1:]), _side(new, line[1:]))
            old, old_left, new, new_left = old + 1, old_left - 1, new + 1, new_left - 1
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
