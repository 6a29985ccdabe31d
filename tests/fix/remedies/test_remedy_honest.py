"""What a trial must not call proved, and what the command does with bad input.

Nightly are further reasons to distrust equal outputs; every run holds gradients.
"""

from __future__ import annotations

import subprocess
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from report_samples import RECOMPILES, SIZE
from scanning import Scanned, run_cold

import breakscope
from breakscope.fix.patch import Patch, Rewrite
from breakscope.fix.remedies.prove import try_remedy
from breakscope.fix.trials import Agreement
from breakscope.report.model import FindingKind, Suggestion
from breakscope.run.trial import Comparison
from breakscope.run.words import Words

pytestmark = pytest.mark.torch

# Gradients reach x once, and nothing that is returned or printed shows what they were.
GRADIENTS = """
    import torch

    @torch.compile
    def distance(x):
        return x.square().sum(dim=1)

    fixed, learned = torch.randn(6, 4), torch.randn(6, 4, requires_grad=True)
    for x in (fixed, learned):
        d = distance(x)
    d.sum().backward()
    print("done")
"""

# The call writes to its argument; nothing reads it afterwards.
WRITES = """
    import torch

    @torch.compile
    def clamp(x):
        x.clamp_(min=0)
        return x.shape[0] + 1

    for x in (torch.randn(4, 4), torch.randn(4, 4).t()):
        clamp(x)
    print("done")
"""

# Another result in each run, whatever the seed.
RANDOM = """
    import os
    import torch

    @torch.compile
    def scale(x):
        return x * 2

    for n in (4, 6):
        x = torch.full((n,), float(int.from_bytes(os.urandom(4), "big")))
        y = scale(x)
"""

# The optimizer's step returns nothing; the loss is printed.
LEARNING_RATE = """
    import torch
    from torch import nn

    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)

    @torch.compile
    def update():
        optimizer.step()

    x, y = torch.randn(16, 4), torch.randn(16, 1)
    for _ in range(3):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        update()
        scheduler.step()
        print(f"loss {loss.item():.4f}")
"""


def remedy(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run_cold("remedy", *words, folder=folder)


def suggestion(folder: Path, code: str) -> Suggestion:
    done = remedy(folder, "-q", "--select", code)
    assert done.stdout == ""
    [finding] = [
        f for f in breakscope.load(folder / ".breakscope" / "latest.json").findings if f.code == code
    ]
    assert finding.suggestion is not None
    assert done.returncode == (0 if finding.suggestion.label == "proved" else 1), done.stderr
    return finding.suggestion


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "code", "reason"),
    [
        (GRADIENTS, "BS205", "gradients flow back through the compiled calls"),
        pytest.param(WRITES, "BS202", "a compiled call writes to an argument", marks=pytest.mark.nightly),
        pytest.param(RANDOM, "BS201", "differ from run to run", marks=pytest.mark.nightly),
    ],
    ids=["gradients", "writes", "random"],
)
def test_equal_outputs_are_not_enough(
    scan: Callable[..., Scanned], tmp_path: Path, script: str, code: str, reason: str
) -> None:
    scan(script)
    found = suggestion(tmp_path, code)
    assert found.status == "refused"
    assert reason in found.why, found.why


@pytest.mark.nightly
@pytest.mark.slow
def test_a_learning_rate_becomes_a_tensor(scan: Callable[..., Scanned], tmp_path: Path) -> None:
    scan(LEARNING_RATE)
    found = suggestion(tmp_path, "BS207")
    assert (found.label, found.rule) == ("needs consent", "scalar-to-tensor"), found
    rate = "lr=torch.tensor(0.1, dtype=torch.float64)"
    assert f"+optimizer = torch.optim.SGD(model.parameters(), {rate})" in found.diff
    assert "state_dict() of the optimizer hold a tensor as lr" in found.evidence["caveat"]
    assert found.evidence["recompiles_after"] == 0
    assert found.evidence["tensors_compared"] == 0
    assert found.why.startswith("it needs your consent: param_groups and state_dict() of the optimizer hold")
    assert found.why.endswith("(1 -> 0 recompiles, no tensors returned by 3 calls, the same output printed)")
    assert found.evidence["printed_the_same"]


@pytest.mark.nightly
@pytest.mark.slow
def test_the_script_as_it_is_now_counts(scan: Callable[..., Scanned], tmp_path: Path) -> None:
    """A line more since the scan, and the call stands elsewhere."""
    script = RANDOM.replace('float(int.from_bytes(os.urandom(4), "big"))', "0.5")
    scan(script)
    changed = "\n\n# one more line\n" + textwrap.dedent(script)
    (tmp_path / "script.py").write_text(changed)
    found = suggestion(tmp_path, "BS201")
    assert found.status == "proved"
    assert found.diff.count("\n+") == 2
    assert "+    torch._dynamo.maybe_mark_dynamic(x, 0)\n     y = scale(x)" in found.diff
    assert (tmp_path / "script.py").read_text() == changed


CLEAN = """
    import torch

    @torch.compile
    def double(x):
        return x * 2

    double(torch.ones(3))
"""


def test_a_report_without_recompiles_has_nothing_to_treat(
    scan: Callable[..., Scanned], tmp_path: Path
) -> None:
    scan(CLEAN)
    done = remedy(tmp_path)
    nothing = "no recompiles to treat, and no long compiles of layers that are alike\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, nothing, "")


def test_bad_input_is_one_sentence(scan: Callable[..., Scanned], tmp_path: Path) -> None:
    done = remedy(tmp_path, "missing.json")
    assert done.returncode == 2
    assert done.stderr.startswith("breakscope: cannot read ")
    scan(CLEAN)
    report = tmp_path / ".breakscope" / "latest.json"
    (tmp_path / "script.py").unlink()
    done = remedy(tmp_path)
    assert (done.returncode, done.stderr) == (2, "breakscope: there is no file script.py\n")
    report.write_text(report.read_text().replace(f'"cwd": "{tmp_path}"', '"cwd": "/nowhere/at/all"'))
    done = remedy(tmp_path, "--trust-report")
    assert done.returncode == 2
    assert done.stderr.startswith("breakscope: the script ran in /nowhere/at/all, which cannot be entered")


@pytest.mark.parametrize(("kind", "proved"), [("compile", True), ("graph_break", False), ("skip", False)])
def test_a_remedy_is_not_refused_because_a_compile_took_long_on_a_busy_machine(
    kind: FindingKind, *, proved: bool
) -> None:
    """What comes instead of a recompile stands against a remedy, but for what depends on the clock."""
    patch = Patch((SIZE,), "dynamic-true", Rewrite((), "a remedy"), "model.py", "")
    new = replace(SIZE, fingerprint="new", kind=kind)
    without = replace(RECOMPILES, findings=(SIZE,))
    with_it = replace(without, findings=(new,), totals=replace(without.totals, recompiles=2))
    agreed = Agreement(None, Comparison(1, 1, True, 0.0, 0.0, ()), Words(1, 0, 0))
    trials = SimpleNamespace(
        before=SimpleNamespace(report=without), base=(), seen=lambda _patch: (with_it, agreed)
    )
    assert try_remedy(patch, SIZE, trials).proved == proved
