"""Reads many files at once, in as many processes as are worth it."""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import warnings
from collections.abc import Iterable, Sequence

from breakscope.lint import extract

Task = tuple[str, bytes, bool]  # path, content, whether to look into every function

_WORTH_A_PROCESS = 400_000  # bytes of source: about a tenth of a second
_CHUNKS_EACH = 12


def read_all(tasks: Sequence[Task], jobs: int | None) -> dict[str, str]:
    """The facts of each file as JSON text, by path.

    Args:
        tasks: what to read.
        jobs: processes at most; None for one a core that this process may use.
    """
    size = sum(len(content) for _, content, _ in tasks)
    processes = min(jobs or cores(), max(1, size // _WORTH_A_PROCESS), max(1, len(tasks)))
    if processes == 1:
        return dict(_read(tasks))
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    # On Linux a fork starts at once; elsewhere it is not safe.
    context = get_context("fork" if sys.platform == "linux" else "spawn")
    found: dict[str, str] = {}
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_quiet) as pool:
        for part in pool.map(_read, _chunks(tasks, processes * _CHUNKS_EACH)):
            found.update(part)
    return found


def cores() -> int:
    """Cores that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _chunks(tasks: Sequence[Task], count: int) -> Iterable[list[Task]]:
    """Parts of like size, the largest files spread over all of them and read first."""
    ordered = sorted(tasks, key=lambda task: -len(task[1]))
    return [part for part in (ordered[start::count] for start in range(count)) if part]


def _read(tasks: Iterable[Task]) -> list[tuple[str, str]]:
    # Trees have no cycles; looking for some costs a third of the time.
    enabled = gc.isenabled()
    gc.disable()
    try:
        # What Python has to say of "\\d" in somebody's string is not for the reader of a lint.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [
                (path, json.dumps(extract.read(content, everything=everything)))
                for path, content, everything in tasks
            ]
    finally:
        if enabled:
            gc.enable()


def _quiet() -> None:
    # Ctrl-C ends the parent, which ends the pool; without this each child shows a traceback.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
