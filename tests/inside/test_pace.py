"""Where the steps of a script with several optimizers end."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from scanning import Scanned

from breakscope.inside.capture.pace import Pace

pytestmark = pytest.mark.torch


def optimizer(net: torch.nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(net.parameters(), lr=0.1)


def test_the_busiest_of_several_optimizers_sets_the_pace() -> None:
    critic, actor = optimizer(torch.nn.Linear(2, 2)), optimizer(torch.nn.Linear(2, 2))
    pace = Pace()
    ended = [pace.stepped(one) for _ in range(3) for one in (critic, critic, actor)]
    assert (pace.steps, sum(ended)) == (6, 6)
    assert ended[2::3] == [False, False, False]


def test_one_that_takes_anothers_place_goes_on_with_its_count() -> None:
    net = torch.nn.Linear(2, 2)
    pace = Pace()
    for _ in range(3):
        pace.stepped(first := optimizer(net))
        pace.stepped(first)
        del first  # which is gone when the next one steps
    assert pace.steps == 6


def test_one_of_another_model_goes_on_where_the_others_are_over() -> None:
    first, second = optimizer(torch.nn.Linear(2, 2)), optimizer(torch.nn.Linear(2, 2))
    pace = Pace()
    assert [pace.stepped(first) for _ in range(3)] == [True] * 3
    assert [pace.stepped(second) for _ in range(3)] == [False, True, True]  # the first one may go on as well
    del first, second
    third = optimizer(torch.nn.Linear(2, 2))
    assert [pace.stepped(third) for _ in range(2)] == [True] * 2
    assert pace.steps == 7


def test_steps_of_two_in_turn_are_those_of_the_busier_one() -> None:
    one, other = optimizer(torch.nn.Linear(2, 2)), optimizer(torch.nn.Linear(2, 2))
    pace = Pace()
    for _ in range(4):
        for each in (one, one, one, other, other):
            pace.stepped(each)
    assert pace.steps == 12


def test_the_steps_of_a_second_phase_are_steps(scan: Callable[..., Scanned]) -> None:
    scanned = scan("""
        import torch
        net = torch.nn.Linear(4, 4)
        opt = torch.optim.Adam(net.parameters(), 1e-3)
        for step in range(20):
            opt.zero_grad()
            net(torch.randn(3, 4)).sum().backward()
            opt.step()
            if step == 4:
                opt = torch.optim.Adam(net.parameters(), 1e-4)
    """)
    assert scanned.report.totals.steps == 20
