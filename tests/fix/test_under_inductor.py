"""What is run under Inductor: the script without the patches only where that can tell something."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from scanning import Scanned, run_cold
from test_fix import HALF, latest

pytestmark = [pytest.mark.torch, pytest.mark.slow]

Scan = Callable[..., Scanned]

SCRIPT = """\
import torch


def f(x):
    if x.max() > 50:
        x = x / 2
    return torch.softmax(x, -1)


compiled = torch.compile(f)
torch.manual_seed(0)
for step in range({steps}):
    compiled(torch.randn(8 + step // 8, 64))
"""

MANY_FORMS = """\
import torch
from torch import nn


def f(x, name):
    if x.max() > 50:
        x = x / 2
    return nn.functional.dropout(torch.softmax(x * len(name), -1))


compiled = torch.compile(f)
torch.manual_seed(0)
for step in range(5):
    compiled(torch.randn(8, 64), "a" * step)
"""

MESSAGE = """\
import logging

import torch

logger = logging.getLogger("model")


def f(x):
    logger.warning("slow")
    return torch.softmax(x * 2, -1)


compiled = torch.compile(f)
torch.manual_seed(0)
for step in range(4):
    compiled(torch.randn(8 + step, 64))
"""


def under_inductor(scanned: Scanned) -> Mapping[str, Any]:
    """What the accepted rewrite of the script's one break says of Inductor."""
    done = run_cold("fix", "--unsafe", "--select", "BS1", "--jobs", "2", folder=scanned.folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "not forked" not in done.stderr
    (finding,) = (one for one in latest(scanned.folder).findings if one.kind == "graph_break")
    assert finding.suggestion is not None
    assert finding.suggestion.evidence["accepted"]
    inductor: Mapping[str, Any] = finding.suggestion.evidence["inductor"]
    assert inductor["verdict"] == "agrees"
    return inductor


def test_where_no_step_can_be_timed_the_patched_script_alone_is_held_against_eager(scan: Scan) -> None:
    inductor = under_inductor(scan(SCRIPT.format(steps=3)))
    assert "before" not in inductor
    assert inductor["after"] < 1e-3
    assert inductor["calls"] == 3
    assert inductor["why"].endswith("not run without the patches: no step could be timed")


def test_later_recompiles_run_as_traced_and_random_numbers_are_drawn_as_in_eager_code(scan: Scan) -> None:
    """The number given is another one each time: a form each, of which Inductor gets two."""
    inductor = under_inductor(scan(MANY_FORMS))
    assert inductor["calls"] == 5
    assert inductor["after"] < 1e-3
    assert inductor["as_traced"] == 3
    assert "Inductor was not given 3 graphs of later recompiles" in inductor["why"]


def test_half_precision_is_rounded_as_in_eager_code(scan: Scan) -> None:
    """Rounded less often, as fused code is, the results would be far from eager's."""
    inductor = under_inductor(scan(HALF.format(steps=4)))
    assert "before" not in inductor
    assert inductor["after"] < 1e-3


def test_where_messages_alone_are_left_out_inductor_gets_one_form_of_a_frame(scan: Scan) -> None:
    """Two lengths: a form for the first, and one for lengths that vary."""
    inductor = under_inductor(scan(MESSAGE))
    assert inductor["calls"] == 4
    assert inductor["as_traced"] == 1


def test_steps_that_the_scan_was_not_to_time_are_timed_side_by_side(scan: Scan) -> None:
    inductor = under_inductor(scan(SCRIPT.format(steps=30), "--no-cost"))
    before, after = inductor["step_ms"]
    assert before > 0
    assert after > 0
    assert "not run without" not in inductor["why"]
