"""Layer drop: with layers that draw nothing themselves, a rewritten skip gives the very same numbers."""

from __future__ import annotations

import pytest
import torch
from programs import answers, arguments, copy_of, entry, examples_of, load, rewritten, source_of

from breakscope.fix.patch import Rewrite
from breakscope.fix.rule import Example
from breakscope.fix.rules.random_skip import RandomSkip

pytestmark = pytest.mark.torch

EXAMPLES, _ = examples_of(RandomSkip())


def outcome(source: str, call: str, seed: int, *, train: bool) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Result and gradients (none is zero), and the state of the generator afterwards."""
    net = entry(load(source))
    assert isinstance(net, torch.nn.Module)
    net.train(train)
    args, kwargs = copy_of(arguments(call), grad=True, double=False)
    torch.manual_seed(seed)
    result = net(*args, **kwargs)
    state = torch.random.get_rng_state()
    leaves = [*args, *net.parameters()]
    grads = torch.autograd.grad(result.square().sum(), leaves, allow_unused=True)
    found = [
        torch.zeros_like(leaf) if grad is None else grad for leaf, grad in zip(leaves, grads, strict=True)
    ]
    return [result, *found], state


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
@pytest.mark.parametrize("train", [True, False], ids=["train", "eval"])
def test_the_same_layers_are_dropped(example: Example, train: bool) -> None:
    answer = answers(RandomSkip(), example)[0]
    assert isinstance(answer, Rewrite)
    before, after = source_of(example.before), rewritten(example, answer)
    for seed in range(12):
        old, old_state = outcome(before, example.calls[0], seed, train=train)
        new, new_state = outcome(after, example.calls[0], seed, train=train)
        assert all(map(torch.equal, old, new)), seed
        assert torch.equal(old_state, new_state)


def test_what_is_skipped_may_write_into_its_argument() -> None:
    before = """
class f(nn.Module):
    def forward(self, x):
        x = x * 1
        for _ in range(3):
            if torch.rand([]) < 0.5:
                continue
            x = x.add_(1)
        return x
"""
    example = Example(before, "", calls=("torch.zeros(3)",) * 3)
    answer = answers(RandomSkip(), example)[0]
    assert isinstance(answer, Rewrite)
    for seed in range(12):
        results = []
        for source in (source_of(before), rewritten(example, answer)):
            torch.manual_seed(seed)
            results.append(entry(load(source))(torch.zeros(3)))
        assert torch.equal(*results)
