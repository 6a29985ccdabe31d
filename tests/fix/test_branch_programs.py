"""Branch programs that nobody wrote by hand: what is rewritten must equal what was there.

Nightly: 1,000 programs each way; in every run there are 40.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from programs import PRELUDE, differences, entry, load, record, run

from breakscope.fix.patch import Rewrite, apply
from breakscope.fix.rule import Site, locate
from breakscope.fix.rules import propose

pytestmark = pytest.mark.torch

NAMES = ("x", "y", "z")
UNARY = (
    "torch.relu({})", "-{}", "{} * 2", "{} + 1.5", "{}.abs()", "torch.clamp({}, min=-1, max=1)", "torch.tanh({})",
    "torch.exp({})", "torch.log({})", "torch.sqrt({})", "{} / 3", "2 - {}", "{}.half().float()", "{} ** 2",
    "torch.nan_to_num({})", "{}.sum()", "{}[:1]", "{}.half()", "{}.mean(-1, keepdim=True)", "torch.zeros_like({})",
    "{}.masked_fill({} > 0, 0.5)", "torch.sigmoid({})", "1 / {}", "{}.clone()", "{}",
)  # fmt: skip
BINARY = (
    "{} + {}",
    "{} - {}",
    "{} * {}",
    "torch.maximum({}, {})",
    "torch.where({} > 0, {}, 0.25)",
    "{} / {}",
)
TESTS = (
    "{}.sum() > 0", "({} > 0).all()", "torch.isnan({}).any()", "not torch.isfinite({}).all()", "{}.max() > 1",
    "{}.mean() < {}.mean()", "torch.isinf({}).any() or torch.isnan({}).any()", "{}.sum()", "not {}.sum()",
    "{}.min() > -2 and {}.max() < 2", "({}.max() > 0) & ({}.min() < 0)", "0 < {}.mean() < 1", "{}.sum().item() > 0.1",
    "flag and {}.sum() > 0", "{}.sum() > 0 or flag", "float({}.max()) > 1.5", "(not flag) and {}.max() > {}.min()",
)  # fmt: skip


def filled(template: str, names: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*[names] * template.count("{}")).map(lambda some: template.format(*some))


def expression(names: tuple[str, ...] = NAMES) -> st.SearchStrategy[str]:
    name = st.sampled_from(names)
    return st.one_of(
        st.sampled_from(UNARY).flatmap(lambda one: filled(one, name)),
        st.sampled_from(BINARY).flatmap(lambda one: filled(one, name)),
    )


@st.composite
def block(draw: st.DrawFn, depth: int, *, returns: bool) -> list[str]:
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(
            st.sampled_from(["assign"] * 5 + ["in place", "swap", "comment", *(["if"] if depth else [])])
        )
        target = draw(st.sampled_from((*NAMES, "t")))
        if kind == "assign":
            lines.append(f"{target} = {draw(expression())}")
        elif kind == "in place":
            lines.append(
                f"{draw(st.sampled_from(NAMES))} {draw(st.sampled_from(['+=', '*=']))} {draw(st.sampled_from(['1', 'x', '0.5']))}"
            )
        elif kind == "swap":
            lines.append("x, y = y, x")
        elif kind == "comment":
            lines += [
                "# a note",
                f"t = {draw(expression())}  # and another",
                f"z = {draw(expression(('t', 'x')))}",
            ]
        else:
            lines += draw(branch(depth - 1))
    if returns and draw(st.booleans()):
        lines.append(f"return {draw(expression())}")
    return lines


@st.composite
def branch(draw: st.DrawFn, depth: int, *, returns: bool = False) -> list[str]:
    name = st.sampled_from(NAMES)
    test = draw(st.sampled_from(TESTS).flatmap(lambda one: filled(one, name)))
    lines = [f"if {test}:", *("    " + one for one in draw(block(depth, returns=returns)))]
    if draw(st.integers(0, 3)) == 0:
        test = draw(st.sampled_from(TESTS).flatmap(lambda one: filled(one, name)))
        lines += [f"elif {test}:", *("    " + one for one in draw(block(depth, returns=returns)))]
    if draw(st.booleans()):
        lines += ["else:", *("    " + one for one in draw(block(depth, returns=returns)))]
    return lines


@dataclass(frozen=True)
class Program:
    source: str
    flag: bool


@st.composite
def programs(draw: st.DrawFn) -> Program:
    fresh = draw(st.booleans())
    first = ["x = x + 0", "y = y * 1"] if fresh else []
    body = [*first, f"z = {draw(expression(('x', 'y')))}"]
    shape = draw(st.integers(0, 5))
    if shape == 0:
        body += [
            f"z = {draw(expression())} if {draw(st.sampled_from(TESTS).flatmap(lambda one: filled(one, st.sampled_from(NAMES))))} else {draw(expression())}"
        ]
    elif shape == 1:
        body += draw(branch(0, returns=True))
    else:
        body += draw(branch(1))
    if draw(st.booleans()):
        body.append(f"z = z + {draw(st.sampled_from(NAMES))}")
    body.append(draw(st.sampled_from(["return x, y, z", "return z", "return x + y * z", "return z, x"])))
    lines = ["def f(x, y, flag):", *("    " + one for one in body)]
    return Program(PRELUDE + "\n".join(lines) + "\n", draw(st.booleans()))


def inputs() -> list[tuple[str, torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(5)
    base = [torch.randn(2, 3, generator=generator) for _ in range(6)]
    nan, inf = base[0].clone(), base[1].clone()
    nan[0, 1], inf[1, 2] = torch.nan, torch.inf
    return [
        ("drawn", base[0], base[1]), ("drawn 2", base[2] * 3, base[3]), ("above", base[0].abs() + 0.1, base[1].abs() + 0.1),
        ("below", -base[4].abs() - 0.1, -base[5].abs()), ("mixed", base[0].abs(), -base[1].abs()), ("zeros", base[0] * 0, base[1] * 0),
        ("small", base[2].abs() * 0.1, base[3].abs() * 0.1), ("NaN", nan, base[2]), ("inf", inf, base[3]), ("-inf", -inf, nan),
        ("huge", base[0] * 1e30, base[1] * 1e30), ("one", torch.ones(2, 3), torch.ones(2, 3)),
    ]  # fmt: skip


INPUTS = inputs()


def first_site(source: str, calls: tuple[str, ...]) -> Site | None:
    """The first branch of a program, as Dynamo would find it."""
    node = next(one for one in ast.walk(ast.parse(source)) if isinstance(one, ast.If | ast.IfExp))
    evidence = record(source, calls)["f"]
    test = node.test
    assert test.end_col_offset is not None
    return locate(
        source,
        test.lineno,
        test.col_offset + 1,
        test.end_lineno,
        test.end_col_offset + 1,
        "BS101",
        "",
        evidence,
    )


def accepted(program: Program, *, grad: bool) -> tuple[str, Rewrite] | None:
    more = ", requires_grad=True" if grad else ""
    calls = tuple(
        f"torch.randn(2, 3{more}), torch.randn(2, 3{more}), flag={flag}"
        for flag in (program.flag, program.flag)
    )
    try:
        site = first_site(program.source, calls)
    except (
        UnboundLocalError,
        TypeError,
        NameError,
        IndexError,
        RuntimeError,
    ):  # a program that its own author would not run
        return None
    assert site is not None
    _, answer = propose(site)
    return (apply(program.source, answer.edits), answer) if isinstance(answer, Rewrite) else None


def check(program: Program, *, grad: bool) -> bool:
    """Whether a rewrite was accepted; fails if it computes anything else."""
    found = accepted(program, grad=grad)
    if found is None:
        return False
    source, answer = found
    old, new = entry(load(program.source)), entry(load(source))
    double = not any("dtype" in one for one in answer.assumes)
    for label, x, y in INPUTS:
        with torch.set_grad_enabled(grad):
            different = differences(
                run(old, (x, y, program.flag), {}, grad=grad, double=double),
                run(new, (x, y, program.flag), {}, grad=grad, double=double),
                messages=False,
            )
        # With consent gradients may differ, and that is said.
        if different and grad and answer.consent:
            with torch.no_grad():
                different = differences(
                    run(old, (x, y, program.flag), {}), run(new, (x, y, program.flag), {}), messages=False
                )
        assert not different, f"{label}: {different}\n{program.source}\n-->\n{source}\n{answer}"
    return True


@pytest.mark.parametrize("grad", [False, True])
@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(program=programs())
def test_rewritten_programs_compute_the_same(program: Program, *, grad: bool) -> None:
    check(program, grad=grad)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("grad", [False, True])
def test_many_rewritten_programs_compute_the_same(*, grad: bool) -> None:
    counts = {"asked": 0, "accepted": 0}

    @settings(max_examples=1000, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(program=programs())
    def all_of_them(program: Program) -> None:
        counts["asked"] += 1
        counts["accepted"] += check(program, grad=grad)

    all_of_them()
    assert counts["asked"] >= 1000
    assert counts["accepted"] >= 150, counts
