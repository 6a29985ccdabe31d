"""What a step is where nobody said: the same in every arm, and what the script shows it to be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from breakscope.bench import unit
from breakscope.bench.outputs import Kept, compare
from breakscope.bench.unit import StepUnit


@pytest.fixture
def optimizer(monkeypatch: pytest.MonkeyPatch) -> torch.optim.Optimizer:
    """The only one of this process, of a network whose first weight is frozen."""
    net = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(20)))
    net[0].requires_grad_(False)
    made = torch.optim.SGD(net.parameters(), lr=0.1)
    monkeypatch.setattr(unit.gc, "get_objects", lambda: [made, made.param_groups])
    return made


def step(optimizer: torch.optim.Optimizer) -> None:
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    for weight in weights:
        weight.grad = torch.ones_like(weight) if weight.requires_grad else None
    optimizer.step()


def guessed() -> StepUnit:
    made = StepUnit("auto")
    made.guess()
    return made


def call(found: StepUnit, inside: Callable[[], object] = lambda: None) -> None:
    found.calling()
    inside()
    found.called()


def test_without_an_optimizer_a_step_is_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit.gc, "get_objects", list)
    found = guessed()
    call(found)
    assert (found.kind, found.open) == ("call", True)
    found.settle()
    assert not found.stepped()  # steps are being timed: too late
    assert found.kind == "call"


def test_an_optimizer_that_was_made_after_the_first_call_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit.gc, "get_objects", list)
    found = guessed()
    call(found)
    assert found.stepped()
    assert (found.kind, found.open, found.why) == ("optimizer", False, None)


def test_a_validation_before_the_training_changes_nothing(optimizer: torch.optim.Optimizer) -> None:
    found = guessed()
    for _ in range(30):
        call(found)
    assert (found.kind, found.open) == ("optimizer", True)
    step(optimizer)
    assert found.stepped()
    found.ended()
    assert (found.kind, found.open, found.why) == ("optimizer", False, None)


def test_weights_that_change_between_calls_say_nothing(optimizer: torch.optim.Optimizer) -> None:
    found = guessed()
    call(found)
    step(optimizer)  # as a checkpoint that is loaded
    call(found)
    assert (found.kind, found.open) == ("optimizer", True)


def test_an_optimizer_that_steps_inside_of_a_call_makes_it_a_step(optimizer: torch.optim.Optimizer) -> None:
    found = guessed()
    call(found)  # at a learning rate of 0, say
    call(found, lambda: step(optimizer))
    assert (found.kind, found.open) == ("call", False)
    assert found.why == "the optimizer steps inside of the calls, so a step is a call"


def test_a_script_that_never_trains_has_calls(optimizer: torch.optim.Optimizer) -> None:
    found = guessed()
    call(found)
    found.ended()
    assert (found.kind, found.why) == ("call", "the script made no optimizer step, so a step is a call")


def test_a_validation_has_an_end(optimizer: torch.optim.Optimizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit, "_MOST_CALLS", 3)
    found = guessed()
    for _ in range(2):
        call(found)
    assert found.open
    call(found)
    assert (found.kind, found.why) == (
        "call",
        "no optimizer step came in the first 3 calls, so a step is a call",
    )


@pytest.mark.parametrize("asked", ["call", "optimizer"])
def test_what_was_asked_for_stands(asked: Any, optimizer: torch.optim.Optimizer) -> None:
    found = StepUnit(asked)
    found.guess()
    assert found.stepped() == (asked == "optimizer")
    found.ended()
    assert (found.kind, found.why) == (asked, None)


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
    monkeypatch.setattr("breakscope.bench.outputs._MOST_BYTES", 100)
    kept = Kept(tmp_path)
    for size in (20, 20, 2):  # of 4 bytes each
        kept.keep(torch.ones(size), step=0)
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["000000.pt", "000002.pt"]


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
    assert all(arm.step is not None and arm.calls is not None for arm in done.benchmark.arms)
    assert done.arm("compiled").outputs.tensors == 17  # 16 of the evaluation, and the one of the second step


@pytest.mark.slow
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
