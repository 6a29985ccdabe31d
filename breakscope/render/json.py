"""The report as JSON text: what the report file holds."""

from __future__ import annotations

from breakscope.report import schema
from breakscope.report.model import Report


def render(report: Report) -> str:
    """The report as JSON, in the layout of :mod:`breakscope.report.schema`; ends with a newline."""
    return schema.dumps(report)
