"""When Dynamo compiled: each finding from the first step at which it was reported to the last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from breakscope.render.html.pictures import TONES, WIDTH, Labels, Tone
from breakscope.report.model import Finding, Report
from breakscope.view.text import count

_MOST_ROWS = 20
_MOST_TICKS = 6


@dataclass(frozen=True, slots=True)
class Track:
    """One finding: dots at ``first`` and ``last`` units, and a line between them."""

    first: float
    last: float
    tone: Tone
    place: str
    title: str
    when: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Tick:
    """A step on the axis, at ``x`` units."""

    x: float
    step: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """The tracks, worst finding first.

    Attributes:
        verdict: whether compiling came to an end, in one sentence.
        missing: why there is nothing to draw; None where there is.
    """

    tracks: tuple[Track, ...]
    ticks: tuple[Tick, ...]
    left_out: int
    verdict: str | None
    missing: str | None


def timeline(report: Report, findings: Sequence[Finding], labels: Labels) -> Timeline:
    """The timeline of a report; its findings in the order in which they are to stand."""
    known = [(finding, finding.first_step) for finding in findings if finding.first_step is not None]
    if not known:
        why = "there is no finding" if not findings else "this report does not say at which steps"
        return Timeline((), (), 0, None, f"nothing to draw: {why}")
    latest = max(_last(one, first) for one, first in known)
    steps = max(report.totals.steps or 0, latest + 1)
    tracks = tuple(
        Track(
            first=_at(first, steps),
            last=_at(_last(one, first), steps),
            tone=TONES[one.kind],
            place=labels[one.fingerprint].short,
            title=labels[one.fingerprint].title,
            when=_when(first, _last(one, first)),
            anchor=labels[one.fingerprint].anchor,
        )
        for one, first in known[:_MOST_ROWS]
    )
    ticks = tuple(Tick(_at(step, steps), step) for step in _ticks(steps))
    left_out = len(known) - len(tracks)
    return Timeline(tracks, ticks, left_out, _verdict(report, latest), None)


def _last(finding: Finding, first: int) -> int:
    return max(first, finding.last_step if finding.last_step is not None else first)


def _when(first: int, last: int) -> str:
    return f"step {first:,}" if first == last else f"steps {first:,} to {last:,}"


def _verdict(report: Report, latest: int) -> str:
    steps = report.totals.steps
    if steps is None:
        return (
            f"Dynamo last reported one of these at step {latest:,}; how many steps there were is not known."
        )
    if latest >= steps - 1 and steps > 1:
        return (
            f"Dynamo was still compiling at the last of {count(steps, 'step')}: "
            "a longer run may show more, and pays for each."
        )
    quiet = steps - 1 - latest
    return (
        f"The last {count(quiet, 'step')} of {steps:,} ran without a new report from Dynamo."
        if quiet
        else ("There was only one step: nothing can be said about later ones.")
    )


def _at(step: int, steps: int) -> float:
    """The middle of a step's share of the axis."""
    return round(WIDTH * (step + 0.5) / steps, 1)


def _ticks(steps: int) -> list[int]:
    stride = 1
    while (steps - 1) / stride >= _MOST_TICKS:
        # 1, 2, 5, 10, 20, 50 ...
        stride = stride * 5 // 2 if str(stride)[0] == "2" else stride * 2
    return list(range(0, steps, stride))
