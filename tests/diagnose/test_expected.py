"""Which recompiles a healthy script has, and which repeat or grow; what ended a run, and what hid the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from report_samples import CLEAN, SIZE
from warm_scanning import WarmScans, coded

from breakscope.diagnose.merge import merge
from breakscope.report import schema
from breakscope.report.model import Report
from breakscope.report.ranking import is_open

pytestmark = pytest.mark.torch

Scan = Callable[..., Report]


@pytest.fixture
def scan(warm: WarmScans, tmp_path: Path) -> Scan:
    return lambda source, *options: warm.scan(tmp_path, source, *options)


def judged(report: Report) -> dict[str, list[bool]]:
    """By code, whether each of its causes is expected."""
    codes = sorted({one.code for one in report.findings})
    return {code: [one.expected is not None for one in coded(report, code)] for code in codes}


# ---- recompiles: fifteen calls each ----

CALLS = """
    import torch
    @torch.compile({options})
    def f(x, given=None):
        return x * 2 if given is None or isinstance(given, (bool, str)) else x * given
    for n in range(15):
        {call}
"""
HALF = "torch.ones(4 if n % 2 else 3)"


@pytest.mark.parametrize(
    ("call", "options", "expected"),
    [
        ("f(torch.ones(3 + n))", "", {"BS201": [True]}),
        ("f(torch.ones(1 + n))", "", {"BS201": [True]}),
        (f"f({HALF})", "dynamic=False", {"BS201": [True]}),
        ("f(torch.ones(3 + n % 3))", "dynamic=False", {"BS201": [False]}),
        ("f(torch.ones(3), n)", "", {"BS207": [True]}),
        ("f(torch.ones(3), 0.5 / (n + 2))", "", {"BS207": [True]}),
        ("f(torch.ones(3, requires_grad=n % 2 == 0))", "", {"BS205": [True]}),
        ("f(torch.ones(3 + n, requires_grad=n % 2 == 0))", "", {"BS205": [True], "BS201": [True]}),
        ("f(torch.ones(3), None if n % 2 else torch.ones(3))", "", {"BS210": [True]}),
        ("f(torch.ones(3), None if n < 13 else torch.ones(3))", "", {"BS210": [False]}),
        ("f(torch.ones(3), n % 2 == 0)", "", {"BS208": [True]}),
        ("f(torch.ones(3), 'ab'[n % 2])", "", {"BS208": [True]}),
        ("f(torch.ones(3), 'abc'[n % 3])", "", {"BS208": [False]}),
        ("f(torch.ones(3), 'abcdefg'[n % 7])", "", {"BS208": [False]}),
        ("f(torch.ones(3, dtype=torch.float64 if n % 2 else None))", "", {"BS203": [False]}),
        ("torch.set_num_threads(1 + n % 2); f(torch.ones(3))", "", {"BS212": [False]}),
    ],
)
def test_what_comes_once_is_expected_and_what_repeats_is_not(
    scan: Scan, call: str, options: str, expected: dict[str, list[bool]]
) -> None:
    assert judged(scan(CALLS.format(call=call, options=options))) == expected


HELD = """
    import torch
    {made}
    @torch.compile
    def f(self, x):
        return x * {used}
    for n in range(15):
        {call}
"""


@pytest.mark.parametrize(
    ("made", "used", "call", "said"),
    [
        (
            "class Track:\n        def __init__(self):\n            self.hits = 2\n    self = Track()",
            "self.hits",
            "f(self, torch.ones(3)); self.hits += 1",
            ["a second value of self.hits: compiled once more, and not again"],
        ),
        (
            "self = torch.nn.Linear(3, 3); self.hits = 2",
            "self.hits",
            "f(self, torch.ones(3)); self.hits += 1",
            [None],
        ),
        (
            "self = [torch.nn.Linear(3, 3), torch.nn.Linear(4, 4)]",
            "self.weight.sum()",
            "f(self[n % 2], torch.ones(3))",
            ["a parameter of another size, which torch compiles in by default: compiled once more"],
        ),
    ],
    ids=["a number of a plain object", "a counter of a module", "a parameter of another model"],
)
def test_a_second_value_is_expected_where_no_third_is_compiled(
    made: str, used: str, call: str, said: list[str | None], scan: Scan
) -> None:
    report = scan(HELD.format(made=made, used=used, call=call))
    found = [one for one in report.findings if one.kind == "recompile"]
    assert [one.expected for one in found][:1] == said


@pytest.mark.parametrize(
    ("body", "sizes", "said"),
    [
        ("return x * 2", "[8] * 3 + [5] * 9", ", after which torch takes any: compiled once more"),
        (
            "return x * 2 if x.shape[0] > 6 else x",
            "[8] * 3 + [5] * 9",
            ", after which torch takes any for which x.size(0) <= 6 (line 5) has the same answer: compiled once more",
        ),
        (
            "return torch.stack([one * 2 for one in x])",
            "[8] * 3 + [5] * 9",
            ", of which the code needs the number, so that each is compiled apart: compiled once more",
        ),
        ("return torch.stack([one * 2 for one in x])", "[8] * 9 + [5] * 3", None),
    ],
    ids=["any", "two sides", "a number", "a number that may go on"],
)
def test_what_torch_does_with_a_third_size_is_told_as_it_decided(
    scan: Scan, body: str, sizes: str, said: str | None
) -> None:
    report = scan(f"""
        import torch
        @torch.compile
        def f(x):
            {body}
        for size in {sizes}:
            f(torch.ones(size))
    """)
    [finding] = coded(report, "BS201")
    assert (
        finding.expected is None
        if said is None
        else (finding.expected or "").startswith(f"a smaller size (5 after 8){said}")
    )


def test_a_float_that_an_operation_takes_as_a_number_is_no_symbol(scan: Scan) -> None:
    report = scan("""
        import torch
        @torch.compile
        def f(x, p):
            return torch.nn.functional.dropout(x, p, True)
        for p in [0.6] + [0.7] * 8:
            f(torch.ones(8), p)
    """)
    (finding,) = coded(report, "BS207")
    assert "of which the code needs the number, so that each is compiled apart" in str(finding.expected)


def test_each_mode_has_its_own_sizes(scan: Scan) -> None:
    report = scan("""
        import torch
        net = torch.compile(torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout(0.5)))
        for size in (8, 8, 5, 8, 4):
            net.train()
            net(torch.ones(size, 3)).sum().backward()
            net.eval()
            with torch.no_grad():
                net(torch.ones(2 * size, 3))
    """)
    assert report.totals.recompiles > 1
    assert not any(map(is_open, report.findings))


def test_growth_is_not_hidden_by_a_mode_that_changes_at_each_call(scan: Scan) -> None:
    report = scan("""
        import torch
        @torch.compile(dynamic=False)
        def f(x): return x * 2
        for n in range(6):
            f(torch.ones(3 + n // 2, requires_grad=n % 2 == 0))
    """)
    assert report.totals.recompiles == 5
    assert [one.code for one in report.findings if is_open(one)]


def test_the_version_of_the_same_mode_is_the_one_that_was_meant_to_fit(scan: Scan) -> None:
    # The last call is compared with the version for evaluation first, and differs from the other in its size.
    report = scan("""
        import torch
        @torch.compile
        def f(x): return x * 2
        f(torch.ones(8))
        with torch.no_grad(): f(torch.ones(8))
        f(torch.ones(5))
    """)
    assert [one.counts.occurrences for one in coded(report, "BS212")] == [1]
    assert [one.guard.actual for one in coded(report, "BS201") if one.guard] == ["5"]


def test_what_used_up_the_limit_is_not_expected(scan: Scan) -> None:
    report = scan("""
        import torch
        torch._dynamo.config.recompile_limit = 2
        @torch.compile(dynamic=False)
        def f(x): return x * 2
        for n in range(8): f(torch.ones(3 + n))
    """)
    assert judged(report) == {"BS201": [False], "BS303": [False]}


# ---- in reports ----


def test_a_report_of_before_has_findings_only() -> None:
    data = schema.to_dict(replace(CLEAN, findings=(SIZE,)))
    for name in ("expected", "effect"):
        del data["findings"][0][name]
    [finding] = schema.from_dict(data).findings
    assert is_open(finding)
    assert (finding.expected, finding.effect) == (None, None)


def test_it_is_expected_of_a_job_if_it_is_on_each_rank() -> None:
    fine = replace(CLEAN, findings=(replace(SIZE, expected="a second size"),))
    grows = replace(CLEAN, findings=(SIZE,), run=replace(CLEAN.run, duration_s=9.0))
    assert [one.expected for one in merge([fine, fine]).findings] == ["a second size"]
    for order in ([fine, grows], [grows, fine]):
        assert [one.expected for one in merge(order).findings] == [None]


# ---- what ended the run ----

CRASH = """
    import torch
    def backend(graph, inputs):
        raise NotImplementedError("no kernel for aten.tanh")
    @torch.compile(backend=backend)
    def f(x): return x.tanh()
    @torch.compile(backend="eager")
    def g(x):
        if x.sum() > 0: x = x + 1
        return x
    for _ in range(9): g(torch.ones(3))
    {call}
"""


@pytest.mark.parametrize(
    ("call", "effect"),
    [
        ("f(torch.ones(3))", "ended"),
        (
            "try: f(torch.ones(3))\n    except Exception as error: raise RuntimeError('no') from error",
            "ended",
        ),
        ("try: f(torch.ones(3))\n    except Exception: pass", "incomplete"),
        ("try: f(torch.ones(3))\n    except Exception: pass\n    [][1]", "incomplete"),
    ],
)
def test_what_the_script_died_of_is_known_from_what_it_raised(scan: Scan, call: str, effect: str) -> None:
    report = scan(CRASH.format(call=call), "--backend", "as-script")
    first, *rest = report.findings
    assert (first.code, first.effect) == ("BS306", effect)
    assert first.reason == "NotImplementedError: no kernel for aten.tanh (backend='backend')"
    assert [(one.code, one.effect) for one in rest] == [("BS101", None)]


def test_a_limit_that_ended_the_run_stands_first(scan: Scan) -> None:
    report = scan("""
        import torch
        torch._dynamo.config.recompile_limit = 2
        torch._dynamo.config.fail_on_recompile_limit_hit = True
        @torch.compile(dynamic=False)
        def f(x, n): return x * n
        for n in range(5): f(torch.ones(3), n)
    """)
    assert report.run.status == "script_error"
    assert (report.findings[0].code, report.findings[0].effect) == ("BS303", "ended")


# ---- what a compiled optimizer makes of a learning rate of 0 ----

WARMUP = """
    import torch
    p, q = (torch.nn.Parameter(torch.ones(3)) for _ in range(2))
    opt = torch.optim.{optimizer}([p, q], lr=0.01{form})
    schedule = torch.optim.lr_scheduler.LambdaLR(opt, lambda step: {rate})
    @torch.compile
    def step(x):
        opt.zero_grad()
        ((p * x).sum() + (q * 0).sum()).backward()
        opt.step()
    for _ in range(12):
        step(torch.ones(3))
        schedule.step()
    open("finite", "w").write(str(bool(q.isfinite().all())))
"""


@pytest.mark.parametrize(
    ("optimizer", "form", "rate", "advised"),
    [
        ("AdamW", "", "min(1.0, step / 3)", True),
        ("AdamW", "", "max(min(1.0, step / 3), 1e-8)", False),
        ("AdamW", ", foreach=True", "min(1.0, step / 3)", False),
        ("SGD", "", "min(1.0, step / 3)", False),
    ],
)
def test_a_warmup_that_begins_at_zero_is_not_healthy(
    warm: WarmScans, tmp_path: Path, optimizer: str, form: str, rate: str, advised: bool
) -> None:
    """With torch 2.11 and 2.13 on a CPU: a parameter whose gradient is 0 is NaN after the first step, under compile only."""
    report = warm.scan(tmp_path, WARMUP.format(optimizer=optimizer, form=form, rate=rate))
    told = [one for one in coded(report, "BS207") if "Begin the schedule above 0" in str(one.advice)]
    assert bool(told) == advised
    assert all(one.expected is None for one in told)
    assert (tmp_path / "finite").read_text() == str(not advised)
