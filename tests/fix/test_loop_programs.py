"""Loops that nobody wrote by hand, left early: where the exit is masked, the result must be the same.

Nightly: 800 programs each way; in every run there are 40.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from programs import PRELUDE
from test_branch_programs import NAMES, TESTS, Program, check, expression, filled

pytestmark = pytest.mark.torch

TARGETS = (*NAMES, "t", "u")


@st.composite
def statements(draw: st.DrawFn, most: int, *, in_place: bool) -> list[str]:
    lines: list[str] = []
    for _ in range(draw(st.integers(0, most))):
        kind = draw(
            st.sampled_from(["assign"] * 5 + ["temporary", "counted", "swap"] + ["in place"] * in_place)
        )
        if kind == "assign":
            lines.append(f"{draw(st.sampled_from(TARGETS))} = {draw(expression())}")
        elif kind == "temporary":
            lines.append(f"t = {draw(expression())}")
            lines.append(f"{draw(st.sampled_from(NAMES))} = {draw(expression(('t', 'x')))}")
        elif kind == "counted":
            lines.append(f"{draw(st.sampled_from(NAMES))} = {draw(st.sampled_from(NAMES))} * 0.5 + i")
        elif kind == "swap":
            lines.append("x, y = y, x")
        else:
            lines.append(f"{draw(st.sampled_from(NAMES))} += 1")
    return lines


@st.composite
def exits(draw: st.DrawFn, *, in_place: bool) -> list[str]:
    test = draw(st.sampled_from(TESTS).flatmap(lambda one: filled(one, st.sampled_from(NAMES))))
    body = draw(statements(2, in_place=in_place)) if draw(st.booleans()) else []
    last = draw(st.sampled_from(["break"] * 5 + ["pass"]))
    return [f"if {test}:", *("    " + one for one in [*body, last])]


@st.composite
def loops(draw: st.DrawFn, *, in_place: bool) -> Program:
    """A program with a loop. In place, a second iteration may overwrite what the backward pass needs."""
    first = ["x = x + 0", "y = y * 1"] if draw(st.booleans()) else []
    before = [*first, f"z = {draw(expression(('x', 'y')))}", *draw(st.sampled_from([[], ["t = x * 0"]]))]
    some, leaving = statements(2, in_place=in_place), exits(in_place=in_place)
    body = [*draw(some), *draw(leaving), *draw(some)]
    if draw(st.integers(0, 2)) == 0:
        body += draw(leaving)
    header = draw(
        st.sampled_from(["range(3)", "range(1, 4)", "range(4, 0, -1)", "range(0)", "range(len(x))"])
    )
    ends = ["return x, y, z", "return z", "return x + y * z", "return z, x", "return z, t", "return z * i"]
    after = [f"z = z + {draw(st.sampled_from(NAMES))}"] if draw(st.booleans()) else []
    lines = [*before, f"for i in {header}:", *("    " + one for one in body), *after]
    lines.append(draw(st.sampled_from(ends)))
    return Program(
        PRELUDE + "\n".join(["def f(x, y, flag):", *("    " + one for one in lines)]) + "\n",
        draw(st.booleans()),
    )


def compared(number: int, *, grad: bool) -> tuple[int, int]:
    """How many programs were made, and how many of them rewritten; fails if a rewrite is wrong."""
    counts = [0, 0]

    @settings(max_examples=number, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(program=loops(in_place=not grad))
    def all_of_them(program: Program) -> None:
        counts[0] += 1
        counts[1] += check(program, grad=grad)

    all_of_them()
    return counts[0], counts[1]


@pytest.mark.parametrize("grad", [False, True])
def test_masked_loops_compute_the_same(*, grad: bool) -> None:
    compared(40, grad=grad)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("grad", [False, True])
def test_many_masked_loops_compute_the_same(*, grad: bool) -> None:
    asked, accepted = compared(800, grad=grad)
    assert asked >= 800
    assert accepted >= 200
