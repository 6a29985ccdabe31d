"""The rule ``numpy-operator``: numpy draws the same numbers in compiled code, in the same order, and as often."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from programs import answers, load, rewritten
from proving import proof

from breakscope.fix.judge import judge
from breakscope.fix.patch import Rewrite
from breakscope.fix.rule import Example
from breakscope.fix.rules.numpy_operator import NumpyOperator
from breakscope.inside.prove.claims import Claims

pytestmark = pytest.mark.torch

DRAWS = """\
import numpy as np
import torch


def hidden(shape, share):
    rows, length = shape
    mask = np.zeros((rows, length), dtype=bool)
    mask[np.random.rand(rows, length) < share] = True
    return mask


def f(x):
    first = torch.from_numpy(hidden((x.shape[0], x.shape[1]), 0.5))
    hidden((x.shape[0], x.shape[1]), 0.5)
    return x * first + 2 * x * torch.from_numpy(hidden((x.shape[0], x.shape[1]), 0.5))
"""


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_calls_that_are_alike_or_unused_draw_as_often_as_before(backend: str) -> None:
    example = Example(DRAWS, calls=("torch.randn(2, 4)",), site="np.random.rand(rows, length)", code="BS127")
    [answer] = answers(NumpyOperator(), example)
    assert isinstance(answer, Rewrite)
    old, new = load(DRAWS)["f"], load(rewritten(example, answer))["f"]
    torch._dynamo.reset()
    compiled = torch.compile(new, backend=backend, fullgraph=True)
    for length in (4, 6, 5):
        x = torch.randn(2, length)
        results, states = [], []
        for form in (old, compiled):
            np.random.seed(length)
            results.append(form(x))
            states.append(np.random.rand())
        assert torch.equal(*results)
        assert states[0] == states[1]


def test_it_is_proved_in_compiled_code(tmp_path: Path) -> None:
    example = Example(DRAWS, calls=("torch.randn(2, 4)",), site="np.random.rand(rows, length)", code="BS127")
    [answer] = answers(NumpyOperator(), example)
    assert isinstance(answer, Rewrite)
    calls = ("torch.randn(2, 4)", "torch.randn(3, 5)")
    run = proof(DRAWS, rewritten(example, answer), calls, tmp_path, compiled_only=True, budget=10)
    found = judge(run, Claims(exact=True, compiled_only=True))
    assert found.status == "proved", found.why
    assert (found.evidence.kinds or {})["compiled by Dynamo"] > 0
