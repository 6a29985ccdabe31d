"""What a scan says of a compile that is under way, of one that did not end, and of loops that it unrolled."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from breakscope.inside import events
from breakscope.run.progress import Progress

pytestmark = pytest.mark.torch

UNROLLED = """
import torch

class Cell(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(4, 4)

    def forward(self, x, h):
        z = torch.sigmoid(self.a(x) + h)
        return torch.tanh(z * h + (1 - z) * x)

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = Cell()

    def forward(self, x):
        h = torch.zeros_like(x[0])
        for step in x:
            h = self.cell(step, h)
        return h

torch.compile(Net())(torch.randn(ROUNDS, 2, 4))
"""


def test_a_loop_over_time_is_named_with_its_rounds(scan: Callable[..., Any]) -> None:
    report = scan(UNROLLED.replace("ROUNDS", "200")).report
    [finding] = report.findings
    assert (finding.code, finding.location.source) == ("BS401", "for step in x:")
    assert finding.reason.startswith("`for step in x` was unrolled 200 times: 1,")
    [short] = [scan(UNROLLED.replace("ROUNDS", "20")).report]
    assert short.findings == ()


def test_a_short_loop_in_what_is_called_often_is_not_the_one_that_was_unrolled(
    scan: Callable[..., Any],
) -> None:
    """Three turns for each of 200 calls: the loop around the calls has 200."""
    report = scan("""
    import torch

    def widen(x, rank):
        while len(x.shape) < rank:
            x = x[..., None]
        return x

    @torch.compile
    def f(x):
        total = x.sum()
        for step in range(200):
            total = total + widen(x * step, 4).sum()
        return total

    f(torch.ones(3))
    """).report
    [finding] = report.findings
    assert (finding.code, finding.location.source) == ("BS401", "for step in range(200):")
    assert "was unrolled 200 times" in finding.reason


def test_a_compile_that_is_cut_off_is_in_the_report_and_the_run_is_not_called_vacuous(
    scan: Callable[..., Any],
) -> None:
    endless = """
    import torch

    @torch.compile
    def f(x):
        while True:
            x = torch.sin(x)

    f(torch.ones(3))
    """
    done = scan(endless, "--timeout", "12")
    report = done.report
    assert not report.reconciliation.vacuous
    [finding] = report.findings
    assert (finding.code, finding.location.source) == ("BS401", "while True:")
    assert "which was still compiled after" in finding.reason
    assert "VACUOUS" not in done.text


def test_the_live_line_names_what_is_being_compiled(tmp_path: Path) -> None:
    events.Counters.create(tmp_path / "counters")

    def say(**fields: object) -> str:
        frame = {"file": "net.py", "name": "forward", "qualname": "Net.forward", "line": 3}
        event = {"t": "compiling", "number": 1, "frame": frame, "lines": [], **fields}
        with (tmp_path / "events").open("a") as file:
            file.write(json.dumps(event, separators=(",", ":")) + "\n")
        return progress.line()

    progress = Progress(tmp_path, 0.0)
    assert say(phase="dynamo", ops=1_245, seconds=31.0).endswith("; tracing Net.forward: 1,245 ops, 31 s")
    assert say(phase="backend", ops=2_000, seconds=40.2).endswith("; compiling Net.forward: 2,000 ops, 40 s")
    assert say(phase="done", ops=2_000, seconds=50.0).endswith(" steps")
