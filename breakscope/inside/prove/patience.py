"""A test call that does not end: an input that nobody gives a function may keep its loop running for ever."""

from __future__ import annotations

import _thread
import contextlib
import ctypes
import faulthandler
import math
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

_LOOKS_S = 0.1
_STEPS = 100
_IN_C_S = 20.0


class EndlessError(BaseException):
    """Raised inside a call that takes too long. No ``except Exception`` of the user's catches it."""


@dataclass(slots=True)
class Patience:
    """A thread that looks at the calls of another one, and ends those that take too long.

    No thread of the threading module: the script may count those.
    """

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: int = 0
    _deadline: float = math.inf
    _null: int = -1

    @contextlib.contextmanager
    def looking(self) -> Iterator[None]:
        """Look at the calls that this thread makes meanwhile."""
        self._over.clear()
        self._thread, self._deadline = threading.get_ident(), math.inf
        _thread.start_new_thread(self._look, ())
        try:
            yield
        finally:
            self._over.set()

    @contextlib.contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """End what is done meanwhile after so many seconds.

        A call into C that never asks whether it is to stop, and lets no other thread run, as math.factorial
        of a huge number, cannot be ended: some time later the process is.

        Raises:
            EndlessError: it took longer.
        """
        with self._lock:
            self._deadline = time.monotonic() + seconds
        if math.isfinite(seconds):
            faulthandler.dump_traceback_later(seconds + _IN_C_S, exit=True, file=self._nowhere())
        try:
            yield
        except BaseException:
            if self._stop():
                raise EndlessError from None
            raise
        finally:
            faulthandler.cancel_dump_traceback_later()
        if self._stop():
            raise EndlessError

    def _nowhere(self) -> int:
        """Where the place at which a call hangs is written to."""
        if self._null < 0:
            self._null = os.open(os.devnull, os.O_WRONLY)
        return self._null

    def _stop(self) -> bool:
        """Look no more at this call; whether an exception for it was still on its way."""
        came = False
        while True:
            try:
                with self._lock:
                    self._deadline = math.inf
                for _ in range(_STEPS):  # what is on its way comes now, and not to who calls next
                    pass
            except EndlessError:
                came = True
            else:
                return came

    def _look(self) -> None:
        while not self._over.wait(_LOOKS_S):
            with self._lock:
                if self._deadline < time.monotonic():
                    _raise_in(self._thread, EndlessError)


def _raise_in(thread: int, error: type[BaseException]) -> None:
    """Have an exception raised in a thread at its next step."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))
