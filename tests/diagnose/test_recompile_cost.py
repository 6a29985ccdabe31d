"""What recompiles cost, and breaks and recompiles on one scale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from report_samples import COSTS
from scanning import Scanned

from breakscope.report.model import Compiling, Cost, Finding
from breakscope.report.ranking import over
from breakscope.view import gain

BREAK = next(finding for finding in COSTS.findings if finding.cost is not None)


def a_break(ms: float, steps: int, of_steps: int) -> Finding:
    return replace(BREAK, fingerprint="break", cost=Cost(ms, 0.1, "replayed", steps=steps, of_steps=of_steps))


def recompiles(seconds: float, guards_ms: float) -> Finding:
    compiling = Compiling(seconds, versions=3, guards_ms_per_step=guards_ms)
    return replace(BREAK, fingerprint="recompiles", kind="recompile", cost=None, compiling=compiling)


@pytest.mark.parametrize(
    ("steps", "first", "taken_ms"),
    [
        (100, "recompiles", {"break": 100.0, "recompiles": 2001.0}),
        (10_000, "break", {"break": 10_000.0, "recompiles": 2100.0}),
    ],
)
def test_breaks_and_recompiles_are_ranked_by_what_they_take_in_so_many_steps(
    steps: int, first: str, taken_ms: dict[str, float]
) -> None:
    # The break takes 2 ms in every second step; the recompiles 2 s once and 0.01 ms in every step.
    report = over(replace(COSTS, findings=(a_break(2.0, 50, 100), recompiles(2.0, 0.01))), steps)
    assert report.findings[0].fingerprint == first
    assert {one.fingerprint: one.horizon_ms for one in report.findings} == pytest.approx(taken_ms)


def test_words_for_what_recompiles_took() -> None:
    said = gain.compiling(recompiles(2.0, 0.01))
    assert said == "3 more versions, 2.0 s of compile time; their guards add at most 0.0100 ms to a step"
    assert gain.compiling(a_break(1.0, 1, 1)) == ""


SIZES = """
    import torch

    @torch.compile(dynamic=False)
    def f(x):
        return x.cos() + 1

    for step in range(30):
        f(torch.ones(3 + step if step < 3 else 3))
"""


@pytest.mark.torch
def test_a_scan_tells_what_recompiles_took(scan: Callable[..., Scanned]) -> None:
    scanned = scan(SIZES, quiet=False)
    [finding] = [one for one in scanned.report.findings if one.kind == "recompile"]
    assert finding.compiling is not None
    assert finding.compiling.versions == 2
    took = sum(one.seconds or 0.0 for one in scanned.report.compiles if one.finding == finding.fingerprint)
    assert finding.compiling.seconds == pytest.approx(took, abs=1e-5)
    assert finding.compiling.guards_ms_per_step is not None
    assert "2 more versions" in scanned.text
