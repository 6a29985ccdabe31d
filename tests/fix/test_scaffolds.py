"""A scaffold is shown, with its diff and why it is none of the proved ones, and never accepted."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from scanning import Scanned
from test_fix import fix, latest

pytestmark = pytest.mark.torch

Scan = Callable[..., Scanned]

SCRIPT = """\
import numpy as np
import torch


@torch.compile
def f(x):
    y = x * 2
    return torch.from_numpy(np.interp(y.numpy(), [0.0, 1.0], [0.0, 2.0])) + 1


for step in range(3):
    f(torch.randn(4))
"""


@pytest.mark.nightly
def test_a_scaffold_is_never_accepted(scan: Scan) -> None:
    folder = scan(SCRIPT).folder
    before = (folder / "script.py").read_bytes()
    done = fix(folder, "--unsafe", "--write", "--all")
    assert done.returncode == 1, done.stdout + done.stderr
    suggestion = next(one.suggestion for one in latest(folder).findings if one.suggestion is not None)
    assert (suggestion.rule, suggestion.status) == ("custom-op", "unproved")
    assert suggestion.why.startswith("a scaffold to finish by hand, nothing was compared: what it gave had")
    assert not suggestion.evidence["accepted"]
    assert suggestion.diff in done.stdout
    assert (folder / "script.py").read_bytes() == before
    assert list((folder / ".breakscope" / "fixes" / "unproved").glob("*.patch"))
    assert json.loads((folder / ".breakscope" / "fixes" / "manifest.json").read_text())["files"] == []
