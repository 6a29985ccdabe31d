"""``scan --profile``: what lies inside of the gaps. Real scans, and a GPU's trace written by hand.

Nightly: further reasons why the profiler could not look.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from scanning import Scanned

from breakscope.diagnose.collect import RegionEvent
from breakscope.diagnose.gaps import CALL, ENTER, LEAVE, RETURN, TICK
from breakscope.diagnose.inside import look
from breakscope.inside.capture.window import compact

pytestmark = pytest.mark.torch

SCRIPT = """
    import time
    import torch
    from torch import nn

    @torch.compiler.disable
    def small(h):
        total = h.new_zeros(())
        for row in h:
            total = total + row.mean()
        return total

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 8)

        def forward(self, x):
            y = self.layer(x).relu()
            time.sleep(0.05)
            return y.cos() + small(y)

    net = torch.compile(Net())
    {before}
    with torch.no_grad():
        for step in range({steps}):
            net(torch.randn(20, 8))
    {after}
"""


def script(steps: int, before: str = "", after: str = "") -> str:
    return SCRIPT.format(steps=steps, before=before, after=after)


def test_the_gap_divides_into_operations_and_python(scan: Callable[..., Scanned]) -> None:
    scanned = scan(script(20), "--profile", quiet=False)
    report = scanned.report
    sleep, disabled = (
        next(one for one in report.findings if text in (one.location.source or ""))
        for text in ("time.sleep", "small(y)")
    )
    assert sleep.cost is not None
    assert disabled.cost is not None
    nap, ops = sleep.cost.inside, disabled.cost.inside
    assert nap is not None
    assert ops is not None
    assert nap.method == "profiler window, 5 steps, scaled to the measured gap"
    assert (nap.eager_ms, nap.waiting_ms, nap.launches, nap.ops) == (0, 0, 0, {})
    assert nap.python_ms == pytest.approx(sleep.cost.parts["gap"])
    assert nap.python_ms > 45  # of a nap of 50 ms: what is measured beside it is taken off
    assert (ops.ops["aten::mean"], ops.ops["aten::add"]) == (20, 20)
    assert ops.eager_ms > 0
    whole = ops.eager_ms + ops.python_ms + ops.waiting_ms
    assert whole == pytest.approx(disabled.cost.parts["gap"], abs=1e-5)
    assert "steps 9 to 14 ran under torch's profiler (--profile), which makes them slower" in report.run.notes
    assert report.timing is not None
    assert report.timing.device_busy_ms is None
    # The samples are those of a scan without it: none of them ran under the profiler.
    assert report.timing.steps == 6
    text = " ".join(scanned.text.split())
    assert "ms in eager operations (aten::mean x20" in text or "ms in eager operations (aten::add x20" in text


OWN = """profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
    profiler.start()"""


@pytest.mark.parametrize(
    ("source", "why"),
    [
        pytest.param(
            script(6), "the script ended before the first samples were taken", marks=pytest.mark.nightly
        ),
        pytest.param(
            script(10), "the script ended before the profiler had seen two steps", marks=pytest.mark.nightly
        ),
        (script(20, OWN, "profiler.stop()"), "torch's profiler did not start: one is running already"),
    ],
)
def test_where_the_profiler_cannot_look_it_says_why(
    scan: Callable[..., Scanned], source: str, why: str
) -> None:
    scanned = scan(source.replace("0.05", "0"), "--profile")
    assert scanned.exit_code == 0
    [note] = [one for one in scanned.report.run.notes if "--profile" in one]
    assert note.startswith(f"--profile: not measured: {why}")
    assert all(one.cost is None or one.cost.inside is None for one in scanned.report.findings)


def test_calls_before_the_first_optimizer_step_do_not_use_it_up(scan: Callable[..., Scanned]) -> None:
    training = """optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(20):
        net(torch.randn(20, 8)).sum().backward()
        optimizer.step()"""
    report = scan(script(20, after=training).replace("0.05", "0"), "--profile").report
    assert report.totals.steps == 20
    [note] = [one for one in report.run.notes if "--profile" in one]
    assert note.endswith("ran under torch's profiler (--profile), which makes them slower")
    assert any(one.cost is not None and one.cost.inside is not None for one in report.findings)


def test_it_needs_the_costs(scan: Callable[..., Scanned]) -> None:
    scanned = scan(script(3), "--profile", "--no-cost")
    assert scanned.exit_code == 2
    assert "--profile divides what --cost measures; leave out --no-cost" in scanned.stderr


A, C, SITE = 10, 11, 20
REGIONS = {A: RegionEvent("0/0", A, 3, True, SITE, None), C: RegionEvent("1/0", C, 3, False, None, None)}


def span(category: str, name: str, at: float, took: float, thread: int = 1) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "ts": at, "dur": took, "tid": thread}


def a_step(at: float) -> list[dict[str, Any]]:
    """A region, a break that reads a value, a region. Microseconds on the profiler's clock."""
    return [
        span("user_annotation", "breakscope region", at + 20, 30),
        span("gpu_user_annotation", "breakscope region", at + 25, 70, thread=99),
        span("cpu_op", "aten::mm", at + 22, 10),
        span("cuda_runtime", "cudaLaunchKernel", at + 24, 5),
        span("kernel", "gemm", at + 30, 60, thread=99),
        # The gap: 50 to 150.
        span("cpu_op", "aten::item", at + 60, 40),
        span("cpu_op", "aten::_local_scalar_dense", at + 61, 38),
        span("cuda_runtime", "cudaMemcpyAsync", at + 62, 4),
        span("gpu_memcpy", "Memcpy DtoH", at + 90, 2, thread=99),
        span("cuda_runtime", "cudaStreamSynchronize", at + 66, 30),
        span("cpu_op", "aten::add", at + 110, 10),
        span("cuda_runtime", "cudaLaunchKernel", at + 112, 5),
        span("kernel", "add", at + 118, 3, thread=99),
        span("user_annotation", "breakscope region", at + 150, 20),
        # Another thread's, a data loader's.
        span("cpu_op", "aten::stack", at + 55, 90, thread=2),
    ]


def marks() -> list[list[int]]:
    """The same step by our clock, which is 1,000 us behind, and whose gap took 100 us."""
    of_step = (
        (CALL, 0, 0),
        (TICK, SITE, 10),
        (ENTER, A, 20),
        (LEAVE, A, 50),
        (ENTER, C, 150),
        (LEAVE, C, 170),
    )
    return [[kind, slot, at * 1000, 0] for kind, slot, at in (*of_step, (RETURN, 0, 180))]


def event(number: int = 3) -> dict[str, Any]:
    trace = [{"ph": "M", "name": "process_name"}]
    for index in range(number):
        trace += a_step(1000 + 200 * index)
    steps = [{"of": 9 + i, "at": 200_000 * i, "ns": 200_000, "marks": marks()} for i in range(number)]
    return {"t": "profile", "steps": steps, "compiled": False, **compact(trace)}


def test_a_gap_on_a_gpu_divides_into_waits_operations_and_python() -> None:
    seen = look(event(), REGIONS, {SITE: 0}, {0: 0.05})
    # The gap takes half as long where the profiler does not slow it down.
    inside = seen.by_site[0]
    assert (inside.waiting_ms, inside.eager_ms, inside.python_ms) == (0.015, 0.010, 0.025)
    assert (inside.launches, inside.ops) == (1, {"aten::item": 1, "aten::add": 1})
    assert seen.busy_ms == pytest.approx(0.065)
    assert seen.note == "steps 9 to 11 ran under torch's profiler (--profile), which makes them slower"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"compiled": True}, "something was compiled under the profiler"),
        ({"regions": [1.0]}, "the profiler did not see every region"),
        ({"steps": []}, "the script ended before the profiler had seen two steps"),
        ({"why": "no profiler here"}, "no profiler here"),
    ],
)
def test_a_profile_that_does_not_fit_is_not_used(change: dict[str, Any], why: str) -> None:
    seen = look(event() | change, REGIONS, {SITE: 0}, {0: 0.05})
    assert (seen.by_site, seen.busy_ms) == ({}, None)
    assert seen.note == f"--profile: not measured: {why}"


def test_nothing_is_said_where_nothing_was_asked() -> None:
    assert look(None, REGIONS, {SITE: 0}, {0: 0.05}).note is None
