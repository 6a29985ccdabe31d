"""A script that calls several things in turn has steps of several calls, the same ones in every arm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from breakscope.inside.bench.ambient import Ambient
from breakscope.inside.bench.cycle import Call, Cycle

pytestmark = pytest.mark.torch


def steps(called: str) -> list[str]:
    """The calls, split where a step ends; each letter is a thing that is called."""
    things = {name: (lambda: None) for name in called if name != " "}
    names = {id(function): name for name, function in things.items()}
    cycle, found = Cycle(), []
    for name in called.replace(" ", ""):
        call = Call(things[name], (), {}, Ambient.now())
        if cycle.begins_with(call):
            cycle.begin(call)
            found.append("")
        else:
            cycle.add(call)
        found[-1] += name
        assert "".join(names[one.of()[0]] for one in cycle.last) == found[-1]
    return found


@pytest.mark.parametrize(
    "called",
    [
        "e e e",  # a model
        "eh eh eh",  # an encoder and a head
        "gdd gdd gdd",  # the two nets of a GAN
        "edddd edd eddddd",  # an encoder, and a decoder as often as the text is long
        "abcdef abcdef",  # blocks that are compiled one by one
        "a a a" + "b" * 63 + " b b b",  # one after another
        "e" + "d" * 63 + " d d d d",  # an encoder that is called once
    ],
)
def test_where_a_step_ends(called: str) -> None:
    assert steps(called) == called.split()


def test_a_step_of_one_call_needs_no_names() -> None:
    cycle, net = Cycle(), torch.nn.Linear(2, 2)
    for _ in range(2):
        call = Call(torch.nn.Module._call_impl, (net, torch.ones(2)), {}, Ambient.now())
        assert cycle.begins_with(call)
        cycle.begin(call)
    assert cycle.names() == []
    other = Call(torch.nn.Module._call_impl, (torch.nn.ReLU(), torch.ones(2)), {}, Ambient.now())
    assert not cycle.begins_with(other)
    cycle.add(other)
    assert cycle.names() == ["Linear", "ReLU"]


@pytest.mark.nightly
def test_an_encoder_and_a_head_are_one_step(bench: Callable[..., Any]) -> None:
    script = """
import torch
torch.manual_seed(0)
encoder = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64))
head = torch.nn.Linear(64, 4)
count = 0
with torch.no_grad():
    for _ in range(15):
        hidden = encoder(torch.randn(3, 8, 64))
        count += int((head(hidden[:, 0]).argmax(-1) == 0).sum())
"""
    done = bench(script, "--backend", "aot_eager", "--processes", "1", "--steps", "20")
    assert done.exit_code == 0, done.stderr
    told = " ".join(done.benchmark.notes)
    assert "left out of a step: all that the script does between two compiled calls" in told
    assert "a step is 2 calls: Sequential, Linear" in told
    assert done.benchmark.unit == "the outermost compiled calls of a step"
    assert "repeat one of its warm-up, on copies of its inputs" in told
    eager, compiled = done.benchmark.arms
    assert compiled.graphs == 2
    assert compiled.processes[0].late_compiles == 0  # the slice is a slice again
    assert eager.step is not None
    # What met a shared CPU counts in no figure, but was made.
    assert eager.step.samples + sum(eager.discarded.values()) >= 20


@pytest.mark.slow
def test_a_call_that_grows_its_cache_is_made_again_with_the_cache_it_had(bench: Callable[..., Any]) -> None:
    script = """
import torch

class Cache:
    def __init__(self):
        self.layers = [{"keys": torch.zeros(4, 8)}]

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(8, 8)

    def forward(self, x, mask, cache):
        layer = cache.layers[0]
        layer["keys"] = torch.cat([layer["keys"], self.fc(x)])
        return layer["keys"] * mask[:, None]

net = Net()
with torch.no_grad():
    for _ in range(15):
        net(torch.randn(2, 8), torch.ones(6), Cache())
"""
    done = bench(script, "--backend", "aot_eager", "--processes", "1", "--steps", "20")
    assert done.exit_code == 0, done.stderr
    assert [(arm.status, arm.step is not None) for arm in done.benchmark.arms] == [("ok", True)] * 2
    assert done.benchmark.arms[1].processes[0].late_compiles == 0
    assert "repeat one of its warm-up" in " ".join(done.benchmark.notes)
