"""What is advised for selections by a mask is followed on programs that are put together at random.

Each selects rows, does something with them and reduces, ranks or takes a loss of what that gives. Where the
advice is to do all of it with all rows and mask at the end, that has to give the same.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from test_uses import marked
from torch.nn import functional

from breakscope.diagnose.shapes import use_of
from breakscope.project.sources import Sources

pytestmark = pytest.mark.torch

# What may be done with selected rows: by itself for each of them, or not.
STEPS = (
    *(
        "s * 2",
        "s.abs()",
        "s + y[m]",
        "s @ w",
        "s[:, :1]",
        "s.softmax(-1)",
        "F.relu(s)",
        "s.pow(2)",
        "net(s)",
    ),
    *(
        "torch.cat([s, s], -1)",
        "s.sum(-1)",
        "s[..., 0]",
        "s.norm(dim=-1)",
        "s.max(-1).values",
        "(s > 0).float()",
    ),
    *(
        "s[i]",
        "s[:2]",
        "s.flatten()",
        "s.reshape(-1)",
        "s.cumsum(0)",
        "s.softmax(0)",
        "s.repeat(2, 1)",
        "s.flip(0)",
    ),
    *(
        "s @ s.t()",
        "s.diff(dim=0)",
        "s.unique()",
        "s.t()",
        "z @ s.t()",
        "s.unsqueeze(0)",
        "torch.cdist(s, s)",
    ),
    *("s[torch.randperm(len(s))]", "s[s[:, 0] > 0]", "(s[:, None] - s[None]).abs()", "s.roll(1, 0)"),
    *("torch.outer(s[:, 0], s[:, 0])", "torch.histc(s, 4)", "F.normalize(s, dim=0)", "torch.cat([s, z])"),
)
ENDS = (
    *(
        "s.sum()",
        "torch.sum(s)",
        "s.sum(0)",
        "s.mean(0)",
        "s.max()",
        "s.amax(0)",
        "s.min()",
        "s.pow(2).sum()",
    ),
    *("torch.logsumexp(s, 0)", "s.topk(2, 0).values.sum()", "s.sort(0).values[:2].sum()"),
    *("F.mse_loss(s, y[m], reduction='sum')", "F.cross_entropy(s, c[m])"),
)
MASK = (1, 0, 1, 1, 0, 1)


def values() -> dict[str, object]:
    torch.manual_seed(1)
    return {
        "torch": torch,
        "F": functional,
        "x": torch.randn(6, 3),
        "y": torch.randn(6, 3),
        "m": torch.tensor(MASK).bool(),
        "w": torch.randn(3, 3),
        "z": torch.randn(3, 3),
        "i": torch.tensor([0, 2, 1]),
        "c": torch.tensor([0, 2, 1, 0, 1, 2]),
        "net": torch.nn.Linear(3, 3),
    }


def run(lines: Sequence[str]) -> torch.Tensor:
    held = values()
    exec("def f():\n" + "".join(f"    {line}\n" for line in lines), held)
    torch.manual_seed(1)
    return held["f"]().detach()  # type: ignore[operator]


def followed(shape: str, steps: Sequence[str], end: str) -> torch.Tensor | None:
    """What a program gives that does all with all rows and masks at the end, as its advice says."""

    def whole(last: str) -> torch.Tensor:
        return run(["s = x", *(f"s = {one.replace('[m]', '')}" for one in steps), f"return {last}"])

    if shape not in ("reduced", "across", "ranked", "loss", "labels"):
        return None
    every = whole("s.pow(2)" if "pow" in end else "s")
    mask = torch.tensor(MASK).bool()
    if shape != "across":
        mask = mask.reshape(-1, *[1] * (every.dim() - 1))
    none, least, greatest = (every.masked_fill(~mask, value) for value in (0, -torch.inf, torch.inf))
    match shape, end:
        case ("loss", _):
            loss = whole(end.replace("[m]", "").replace("'sum'", "'none'"))
            return torch.where(mask.reshape(-1, *[1] * (loss.dim() - 1)), loss, 0).sum()
        case ("labels", _):
            return whole(end.replace("c[m]", "c.masked_fill(~m, -100)"))
        case ("ranked", _):
            if "topk" in end:
                return least.topk(2, 0).values.sum()
            return greatest.sort(0).values[:2].sum()
        case ("reduced" | "across", "s.sum()" | "torch.sum(s)" | "s.pow(2).sum()"):
            return none.sum()
        case ("reduced" | "across", "s.max()"):
            return least.max()
        case ("reduced" | "across", "s.min()"):
            return greatest.min()
        case ("reduced", "s.sum(0)"):
            return none.sum(0)
        case ("reduced", "s.mean(0)"):
            return none.sum(0) / mask.sum()
        case ("reduced", "s.amax(0)"):
            return least.amax(0)
        case ("reduced", "torch.logsumexp(s, 0)"):
            return least.logsumexp(0)
    return None


def test_what_is_advised_for_a_selection_gives_the_same(tmp_path: Path) -> None:
    chance = random.Random(0)
    tried: Counter[str] = Counter()
    for _ in range(600):
        steps = [chance.choice(STEPS) for _ in range(chance.choice([0, 1, 1, 2]))]
        end = chance.choice(ENDS)
        lines = [f"s = {step}" for step in ("x[m]", *steps)]
        try:
            wanted = run([*lines, f"return {end}"])
            # Of one dimension the last one is the first, which the source does not tell.
            dims = [run([*lines[: at + 1], "return s"]).dim() for at in range(len(lines))]
        except (RuntimeError, IndexError, ValueError, UserWarning):  # no program
            continue
        if any((dim == 1 and "-1" in step) or "..." in step for dim, step in zip(dims, steps, strict=False)):
            continue
        body = "\n".join([*lines, f"return {end}"]).replace("x[m]", "[[x[m]]]", 1)
        place = marked(tmp_path / "script.py", body)
        use = use_of(Sources(), str(tmp_path / "script.py"), place, place[0])
        if use.line not in (0, body.count("\n") + 2):
            continue  # it is told of another line than the last
        given = followed(use.shape, steps, end)
        if given is not None:
            tried[use.shape] += 1
            assert given.shape == wanted.shape, (body, use.shape)
            assert torch.allclose(given, wanted, atol=1e-5), (body, use.shape)
    assert tried["reduced"] > 50
    assert min(tried[shape] for shape in ("ranked", "loss", "labels", "across")) > 5
