"""Compiles on as many lines as are needed so that no two on one line overlap."""

from __future__ import annotations

from collections.abc import Iterable

from breakscope.report.model import Compile

Timed = tuple[float, float, Compile]
"""When a compile began, and how long it took, in seconds."""


def lanes(compiles: Iterable[Compile]) -> list[list[Timed]]:
    """Those with a time, in order of their beginning. No time is negative, whoever wrote the report."""
    timed = [
        (one.at_s, one.seconds, one)
        for one in compiles
        if one.at_s is not None and one.seconds is not None and one.seconds >= 0
    ]
    made: list[list[Timed]] = []
    for at, seconds, one in sorted(timed, key=lambda item: (item[0], -item[1])):
        lane = next((lane for lane in made if lane[-1][0] + lane[-1][1] <= at), None)
        if lane is None:
            made.append(lane := [])
        lane.append((at, seconds, one))
    return made
