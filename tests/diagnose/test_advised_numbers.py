"""What is advised for a number that is read of a tensor is followed on programs that are put together at random.

Each reads a number, does something with it and uses it. Where the advice is to keep it a tensor, the program
without the read has to give the same, in one graph.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from test_uses import marked
from torch.nn import functional
from torch.utils import _pytree

from breakscope.diagnose.shapes import use_of
from breakscope.project.sources import Sources

pytestmark = pytest.mark.torch

READS = {"x.sum().item()": "x.sum().detach()", "float(x.max())": "x.max().detach()"}
STEPS = {
    **{one: one for one in ("n * 2", "n + 1", "abs(n)", "-n", "n ** 2", "n / len(y)", "n // 2", "n % 3")},
    **{
        one: one for one in ("(n, 1)[0]", "sum([n, 1])", "n * scale", "n if flag else 0.0", "n or 1", "not n")
    },
    "round(n)": "torch.round(n)",
    "pow(n, 2)": "n ** 2",
    "divmod(n, 2)[0]": "n // 2",
    "max(n, 1)": "n.clamp(min=1)",
    "min(n, 3)": "n.clamp(max=3)",
    "math.sqrt(abs(n))": "torch.sqrt(abs(n))",
    "math.exp(-n)": "torch.exp(-n)",
}
ENDS = (
    *(
        "y * n",
        "y - n",
        "y ** n",
        "torch.full((3,), n)",
        "y.clamp(max=n)",
        "(y > n).float()",
        "torch.pow(y, n)",
    ),
    *(
        "torch.where(y > n, y, 0)",
        "torch.lerp(y, y * 2, n)",
        "y.masked_fill(y > 0, n)",
        "y.fill_(n)",
        "(y, n)",
    ),
    *("F.leaky_relu(y, n)", "F.elu(y, n)", "F.hardtanh(y, -1.0, 9 + n)", "F.layer_norm(y, (3,), eps=n)"),
    *(
        "F.smooth_l1_loss(y, y * 0, beta=n)",
        "torch.nan_to_num(y, nan=n)",
        "torch.full_like(y, n)",
        "y.norm(n)",
    ),
    *("F.softplus(y, beta=n)", "F.pad(y, (0, 1), value=n)", "torch.linspace(0, n, 3)", "y.new_full((2,), n)"),
    *("F.huber_loss(y, y * 0, delta=n)", "torch.isclose(y, y, rtol=n).float()", "torch.stack([y, y * n])"),
)
# Where a number can stay a tensor, as the advice for these says.
STAYS = ("arithmetic", "returned", "math", "bound")


def made(body: str) -> Any:
    held = {"torch": torch, "F": functional, "math": math, "scale": 0.5, "flag": True}
    exec("def f(x, y):\n" + "".join(f"    {line}\n" for line in body.split("\n")), held)
    return held["f"]


def given(call: Any) -> list[torch.Tensor]:
    told = call(torch.tensor([1.0, 0.5, 2.0]), torch.tensor([0.2, 1.0, -2.0]))
    return [torch.as_tensor(one).float() for one in _pytree.tree_leaves(told)]


def test_a_number_that_is_told_to_stay_a_tensor_can(tmp_path: Path) -> None:
    chance = random.Random(0)
    tried: Counter[str] = Counter()
    for _ in range(150):
        read = chance.choice([*READS])
        steps = [chance.choice([*STEPS]) for _ in range(chance.choice([0, 0, 1, 1, 2]))]
        end = chance.choice(ENDS)
        body = "\n".join([f"n = {read}", *(f"n = {step}" for step in steps), f"return {end}"])
        try:
            wanted = given(made(body))
        except (RuntimeError, ValueError, TypeError, OverflowError):
            continue  # no program
        place = marked(tmp_path / "script.py", body.replace(read, f"[[{read}]]", 1))
        use = use_of(Sources(), str(tmp_path / "script.py"), place, place[0], code="BS102")
        tried[use.shape] += 1
        if use.shape in STAYS:
            followed = "\n".join(
                [f"n = {READS[read]}", *(f"n = {STEPS[step]}" for step in steps), f"return {end}"]
            )
            torch._dynamo.reset()
            kept = given(torch.compile(made(followed), backend="eager", fullgraph=True))
            same = (torch.allclose(*both, equal_nan=True) for both in zip(kept, wanted, strict=True))
            assert all(same), body
    assert all(tried[shape] > 3 for shape in ("arithmetic", "constant", "math", "bound", "branch"))
