"""What a report says of a steady step: the terminal's header and the page's caption."""

from __future__ import annotations

from dataclasses import replace

import pytest
from report_samples import COSTS

from breakscope.render import FORMATS, Options
from breakscope.render.html.steps import steps_view
from breakscope.report.model import Report, Step, Timing


def timed(guard_us: float | None, busy_ms: float | None = None) -> Report:
    timing = Timing("measured gaps, 6 steps, backend eager", 6, step_ms=1.0, spread_ms=0.1)
    return replace(
        COSTS,
        steps=(Step(0, at_s=0.0, ms=1.0, compile_ms=0.0, compiles=0),),
        timing=replace(timing, guard_us=guard_us, device_busy_ms=busy_ms),
    )


@pytest.mark.parametrize(("guard_us", "said"), [(None, False), (99.0, False), (100.0, True)])
def test_guards_are_in_the_header_where_they_are_no_small_part(guard_us: float | None, said: bool) -> None:
    text = FORMATS["terminal"](timed(guard_us), Options())
    assert ("guards 0.10 ms a step" in text) == said


def test_the_page_says_what_guards_and_device_take() -> None:
    caption = steps_view(timed(42.0, 0.5)).caption
    assert "Guards, before the first compiled code, take 0.0420 ms of it." in caption
    assert "The device works for 0.50 ms of it." in caption
    assert "Guards" not in steps_view(timed(None)).caption
