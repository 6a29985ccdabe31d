"""A run that compiled nothing says why."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from scanning import Scanned

pytestmark = pytest.mark.torch

GENERATE = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.head(x)

    def generate(self, x):
        for _ in range(3):
            x = self(x)
        return x

model = Model()
model = torch.compile(model)
model.eval()
model.generate(torch.ones(1, 4))
"""


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (
            GENERATE,
            (
                "Model was given to torch.compile at script.py:18, which compiles model(…) alone; "
                "model.generate(…) in line 20 runs the module itself, past it: write model.compile() instead, "
                "which holds for calls from inside, too, or compile model.generate"
            ),
        ),
        (
            "import torch\ndef f(x):\n    return x + 1\ng = torch.compile(f)\nf(torch.ones(2))",
            "f was given to torch.compile at script.py:4 and never called",
        ),
        (
            "import torch\ntorch.nn.ReLU()(torch.ones(2))",
            (
                "the script gives nothing to torch.compile, and the modules that it calls (ReLU) have no parameters "
                "and were left alone; name what is to be compiled with --compile FUNCTION"
            ),
        ),
        (
            "import torch\ntorch.ones(2) + 1",
            (
                "the script gives nothing to torch.compile and calls no module; name what is to be compiled with "
                "--compile FUNCTION"
            ),
        ),
        (
            "import torch\n@torch.compile\ndef f(x):\n    return x\nf(torch.ones(2))",
            "f ran, and no tensor operation came into a graph",
        ),
        (
            "import torch\n@torch.compile\ndef f(x):\n    for _ in range(2):\n        print(x)\nf(torch.ones(2))",
            (
                "every function that Dynamo tried runs eagerly, because of BS301 at script.py:5 "
                "(frame skipped: print, logging or warnings call)"
            ),
        ),
    ],
    ids=["generate", "never called", "no parameters", "nothing", "no op", "all skipped"],
)
def test_a_vacuous_report_says_why(scan: Callable[..., Scanned], source: str, why: str) -> None:
    hold_why(scan(source, quiet=False), why)


def test_a_script_without_torch_is_vacuous(cold_scan: Callable[..., Scanned]) -> None:
    hold_why(cold_scan("print('hello')", quiet=False), "the script never imported torch")


def hold_why(scanned: Scanned, why: str) -> None:
    assert scanned.report.reconciliation.vacuous
    assert scanned.report.reconciliation.why == why
    first = " ".join(scanned.text.split())
    assert first.startswith(f"VACUOUS: nothing was compiled: {why}") or f"compiled: {why}" in first


def test_what_the_advice_says_does_compile(scan: Callable[..., Scanned]) -> None:
    scanned = scan(GENERATE.replace("model = torch.compile(model)", "model.compile()"))
    assert not scanned.report.reconciliation.vacuous
    assert scanned.report.reconciliation.why is None
