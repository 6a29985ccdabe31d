"""The folder of a run's own files, next to where its report goes.

Who works in a folder holds a lock on it, which the system lets go of however the process ends. So a folder
without an owner is one that a killed process left: the next one takes it away, but for a scan's, which still
holds a report.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from breakscope.errors import OutputError

_PREFIX = ".run-"
_LOCK = "held"
SCAN = "scan.json"  # what a folder of a scan has, for breakscope.run.recover


@contextmanager
def workspace(beside: Path, *, or_elsewhere: bool = False) -> Iterator[Path]:
    """A folder for the run's own files, next to where the report goes, removed in the end.

    Args:
        or_elsewhere: take a temporary folder of the system's where nothing can be written there.

    Raises:
        OutputError: if nothing can be written.
    """
    folder = _make(beside, or_elsewhere=or_elsewhere)
    for left in ownerless(beside):
        if not (left / SCAN).exists():
            shutil.rmtree(left, ignore_errors=True)
    lock = None
    with suppress(OSError):  # a file system without locks
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _make(beside: Path, *, or_elsewhere: bool) -> Path:
    try:
        beside.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=_PREFIX, dir=beside))
    except OSError as error:
        if or_elsewhere:
            with suppress(OSError):
                return Path(tempfile.mkdtemp(prefix=f"breakscope{_PREFIX}"))
        raise OutputError(f"cannot write to {beside}: {error.strerror}") from error


def ownerless(beside: Path) -> list[Path]:
    """The folders there that a killed process of ours left."""
    return sorted(folder for folder in beside.glob(f"{_PREFIX}*") if _is_ownerless(folder))


def _is_ownerless(folder: Path) -> bool:
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False  # just being made, or removed
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True
