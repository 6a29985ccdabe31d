"""The live line of a command that takes minutes: what it does, for how long, and how long it still takes."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable

from breakscope.cli.output import draw

_STEP = re.compile(r"(\w+) (\d+) of (?:about )?(\d+)")
_TICK_S = 1.0


class Progress:
    """Called with a few words at a time. Draws them on a terminal, and nothing where there is none.

    A text that says ``run 3 of 7`` is estimated: how long such runs took says when the seventh is over.
    """

    def __init__(self, *, quiet: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._wanted = sys.stderr.isatty() and not quiet
        self._clock = clock
        self._began = clock()
        self._text = ""
        self._first: dict[str, tuple[int, float]] = {}  # of each kind of step: the first number, and when
        self._over = threading.Event()
        self._lock = threading.Lock()

    def __enter__(self) -> Progress:
        if self._wanted:
            threading.Thread(target=self._tick, daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Wipe the line for good."""
        with self._lock:
            wipe = self._wanted and not self._over.is_set()
            self._over.set()
            if wipe:
                draw("")

    def __call__(self, text: str) -> None:
        """Say what is done now."""
        self._text = text
        if step := _STEP.search(text):
            self._first.setdefault(step[1], (int(step[2]), self._clock()))
        self._draw()

    @property
    def elapsed_s(self) -> float:
        """Seconds since it began."""
        return self._clock() - self._began

    def line(self) -> str:
        """The words with the time that passed, and that which is left as far as it can be told."""
        return ", ".join(filter(None, (self._text, duration(self.elapsed_s), self._left())))

    def _left(self) -> str:
        step = _STEP.search(self._text)
        if step is None:
            return ""
        number, count = int(step[2]), int(step[3])
        first, began = self._first[step[1]]
        if number == first:
            return ""
        left_s = (self._clock() - began) / (number - first) * (count - number + 1)
        return f"about {duration(left_s)} left"

    def _draw(self) -> None:
        with self._lock:
            if self._wanted and not self._over.is_set():
                draw(self.line())

    def _tick(self) -> None:
        while not self._over.wait(_TICK_S):
            self._draw()


def duration(seconds: float) -> str:
    """Seconds in words: ``8 s``, ``2 min 5 s``."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
