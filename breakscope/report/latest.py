"""Where reports are kept: the latest one of a folder, and earlier ones beside it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from breakscope.report import files, schema
from breakscope.report.model import Report

FOLDER = files.OWN_FOLDER
LATEST = "latest.json"
_EARLIER = re.compile(r"(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d|imported)-\d+\.json")


def place_of(output: Path | None) -> Path:
    """Where a report goes: ``output``, or the latest one of the current folder."""
    return output.absolute() if output else Path.cwd() / FOLDER / LATEST


def is_earlier(place: Path) -> bool:
    """Whether a report is one that :func:`save` kept beside the latest one."""
    return _EARLIER.fullmatch(place.name) is not None


def save(report: Report, place: Path, *, keep: bool) -> None:
    """Write a report; where ``keep`` is set, a second time under its time, which the next one leaves alone.

    Raises OutputError.
    """
    schema.save(report, place)
    if keep:
        # The same report under its time, so that the next scan does not take it away. Not a copy of the file:
        # another scan may have replaced that by now.
        # A log does not say when its job began.
        stamp = report.run.started_at.replace(":", "-").partition("+")[0] or "imported"
        schema.save(report, place.with_name(f"{stamp}-{os.getpid()}.json"))
