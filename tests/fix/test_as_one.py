"""Rewrites of one rule in one function are proved as the one change that they are; where that fails, each by itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from scanning import Scanned
from test_fix import latest
from warm_scanning import run_command

from breakscope.report.model import Suggestion

pytestmark = pytest.mark.torch

LEGACY = """\
import torch
from torch.autograd import Variable


def f(x):
    a = Variable(x.new_zeros(3))
    b = Variable(x.new_ones(3))
    c = Variable(x.exp())
    return a + b * c


compiled = torch.compile(f)
for _ in range(3):
    compiled(torch.randn(2, 3))
"""
# The gradient of the first branch is infinite at zero, so that torch.where gives nan where the branch is not taken.
HALF_WRONG = """\
import torch


def f(x):
    y = x * 2
    if x.min() > 0:
        y = x.sqrt()
    if x.max() > 2:
        y = y.clamp(-4, 4)
    return y.sum()


compiled = torch.compile(f)
for step in range(8):
    x = (torch.rand(2, 3) + (step % 3 - 1)).requires_grad_()
    compiled(x).backward()
"""


def fixed(folder: Scanned) -> list[Suggestion]:
    """What is said of each finding, in the order of lines."""
    done = run_command("fix", "--no-inductor", "--budget", "6", folder=folder.folder, torch=True, timeout=600)
    found = [one for one in latest(folder.folder).findings if one.kind == "graph_break"]
    said = [one.suggestion for one in sorted(found, key=lambda one: one.location.line)]
    assert all(said), done.stdout + done.stderr
    return [one for one in said if one is not None]


@pytest.mark.slow
def test_three_alike_are_proved_in_one_run(scan: Callable[..., Scanned]) -> None:
    said = fixed(scan(LEGACY))
    assert [(one.rule, one.status) for one in said] == [("legacy-variable", "proved")] * 3
    # One proof, of which each tells the same; and each is a change of its own.
    assert len({one.why for one in said}) == 1
    assert all("proved as one with 2 other rewrites of the function" in one.evidence["notes"] for one in said)
    assert len({one.diff for one in said}) == 3


@pytest.mark.slow
def test_where_one_of_them_is_wrong_the_other_is_proved_by_itself(scan: Callable[..., Scanned]) -> None:
    root, clamp = fixed(scan(HALF_WRONG))
    assert (clamp.rule, clamp.status) == ("branch-to-where", "proved")
    assert not any("as one" in note for note in clamp.evidence.get("notes") or ())
    assert root.rule != "branch-to-where" or root.status != "proved"
