"""A benchmark on a terminal, or as plain text where that is no terminal."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Literal

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from breakscope.report.benchmark import Benchmark
from breakscope.view import bench_view
from breakscope.view.bench_view import BenchView, Table

_NARROWEST, _WIDEST = 40, 200
_NOTHING = "-"
_BETWEEN = 3  # columns of the terminal between two of a table


def render(
    benchmark: Benchmark, *, width: int, color: bool, next_steps: Sequence[tuple[str, str]] = ()
) -> str:
    """The benchmark as text that ends with a newline.

    Args:
        width: columns; wider tables are folded inside their cells.
        color: whether to use ANSI styles; without them the text has no control codes.
    """
    view = bench_view.build(benchmark)
    console = Console(
        file=io.StringIO(),
        width=max(_NARROWEST, min(width, _WIDEST)),
        force_terminal=color,
        color_system="standard" if color else None,
        highlight=False,
        markup=False,
        emoji=False,
        _environ={},
    )
    with console.capture() as captured:
        _screen(console, view, next_steps)
    return "\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n"


def _screen(console: Console, view: BenchView, next_steps: Sequence[tuple[str, str]]) -> None:
    console.print(Text(view.title, "bold"))
    for alarm in view.alarms:
        console.print(Text(alarm, "bold red"))
    for sentence in view.sentences:
        console.print(Text(sentence, "bold green"))
    for table in (one for one in view.tables if not one.detail):
        console.print()
        console.print(Text(table.title, "bold"))
        console.print(_rich(table, console.width) if _fits(table, console.width) else _stacked(table))
        if table.more:
            console.print(Text(table.more))
    console.print()
    for what, text in view.facts:
        console.print(_labelled(what, text))
    for note in view.notes:
        console.print(_labelled("note", note))
    if next_steps:
        console.print()
    for command, purpose in next_steps:
        console.print(_labelled("next", f"{command}   {purpose}"))


def _labelled(label: str, text: str) -> Text:
    return Text.assemble((f"{label}  ", "dim"), text)


def _fits(table: Table, width: int) -> bool:
    """Whether every word of a table has room in its column: a number that is cut cannot be read."""
    words = _longest_words(table)
    return sum(words) + _BETWEEN * (len(words) - 1) <= width


def _longest_words(table: Table) -> list[int]:
    columns = zip(table.head, *table.rows, strict=True)
    return [max(len(word) for cell in column for word in cell.split() or [""]) for column in columns]


def _stacked(table: Table) -> RichTable:
    """A table for a narrow terminal: of each row its cells, one a line, after the row's name."""
    grid = RichTable.grid(padding=(0, 2, 0, 0))
    grid.add_column(overflow="fold", no_wrap=True)
    grid.add_column(overflow="fold")
    last = ""
    for name, *cells in table.rows:
        last = name or last
        grid.add_row(Text(table.head[0]), Text(last, "bold"))
        for title, cell in zip(table.head[1:], cells, strict=True):
            if cell and cell != _NOTHING:
                grid.add_row(Text(f"  {title}"), Text(cell))
    return grid


def _widths(table: Table, width: int) -> list[int]:
    """What each column gets: its longest word, and of what is left those most that need most."""
    columns = list(zip(table.head, *table.rows, strict=True))
    whole = [max(map(len, column)) for column in columns]
    widths = _longest_words(table)
    for _ in range(width - sum(widths) - _BETWEEN * (len(widths) - 1)):
        neediest = max(range(len(widths)), key=lambda at: whole[at] - widths[at])
        widths[neediest] += whole[neediest] > widths[neediest]
    return widths


def _rich(table: Table, width: int) -> RichTable:
    grid = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for title, numeric, room in zip(table.head, table.numeric, _widths(table, width), strict=True):
        justify: Literal["left", "right"] = "right" if numeric else "left"
        grid.add_column(Text(title), justify=justify, overflow="fold", width=room)
    for row in table.rows:
        grid.add_row(*(Text(cell) for cell in row))
    return grid
