"""Where merges run: in this process, in local processes, or on a Dask cluster."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from breakscope.errors import UsageError

_DASK = "dask://"
_CONNECT_S = 10

_Result = TypeVar("_Result")


class Here(Executor):
    """Runs each task at once, in this process."""

    def submit(self, fn: Callable[..., _Result], /, *args: Any, **kwargs: Any) -> Future[_Result]:
        """As every executor does; an exception of the task is the future's."""
        future: Future[_Result] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 -- raised again by result()
            future.set_exception(error)
        return future


@contextmanager
def executor(where: str, jobs: int | None, tasks: int) -> Iterator[Executor]:
    """The executor that a user named.

    Args:
        where: ``local`` or ``dask://HOST:PORT``.
        jobs: local processes at most; None for one a core.
        tasks: how many tasks there will be at once; a single one needs no process.

    Raises:
        UsageError: if there is no such executor, or it cannot be reached.
    """
    if where == "local":
        processes = min(jobs or os.cpu_count() or 1, tasks)
        with ProcessPoolExecutor(processes) if processes > 1 else Here() as local:
            yield local
    elif where.startswith(_DASK):
        if jobs is not None:
            raise UsageError("--jobs is for --executor local: a Dask cluster has its own workers")
        with _dask(where.removeprefix(_DASK)) as client:
            yield client.get_executor()
    else:
        raise UsageError(f"no executor {where!r}: there are local and dask://HOST:PORT")


@contextmanager
def _dask(address: str) -> Iterator[Any]:
    if importlib.util.find_spec("distributed") is None:
        raise UsageError("--executor dask:// needs Dask: pip install 'torch-breakscope[dask]'")
    import distributed

    connect: Any = distributed.Client  # it has no types of its own
    try:
        client = connect(f"tcp://{address}", timeout=_CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UsageError(f"no Dask scheduler at {address}: {reason}") from None
    with client:
        yield client
