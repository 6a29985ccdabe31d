"""The line between the benchmark and one process of an arm: JSON lines over a socket pair.

Whoever has been asked is the only one at work: the parent asks one process at a time, and the process
waits at the end of what it was granted. So arms take turns step by step without a clock.
"""

from __future__ import annotations

import json
import socket
import time
from typing import Any

Message = dict[str, Any]

# From the process: it has reached its first step; what it was granted is done; it cannot go on.
READY, DONE, FAILED = "ready", "done", "failed"
# To the process: make steps; compare outputs; run some of its kernels again, alone; be over.
RUN, COMPARE, KERNELS, END = "run", "compare", "kernels", "end"


class ClosedError(Exception):
    """The other side is gone."""


class Channel:
    """One end of the line."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._buffer = b""

    def send(self, kind: str, **fields: Any) -> None:
        """Send one message. Raises ClosedError."""
        try:
            self._end.settimeout(None)
            self._end.sendall(json.dumps({"t": kind, **fields}).encode() + b"\n")
        except OSError as error:
            raise ClosedError from error

    def receive(self, timeout_s: float | None = None) -> Message:
        """The next message. Raises TimeoutError, or ClosedError where the other side has gone."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while b"\n" not in self._buffer:
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError
            self._end.settimeout(None if deadline is None else max(0.01, deadline - time.monotonic()))
            try:
                data = self._end.recv(1 << 16)
            except TimeoutError:
                raise
            except OSError as error:
                raise ClosedError from error
            if not data:
                raise ClosedError
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        message: Message = json.loads(line)
        return message

    def close(self) -> None:
        """Hang up."""
        self._end.close()
