"""The files that a run of the script wrote into its folder."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

# A folder with more files than these is not searched to its end; the script's data may lie in it.
MAX_SEARCHED = 20_000
MAX_FILES = 200
MAX_HASHED = 512 * 1024 * 1024
# Only of files up to this size the content is kept, and known beforehand to tell what was appended.
MAX_KEPT = 1024 * 1024
MAX_KNOWN = 64 * 1024 * 1024
_SKIPPED = frozenset((".git", ".hg", ".breakscope", "__pycache__", "node_modules", "torch_compile_debug"))


@dataclass(frozen=True, slots=True)
class State:
    """A file before the run: what tells that it was written, and its digest if it is small."""

    size: int
    stamp: tuple[int, int, int]
    digest: str | None


@dataclass(frozen=True, slots=True)
class Before:
    """A folder before the run."""

    files: Mapping[str, State]


@dataclass(frozen=True, slots=True)
class Written:
    """A file that a run wrote.

    Attributes:
        digest: of all of it. added: of what was appended; None where it is not known that something was.
        data: all of it; None if it is large, or no text. start: where what was appended begins.
    """

    size: int
    digest: str
    added: str | None
    data: bytes | None
    start: int


@dataclass(frozen=True, slots=True)
class Files:
    """What a run wrote, by path in the folder, and where a limit was reached."""

    written: Mapping[str, Written]
    limits: tuple[str, ...] = ()


NOTHING = Files({})


def look(folder: Path, ours: Collection[Path]) -> Before:
    """A folder as it is. ``ours``: folders in it that are not the script's."""
    files: dict[str, State] = {}
    known = 0
    for name, path, status in _files(folder, ours):
        small = status.st_size <= MAX_KEPT and known + status.st_size <= MAX_KNOWN
        known += status.st_size if small else 0
        digest = _digest(_read(path)) if small else None
        files[name] = State(status.st_size, _stamp(status), digest)
    return Before(files)


def written(folder: Path, before: Before, ours: Collection[Path]) -> Files:
    """What was created or changed in a folder since it was looked at."""
    found: dict[str, Written] = {}
    limits: list[str] = []
    hashed = searched = 0
    for name, path, status in _files(folder, ours):
        searched += 1
        old = before.files.get(name)
        if old is not None and old.stamp == _stamp(status):
            continue
        hashed += status.st_size
        if len(found) >= MAX_FILES or hashed > MAX_HASHED:
            limits.append(f"files: only the first {len(found)} were compared")
            break
        one = _written(path, status.st_size, old)
        if one is not None:
            found[name] = one
    if searched >= MAX_SEARCHED:
        limits.append(f"files: only {MAX_SEARCHED:,} files of the folder were looked at")
    return Files(found, tuple(limits))


def _written(path: str, size: int, old: State | None) -> Written | None:
    if size > MAX_KEPT:
        digest = _digest_of(path)
        return None if digest is None else Written(size, digest, None, None, 0)
    data = _read(path)
    if data is None:
        return None
    # Of a file that is new it is not known whether the script appends to it.
    grew = old is not None and old.size < len(data) and old.digest == _digest(data[: old.size])
    start = old.size if old is not None and grew else 0
    text = data if b"\0" not in data else None
    return Written(len(data), str(_digest(data)), _digest(data[start:]) if grew else None, text, start)


def _files(folder: Path, ours: Collection[Path]) -> Iterator[tuple[str, str, os.stat_result]]:
    """Regular files below a folder, in order: path in it, path, status. No link is followed."""
    skipped = {os.path.realpath(our) for our in ours}
    streams = _streams()
    count = 0
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(
            one
            for one in folders
            if one not in _SKIPPED
            and os.path.realpath(os.path.join(parent, one)) not in skipped
            and not os.path.isfile(os.path.join(parent, one, "pyvenv.cfg"))
        )
        for name in sorted(names):
            path = os.path.join(parent, name)
            try:
                status = os.lstat(path)
            except OSError:
                continue  # gone since it was listed
            if not stat.S_ISREG(status.st_mode) or (status.st_dev, status.st_ino) in streams:
                continue
            count += 1
            if count > MAX_SEARCHED:
                return
            yield os.path.relpath(path, folder), path, status


def _streams() -> set[tuple[int, int]]:
    """The files that our own output goes to, by device and number: ``breakscope fix > fix.log``."""
    found = set()
    for stream in (1, 2):
        with contextlib.suppress(OSError):  # closed
            status = os.fstat(stream)
            found.add((status.st_dev, status.st_ino))
    return found


def _stamp(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ino


def _read(path: str) -> bytes | None:
    try:
        return Path(path).read_bytes()
    except OSError:
        return None  # gone, or not ours to read


def _digest(data: bytes | None) -> str | None:
    return None if data is None else hashlib.sha256(data).hexdigest()


def _digest_of(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
