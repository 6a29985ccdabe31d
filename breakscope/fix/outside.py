"""A proposer from outside: a command that gets a finding as JSON and writes a unified diff.

What it writes is data to us: it is read as a diff, proved in the trial's child, and run nowhere else. A
command that hangs, floods, writes rubbish or changes files by itself is answered with one sentence, and files
of the project that it changed are put back.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from breakscope.errors import BreakscopeError

MAX_BYTES = 2**20
TIMEOUT_S = 600.0


class OutsideError(BreakscopeError):
    """The command gave nothing that could be proved; the message says why."""

    exit_code = 1
    slug = "with"


def ask(command: str, request: bytes, files: Iterable[str], timeout_s: float = TIMEOUT_S) -> str:
    """Run a command in a shell, with a request on its standard input, and return what it writes.

    Args:
        files: source files that must be after it what they were before.

    Raises:
        OutsideError: it hangs, writes too much, fails, writes no text or changes a file.
    """
    with _kept(files) as changed:
        answer, code = _answer(command, request, timeout_s)
    if changed:
        raise OutsideError(f"the command itself changed {os.path.basename(changed[0])}, which was put back")
    if code != 0:
        raise OutsideError(f"the command ended with exit status {code}")
    try:
        text = answer.decode()
    except UnicodeDecodeError:
        raise OutsideError("the command wrote bytes that are no text") from None
    if not text.strip():
        raise OutsideError("the command wrote nothing")
    return text


@contextlib.contextmanager
def _kept(files: Iterable[str]) -> Iterator[list[str]]:
    """Put files back that are changed meanwhile; gives a list of those, filled in the end."""
    before: dict[Path, bytes] = {}
    for file in files:
        with contextlib.suppress(OSError):
            before[Path(file)] = Path(file).read_bytes()
    changed: list[str] = []
    try:
        yield changed
    finally:
        for place, data in before.items():
            if not place.exists() or place.read_bytes() != data:
                place.write_bytes(data)
                changed.append(str(place))


def _answer(command: str, request: bytes, timeout_s: float) -> tuple[bytes, int]:
    with tempfile.TemporaryFile() as given:
        given.write(request)
        given.seek(0)
        # A session of its own: whatever it starts ends with it.
        child = subprocess.Popen(  # noqa: S602 -- the user's own command line
            command,
            shell=True,
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        return _read(child, time.monotonic() + timeout_s, timeout_s)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        assert child.stdout is not None
        child.stdout.close()


def _read(child: subprocess.Popen[bytes], deadline: float, timeout_s: float) -> tuple[bytes, int]:
    assert child.stdout is not None
    answer = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise OutsideError(f"the command was ended: it took longer than {timeout_s:g} s")
            if not selector.select(left):
                continue
            data = os.read(child.stdout.fileno(), 65536)
            if not data:
                break
            answer += data
            if len(answer) > MAX_BYTES:
                raise OutsideError(f"the command was ended: it wrote more than {MAX_BYTES // 2**20} MiB")
    try:
        return bytes(answer), child.wait(max(0.1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise OutsideError(f"the command was ended: it took longer than {timeout_s:g} s") from None
