"""Of several versions that did not fit, the guard of the one that should have is told; and what a version is for."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from report_samples import SIZE
from warm_scanning import WarmScans, coded

from breakscope.diagnose.following import _with_recompiles
from breakscope.report.model import Report

pytestmark = pytest.mark.torch
Scan = Callable[..., Report]


@pytest.fixture
def scan(warm: WarmScans, tmp_path: Path) -> Scan:
    return lambda source, *options: warm.scan(tmp_path, source, *options)


def test_the_version_that_was_used_last_is_not_the_one_that_should_have_fitted(scan: Scan) -> None:
    """Torch tells of it first: an old one that serves a batch of 1, where the flag is what is new."""
    report = scan("""
        import torch

        @torch.compile(backend="eager")
        def f(x, several):
            y = x.relu() * 2
            return y[:, 1:] if several else y[:, :1]
        for size, several in ((1, True), (2, True), (1, True), (4, False), (5, False)):
            f(torch.randn(size, 4), several)
    """)
    assert [(one.guard.expected, one.guard.actual) for one in coded(report, "BS208") if one.guard] == [
        ("True", "False")
    ]
    assert [one.guard.values for one in coded(report, "BS201") if one.guard] == [("1", "2")]


def test_a_size_of_one_is_told_of_the_version_that_serves_it(scan: Scan) -> None:
    report = scan("""
        import torch

        @torch.compile(backend="eager")
        def f(x):
            return x * 2
        for rows, columns in ((2, 4), (1, 4), (2, 5), (1, 5)):
            f(torch.ones(rows, columns))
    """)
    made = {
        one.guard.dimension: one.counts.occurrences for one in coded(report, "BS201") if one.guard is not None
    }
    assert made == {0: 1, 1: 2}
    assert not coded(report, "BS214")


def test_what_is_under_torchs_wrapper_is_told_by_its_own_name(scan: Scan) -> None:
    report = scan("""
        import torch

        @torch.no_grad()
        def sample(x, t):
            noise = torch.randn_like(x) if t > 0 else 0.0
            return x * 0.9 + noise

        step = torch.compile(sample, backend="eager")
        for t in reversed(range(6)):
            step(torch.ones(4, 3), t)
    """)
    found = coded(report, "BS207")
    assert found
    for one in found:
        assert one.location.function == "sample"
        assert one.location.line == 5
        assert one.guard is not None
        assert one.guard.source == "t"
    assert "after which torch takes any: compiled 2 times more" not in str([one.expected for one in found])


def test_a_variable_may_be_called_as_torch_calls_the_locals(scan: Scan) -> None:
    report = scan("""
        import torch
        import numpy as np

        @torch.compile(backend="eager")
        def f(x):
            B, L, H = x.shape
            x = x * 2
            torch._dynamo.graph_break()
            u = np.ceil(np.log(L)).astype("int").item()
            return x[:, :u]
        for length in (24, 13, 24, 13):
            f(torch.randn(2, length, 3))
    """)
    (found,) = coded(report, "BS207")
    assert "Numpy takes L (np.log (line 10)) as a constant" in str(found.advice)


def test_a_limit_of_what_a_break_makes_a_frame_of_its_own_goes_with_the_break(scan: Scan) -> None:
    report = scan("""
        import torch

        def conv(f):
            print(end="")
            return f * 2

        class Net(torch.nn.Module):
            def forward(self, x):
                for at in range(3):
                    x = conv(x) + conv(x.transpose(1, 2)).transpose(1, 2) + conv(x[:, :, : 2 + at]).mean()
                return x

        net = torch.compile(Net(), backend="eager")
        for size in (4, 3):
            net(torch.randn(size, 24, 6, requires_grad=True))
        with torch.no_grad():
            for size in (4, 3):
                net(torch.randn(size, 24, 6))
    """)
    limits = coded(report, "BS303")
    assert limits
    site = coded(report, "BS104")[0]
    for limit in limits:
        assert limit.caused_by == site.fingerprint
        assert "is compiled as part of what calls it" in str(limit.advice)


def test_each_reason_why_dynamic_does_not_help_is_told(scan: Scan) -> None:
    report = scan("""
        import torch
        from torch import nn

        class Block(nn.Module):
            def forward(self, x):
                return torch.relu(x) * 2

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.blocks = nn.ModuleList([Block(), Block()])
                self.conv, self.line = nn.Conv1d(3, 8, 3), nn.Linear(4, 8)
            def forecast(self, x):
                for at, block in enumerate(self.blocks):
                    x = block(x if at == 0 else x.transpose(1, 2))
                    if x.sum() > 1e9:
                        print("big")
                return x
            def forward(self, x, mark):
                x = self.conv(x.transpose(1, 2)).transpose(1, 2) + self.line(mark)[:, 2:]
                return self.forecast(x)[:, -2:]

        net = torch.compile(Net(), backend="eager")
        for size in (4, 4, 3):
            net(torch.randn(size, 24, 3), torch.randn(size, 24, 4))
    """)
    text = " ".join(str(one.advice) for one in coded(report, "BS201"))
    assert "dimension 2 of mark was as large at the first call" in text
    assert "x.size(0) < 16) asks for it, each side is compiled apart" in text
    assert re.search(r"2 functions are compiled again for it, \d times in all", text)


def test_a_view_of_a_tensor_of_another_shape_is_told_as_that(scan: Scan) -> None:
    report = scan("""
        import torch

        @torch.compile(backend="eager")
        def f(q):
            return q.transpose(1, 2).softmax(-1)
        for length in (24, 13):
            f(torch.randn(4, length, 16).view(4, length, 2, 8))
        for length in (24, 13, 12):
            f(torch.randn(4 * length, 16).view(4, length, 2, 8))
    """)
    (found,) = coded(report, "BS214")
    assert str(found.expected).startswith("q is a view of a tensor of another shape")


def test_sizes_of_one_and_others_are_told_apart_in_what_is_expected(scan: Scan) -> None:
    report = scan("""
        import torch

        class Schedule:
            def set(self, n):
                self.times = torch.arange(n) * 1.0
        schedule = Schedule()

        @torch.compile(backend="eager")
        def f(x):
            return x * 2

        @torch.compile(backend="eager")
        def g(x, schedule):
            return x * schedule.times.sum()
        for size in (8, 8, 5, 1, 8, 8, 8, 8, 8, 8, 8):
            f(torch.ones(size))
        for number in (5, 4):
            schedule.set(number)
            g(torch.ones(3), schedule)
    """)
    said = {one.location.function: str(one.expected) for one in coded(report, "BS201")}
    assert said["f"].startswith("a smaller size (5 after 8), after which torch takes any: compiled once")
    (single,) = coded(report, "BS214")
    assert single.expected == "torch compiles a size of 1 apart: compiled once more"
    assert said["g"] == "a smaller size (4 after 5), after which torch takes any: compiled once more"


def test_an_array_of_a_tensors_data_is_told_by_the_line_that_reads_it(scan: Scan) -> None:
    report = scan("""
        import torch

        def periods(x):
            top = torch.topk(x.abs().mean(0).mean(-1), 2)[1].detach().cpu().numpy()
            return x.shape[1] // (top + 1)

        @torch.compile(backend="eager")
        def f(x):
            per = periods(x)
            for at in range(2):
                p = per[at]
                if x.shape[1] % p != 0:
                    x = x + 1
            return x
        f(torch.randn(4, 24, 3))
    """)
    found = [
        one for one in report.findings if "made of a tensor's data, which line 5 reads" in str(one.advice)
    ]
    assert found


def test_a_name_that_is_given_another_kind_before_a_break_is_handed_on_by_it(scan: Scan) -> None:
    report = scan("""
        import torch

        @torch.compile(backend="eager")
        def f(p, labels, pad):
            if pad:
                labels = torch.cat([labels, -torch.ones(labels.shape[0], 1)], 1)
            print(end="")
            return p * (labels == 1).float().sum()
        for pad in (True, False):
            f(torch.randn(2, 4), torch.randint(0, 2, (2, 3)), pad)
    """)
    (found,) = coded(report, "BS203")
    assert "labels is made here (line 7), and a graph break hands it on" in str(found.advice)


def test_of_compile_times_it_is_told_for_what_the_recompiles_were() -> None:
    """All of them may be notes, which ``breakscope remedy`` has nothing to try for."""
    advice = "See to its recompiles first: 4 of its 5 compiles are such, and took 29 of 34 s."
    whole = replace(SIZE, fingerprint="whole", code="BS403", kind="compile", guard=None, advice=advice)
    longest = " The longest took 25 s, where the first of the same code took 2.0 s."
    for more, expected, said in (
        ("", None, "29 of 34 s; breakscope remedy tries what saves them."),
        (
            longest,
            None,
            "breakscope remedy tries what saves them. A graph for any size can take many times as",
        ),
        (
            "",
            "a second size",
            "29 of 34 s. All are expected; dynamic=True in torch.compile makes one graph for any size but 0 and 1 at once",
        ),
        (
            longest,
            "a second size",
            "29 of 34 s. All are expected; a graph for any size can take many times as",
        ),
    ):
        told = _with_recompiles([replace(whole, advice=advice + more), replace(SIZE, expected=expected)])[
            0
        ].advice
        begin = "Its recompiles took most of that" if expected else "See to its recompiles first"
        assert str(told).startswith(f"{begin} (for dimension 0 of x): 4 of its 5")
        assert said in str(told)


def test_versions_that_are_normal_leave_nothing_to_see_to() -> None:
    advice = "See to its recompiles first: 4 of its 5 compiles are such, and took 29 of 34 s."
    whole = replace(SIZE, fingerprint="whole", code="BS403", kind="compile", guard=None, advice=advice)
    normal = "a version for each way to call it is normal, made once"
    for said, told in (
        (normal, "All are normal, and made once"),
        (f"{normal}. To save one, call it with the same ones", "breakscope remedy tries what saves them"),
    ):
        own = [
            replace(SIZE, expected="a second size"),
            replace(SIZE, fingerprint="b", advice=said, expected=None),
        ]
        assert told in str(_with_recompiles([whole, *own])[0].advice)


def test_a_constant_tensor_that_python_goes_over_is_to_be_a_list(scan: Scan) -> None:
    report = scan("""
        import torch

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.kinds = torch.ones(4, dtype=torch.bool)
                self.kinds[[0, 2]] = False
                self.nets = torch.nn.ModuleList([torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)])
            def forward(self, x):
                columns, at = [], 0
                for column, kind in enumerate(self.kinds):
                    if kind:
                        columns.append(x[:, column].view(-1, 1))
                    else:
                        columns.append(self.nets[at](x[:, column].view(-1, 1)))
                        at += 1
                return torch.cat(columns, 1)

        torch.compile(Net(), backend="eager")(torch.ones(3, 4))
    """)
    (found,) = coded(report, "BS301")
    assert "`self.kinds` is set in __init__ alone: make it a list of Python's there" in str(found.advice)


def test_an_optional_tensor_that_a_branch_makes_of_itself_is_no_none(scan: Scan) -> None:
    report = scan("""
        import torch

        @torch.compile(backend="eager")
        def f(x, first, last, mask=None):
            assert mask is not None
            back = bool(first < last)
            if back:
                x = x.flip(1)
                mask = mask.flip(1)
            return (x * mask).cumsum(1)
        f(torch.ones(3, 5), torch.tensor(1), torch.tensor(2), mask=torch.ones(3, 5))
    """)
    (found,) = coded(report, "BS102")
    assert "None without it" not in str(found.advice)
    assert "compute both sides and select with torch.where" in str(found.advice)


def test_a_size_of_1_is_compiled_apart_whatever_else_changed_with_it(scan: Scan) -> None:
    """The newest version fails at the flag first; without the flag the 1 would have been compiled as well."""
    report = scan("""
        import torch

        @torch.compile(backend="eager")
        def f(x, flag):
            y = x.relu() * 2
            return y * 2 if flag else y
        for size in (8, 6, 1, 4):
            f(torch.randn(size, 4), size == 6)
    """)
    told = [(one.code, one.guard.values) for one in report.findings if one.guard is not None]
    assert sorted(told) == [("BS201", ("8", "1", "4")), ("BS208", ("False", "True"))]


UNROLLED = """
    import torch

    @torch.compile(backend="eager")
    def f(x):
        for at in range(x.size(0)):
            x = x + at
        return x"""


def test_dynamic_is_not_advised_for_what_a_loop_is_unrolled_over_where_1_came_too(scan: Scan) -> None:
    report = scan(f"""{UNROLLED}
    for size in (4, 3, 1, 5):
        f(torch.randn(size))
    """)
    (found,) = coded(report, "BS201")
    assert "(a loop (line 6))" in str(found.advice)
    assert "dynamic=True does not help" in str(found.advice)


def test_a_module_whose_forward_is_decorated_is_told_by_its_own_name(scan: Scan) -> None:
    report = scan("""
        import torch

        class Net(torch.nn.Module):
            @torch.no_grad()
            def forward(self, x, flag=False):
                return x + 1 if flag else x

        net = torch.compile(Net(), backend="eager")
        for flag in (False, True):
            net(torch.ones(4), flag)
    """)
    (found,) = coded(report, "BS208")
    assert (found.location.line, found.location.function) == (6, "Net.forward")


def test_a_size_that_came_as_1_is_the_cause_where_another_size_is_any_by_then(scan: Scan) -> None:
    report = scan("""
        import torch

        @torch.compile(backend="eager")
        def f(x, y):
            return x.sum() + y.sum()
        for size in (3, 2, 4):
            f(torch.randn(size, 4), torch.randn(size - 1, 4))
    """)
    changed = {(one.guard.source, one.guard.values) for one in coded(report, "BS201") if one.guard}
    assert changed == {("x", ("3", "2")), ("y", ("1", "3"))}


def test_a_value_of_a_break_that_is_met_at_two_calls_goes_with_it_at_both(scan: Scan) -> None:
    report = scan("""
        import torch

        def tau(t):
            return 1 if t >= 200 else 0

        @torch.compile(backend="eager")
        def step(x, last, t):
            x = x * tau(last)
            return x + tau(t)
        for last, t in ((900, 500), (500, 100), (100, 50)):
            step(torch.randn(4), torch.tensor(last), torch.tensor(t))
    """)
    (site,) = coded(report, "BS101")
    values = coded(report, "BS213")
    assert len(values) == 2
    assert {one.caused_by for one in values} == {site.fingerprint}


def test_an_option_that_changed_at_the_same_call_is_named(scan: Scan) -> None:
    report = scan("""
        import torch

        @torch.compile(backend="eager")
        def f(x, scale, deep=False):
            y = x * scale
            return y + x.mean() if deep else y
        f(torch.randn(4, 3), 2)
        f(torch.randn(4, 3), 0.5, deep=True)
    """)
    (found,) = coded(report, "BS208")
    assert "But scale changed at the same call" in str(found.advice)


def test_a_float_that_came_as_an_int_is_a_constant_where_the_code_needs_one(scan: Scan) -> None:
    report = scan("""
        import torch

        @torch.compile(backend="eager")
        def f(x, p):
            return x * torch.empty(4, 1).bernoulli_(p)
        for p in (0.2, 0, 0.08, 0.16, 0.22):
            f(torch.randn(4, 3), p)
    """)
    said = [str(one.advice) for one in (*coded(report, "BS207"), *coded(report, "BS210"))]
    assert any(one.startswith("The code needs p as a constant") for one in said), said


def test_what_is_made_of_a_rate_says_which_rates_fit(scan: Scan) -> None:
    """A third rate is compiled again, where what it makes is 1; torch says so of the second."""
    report = scan("""
        import torch

        @torch.compile(backend="eager")
        def f(x, rate):
            keep = int(16 * (1 - rate))
            return torch.nn.functional.linear(x[:, :keep].sum(1), torch.ones(3, 8))
        for rate in (0.75, 0.5, 0.4):
            f(torch.randn(4, 16, 8), rate)
    """)
    (found,) = coded(report, "BS207")
    assert "for which int(" in str(found.expected)


def test_a_size_that_came_from_several_lines_is_of_the_calls_there(scan: Scan) -> None:
    report = scan(f"""{UNROLLED}
    f(torch.randn(2))
    f(torch.randn(3))
    for size in (4, 5):
        f(torch.randn(size))
    """)
    (found,) = coded(report, "BS201")
    assert "of the calls at script.py:9, script.py:10 and script.py:12" in str(found.advice)


def test_a_size_that_came_with_two_inner_ones_does_not_decide_them(scan: Scan) -> None:
    """Twice a batch of 4, and another number of what is kept: the batch is not why."""
    report = scan("""
        import torch

        def score(kept):
            return kept.relu() * 2

        @torch.compile(backend="eager")
        def f(x, data):
            kept = data[data > 0]
            torch._dynamo.graph_break()
            return score(kept).sum() + x.sum()
        for batch, count in ((4, 8), (3, 6), (4, 6), (4, 5)):
            data = -torch.ones(9)
            data[:count] = 1
            f(torch.ones(batch), data)
    """)
    assert not [one.advice for one in report.findings if "follows dimension 0 of x" in str(one.advice)]


def test_the_version_that_lacked_one_thing_is_the_cause(scan: Scan) -> None:
    """None has a version already, which is for a count of 0; the newest is for a tensor and any count."""
    report = scan("""
        import torch

        class Scheduler:
            def __init__(self):
                self.kept, self.at = None, 0
                self.rates = torch.arange(12.0)

            def step(self, x):
                y = x * self.rates[self.at]
                if self.kept is None:
                    self.kept = y
                else:
                    y, self.kept = y + self.kept, None
                self.at += 1
                return y

        scheduler = Scheduler()
        step = torch.compile(scheduler.step, backend="eager")
        for _ in range(8):
            step(torch.randn(3))
    """)
    told = [(one.guard.source, one.guard.expected) for one in report.findings if one.guard is not None]
    assert told == [("self.kept", "None"), ("self.at", "0")]


def test_all_that_failed_in_a_version_is_asked(scan: Scan, tmp_path: Path) -> None:
    script = """
        import json
        import torch
        from breakscope.inside.torch_api import failing
        from torch._dynamo import convert_frame

        told = convert_frame.get_and_maybe_log_recompilation_reasons

        def all_of(entries, frame, *rest):
            print(json.dumps(sorted(failing.failing(frame).items())))
            return told(entries, frame, *rest)

        convert_frame.get_and_maybe_log_recompilation_reasons = all_of

        @torch.compile(backend="eager")
        def f(x, scale, deep, kept):
            y = x * scale if deep else x + 1
            return y if kept is None else y + kept

        f(torch.ones(2, 3), 2, True, None)
        f(torch.ones(4, 3), 2, False, None)
        f(torch.ones(5, 3), 3, True, torch.ones(3))
    """
    folder = tmp_path / "asked"
    folder.mkdir()
    (folder / "script.py").write_text(textwrap.dedent(script))
    ran = subprocess.run(
        [sys.executable, "script.py"], cwd=folder, capture_output=True, text=True, check=True
    )
    first, second = map(json.loads, ran.stdout.splitlines())
    of_x, of_deep, of_kept = ("L['x']", 0), ("L['deep']", None), ("L['kept']", None)
    assert [(version, {tuple(one[:2]) for one in some}) for version, some in first] == [
        ("0/0", {of_x, of_deep})
    ]
    assert [(version, {tuple(one[:2]) for one in some}) for version, some in second] == [
        ("0/0", {of_x, ("L['scale']", None), of_kept}),
        ("0/1", {of_deep, of_kept}),
    ]


def test_0_and_1_of_a_number_that_is_no_size_are_as_any(scan: Scan) -> None:
    """Torch makes it symbolic at its second value, whatever that is: 2, 1 and 3 are two graphs."""
    report = scan("""
        import torch

        @torch.compile(backend="eager")
        def f(x, n):
            return x * n
        for n in (2, 1, 3, 0):
            f(torch.ones(3), n)
    """)
    (found,) = coded(report, "BS207")
    assert "apart" not in f"{found.expected} {found.advice}"


def test_optimizers_are_a_version_each_and_go_with_no_break(scan: Scan) -> None:
    report = scan("""
        import torch

        one, other = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
        first, second = torch.optim.Adam(one.parameters()), torch.optim.Adam(other.parameters())

        @torch.compile(backend="eager")
        def update(x):
            one(x).square().mean().backward()
            first.step()
            other(x).square().mean().backward()
            second.step()

        for _ in range(3):
            update(torch.ones(2, 4))
    """)
    told = [str(one.advice) for one in coded(report, "BS210")]
    assert told
    assert all(one.startswith("Each optimizer is a version of the code that steps it") for one in told)


def test_a_parameter_that_is_frozen_is_no_data(scan: Scan) -> None:
    report = scan("""
        import torch

        net = torch.nn.Linear(4, 1)

        @torch.compile(backend="eager")
        def update(x):
            for p in net.parameters():
                p.requires_grad = False
            return net(x).mean()

        for _ in range(2):
            update(torch.ones(2, 4))
    """)
    assert "Freeze a parameter, and unfreeze it, outside" in str([one.advice for one in report.findings])


def test_of_a_version_for_another_module_that_is_told_whatever_failed_first(scan: Scan) -> None:
    """Dynamo asks for the grad mode before it asks which function the decorator is put around."""
    report = scan("""
        import functools
        import torch
        from torch import nn

        def timed(fn):
            @functools.wraps(fn)
            def inner(*args):
                return fn(*args)
            return inner

        class Encoder(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(4, 4)
            @timed
            def forward(self, x):
                return self.linear(x).relu()

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.encoder, self.out = Encoder(), nn.Linear(4, 4)
            @timed
            def forward(self, x):
                return self.out(self.encoder(x))

        net = Net()
        for _ in range(3):
            net(torch.randn(3, 4)).sum().backward()
        with torch.no_grad():
            for _ in range(3):
                net(net.encoder(torch.randn(3, 4)))
    """)
    (module,) = coded(report, "BS210")
    (mode,) = coded(report, "BS212")
    assert module.guard is not None
    assert (module.guard.source, module.first_step) == ("fn", 3)
    assert "fn is a variable of timed" in str(module.advice)
    assert "Pass one and the same" not in str(module.advice)
    assert mode.first_step == 4  # the whole network without gradients, for which there is one with them


def test_a_mode_that_changed_with_a_size_is_the_cause(scan: Scan) -> None:
    """The guards on the modules of a Sequential stand below a dict's, which has its parts by key and value."""
    report = scan("""
        import torch
        from torch import nn

        net = torch.compile(nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)), backend="eager")
        for train, size in ((True, 8), (True, 8), (False, 5), (False, 5)):
            net.train(train)
            net(torch.ones(size, 4))
    """)
    (found,) = (one for one in report.findings if one.kind == "recompile")
    assert found.guard is not None
    assert found.guard.source == "self[1].training"
    assert found.expected == "one graph each for train() and eval()"


def test_another_object_of_a_class_is_told_by_its_parameter_and_not_as_a_size_of_the_call(scan: Scan) -> None:
    """A parameter keeps its size: the version for five channels is another object's, whatever came."""
    report = scan("""
        import torch
        from torch import nn

        class Bank(nn.Module):
            def __init__(self, channels):
                super().__init__()
                self.scale = nn.Parameter(torch.ones(channels))
            def forward(self, x):
                x = x * self.scale
                print(end="")
                return x.sum(-1)

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second = Bank(3), Bank(5)
            def forward(self, x, m):
                a = self.first(x)
                print(end="")
                return a.sum() + self.second(m).sum()

        net = torch.compile(Net(), backend="eager")
        for length, frames in ((12, 21), (17, 28), (9, 14), (12, 15)):
            net(torch.ones(2, length, 3), torch.ones(2, frames, 5))
    """)
    own = [one for one in coded(report, "BS201") if one.location.function == "Bank.forward"]
    told = [(one.guard.source, one.guard.values) for one in own if one.guard is not None]
    assert ("self.scale", ("3", "5")) in told
    assert ("x", ("5", "3")) not in told  # which no call changed
    assert "No size of" not in " ".join(str(one.advice) for one in own)


def test_a_quotient_that_an_operation_needs_is_a_version_each_where_it_is_of_that_size_alone(
    scan: Scan,
) -> None:
    """A pooling makes a constant of its input's length, and what meets that has it divided by two."""
    pooled = scan("""
        import torch
        from torch.nn import functional as F

        conv = torch.nn.Conv1d(1, 3, 10, 10)

        def encode(h, m):
            h = F.avg_pool1d(h, 2, 2)
            p = F.max_pool1d(m.unsqueeze(1), kernel_size=2, stride=2).squeeze(1)
            return h.masked_fill(p[:, None, :] == 0, 0.0)

        @torch.compile(backend="eager")
        def f(wav, mask):
            h = conv(wav[:, None])
            m = (torch.arange(h.shape[2])[None] < (mask.sum(-1) // 10)[:, None]).float()
            torch._dynamo.graph_break()
            return encode(h, m)
        for size in (390, 490, 340):
            f(torch.ones(4, size), torch.ones(4, size))
    """)
    notes = {one.guard.source: str(one.expected) for one in coded(pooled, "BS201") if one.guard is not None}
    assert "of which the code needs the number, so that each is compiled apart" in notes["h"]
    folded = scan("""
        import torch

        @torch.compiler.disable
        def step(x):
            return x + 1

        def bottle(x):
            y = step(x.view(x.size(0) * x.size(1), -1))
            return y.view(x.size(0), x.size(1), -1)

        @torch.compile(backend="eager")
        def f(x):
            return bottle(x[1:]).sum(0)
        for size in ((6, 5), (6, 5), (5, 3), (8, 7), (9, 2)):
            f(torch.ones(*size, 4))
    """)
    notes = [str(one.expected) for one in coded(folded, "BS201")]
    assert "takes any: compiled 2 times more, in 2 parts of the function" in " ".join(notes)
    assert "needs the number" not in " ".join(notes)


def test_what_else_breaks_in_a_callers_loop_is_named(scan: Scan) -> None:
    """The RNN ends the caller's frame by itself; once it is traced, the number that is drawn does."""
    source = """
        import random
        import torch
        from torch import nn

        class Decoder(nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn = nn.GRU(4, 4)
            def forward(self, x, h):
                return self.rnn(x[None], h)

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.decoder = Decoder()
            def forward(self, target, ratio):
                h, x = torch.zeros(1, target.shape[1], 4), target[0]
                for t in range(1, target.shape[0]):
                    y, h = self.decoder(x, h)
                    forced = random.random() < ratio
                    x = target[t] if forced else y[0]
                return x

        net = torch.compile(Net(), backend="eager")
        for _ in range(3):
            net(torch.ones(5, 3, 4), 0.5)
    """
    (found,) = coded(scan(source), "BS302")
    assert "Line 21 of the loop breaks the graph as well." in str(found.advice)
    followed = scan(
        source.replace("net = torch", "torch._dynamo.config.allow_rnn = True\n        net = torch")
    )
    assert [one.location.line for one in followed.findings if one.kind == "skip"] == [21]


def test_a_size_of_several_modules_is_of_no_parts_of_a_function(scan: Scan) -> None:
    """A library's module that is compiled by itself has a code of its own: no break cuts it."""
    report = scan("""
        import torch
        from torch import nn

        layers = [nn.Conv2d(3, 3, 3, padding=1) for _ in range(3)]
        with torch.no_grad():
            for size in (4, 4, 6, 6):
                x = torch.ones(size, 3, 8, 8)
                for layer in layers:
                    x = layer(x)
    """)
    (found,) = coded(report, "BS201")
    assert "compiled 3 times more, in 3 modules or functions" in str(found.expected)


@pytest.mark.parametrize(
    "held",
    [
        "def __init__(self): self.is_updated, self.kept = {0: False}, None",
        "is_updated, kept = {0: False}, None",  # what an object has of its class is told as its own
    ],
)
def test_a_flag_has_two_versions_and_a_cache_is_filled_by_a_first_token(scan: Scan, held: str) -> None:
    """No third value can come: nothing need be waited for."""
    report = scan(f"""
        import torch
        class Cache:
            {held}
        @torch.compile(backend="eager")
        def f(x, cache):
            if not cache.is_updated[0]:
                cache.kept = x * 2
            return x + cache.kept
        cache = Cache()
        for _ in range(2):
            f(torch.ones(3), cache)
            cache.is_updated[0] = True
    """)
    flags = {one.guard.source: one for one in coded(report, "BS208") if one.guard is not None}
    flag = flags["cache.is_updated[0]"]
    assert flag.guard is not None
    assert (flag.guard.expected, flag.guard.actual) == ("False", "True")
    first = "one graph for the first token, which sets cache.is_updated[0], and one for the next ones"
    assert flag.expected == f"{first}: compiled once more, and not again"


def test_a_layer_that_is_set_up_by_its_first_call_is_no_cache_of_tokens(scan: Scan) -> None:
    """A flag of the same name as that of transformers' caches."""
    report = scan("""
        import torch
        class Norm(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.is_initialized = False
                self.register_buffer("mean", torch.zeros(4))
            def forward(self, x):
                if not self.is_initialized:
                    self.mean.copy_(x.mean(0))
                    self.is_initialized = True
                return x - self.mean
        net = torch.compile(Norm(), backend="eager")
        for _ in range(3):
            net(torch.randn(3, 4))
    """)
    said = {one.guard.source: one.expected for one in report.findings if one.guard is not None}
    assert str(said["self.is_initialized"]).startswith("one graph for each of the two: compiled once more")
