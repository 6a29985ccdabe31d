"""Under ``torch.autocast`` some operations run in another dtype: which ones, is a table that torch is asked about."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from programs import record

from breakscope.fix.patch import Refusal, Rewrite
from breakscope.fix.rule import locate
from breakscope.fix.rules.branch_to_where import BranchToWhere
from breakscope.source.torch_facts import AUTOCAST, OPS

pytestmark = pytest.mark.torch

HEADER = Path(torch.__file__).parent / "include/ATen/autocast_mode.h"


def test_the_table_holds_all_that_torch_lists() -> None:
    lists = HEADER.read_text().partition("#define AT_FORALL_LOWER_PRECISION_FP")[2]
    assert set(re.findall(r"_\((\w+)", lists)) & OPS.keys() - {"dot"} <= AUTOCAST


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_what_is_not_in_the_table_gives_the_same_dtype_under_autocast(dtype: torch.dtype) -> None:
    x = torch.ones(2, 2, dtype=dtype)
    recast = set()
    for name in OPS:
        function = getattr(torch, name, None) or getattr(torch.nn.functional, name, None)
        for args in ((x,), (x, x)):
            try:
                plain = function(*args)
            except (TypeError, RuntimeError):
                continue  # it wants other arguments
            with torch.autocast("cpu", torch.bfloat16):
                cast = function(*args)
            if isinstance(plain, torch.Tensor) and plain.dtype != cast.dtype:
                recast.add(name)
    assert recast <= AUTOCAST
    assert "matmul" in recast or dtype == torch.bfloat16


def proposed(test: str, body: str) -> Rewrite | Refusal | None:
    """What the rule for branches says of one that was recorded under autocast."""
    source = f"import torch\n\ndef f(h):\n    if {test}:\n        h = {body}\n    return h * 1\n"
    with torch.autocast("cpu", torch.bfloat16):
        evidence = record(source, ("-torch.ones(2, 2)", "torch.ones(2, 2)"))["f"]
    assert evidence.autocast
    column = source.splitlines()[3].index(test)
    site = locate(source, 4, column + 1, 4, column + 1 + len(test), "BS101", "", evidence)
    assert site is not None
    return BranchToWhere().rewrite(site)


@pytest.mark.parametrize(
    ("test", "body"),
    [
        ("torch.isinf(h).any() or torch.isnan(h).any()", "torch.clamp(h, min=-5, max=5)"),
        ("not torch.isfinite(h).all()", "torch.nan_to_num(h)"),
        ("h.abs().max() > 3", "h * 0.5"),
    ],
)
def test_a_test_and_a_body_that_autocast_leaves_alone_are_rewritten(test: str, body: str) -> None:
    answer = proposed(test, body)
    assert isinstance(answer, Rewrite)
    assert "torch.where" in answer.edits[0].text


@pytest.mark.parametrize("body", ["h @ h", "h ** 2", "1 / h", "torch.softmax(h, 0)", "h.exp()"])
def test_a_body_that_autocast_may_recast_is_left_alone(body: str) -> None:
    answer = proposed("h.max() > 3", body)
    assert isinstance(answer, Refusal)
    assert "dtype" in answer.reason
