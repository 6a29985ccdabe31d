"""The table of findings as Parquet. Needs pyarrow, which the extra ``parquet`` brings."""

from __future__ import annotations

import io
from importlib.util import find_spec

from breakscope.diagnose import tables
from breakscope.errors import UsageError
from breakscope.report.model import Report


def render(report: Report, *, root: str | None = None) -> bytes:
    """The rows and columns of the CSV, with their types.

    Raises:
        UsageError: pyarrow is not installed.
    """
    if find_spec("pyarrow") is None or find_spec("pandas") is None:
        raise UsageError("parquet needs pyarrow: pip install 'torch-breakscope[parquet]'")
    buffer = io.BytesIO()
    tables.frames(report, root=root)["findings"].to_parquet(buffer, engine="pyarrow", index=False)
    return buffer.getvalue()
