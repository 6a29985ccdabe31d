"""A statement that advice writes without its break does the same, and is not written where it may do more."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

import pytest
import torch
from test_becomes import around

from breakscope.diagnose import restated

pytestmark = pytest.mark.torch


def piece(way: Sequence[ast.AST]) -> str:
    before = "n = 2; p = j[:1] + 1; "
    return before + restated.piece(way, "p")


# (what writes it, the body of a function; what broke stands between the last marks)
SAME = (
    (restated.branch, "r = x.abs() / y if [[x.sum() > 0 and y.sum() > 0]] else 1.0"),
    (restated.branch, "r = x.abs() if [[i.sum()]] else y.abs()"),
    (restated.store, "h[b, 1] = [[x[b]]]"),
    (restated.branch, "if [[x.max() > 3]]:\n    x = x / 2"),
    (restated.branch, "if [[x.max().item() > 3]]:\n    x *= 2"),
    (restated.branch, "if table is not None and not [[(x > 0).all()]]:\n    x = x * y"),
    (restated.branch, "if len(table) > 5 and len(x) > 0 and [[x.max() > 3]]:\n    x = x * 2"),
    (restated.branch, "if [[x.max() > 3]]:\n    x = x * (~(h > 0)[:, 0])"),
    (restated.branch, "if not [[torch.isfinite(x).all()]]:\n    x = torch.zeros_like(x)"),
    (restated.branch, "if [[x.min() < 0]] or x.sum() < 0:\n    z = x.abs()\nelse:\n    z = y.abs() + 1"),
    (restated.store, "[[i[(j > 0) & (i == j)]]] -= 1"),
    (restated.store, "x[x > 1] = [[y[x > 1]]] * 2"),
    (restated.store, "x[x > 1] = [[x[x > 1]]].exp().clamp(max=3)"),
    (restated.store, "x[x > 1] = table['far'][ [[i[x > 1]]] ] + 1"),
    (
        restated.tally,
        "for n in range(4):\n    for m in range(3):\n        h[n, [[at[n, m]]] ] += w[n, m].exp() * 2",
    ),
    (restated.tally, "for a, b in zip(i, j):\n    h[ [[a]], b] += 1"),
    (
        restated.tally,
        "for n in range(4):\n    for m in range(3):\n        h[n, [[at[n, m]]] ] += w[n, m]; h[n, at[n, m] - 0] += w[n, m] * 2",
    ),
    (piece, "n = 2\np = j[:1] + 1\nh[:, p : p + n] = w[:, : [[n]] ]"),
    (piece, "n = 2\np = j[:1] + 1\nh[:, p : p + n] = w[:, : [[n]] ].mean()"),
    (restated.tally, "for n in range(4):\n    c[int([[i[n]]])] += x[n]"),
    (restated.tally, "for n in range(4):\n    c[ [[i[n].item()]] ] += x[n].item()"),
)
MORE = (
    (restated.branch, "return 2 if [[x.max() > 3]] else 1"),
    (restated.branch, "if [[x.max() > 3]]:\n    x = x[:2]"),
    (restated.branch, "if [[x.max() > 3]]:\n    x = x / 2\n    y = x + 1"),
    (restated.branch, "if [[x.max() > 3]]:\n    x = x / 2\n    print(x)"),
    (restated.branch, "if [[x.max() > 3]]:\n    n = n + 1"),
    (restated.branch, "if [[len(x) > 0 and x.max() > 3]]:\n    x = x / 2"),
    (restated.store, "s = [[x[k]]]\nx[k] = s"),
    (restated.store, "x[k] = net([[x[k]]])"),
    (restated.store, "w = net(x[k])\nx[k] = [[y[k]]] * w"),
    (restated.store, "x[k] = [[x[k]]] - x[k].mean()"),
    (restated.store, "x[k, n] = [[y[k]]]"),
    (restated.tally, "for n in range(4):\n    at = i[n]\n    c[ [[at]] ] += x[n]"),
    (restated.tally, "for n in range(4):\n    c[ [[i[n]]] ] += f(x[n])"),
    (restated.tally, "for n in range(4):\n    c[ [[i[n]]] ] -= x[n]"),
    (restated.tally, "for n in range(4):\n    if x[n] > 0:\n        c[ [[i[n]]] ] += 1"),
)
Writes = Callable[[Sequence[ast.AST]], str]


def run(code: str) -> dict[str, torch.Tensor]:
    """What tensors hold after a piece of code."""
    names = {
        "x": torch.tensor([4.0, -1.0, 2.0, 0.5]),
        "y": torch.tensor([1.0, 2.0, 3.0, 4.0]),
        "i": torch.tensor([0, 2, 1, 2]),
        "j": torch.tensor([0, 2, 2, 1]),
        "at": torch.tensor([[0, 1, 1], [2, 2, 2], [0, 3, 0], [1, 0, 3]]),
        "w": torch.arange(12.0).reshape(4, 3) / 9,
        "h": torch.zeros(4, 4),
        "b": torch.tensor([True, False, True, False]),
        "c": torch.zeros(4),
        "table": {"far": torch.arange(4.0)},
        "torch": torch,
    }
    exec(code, names)
    kept = ("x", "i", "r", "z", "h", "c")
    return {name: names[name] for name in kept if isinstance(names.get(name), torch.Tensor)}  # type: ignore[misc]


@pytest.mark.parametrize(("write", "body"), SAME, ids=[str(n) for n in range(len(SAME))])
def test_what_is_written_gives_the_same(write: Writes, body: str) -> None:
    way = around(body)
    function = next(node for node in way if isinstance(node, ast.FunctionDef))
    told = write(way)
    assert told
    old, new = run(ast.unparse(ast.Module(function.body, []))), run(told)
    assert old.keys() == new.keys()
    for name in old:
        torch.testing.assert_close(new[name], old[name].to(new[name].dtype))


@pytest.mark.parametrize(("write", "body"), MORE, ids=[str(n) for n in range(len(MORE))])
def test_what_does_more_is_not_written(write: Writes, body: str) -> None:
    assert write(around(body)) == ""


@pytest.mark.parametrize(
    ("told", "body"),
    [
        (
            "xs = [torch.where(x.max() > 3, v / 2, v) for v in xs]",
            "if [[x.max() > 3]]:\n    xs = [v / 2 for v in xs]",
        ),
        ("torch.where(x.max() > 3, 0.5, -0.5)", "x += 0.5 if [[x.max() > 3]] else -0.5"),
    ],
)
def test_lists_and_parts_of_expressions_are_selected_as_well(told: str, body: str) -> None:
    assert restated.branch(around(body)) == told
