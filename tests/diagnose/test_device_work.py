"""For how long the device works on a region: read off steps in which it was held until its work was given."""

from __future__ import annotations

import pytest

from breakscope.diagnose.gaps import Sampled, Span
from breakscope.diagnose.segments import sort_out


def step(region_us: float) -> Sampled:
    """A step of one region, between whose two events so long passes."""
    end = round(region_us * 1e3)
    return Sampled(200_000, spans=[Span("region", 0, 100_000, slot=3, device=(0, end))], on_device=True)


@pytest.mark.parametrize(
    ("held_us", "expected_us"),
    [
        ((24, 26), 25),
        ((137, 24), 24),  # held too short: it waited for the host once more
        ((25, 24, 90, 26), 25),
        ((300, 280), 140),  # it never was held long enough: it was no slower without
        ((), 140),
    ],
)
def test_a_step_that_was_not_held_long_enough_says_nothing(
    held_us: tuple[float, ...], expected_us: float
) -> None:
    [alike] = sort_out([step(130), step(140), step(150)], [step(us) for us in held_us], [])
    assert alike.device == [expected_us * 1e3]
