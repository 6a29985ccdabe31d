"""A check that is told as an assert says the same of every value, nan among them."""

from __future__ import annotations

import ast
import math

import pytest
import torch

from breakscope.diagnose import checks

pytestmark = pytest.mark.torch
VALUES = (-3.0, -0.5, 0.0, 0.5, 7.0, math.nan, math.inf)


def asserted(source: str) -> str:
    """What is told of the only check in a source."""
    module = ast.parse(source)
    check = module.body[0]
    assert isinstance(check, ast.If | ast.Assert)
    return checks.asserted([module, check, check.test])


@pytest.mark.parametrize(
    "test",
    [
        "x.min() < 0",
        "x.min().item() < 0",
        "not x.min() >= 0",
        "not (x >= 0).all()",
        "x.min() < 0 or x.max() > 5",
        "not 0 <= x.min() < 5",
        "0 <= float(x.min()) < 5",
        "torch.isnan(x).any()",
        "math.isnan(x.sum())",
        "not torch.isfinite(x).all() or x.sum() == 0",
        "not torch.isfinite(x).all() or bool(x.sum() == 0)",
        "bool(x.sum() == 0)",
    ],
)
def test_an_assert_fails_where_the_check_raises(test: str) -> None:
    told = asserted(f"if {test}:\n    raise ValueError").removesuffix(", '…'")
    assert told
    for value in VALUES:
        names = {"x": torch.tensor([value, 1.0]), "torch": torch, "math": math}
        holds = eval(told, names)
        assert isinstance(holds, torch.Tensor), told  # which is what Dynamo traces an assert on
        assert bool(holds) == (not eval(test, names)), (told, value)


def test_names_of_bools_are_asserted_as_what_they_stand_for() -> None:
    source = (
        "class A:\n  def __init__(self, strict=False):\n    self.strict = strict\n"
        "  def f(self, x):\n    low = not self.strict and x.min() > 0\n    high = self.strict and (x < 9).all()\n"
        "    if not low and not high:\n        raise ValueError('out of range')"
    )
    owner = ast.parse(source).body[0]
    assert isinstance(owner, ast.ClassDef)
    function = owner.body[-1]
    assert isinstance(function, ast.FunctionDef)
    assert checks.asserted([owner, function, function.body[-1]]) == "low | high, 'out of range'"


@pytest.mark.parametrize("test", ["0 <= x.min() < 5", "not x.max() > 5 and x.min().item() > -1"])
def test_an_assert_of_ones_own_keeps_what_it_asks_for(test: str) -> None:
    told = asserted(f"assert {test}, x").removesuffix(", '…'")
    for value in VALUES:
        names = {"x": torch.tensor([value, 1.0])}
        assert bool(eval(told, names)) == bool(eval(test, names)), (told, value)


@pytest.mark.parametrize(
    "source",
    [
        "if any(t.isnan().any() for t in xs):\n    raise ValueError",
        "if not all(t.min() > 0 for t in xs):\n    raise ValueError",
        "if x.tolist() == [1]:\n    raise ValueError",
        "if check(x):\n    raise ValueError",
        "if x.min() < 0 and check(x):\n    raise ValueError",
        "if x in seen:\n    raise ValueError",
    ],
)
def test_what_is_no_question_to_tensors_is_not_told_as_one(source: str) -> None:
    """``~any(…)`` of Python's own bool is -2, which is true."""
    assert asserted(source) == ""


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("if x.min() < 0:\n    raise ValueError('below')", "~(x.min() < 0), 'below'"),
        ("assert x.min() >= 0, 'below'", "x.min() >= 0, 'below'"),
        ("if x.min() < 0:\n    raise ValueError(f'{x.min()} is below')", "~(x.min() < 0), '…'"),
        ("if x.min() < 0:\n    raise ValueError", "~(x.min() < 0)"),
        ("assert not torch.isnan(x).any()", "~torch.isnan(x).any()"),
        ("if x.min() < 0:\n    raise ValueError(f'{x}')", "~(x.min() < 0), '…'"),
    ],
)
def test_a_text_that_is_constant_is_kept(source: str, told: str) -> None:
    assert asserted(source) == told
