"""Trace files on disk: found in folders, opened whether plain or compressed."""

from __future__ import annotations

import importlib
import os
import re
import stat
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

from breakscope.errors import TraceError
from breakscope.traces.damage import MAX_RECORD, Damage

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_TRACE_NAME = re.compile(r"torch_trace_")
_LOG_NAME = re.compile(r"\.(?:log|txt|out|err)(?:\.\d+)?(?:\.gz|\.zst)?$")
_RANK = re.compile(r"rank_(\d+)_")
_RAW = 1 << 14
# Traces shrink to a thirtieth. What unpacks to more bytes than these, and to so many times its size, is none.
_UNPACKED = 1 << 30
_RATIO = 150
_LINE = 8 * MAX_RECORD  # bytes without a line end that no trace and no log has


def find(paths: Iterable[Path]) -> list[Path]:
    """The files to read: those named, and of folders every trace in them, at any depth.

    A folder without files named as torch names its traces is taken for one of text logs.

    Raises:
        TraceError: a path does not exist, or a folder holds nothing that could be a trace.
    """
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += _in_folder(path)
        elif path.exists():
            found.append(path)
        else:
            raise TraceError(f"there is no file or folder {path}")
    return list(dict.fromkeys(found))


def _in_folder(folder: Path) -> list[Path]:
    files = sorted(Path(where, name) for where, _, names in os.walk(folder) for name in names)
    traces = [file for file in files if _TRACE_NAME.search(file.name)]
    chosen = traces or [file for file in files if _LOG_NAME.search(file.name)]
    if not chosen:
        what = "is empty" if not files else f"holds {len(files)} files, none of them a trace or a log"
        raise TraceError(f"nothing to import: the folder {folder} {what}")
    return chosen


def rank_of(path: Path) -> int | None:
    """The rank in a file's name; None where torch had none when it made the file."""
    found = _RANK.search(path.name)
    return int(found[1]) if found else None


def is_compressed(path: Path) -> bool:
    """Whether a file is one of those that :class:`TraceFile` unpacks. Such a file is complete."""
    try:
        with path.open("rb") as stream:
            start = stream.read(4)
    except OSError:
        return False
    return start.startswith(_GZIP) or start == _ZSTD


class TraceFile:
    """One file, read as plain bytes whatever it is compressed with.

    Attributes:
        taken: bytes read from disk so far, of ``size``.
    """

    def __init__(self, path: Path, damage: Damage) -> None:
        """Raises TraceError: the file cannot be read, or needs a package that is not installed."""
        self._damage = damage
        self.taken = self._unpacked = self._line = 0
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):
                raise TraceError(f"cannot read {path}: it is no file, but a pipe, a device or a folder")
            self._file: BinaryIO = path.open("rb", buffering=0)
            self.size = os.fstat(self._file.fileno()).st_size
            start = self._file.read(4)
            self._file.seek(0)
        except OSError as error:
            raise TraceError(f"cannot read {path}: {error.strerror}") from None
        self._unpack: _Unpack | None = None
        if start.startswith(_GZIP):
            self._unpack = _Unpack(lambda: zlib.decompressobj(wbits=31), damage)
        elif start == _ZSTD:
            self._unpack = _Unpack(_zstd(path), damage)

    def __enter__(self) -> TraceFile:
        return self

    def __exit__(self, *_error: object) -> None:
        self._file.close()

    def read(self, size: int, /) -> bytes:
        """At most ``size`` bytes as they were before compression; none at the end, or where it is no text."""
        if self._line > _LINE:
            return b""
        data = self._next(size)
        newline = data.rfind(b"\n")
        self._line = self._line + len(data) if newline < 0 else len(data) - newline - 1
        if self._line > _LINE:
            self._damage.add("line")
        return data

    def _next(self, size: int) -> bytes:
        if self._unpack is None:
            return self._raw(size)
        data = b""
        while len(data) < size and not self._unpack.over:
            data += self._unpack.take(size, self._raw)
        self._unpacked += len(data)
        if self._unpacked > max(_UNPACKED, _RATIO * self.taken):
            self._damage.add("bomb")
            self._unpack.over = True
            return b""
        return data

    def _raw(self, size: int) -> bytes:
        try:
            data = self._file.read(size)
        except OSError:
            self._damage.add("cut")  # a disk or a network folder failed: what came before is used
            return b""
        self.taken += len(data)
        return data


class _Unpack:
    """Decompresses a stream that may have several members and may end anywhere.

    Attributes:
        over: nothing more will come.
    """

    def __init__(self, begin: Any, damage: Damage) -> None:
        self._begin = begin
        self._damage = damage
        self._stream = begin()
        self._rest = b""
        self._fresh = True
        self.over = False

    def take(self, size: int, raw: Any) -> bytes:
        """Some bytes, perhaps none although more will come."""
        # Python's own Zstandard keeps what it has not decompressed yet to itself.
        if not self._rest and getattr(self._stream, "needs_input", True):
            self._rest = raw(_RAW)
            if not self._rest:
                self._end(whole=self._fresh)
                return b""
        try:
            data: bytes = self._stream.decompress(self._rest, size)
        except Exception:  # noqa: BLE001 -- each library has an error of its own for damaged data
            self._end(whole=False)
            return b""
        self._fresh = False
        self._rest = getattr(self._stream, "unconsumed_tail", b"")
        if self._stream.eof:
            self._rest = self._stream.unused_data.lstrip(b"\0")
            self._stream, self._fresh = self._begin(), True
        return data

    def _end(self, *, whole: bool) -> None:
        self.over = True
        if not whole:
            self._damage.add("compressed")


def _zstd(path: Path) -> Any:
    """What begins to decompress Zstandard: Python's own since 3.14, else the package ``zstandard``."""
    try:
        return importlib.import_module("compression.zstd").ZstdDecompressor
    except ImportError:
        pass
    try:
        package = importlib.import_module("zstandard")
    except ImportError:
        raise TraceError(
            f"cannot read {path}: it is compressed with Zstandard; pip install zstandard, or unpack it first"
        ) from None
    return lambda: _Zstandard(package.ZstdDecompressor().decompressobj())


class _Zstandard:
    """The package's decompressor behind the interface of zlib's.

    Attributes:
        unconsumed_tail: what was not decompressed yet.
    """

    # It knows no limit on what comes out. 512 bytes become 16 MB at most: 128 blocks of 128 KB.
    _PIECE = 512

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.unconsumed_tail = b""

    def decompress(self, data: bytes, _most: int) -> bytes:
        self.unconsumed_tail = data[self._PIECE :]
        return bytes(self._stream.decompress(data[: self._PIECE]))

    @property
    def eof(self) -> bool:
        return bool(self._stream.eof)

    @property
    def unused_data(self) -> bytes:
        return bytes(self._stream.unused_data) + self.unconsumed_tail
