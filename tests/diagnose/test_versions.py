"""What decides that code is compiled again: a loop over parts, a range that is a list, a number that is passed."""

from __future__ import annotations

import textwrap

import pytest
from warm_scanning import WarmScans, coded

from breakscope.report.model import Finding, Report

pytestmark = pytest.mark.torch

SCRIPT = """
    import torch
    from torch import nn

    @torch.compile(backend="eager")
    def parts(x):
        y = x[:, 0]
        for part in x.split(1, dim=1):
            y = y + part[:, 0]
        return y

    @torch.compile(backend="eager")
    def placed(x, at):
        return x.index_fill(1, at[:1], 0.0)[range(x.shape[0]), at]

    class Net(nn.Module):
        def forward(self, x):
            return x * 2

    net = Net()

    @torch.compile(backend="eager")
    def chunk(model, source, start):
        data = source[start : start + 4]
        print(end="")
        return model(data)

    @torch.compile(backend="eager")
    def first(x, i):
        x = x * 2
        if i == 0:
            x = x + 1
        return x

    @torch.compile(backend="eager")
    def every(x, step):
        if step % 2 == 0:
            x = x + step
        return x * 2

    @torch.compile(backend="eager")
    def picked(x, where):
        return x[where].sum() * 2

    def act(x, **options):
        return x * options.get("scale", 1)

    act = torch.compile(act, backend="eager")

    class Model(nn.Module):
        def __init__(self, classes):
            super().__init__()
            self.classes = classes

    @torch.compile(backend="eager")
    def predict(model, x):
        return x * 2 if model.classes > 1 else x * 3

    class Box:
        def __init__(self, size):
            self.x = torch.ones(size, 3)

    def layer(h):
        h = h * 2
        print(end="")
        return h + 1

    def head(y):
        y = y * 3
        print(end="")
        return y.sum()

    @torch.compile(backend="eager")
    def boxed(box):
        y = box.x * 1
        print(end="")
        return head(layer(y))

    class Kept(nn.Module):
        def forward(self, x):
            self.seen.append(x.sum())
            return x * 2

    kept = Kept()
    kept.seen = []
    keeps = torch.compile(kept, backend="eager")

    for size in (10, 8, 6):
        parts(torch.ones(2, size))
    for size in (4, 5, 6):
        placed(torch.ones(size, 7), torch.arange(size))
    for start in (0, 4, 8):
        chunk(net, torch.ones(10, 3), start)
    for i in (0, 1):
        first(torch.ones(3), i)
    for step in range(5):
        every(torch.ones(3), step)
    picked(torch.ones(4), torch.tensor([0, 2]))
    picked(torch.ones(4), torch.tensor([True, False, True, False]))
    act(torch.ones(3))
    act(torch.ones(3), scale=2)
    predict(Model(1), torch.ones(3))
    predict(Model(2), torch.ones(3))
    for size in (4, 2):
        boxed(Box(size))
    for _ in range(4):
        keeps(torch.ones(3))
"""


@pytest.fixture(scope="module")
def report(warm: WarmScans, tmp_path_factory: pytest.TempPathFactory) -> Report:
    return warm.scan(tmp_path_factory.mktemp("versions"), textwrap.dedent(SCRIPT))


def of(report: Report, function: str, code: str) -> list[Finding]:
    return [one for one in coded(report, code) if one.location.function == function]


def test_a_loop_over_the_parts_of_a_tensor_has_a_version_for_each_size(report: Report) -> None:
    (found,) = of(report, "parts", "BS201")
    assert "(a loop (line 8)), so each size (10, 8, 6 were seen) is compiled" in str(found.advice)
    assert found.counts.occurrences == 2


def test_a_range_that_indexes_is_a_list_of_pythons(report: Report) -> None:
    (found,) = of(report, "placed", "BS201")
    assert "(range (line 14)), so each size" in str(found.advice)
    assert "write torch.arange(…, device=x.device) in place of the range" in str(found.advice)
    assert found.counts.occurrences == 2


def test_a_size_may_be_made_of_a_number_that_is_passed(report: Report) -> None:
    """The last slice is shorter."""
    told = [str(one.advice) for one in of(report, "chunk", "BS201") + of(report, "Net.forward", "BS201")]
    assert any("from a number that is passed (start), from" in advice for advice in told)


def test_a_branch_that_asks_for_a_number_is_named_at_its_second_value(report: Report) -> None:
    (found,) = of(report, "first", "BS207")
    assert str(found.advice).startswith(
        "A branch (line 31: i != 0) asks for i, and each side of a branch is compiled"
    )


def test_a_bool_saves_nothing_beside_a_number_that_is_read_elsewhere(report: Report) -> None:
    (found,) = of(report, "every", "BS207")
    assert "all that reads it (line 38) has to go to the caller with it" in str(found.advice)


def test_a_mask_is_not_converted_to_whole_numbers(report: Report) -> None:
    (found,) = of(report, "picked", "BS203")
    assert "make positions of the mask before the call, where.nonzero().squeeze(1)" in str(found.advice)


def test_arguments_by_name_are_a_way_to_call_and_no_state(report: Report) -> None:
    told = [str(one.advice) for one in of(report, "act", "BS211")]
    assert len(told) == 1
    assert told[0].startswith("Calls pass other arguments by name (without 'scale', with 'scale' in options)")


def test_two_models_with_a_constant_each_are_normal(report: Report) -> None:
    told = [str(one.advice) for one in of(report, "predict", "BS209")]
    assert any("normal for two, as where two models run this code" in advice for advice in told)


def test_functions_that_one_size_goes_through_are_one_cause(report: Report) -> None:
    """No argument of the call tells of it."""
    sizes = of(report, "layer", "BS201") + of(report, "head", "BS201")
    assert {one.guard.source for one in sizes if one.guard} >= {"h", "y"}
    assert sum(one.caused_by is None for one in sizes) <= 1


def test_what_an_object_keeps_of_each_call_is_returned(report: Report) -> None:
    (found,) = of(report, "Kept.forward", "BS211")
    assert "return that and append in the caller" in str(found.advice)
