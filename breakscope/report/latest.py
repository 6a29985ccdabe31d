"""Where reports are kept: the latest one of a folder, and earlier ones beside it."""

from __future__ import annotations

import os
from pathlib import Path

from breakscope.report import schema
from breakscope.report.model import Report

FOLDER = ".breakscope"
LATEST = "latest.json"


def place_of(output: Path | None) -> Path:
    """Where a report goes: ``output``, or the latest one of the current folder."""
    return output.absolute() if output else Path.cwd() / FOLDER / LATEST


def save(report: Report, place: Path, *, keep: bool) -> None:
    """Write a report; where ``keep`` is set, a second time under its time, which the next one leaves alone.

    Raises OutputError.
    """
    schema.save(report, place)
    if keep:
        # The same report under its time, so that the next scan does not take it away. Not a copy of the file:
        # another scan may have replaced that by now.
        stamp = report.run.started_at.replace(":", "-").partition("+")[0]
        schema.save(report, place.with_name(f"{stamp}-{os.getpid()}.json"))
