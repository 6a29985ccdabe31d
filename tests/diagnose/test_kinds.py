"""Of which kind names were at a break: what Dynamo saw is asked before what their source looks like."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from warm_scanning import WarmScans

from breakscope.diagnose import becomes, checks, kinds
from breakscope.project.sources import Kinds, Sources

CODE = """\
def f(x, n, method):
    y = n
    return x[n], y, method
"""


def way(path: Path, *seen: tuple[int, dict[str, str]]) -> list[ast.AST]:
    """The nodes around the return of a function of which something was seen at lines."""
    file = path / "code.py"
    file.write_text(CODE)
    known: list[Kinds] = [(str(file), line, names) for line, names in seen]
    return Sources(known).around(str(file), (3, 4, 3, 10))


def node(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def test_an_argument_that_was_no_tensor_is_none(tmp_path: Path) -> None:
    seen = way(tmp_path, (1, {"n": "int", "method": "str", "x": "tensor float32 2"}))
    assert not becomes.is_tensor(node("n"), seen)
    assert not becomes.is_tensor(node("method == 'nearest'"), seen)
    assert not becomes.is_tensor(node("x is None"), seen)
    assert becomes.is_tensor(node("x > n"), seen)
    assert becomes.is_tensor(node("n"), way(tmp_path))  # nothing was seen: an argument may well be one


def test_a_name_of_two_kinds_is_read_in_the_source_alone(tmp_path: Path) -> None:
    seen = way(tmp_path, (1, {"n": "int", "x": "tensor float32 2"}), (3, {"n": "str", "x": "tensor int64 1"}))
    assert kinds.of("n", seen) is None
    assert kinds.of("x", seen) == "tensor"
    assert kinds.rank(node("x"), seen) is None


def test_items_of_a_list_are_what_the_first_was(tmp_path: Path) -> None:
    seen = way(tmp_path, (1, {"x": "list of tensor float32 1", "n": "list of int"}))
    assert becomes.is_tensor(node("x[0]"), seen)
    assert not becomes.is_tensor(node("n[0]"), seen)
    assert becomes.is_list(node("x"), seen)


def test_a_test_is_a_bool_where_its_tensor_was_one(tmp_path: Path) -> None:
    seen = way(tmp_path, (1, {"x": "tensor bool 1", "n": "tensor int64 1"}))
    assert checks.gives_bool(node("x"), seen)
    assert not checks.gives_bool(node("n"), seen)


def test_dimensions_are_those_of_the_wider_side(tmp_path: Path) -> None:
    seen = way(tmp_path, (1, {"x": "tensor bool 2", "n": "tensor int64 1"}))
    assert kinds.rank(node("~x"), seen) == 2
    assert kinds.rank(node("n > 3"), seen) == 1
    assert kinds.rank(node("x & (n > 0)"), seen) == 2
    assert kinds.rank(node("f(x)"), seen) is None


def test_what_is_numpys_is_told_from_tensors(tmp_path: Path) -> None:
    seen = way(tmp_path, (1, {"x": "numpy array", "n": "numpy float32"}))
    assert kinds.numpy_in(node("x[i]"), seen) == ("x", "array")
    assert kinds.numpy_in(node("n > 0.5"), seen) == ("n", "float32")
    assert becomes.is_array(node("x"), seen)
    assert not becomes.is_tensor(node("x"), seen)


PROGRAM = """\
import numpy as np
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(4, 4)
        self.scale = np.prod([2, 3])
        self.register_buffer("r", torch.tensor(2))
        self.most = {}
        self.lin.register_forward_hook(self.save)

    def save(self, module, args, out):
        self.most["lin"] = out.max().item()  # hook

    def forward(self, x):
        x = self.lin(x)
        return x.view(x.shape[0], self.scale // 6 * 4)[:, : self.r]  # held


@torch.compile
def weigh(x, score):
    return x * (0.9 if score > 0.5 else 0.1)  # numpy


@torch.compile
def reset(table, rows):
    table = table.clone()
    table[rows] = table.flip(0)[rows]  # rows
    return table


@torch.compile
def checked(x):
    try:
        if x.sum().item() > 5:  # caught
            raise ValueError("too much")
    except ValueError:
        return x / 2
    return x


@torch.compile
def descend(x):
    for _ in range(5):
        x = x / 2
        if x.sum() < 1:  # stop
            break
    return x


NAMES = ["a", "b", "c"]


@torch.compile
def named(x, weights):
    i = x.argmax().item()
    return weights[1, i]


@torch.compile
def scaled(x, numbers=(1.0, 2.0, 3.0)):
    return x * numbers[x.argmax().item()]  # of numbers


@torch.compile
def told(x, names):
    return x, names[int(x.argmax())]  # of texts


net = torch.compile(Net())
for _ in range(3):
    net(torch.ones(2, 4))
    weigh(torch.ones(3), np.float32(0.7))
    reset(torch.ones(2, 3, 4), torch.tensor([[True, False, True], [False, False, True]]))
    checked(torch.ones(3))
    descend(torch.ones(3))
    named(torch.ones(3), torch.ones(2, 3))
    scaled(torch.ones(3))
    told(torch.ones(3), NAMES)
"""


METHOD = """\
import torch


class Icp:
    @torch.compile
    def step(self, src, dst, most):
        return (src[:, None] - dst[None]).abs().sum(-1).min(1).values.clamp(max=most)

    def turn(self, states, k):
        return turned(states, k)


@torch.compile
def turned(states, k):
    return torch.rot90(states, k, (0, 1))


icp = Icp()
for n in (5, 9):
    cloud, scene = torch.ones(4, 3), torch.ones(n, 3)
    icp.step(cloud, scene, 2.0)
for k in (1, 2, 3):
    turned(torch.ones(4, 4), k)
"""


@pytest.mark.torch
def test_a_compiled_methods_arguments_are_named_after_its_object(warm: WarmScans, tmp_path: Path) -> None:
    report = warm.scan(tmp_path, METHOD)
    (sized,) = (one for one in report.findings if one.code == "BS201")
    assert "maybe_mark_dynamic(scene, 0)" in str(sized.advice)
    (turns,) = (one for one in report.findings if one.code == "BS207")
    assert "torch.rot90 (line 15) takes it as a constant" in str(turns.advice)


@pytest.mark.torch
def test_advice_fits_what_the_names_were(warm: WarmScans, tmp_path: Path) -> None:
    report = warm.scan(tmp_path, PROGRAM)
    said: dict[str, str] = {}
    for finding in report.findings:
        mark = (finding.location.source or "").rpartition("  # ")[2]
        if finding.kind != "recompile":
            said[mark] = f"{said.get(mark, '')}{finding.advice}"
    assert "keep out.max().detach() in its place" in said["hook"]
    assert "return `out.max()`" not in said["hook"]  # it would take the place of what the module gives
    assert "`self.r` is a tensor of one number" in said["held"]
    assert said["numpy"].startswith("The value comes out of numpy")
    assert "(the mask as rows[..., None])" in said["rows"]
    assert "caught in the same function (line 39)" in said["caught"]
    assert "done = done | (x.sum() < 1)" in said["stop"]
    assert "torch.tensor(numbers)" in said["of numbers"]
    assert "picks from `names`, which is a list, dict or text of Python's" in said["of texts"]
    (read,) = (one for one in report.findings if one.location.source == "i = x.argmax().item()")
    assert "weights.index_select(dim, i.reshape(1))" in str(read.advice)
