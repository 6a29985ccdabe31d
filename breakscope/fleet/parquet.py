"""Tables of a fleet on disk, partitioned by job and rank as pandas, DuckDB and Spark read them.

``FOLDER/TABLE/job=JOB/rank=RANK/PROCESS.parquet``: a file is named after its process, so that writing the
same report again, or a larger merge of it, replaces what is there and doubles nothing.
"""

from __future__ import annotations

import io
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from breakscope.diagnose import rank_tables
from breakscope.errors import OutputError, UsageError
from breakscope.report import schema
from breakscope.report.model import Report


def check() -> None:
    """Raises UsageError if Parquet cannot be written here."""
    if find_spec("pyarrow") is None or find_spec("pandas") is None:
        raise UsageError("--parquet needs pyarrow: pip install 'torch-breakscope[parquet]'")


def write(report: Report, folder: Path) -> int:
    """Write the tables of every process of a merged report, and return how many files they are.

    A table without a row is not written, but for ``ranks``, which has one row for each process.

    Raises:
        OutputError: if a file cannot be written.
    """
    written = 0
    for rank, frames in rank_tables.frames(report):
        for name, frame in frames.items():
            if frame.empty:
                continue
            place = folder / name / f"job={quote(rank.job, safe='')}" / f"rank={rank.rank}"
            try:
                place.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise OutputError(f"cannot write to {place}: {error.strerror}") from error
            buffer = io.BytesIO()
            frame.to_parquet(buffer, engine="pyarrow", index=False)
            schema.write(buffer.getvalue(), place / f"{rank.process}.parquet")
            written += 1
    return written
