"""Runs that are begun before they are known to be wanted: the last word is the same, without times of steps."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from scanning import Scanned, run_cold
from test_fix import latest

pytestmark = pytest.mark.torch

SCRIPT = """\
import torch


def f(x):
    if x.max() > 50:
        x = x / 2
    return torch.softmax(x, -1)


compiled = torch.compile(f)
for step in range(20):
    compiled(torch.randn(64, 64) * (1 + 40 * (step % 3 == 2)))
"""


@pytest.mark.slow
def test_inductor_compiles_both_forms_while_the_proof_is_made(scan: Callable[..., Scanned]) -> None:
    folder = scan(SCRIPT).folder
    done = run_cold("fix", "--jobs", "4", folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    (finding,) = latest(folder).findings
    assert finding.suggestion is not None
    assert finding.suggestion.status == "proved"
    inductor = finding.suggestion.evidence["inductor"]
    assert inductor["verdict"] == "agrees"
    # Beside a proof and two other runs they were not timed.
    assert inductor.keys().isdisjoint({"step_ms", "compiled_ms"})
