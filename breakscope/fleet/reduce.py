"""Reports reduced to one as a tree: possible because merging does not care for order or grouping."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import TypeVar

from breakscope.diagnose.merge import merge
from breakscope.errors import ReportError
from breakscope.project.baseline import is_baseline
from breakscope.report import schema
from breakscope.report.files import BENCHMARK
from breakscope.report.latest import FOLDER, is_earlier
from breakscope.report.model import Report

_Item = TypeVar("_Item")

_HEAD = 4096
FAN_IN = 8  # reports that one task merges


def files(paths: Sequence[Path]) -> list[Path]:
    """The report files that the user named: files as they are, of a folder every report in it.

    Earlier scans of a folder are no ranks of a job: of those that ``scan`` keeps there, the latest counts.

    Raises:
        ReportError: if a folder has none.
    """
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(path)
            continue
        inside = [one for one in sorted(path.glob("*.json")) if not is_earlier(one) and _is_scan(one)]
        if not inside:
            raise ReportError(f"there is no report (*.json) in {path}")
        found += inside
    return list(dict.fromkeys(one.absolute() for one in found))


def earlier(paths: Sequence[Path]) -> int:
    """How many earlier scans :func:`files` leaves out of the folders that the user named."""
    return sum(is_earlier(one) for path in paths if path.is_dir() for one in path.glob("*.json"))


def _is_scan(path: Path) -> bool:
    """Whether a file is neither a baseline nor the benchmark of a folder. What is damaged is said later."""
    if path.parent.name == FOLDER and path.name == BENCHMARK:
        return False
    with path.open("rb") as file:
        return not is_baseline(file.read(_HEAD))


def tasks(paths: Sequence[Path]) -> int:
    """How many tasks :func:`reduce` starts with."""
    return -(-len(paths) // FAN_IN)


def reduce(paths: Sequence[Path], executor: Executor) -> Report:
    """One report of all files. They are read where the executor's tasks run.

    Raises:
        ReportError: if a file cannot be read; names it.
    """
    level = [executor.submit(_merge_files, chunk) for chunk in _chunks([str(path) for path in paths])]
    while len(level) > 1:
        level = [executor.submit(merge, [future.result() for future in chunk]) for chunk in _chunks(level)]
    return level[0].result()


def _merge_files(paths: Sequence[str]) -> Report:
    return merge([schema.load(path) for path in paths])


def _chunks(items: Sequence[_Item]) -> list[Sequence[_Item]]:
    return [items[start : start + FAN_IN] for start in range(0, len(items), FAN_IN)]
