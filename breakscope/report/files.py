"""Files written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat

from breakscope.errors import OutputError


def write(data: bytes, path: str | os.PathLike[str]) -> None:
    """Write a file, such as a report in any format, whole or not at all. Raises OutputError."""
    name = os.fspath(path)
    try:
        _write(name, data)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or str(error)
        raise OutputError(f"cannot write the report to {name}: {reason}") from None


def _write(name: str, data: bytes) -> None:
    try:
        mode = os.stat(name).st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
    if not stat.S_ISREG(mode):
        # /dev/stdout, a pipe: to be written to, not replaced. A directory fails here, as it should.
        with open(name, "wb") as device:
            device.write(data)
        return
    target = os.path.realpath(name)  # a link to the report stays a link
    temporary = os.path.join(os.path.dirname(target), f".breakscope-{os.urandom(8).hex()}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
