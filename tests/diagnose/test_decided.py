"""What torch decided about a size or a number is said as it was: which line needed it, which asked for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from warm_scanning import WarmScans, coded

import breakscope
from breakscope.diagnose import decided
from breakscope.report.model import Finding, Guard, Report

pytestmark = pytest.mark.torch

HELPER = """
def deep(x):
    return deeper(x * 2)

def deeper(y):
    parts = []
    for at in range(0, y.shape[0], 2):
        parts.append(y[at])
    return parts
"""
SCRIPT = """
    import torch
    from helper import deep

    @torch.compile(backend="eager")
    def fills(x):
        y = x @ x.T
        return y.fill_diagonal_(0)

    @torch.compile(backend="eager")
    def called(x):
        return deep(x)

    @torch.compile(backend="eager")
    def never(n, by=None):
        if by is None:
            return torch.randn(n * 3, 4)
        return [torch.randn(by) for _ in range(n // by)]

    pool = torch.nn.MaxPool1d(2)

    @torch.compile(backend="eager")
    def pooled(x):
        return pool(x.T[None])

    @torch.compile(backend="eager")
    def cut(x):
        if x.shape[0] > 40:
            x = x[:40]
        return x * 2

    @torch.compile(backend="eager")
    def own(x):
        if x.shape[0] == 8:
            return x * 2
        return x * 3

    @torch.compile(backend="eager")
    def square(x):
        return x.fill_diagonal_(0.0).sum()

    for size in (8, 12, 14):
        square(torch.ones(size, size))
        x = torch.randn(size, 4)
        for f in (fills, called, pooled, cut, own):
            f(x)
        never(size)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("decided")
    (folder / "helper.py").write_text(HELPER)
    return folder


@pytest.fixture(scope="module")
def report(warm: WarmScans, folder: Path) -> Report:
    return warm.scan(folder, textwrap.dedent(SCRIPT))


def advice_on(report: Report, function: str, code: str = "BS201") -> str:
    found: list[Finding] = [one for one in coded(report, code) if one.location.function == function]
    assert len(found) == 1
    return str(found[0].advice)


def test_the_line_is_named_that_needs_a_size_as_a_number(report: Report) -> None:
    """``fill_diagonal_`` takes one, which no source tells; nor is it told of what is called deep inside."""
    assert (
        "(an operation (line 8: y.fill_diagonal_)), so each size (8, 12, 14 were seen) is compiled"
        in advice_on(report, "fills")
    )
    assert "(a loop (line 7 of helper.py)), so each size" in advice_on(report, "called")


def test_torchs_own_function_that_needs_it_is_named(report: Report) -> None:
    assert "an operation (line 24: forward of torch's pooling.py)" in advice_on(report, "pooled")


def test_a_size_that_an_operation_asks_for_with_each_value_is_a_number(report: Report) -> None:
    """Torch asks in C++ whether dimension 1 is 12, then whether it is 14: no branch has so many sides.

    Dimension 0 keeps any size, and changes with it.
    """
    first, second = (one for one in coded(report, "BS201") if one.location.function == "square")
    assert (
        {first.guard.dimension, second.guard.dimension} == {0, 1} if first.guard and second.guard else False
    )
    said = " ".join(str(one.advice) for one in (first, second))
    assert "so each size (8, 12 were seen) is compiled, and dynamic=True does not help" in said
    assert "maybe_mark_dynamic" not in said


def test_a_loop_that_did_not_run_makes_no_constant_of_a_number(report: Report) -> None:
    said = advice_on(report, "never", "BS207")
    assert said.startswith("One compile for a second value is normal: torch treats n as symbolic")
    assert "unrolled" not in said


def test_what_the_code_asks_is_told_in_its_own_words(report: Report) -> None:
    said = advice_on(report, "cut")
    assert "maybe_mark_dynamic(x, 0)" in said
    assert "a branch (line 28: x.size(0) <= 40) asks for the size, and each side is compiled apart" in said


def test_no_mark_is_advised_where_the_first_two_sizes_are_on_two_sides(report: Report) -> None:
    said = advice_on(report, "own")
    assert "maybe_mark_dynamic" not in said
    assert "A branch (line 34: x.size(0) != 8) asks for dimension 0 of x" in said
    assert "the answer is another one for 8 than for 12: a graph for each side is normal" in said


def test_what_is_said_is_what_torch_does(folder: Path) -> None:
    """Followed: marked, ``cut`` is compiled once, and ``own`` once for 8 and once for the others."""
    marked = SCRIPT.replace(
        "x = torch.randn(size, 4)\n",
        "x = torch.randn(size, 4)\n        torch._dynamo.maybe_mark_dynamic(x, 0)\n",
    )
    counts = """
    from torch._dynamo.utils import compilation_time_metrics, get_compilation_metrics
    import collections, json
    print(json.dumps(collections.Counter(one.co_name for one in get_compilation_metrics())))
    """
    (folder / "marked.py").write_text(textwrap.dedent(marked) + textwrap.dedent(counts))
    done = subprocess.run(
        [sys.executable, "marked.py"], cwd=folder, capture_output=True, text=True, check=True
    )
    made = json.loads(done.stdout)
    assert made["cut"] == 1
    assert made["own"] == 2
    assert made["fills"] == made["called"] == made["pooled"] == 3
    assert made["never"] == 2


def test_a_trace_tells_the_same(folder: Path) -> None:
    (folder / "job.py").write_text(textwrap.dedent(SCRIPT))
    traced = {**os.environ, "TORCH_TRACE": str(folder / "trace")}
    subprocess.run([sys.executable, "job.py"], cwd=folder, env=traced, check=True)
    command = [sys.executable, "-m", "breakscope", "import", "trace", "-o", "trace.json", "-q"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    report = breakscope.load(folder / "trace.json")
    assert "the answer is another one for 8 than for 12" in advice_on(report, "own")
    said = advice_on(report, "called")
    assert said.startswith(
        "The code makes a Python number of dimension 0 of x (a loop (line 7 of helper.py))"
    )


def test_an_answer_that_is_the_same_for_all_sizes_is_no_question() -> None:
    asked = [
        ("3*s7 >= 0", False),
        ("Ne(3*s7, 0)", False),
        ("Ne(s7//2, 1)", True),
        ("s7 <= 40", True),
        ("Eq(Mod(s7, 4), 0)", True),
        ("Ne(s7, s8)", True),
        ("unknown(s7)", True),
    ]
    for expression, matters in asked:
        events = [
            {"t": "symbolic", "sources": ["L['x'].size()[0]"], "symbol": "s7"},
            {"t": "symbolic", "sources": ["L['y'].size()[0]"], "symbol": "s8"},
            {"t": "asked", "expression": expression, "stack": [("/job/net.py", 3, "f")]},
        ]
        found = decided.decided(
            {"0/1": events}, ["0/1"], Guard("", "x", "8", "16", "size", 0, ("8", "16")), "f"
        )
        assert found.is_any
        assert bool(found.asked) is matters, expression
