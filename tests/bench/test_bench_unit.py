"""Steps of scripts that do more than to train, their outputs and their crossings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from report_samples import CLEAN

from breakscope.bench.run import _crossings
from breakscope.inside.bench.outputs import Kept, compare
from breakscope.report.model import Step

pytestmark = pytest.mark.torch


def test_of_a_step_of_hundreds_of_calls_the_first_are_compared(tmp_path: Path) -> None:
    folders = [tmp_path / "eager", tmp_path / "compiled"]
    for folder, last in zip(folders, (1.0, 2.0), strict=True):
        folder.mkdir()
        kept = Kept(folder)
        for _ in range(300):
            kept.keep(torch.ones(2), step=0)
        kept.keep(torch.full((2,), last), step=1)
    assert len(list(folders[0].iterdir())) == 17
    found = compare(*folders)
    assert (found["status"], found["why"]) == ("different", "call 300, result: differs by 1 of its norm")


def test_outputs_that_do_not_fit_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("breakscope.inside.bench.outputs._MOST_BYTES", 100)
    kept = Kept(tmp_path)
    for size in (20, 20, 2):  # of 4 bytes each
        kept.keep(torch.ones(size), step=0)
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["000000.pt", "000002.pt"]


@pytest.mark.parametrize(
    ("counted", "calls", "expected"),
    [
        ((40, 1, 1, 1), 1, 1.0),  # an evaluation before the first step
        ((1, 0, 1, 0, 1, 0), 2, 1.0),  # an encoder that breaks, a head that does not
        ((9, 9, 9, 1, 2, 3, 4), 3, 9.0),
        ((2, 3), 3, 7.5),  # less than a step: an estimate
        ((5,), 1, 5.0),
    ],
)
def test_crossings_are_those_of_a_step(counted: tuple[int, ...], calls: int, expected: float) -> None:
    steps = tuple(Step(index, None, None, None, 0, number) for index, number in enumerate(counted))
    totals = replace(CLEAN.totals, steps=len(counted), crossings=sum(counted))
    assert _crossings(replace(CLEAN, steps=steps, totals=totals), calls) == expected


NET = """
import torch
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
"""


@pytest.mark.slow
def test_a_script_that_evaluates_first_is_measured_in_training_steps(bench: Callable[..., Any]) -> None:
    script = (
        NET
        + """
with torch.no_grad():
    for _ in range(20):
        net(torch.randn(32, 64))
for _ in range(100):
    net(torch.randn(32, 64)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
    )
    done = bench(script, "--backend", "aot_eager", "--processes", "1", "--steps", "20")
    assert done.exit_code == 0, done.stderr
    assert done.benchmark.unit == "a whole step of the script, from one optimizer step to the next"
    assert not any("left out of a step" in note for note in done.benchmark.notes)
    assert all(arm.step is not None and arm.calls is not None for arm in done.benchmark.arms)
    assert done.arm("compiled").outputs.tensors == 17  # 16 of the evaluation, and the one of the second step


@pytest.mark.nightly
def test_a_compiled_training_step_is_a_step(bench: Callable[..., Any]) -> None:
    script = (
        NET
        + """
@torch.compile
def train_step(x):
    loss = net(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss

for _ in range(30):
    train_step(torch.randn(32, 64))
"""
    )
    done = bench(script, "--backend", "aot_eager", "--processes", "1", "--steps", "20")
    assert done.exit_code == 0, done.stderr
    assert done.benchmark.unit == "an outermost compiled call"
    assert "the optimizer steps inside of the calls, so a step is a call" in done.benchmark.notes
    eager, compiled = done.benchmark.arms
    assert eager.step is not None
    assert compiled.step is not None
    assert compiled.outputs.status == "same"
