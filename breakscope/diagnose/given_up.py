"""Functions that Dynamo gave up, each told once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from breakscope.report.model import SkippedFrame


def each_once(frames: Iterable[SkippedFrame]) -> tuple[SkippedFrame, ...]:
    """One for each function, in the order in which they first come."""
    merged: dict[tuple[str, str], SkippedFrame] = {}
    for frame in frames:
        before = merged.get((frame.file, frame.function))
        merged[frame.file, frame.function] = frame if before is None else _both(before, frame)
    return tuple(merged.values())


def _both(one: SkippedFrame, other: SkippedFrame) -> SkippedFrame:
    """The same function given up twice: the calls of both, since the earlier one."""
    calls = None if one.calls is None or other.calls is None else one.calls + other.calls
    since = None if one.since is None or other.since is None else min(one.since, other.since)
    return replace(one, calls=calls, since=since)
