"""A benchmark in GitHub's Markdown, as a part of a report: what was measured, and what to choose."""

from __future__ import annotations

from breakscope.report.benchmark import Benchmark
from breakscope.view import bench_view
from breakscope.view.bench_view import Table
from breakscope.view.markup import code, plain
from breakscope.view.words import clip

_MOST_ROWS = 12
_LINE = 300  # characters of one text
# Tables that a comment has room for; the page and the report file have all.
_TITLES = ("arms", "verdicts")


def section(benchmark: Benchmark) -> str:
    """The part of a report that is about its benchmark, ending with an empty line."""
    view = bench_view.build(benchmark)
    parts = [f"### {plain(clip(view.title[:1].upper() + view.title[1:], _LINE))}"]
    if view.alarms:
        parts.append(
            "> [!WARNING]\n" + "\n".join(f"> {plain(clip(alarm, _LINE))}\\" for alarm in view.alarms[:8])[:-1]
        )
    parts += [f"**{plain(clip(sentence, _LINE))}.**" for sentence in view.sentences]
    parts += [_table(table) for table in view.tables if table.title in _TITLES]
    notes = [*(f"{what}: {text}" for what, text in view.facts), *view.notes][:_MOST_ROWS]
    listed = "\n".join(f"- {plain(clip(note, _LINE))}" for note in notes)
    parts.append(f"<details><summary>how this was measured</summary>\n\n{listed}\n\n</details>")
    return "\n\n".join(parts) + "\n\n"


def _table(table: Table) -> str:
    head = f"| {' | '.join(map(plain, table.head))} |"
    rule = "|" + "".join(" --: |" if numeric else " --- |" for numeric in table.numeric)
    rows = [
        "| " + " | ".join(code(cell) if at == 0 else plain(cell) for at, cell in enumerate(row)) + " |"
        for row in table.rows[:_MOST_ROWS]
    ]
    left = len(table.rows) - len(rows)
    more = f"\n\n{left:,} more rows are in the report file." if left else ""
    return "\n".join([head, rule, *rows]) + more
