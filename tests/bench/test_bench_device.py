"""``--device`` counts among the GPUs that are visible, for the steps as for the ceilings."""

from __future__ import annotations

from typing import Any

import pytest

from breakscope.bench import ceilings, gpu_state
from breakscope.report.benchmark import GpuState


@pytest.mark.parametrize(
    ("visible", "device", "expected"),
    [("", "cuda", "0"), ("", "cuda:2", "2"), ("3,1", "cuda:1", "1"), ("5", "cuda:0", "5"), ("5", "cpu", "")],
)
def test_what_is_left_visible(
    visible: str, device: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert gpu_state.visible(device) == expected


def test_ceilings_are_those_of_the_same_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def run(_command: list[str], environment: dict[str, str]) -> dict[str, Any]:
        asked.append(environment["CUDA_VISIBLE_DEVICES"])
        raise OSError("there is no such GPU here")

    monkeypatch.setattr(ceilings, "_run", run)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    found, note = ceilings.ceilings("cuda", "cuda:1", None)
    assert (found, note) == ((), "the device's ceilings could not be measured: there is no such GPU here")
    assert asked == ["1"]


def test_a_card_at_its_power_cap_is_slower_still_for_a_script_without_pauses() -> None:
    state = GpuState(
        at_s=1.0,
        sm_mhz=1605.0,
        max_sm_mhz=1980.0,
        memory_mhz=2619.0,
        temperature_c=51.0,
        power_w=571.0,
        throttle="power cap",
        other_processes=0,
    )
    assert gpu_state.noise([state]) == [
        "the card was throttled: power cap",
        "a script that makes no pauses, as turns do, meets its power cap at a lower clock still",
    ]
