"""Which kernels could be one if two graphs were one."""

from __future__ import annotations

import pytest

from breakscope.inside.bench.attribution import Done
from breakscope.inside.bench.records import _cuts
from breakscope.inside.bench.trace import Launch

pytestmark = pytest.mark.torch


def done(graph: int, backward: bool | None, kind: str = "triton") -> Done:
    return Done(kind, "one", print, ((), {}), graph=graph, backward=backward)  # type: ignore[arg-type]


def launch(marker: int | None, category: str = "kernel") -> Launch:
    return Launch(f"k{marker}", category, begin=0.0, us=1.0, marker=marker)


@pytest.mark.parametrize(
    ("one", "other", "cut"),
    [
        (done(1, False), done(2, False), True),
        (done(2, True), done(3, True), True),  # a break in the forward cuts the backward too
        (done(1, False), done(2, True), False),  # a backward is no part of its forward
        (done(1, None), done(2, None), False),  # this torch does not say which they are
        (done(1, False), done(1, False), False),  # one graph
        (done(1, False, "op"), done(2, False), False),  # a product would not have been fused
        (done(1, False), done(2, False, "op"), False),
    ],
)
def test_only_generated_kernels_of_two_graphs_of_one_direction(one: Done, other: Done, cut: bool) -> None:
    assert _cuts([launch(0), launch(1)], [one, other]) == ({1: "k0"} if cut else {})


def test_copies_between_are_no_matter_and_other_kernels_are() -> None:
    both = [done(1, False), done(2, False)]
    assert _cuts([launch(0), launch(None, "gpu_memcpy"), launch(1)], both) == {1: "k0"}
    assert _cuts([launch(0), launch(None), launch(1)], both) == {}
