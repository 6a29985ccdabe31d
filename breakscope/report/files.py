"""Files written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable, Iterable

from breakscope.errors import OutputError

OWN_FOLDER = ".breakscope"
BENCHMARK = "bench.json"  # in that folder
_TEMPORARY = ".breakscope-"
_LEFT_AFTER_S = 3600.0  # nobody writes one file for so long


def write(data: bytes | Iterable[bytes], path: str | os.PathLike[str]) -> None:
    """Write a file, such as a report in any format, whole or not at all. Raises OutputError.

    Args:
        data: parts are asked for one by one, so that the whole need not be in memory.
    """
    name = os.fspath(path)
    try:
        _write(name, (data,) if isinstance(data, bytes) else data)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or str(error)
        raise OutputError(f"cannot write the report to {name}: {reason}") from None


def _write(name: str, parts: Iterable[bytes]) -> None:
    try:
        mode = os.stat(name).st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
    if not stat.S_ISREG(mode):
        # /dev/stdout, a pipe: to be written to, not replaced. A directory fails here, as it should.
        with open(name, "wb") as device:
            device.write(b"".join(parts))
        return
    _replace(name, parts)
    _hide(os.path.dirname(os.path.realpath(name)))


def _hide(folder: str) -> None:
    """Keep our own folder out of version control, but for the baseline."""
    ignore = os.path.join(folder, ".gitignore")
    if os.path.basename(folder) == OWN_FOLDER and not os.path.lexists(ignore):
        with contextlib.suppress(OSError):
            replace(ignore, b"*\n!baseline.json\n")


def replace(
    path: str | os.PathLike[str],
    data: bytes,
    *,
    mode: int | None = None,
    last_look: Callable[[str], None] = lambda _target: None,
) -> None:
    """Give a file another content. Whatever happens, it holds the old or the new one; a link stays a link.

    Args:
        path: of the file, which need not exist yet.
        mode: its permission bits; None for those that a new file gets here.
        last_look: called with the file's real path just before it is replaced; what it raises ends it.

    Raises:
        OSError: the folder is missing, full or not to be written to.
    """
    _replace(path, (data,), mode=mode, last_look=last_look)


def _replace(
    path: str | os.PathLike[str],
    parts: Iterable[bytes],
    *,
    mode: int | None = None,
    last_look: Callable[[str], None] = lambda _target: None,
) -> None:
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    temporary = os.path.join(folder, f"{_TEMPORARY}{os.urandom(8).hex()}.tmp")
    try:
        with open(temporary, "xb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        last_look(target)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    with contextlib.suppress(OSError):  # a folder that may be written to need not be one that can be listed
        _settle(folder)


def _settle(folder: str) -> None:
    """Have the new name on the disk; take away what a process left there that was killed while it wrote."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        names = os.listdir(descriptor)
    finally:
        os.close(descriptor)
    old = time.time() - _LEFT_AFTER_S
    for name in names:
        if name.startswith(_TEMPORARY) and name.endswith(".tmp"):
            path = os.path.join(folder, name)
            with contextlib.suppress(OSError):
                if os.lstat(path).st_mtime < old:
                    os.unlink(path)
