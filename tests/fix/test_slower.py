"""A rewrite that makes the measured step slower is not applied: another one of the place is, or none.

Nightly: it times Inductor's code on a large tensor, several times over.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from scanning import Scanned, run_cold
from test_fix import latest

pytestmark = [pytest.mark.torch, pytest.mark.nightly]

Scan = Callable[..., Scanned]

# Passes over a large tensor that no compiler can make one of, in a branch that is never taken.
COSTLY = "\n".join(["            y = y - y.sum()"] * 12)
SCRIPT = f"""\
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        y = x * 2
        if x.max() > 50:
{COSTLY}
        return y + 1


torch.manual_seed(0)
net = torch.compile(Net())
x = torch.randn(1024, 1024)
with torch.no_grad():
    for step in range(40):
        net(x)
"""


@pytest.mark.slow
def test_torch_cond_takes_the_place_of_a_where_that_was_measured_slower(scan: Scan) -> None:
    folder = scan(SCRIPT).folder
    done = run_cold("fix", "--all", folder=folder, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    (finding,) = latest(folder).findings
    assert finding.suggestion is not None
    assert finding.suggestion.rule == "branch-to-cond"
    assert finding.suggestion.status == "proved"
    assert finding.suggestion.evidence["inductor"]["verdict"] == "agrees"
    assert any("instead of branch-to-where" in note for note in finding.suggestion.evidence["notes"])
    before, after = finding.suggestion.evidence["inductor"]["compiled_ms"]
    assert after < 1.5 * before
