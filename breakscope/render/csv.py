"""The table of findings as CSV (RFC 4180, but with plain line feeds)."""

from __future__ import annotations

from csv import QUOTE_NONNUMERIC

from breakscope.diagnose import tables
from breakscope.model import Report


def render(report: Report, *, root: str | None = None) -> str:
    """One record for each finding, worst first; columns as in ``FINDINGS`` of :mod:`breakscope.diagnose.tables`.

    Cells hold the report's own text, with its line breaks. What begins with ``=``, ``+``, ``-`` or ``@`` is
    not disarmed: a spreadsheet may take it for a formula, so open reports of people you do not trust as text.
    """
    table = tables.frames(report, root=root)["findings"]
    # By itself, the writer leaves a lone carriage return bare, and readers take it for the end of a record.
    text: str = table.to_csv(index=False, lineterminator="\n", quoting=QUOTE_NONNUMERIC)
    return text
