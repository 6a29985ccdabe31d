"""The table of findings as CSV (RFC 4180, but with plain line feeds)."""

from __future__ import annotations

import csv
import io
from typing import Any

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
    out = io.StringIO()
    # By itself, the writer leaves a lone carriage return bare, and readers take it for the end of a record.
    writer = csv.writer(out, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(tables.FINDINGS)
    for row in tables.findings(report, root=root):
        kinds = zip(tables.FINDINGS.values(), row, strict=True)
        writer.writerow([_cell(kind, value) for kind, value in kinds])
    return out.getvalue()


def _cell(kind: str, value: Any) -> Any:
    if value is None:
        return ""
    if kind == "string":
        return clip(f"'{value}" if value.startswith(_FORMULA) else value, MAX_CELL)
    return float(value) if kind == "Float64" else value
