"""A live line on the terminal while the script is silent.

The script's output must not be mixed with ours, so on a terminal it passes through here: the script
writes to a pseudo-terminal of the same size, every byte is copied on at once, and the line is drawn only
when nothing has come for a while and the cursor stands at the start of a line. It is wiped before the
script's next byte. Without a terminal the script has our own descriptors and none of this exists.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import selectors
import signal
import struct
import termios
import time
import tty
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

SILENCE_S = 1.5
_REDRAW_S = 0.5
_WIPE = b"\r\x1b[2K"


def possible() -> bool:
    """Whether a live line can be drawn: on a terminal that can wipe a line."""
    return os.isatty(2) and os.environ.get("TERM", "dumb") != "dumb"


@dataclass(slots=True)
class Relay:
    """The pseudo-terminal between the script and the terminal.

    Attributes:
        stdout, stderr: descriptors for the child; the terminal's own where it is no terminal.
    """

    status: Callable[[], str]
    stdout: int = 1
    stderr: int = 2
    _master: int = -1
    _slave: int = -1
    _at_line_start: bool = True
    _drawn: bool = False
    _last_output: float = field(default_factory=time.monotonic)

    def __enter__(self) -> Relay:
        self._master, self._slave = pty.openpty()
        tty.setraw(self._slave)  # the real terminal does what a terminal does to the bytes
        self._copy_size()
        if os.isatty(1):
            self.stdout = self._slave
        self.stderr = self._slave
        signal.signal(signal.SIGWINCH, lambda _number, _frame: self._copy_size())
        return self

    def __exit__(self, *_error: object) -> None:
        signal.signal(signal.SIGWINCH, signal.SIG_DFL)
        os.close(self._master)

    def child_started(self) -> None:
        """Give up our end of what the child now holds, so that its end can be noticed."""
        os.close(self._slave)

    def copy_until(self, over: Callable[[], bool]) -> None:
        """Copy output until ``over()``, and then what is still on its way.

        Args:
            over: whether the script has ended; asked several times a second.
        """
        os.set_blocking(self._master, False)
        with selectors.DefaultSelector() as selector:
            selector.register(self._master, selectors.EVENT_READ)
            while not over():
                if selector.select(timeout=0.1) and not self._copy():
                    # Every end of the script's is closed, but it may still run.
                    selector.unregister(self._master)
                    while not over():
                        time.sleep(0.05)
                    break
                self._maybe_draw()
        while self._copy():
            pass
        self._wipe()

    def _copy(self) -> bool:
        """Copy what there is; False if there is nothing now, or nothing any more."""
        try:
            data = os.read(self._master, 65536)
        except OSError:
            return False
        if not data:
            return False
        self._wipe()
        _write_all(data)
        self._at_line_start = data.endswith(b"\n")
        self._last_output = time.monotonic()
        return True

    def _maybe_draw(self) -> None:
        now = time.monotonic()
        if not self._at_line_start or now - self._last_output < SILENCE_S:
            return
        width = os.get_terminal_size(2).columns
        text = self.status()[: width - 1]
        _write_all(_WIPE + b"\x1b[2m" + text.encode(errors="replace") + b"\x1b[0m\r")
        self._drawn = True
        self._last_output = now - SILENCE_S + _REDRAW_S

    def _wipe(self) -> None:
        if self._drawn:
            _write_all(_WIPE)
            self._drawn = False

    def _copy_size(self) -> None:
        with contextlib.suppress(OSError):
            size = os.get_terminal_size(2)
            packed = struct.pack("HHHH", size.lines, size.columns, 0, 0)
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, packed)


def _write_all(data: bytes) -> None:
    # stdout and stderr are the same terminal here.
    while data:
        data = data[os.write(2, data) :]


@contextlib.contextmanager
def relayed(status: Callable[[], str] | None) -> Iterator[Relay | None]:
    """A relay where one is wanted and possible, else None."""
    if status is None or not possible():
        yield None
        return
    with Relay(status) as relay:
        yield relay
