"""Which of a call's sizes a loop runs over, and where a loop or an operation makes a number of one."""

from __future__ import annotations

from pathlib import Path

import pytest
from warm_scanning import WarmScans, coded

from breakscope.diagnose.made_of import Side, made_of
from breakscope.project.sources import Sources

pytestmark = pytest.mark.torch

DECODER = """
    import torch
    class Decoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = torch.nn.Linear(8, 8)
        def forward(self, memory, frames):
            go = memory.new_zeros(1, memory.size(0), 8)
            frames = torch.cat((go, frames.permute(2, 0, 1)), 0)
            torch._dynamo.graph_break()
            ctx, outs = memory.mean(1), []
            while len(outs) < frames.size(0) - 1:
                ctx = torch.tanh(self.cell(frames[len(outs)] + ctx))
                outs.append(ctx)
            return torch.stack(outs)
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.dec = torch.nn.Embedding(20, 8), Decoder()
        def forward(self, inputs):
            text, frames = inputs
            return self.dec(self.emb(text), frames)
    net = torch.compile(Net())
    with torch.no_grad():
        for n, t in [(6, 4), (7, 5), (5, 4), (6, 5), (9, 4), (8, 5)]:
            net((torch.randint(0, 20, (3, n)), torch.randn(3, 8, t)))
"""


def test_the_size_that_a_loop_runs_over_is_told_from_one_that_changes_with_it(
    warm: WarmScans, tmp_path: Path
) -> None:
    """What is guarded is one less than the one size and one more than the other: its source tells which."""
    report = warm.scan(tmp_path, DECODER)
    sizes = {
        f"{one.guard.source} {one.guard.dimension}": str(one.advice or one.expected)
        for one in coded(report, "BS201")
        if one.guard is not None
    }
    assert "The size of frames follows dimension 2 of inputs[1], of the call" in sizes["frames 0"]
    assert "a loop (line 12)" in sizes["frames 2"]
    assert "line 12" not in sizes["inputs[0] 1"]


SIDES = """
class Net:
    def forward(self, batch, x, n):
        text, image = batch
        rows, columns = image.shape
        a = x.transpose(1, 2)
        b = x.view(rows, -1)
        c = torch.zeros(text.size(1), 4)
        d = batch["mask"].unsqueeze(1)
        e = torch.cat([x, image], dim=1)
        x = x.permute(2, 0, 1)
        f = x
        x = image
        if n:
            x = text
        return a, b, c, d, e, f, x
"""


@pytest.mark.parametrize(
    ("name", "dimension", "sides"),
    [
        ("a", 1, {("x", None, 2)}),
        ("b", 0, {("batch", 1, 0)}),
        ("c", 0, {("batch", 0, 1)}),
        ("c", 1, set()),
        ("d", 1, set()),
        ("d", 2, {("batch", "mask", 1)}),
        ("e", 1, {("x", None, 1), ("batch", 1, 1)}),
        ("f", 0, {("x", None, 2)}),
        ("x", 0, {("batch", 1, 0), ("batch", 0, 0)}),
        ("columns", None, {("batch", 1, 1)}),
    ],
)
def test_sides_are_followed_to_what_is_passed(
    tmp_path: Path, name: str, dimension: int | None, sides: set[Side]
) -> None:
    (tmp_path / "net.py").write_text(SIDES)
    found = made_of(Sources(), name, dimension, (str(tmp_path / "net.py"), 16), ())
    assert found is not None
    assert found.sides == sides


def test_what_an_operation_makes_of_a_root_of_a_size_is_a_number(warm: WarmScans, tmp_path: Path) -> None:
    script = """
        import torch
        @torch.compile
        def f(x):
            h = torch.zeros(1, x.size(0), 8)
            torch.nn.init.xavier_uniform_(h)
            return x + h[0]
        for n in (4, 2, 3, 5):
            f(torch.ones(n, 8))
    """
    [finding] = coded(warm.scan(tmp_path, script), "BS201")
    assert "an operation (line 6: _no_grad_uniform_ of torch's init.py)" in str(finding.advice)
    assert "dynamic=True does not help" in str(finding.advice)


RNN = """
    import torch
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = torch.nn.GRU(8, 8, batch_first=True)
        def turn(self, x, h):
            return self.rnn(x, h)
        def forward(self, x):
            h, outs = None, []
            for t in range(x.size(1)):
                out, h = self.turn(x[:, t : t + 1], h)
                outs.append(out)
            return torch.cat(outs, 1)
    net = torch.compile(Net())
    with torch.no_grad():
        for n in (3, 4, 5, 3):
            net(torch.ones(2, n, 8))
"""


def test_an_rnn_in_a_loop_names_the_loop_that_is_unrolled_with_it(warm: WarmScans, tmp_path: Path) -> None:
    report = warm.scan(tmp_path, RNN)
    [finding] = [one for one in report.findings if "allow_rnn" in str(one.advice)]
    loop = (
        "The loop in line 11 of Net.forward is unrolled with it then, a version for each number of its turns"
    )
    assert loop in str(finding.advice)
    allowed = RNN.replace("import torch\n", "import torch\n    torch._dynamo.config.allow_rnn = True\n", 1)
    after = warm.scan(tmp_path, allowed)
    assert [one for one in after.findings if one.kind in ("skip", "graph_break")] == []
    [size] = coded(after, "BS201")
    assert size.counts.occurrences == 2
    assert "compile what the loop does and leave the loop to Python" in str(size.advice)


def test_a_comprehensions_iterator_is_not_named_beside_itself(warm: WarmScans, tmp_path: Path) -> None:
    report = warm.scan(
        tmp_path,
        """
        import torch
        @torch.compile
        def f(x):
            n = x.size(1)
            parts = [x[:, at] for at in range(n)]
            for part in parts:
                print(end="")
            return sum(parts)
        for n in (3, 4, 5):
            f(torch.ones(4, n))
        """,
    )
    assert [one for one in report.findings if ".0 changed" in str(one.advice)] == []
    assert any("comprehension's iterator" in str(one.guard and one.guard.source) for one in report.findings)


def test_a_list_of_items_of_other_lengths_is_no_batch(warm: WarmScans, tmp_path: Path) -> None:
    script = """
        import torch
        @torch.compile
        def f(series):
            return sum(one.sum() for one in series)
        for lengths in {}:
            f([torch.ones(n, 3) for n in lengths])
    """
    lists = warm.scan(tmp_path, script.format("[(40, 64, 50), (33, 64, 20), (64, 30)]"))
    [items] = coded(lists, "BS211")
    assert "keep it the same (drop_last=True where they are the samples of a batch)" in str(items.advice)
    assert coded(lists, "BS201")
    of_data = "; where that is a last, smaller part of the data, to leave it out saves this"
    assert not any(of_data in str(one.expected or one.advice) for one in coded(lists, "BS201"))
    batches = warm.scan(tmp_path, script.format("[(40, 40), (33, 33)]"))
    assert any(of_data in str(one.expected or one.advice) for one in coded(batches, "BS201"))


def test_a_random_choice_in_each_turn_is_one_for_torch_where(warm: WarmScans, tmp_path: Path) -> None:
    """The number is held under a name first: in a list each pattern of answers would be a graph."""
    script = """
        import random, torch
        @torch.compile
        def f(x, rate):
            outs, held = [], x[0]
            for t in range(1, x.size(0)):
                held = torch.tanh(held)
                outs.append(held)
                {}
                held = {}
            return torch.stack(outs)
        for _ in range(4):
            f(torch.ones(5, 3), 0.5)
    """
    drawn = script.format("follow = random.random() < rate", "x[t] if follow else held")
    [finding] = [one for one in warm.scan(tmp_path, drawn).findings if one.kind == "skip"]
    told = "compute both and select with torch.where(torch.rand(()) < rate, …, …)"
    assert told in str(finding.advice)
    where = script.format("pass", "torch.where(torch.rand(()) < rate, x[t], held)")
    assert [one for one in warm.scan(tmp_path, where).findings if one.kind != "recompile"] == []


def test_what_else_of_the_loop_draws_is_named_beside_an_rnn(warm: WarmScans, tmp_path: Path) -> None:
    report = warm.scan(
        tmp_path,
        """
        import random, torch
        class Cell(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn = torch.nn.GRU(8, 8)
            def forward(self, x, h):
                return self.rnn(x[None], h)
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.cell = Cell()
            def forward(self, x, rate):
                h, outs, held = None, [], x[0]
                for t in range(1, x.size(0)):
                    out, h = self.cell(held, h)
                    outs.append(out[0])
                    held = x[t] if random.random() < rate else out[0]
                return torch.stack(outs)
        net = torch.compile(Net())
        for _ in range(3):
            net(torch.ones(5, 3, 8), 0.5)
        """,
    )
    [finding] = [one for one in report.findings if "allow_rnn" in str(one.advice)]
    assert "Line 18 of the loop breaks the graph as well" in str(finding.advice)


def test_a_range_that_is_listed_from_a_tensor_is_pythons(warm: WarmScans, tmp_path: Path) -> None:
    script = """
        import torch
        @torch.compile
        def f(x):
            dims = {}
            return x.mean(dim=dims, keepdim=True)
        for _ in range(2):
            f(torch.ones(2, 3, 4))
    """
    [finding] = coded(warm.scan(tmp_path, script.format("torch.arange(1, len(x.shape)).tolist()")), "BS102")
    assert str(finding.advice).startswith("Write list(range(1, len(x.shape))) in its place")
    assert warm.scan(tmp_path, script.format("list(range(1, len(x.shape)))")).findings == ()


def test_a_last_batch_is_in_the_dimension_that_all_tensors_share(warm: WarmScans, tmp_path: Path) -> None:
    report = warm.scan(
        tmp_path,
        """
        import torch
        @torch.compile
        def f(source, target):
            return source.sum(0) + target.sum(0)
        loader = ((8, 7, 4), (8, 6, 4), (8, 6, 2))
        for s, t, b in loader:
            f(torch.ones(s, b), torch.ones(t, b))
        """,
    )
    said = {
        (one.guard.source, one.guard.dimension): str(one.expected)
        for one in coded(report, "BS201")
        if one.guard is not None
    }
    assert "drop_last" not in said["target", 0]
    assert (
        "an epoch's last batch of a DataLoader (dimension 1 of source holds it), drop_last=True"
        in said["source", 1]
    )


def test_of_several_bounds_the_least_is_named(warm: WarmScans, tmp_path: Path) -> None:
    report = warm.scan(
        tmp_path,
        """
        import torch
        @torch.compile
        def f(x):
            y = x * 2 if x.size(0) < 30 else x
            return y + 1 if 4 * x.size(0) < 16 else y
        with torch.no_grad():
            for n in (2, 3):
                f(torch.ones(n, 5))
        """,
    )
    [size] = coded(report, "BS201")
    assert "after which torch takes any for which 4 * x.size(0) < 16 (line 6) has the same answer" in str(
        size.expected or size.advice
    )
