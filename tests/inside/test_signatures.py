"""Each compile knows with what the outermost compiled call was called, and where that call stands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from scanning import Scanned

from breakscope.report.model import Signature

pytestmark = pytest.mark.torch

SCRIPT = """
    import os
    import torch
    from torch import nn

    class Inner(nn.Module):
        def forward(self, h, mask):
            h = h * mask
            torch._dynamo.graph_break()
            return h + 1

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, batch, *, scale=1.0, name=None, note=None):
            return self.inner(batch["x"], batch["mask"]) * scale

    class Index:
        @torch.compile
        def add(self, rows, count):
            return rows + count

    net = torch.compile(Net().eval())
    x = torch.randn(3, 4).t()
    with torch.no_grad():
        y = net({"x": x, "mask": x}, scale=float("inf"), name=os.environ["SECRET_TOKEN"], note="n" * 500)
    add = Index().add
    add(torch.ones(2, dtype=torch.int64),
        7)
    add(torch.ones(3, dtype=torch.int64), 7)
"""

TENSOR = {"shape": [4, 3], "dtype": "float32", "device": "cpu", "requires_grad": False, "stride": [1, 4]}


def by_entry(signatures: tuple[Signature, ...], entry: str) -> list[Signature]:
    return [one for one in signatures if one.entry == entry]


def test_the_outermost_call_of_each_compile(scan: Callable[..., Scanned], tmp_path: Path) -> None:
    scanned = scan(SCRIPT, SECRET_TOKEN="hunter-2-hunter")
    report = scanned.report
    assert report.run.status == "ok", scanned.stderr
    assert len(report.signatures) == report.reconciliation.dynamo["compilation_metrics"]

    net = by_entry(report.signatures, "Net")
    # The break in Inner makes frames of their own; all of them came of the one call of Net.
    assert {one.function for one in net} >= {"Inner.forward"}
    assert {one.number for one in net} == {0}
    for one in net:
        assert (one.module, one.training, one.grad, one.inference, one.autocast) == (
            True,
            False,
            False,
            False,
            None,
        )
        assert one.parameters == ("batch", "scale", "name", "note")
        assert one.arguments == {
            "args": [{"dict": {"x": {"tensor": TENSOR}, "mask": {"same": "args[0]['x']"}}}],
            "kwargs": {
                "scale": {"float": "inf"},
                "name": {"str": "<environment>"},
                "note": {"object": "str of 500 characters"},
            },
        }
        assert one.call is not None
        assert one.call.source is not None
        assert one.call.source.startswith('y = net({"x": x')
        assert (one.call.column, one.call.owner) == (9, "project")
    inner = next(one for one in net if one.function == "Inner.forward")
    assert inner.origins["h"] == inner.origins["mask"] == "args[0]['x']"
    assert "hunter-2-hunter" not in (tmp_path / ".breakscope" / "latest.json").read_text()

    first, second = by_entry(report.signatures, "Index.add")
    assert (first.module, first.training, first.parameters) == (False, None, ("self", "rows", "count"))
    assert first.arguments["args"][0] == {"object": "Index object"}
    assert first.arguments["args"][2] == {"int": 7}
    assert first.origins["rows"] == "args[1]"
    assert first.grad
    assert (first.number, second.number) == (1, 2)
    assert first.call is not None
    assert second.call is not None
    assert first.call.end_line == first.call.line + 1
    assert second.call.line == first.call.line + 2
    assert Path(first.call.file).samefile(tmp_path / "script.py")


def test_objects_that_know_each_other_are_looked_into_once() -> None:
    """Forty objects that all know all others would be more ways than there is time for."""
    import torch

    from breakscope.inside.capture.signatures import _held_by_objects

    class Node:
        def __init__(self) -> None:
            self.x = torch.ones(2)
            self.others: list[Node] = []

    nodes = [Node() for _ in range(40)]
    for node in nodes:
        node.others = nodes
    held = _held_by_objects((nodes[0],), {})
    assert held["args[0].x"]["shape"] == [2]
    assert len(held) == len(nodes)


def test_a_method_of_a_module_has_its_own_name_and_parameters(scan: Callable[..., Scanned]) -> None:
    scanned = scan("""
        import torch

        class Net(torch.nn.Module):
            def forward(self, batch):
                return batch["x"]

            def encode(self, tokens, scale):
                return tokens * scale

        encode = torch.compile(Net().encode)
        encode(torch.ones(2), 2.0)
    """)
    (one,) = scanned.report.signatures
    assert (one.entry, one.parameters, one.module) == ("Net.encode", ("tokens", "scale"), False)
