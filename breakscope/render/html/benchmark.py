"""The benchmark of a report as tables. One whose layout is not ours is shown as it is, whatever it holds."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from breakscope.render.html.texts import block, name
from breakscope.report.benchmark import from_dict
from breakscope.view import bench_view
from breakscope.view.bench_view import BenchView
from breakscope.view.text import milliseconds

_MOST_ROWS = 100


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        bars: for each row a length in units of 1,000, or None; empty where there is nothing to draw.
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    bars: tuple[float | None, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class BenchmarkView:
    """Tables for what is a list of records, pairs for what is one value."""

    tables: tuple[Table, ...]
    pairs: tuple[tuple[str, str], ...]


def view(benchmark: Mapping[str, Any]) -> BenchmarkView:
    """The view of a report's benchmark."""
    known = from_dict(dict(benchmark))
    if known is not None:
        return _known(bench_view.build(known))
    tables = []
    pairs = []
    for key, value in benchmark.items():
        if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
            tables.append(_table(key, value))
        elif value is not None:
            pairs.append((_title(key), _text(value)))
    return BenchmarkView(tuple(tables), tuple(pairs))


def _known(made: BenchView) -> BenchmarkView:
    said = [
        ("measured", made.title),
        *(("doubt", text) for text in made.alarms),
        *(("choice", text) for text in made.sentences),
        *made.facts,
        *(("note", text) for text in made.notes),
    ]
    tables = (_laid_out(table) for table in made.tables)
    return BenchmarkView(tuple(tables), tuple((name(what), block(text)) for what, text in said))


def _laid_out(table: bench_view.Table) -> Table:
    longest = max((length for length in table.lengths if length is not None), default=0.0)
    bars = tuple(
        None if length is None or longest <= 0 else round(1_000 * length / longest, 1)
        for length in table.lengths
    )
    left_out = max(0, len(table.rows) - _MOST_ROWS)
    rows = tuple(tuple(map(name, row)) for row in table.rows[:_MOST_ROWS])
    return Table(name(table.title), tuple(map(name, table.head)), rows, bars[:_MOST_ROWS], left_out)


def _table(title: str, records: Sequence[Mapping[str, Any]]) -> Table:
    columns = list(dict.fromkeys(key for record in records for key in record))
    medians = [_median(record.get("ms")) for record in records]
    slowest = max((value for value in medians if value is not None), default=0.0)
    bars: tuple[float | None, ...] = ()
    if slowest > 0:
        bars = tuple(None if value is None else round(1_000 * value / slowest, 1) for value in medians)
    rows = tuple(tuple(_cell(column, record.get(column)) for column in columns) for record in records)
    head = tuple(_heading(column) for column in columns)
    return Table(_title(title), head, rows[:_MOST_ROWS], bars[:_MOST_ROWS], max(0, len(rows) - _MOST_ROWS))


def _cell(column: str, value: Any) -> str:
    numbers = _numbers(value)
    if column == "ms" and numbers:
        median = milliseconds(statistics.median(numbers))
        if len(numbers) == 1:
            return median
        spread = f"{milliseconds(min(numbers))} to {milliseconds(max(numbers))}"
        return f"{median} ({spread}, {len(numbers):,} samples)"
    return "-" if value is None else _text(value)


def _numbers(value: Any) -> list[float]:
    values = value if isinstance(value, list) else [value]
    good = all(isinstance(one, int | float) and not isinstance(one, bool) for one in values)
    return [float(one) for one in values if math.isfinite(one)] if good else []


def _median(value: Any) -> float | None:
    numbers = _numbers(value)
    return statistics.median(numbers) if numbers else None


def _text(value: Any) -> str:
    if isinstance(value, str):
        return block(value)
    if isinstance(value, float):
        return f"{value:,.4g}"
    return block(json.dumps(value, ensure_ascii=False, default=str, indent=1))


def _heading(column: str) -> str:
    return "ms (median)" if column == "ms" else _title(column)


def _title(key: str) -> str:
    return name(str(key).replace("_", " "))
