"""What a step of a script is: the guess at its first call, and what the script shows it to be.

Nightly: an optimizer that calls a closure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from scanning import Scanned

from breakscope.inside.capture import step_unit
from breakscope.inside.capture.step_unit import StepUnit

pytestmark = pytest.mark.torch


@pytest.fixture
def optimizer(monkeypatch: pytest.MonkeyPatch) -> torch.optim.Optimizer:
    """The only one of this process, of a network whose first weight is frozen."""
    net = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(20)))
    net[0].requires_grad_(False)
    made = torch.optim.SGD(net.parameters(), lr=0.1)
    monkeypatch.setattr(step_unit.gc, "get_objects", lambda: [made, made.param_groups])
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
    monkeypatch.setattr(step_unit.gc, "get_objects", list)
    found = guessed()
    call(found)
    assert (found.kind, found.open) == ("call", True)
    found.settle()
    assert not found.stepped()  # steps are being timed: too late
    assert found.kind == "call"


def test_an_optimizer_that_was_made_after_the_first_call_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_unit.gc, "get_objects", list)
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


def test_a_fused_optimizer_counts_no_writes_and_is_seen(optimizer: torch.optim.Optimizer) -> None:
    weights = optimizer.param_groups[0]["params"]
    fused = torch.optim.AdamW(weights, fused=True)
    found = guessed()
    before = [weight._version for weight in weights]
    call(found, lambda: step(fused))
    assert [weight._version for weight in weights] == before
    assert (found.kind, found.open) == ("call", False)


def test_a_script_that_never_trains_has_calls(optimizer: torch.optim.Optimizer) -> None:
    found = guessed()
    call(found)
    found.ended()
    assert (found.kind, found.why) == ("call", "the script made no optimizer step, so a step is a call")


def test_a_validation_has_an_end(optimizer: torch.optim.Optimizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_unit, "_MOST_CALLS", 3)
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


NET = """
import torch
net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 8))
optimizer = torch.optim.{optimizer}(net.parameters(), lr=0.1)
"""
EVALUATION = """
with torch.no_grad():
    for _ in range(20):
        net(torch.randn(2, 8))
"""
TRAINING = """
for _ in range(9):
    net(torch.randn(2, 8)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
CLOSURE = """
def closure():
    optimizer.zero_grad()
    loss = net(torch.ones(2, 8)).square().mean()
    loss.backward()
    calls.append(loss)
    return loss

calls = []
for done in range(9):
    optimizer.step(closure)
"""


@pytest.mark.parametrize(
    ("optimizer", "body"),
    [
        pytest.param("SGD", EVALUATION + TRAINING, id="evaluation"),
        pytest.param("LBFGS", CLOSURE, id="closure", marks=pytest.mark.nightly),
    ],
)
def test_a_scan_of_some_steps_goes_on_to_the_training(
    optimizer: str, body: str, scan: Callable[..., Scanned]
) -> None:
    scanned = scan(NET.format(optimizer=optimizer) + body, "--steps", "3")
    assert scanned.exit_code == 0, scanned.stderr
    report = scanned.report
    assert report.totals.steps == 3
    assert "stopped after 3 steps, as asked by --steps" in report.run.notes
    assert sum(step.launches or 0 for step in report.steps) > 3  # a call launches one graph


def test_a_scan_of_some_steps_of_a_compiled_training_step(scan: Callable[..., Scanned]) -> None:
    scanned = scan(
        NET.format(optimizer="SGD")
        + """
@torch.compile
def train_step(x):
    net(x).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()

for _ in range(9):
    train_step(torch.randn(2, 8))
""",
        "--steps",
        "3",
    )
    assert scanned.exit_code == 0, scanned.stderr
    assert scanned.report.totals.steps == 3
