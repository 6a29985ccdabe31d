"""The table of findings as CSV (RFC 4180, but with plain line feeds)."""

from __future__ import annotations

from csv import QUOTE_NONNUMERIC

from breakscope.diagnose import tables
from breakscope.report.model import Report
from breakscope.view.words import clip

# Spreadsheets hold 32,767 characters in a cell, and Python's own reader refuses more than 131,072.
MAX_CELL = 32_000
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def render(report: Report, *, root: str | None = None) -> str:
    """One record for each finding, worst first, under the names of ``tables.FINDINGS``.

    Cells hold the report's own text, with its line breaks, up to ``MAX_CELL`` characters. What a
    spreadsheet would take for a formula gets an apostrophe in front.
    """
    table = tables.frames(report, root=root)["findings"]
    for name, kind in tables.FINDINGS.items():
        if kind == "string":
            table[name] = table[name].map(_cell, na_action="ignore")
    # By itself, the writer leaves a lone carriage return bare, and readers take it for the end of a record.
    text: str = table.to_csv(index=False, lineterminator="\n", quoting=QUOTE_NONNUMERIC)
    return text


def _cell(text: str) -> str:
    return clip(f"'{text}" if text.startswith(_FORMULA) else text, MAX_CELL)
