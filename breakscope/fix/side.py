"""Runs of a script that do not depend on each other, side by side."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from breakscope.fix.runs import Script

T = TypeVar("T")


class Side:
    """Takes up to ``script.at_once`` runs at a time, if the script's runs leave each other alone."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._pool: ThreadPoolExecutor | None = None
        self._begun: list[Future[Any]] = []

    def begin(self, call: Callable[[], T]) -> Future[T] | None:
        """Begin something that is wanted later; None if it has to wait until then."""
        if not self._script.side_by_side:
            return None
        self._pool = self._pool or ThreadPoolExecutor(self._script.at_once)
        future = self._pool.submit(call)
        self._begun.append(future)
        return future

    def all(self, *calls: Callable[[], T]) -> list[T]:
        """The results of all calls, once all that was begun has ended.

        The first two are made at one time if that can be, and nothing beside them: they are timed.
        """
        wait(self._begun)
        results: list[T] = []
        for some in (calls[:2], calls[2:]):
            pairs = [(call, self.begin(call)) for call in some]
            results += [call() if begun is None else begun.result() for call, begun in pairs]
        return results

    def close(self) -> None:
        """Begin no more, and wait for none."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None
