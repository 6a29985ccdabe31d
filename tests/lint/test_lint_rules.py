"""What lint says of single expressions."""

from __future__ import annotations

from pathlib import Path

import pytest
from lint_examples import BREAKS, CLEAN, MISSED
from lint_setup import function, lint_text


def compiled(body: str) -> str:
    return function(body).replace("def f(", "@torch.compile\ndef f(")


@pytest.mark.parametrize(
    ("code", "body"), BREAKS, ids=[body.split("\n", maxsplit=1)[0] for _, body in BREAKS]
)
def test_what_breaks_is_found(tmp_path: Path, code: str, body: str) -> None:
    found = lint_text(tmp_path, compiled(body))
    level = "possible" if code.endswith("?") else "likely"
    assert (code.rstrip("?"), level) in [(one.code, one.level) for one in found]


@pytest.mark.parametrize("body", CLEAN, ids=[body.split("\n", maxsplit=1)[0] for body in CLEAN])
def test_what_does_not_break_is_left_alone(tmp_path: Path, body: str) -> None:
    assert [one for one in lint_text(tmp_path, compiled(body)) if one.level == "likely"] == []


@pytest.mark.parametrize("body", MISSED)
def test_what_is_listed_as_missed_is_missed(tmp_path: Path, body: str) -> None:
    # Else the list, and what the documentation says of it, is out of date.
    assert lint_text(tmp_path, compiled(body)) == []


def test_columns_count_characters(tmp_path: Path) -> None:
    [one] = lint_text(tmp_path, compiled('ß = "äöü"; y = x.sum().item()\nreturn y'))
    assert one.location.source == 'ß = "äöü"; y = x.sum().item()'
    assert one.location.column == len('    ß = "äöü"; y = ') + 1
    assert one.location.end_column == len('    ß = "äöü"; y = x.sum().item()') + 1


@pytest.mark.parametrize(
    ("signature", "test", "level"),
    [
        ("x: torch.Tensor", "x > 0", "likely"),
        ("x: 'torch.Tensor'", "x > 0", "likely"),
        ("x: torch.FloatTensor | None = None", "x.sum() > 0", "likely"),
        ("x: Float[Tensor, 'b n']", "x > 0", "likely"),
        ("x: int", "x > 0", None),
        ("x: float = 0.5", "x > 0", None),
        ("x: bool = False", "x", None),
        ("x=True", "x", None),
        ("x: Optional[tuple[torch.Tensor, ...]] = None", "x", None),
        ("x: np.ndarray", "x.sum() > 0", "likely"),
        # An argument that is a tensor of several elements has no truth: somebody tests for None.
        ("x: Optional[Tensor] = None", "x", "possible"),
        # Of an argument of forward without a word about it one may believe that it is a tensor.
        ("x", "x > 0", "possible"),
        ("x", "x.shape[0] > 0", None),
        ("x", "x.dtype == torch.float16", None),
        ("x", "self.config.flag", None),
        ("x", "self.training", None),
        ("x", "self.scale > 1", None),
        ("x", "self.table.sum() > 1", "likely"),
    ],
)
def test_evidence_for_and_against_a_tensor(
    tmp_path: Path, signature: str, test: str, level: str | None
) -> None:
    source = f"""
        import numpy as np
        import torch
        from typing import Optional
        from jaxtyping import Float
        from torch import Tensor, nn

        class Net(nn.Module):
            def __init__(self, config, scale):
                super().__init__()
                self.config = config
                self.scale = scale
                self.register_buffer("table", torch.ones(3))

            def forward(self, {signature}):
                if {test}:
                    return 1
                return 0
    """
    found = lint_text(tmp_path, source)
    assert [one.level for one in found] == ([level] if level else [])


@pytest.mark.parametrize(
    ("guard", "level"),
    [
        ("if True:", "likely"),
        ("for _ in range(3):", "likely"),
        ("with torch.no_grad():", "likely"),
        ("if verbose:", "possible"),
        ("if self.training:", "possible"),
        ("if torch.compiler.is_compiling():", "likely"),
        ("if not torch.compiler.is_compiling():", None),
        ("if torch.jit.is_scripting():", None),
        ("if not torch.jit.is_tracing():", "likely"),
        ("if verbose and not is_torchdynamo_compiling():", None),
    ],
)
def test_what_need_not_run_is_only_possible(tmp_path: Path, guard: str, level: str | None) -> None:
    source = f"""
        import torch
        from torch import nn
        from utils import is_torchdynamo_compiling

        class Net(nn.Module):
            def forward(self, x, verbose=False):
                {guard}
                    print("here")
                return x
    """
    assert [one.level for one in lint_text(tmp_path, source)] == ([level] if level else [])


def test_text_of_an_error_is_left_alone(tmp_path: Path) -> None:
    body = 'if x.shape[0] > 3:\n    print("bad")\n    raise ValueError(f"{x} {x.sum().item()}")\nreturn x'
    assert lint_text(tmp_path, compiled(body)) == []


def test_a_variable_changes_its_kind(tmp_path: Path) -> None:
    body = "k = x.sum().item()\nif k > 0:\n    x = x + 1\nif isinstance(x, int):\n    x = 1 if x > 0 else 2\nreturn x"
    [one] = lint_text(tmp_path, compiled(body))
    assert (one.code, one.location.source) == ("BS102", "k = x.sum().item()")


def test_counters_of_a_module(tmp_path: Path) -> None:
    source = """
        import torch
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.calls = 0
                self.register_buffer("steps", torch.zeros(()))

            def forward(self, x):
                self.calls += 1
                self.calls = self.calls + 1
                self.steps += 1
                return x
    """
    found = lint_text(tmp_path, source)
    assert [(one.code, one.location.line) for one in found] == [("BS209", 12), ("BS209", 13)]
