"""What is said of compile times, in every format: how much, and what compiled again after warm-up."""

from __future__ import annotations

from breakscope.report.model import Compile, Report
from breakscope.view.text import and_more, count, seconds

_QUIET = 2  # steps without a compile that end the warm-up
_SHOWN_STEPS = 5


def late(report: Report) -> tuple[Compile, ...]:
    """Compiles after warm-up: after the first two steps in a row without one."""
    steps = sorted({one.step for one in report.compiles if one.step is not None})
    warm = 0
    for step in steps:
        if step - warm > _QUIET:
            break
        warm = step + 1
    return tuple(one for one in report.compiles if one.step is not None and one.step >= warm + _QUIET)


def compiled_late(report: Report) -> str | None:
    """``compiled again at step 412: 3 frames, 0.7 s``; None where nothing did."""
    again = late(report)
    if not again:
        return None
    steps = dict.fromkeys(one.step for one in again)
    where = and_more([f"{step:,}" for step in steps if step is not None], _SHOWN_STEPS)
    spent = sum(one.seconds or 0.0 for one in again)
    noun = "step" if len(steps) == 1 else "steps"
    return f"compiled again at {noun} {where}: {count(len(again), 'frame')}, {seconds(spent)}"


def compiled(report: Report) -> str | None:
    """``4 compiles, 0.7 s``; None where no time is known."""
    known = [one.seconds for one in report.compiles if one.seconds is not None]
    return f"{count(len(known), 'compile')}, {seconds(sum(known))}" if known else None
