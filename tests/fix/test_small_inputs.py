"""What the script did not give is tried in small around a large call, and is answered as in full size."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from proving import proof

from breakscope.inside.prove import smaller

pytestmark = pytest.mark.torch

HEADS = """
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.width, self.inner = 2, 32, nn.Linear(64, 64)

    def forward(self, x):
        x = self.inner(x).view(x.shape[0], self.heads, self.width)
        {}
        return x
"""
BRANCH = "if x.isinf().any():\n            x = x.clamp(-9, 9)"
WHERE = "x = torch.where(x.isinf().any(), x.clamp(-9, 9), x)"


@pytest.fixture(autouse=True)
def _all_calls_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smaller, "LARGE", 0)


def proved(old: str, new: str, folder: Path, call: str = "torch.randn(40, 64)") -> dict[str, Any]:
    (found,) = proof(HEADS.format(old), HEADS.format(new), (call,), folder)["functions"]
    return found


def in_small(found: dict[str, Any]) -> list[str]:
    return [note for note in found["notes"] if "tried in small" in note]


ALONE = """
import sys
from pathlib import Path

import test_small_inputs as small
from breakscope.fix.judge import judge
from breakscope.inside.prove.claims import Claims

small.smaller.LARGE = 0
found = small.proved(small.BRANCH, small.WHERE, Path(sys.argv[1]))
status = judge({"functions": [found], "files": []}, Claims(exact=True)).status
(note,) = small.in_small(found)
print(status, found["compared"], note, sep="|")
"""


def test_sizes_of_arguments_and_modules_are_cut_with_the_numbers_that_make_them_up(tmp_path: Path) -> None:
    """In a process of its own, as a proof is: what thousands of tests left behind in one takes steps too."""
    here = Path(__file__).parent
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(here), str(here.parent)))}
    ran = subprocess.run(
        [sys.executable, "-c", ALONE, str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    status, compared, note = ran.stdout.splitlines()[-1].split("|")
    assert status == "proved"
    count, _, sizes = note.partition(" inputs that the script did not give were tried in small: sizes ")
    assert int(count) > int(compared) / 2
    assert sizes == "2 for 32, 5 for 40, 4 for 64"


def test_what_differs_in_small_is_told_in_full_size(tmp_path: Path) -> None:
    found = proved(BRANCH, WHERE.replace("-9, 9", "-9, 8"), tmp_path)
    assert "values differ by up to 1" in found["mismatch"]
    assert "[40, 64]" in found["found"]["arguments"][1]


def test_what_differs_in_small_alone_is_no_difference(tmp_path: Path) -> None:
    assert proved(BRANCH, f"{WHERE}.view(-1, 2, 32)", tmp_path)["mismatch"] is None


@pytest.mark.parametrize(
    "more",
    ["if x.shape[2] > 20:\n            x = x + 1\n        ", "x = x[:, :, 30:] + 1\n        "],
    ids=["another way", "other sizes"],
)
def test_a_call_that_goes_otherwise_in_small_is_tried_in_full_size(more: str, tmp_path: Path) -> None:
    found = proved(more + BRANCH, more + WHERE, tmp_path)
    assert found["mismatch"] is None
    assert not in_small(found)


def test_what_python_collects_meanwhile_is_no_step() -> None:
    """Garbage of others, whose finalizers run where the collector finds it: the first plan was given up for that."""

    class Left:
        def __del__(self) -> None:
            self.me = None

    def own() -> int:
        return 1

    gc.collect()
    left = Left()
    left.me = left
    del left
    with smaller.steps() as seen:
        own()
        gc.collect()
        own()
    noted = {code for code, _ in seen}
    assert id(own.__code__) in noted
    assert id(Left.__del__.__code__) not in noted
