"""When the outermost calls of modules ended: seconds to the first step, and from one step to the next.

Used where two ways to compile a script are timed side by side, never by a plain scan.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import torch

MOST_CALLS = 10_000


class Stopwatch:
    """Notes the end of each outermost call, by the name of the module's class.

    Args:
        now: seconds since the process began.
        never_compile: keeps Dynamo from compiling a code object of ours.
    """

    def __init__(self, now: Callable[[], float], never_compile: Callable[[Any], None]) -> None:
        self._now = now
        self._never_compile = never_compile
        self._local = threading.local()
        self.ends: dict[str, list[float]] = {}

    def wrap(self, function: Callable[..., Any], of: Any = None) -> Callable[..., Any]:
        """A function that does as ``function``, and is timed.

        Args:
            of: the module whose call it is; None where it takes the module as its first argument.
        """

        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling() or getattr(self._local, "inside", False):
                return function(*args, **kwargs)
            self._local.inside = True
            try:
                result = function(*args, **kwargs)
            finally:
                self._local.inside = False
            self._note(args[0] if of is None and args else of)
            return result

        self._never_compile(timed.__code__)  # type: ignore[attr-defined]
        return timed

    def _note(self, module: Any) -> None:
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
        ends = self.ends.setdefault(type(module).__name__, [])
        if len(ends) < MOST_CALLS:
            ends.append(round(self._now(), 6))
