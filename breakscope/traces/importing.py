"""Many traces, one process for each where there are cores, to one report."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from breakscope.errors import OutputError, TraceError
from breakscope.traces.files import find
from breakscope.traces.one_file import Imported, import_file
from breakscope.traces.processes import combine

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

    from breakscope.report.model import Report

_LOOK_S = 0.2


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an import is.

    Attributes:
        files, of_files: finished, and all.
        taken, size: bytes read, and of all files, on disk.
        seconds: since the beginning.
    """

    files: int
    of_files: int
    taken: int
    size: int
    seconds: float

    def line(self) -> str:
        """One line for a terminal."""
        rate = self.taken / max(self.seconds, 1e-9) / 1e6
        return (
            f"breakscope: {self.files} of {self.of_files} files, {self.taken / 1e6:,.0f} of "
            f"{self.size / 1e6:,.0f} MB, {rate:,.0f} MB/s"
        )


Watch = Callable[[Progress], None]


def import_traces(
    paths: Sequence[Path],
    *,
    jobs: int | None = None,
    watch: Watch | None = None,
    keep: Path | None = None,
    executor: Executor | None = None,
) -> tuple[Report, list[str]]:
    """One report of all traces below some paths, and a sentence for each file that could not be used.

    Args:
        jobs: processes to read with; None for one for each core.
        watch: told a few times a second how far it is.
        keep: folder that gets what each compile produced; None to keep nothing.
        executor: reads the files instead, such as that of a cluster; its workers must see them, and
            ``keep``, under the same names.

    Raises:
        OutputError: ``keep`` cannot be written.
        TraceError: there is nothing to read, or nothing of it is a trace.
    """
    files = find(paths)
    jobs = min(jobs or os.cpu_count() or 1, len(files))
    if executor is not None:
        done = list(_elsewhere(files, executor, watch, keep))
    else:
        done = list(_alone(files, watch, keep) if jobs == 1 else _together(files, jobs, watch, keep))
    problems = [one.problem for one in done if one.problem is not None]
    parts = [part for one in done for part in one.parts]
    if not parts:
        rest = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise TraceError(f"nothing was imported: {problems[0]}{rest}")
    report = combine(parts, shown(paths))
    if problems:
        notes = (*report.run.notes, *(f"not used: {problem}" for problem in problems))
        report = replace(report, run=replace(report.run, notes=notes))
    return report, problems


def shown(paths: Sequence[Path]) -> str:
    """What was imported, as the report names it."""
    return " ".join(map(str, paths)) if len(paths) <= 3 else f"{paths[0]} and {len(paths) - 1} more"


def _alone(files: Sequence[Path], watch: Watch | None, keep: Path | None) -> Iterator[Imported]:
    sizes = [_size(file) for file in files]
    began = last = time.monotonic()
    for number, file in enumerate(files):

        def look(taken: int, _size: int, number: int = number) -> None:
            nonlocal last
            now = time.monotonic()
            if watch is not None and now - last >= _LOOK_S:
                last = now
                before = sum(sizes[:number])
                watch(Progress(number, len(files), before + taken, sum(sizes), now - began))

        yield import_file(str(file), look, keep)


# Bytes read so far, one number for each file, shared with the parent. Set in the workers when they begin.
_taken: Any = None


def _begin_worker(taken: Any) -> None:
    global _taken  # noqa: PLW0603 -- shared memory reaches a worker only when it begins
    _taken = taken


def _work(number: int, path: str, keep: Path | None) -> Imported:
    def look(taken: int, _size: int) -> None:
        if _taken is not None:
            _taken[number] = taken

    return import_file(path, look, keep)


def _together(files: Sequence[Path], jobs: int, watch: Watch | None, keep: Path | None) -> Iterator[Imported]:
    import multiprocessing
    from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait

    context = multiprocessing.get_context()
    taken = context.Array("Q", len(files), lock=False)
    size, began = sum(map(_size, files)), time.monotonic()
    with ProcessPoolExecutor(jobs, context, _begin_worker, (taken,)) as pool:
        # The largest first, so that none is left over at the end; the results in the order of the files.
        order = sorted(range(len(files)), key=lambda number: -_size(files[number]))
        futures = {number: pool.submit(_work, number, str(files[number]), keep) for number in order}
        waiting: set[Future[Imported]] = set(futures.values())
        while waiting:
            _, waiting = wait(waiting, timeout=_LOOK_S, return_when=FIRST_COMPLETED)
            if watch is not None:
                done = len(files) - len(waiting)
                watch(Progress(done, len(files), sum(taken), size, time.monotonic() - began))
        for number, file in enumerate(files):
            yield _result(futures[number], file)


def _elsewhere(
    files: Sequence[Path], executor: Executor, watch: Watch | None, keep: Path | None
) -> Iterator[Imported]:
    sizes = [_size(file) for file in files]
    began = time.monotonic()
    futures = [executor.submit(import_file, str(file), None, keep, os.getcwd()) for file in files]
    for number, (file, future) in enumerate(zip(files, futures, strict=True), 1):
        yield _result(future, file)
        if watch is not None:
            taken = sum(sizes[:number])
            watch(Progress(number, len(files), taken, sum(sizes), time.monotonic() - began))


def _result(future: Future[Imported], file: Path) -> Imported:
    try:
        return future.result()
    except OutputError:
        raise
    except Exception as error:  # noqa: BLE001 -- a worker killed for memory must not lose the others' work
        return Imported(str(file), (), 0, f"{file} could not be read: {type(error).__name__}: {error}")


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0
