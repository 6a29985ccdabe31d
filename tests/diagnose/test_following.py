"""What would go when a finding goes is said to follow from it; advice names what the person can change."""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from report_samples import BRANCH, ITEM
from warm_scanning import WarmScans, coded

from breakscope.diagnose import library_advice, reach
from breakscope.diagnose.arguments import leaves
from breakscope.diagnose.following import _is_comprehension_of as is_comprehension_of
from breakscope.diagnose.guard_advice import describe, remedy
from breakscope.diagnose.guard_uses import _is_looped
from breakscope.diagnose.records import BreakRecord, RawFrame, with_compiled_frame
from breakscope.project.sources import Sources
from breakscope.render import markdown, terminal
from breakscope.report.model import Finding, Guard, Report, SkippedFrame
from breakscope.view.following import counted, following

torch = pytest.mark.torch
Scan = Callable[..., Report]


@pytest.fixture
def scan(warm: WarmScans, tmp_path: Path) -> Scan:
    return lambda source, *options: warm.scan(tmp_path, source, *options)


def causes(report: Report) -> list[Finding]:
    return [finding for finding in report.findings if finding.caused_by is None]


def only(report: Report, code: str) -> Finding:
    (finding,) = (one for one in causes(report) if one.code == code)
    return finding


LENGTHS = """
    import torch

    class Layer(torch.nn.Module):
        def forward(self, h, mask):
            h = h * 2
            print(end="")
            return h * mask[..., None]

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = torch.nn.Embedding(50, 8)
            self.layer = Layer()

        def forward(self, input_ids, attention_mask):
            h = self.layer(self.embedding(input_ids), attention_mask)
            return self.layer(h * 2, attention_mask).sum(1)

    net = torch.compile(Net())
    for n in (7, 9, 12):
        batch = {"input_ids": torch.randint(0, 50, (2, n)), "attention_mask": torch.ones(2, n)}
        net(**batch)
"""


@torch
def test_all_that_one_length_has_compiled_again_is_one_cause(scan: Scan) -> None:
    report = scan(LENGTHS)
    assert sum(finding.kind == "recompile" for finding in report.findings) >= 3
    size = only(report, "BS201")
    assert {one.caused_by for one in report.findings if one.kind == "recompile"} == {None, size.fingerprint}
    advice = str(size.advice)
    assert "Dimension 1 of batch['input_ids'] (with batch['attention_mask'])" in advice
    assert "the call at script.py:23" in advice
    assert "dynamic=True" in advice
    assert "pad_to_multiple_of=" in advice


@torch
@pytest.mark.parametrize(("second", "is_said"), [(0.1, False), (0.2, True)])
def test_a_size_is_not_saved_where_another_guard_fails_at_the_call(
    scan: Scan, second: float, is_said: bool
) -> None:
    report = scan(f"""
        import torch

        @torch.compile
        def f(x, p):
            return torch.nn.functional.dropout(x, p)

        for n, p in ((2, 0.1), (3, {second}), (3, 0.3), (3, 0.4)):
            f(torch.ones(n), p)
    """)
    told = [str(one.advice) for one in (*coded(report, "BS201"), *coded(report, "BS207"))]
    assert any(re.search("(p|dimension 0 of x) changed at the same call", one) for one in told) == is_said


@torch
def test_lists_show_causes_and_count_what_follows(scan: Scan) -> None:
    # Where torch makes the size dynamic, one compile more is expected, and not among the findings.
    report = scan(LENGTHS.replace("torch.compile(Net())", "torch.compile(Net(), dynamic=False)"))
    follow = len(report.findings) - len(causes(report))
    brief, full = (
        terminal.render(report, width=120, color=False, everything=everything) for everything in (False, True)
    )
    assert f"+ {follow} that follow: {follow} BS201 (--all shows them)" in brief
    assert brief.count("BS201 ") == 2  # its head, and the count
    assert full.count("follows from BS201 at script.py:16") == follow
    assert markdown.render(report).count("**fingerprint**") == len(causes(report))


@torch
def test_a_size_of_one_is_not_said_to_be_made_dynamic(scan: Scan) -> None:
    single = LENGTHS.replace("for n in (7, 9, 12):", "for b, n in ((4, 7), (1, 7)):").replace(
        "(2, n)", "(b, n)"
    )
    report = scan(single)
    advice = str(only(report, "BS201").advice)
    assert "sizes 0 and 1 apart" in advice
    assert "drop_last=True" in advice
    assert "dynamic=True" not in advice


DRAWN = """
    import torch
    import random

    @torch.compile
    def f(x):
        x = x + 1
        rate = random.Random(x.shape[0]).random() if x.shape[0] > 99 else x.max().item()
        return x * rate

    for step in range(4):
        f(torch.full((3,), float(step)))
"""


@torch
def test_a_number_that_a_break_hands_on_follows_from_the_break(scan: Scan) -> None:
    report = scan(DRAWN)
    read = only(report, "BS102")
    again = [finding for finding in report.findings if finding.kind == "recompile"]
    assert [finding.caused_by for finding in again] == [read.fingerprint] * len(again)
    assert again
    assert all("Goes with BS102 at script.py:8 (f)" in str(finding.advice) for finding in again)


HANDED_ON = """
    import torch

    def scaled(h, y):
        print(end="")
        return h * y

    def outer(x, y):
        print(end="")
        return scaled(x + 1, y) * 2

    run = torch.compile(outer)
    for y in (torch.ones(3), torch.ones(3, dtype=torch.int64)):
        run(torch.ones(3), y)
"""


@torch
def test_what_a_tensor_of_another_kind_has_compiled_again_is_one_finding(scan: Scan) -> None:
    report = scan(HANDED_ON)
    passed = only(report, "BS203")
    again = [one for one in report.findings if one.code == "BS203" and one.caused_by is not None]
    assert passed.location.function == "outer"
    assert "two kinds of data" in str(passed.advice)
    assert {one.caused_by for one in again} == {passed.fingerprint}


ALONE = """
    import torch

    def scaled(h, bias=None):
        return h * 2 if bias is None else h * 2 + bias

    class Net(torch.nn.Module):
        def forward(self, x):
            for n in range(3):
                print(end="")
                x = scaled(x, None if n % 2 else x)
            return x

    net = torch.compile(Net())
    for _ in range(3):
        net(torch.ones(3))
"""


COUNTED = """
    import torch

    class Cell(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.steps = 0

        def forward(self, x):
            self.steps += 1
            return x * 2 if self.steps % 3 == 0 else x + 1

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = Cell()

        def forward(self, x):
            for _ in range(3):
                x = self.cell(x)
                print(end="")
            return x

    net = torch.compile(Net())
    for _ in range(3):
        net(torch.ones(3))
"""


@torch
@pytest.mark.parametrize("calls", [3, 1])
def test_what_counts_on_from_call_to_call_does_not_go_with_a_break(scan: Scan, calls: int) -> None:
    """Without the break each call of the whole is compiled for where the count stands."""
    report = scan(
        COUNTED.replace("for _ in range(3):\n        net(", f"for _ in range({calls}):\n        net(")
    )
    counter = next(one for one in causes(report) if one.guard and one.guard.source == "self.steps")
    assert "self.steps" in str(counter.advice)
    assert "do what is said there" not in str(counter.advice)


@torch
def test_a_list_that_grows_from_call_to_call_does_not_go_with_a_break(scan: Scan) -> None:
    logged = COUNTED.replace("self.steps = 0", "self.seen = []").replace(
        "self.steps += 1", "self.seen.append(len(self.seen))"
    )
    report = scan(logged.replace("self.steps % 3", "len(self.seen) % 3"))
    grown = [one for one in causes(report) if one.guard and one.guard.source == "self.seen"]
    assert grown
    assert all("do what is said there" not in str(one.advice) for one in grown)


LAYERS = """
    import torch
    from torch import nn

    class Pad(nn.Module):
        def forward(self, x):
            print(end="")
            x = nn.functional.pad(x, (2, 0))
            return torch.cat([x, x], 1)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([Pad(), Pad(), Pad()])

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    net = torch.compile(Net())
    for length in (16, 20, 24):
        net(torch.ones(2, 1, length))
"""


@torch
def test_a_size_that_is_the_layers_own_is_not_led_to_a_size_of_the_call_when_it_comes_again(
    scan: Scan,
) -> None:
    report = scan(LAYERS)
    site = only(report, "BS104")
    channels = [one for one in report.findings if one.guard and one.guard.dimension == 1]
    assert channels
    assert all(one.caused_by == site.fingerprint for one in channels)
    assert all("Torch compiles sizes 0 and 1 apart" not in str(one.advice) for one in channels)


LIMIT_OF_LAYERS = """
    import torch
    from torch import nn

    class Scale(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.n = n

        def forward(self, x):
            print(end="")
            return x * self.n

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([Scale(n) for n in range(10)])

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    net = torch.compile(Net())
    net(torch.ones(3))
"""


@torch
def test_a_limit_of_a_function_that_only_a_break_makes_one_of_its_own_goes_with_that(scan: Scan) -> None:
    report = scan(LIMIT_OF_LAYERS)
    (limit,) = coded(report, "BS303")
    assert limit.caused_by == only(report, "BS104").fingerprint
    assert "Without that break Scale.forward is compiled as part of what calls it. Goes with BS104" in str(
        limit.advice
    )


GIVEN_UP = """
    import torch
    from torch import nn

    def drop(x, p):
        mask = x.new_ones(x.shape).bernoulli_(1 - p)
        print(end="")
        return mask * x

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnns = nn.ModuleList([nn.LSTM(4, 4), nn.LSTM(4, 4)])

        def forward(self, x):
            x = drop(x, 0.5)
            for rnn in self.rnns:
                x, _ = rnn(x)
                x = drop(x, 0.3)
            return drop(x, 0.2)

    net = torch.compile(Net())
    net(torch.ones(5, 2, 4))
"""


@torch
def test_a_break_that_gives_up_the_caller_is_named_beside_the_functions_own(scan: Scan) -> None:
    """With the function's own break repaired alone it is compiled by itself all the same."""
    report = scan(GIVEN_UP)
    (rate,) = (one for one in report.findings if one.guard is not None and one.guard.source == "p")
    (rnn,) = (one for one in report.findings if "LSTM" in one.title and one.kind != "recompile")
    site = only(report, "BS104")
    for one in (rnn, site):
        assert f"script.py:{one.location.line} " in str(rate.advice) or (
            f"and those at line {one.location.line} " in str(rate.advice)
        )


LOGGED = """
    import logging
    import torch
    from torch import nn

    logging.basicConfig(level=logging.INFO)
    log = logging.getLogger("net")

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            if self.calls % 3 == 0:
                log.info("call %d mean %.3f", self.calls, x.mean())
            return x * 2

    net = torch.compile(Net())
    for rows in range(4, 11):
        net(torch.ones(rows, 3))
"""


@torch
def test_what_is_found_inside_of_logging_goes_with_the_line_that_logs(scan: Scan) -> None:
    """The number that is logged is no size, and nobody takes the time but the record of the message."""
    report = scan(LOGGED)
    (line,) = (one for one in coded(report, "BS104") if one.location.function == "Net.forward")
    inside = [one for one in report.findings if "logging" in one.location.file]
    assert {"BS126", "BS207"} <= {one.code for one in inside}
    assert {one.caused_by for one in inside} == {line.fingerprint}


HELD_UNREAD = """
    from dataclasses import dataclass
    import torch

    @dataclass
    class Batch:
        features: torch.Tensor
        targets: torch.Tensor

    @torch.compile
    def loss(scores, batch):
        return ((scores - batch.targets) ** 2).mean()

    for length in (5, 7, 6):
        scores, batch = torch.ones(2, length), Batch(torch.ones(2, length, 3), torch.ones(2, length))
        loss(scores, batch)
"""


@torch
def test_what_an_object_holds_and_the_function_does_not_read_is_not_to_be_marked(scan: Scan) -> None:
    advice = str(only(scan(HELD_UNREAD), "BS201").advice)
    assert "maybe_mark_dynamic(scores, 1)" in advice
    assert "maybe_mark_dynamic(batch.targets, 1)" in advice
    assert "features" not in advice


SIZE_OF_DATA = """
    import torch

    def double(x):
        return x.relu() * 2

    @torch.compile
    def run(x, sizes):
        rows = []
        for size in sizes:
            size = int(size.item())
            rows.append(double(x.reshape(36 // size, size)).reshape(-1))
        return torch.stack(rows)

    for sizes in ([2, 4], [3, 6], [4, 36]):
        run(torch.randn(36), torch.tensor(sizes))
"""


@torch
def test_a_size_of_one_out_of_data_is_not_to_be_made_dynamic(scan: Scan) -> None:
    report = scan(SIZE_OF_DATA)
    (one,) = coded(report, "BS214")
    assert "sizes 0 and 1 apart from all others, whatever dynamic= says" in str(one.advice)
    assert "breakscope remedy" not in str(one.advice)


WITH_AND_WITHOUT_GRADIENT = """
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x):
            y = self.linear(x)
            print(end="")
            return y.relu()

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([Block(), Block()])

        def forward(self, x):
            for block in self.blocks:
                x = block(x)
            return x

    net = torch.compile(Net())
    for _ in range(3):
        net(torch.randn(2, 4)).sum().backward()
"""


@torch
def test_what_needs_a_gradient_at_some_runs_of_one_call_goes_with_the_break(scan: Scan) -> None:
    report = scan(WITH_AND_WITHOUT_GRADIENT)
    site = only(report, "BS104")
    (gradient,) = coded(report, "BS205")
    assert gradient.caused_by == site.fingerprint
    assert "x that needs a gradient, and one that needs none" in str(gradient.advice)


FILLED = """
    import torch
    from torch import nn

    class Cache:
        def __init__(self, layers):
            self.k = [None] * layers

        def update(self, layer, k):
            if self.k[layer] is None:
                self.k[layer] = k
            else:
                self.k[layer] = torch.cat([self.k[layer], k], 1)
            return self.k[layer]

    class Layer(nn.Module):
        def __init__(self, number):
            super().__init__()
            self.number = number

        def forward(self, x, cache):
            k = cache.update(self.number, x)
            print(end="")
            return x + k.sum()

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([Layer(0), Layer(1)])

        def forward(self, x, cache):
            for layer in self.layers:
                x = layer(x, cache)
            return x

    net, cache = torch.compile(Net()), Cache(2)
    for _ in range(4):
        net(torch.ones(2, 1), cache)
"""


@torch
def test_what_an_object_of_the_calls_own_is_filled_with_does_not_go_with_a_break(scan: Scan) -> None:
    """Without the break it is the caller that is compiled again for what the cache holds."""
    report = scan(FILLED)
    held = [one for one in causes(report) if one.guard and str(one.guard.source).startswith("cache.k[")]
    assert len(held) >= 2
    assert all("do what is said there" not in str(one.advice) for one in held)


@torch
def test_what_is_compiled_by_itself_because_its_caller_broke_follows_from_that_break(scan: Scan) -> None:
    report = scan(ALONE)
    skipped = only(report, "BS301")
    (again,) = (finding for finding in report.findings if finding.kind == "recompile")
    assert again.caused_by == skipped.fingerprint
    assert "Without that break scaled is compiled as part of what calls it" in str(again.advice)


STEPS = """
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.step = 0

        def forward(self, x):
            if x.sum() > 99:
                x = x / 2
            return x * min(1.0, self.step / 8)

    net = Net()
    call = torch.compile(net)
    for batch in torch.ones(18, 4).split(4):
        call(batch)
        net.step += 1
    call(torch.ones(18, 4)[:7])
"""


@torch
def test_a_counter_that_is_read_behind_a_break_is_not_the_breaks(scan: Scan) -> None:
    """Without the break it is guarded all the same; and no size decides where a view begins."""
    report = scan(STEPS)
    counter = only(report, "BS209")
    assert counter.caused_by is None
    assert str(counter.advice).startswith("Make self.step a tensor")
    (offset,) = [one for one in report.findings if one.guard and "offset" in str(one.guard.expected)]
    assert offset.caused_by is None
    assert offset.advice == "Call .clone() on x before the call, so that it starts its own memory"


SIZES_OF_ARGUMENTS = """
from collections import namedtuple
import torch
from torch import nn

Graph = namedtuple("Graph", "x edges")

class Convolution(nn.Module):
    def forward(self, g):
        y = torch.zeros_like(g.x)
        y[g.x > 0] = g.x[g.x > 0]
        return y.sum() + g.edges.sum()

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([Convolution(), Convolution()])

    def forward(self, g):
        out = [part(g) for part in self.parts]
        return out[0] + len(g.x.nonzero())

net = torch.compile(Net())
for n, selected in zip((4, 5, 6), SELECTED):
    x = torch.where(torch.arange(n * 3) < selected, 1.0, -1.0).reshape(n, 3)
    net(Graph(x, torch.ones(2, n)))
"""


# As many each time; numbers of their own; one that is by chance as large as an argument.
@torch
@pytest.mark.parametrize("selected", [(8, 8, 8), (7, 7, 10), (6, 6, 11), (5, 5, 8)])
def test_the_size_of_an_argument_does_not_follow_from_what_is_selected_behind_it(
    scan: Scan, selected: tuple[int, int, int]
) -> None:
    report = scan(SIZES_OF_ARGUMENTS.replace("SELECTED", str(selected)))
    assert [one.code for one in causes(report)] == ["BS105", "BS201"]
    (size,) = [one for one in report.findings if one.guard is not None and one.guard.source == "g.x"]
    assert size.caused_by is None
    assert "g.x" in str(size.advice)
    assert "inside an object" not in str(size.advice)


@torch
def test_a_size_for_which_a_function_and_its_rest_are_compiled_again_is_of_several_parts(scan: Scan) -> None:
    report = scan(
        """
        import torch

        @torch.compile
        def f(x, n):
            x = x * 2
            n.sum().item()
            return x + 1

        for size in (4, 5):
            f(torch.ones(size), torch.ones(3))
        """
    )
    (size,) = coded(report, "BS201")
    assert len(size.counts.compile_ids) == 2
    assert "several parts of one function are compiled again for it" in str(size.advice)


EXPERTS = """
    import torch

    class Expert(torch.nn.Module):
        def forward(self, rows):
            rows = rows * 2
            print(end="")
            return rows + 1

    class Experts(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.expert = Expert()

        def forward(self, x):
            out = torch.zeros(3)
            for number in range(3):
                rows = x[x.argmax(-1) == number]
                out = out + self.expert(rows).sum()
            return out

    net = torch.compile(Experts())
    x = torch.eye(3)[[0, 0, 0, 0, 1, 1, 1, 2, 2]]
    for batch in (x, torch.cat([x, x]), x[:1]):
        net(batch)
"""


def test_a_comprehension_goes_with_what_gave_up_the_function_around_it_in_another_file() -> None:
    """As transformers 5 does in the wrapper of each model, where a layer reads a cached_property."""
    around = "wrapped.<locals>.wrapper"
    place = replace(BRANCH.location, file="/lib/wraps.py", function=f"{around}.<locals>.<dictcomp>")
    comprehension = replace(BRANCH, fingerprint="a", gb_id="GB4347", location=place, stack=())
    given_up = SkippedFrame(around, "/lib/wraps.py", 327, "Unsupported context manager", 6)
    elsewhere = replace(given_up, file="/lib/other.py")
    assert is_comprehension_of(comprehension, replace(ITEM, skipped=(given_up,)))
    assert not is_comprehension_of(comprehension, replace(ITEM, skipped=(elsewhere,)))


PROPERTY = """
    import functools, torch

    class Net(torch.nn.Module):
        @functools.cached_property
        def width(self):
            return 3

        def forward(self, x):
            return x * self.width

    net = Net()
    torch.compile(net)(torch.ones(3))
"""


@torch
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="it takes no lock there")
def test_the_line_that_reads_a_cached_property_is_named(scan: Scan) -> None:
    (site,) = causes(scan(PROPERTY))
    assert "Read the property of `return x * self.width` (script.py:10) once" in str(site.advice)
    assert not scan(PROPERTY.replace("torch.compile(net)", "net.width; torch.compile(net)")).findings


@torch
def test_what_data_chose_once_is_of_data_also_where_it_is_as_large_as_an_argument(scan: Scan) -> None:
    report = scan(EXPERTS)
    loop = next(one for one in report.findings if one.code == "BS301")
    rows = [one for one in report.findings if one.guard is not None and one.guard.source == "rows"]
    assert {one.code for one in rows} == {"BS201", "BS214"}
    assert {one.caused_by for one in rows} == {loop.fingerprint}


@torch
def test_what_a_module_makes_of_a_selection_is_what_is_reduced(scan: Scan) -> None:
    loop = next(one for one in scan(EXPERTS).findings if one.code == "BS301")
    assert "torch.zeros(3).index_add(0, x.argmax(-1), value) for sums" in str(loop.advice)
    assert "value is what is reduced, computed of all elements" in str(loop.advice)


STEPPED = """
    import torch

    net = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(net.parameters(), 0.1)

    @torch.compile
    def step(net, optimizer, x):
        loss = net(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    for n in (8, 8, 4, 6):
        step(net, optimizer, torch.randn(n, 5))
"""


@torch
def test_a_batch_as_large_as_a_layer_is_no_size_that_torch_takes_for_the_same(scan: Scan) -> None:
    advice = [str(one.advice) for one in scan(STEPPED).findings if one.code == "BS201"]
    assert advice
    assert not any("as large at the first call, and dynamic=True takes" in one for one in advice)


KINDS = """
    import torch, torch.nn.functional as F

    @torch.compile
    def loss_of(out, y, weights, kind):
        loss = F.mse_loss(out[:, :1], y) if y.dtype == torch.float32 else F.cross_entropy(out, y)
        return loss * weights[kind]

    for w, n, kind in ((.5, 4, "a"), (.5, 4, "b"), (.5, 4, "a"), (.5, 3, "b"), (.6, 4, "a"), (.6, 4, "b")):
        y = torch.randn(n, 1) if kind == "a" else torch.randint(0, 3, (n,))
        loss_of(torch.randn(n, 3), y, {"a": 1.0, "b": w}, kind)
"""


@torch
def test_a_recompile_is_that_of_the_version_for_the_same_kind_not_of_the_one_used_last(scan: Scan) -> None:
    report = scan(KINDS)
    again = {(one.code, one.guard.source): one.counts.occurrences for one in report.findings}
    assert again == {("BS203", "y"): 1, ("BS201", "y"): 1, ("BS207", "weights['b']"): 1}
    (size,) = coded(report, "BS201")
    assert "Where y changed at the same call" not in str(size.advice)


UNROLLED = """
    import torch

    @torch.compile
    def gains(rewards, values, dones):
        kept, g = torch.zeros_like(rewards), 0.0
        for t in reversed(range(rewards.shape[0])):
            g = rewards[t] + 0.9 * (1.0 - dones[t].float()) * g
            kept[t] = g
        return kept + values

    for n in (8, 10, 12):
        r, v, d = torch.randn(n, 5), torch.randn(n, 5), torch.rand(n, 5) < 0.1
        gains(r, v, d)
"""


@torch
def test_a_loop_over_another_argument_that_is_as_long_is_what_is_unrolled(scan: Scan) -> None:
    (size,) = (one for one in causes(scan(UNROLLED)) if one.code == "BS201")
    assert "a loop (line 7)" in str(size.advice)
    assert "maybe_mark_dynamic" not in str(size.advice)


MIXED = """
    import torch

    torch._dynamo.config.recompile_limit = 3

    @torch.compile
    def f(x):
        return x * 2

    f(torch.ones(3))
    with torch.no_grad():
        f(torch.ones(3))
    for x in (torch.ones(3).int(), torch.ones(2, 3), torch.ones(2, 3, 4), torch.ones(3).double()):
        f(x)
"""


@torch
def test_a_limit_that_no_one_guard_used_up_names_them_all(scan: Scan) -> None:
    (limit,) = coded(scan(MIXED), "BS303")
    said = str(limit.advice)
    assert said.startswith("No one guard used it up: ")
    assert "grad_mode (1)" in said
    assert "dtype of x (" in said


DIFFERENT = """
    import torch

    @torch.compile
    def dice(out, y):
        total = 0.0
        present = torch.unique(y)
        for c in present.tolist():
            if c == 2:
                continue
            total = total + (out[:, c] * (y == c)).sum()
        return total

    dice(torch.randn(4, 3), torch.tensor([0, 1, 2, 1]))
"""


@torch
def test_a_list_of_different_values_goes_with_what_finds_them(scan: Scan) -> None:
    report = scan(DIFFERENT)
    (listed,) = coded(report, "BS102")
    (found,) = coded(report, "BS105")
    assert listed.caused_by == found.fingerprint
    assert "do what is said there" in str(listed.advice)


HOOKED = """
    import numpy as np, torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.kept = {}
            self.conv = torch.nn.Conv2d(1, 4, 3, padding=1)
            self.conv.register_forward_hook(self.keep)

        def keep(self, module, given, out):
            self.kept["x"] = out.mean().item()

        def forward(self, x):
            return torch.relu(self.conv(torch.nn.functional.max_pool2d(x, 4)))

    @torch.compile
    def weighed(net, x, y):
        counts = np.bincount(y.numpy().ravel(), minlength=8)[:3]
        w = torch.tensor(1.0 / np.sqrt(counts + 1.0), dtype=torch.float32)
        return (net(x).mean((1, 2, 3))[:, None] * w).sum()

    net = Net()
    for h in (16, 20):
        weighed(net, torch.randn(2, 1, h, h), torch.randint(0, 3, (2, h, h)))
"""


@torch
def test_a_size_is_not_led_to_a_selection_that_is_not_handed_on(scan: Scan) -> None:
    report = scan(HOOKED)
    (counted,) = coded(report, "BS105")
    sizes = [one for one in report.findings if one.code == "BS201"]
    assert {one.guard.source for one in sizes} > {"out"}
    assert counted.fingerprint not in {one.caused_by for one in sizes}


@torch
def test_a_size_that_may_come_of_two_that_changed_alike_names_both(scan: Scan) -> None:
    """What is behind the break is a frame longer than ``mel``, and a word shorter than ``text``."""
    source = """
        import torch

        class Layer(torch.nn.Module):
            def forward(self, frames):
                frames = frames * 2
                print(end="")
                return frames + 1

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = Layer()

            def forward(self, text, mel):
                start = torch.zeros(mel.shape[0], 1)
                return self.layer(torch.cat([start, mel, text[:, :0]], 1)).mean() + text.mean()

        net = torch.compile(Net())
        for words, frames in ((11, 9), (12, 10)):
            net(torch.randn(2, words), torch.randn(2, frames))
    """
    report = scan(source)
    (frames,) = (one for one in coded(report, "BS201") if one.guard.source == "frames")
    assert (frames.guard.expected, frames.guard.actual) == ("10", "11")
    said = str(frames.advice)
    assert "dimension 1 of text (or 1 of mel, which changed too)" in said or (
        "dimension 1 of mel (or 1 of text, which changed too)" in said
    )
    of_one = scan(source.replace(", text[:, :0]", ""))
    (frames,) = (one for one in coded(of_one, "BS201") if one.guard.source == "frames")
    assert "follows dimension 1 of mel, of the call" in str(frames.advice)  # by its source
    (words,) = (one for one in coded(report, "BS201") if one.guard.source == "text")
    assert words.caused_by is None


@torch
def test_a_new_length_is_not_told_as_the_layout_of_another_layers_version(scan: Scan) -> None:
    """The latest version is that of the second call, which is transposed; the first call's lacks a length."""
    report = scan(
        """
        import torch

        def layer(x):
            print(end="")
            return x * 2

        @torch.compile
        def net(x):
            h = layer(x)
            print(end="")
            return layer(h[..., ::2].contiguous().transpose(1, 2).contiguous().transpose(1, 2))

        for n in (8, 12):
            net(torch.randn(2, 4, n))
        """
    )
    again = [(one.code, one.guard.expected, one.guard.actual) for one in report.findings if one.guard]
    assert ("BS202", "1", "12") not in again
    assert any(code == "BS201" and expected == "8" for code, expected, _ in again)


@torch
def test_what_is_compiled_for_a_batch_of_one_follows_from_that_and_from_no_second_size(scan: Scan) -> None:
    report = scan(
        """
        import torch

        @torch.compile
        def f(x):
            y = x * 2
            torch._dynamo.graph_break()
            return y + 1

        for size in (4, 5, 1):
            f(torch.ones(size))
        """
    )
    second, _ = coded(report, "BS201")
    one, behind = sorted(coded(report, "BS214"), key=lambda finding: finding.caused_by is not None)
    assert one.caused_by is None
    assert "Torch compiles sizes 0 and 1 apart" in str(one.advice)
    assert behind.caused_by == one.fingerprint
    assert "1" not in re.findall(r"came with ([\d, ]+),", str(second.advice))[0].split(", ")


@torch
def test_a_number_that_another_break_hands_on_goes_with_that_one_too(scan: Scan) -> None:
    report = scan(
        """
        import torch

        @torch.compile
        def f(x, m):
            n = int(m.sum())
            y = x * 2
            torch._dynamo.graph_break()
            return y[:n]

        for size in (3, 4):
            f(torch.ones(9), torch.ones(size))
        """
    )
    read = only(report, "BS102")
    behind = [one for one in report.findings if one.kind == "recompile" and one.caused_by == read.fingerprint]
    said = [one.advice or "" for one in behind]
    assert any("The break of line 8 hands it on, and has to go as well" in one for one in said)


@torch
def test_a_limit_follows_from_what_used_it_up(scan: Scan) -> None:
    report = scan(
        """
        import torch

        @torch.compile
        def f(x, name):
            return x + len(name) if name.startswith("a") else x

        for n in range(12):
            f(torch.ones(3), "a" + str(n))
        """
    )
    (limit,) = coded(report, "BS303")
    (value,) = causes(report)
    assert (value.code, limit.caused_by) == ("BS208", value.fingerprint)


ENCODER = """
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 16), 1)
            self.mask = nn.Transformer.generate_square_subsequent_mask(5)

        def forward(self, x):
            h = x * 2
            return self.encoder(h, mask=self.mask) + 1

    net = torch.compile(Net())
    for _ in range(2):
        net(torch.ones(5, 2, 16))
"""


@torch
def test_the_line_of_the_project_is_shown_where_torch_broke(scan: Scan) -> None:
    finding = only(scan(ENCODER), "BS102")
    assert finding.location.owner == "torch"
    assert finding.called_from is not None
    assert finding.called_from.source == "return self.encoder(h, mask=self.mask) + 1"
    assert "Say is_causal=False in the call at script.py:13" in str(finding.advice)


@torch
def test_following_that_advice_takes_the_break_away(scan: Scan) -> None:
    report = scan(ENCODER.replace("mask=self.mask", "mask=self.mask, is_causal=True"))
    assert coded(report, "BS102") == []


LIBRARY = """
    import logging
    import torch

    log = logging.getLogger(__name__)

    class Encoder(torch.nn.Module):
        def __init__(self, config):
            super().__init__()
            self.layerdrop = config.encoder_layerdrop

        def forward(self, x, pad=False):
            if pad:
                log.warning("Inputs are padded")
            for _ in range(2):
                skip = torch.rand([]) < self.layerdrop
                if skip:
                    continue
                x = x + 1
            return count(x)

    def count(x):
        x = x + 1
        x = x * int(x.sum())
        return x * int(x.max())
"""
USE = """
    import sys
    import types
    sys.path.insert(0, "site-packages")
    import torch
    from speech import encoder

    net = torch.compile(encoder.Encoder(types.SimpleNamespace(encoder_layerdrop=0.5)))
    for _ in range(2):
        net(torch.ones(3), pad=True)
"""


@pytest.fixture(scope="module")
def library(warm: WarmScans, tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = tmp_path_factory.mktemp("library")
    package = folder / "site-packages" / "speech"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "encoder.py").write_text(textwrap.dedent(LIBRARY))
    return warm.scan(folder, USE)


@torch
def test_a_librarys_line_that_breaks_in_torch_is_named_and_no_call_that_is_eager(
    warm: WarmScans, tmp_path: Path
) -> None:
    """The call of the compiled module is outside of compiled code already."""
    package = tmp_path / "site-packages" / "speech"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    sets = "self.pos = self.pos.to(x.dtype)"
    (package / "encoder.py").write_text(
        "import torch\nfrom torch import nn\n\nclass Encoder(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.pos = nn.Buffer(torch.ones(3))\n\n"
        f"    def forward(self, x):\n        {sets}\n        return x + self.pos\n"
    )
    report = warm.scan(
        tmp_path,
        """
        import sys
        sys.path.insert(0, "site-packages")
        import torch
        from speech import encoder

        net = torch.compile(encoder.Encoder())

        def step(x):
            return net(x)

        step(torch.ones(3))
        """,
    )
    advice = str(only(report, "BS198").advice)
    assert f"called by `{sets}` (encoder.py:10)" in advice
    assert "write the line that calls it another way" in advice
    assert "outside of the compiled function" not in advice


@torch
def test_layers_that_a_library_skips_at_random_are_not_said_to_stay_at_a_rate_of_zero(
    library: Report,
) -> None:
    advice = str(only(library, "BS301").advice)
    assert "drawn even where config.encoder_layerdrop is 0" in advice
    assert "breakscope fix --unsafe" in advice


@torch
def test_a_message_of_a_library_is_quoted_with_the_argument_that_leads_to_it(library: Report) -> None:
    advice = str(only(library, "BS104").advice)
    assert "speech writes “Inputs are padded…” where `pad`: make the call at script.py:10" in advice


@torch
def test_a_helper_of_a_library_can_be_left_eager_from_outside(library: Report) -> None:
    advice = str(coded(library, "BS102")[0].advice)
    assert "capture_scalar_outputs = True" in advice
    assert "fix tries a rewrite as an overlay" in advice
    assert "which is one break in place of 2" in advice
    assert "encoder.count = torch.compiler.disable(encoder.count)" in advice


@torch
def test_an_exception_that_ends_tracing_is_named_with_its_text(scan: Scan) -> None:
    report = scan(
        """
        import torch

        @torch.compile
        def f(x, n):
            x = x + 1
            if n > 1:
                raise KeyError("no such layer")
            return x

        for n in (2, 2):
            try:
                f(torch.ones(3), n)
            except KeyError:
                pass
        """
    )
    (finding,) = coded(report, "BS302")
    assert finding.reason == "Observed exception: KeyError: no such layer"
    assert "KeyError: no such layer is raised here" in str(finding.advice)


@torch
def test_a_parameter_and_what_was_made_of_it_are_told_apart(scan: Scan) -> None:
    report = scan(
        """
        import torch

        @torch.compile
        def f(x, w):
            return x @ w

        linear = torch.nn.Linear(3, 3)
        for w in (linear.weight, linear.weight * 2):
            f(torch.ones(2, 3), w)
        """
    )
    (finding,) = report.findings
    assert finding.title == "type of w: compiled for an nn.Parameter, got a plain tensor"
    assert "an operation on a Parameter" in str(finding.advice)


@torch
def test_a_branch_that_only_writes_a_message_is_not_told_to_select(scan: Scan) -> None:
    report = scan(
        """
        import logging
        import torch

        log = logging.getLogger("net")

        @torch.compile
        def f(x):
            x = x + 1
            if x.max() > 99:
                log.warning("large")
            return x

        for _ in range(2):
            f(torch.ones(3))
        """
    )
    assert "Only a message depends on it" in str(only(report, "BS101").advice)


# -- without torch ------------------------------------------------------------------------------------------


def test_the_frame_that_torch_leaves_out_of_a_path_is_put_back() -> None:
    frames = (RawFrame("train.py", 7, "<module>", None), RawFrame("torch/enc.py", 5, "forward", None))
    record = BreakRecord(frames, (), False, False, "")
    path = (("model.py", 11, "forward"), ("torch/enc.py", 5, "forward"))
    whole = with_compiled_frame(record, path)
    assert [(frame.file, frame.line) for frame in whole.frames] == [
        ("train.py", 7),
        ("model.py", 11),
        ("torch/enc.py", 5),
    ]
    assert with_compiled_frame(whole, path) is whole
    assert with_compiled_frame(record, ()) is record


def test_consequences_of_consequences_are_counted_with_the_first_cause() -> None:
    item = replace(ITEM, caused_by=BRANCH.fingerprint)
    last = replace(ITEM, fingerprint="last", caused_by=item.fingerprint)
    links = following([last, item, BRANCH])
    assert links.causes == (BRANCH,)
    assert links.of[BRANCH.fingerprint] == (last, item)
    assert links.by["last"] is item
    assert counted(links.of[BRANCH.fingerprint]) == "+ 2 that follow: 2 BS102"


def test_a_consequence_without_its_cause_is_listed() -> None:
    alone = replace(ITEM, caused_by="another report's")
    assert following([alone, BRANCH]).causes == (alone, BRANCH)


def test_findings_that_name_each_other_are_all_listed() -> None:
    one, other = replace(BRANCH, caused_by=ITEM.fingerprint), replace(ITEM, caused_by=BRANCH.fingerprint)
    assert following([one, other]).causes == (one, other)


def test_the_arguments_of_a_call_are_walked_to_the_last_leaf() -> None:
    args = [{"list": [{"int": 1}, {"dict": {"ids": {"tensor": {"shape": [2]}}}}]}]
    assert list(leaves(args, {"flag": {"bool": True}})) == [
        ("args[0][0]", "int", 1),
        ("args[0][1]['ids']", "tensor", {"shape": [2]}),
        ("kwargs['flag']", "bool", True),
    ]


@torch
def test_what_fails_once_a_size_is_symbolic_is_not_told_to_make_it_dynamic(scan: Scan) -> None:
    report = scan(
        """
        import torch
        from torch.nn import functional as F

        @torch.compile
        def attend(q):
            return F.scaled_dot_product_attention(q, q, q, is_causal=q.shape[1] > 1)

        for n in (5, 8):
            attend(torch.ones(1, n, 4))
        """
    )
    (failed,) = coded(report, "BS191")
    assert "must be bool, not SymBool" in failed.reason
    assert "dynamic=False" in str(failed.advice)
    assert "mark_dynamic" not in str(only(report, "BS201").advice)


@torch
def test_a_buffers_own_size_does_not_follow_from_an_arguments(scan: Scan) -> None:
    report = scan(
        """
        import torch

        class Book(torch.nn.Module):
            def __init__(self, size):
                super().__init__()
                self.register_buffer("embed", torch.ones(size, 3))

            def forward(self, x):
                print(end="")
                return x @ self.embed.T

        for size, n in ((8, 4), (6, 5)):
            torch.compile(Book(size))(torch.ones(n, 3))
        """
    )
    sizes = {finding.guard.source: finding for finding in coded(report, "BS201") if finding.guard}
    assert all(finding.caused_by is None for name, finding in sizes.items() if name.startswith("self."))


def test_hooks_that_transformers_installs_once_are_to_be_there_before() -> None:
    file = "/env/lib/python3.12/site-packages/transformers/utils/output_capturing.py"
    theirs = library_advice.Theirs(file, "maybe_install_capturing_hooks", "train.py:8")
    said = library_advice.advice("BS302", "plain", theirs)
    assert str(said).startswith("Make the call at train.py:8 once before torch.compile")


INSTALLED = "/env/lib/python3.12/site-packages/transformers/models/book/modeling_book.py"


def test_what_a_library_breaks_on_purpose_is_left() -> None:
    disabled = library_advice.Theirs(INSTALLED, "Book._mask", "train.py:8")
    said = library_advice.advice("BS108", "plain", disabled)
    assert said == "The graph breaks here on purpose (torch.compiler.disable, in transformers): leave it."
    step = library_advice.Theirs(
        "/env/lib/python3.12/site-packages/torch/optim/optimizer.py", "step", "a.py:3"
    )
    assert str(library_advice.advice("BS109", "plain", step)).endswith(
        "leave it, or make the call at a.py:3 outside of the compiled function."
    )


def test_experts_are_counted_by_the_setting_that_the_break_needs() -> None:
    theirs = library_advice.Theirs(INSTALLED, "Router.forward", "train.py:8")
    every, chosen = "for e in range(self.experts)", "for e in hit"
    assert "capture_scalar_outputs = True" in str(library_advice.advice("BS102", "experts", theirs, every))
    said = str(library_advice.advice("BS105", "experts", theirs, every))
    assert "capture_dynamic_output_shape_ops" in said
    # A loop over those that data chose is in no graph: with both settings Dynamo raises.
    said = str(library_advice.advice("BS105", "experts", theirs, chosen))
    assert said.startswith("No setting helps, as the loop is over what data chose: breakscope fix tries")
    assert "leave this block of experts eager, which is one break for each of its calls" in said
    assert "capture" not in said
    asked = str(library_advice.advice("BS105", "experts", theirs, every, (9,)))
    assert asked.startswith("No setting helps, as line 9 asks how many tokens an expert has")


def test_a_test_in_a_library_is_reached_where_the_settings_before_it_hold(tmp_path: Path) -> None:
    file = tmp_path / "clip.py"
    file.write_text("def f(check, norm):\n    if check and norm.isnan():\n        raise ValueError\n")
    for place in ((2, 4, 3, 24), (2, 7, 2, 29), (2, 17, 2, 29)):  # the statement, its test, what breaks in it
        assert reach.settings(Sources(), str(file), place) == "check"


def test_a_message_shows_where_words_are_put_in(tmp_path: Path) -> None:
    file = tmp_path / "log.py"
    file.write_text("logger.warning(f'`loss_type={loss}` was set but is unknown')\n")
    assert reach.message(Sources(), str(file), (1, 0, 1, 60)) == "`loss_type=…` was set but is unknown"


def test_a_short_cut_in_a_library_is_not_promised_to_torch_where() -> None:
    theirs = library_advice.Theirs(INSTALLED, "Book.forward", "train.py:8")
    said = str(library_advice.advice("BS101", "fast path", theirs))
    assert "torch.where cannot select" in said
    assert "tries a rewrite" not in said


def test_a_number_that_a_library_draws_is_not_for_torch_where() -> None:
    theirs = library_advice.Theirs(INSTALLED, "RandomFlip.forward", "train.py:8")
    assert library_advice.drawn(theirs).endswith(
        "make the call at train.py:8 outside of the compiled function, or leave it."
    )


def test_a_guard_on_what_crosses_a_break_names_the_break() -> None:
    guard = Guard(expression="___stack0 + n <= 64", source=None, expected=None, actual=None, cause="other")
    assert describe(guard) == "guard failed: the value from the break + n <= 64"
    assert remedy(guard).startswith("repair the graph break in front")


@torch
def test_sizes_that_were_equal_at_a_later_call_are_not_said_to_have_been_at_the_first(scan: Scan) -> None:
    source = """
        import torch

        @torch.compile
        def f(x, w):
            y = x * 2
            torch._dynamo.graph_break()
            return (y + 1).sum() + w.sum()

        w = torch.ones(3)
        for shape in {shapes}:
            x = torch.ones(shape)
            f(x, w)
    """
    said = "dimension 0 of x was as large at the first call"
    for shapes, equal in (("(6, 6), (6, 8)", True), ("(4, 6), (6, 6), (6, 8)", False)):
        found = scan(textwrap.dedent(source.format(shapes=f"({shapes})"))).findings
        advised = [one.advice or "" for one in found if one.code == "BS201" and "imension 1" in one.title]
        assert advised
        assert any(said in one for one in advised) == equal


@torch
def test_the_caller_is_that_of_what_the_script_compiles(scan: Scan) -> None:
    """A helper's own caller is compiled code too: what is read there breaks there."""
    source = """
        import torch

        def helper(x):
            seen.append(x.max().item())
            return x

        @torch.compile
        def step(x):
            kept.append(x.min().item())
            return helper(x * 2) + 1

        seen, kept = [], []
        step(torch.ones(3))
    """
    inner, own = sorted(coded(scan(source), "BS102"), key=lambda one: one.location.line)
    said = "The caller here is that of step: hand it through what lies between."
    assert str(inner.advice).endswith(said)
    assert said not in str(own.advice)
    assert "in the caller" in str(own.advice)


@torch
def test_a_function_of_math_goes_with_the_read_of_its_number(scan: Scan) -> None:
    report = scan(
        """
        import math
        import sys

        import torch

        @torch.compile
        def step(x):
            loss = (x * 2).sum()
            value = loss.item()
            if not math.isfinite(value):
                print("stopping", value)
                sys.exit(1)
            return loss * 2

        for n in range(3):
            step(torch.ones(3) * n)
        """
    )
    read = only(report, "BS102")
    assert "is checked, for `math.isfinite(value)`" in str(read.advice)
    assert {one.caused_by for one in coded(report, "BS111")} == {read.fingerprint}


@torch
def test_an_f_string_whose_compiled_form_raises_ended_the_run(scan: Scan) -> None:
    """Torch 2.13 joins a number that has become symbolic into the text as it is."""
    source = """
        import torch

        @torch.compile
        def step(x, i):
            loss = (x * 2).sum()
            texts.append(f"{i} {loss.item():.3f}")
            return loss

        texts = []
        for i in range(4):
            step(torch.ones(3), i)
    """
    found = only(scan(source), "BS102")
    assert found.effect == "ended"
    assert str(found.advice).startswith("Compiled code raises the TypeError here that ended the script")
    read_before = scan(
        textwrap.dedent(source)
        .replace("    texts.append(", "    v = loss.item()\n    texts.append(")
        .replace("{loss.item():.3f}", "{v:.3f}")
    )
    assert read_before.run.status == "ok"


@torch
def test_arrays_of_one_call_that_change_alike_are_one_cause(scan: Scan) -> None:
    report = scan(
        """
        import numpy as np
        import torch

        class Batch:
            def __init__(self, size, length):
                self.x, self.mask = np.ones((size, length)), np.ones((size, length))

        @torch.compile
        def step(batch):
            x = torch.from_numpy(batch.x).sum()
            print(end="")
            return x * torch.from_numpy(batch.mask)

        for size, length in ((4, 6), (3, 6), (3, 7)):
            step(Batch(size, length))
        """
    )
    arrays = [one for one in report.findings if "___from_numpy(" in str(one.guard)]
    causes = {one.guard.dimension: one for one in arrays if one.guard and one.caused_by is None}
    assert set(causes) == {0, 1}
    follow = [one for one in arrays if one.caused_by is not None]
    assert {one.guard.source for one in follow if one.guard} == {"batch.mask"}
    assert all(one.guard and one.caused_by == causes[one.guard.dimension].fingerprint for one in follow)


@torch
def test_the_other_lines_of_a_loop_that_break_are_named_with_the_first(scan: Scan) -> None:
    source = """
        import torch

        @torch.compile
        def f(x, y):
            for i in range(3):
                if x.sum() > i:
                    y = y * 2
                print(end=
                      "")
                x = x + 1
                n = x.argmax().tolist()
            return x, y, n

        f(torch.ones(3), torch.ones(3))
    """
    advice = str(only(scan(source), "BS301").advice)
    assert advice.endswith("instead of the loop. Lines 9 and 12 of the loop break the graph as well.")
    without = scan(textwrap.dedent(source).replace("x.argmax().tolist()", "i").replace("print(end=", "str("))
    assert "break the graph as well" not in str(only(without, "BS301").advice)


@torch
def test_what_follows_a_break_is_not_the_whole_function(scan: Scan) -> None:
    source = """
        import torch

        @torch.compile
        def f(x):
            x = x * 2
            print(end=""){more}
            for i in range(3):
                if x.sum() > i:
                    x = x + 1
            return x

        f(torch.ones(3))
    """
    behind = only(scan(textwrap.dedent(source.format(more=""))), "BS301")
    assert "Until then what follows line 7 of f runs eagerly" in str(behind.advice)
    assert [one.extent for one in behind.skipped] == ["after line 7"]
    whole = scan(textwrap.dedent(source.format(more="").replace('print(end="")', "x = x - 1")))
    assert "Until then all of f runs eagerly" in str(only(whole, "BS301").advice)
    assert [one.extent for one in only(whole, "BS301").skipped] == ["as a whole"]


@torch
def test_what_a_loop_calls_goes_with_the_break_in_the_loop(scan: Scan) -> None:
    """The breaks before the loop are not why its turns are compiled by themselves."""
    report = scan("""
        import torch

        def power(x, t):
            return x * 2 if t == 0 else x * t

        @torch.compile
        def f(x):
            x = x + 1
            torch._dynamo.graph_break()
            t = 0
            while t < 4:
                n = x.sum().item()
                x = power(x, t) + n
                t += 1
            return x

        f(torch.ones(3))
    """)
    (inner,) = [one for one in coded(report, "BS207") if one.location.function == "power"]
    causing = next(one for one in report.findings if one.fingerprint == inner.caused_by)
    assert (causing.code, causing.location.line) == ("BS301", 13)


@torch
def test_what_is_read_for_a_call_that_is_not_traced_goes_with_that_call(scan: Scan) -> None:
    report = scan("""
        import torch
        from torch.nn.utils.rnn import pack_padded_sequence

        @torch.compile
        def f(x, lengths):
            return pack_padded_sequence(x * 2, lengths.tolist(), batch_first=True).data + 1

        f(torch.ones(2, 3, 4), torch.tensor([3, 2]))
    """)
    (read,) = coded(report, "BS102")
    assert read.caused_by in {one.fingerprint for one in coded(report, "BS107")}


EAGER_LOOP = """
    import torch

    def mine(y):
        out = []
        for a in range(y.shape[0]):
            print(end="")
            out.append(a)
        return out

    def loss(z, y):
        dist = torch.cdist(z, z)
        t = torch.tensor(mine(y))
        return (dist * 2).sum() + t.sum()

    f = torch.compile(loss)
    for n in (6, 6, 4):
        f(torch.ones(n, 3), torch.arange(n))
"""


@torch
def test_a_loop_that_runs_eagerly_is_unrolled_by_nobody(scan: Scan) -> None:
    (size,) = (one for one in causes(scan(EAGER_LOOP)) if one.code == "BS201")
    assert "unrolled" not in str(size.advice)
    assert "dynamic=True" in str(size.advice)
    inlined = scan(EAGER_LOOP.replace('print(end="")', "a = a * 2"))
    assert any("(a loop (line 6))" in str(one.advice) for one in inlined.findings if one.code == "BS201")


NUMBER_IN_LOOP = """
    import torch

    @torch.compile
    def select(scores):
        out = []
        for c in range(3):
            s = scores[:, c]
            above = s > 0.4
            n = above.sum().item()
            if n == 0:
                continue
            s = s[above]
            suppress = torch.zeros(n)
            for k in range(3):
                if suppress[k] == 1:
                    continue
                suppress = suppress + 1
            out.append(s * suppress)
        return torch.cat(out)

    torch.manual_seed(0)
    select(torch.rand(12, 3))
"""


@torch
def test_a_number_that_a_branch_in_its_loop_asks_for_is_not_to_be_captured(scan: Scan) -> None:
    (loop,) = coded(scan(NUMBER_IN_LOOP), "BS301")
    assert "A Python number is needed here, for `torch.zeros(n)` (line 14)" in str(loop.advice)
    assert "capture_scalar_outputs" not in str(loop.advice)
    assert "Lines 13 and 16 of the loop break the graph as well" in str(loop.advice)


COUNTED_STOP = """
    import torch

    class Chain:
        def __init__(self):
            self.stops = 0

        def walk(self, x):
            out = []
            done = x > 9
            for _ in range(3):
                x = x * 2
                out.append(x)
                done = done | (x > 5)
                if done.all():
                    self.stops += 1
                    break
            return torch.stack(out)

    chain = Chain()
    torch.compile(chain.walk)(torch.ones(3))
"""


@torch
def test_a_loop_that_counts_where_it_stops_may_run_all_turns(scan: Scan) -> None:
    (loop,) = coded(scan(COUNTED_STOP), "BS301")
    assert "stopped = stopped | (done.all()) where the test stands" in str(loop.advice)
    assert "`out` has an item of each turn then: give back how many count" in str(loop.advice)


METER = """
    import torch

    class Meter:
        def __init__(self):
            self.sum = 0

        def update(self, value):
            self.sum = self.sum + value

    meter = Meter()

    @torch.compile
    def step(x):
        meter.update(x.mean())
        return x * 2

    for _ in range(3):
        step(torch.ones(3))
"""


@torch
def test_a_sum_that_begins_as_a_number_is_to_begin_as_a_tensor(scan: Scan) -> None:
    (kind,) = coded(scan(METER), "BS207")
    assert "begin it as a tensor, torch.zeros(()), and so with what else meter counts" in str(kind.advice)
    assert not scan(METER.replace("self.sum = 0", "self.sum = torch.zeros(())")).findings


TWO_PLACES = """
    import torch
    f = torch.compile(lambda x: x.sin() * 2)
    a = torch.ones(6, 3)
    b = torch.ones(4, 3)
    f(a)
    f(b)
"""


@torch
def test_a_size_is_to_be_marked_where_the_first_call_is_as_well(scan: Scan) -> None:
    (size,) = coded(scan(TWO_PLACES), "BS201")
    assert "maybe_mark_dynamic(b, 0) before the call at script.py:7" in str(size.advice)
    assert "(and so before that at script.py:6, which was compiled before)" in str(size.advice)
    mark = "torch._dynamo.maybe_mark_dynamic({0}, 0); f({0})"
    assert not scan(TWO_PLACES.replace("f(a)", mark.format("a")).replace("f(b)", mark.format("b"))).findings


POOLED = """
    import torch

    def inner(x):
        return torch.relu(x) * 2

    def pool(x):
        keep = (x.sum(1) > 0).nonzero().view(-1)
        return x[keep]

    @torch.compile
    def f(x):
        y = pool(x)
        torch._dynamo.graph_break()
        return inner(y).sum()

    for rows, kept in ((18, 6), (17, 5), (16, 6)):
        f(torch.cat([torch.ones(kept, 2), -torch.ones(rows - kept, 2)]))
"""


@torch
def test_what_a_call_selects_is_of_data_also_where_the_batch_changed_by_as_much(scan: Scan) -> None:
    report = scan(POOLED)
    (pooled,) = coded(report, "BS105")
    sizes = [one for one in coded(report, "BS201") if one.guard is not None and one.guard.expected == "6"]
    assert {one.guard.source for one in sizes if one.guard is not None} == {"value from line 13", "y"}
    assert {one.caused_by for one in sizes} == {pooled.fingerprint}


TWO_MASKED = """
    import torch

    def cell(h):
        torch._dynamo.graph_break()
        return torch.tanh(h)

    @torch.compile
    def f(x, q, n):
        mask = n > 0
        out = torch.zeros_like(x)
        x = x[mask]
        q = torch.masked_select(q, mask.view(-1, 1)).view(-1, 4)
        out[mask] = cell(x) + q
        return out

    for kept in (3, 5, 2):
        f(torch.ones(6, 4), torch.ones(6, 4), (torch.arange(6) < kept).int())
"""


@torch
def test_of_two_selections_that_is_named_which_makes_the_value(scan: Scan) -> None:
    report = scan(TWO_MASKED)
    lines = {one.fingerprint: one.location.line for one in coded(report, "BS105")}
    named = {one.guard.source: lines.get(str(one.caused_by)) for one in coded(report, "BS201") if one.guard}
    assert named["h"] == named["x"] == 12
    assert named["q"] == 13


COUNTER_OF_ANOTHER = """
    import torch

    class Func(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.nfe = 0

        def forward(self, y):
            self.nfe += 1
            return y * 2

    class Wrap(torch.nn.Module):
        def __init__(self, base):
            super().__init__()
            self.base = base

        def forward(self, y):
            return self.base(y) + 1

    wrap = Wrap(Func())

    @torch.compile
    def solve(y):
        for n in range(12):
            print(end="")
            y = wrap(y)
        return y

    solve(torch.ones(2))
"""


@torch
def test_a_count_is_no_breaks_where_another_object_counts(scan: Scan) -> None:
    (count,) = coded(scan(COUNTER_OF_ANOTHER), "BS209")
    assert count.caused_by is None
    assert "self.base.nfe" in str(count.advice)


OVERRULED = """
    import torch

    @torch.compile
    def f(err, dt, hi):
        ok = err <= 1
        if dt > hi:
            ok = False
        return torch.where(torch.as_tensor(ok), dt * 2, dt / 2)

    f(torch.tensor(0.5), torch.tensor(0.1), torch.tensor(1.0))
"""


@torch
def test_a_constant_in_the_place_of_a_tensor_is_selected_by_where(scan: Scan) -> None:
    (site,) = coded(scan(OVERRULED), "BS101")
    assert "select with torch.where(dt > hi, …, …)" in str(site.advice)
    plain = OVERRULED.replace("ok = err <= 1", "ok = True").replace("dt * 2, dt / 2", "dt, dt * 2")
    (site,) = coded(scan(plain), "BS101")
    assert "no tensor, so torch.where cannot: return what the test asks for" in str(site.advice)
    assert "or choose before the compiled call, as it is made of" in str(site.advice)
    assert "the arguments `dt` and `hi` alone, and pass in what is chosen" in str(site.advice)


SYMBOL_TEST = """
    import torch
    torch._dynamo.config.capture_dynamic_output_shape_ops = True

    def total(src):
        n = 3 if src.numel() > 0 else 0
        return src.new_zeros(3).sum() + n

    @torch.compile
    def f(x):
        return total(x[(x > 0).nonzero().view(-1)])

    f(torch.ones(4))
"""


@torch
def test_a_test_of_a_size_that_data_decide_is_no_assert(scan: Scan) -> None:
    (site,) = (one for one in scan(SYMBOL_TEST).findings if one.kind == "graph_break")
    assert site.code == "BS101"
    assert "torch._check(src.numel() > 0)" in str(site.advice)
    checked = SYMBOL_TEST.replace("n = 3", "torch._check(src.numel() > 0)\n        n = 3")
    assert not scan(checked).findings


ACROSS = """
    import torch

    @torch.compile
    def recall(z, data, filled):
        sims = z @ data[filled].t()
        best = sims.topk(2, dim=1).values
        return best, sims.mean()

    recall(torch.ones(6, 4), torch.ones(12, 4), torch.arange(12) < 9)
"""


@torch
def test_what_else_takes_a_last_dimension_that_a_mask_selects_is_named(scan: Scan) -> None:
    (site,) = coded(scan(ACROSS), "BS105")
    assert "sims.masked_fill(~filled, -inf)" in str(site.advice)
    assert "what else takes it (line 8) is given all of it too, under the same mask" in str(site.advice)


@torch
def test_a_branch_on_several_sizes_together_is_no_one_sizes(scan: Scan) -> None:
    """Neither a mark nor padding of one of them helps: torch asks itself how it computes a convolution."""
    report = scan(
        """
        import torch

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = torch.nn.Conv1d(4, 4, 3, padding=1)

            def forward(self, x):
                y = x.reshape(x.size(0) * x.size(1), 4, 5)
                return self.conv(y).amax(2)

        @torch.compile
        def own(x):
            return x * 2 if x.size(0) * x.size(1) >= 20 else x + 1

        net = torch.compile(Net())
        with torch.no_grad():
            for b, s in ((4, 7), (4, 5), (3, 6), (2, 6)):
                net(torch.randn(b, s, 4, 5))
            for b, s in ((4, 7), (4, 6), (3, 7), (2, 6)):
                own(torch.randn(b, s))
        """,
    )
    of_torch, of_code = sorted(coded(report, "BS214"), key=lambda one: str(one.advice), reverse=True)
    assert str(of_torch.advice).startswith("torch's own code (nn/modules/conv.py:")
    assert str(of_code.advice).startswith("script.py:15 asks whether x.size(1) * x.size(0) >= 20")
    for one in (of_torch, of_code):
        assert "whatever dynamic= says" in str(one.advice)
        assert one.caused_by is None


@torch
def test_what_is_compiled_under_no_grad_is_read_behind_torchs_wrapper(scan: Scan) -> None:
    """Dynamo compiles ``def inner(*args, **kwargs)`` there: names and branches are those of the method."""
    report = scan(
        """
        import torch

        class Model(torch.nn.Module):
            @torch.no_grad()
            def generate(self, ids, steps):
                for _ in range(steps):
                    seen = ids if ids.size(1) <= 12 else ids[:, -12:]
                    ids = torch.cat((ids, seen.sum(1, keepdim=True) % 7), 1)
                return ids

        generate = torch.compile(Model().generate)
        for length in (3, 4):
            generate(torch.randint(7, (2, length)), 8)
        """,
    )
    (size,) = coded(report, "BS201")
    assert "maybe_mark_dynamic(ids, 1)" in str(size.advice)
    assert (
        "a branch (line 8: ids.size(1) <= 12 and ids.size(1) + 1 <= 12 and 6 more) asks for the size"
        in str(size.advice)
    )
    assert size.title.startswith("size of ids, dimension 1")


@torch
def test_a_comprehension_that_picks_with_elements_breaks_by_itself(scan: Scan) -> None:
    report = scan(
        """
        import torch

        @torch.compile
        def score(h, y, between):
            total = torch.zeros(h.size(1))
            for t, of_all in enumerate(h):
                given = torch.cat([a[i] for a, i in zip(of_all.unsqueeze(2), y[t + 1])])
                total = total + given + torch.cat([between.unsqueeze(2)[x] for x in zip(y[t + 1], y[t])])
            return total

        score(torch.randn(3, 2, 5), torch.randint(0, 5, (4, 2)), torch.randn(5, 5))
        """,
    )
    first = next(site for site in report.findings if site.caused_by is None and "gather" in str(site.advice))
    assert str(first.advice).endswith("Line 9 of the loop breaks the graph as well.")


@torch
def test_what_a_number_picks_of_is_known_of_a_global(scan: Scan) -> None:
    report = scan(
        """
        import torch

        letters = ["-"] + list("abc")

        @torch.compile
        def word(row):
            return "".join([letters[i] for i in row * 1])

        word(torch.tensor([1, 2, 3]))
        """,
    )
    (read,) = coded(report, "BS102")
    assert str(read.advice) == (
        "The number picks from `letters`, which is a list, dict or text of Python's: look it up in the caller."
    )


@torch
def test_a_recurrent_module_that_is_made_in_the_compiled_function_is_made_before_it(scan: Scan) -> None:
    report = scan(
        """
        import torch

        gru = torch.nn.GRU(4, 4, batch_first=True)

        @torch.compile
        def step(x):
            cell = torch.nn.GRUCell(gru.input_size, gru.hidden_size)
            return cell(x)

        step(torch.randn(2, 4))
        """,
    )
    (made,) = [one for one in report.findings if one.gb_id == "GB0014"]
    assert str(made.advice).startswith("A recurrent module is made here, which no setting has traced")


@torch
def test_a_comprehension_over_different_values_is_a_loop_over_them(scan: Scan) -> None:
    """With the setting alone that would break at each value; and what it reduces has numbers from 0 on."""
    report = scan(
        """
        import torch

        @torch.compile
        def means(x, labels):
            return torch.stack([x[labels == c].mean(0) for c in labels.unique()])

        @torch.compile
        def sums(x, labels):
            classes = torch.unique(labels)
            return torch.stack([x[labels == c].sum(0) for c in classes])

        for reduce in (means, sums):
            reduce(torch.randn(6, 3), torch.tensor([0, 0, 1, 1, 5, 5]))
        """,
    )
    found = [str(one.advice) for one in report.findings if one.code == "BS105"]
    assert [text.partition(" depends")[0] for text in found] == [
        "How often the loop runs in `for c in labels.unique()`",
        "How often the loop runs in `for c in classes`",
    ]
    reduced = [str(one.advice) for one in report.findings if one.code == "BS301"]
    assert len(reduced) == 2
    for text in reduced:
        assert "take classes, index = torch.unique(labels, return_inverse=True)" in text


@torch
def test_a_temperature_may_be_a_tensor(scan: Scan) -> None:
    report = scan(
        """
        import torch
        import torch.nn.functional as F

        @torch.compile
        def sample(x, temperature):
            return F.gumbel_softmax(x, tau=temperature.item())

        sample(torch.randn(2, 3), torch.tensor(0.5))
        """,
    )
    (read,) = coded(report, "BS102")
    assert "keep `temperature` a 0-d tensor" in str(read.advice)


@torch
def test_a_table_that_is_made_anew_where_it_is_too_short_is_to_be_made_once(scan: Scan) -> None:
    report = scan(
        """
        import torch

        class Positions(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.table = None

            def forward(self, x):
                if self.table is None or self.table.size(0) < x.size(1):
                    self.table = torch.zeros(x.size(1), 4)
                return x + self.table[: x.size(1)]

        add = torch.compile(Positions())
        for length in (3, 5, 4, 6):
            add(torch.randn(2, length, 4))
        """,
    )
    of_table = [one for one in report.findings if one.guard is not None and one.guard.source == "self.table"]
    sized = [one for one in of_table if one.code in ("BS201", "BS214")]
    assert {one.code for one in sized} == {"BS201", "BS214"}
    for one in sized:
        assert str(one.advice).startswith(
            "self.table is made anew in line 11 where it does not serve any more"
        )


@torch
def test_a_list_whose_items_are_replaced_has_no_more_for_that(scan: Scan) -> None:
    report = scan(
        """
        import torch

        @torch.compile
        def scale(xs):
            for i in range(len(xs)):
                xs[i] = xs[i] * 2
            return xs

        for n in (2, 3):
            scale([torch.randn(2) for _ in range(n)])
        """,
    )
    (items,) = coded(report, "BS211")
    assert str(items.advice).startswith("A loop over xs is unrolled")


@pytest.mark.parametrize(
    "over",
    [
        "for t in reversed(range(len(xs))):",
        "n = len(xs)\n    for t in range(n):",
        "for t in range(len(xs) - 1, -1, -1):",
    ],
)
def test_a_loop_over_how_many_a_list_holds_is_unrolled_over_it(over: str) -> None:
    function = ast.parse(f"def f(xs, y):\n    {over}\n        y = y + xs[t]\n    return y").body[0]
    assert _is_looped(function, "xs")
    assert not _is_looped(function, "y")


@torch
def test_what_a_checkpointed_function_changes_is_named(scan: Scan) -> None:
    report = scan(
        """
        import torch
        from torch.utils.checkpoint import checkpoint

        class Block(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.calls = 0

            def part(self, x):
                self.calls += 1
                return x.relu()

            def forward(self, x):
                return checkpoint(self.part, x, use_reentrant=False)

        torch.compile(Block())(torch.randn(3, requires_grad=True))
        """,
    )
    (change,) = [one for one in report.findings if one.code in ("BS120", "BS302")]
    assert "The line that changes the attribute `calls` writes to what outlives" in str(change.advice)


@torch
def test_a_name_of_the_script_has_no_module_in_front(scan: Scan) -> None:
    """Under torch's wrapper Dynamo reads it from the module ``__main__``."""
    report = scan(
        """
        import torch

        class Average:
            def __init__(self):
                self.n = 0

        average = Average()

        @torch.compile
        @torch.no_grad()
        def update(x):
            average.n += 1
            return x / average.n

        for _ in range(4):
            update(torch.ones(2))
        """,
    )
    counts = [one for one in report.findings if one.guard is not None and one.code == "BS207"]
    assert [one.guard.source for one in counts if one.guard] == ["average.n"]


SCHEDULER = """
    class Scheduler:
        def __init__(self):
            self._step_index = self._begin_index = None
            self.timesteps = torch.tensor([30, 20, 10])

        @property
        def begin_index(self):
            return self._begin_index

        def set_begin_index(self, begin_index=0):
            self._begin_index = begin_index

        def index_for_timestep(self, timestep):
            found = (self.timesteps == timestep).nonzero()
            return found[1 if len(found) > 1 else 0].item()

        def step(self, x, timestep):
            if self._step_index is None:
                if self.begin_index is None:
                    self._step_index = self.index_for_timestep(timestep)
                else:
                    self._step_index = self._begin_index
            x = x + self.timesteps[self._step_index]
            self._step_index += 1
            return x
"""


@torch
def test_what_a_librarys_object_keeps_is_not_for_the_caller_to_hold(scan: Scan, tmp_path: Path) -> None:
    """Nor is a way that the library goes where something is not set: its own method sets that."""
    package = tmp_path / "site-packages" / "diffusing"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"import torch\n\n{textwrap.dedent(SCHEDULER)}")
    report = scan(
        """
        import sys
        sys.path.insert(0, "site-packages")
        import torch
        from diffusing import Scheduler

        scheduler = Scheduler()
        step = torch.compile(scheduler.step)
        x = torch.zeros(3)
        for timestep in scheduler.timesteps:
            x = step(x, timestep)
        """
    )
    state = next(one for one in report.findings if one.guard and one.guard.source == "self._step_index")
    assert str(state.advice).startswith(
        "self._step_index is state that diffusing keeps in its own object (None"
    )
    assert "caller" not in str(state.advice)
    (selection,) = coded(report, "BS105")
    assert (
        "and only where `self._step_index is None and self.begin_index is None` (set_begin_index() before"
        in str(selection.advice)
    )


@torch
def test_a_structure_that_a_function_goes_through_by_itself_has_no_one_type(scan: Scan) -> None:
    report = scan(
        """
        import torch

        class Tree(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.leaf, self.join = torch.nn.Embedding(5, 4), torch.nn.Linear(8, 4)

            def forward(self, tree):
                if isinstance(tree, int):
                    return self.leaf(torch.tensor(tree))
                return torch.tanh(self.join(torch.cat([self(tree[0]), self(tree[1])])))

        net = torch.compile(Tree())
        for tree in ((1, 2), ((1, 2), 3), (1, (2, (3, 4)))):
            net(tree)
        """,
    )
    assert {one.code for one in report.findings} == {"BS207", "BS210"}
    for one in report.findings:
        assert str(one.advice).startswith(
            "tree is a structure that the function goes through by calling itself"
        )


@torch
def test_a_wrappers_arguments_have_the_names_of_the_function(scan: Scan) -> None:
    report = scan(
        """
        import torch

        class Model(torch.nn.Module):
            @torch.no_grad()
            def generate(self, ids, steps, top_k=2):
                for _ in range(steps):
                    ids = torch.cat((ids, ids.topk(top_k).values[:, :1]), 1)
                return ids

        generate = torch.compile(Model().generate)
        for length, steps in ((1, 3), (3, 3), (3, 4)):
            generate(torch.zeros(2, length + 2), steps, top_k=2)
        """,
    )
    (turns,) = coded(report, "BS207")
    assert str(turns.advice).startswith("steps is how often a loop runs")


@torch
def test_a_tuple_of_which_each_call_makes_a_tensor_is_to_be_held_as_one(scan: Scan) -> None:
    report = scan(
        """
        import torch

        class Task:
            def __init__(self, tokens):
                self.tokens = tokens

            def run(self, x):
                return x + torch.tensor([self.tokens]).sum()

        for tokens in ((1, 2, 3), (1, 2, 3, 4)):
            torch.compile(Task(tokens).run)(torch.ones(2))
        """,
    )
    (items,) = coded(report, "BS211")
    assert str(items.advice).startswith("Line 9 makes a tensor of self.tokens at each call")


@torch
def test_a_number_of_an_annotated_name_goes_with_the_comprehension_that_reads_it(scan: Scan) -> None:
    report = scan(
        """
        import torch

        @torch.compile
        def words(x):
            picked: list[float] = [t.item() for t in x]
            x = x * 2
            torch._dynamo.graph_break()
            return x + picked[0]

        for i in range(3):
            words(torch.tensor([2.0 + i, 3.0]))
        """,
    )
    for one in report.findings:
        if one.kind == "recompile":
            assert one.caused_by is not None, one
