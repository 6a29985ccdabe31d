"""What a report says of a run is what happened: each of these was told wrongly once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from warm_scanning import WarmScans, coded

from breakscope.report.model import Report

pytestmark = pytest.mark.torch

Scan = Callable[..., Report]


@pytest.fixture
def scan(warm: WarmScans, tmp_path: Path) -> Scan:
    return lambda source, *options: warm.scan(tmp_path, source, *options)


WARMED_UP = """
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)
            for size in (2, 3, 5):
                self(torch.ones(size, 4))

        def forward(self, x):
            print(end="")
            return self.linear(x)

    net = Net()
    for size in (2, 3, 7):
        net(torch.ones(size, 4))
    {compiled}
    for _ in range(5):
        net(torch.ones(8, 4))
"""


@pytest.mark.parametrize("compiled", ["net = torch.compile(net)", "net.compile()"])
def test_a_warm_up_in_eager_is_not_compiled_by_us(scan: Scan, compiled: str) -> None:
    report = scan(WARMED_UP.format(compiled=compiled))
    assert [finding.code for finding in report.findings] == ["BS104"]
    assert (report.totals.steps, report.totals.crossings, report.totals.recompiles) == (5, 5, 0)
    assert {target.by for target in report.run.targets} == {"script"}
    assert [step.index for step in report.steps] == [0, 1, 2, 3, 4]
    assert report.run.device is not None


def test_steps_are_counted_from_the_scripts_own_compile_on(scan: Scan) -> None:
    report = scan(WARMED_UP.format(compiled="net = torch.compile(net)"), "--steps", "3")
    assert report.totals.steps == 3
    assert {target.by for target in report.run.targets} == {"script"}


def test_each_function_has_its_own_recompile_limit(scan: Scan) -> None:
    report = scan("""
        import torch
        torch._dynamo.config.recompile_limit = 2

        class A(torch.nn.Module):
            def forward(self, x, n): return x * n
        class B(torch.nn.Module):
            def forward(self, x, n): return x + n
        class C(torch.nn.Module):
            def forward(self, x, s): return x + len(s)

        a, b, c = (torch.compile(kind(), dynamic=False) for kind in (A, B, C))
        x = torch.ones(3)
        for n in range(6): a(x, n)
        for n in range(5): b(x, n)
        for s in ("a", "b"): c(x, s)
    """)
    limits = coded(report, "BS303")
    assert {limit.location.function: limit.counts.crossings for limit in limits} == {
        "A.forward": 4,
        "B.forward": 3,
    }
    assert [[guard.source for guard in limit.guards] for limit in limits] == [["n"], ["n"]]
    assert limits[0].guards[0].values == ("0", "1", "2")  # also the one that was refused
    assert report.totals.skips == len(limits)
    assert {limit.calls_of for limit in limits} == {"A.forward", "B.forward"}


@pytest.mark.parametrize(
    ("setting", "options"),
    [
        ("torch._dynamo.config.fail_on_recompile_limit_hit = True", ()),
        ("compile_options['fullgraph'] = True", ("--keep-fullgraph",)),
    ],
)
def test_a_limit_that_raises_is_in_the_report(scan: Scan, setting: str, options: tuple[str, ...]) -> None:
    report = scan(
        f"""
        import torch
        torch._dynamo.config.recompile_limit = 2
        compile_options = {{}}
        {setting}
        def f(x, n): return x * n
        g = torch.compile(f, dynamic=False, **compile_options)
        try:
            for n in range(5): g(torch.ones(3), n)
        except Exception as error:
            print(type(error))
        """,
        *options,
    )
    [limit] = coded(report, "BS303")
    assert limit.location.function == "f"
    assert limit.reason.startswith("raised to the script: ")
    assert [guard.source for guard in limit.guards] == ["n"]


def test_a_recompile_that_a_stance_forbids_is_what_ended_the_run(scan: Scan) -> None:
    report = scan("""
        import torch

        @torch.compile
        def f(x): return x * 2

        f(torch.ones(3))
        with torch.compiler.set_stance("fail_on_recompile"):
            f(torch.ones(3))
            f(torch.ones(5))
    """)
    [forbidden] = report.findings
    assert (forbidden.code, forbidden.title) == ("BS201", "size of x, dimension 0: compiled for 3, got 5")
    assert (forbidden.effect, forbidden.expected) == ("ended", None)
    assert 'set_stance("fail_on_recompile")' in str(forbidden.advice)
    assert forbidden.location.function == "f"


@pytest.mark.parametrize("stance", ["force_eager", "eager_on_recompile", "eager_then_compile"])
def test_a_stance_under_which_calls_run_eagerly_is_told(scan: Scan, stance: str) -> None:
    report = scan(f"""
        import torch

        @torch.compile
        def f(x): return x * 2

        f(torch.ones(3))
        for _ in range(2):
            with torch.compiler.set_stance("{stance}"):
                f(torch.ones(5))
    """)
    told = [note for note in report.run.notes if "set_stance" in note]
    assert len(told) == 1
    assert f'set_stance("{stance}")' in told[0]
    assert "eagerly" in told[0]


def test_a_size_that_the_code_fixes_is_named_where_it_is_fixed(scan: Scan) -> None:
    report = scan("""
        import torch

        @torch.compile
        def f(batch):
            return batch["x"].view(-1, 8)

        x = torch.ones(3, 8)
        torch._dynamo.mark_dynamic(x, 1)
        f({"x": x})
    """)
    [fixed] = coded(report, "BS309")
    assert fixed.reason == "dimension 1 of batch['x'] is marked as dynamic, and the code fixes it to 8"
    assert (fixed.location.line, fixed.location.function, fixed.effect) == (6, "f", "ended")


def test_sizes_that_an_export_finds_to_be_equal_are_named_where_there_is_no_line(scan: Scan) -> None:
    report = scan("""
        import torch
        from torch.export import Dim

        class Sum(torch.nn.Module):
            def forward(self, x, y):
                return x + y

        x, y = torch.ones(6, 4), torch.ones(6, 4)
        torch.export.export(Sum(), (x, y), dynamic_shapes={"x": {0: Dim("a")}, "y": {0: Dim("b")}}, strict=True)
    """)
    texts = [event.text for event in report.reconciliation.unattributed]
    assert [text for text in texts if "dimension 0 of y and dimension 0 of x must always be equal" in text]


def test_a_pass_of_the_line_is_what_crosses_a_skipped_frame(scan: Scan) -> None:
    report = scan("""
        import torch

        @torch.compile
        def f(x, noisy):
            for i in range(4):
                x = x + 1
                if noisy and i % 2:
                    print(end="")
            return x

        for noisy in (True, False, True, False, True, False, True, False):
            f(torch.ones(3), noisy)
    """)
    [finding] = coded(report, "BS301")
    assert (finding.counts.crossings, finding.skipped[0].calls, finding.calls_of) == (8, 8, None)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("return x.view(5, 5)", "BS190"),
        (
            "try:\n                return x @ torch.ones(7)\n            except RuntimeError:\n                return x",
            "BS191",
        ),
    ],
)
def test_that_eager_fails_too_is_said_only_where_it_did(scan: Scan, body: str, code: str) -> None:
    report = scan(f"""
        import torch

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = torch.nn.Linear(3, 3)
            def forward(self, x):
                return self.inner(x)
            def inner(self, x):
                {body.replace(chr(10), chr(10) + "    ")}

        Net()(torch.ones(3))
    """)
    [finding] = report.findings
    assert finding.code == code
    assert finding.reason.startswith("RuntimeError: ")
    if code == "BS191":
        assert finding.title == "fails under torch.compile only: the same call passes in eager"
        assert "compiled by breakscope" in finding.explanation
    else:
        assert "in eager the same call raises RuntimeError: shape '[5, 5]' is invalid" in finding.explanation


def test_an_error_that_eager_does_not_reach_for_another_one_is_not_called_the_same(scan: Scan) -> None:
    report = scan("""
        import torch

        @torch.compile
        def f(x, table):
            if torch.compiler.is_compiling():
                return x.view(7, -1)
            return x + table["missing"]

        f(torch.ones(3), {})
    """)
    [finding] = report.findings
    assert finding.code == "BS190"
    assert finding.title == "error under torch.compile, where eager raises another: KeyError"


def test_what_eager_raises_of_a_call_that_had_begun_is_not_called_the_same(scan: Scan) -> None:
    """Made again as a whole, its first part runs twice: of one graph backward() cannot."""
    report = scan("""
        from collections import deque

        import numpy as np
        import torch

        w = torch.nn.Parameter(torch.ones(3))
        kept = deque([1.0, 2.0])
        graph = (w * 2).sum()

        @torch.compile
        def update(x):
            loss = graph + x.sum()
            loss.backward()
            return {"loss": loss.detach(), "mean": np.mean(kept)}

        update(torch.ones(3))
    """)
    (finding,) = (one for one in report.findings if one.effect == "ended")
    assert finding.code == "BS306"
    assert "a part of the call had run before" in finding.explanation
    assert str(finding.advice).startswith("numpy is given a deque here")
    passes = scan("""
        from collections import deque
        import numpy as np, torch

        @torch.compile
        def update(x):
            return x.sum(), np.mean(list(deque([1.0, 2.0])))

        print(update(torch.ones(3)))
    """)
    assert passes.run.status == "ok"


def test_trying_a_call_in_eager_leaves_no_trace_in_the_script(scan: Scan, tmp_path: Path) -> None:
    scan("""
        import random, torch

        calls = []

        @torch.compile
        def f(x):
            calls.append(1)
            print("called")
            x.add_(torch.rand(3))
            return x.view(5, 5)

        x = torch.zeros(3)
        before = torch.get_rng_state()
        try: f(x)
        except Exception: pass
        with open("left.txt", "w") as file:
            print(len(calls), x.count_nonzero().item(), file=file)
    """)
    # As without us: the list and the text, then the break; the rest never ran.
    assert (tmp_path / "left.txt").read_text() in ("1 0\n", "1 3\n")


def test_a_site_is_where_the_instruction_stands(scan: Scan) -> None:
    report = scan("""
        import torch

        @torch.compile
        def f(x, mask):
            hit = torch.greater(
                mask.sum(
                    dim=-1
                ), 0
            ).nonzero()
            return x[
                hit
            ]

        f(torch.ones(3), torch.ones(3, 2))
    """)
    [finding] = coded(report, "BS105")
    assert finding.location.source == ").nonzero()"


def test_forked_processes_are_counted_apart_and_named(scan: Scan) -> None:
    report = scan("""
        import multiprocessing, torch

        @torch.compile
        def f(x):
            x = x + 1
            print(end="")
            return x * 2

        def work():
            for _ in range(7):
                f(torch.ones(3))

        for _ in range(3):
            f(torch.ones(3))
        child = multiprocessing.get_context("fork").Process(target=work)
        child.start()
        child.join()
        f(torch.ones(3))
    """)
    assert report.totals.crossings == 4
    [note] = [note for note in report.run.notes if note.startswith("process ")]
    assert "is not in the totals: 7 crossings (script.py:7: 7), 14 graph launches, 0 compiles" in note
    assert "forked at " in note
    assert "script.py:17" in note


def test_an_error_that_ends_the_run_has_its_step_and_the_function_that_holds_its_line(scan: Scan) -> None:
    report = scan("""
        import torch

        def noise(shape, generator=None):
            return torch.randn(shape, generator=generator)

        @torch.compile(backend="eager")
        def first(x):
            return x + 1

        @torch.compile(backend="eager")
        def second(x):
            return x + noise(x.shape)

        for _ in range(4):
            first(torch.ones(2, 3))
        for size in (3, 4):
            second(torch.ones(2, size))
    """)
    [finding] = coded(report, "BS191")
    assert (finding.location.function, finding.first_step) == ("noise", 5)
    assert [frame.function for frame in finding.stack] == ["second", "noise"]
