"""Trials: the script run again with its outputs kept, and two of them compared.

Nightly: the same comparison of a script that breakscope compiles.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from report_samples import SAMPLES

from breakscope.inside.settings import Settings
from breakscope.run.launch import Ended
from breakscope.run.program import program
from breakscope.run.trial import Comparison, Trial, compare, trial
from breakscope.run.words import Said

pytestmark = pytest.mark.torch

SCRIPT = """
    import sys
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x):
            y = self.layer(x)
            if y.sum() > float(sys.argv[1]):
                y = y + 1
            return {"y": y, "names": ["a", 1]}

    model = Net()
    if "compile" in sys.argv:
        model = torch.compile(model)
    for _ in range(3):
        print(model(torch.randn(2, 4))["y"].sum().item())
"""


def run(folder: Path, name: str, *args: str, backend: str = "eager") -> Trial:
    (folder / "script.py").write_text(textwrap.dedent(SCRIPT))
    (folder / name).mkdir()
    what = program(str(folder / "script.py"), args, module=False)
    return trial(what, Settings(backend=backend), folder / name)


@pytest.mark.parametrize("how", ["compile", pytest.param("auto", marks=pytest.mark.nightly)])
def test_the_same_script_compiled_and_eager_gives_the_same_outputs(tmp_path: Path, how: str) -> None:
    compiled = run(tmp_path, "compiled", "0", how)
    eager = run(tmp_path, "eager", "0", how, backend="none")
    assert (compiled.ended.status, eager.ended.status) == ("ok", "ok")
    assert compiled.report.totals.regions > 0
    assert eager.report.totals.regions == 0
    assert compiled.said.stdout == eager.said.stdout != b""
    assert compare(compiled, eager) == Comparison(3, 3, True, 0.0, 0.0, ())


@pytest.mark.nightly
def test_a_difference_is_measured_against_the_largest_value(tmp_path: Path) -> None:
    one, other = run(tmp_path, "one", "-1000", "compile"), run(tmp_path, "other", "1000", "compile")
    found = compare(one, other)
    assert not found.bitwise
    assert found.max_abs == pytest.approx(1, rel=1e-6)
    assert not found.within(1e-3)
    assert found.differences == ()


def test_nothing_compared_is_not_agreement() -> None:
    assert not Comparison(0, 0, True, 0.0, 0.0, ()).within(1.0)


@pytest.mark.parametrize(
    "error",
    [
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied",
        "torch.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode: Could not guard on u0 > 3",
    ],
)
def test_what_a_run_said_last_is_its_exception_and_not_torchs_advice_behind_it(
    error: str, tmp_path: Path
) -> None:
    stderr = (
        f"Traceback (most recent call last):\n{error}\n\nSet TORCHDYNAMO_VERBOSE=1 for the internal stack"
    )
    ran = Trial(
        SAMPLES["healthy"],
        Ended("script_error", 1, None, "", 0.0, None),
        tmp_path,
        Said(b"", stderr.encode()),
    )
    assert ran.last_line == error
