"""A mask that leaves nothing out and no mask at all may be two things: the proof compares both ways."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from programs import examples_of, rewritten, sites
from proving import proof

from breakscope.fix.evidence import Verdict
from breakscope.fix.judge import judge
from breakscope.fix.patch import Rewrite, claims_of
from breakscope.fix.rule import Example
from breakscope.fix.rules.mask_shortcut import MaskShortcut

pytestmark = pytest.mark.torch

CALLS = ("torch.randn(3, 4), torch.tensor([1, 1, 0])", "torch.randn(3, 4), torch.tensor([1, 1, 1])")
CAUSAL = """\
def f(x, mask):
    if (mask == 1).all():
        mask = None
    if mask is None:
        return (x @ x.T).tril()
    return x @ x.T * mask
"""


def verdict_of(example: Example, folder: Path) -> Verdict:
    answer = next(one for one in map(MaskShortcut().rewrite, sites(example)) if one is not None)
    assert isinstance(answer, Rewrite)
    claims = claims_of([answer])
    after = rewritten(example, answer)
    return judge(proof(example.before, after, example.calls, folder, **dataclasses.asdict(claims)), claims)


def test_the_way_with_the_mask_gives_the_same_where_it_leaves_nothing_out(tmp_path: Path) -> None:
    found = verdict_of(examples_of(MaskShortcut())[0][0], tmp_path)
    assert found.status == "proved", found.why
    assert found.evidence.branches[0]["true"] > 0
    assert found.evidence.branches[0]["false"] > 0


def test_no_mask_that_means_another_one_is_refused(tmp_path: Path) -> None:
    found = verdict_of(Example(CAUSAL, calls=CALLS), tmp_path)
    assert found.status == "refused"
    assert "compiled by Dynamo" in found.why
