"""What a reader sees of two calls: the part of each result in which they differ."""

from __future__ import annotations

import math
from typing import Any

import pytest

pytestmark = pytest.mark.torch


def lines(result: Any, other: Any, **more: Any) -> list[str]:
    from breakscope.inside.prove.attempt import Outcome
    from breakscope.inside.prove.picture import take
    from breakscope.inside.prove.showing import shown

    mine, its = (Outcome(take([("result", value)], {}), None, "", [], **more) for value in (result, other))
    return shown(mine, its)


def test_shows_a_tensor_from_the_first_number_that_differs() -> None:
    import torch

    old, new = torch.arange(40.0).reshape(5, 8), torch.arange(40.0).reshape(5, 8).clamp(max=17.0)
    rest = "stride=(8, 1), requires_grad=False"
    assert lines(old, new) == [
        f"result = float32[5, 8] from [2, 2]: [18, 19, 20, 21, 22, 23, 24, 25, ...], {rest}"
    ]
    assert lines(new, old) == [
        f"result = float32[5, 8] from [2, 2]: [17, 17, 17, 17, 17, 17, 17, 17, ...], {rest}"
    ]


def test_shows_a_tensor_from_its_beginning_where_that_differs_or_nothing_does() -> None:
    import torch

    old = torch.arange(10)
    rest = "stride=(1,), requires_grad=False"
    begins = f"result = int64[10] [0, 1, 2, 3, 4, 5, 6, 7, ...], {rest}"
    assert lines(old, old.clone()) == lines(old, old + (old == 5)) == lines(old, old[:4]) == [begins]
    assert lines(old, old.int()) == [begins]


def test_nan_is_held_to_be_the_same_as_nan() -> None:
    import torch

    old = torch.full((30,), math.nan)
    new = old.clone()
    new[20] = 1.0
    assert lines(new, old)[0].startswith("result = float32[30] from [20]: [1, nan, nan, ")


def test_a_result_that_differs_is_shown_though_many_come_before_it() -> None:
    import torch

    old = [torch.tensor(float(number)) for number in range(9)]
    new = [*old[:8], torch.tensor(-1.0)]
    shown = lines(new, old)
    assert len(shown) == 6
    assert shown[-1].startswith("result[8] = float32[] [-1]")


def test_shows_a_gradient_from_the_first_number_that_differs() -> None:
    import torch

    from breakscope.inside.prove.attempt import Outcome
    from breakscope.inside.prove.picture import take
    from breakscope.inside.prove.showing import shown

    ones = torch.ones(12)
    other = ones.clone()
    other[9] = 0.0
    old, new = (Outcome(take([], {}), None, "", [], gradients=[gradient, None]) for gradient in (ones, other))
    assert shown(new, old) == [
        "gradient 1 = float32[12] from [9]: [0, 1, 1]",
        "gradient 2 = None",
    ]
