"""What is run under Inductor: the script without the patches only where that can tell something."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from scanning import Scanned
from test_fix import latest
from warm_scanning import run_command

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


def under_inductor(scanned: Scanned) -> Mapping[str, Any]:
    """What the proved rewrite of the script's one branch says of Inductor."""
    done = run_command("fix", "--select", "BS1", "--jobs", "2", folder=scanned.folder, torch=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (finding,) = (one for one in latest(scanned.folder).findings if one.kind == "graph_break")
    assert finding.suggestion is not None
    assert finding.suggestion.status == "proved"
    inductor: Mapping[str, Any] = finding.suggestion.evidence["inductor"]
    assert inductor["verdict"] == "agrees"
    return inductor


def test_where_no_step_can_be_timed_the_patched_script_alone_is_held_against_eager(scan: Scan) -> None:
    inductor = under_inductor(scan(SCRIPT.format(steps=3)))
    assert "before" not in inductor
    assert inductor["after"] < 1e-3
    assert inductor["calls"] == 3
    assert inductor["why"].endswith("it was not run without the patches, because no step could be timed")


def test_later_recompiles_run_as_traced_and_random_numbers_are_drawn_as_in_eager_code(scan: Scan) -> None:
    """The number given is another one each time: a form each, of which Inductor gets two."""
    inductor = under_inductor(scan(MANY_FORMS))
    assert inductor["calls"] == 5
    assert inductor["after"] < 1e-3
    assert inductor["as_traced"] == 3
    assert "Inductor was not given 3 graphs of later recompiles" in inductor["why"]


def test_steps_that_the_scan_was_not_to_time_are_timed_side_by_side(scan: Scan) -> None:
    inductor = under_inductor(scan(SCRIPT.format(steps=30), "--no-cost"))
    before, after = inductor["step_ms"]
    assert before > 0
    assert after > 0
    assert "not run without" not in inductor["why"]
