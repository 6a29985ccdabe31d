"""What entering a region takes: calibrated apart, and scaled to the script's steps by what a glance saw there."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from breakscope.diagnose.gaps import Sampled, Span
from breakscope.diagnose.segments import LEAST, LIKELY, MOST, entry_of
from breakscope.inside.capture.calibrate import calibrate
from breakscope.inside.capture.glance import Glance

pytestmark = pytest.mark.torch

# Sixteen operations take 16 * 5 µs of launches, and 40 µs for each region that they are in.
CALIBRATED = {"forward": {"1": 720_000, "16": 120_000}, "around": {"1": 20_000, "16": 35_000}}


def glance(*regions: tuple[int, int], owner: int | None = 0) -> tuple[Sampled, dict[str, Any]]:
    """A step with regions one after the other: for how long each lasts, and the code inside of its wrappers.

    Args:
        owner: the site before each of them.
    """
    spans, calls, at = [], [], 0
    for slot, (length, code) in enumerate(regions):
        spans.append(Span("region", at, at + length, owner, slot))
        calls.append([at + 1_000, code, 1])
        at += length
    return Sampled(at, spans=spans), {"calls": calls}


def test_an_entry_is_the_fixed_part_of_a_region() -> None:
    entry = entry_of(CALIBRATED)
    assert (entry.forward, entry.launch, entry.backward) == (40_000, 5_000, 0)


def test_an_entry_is_as_much_faster_in_the_steps_as_the_wrappers_are() -> None:
    seen = glance((115_000, 100_000), (70_000, 60_000), (68_000, 60_000))
    entry = entry_of(CALIBRATED, [seen])
    assert (entry.forward, entry.launch) == (20_000, 2_500)


def test_no_entry_is_slower_than_one_with_empty_caches() -> None:
    assert entry_of(CALIBRATED, [glance((130_000, 100_000), (99_000, 60_000))]) == entry_of(CALIBRATED)


def test_entries_that_differ_from_each_other_make_a_range() -> None:
    entry = entry_of(
        CALIBRATED, [glance(*((length, 10_000) for length in (14_000, 16_000, 18_000, 22_000, 26_000)))]
    )
    read = [entry.read_as(reading).forward for reading in (LEAST, LIKELY, MOST)]
    assert read == pytest.approx([12_000, 16_000, 24_000])


def test_inputs_that_a_region_would_have_without_the_break_too_do_not_make_its_entry_dear() -> None:
    """Each of fifteen parameters more takes a microsecond, here as in the calibration."""
    seen = glance((128_000, 100_000))
    assert entry_of(CALIBRATED, [seen], {0: 17}).forward == 0.8 * 40_000
    assert entry_of(CALIBRATED, [seen], {0: None}).forward == 40_000


@pytest.mark.parametrize(
    ("calibrated", "seen"),
    [
        (CALIBRATED, (glance((130_000, 100_000))[0], {"calls": []})),
        ({**CALIBRATED, "around": {"1": None, "16": None}}, glance((130_000, 100_000))),
        ({"forward": CALIBRATED["forward"]}, glance((130_000, 100_000))),  # an older file
        (CALIBRATED, glance((130_000, 100_000), owner=None)),  # a step's first region stays
    ],
)
def test_an_entry_whose_wrappers_were_not_seen_is_as_it_was_calibrated(calibrated: Any, seen: Any) -> None:
    assert entry_of(calibrated, [seen]) == entry_of(CALIBRATED)


def test_a_glance_sees_what_inductor_made_of_a_region_and_how_often_it_launches() -> None:
    """As Inductor tells it: only while a profiler says that it is there."""
    observer, x = Glance(), torch.ones(4, 4)
    assert observer.start()
    if torch.autograd.profiler._is_profiler_enabled:
        with torch._C._profiler._RecordFunctionFast("## Call CompiledFxGraph f123 ##"):
            torch.addmm(x, x, x)
            with torch._C._profiler._RecordFunctionFast("triton_poi_fused_0"):
                pass
    seen = observer.stop()
    assert seen is not None
    [(_, took, launches)] = seen["calls"]
    assert launches == 2
    assert took > 0
    assert [name for *_, name, _ in seen["ops"]] == ["aten::addmm"]
    assert not torch.autograd.profiler._is_profiler_enabled


def test_the_calibration_sees_the_wrappers_around_what_inductor_made_and_around_nothing_else() -> None:
    from torch._inductor.compile_fx import compile_fx

    assert all(calibrate(compile_fx, "cpu", gradients=False)["around"].values())
    assert all(calibrate(compile_fx, "cpu", gradients=True)["around"].values())
    eager = calibrate(lambda graph, _inputs: graph.forward, "cpu", gradients=False)
    assert eager["around"] == {"1": None, "16": None}
