"""Scripts that make too few steps, and arms that breakscope itself must not break."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from breakscope.bench import scout

pytestmark = pytest.mark.torch

TEN_STEPS = """
import torch
net = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
net = torch.compile(net, backend="aot_eager")
for _ in range(10):
    net(torch.randn(4, 8)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""

POOL = """
from concurrent.futures import ThreadPoolExecutor
import torch

pool = ThreadPoolExecutor(2)

@torch.compiler.disable
def prepared(x):
    return pool.submit(lambda: x * 2).result()

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x):
        return self.linear(prepared(x))

net = torch.compile(Net(), backend="aot_eager")
with torch.no_grad():
    for _ in range(6):
        net(torch.randn(4, 8))
"""

INSIDE_OF_A_COMPILED_MODULE = """
import torch

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def mix(self, x):
        return self.linear(x).relu()

    def forward(self, x):
        return self.mix(x) + x

net = torch.compile(torch.nn.Sequential(Block(), Block()), backend="aot_eager")
with torch.no_grad():
    for _ in range(6):
        net(torch.randn(4, 8))
"""


def test_the_plan_counts_the_steps_of_warm_up_and_rounds() -> None:
    wanted = scout.plan(12, rounds=10, steps=5, settle=2)
    assert (wanted.least, wanted.whole) == (12 + 7, 12 + 70)
    # One timed step a round: five rounds for five samples.
    assert scout.plan(12, rounds=10, steps=1, settle=2).least == 12 + 15


@pytest.mark.slow
def test_too_few_steps_are_said_before_anything_is_compiled_with_how_many_are_needed(
    bench: Callable[..., Any],
) -> None:
    done = bench(TEN_STEPS)
    assert done.exit_code == 3
    assert done.stderr.startswith(
        "breakscope: the script makes 10 optimizer steps, and 19 are needed: 12 until compiled steps are "
        "steady, 7 for a first verdict (82 for all rounds)"
    )
    assert not (done.folder / ".breakscope" / "bench.json").exists()


@pytest.mark.slow
def test_a_script_of_as_many_steps_as_are_needed_is_measured(bench: Callable[..., Any]) -> None:
    done = bench(TEN_STEPS.replace("range(10)", "range(19)"), "--processes", "1")
    assert done.exit_code == 0, done.stderr
    assert [arm.step.samples >= 3 for arm in done.benchmark.arms] == [True, True]


@pytest.mark.slow
def test_the_calls_of_a_short_script_are_repeated_where_that_is_asked_for(bench: Callable[..., Any]) -> None:
    done = bench(TEN_STEPS, "--repeat", "--processes", "1", "--steps", "20")
    assert done.exit_code == 0, done.stderr
    assert done.benchmark.unit == "an outermost compiled call"
    assert [arm.step.samples >= 10 for arm in done.benchmark.arms] == [True, True]
    [note] = [note for note in done.benchmark.notes if "--repeat" in note]
    assert note.startswith("the script makes only 10 optimizer steps: its compiled calls are measured")


@pytest.mark.slow
def test_calls_made_again_after_the_script_may_use_its_thread_pool(bench: Callable[..., Any]) -> None:
    done = bench(POOL, "--processes", "1", "--steps", "20")
    assert done.exit_code == 0, done.stderr
    assert [(arm.name, arm.status) for arm in done.benchmark.arms] == [("eager", "ok"), ("compiled", "ok")]


@pytest.mark.slow
def test_a_method_that_a_compiled_module_calls_is_measured_alone(bench: Callable[..., Any]) -> None:
    done = bench(
        INSIDE_OF_A_COMPILED_MODULE,
        *("--function", "script.py:Block.mix", "--backend", "aot_eager", "--processes", "1", "--steps", "20"),
    )
    assert done.exit_code == 0, done.stderr
    assert [(arm.name, arm.status) for arm in done.benchmark.arms] == [("eager", "ok"), ("compiled", "ok")]
    assert done.arm("compiled").outputs.status == "same"
    assert done.arm("compiled").processes[0].compiles == 1
