"""Any patch is held to the proof: the wrong ones are refused with an input that shows it, the right ones proved."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import asking
import pytest
import right
import wrong
import wrong_kinds
from patches import Patched, change
from scanning import rows, run_python
from warm import Warm

from breakscope.fix.unseen import effects, limits, moved_no_more, read_no_more

pytestmark = pytest.mark.torch

# One of each kind stands for it in every run; all of them at night.
IN_EVERY_RUN = {
    *(
        "while_loop",
        "mask_outside",
        "item_in_the_caller",
        "cache_to_buffer",
        "forward_split",
        "default_device",
    ),
}
SHOWN_IN_EVERY_RUN = {"roots_by_where"}
WRONG = (*wrong.PATCHES, *wrong_kinds.PATCHES)


def first_of_each_kind() -> set[str]:
    return {one.name for one in {patched.kind: patched for patched in reversed(WRONG)}.values()}


def test_there_are_enough() -> None:
    proved = [one for one in right.PATCHES if not one.unproved]
    assert len(WRONG) >= 20
    assert len(right.PATCHES) >= 20
    assert len(proved) >= 18
    assert sum(one.beyond_rules for one in proved) >= 6
    assert len(Counter(one.kind for one in WRONG)) >= 8


@pytest.mark.parametrize("patched", rows(WRONG, first_of_each_kind()))
def test_a_wrong_patch_is_refused_with_the_input_that_shows_it(
    patched: Patched, tmp_path: Path, product: Warm
) -> None:
    asked = asking.prove(product, patched, tmp_path)
    assert (asked.exit_code, asked.status) == (1, "refused"), asked.why
    example = asked.answer["counterexample"]
    assert example["difference"] in asked.why
    assert example["old"] != example["new"] or example["arguments"], "nothing is shown"
    assert (tmp_path / asking.EXAMPLE).exists()


@pytest.mark.parametrize("patched", rows(WRONG, SHOWN_IN_EVERY_RUN))
def test_the_counterexample_shows_both_results_when_it_is_run(
    patched: Patched, tmp_path: Path, product: Warm
) -> None:
    asked = asking.prove(product, patched, tmp_path)
    ran = run_python(asking.EXAMPLE, folder=tmp_path)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "old:" in ran.stdout
    assert "new:" in ran.stdout
    assert f"difference: {asked.answer['counterexample']['difference']}" in ran.stdout


@pytest.mark.parametrize("patched", rows(right.PATCHES, IN_EVERY_RUN))
def test_a_right_patch_is_proved(patched: Patched, tmp_path: Path, product: Warm) -> None:
    asked = asking.prove(product, patched, tmp_path)
    if patched.unproved:
        assert (asked.exit_code, asked.status) == (1, patched.status), asked.why
        assert patched.unproved in asked.why
        return
    assert (asked.exit_code, asked.status) == (0, "proved"), asked.why
    assert asked.answer["level"] == "functions"
    assert asked.answer["functions"]
    before, after = asked.answer["evidence"]["whole_script"]["sites"]
    assert after <= before


GUARDED = """
class Head(nn.Module):
    def forward(self, x, targets=None):
        if self.training:
            if targets is None:
                raise ValueError("targets are needed in training")
            return F.mse_loss(x, targets)
        return x.sigmoid()


head, other = torch.compile(Head()), torch.compile(Head().eval())
for x in batches(3, 4):
    print(head(x, x.sin()).item(), other(x).sum().item())
"""


def test_a_check_that_only_fails_on_inputs_of_ours_is_not_proved_to_be_needless(
    tmp_path: Path, product: Warm
) -> None:
    """In evaluation the script leaves the targets out; switched to training, the old code raises for that."""
    check = (
        "            if targets is None:\n"
        '                raise ValueError("targets are needed in training")\n'
    )
    asked = asking.prove(product, change("lost_check", "a check", GUARDED, (check, "")), tmp_path)
    assert (asked.exit_code, asked.status) == (1, "unproved"), asked.why
    assert "`targets is None` is true" in asked.why


COPIED = """
from dataclasses import dataclass, replace


@dataclass
class Config:
    dim: int = 4
    eps: float = 1e-5


@torch.compile
def wider(x, config):
    torch._dynamo.graph_break()
    config = replace(config, dim=config.dim + 1)
    return x / config.dim, config


for x in batches(3, 4):
    print(wider(x, Config())[0].sum().item())
"""


def test_a_copy_that_takes_not_all_fields_along_has_a_limit(tmp_path: Path, product: Warm) -> None:
    fewer = (
        ("    torch._dynamo.graph_break()\n", ""),
        ("replace(config, dim=config.dim + 1)", "Config(config.dim + 1)"),
    )
    asked = asking.prove(product, change("fewer_fields", "fields", COPIED, *fewer), tmp_path)
    assert asked.status == "proved", asked.why
    assert any("with other values of eps" in one for one in asked.answer["evidence"]["limits"])


SUBCLASS = """
class Boxes(torch.Tensor):
    pass


@torch.compile
def boxes(x):
    torch._dynamo.graph_break()
    return (x > 0).long().as_subclass(Boxes)


for x in batches(3, 4):
    print(boxes(x).sum().item())
"""


def test_a_tensor_of_another_class_is_not_compared(tmp_path: Path, product: Warm) -> None:
    edits = ("    torch._dynamo.graph_break()\n", ""), ("x > 0", "x >= 0")
    asked = asking.prove(product, change("subclass", "class", SUBCLASS, *edits), tmp_path)
    assert (asked.status, asked.exit_code) == ("unproved", 1)
    assert "a tensor of the class Boxes" in asked.why


BEYOND = """
class Crossed(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Tanh()])
        self.seen = []

    def forward(self, q, k):
        torch._dynamo.graph_break()
        self.seen.append(q.shape[0])
        mask = torch.ones(q.shape[0], k.shape[0]).tril()
        for layer in self.layers:
            k = layer(k)
        return (self.lin(q) @ k.T) * mask


crossed = torch.compile(Crossed())
for x in batches(3, 4):
    print(crossed(x, x + 1).sum().item())
"""
UNROLLED = "        k = self.layers[1](self.layers[0](k))\n"
APPENDED = "        self.seen.append(q.shape[0])\n"


@pytest.mark.parametrize(
    ("edits", "limit"),
    [
        pytest.param(
            (("k.shape[0]).tril()", "q.shape[0]).tril()"),),
            "with tensors of different sizes, which the script has alike",
            id="two sizes that are the same by chance",
        ),
        pytest.param(
            (
                (APPENDED, ""),
                ("        return (self.lin(q)", f"        q = self.lin(q)\n{APPENDED}        return (q"),
            ),
            "on inputs that the old code refuses",
            id="what is left behind where both raise",
        ),
        pytest.param(
            (("k.shape[0]).tril()", "k.shape[0], dtype=torch.float32).tril()"),),
            "under another default dtype",
            id="a dtype written out",
        ),
        pytest.param(
            (("        for layer in self.layers:\n            k = layer(k)\n", UNROLLED),),
            "with another number of items in `layers`",
            id="a loop over layers unrolled",
        ),
        pytest.param(
            (("self.lin(q) @ k.T", "self.lin(q) @ k.reshape(-1, 4).T"),),
            "with modules of other sizes than 4",
            id="a size written out",
        ),
        pytest.param(
            (
                (
                    "class Crossed",
                    "import functools\n\n\n@functools.lru_cache\ndef lower(n, m):\n    return torch.ones(n, m).tril()\n\n\nclass Crossed",
                ),
                ("torch.ones(q.shape[0], k.shape[0]).tril()", "lower(q.shape[0], k.shape[0])"),
            ),
            "where `lower`, which keeps what it gave, is first called in inference mode",
            id="a table in a cache",
        ),
    ],
)
def test_a_limit_says_what_the_script_does_not_give(
    edits: tuple[tuple[str, str], ...], limit: str, tmp_path: Path, product: Warm
) -> None:
    patched = change("beyond", "limits", BEYOND, ("        torch._dynamo.graph_break()\n", ""), *edits)
    asked = asking.prove(product, patched, tmp_path)
    assert asked.status == "proved", asked.why
    assert [one for one in asked.answer["evidence"]["limits"] if one.startswith(limit)]


NEVER_GIVEN = """
class Projection(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 4))

    def forward(self, x, weight=None):
        torch._dynamo.graph_break()
        y = x @ self.w / self.w.shape[0]
        return y if weight is None else y * weight


net = torch.compile(Projection())
for x in batches(3, 4):
    print(net(x).sum().item())
"""


def test_what_is_none_at_every_call_and_what_is_square_by_chance_are_limits(
    tmp_path: Path, product: Warm
) -> None:
    patched = change(
        "square",
        "limits",
        NEVER_GIVEN,
        ("        torch._dynamo.graph_break()\n", ""),
        ("self.w.shape[0]", "self.w.shape[1]"),
    )
    asked = asking.prove(product, patched, tmp_path)
    limits = asked.answer["evidence"]["limits"]
    assert asked.status == "proved", asked.why
    assert "where `weight` is given: None at every call of the script" in limits
    assert "with `w` of sizes that differ: two of them are 4 here" in limits


LAID_OUT = """
@torch.compile
def per_map(x):
    torch._dynamo.graph_break()
    b, c, h, w = x.shape
    y = x.reshape(b * c, h, w)
    return torch.where(x.abs() < torch.finfo(x.dtype).tiny, 0.0, x), y - y.amax((1, 2), keepdim=True)


for x in batches(2, 3, 4, 5):
    print(sum(one.sum().item() for one in per_map(x)))
"""


@pytest.mark.parametrize(
    ("edit", "limit"),
    [
        pytest.param(
            ("reshape", "view"), "with other strides (all tensors with their second", id="channels last"
        ),
        pytest.param(
            ("x.abs() < torch.finfo(x.dtype).tiny", "x == 0"), "with denormal numbers", id="denormal numbers"
        ),
    ],
)
def test_a_limit_names_layouts_and_values_that_few_have(
    edit: tuple[str, str], limit: str, tmp_path: Path, product: Warm
) -> None:
    broken = ("    torch._dynamo.graph_break()\n", "")
    asked = asking.prove(product, change("laid_out", "limits", LAID_OUT, broken, edit), tmp_path)
    assert asked.status == "proved", asked.why
    assert [one for one in asked.answer["evidence"]["limits"] if one.startswith(limit)]


MEMORY = """
class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.zeros(4))

    def forward(self, x):
        if x.abs().sum() > 9:
            x = x * 0.5
        self.state.mul_(0.5).add_(x)
        return x + self.state


memory = torch.compile(Memory())
for x in batches(4):
    print(memory(x).sum().item())
"""
SELECTED = (
    "        if x.abs().sum() > 9:\n            x = x * 0.5\n",
    "        x = torch.where(x.abs().sum() > 9, x * 0.5, x)\n",
)


def test_what_the_module_keeps_is_tried_in_the_place_of_an_argument(tmp_path: Path, product: Warm) -> None:
    asked = asking.prove(product, change("kept", "limits", MEMORY, SELECTED), tmp_path)
    assert asked.status == "proved", asked.why
    limits_told = asked.answer["evidence"]["limits"]
    assert [one for one in limits_told if one.startswith("with one tensor in two places (input 1 is what")]


def test_what_is_set_in_a_library_is_an_effect_under_every_name() -> None:
    new = "import torch.nn.functional as F\nfrom torch import nn\n\n\ndef f(x):\n    {}return x\n"
    for setting in ("F.extra = 1", "nn.Linear.extra = 1"):
        assert list(effects(new.format(f"{setting}\n    "), new.format(""))) == [
            f"`{setting.removesuffix(' = 1')}` is set"
        ]


ALONE = """
LIMIT = 3


def scaled(x, by=1.0):
    return x * by


@torch.compile
def f(a, b):
    torch._dynamo.graph_break()
    a[0] = 1.0
    return scaled(a + b, 2.0)


for x in batches(3, 4):
    print(f(x, x * 2).sum().item())
"""


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("by=1.0", "by=2.0", "it changes the default of `by` in scaled"),
        ("LIMIT = 3", "LIMIT = 4", "it binds `LIMIT` in another way"),
    ],
)
def test_what_only_others_can_tell_is_compared_by_the_whole_script_alone(
    old: str, new: str, why: str, tmp_path: Path, product: Warm
) -> None:
    broken = ("    torch._dynamo.graph_break()\n", "")
    asked = asking.prove(product, change("alone", "others", ALONE, broken, (old, new)), tmp_path)
    assert (asked.status, asked.answer["level"]) == ("unproved", "whole script")
    assert why in asked.why


PASSED = """
@torch.compile
def passed(x):
    torch._dynamo.graph_break()
    if __name__ == "__main__":
        return x * 2
    return x + 1


for x in batches(3, 4):
    print(passed(x).sum().item())
"""


def test_changed_code_behind_an_exit_that_was_always_taken_is_not_proved(
    tmp_path: Path, product: Warm
) -> None:
    broken = ("    torch._dynamo.graph_break()\n", "")
    behind = ("return x + 1", "return x - 1")
    asked = asking.prove(product, change("passed", "exits", PASSED, broken, behind), tmp_path)
    assert asked.status == "unproved", asked.why
    assert asked.why.startswith("no input was found for which `__name__ == '__main__'` is false")
    # Where what is behind it stays as it is, nothing depends on it.
    asked = asking.prove(product, change("passed", "exits", PASSED, broken), tmp_path)
    assert asked.status == "proved", asked.why


def test_a_limit_says_that_one_tensor_in_two_places_tells_the_forms_apart(
    tmp_path: Path, product: Warm
) -> None:
    body = ("    torch._dynamo.graph_break()\n    a[0] = 1.0\n", "    b = b.clone()\n    a[0] = 1.0\n")
    asked = asking.prove(product, change("twice", "aliases", ALONE, body), tmp_path)
    assert asked.status == "proved", asked.why
    assert [
        one for one in asked.answer["evidence"]["limits"] if one.startswith("with one tensor in two places")
    ]


def test_a_limit_says_that_lists_may_come_in_another_order(tmp_path: Path, product: Warm) -> None:
    edits = (
        ("    torch._dynamo.graph_break()\n", ""),
        ("list(dict.fromkeys(key for key, _ in items))", "sorted({key for key, _ in items})"),
    )
    asked = asking.prove(product, change("sorted", "order", wrong.NUMBERED, *edits), tmp_path)
    assert asked.status == "proved", asked.why
    assert [
        one for one in asked.answer["evidence"]["limits"] if one.startswith("with a list in another order")
    ]


def test_a_limit_names_a_move_that_is_left_out() -> None:
    old = "def f(x):\n    return x.detach().cpu() + 1\n"
    assert list(moved_no_more(old, "def f(x):\n    return x.detach() + 1\n")) == ["x.detach().cpu()"]
    assert list(moved_no_more(old, "def f(x):\n    return x.cpu().detach() + 1\n")) == []


def test_a_method_of_an_attribute_is_no_value() -> None:
    old = "class A:\n    def f(self, x):\n        self.seen.append(x)\n        return self.act(x)\n"
    new = "class A:\n    def f(self, x):\n        self.seen += [x]\n        return x\n"
    assert list(read_no_more(old, new)) == ["self.act", "self.seen"]


@pytest.mark.parametrize(
    ("old", "new", "limit"),
    [
        (
            "while (b != 0).any():\n        b = b - 1",
            "for _ in range(48):\n        b = b - 1",
            "where `while (b",
        ),
        ("b = x[d <= 6.25]", "b = x[d < 6.25]", "where both sides of `d < 6.25` are the same"),
        ("b = x if not d <= 2 else b", "b = torch.where(d > 2, x, b)", ""),
        ("b = x // 3", "b = (x / 3).long()", "where `x // 3` is so large"),
        (
            "b = x.long().cumsum(0)",
            "b = x.cumsum(0, dtype=torch.int16)",
            "where numbers are beyond what int16",
        ),
        ("b = d.item() * 2 > x", "b = d * 2 > x", "near the limit of `d.item() * 2 > x`"),
        ("b = x * CFG[0]", "b = table(x)", "other values of `CFG`, which f does not read any more"),
        ("b = x // 3", "n = x\n    b = n // 3", ""),
        ("b = int(d * 0.1)", "b = (d * 0.1).long()", "on the steps of `int(d * 0.1)`"),
        ("b = math.isqrt(d)", "b = d.sqrt().long()", "on the steps of `math.isqrt(d)`"),
        ("b = int(d)", "b = d.long()", ""),
        (
            "for _ in range(len(x)):\n        b = b - 1",
            "for _ in range(8):\n        b = b - 1",
            "where `for _ in range(len(x))` of the old code takes more turns",
        ),
        ("b = d.get('scale', 1.0) * x", "b = x", "where `d['scale']` is there"),
        ("b = getattr(d, 'scale', 1.0) * x", "b = x", "where `d.scale` is there"),
        ("b = getattr(d, 'scale', 1.0) * x", "b = x * (d.scale if hasattr(d, 'scale') else 1)", ""),
        ("b = type(b)(x)", "b = B(x)", ""),
        ("b = tree_map(abs, x)", "b = {k: abs(v) for k, v in x.items()}", "where values are nested"),
        ("b = x + 1", "b = 1 + x", ""),
    ],
)
def test_a_limit_names_what_few_inputs_show(old: str, new: str, limit: str) -> None:
    head = "CFG = [2]\n\n\ndef table(x):\n    return x * CFG[0]\n\n\ndef f(b, d, x):\n    "
    found = list(limits(f"{head}{old}\n    return b\n", f"{head}{new}\n    return b\n"))
    assert [one.startswith(limit) for one in found] == [True] * bool(limit)


def test_a_limit_names_a_parameter_that_is_read_no_more() -> None:
    old = "def f(x, reduction):\n    return getattr(x, reduction)()\n"
    assert list(read_no_more(old, "def f(x, reduction):\n    return x.mean()\n")) == ["reduction"]
