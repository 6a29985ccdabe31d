"""What a report says of the run as a whole, from the events of its process."""

from __future__ import annotations

import pytest

from breakscope.diagnose.build import build
from breakscope.diagnose.outcome import Outcome

OUTCOME = Outcome("a.py", (), "/work", "ok", 0, "2026-01-01T00:00:00+00:00", 1.0, "eager", None, ())


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (["cpu"], "cpu"),
        (["cpu", "cuda"], "cuda"),
        (["cuda", "cpu"], "cuda"),  # a mask that is made on the host is compiled last
        (["meta", "cuda", "cpu"], "cuda"),
        ([], None),
    ],
)
def test_the_device_is_what_the_work_is_on(seen: list[str], said: str | None) -> None:
    events = [
        {"t": "device", "at": 0.0, "step": 0, "call": 0, "type": k, "name": k, "count": 1} for k in seen
    ]
    device = build(events, None, OUTCOME).run.device
    assert (device.type if device else None) == said
