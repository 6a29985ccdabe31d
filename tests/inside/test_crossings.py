"""Crossings, where counting them is hard: each number is the one that reasoning gives.

The scripts mark their sites with a comment, ``# A``; the tests name the mark and the count.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.metadata import version

import pytest
from scanning import Scanned

from breakscope.report.model import Finding

pytestmark = pytest.mark.torch

Scan = Callable[..., Scanned]
SITE_CODES = ("BS301", "BS302", "BS306")
TORCH = tuple(map(int, version("torch").split("+")[0].split(".")[:2]))


def sites(scanned: Scanned) -> dict[str, list[Finding]]:
    """The findings at each mark, from left to right."""
    lines = (scanned.folder / "script.py").read_text().splitlines()
    found: dict[str, list[Finding]] = {}
    for finding in scanned.report.findings:
        if finding.kind != "graph_break" and finding.code not in SITE_CODES:
            continue
        mark = re.search(r"# ([A-Z])$", lines[finding.location.line - 1])
        assert mark is not None, finding
        found.setdefault(mark[1], []).append(finding)
    for at_mark in found.values():
        at_mark.sort(key=lambda finding: finding.location.column or 0)
    return found


def crossings(scanned: Scanned) -> dict[str, list[int | None]]:
    """How often execution left compiled code at each mark."""
    assert scanned.exit_code == 0, scanned.stderr
    report = scanned.report
    assert report.reconciliation.unattributed == ()
    assert not [note for note in report.run.notes if "not counted" in note]
    counted = {mark: [f.counts.crossings for f in found] for mark, found in sites(scanned).items()}
    assert report.totals.crossings == sum(count or 0 for counts in counted.values() for count in counts)
    return counted


def columns(finding: Finding) -> str:
    """The text that a finding points at, on its line."""
    location = finding.location
    assert location.source is not None
    assert location.indent is not None
    assert location.column is not None
    assert location.end_column is not None
    return location.source[location.column - 1 - location.indent : location.end_column - 1 - location.indent]


def test_recursion_and_helpers(scan: Scan) -> None:
    scanned = scan(
        """
        import torch

        def countdown(x, n):
            y = x * 2
            print(end="")  # A
            return y if n == 0 else countdown(y, n - 1) + 1

        def helper(x):
            y = x + 1
            print(end="")  # B
            return y * 2

        def mutual_a(x, n):
            y = x + 1
            print(end="")  # C
            return y if n == 0 else mutual_b(y, n)

        def mutual_b(x, n):
            y = x + 2
            print(end="")  # D
            return mutual_a(y, n - 1)

        @torch.compile
        def one(x):
            return helper(x * 3) - 1

        @torch.compile
        def two(x):
            return helper(helper(x * 4)) - 2

        @torch.compile
        def deep(x):
            return one(x) + two(x)

        x = torch.ones(3)
        recursive, direct, mutual = map(torch.compile, (countdown, helper, mutual_a))
        for _ in range(2):
            recursive(x, 3)
            mutual(x, 2)
        for _ in range(3):
            one(x)
            two(x)
            direct(x)
            deep(x)
        """
    )
    assert crossings(scanned) == {
        "A": [2 * 4],
        # A turn: 1 from one, 2 from two, 1 called directly, 3 from deep through one and two.
        "B": [3 * (1 + 2 + 1 + 3)],
        "C": [2 * 3],
        "D": [2 * 2],
    }


def test_expressions_and_enclosing_scopes(scan: Scan) -> None:
    scanned = scan(
        """
        import dataclasses
        import torch

        @torch.compile
        def sums(a, b):
            a = a + 1
            return a.sum().item() + b.sum().item()  # A

        @torch.compile
        def comprehension(x):
            x = x + 1
            return [x * v.item() for v in (x[0], x[1], x[2])]  # B

        @torch.compile
        def with_lambda(x):
            x = x * 2
            scale = lambda t: t * t.sum().item()  # C
            return scale(x) + 1

        @torch.compile
        def nested(x):
            def inner(t):
                t = t + 1
                print(end="")  # D
                return t * 2
            return inner(x * 2) + inner(x)

        @dataclasses.dataclass
        class Point:
            t: torch.Tensor

            def norm(self):
                s = (self.t * self.t).sum()
                print(end="")  # E
                return s.sqrt()

            @property
            def half(self):
                h = self.t / 2
                print(end="")  # F
                return h

        @torch.compile
        def of_method(p):
            return p.norm() + 1

        @torch.compile
        def of_property(p):
            return p.half + 1

        x = torch.arange(4.0)
        for _ in range(3):
            sums(x, x)
            comprehension(x)
            with_lambda(x)
            nested(x)
            of_method(Point(x))
            of_property(Point(x))
        """
    )
    counted = crossings(scanned)
    found = sites(scanned)
    # The loop of a comprehension is a frame of its own up to Python 3.11, and inlined from 3.12 on;
    # either way it is skipped as a whole, and each item passes the site.
    assert counted == {"A": [3, 3], "B": [9], "C": [3], "D": [6], "E": [3], "F": [3]}
    assert [columns(finding) for finding in found["A"]] == ["a.sum().item()", "b.sum().item()"]
    assert found["A"][0].fingerprint != found["A"][1].fingerprint
    assert columns(found["B"][0]) == "v.item()"
    # torch 2.9 does not name the loop as what cannot be resumed; 2.15 resumes after the comprehension.
    assert found["B"][0].code == ("BS301" if TORCH == (2, 13) else "BS302" if TORCH < (2, 13) else "BS102")
    assert columns(found["C"][0]) == "t.sum().item()"
    # A property cannot be resumed inside: its caller runs eagerly.
    assert {(s.function, s.calls) for s in found["F"][0].skipped} == {("of_property", 3)}


def test_a_later_operand_beside_an_identity_test(scan: Scan) -> None:
    # CPython 3.11 gives the jump of `not mask.all()` the place of `mask is not None`.
    scanned = scan(
        """
        import torch

        @torch.compile
        def of_one_line(x, mask=None):
            if mask is not None and not mask.all():  # A
                x = x * mask
            return x + 1

        @torch.compile
        def of_several(x, mask=None):
            if (
                mask is None
                or mask.all()  # B
            ):
                x = x * 2
            return x + 1

        x = torch.arange(4.0)
        for _ in range(3):
            of_one_line(x, x > 2)
            of_several(x, x > 2)
        """
    )
    assert crossings(scanned) == {"A": [3], "B": [3]}
    found = sites(scanned)
    assert [columns(found[mark][0]) for mark in "AB"] == ["mask.all()", "mask.all()"]
    assert [frame.function for frame in found["B"][0].stack] == ["<module>", "of_several"]
    assert found["B"][0].stack[-1].line == found["B"][0].location.line


def test_threads_reset_limit_and_exceptions(scan: Scan) -> None:
    scanned = scan(
        """
        import threading
        import torch

        def shared(x):
            y = x + 1
            print(end="")  # A
            return y * 2

        def broken_in(x):
            return inner(x * 2) + 1

        def inner(x):
            y = x + 1
            print(end="")  # B
            return y

        in_threads, nested = torch.compile(shared), torch.compile(broken_in)
        in_threads(torch.ones(3))
        nested(torch.ones(3))
        barrier = threading.Barrier(2)

        def work():
            barrier.wait()
            for _ in range(50):
                in_threads(torch.ones(3))
                nested(torch.ones(3))

        threads = [threading.Thread(target=work) for _ in range(2)]
        [t.start() for t in threads]
        [t.join() for t in threads]

        @torch.compile
        def looped(x):
            for _ in range(3):
                x = x + 1
                print(end="")  # C
            return x

        for turn in range(8):
            if turn == 4:
                torch._dynamo.reset()
            looped(torch.ones(3))

        @torch.compile
        def raises(x):
            y = x + 1
            print(end="")  # D
            raise ValueError("through")

        for _ in range(3):
            try:
                raises(torch.ones(3))
            except ValueError:
                pass

        @torch.compile(dynamic=False)
        def limited(x, n):
            y = x * n
            print(end="")  # E
            return y + 1

        torch._dynamo.config.recompile_limit = 2
        for n in range(2, 7):
            limited(torch.ones(3), n)
        """
    )
    counted = crossings(scanned)
    # Skipped again after the reset, and reported again.
    assert sites(scanned)["C"][0].counts.occurrences == 2
    # Two versions of `limited` were compiled; the other three calls never entered compiled code.
    assert counted == {"A": [101], "B": [101], "C": [24], "D": [3], "E": [2]}
    [limit] = [finding for finding in scanned.report.findings if finding.code == "BS303"]
    assert limit.counts.crossings == 3


def test_statements_that_surround_a_break(scan: Scan) -> None:
    scanned = scan(
        """
        import torch

        def generate(x):
            for i in range(3):
                print(end="")  # A
                yield x + i

        @torch.compile
        def consume(x):
            t = x * 2
            for v in generate(x):
                t = t + v
            return t

        class Made:
            def __init__(self, x):
                self.x = x + 1
                print(end="")  # B
                self.y = self.x * 2

        @torch.compile
        def make(x):
            return Made(x * 2).y + 1

        @torch.compile
        def inside(x):
            with torch.no_grad():
                y = x * 2
                print(end="")  # C
                z = y + 1
            return z * x

        class Net(torch.nn.Module):
            @torch.no_grad()
            def forward(self, x):
                y = x * 2
                print(end="")  # D
                return y + 1

        class Meter:
            def __init__(self):
                self.total = 0.0

            def __call__(self, t):
                self.total += t.sum().item()  # E
                return t

        meter = Meter()

        @torch.compile
        def metered(x):
            return meter(x + 1) * 2

        net = torch.compile(Net())
        for _ in range(3):
            for function in (consume, make, inside, net, metered):
                function(torch.ones(3))
        """
    )
    counted = crossings(scanned)
    if TORCH >= (2, 13):  # torch 2.9 skips the consumer of a generator that breaks, and says nothing of it
        # One crossing for each call of the consumer, not for each item.
        assert counted.pop("A") == [3]
        assert {(s.function, s.calls) for s in sites(scanned)["A"][0].skipped} == {("consume", 3)}
    assert counted == {"B": [3], "C": [3], "D": [3], "E": [3]}


def test_one_wrapper_around_a_caller_and_its_callee(scan: Scan) -> None:
    """Dynamo gives up on the wrapper once, for both functions that it wraps."""
    scanned = scan(
        """
        import functools
        import torch

        def guarded(function):
            @functools.wraps(function)
            def wrapper(*args):
                try:
                    return function(*args)
                except KeyError:
                    return None
            return wrapper

        @guarded
        def callee(x):
            y = x + 1
            print(end="")  # A
            return y * 2

        @guarded
        def caller(x):
            return callee(x * 2) + 1

        compiled = torch.compile(caller)
        for _ in range(5):
            compiled(torch.ones(3))
        """
    )
    assert crossings(scanned) == {"A": [5]}
    [finding] = sites(scanned)["A"]
    assert {(s.function, s.calls) for s in finding.skipped} == {("guarded.<locals>.wrapper", 10)}


@pytest.mark.skipif(TORCH < (2, 13), reason="this torch cannot resume inside inlined functions")
def test_a_nested_break_is_one_record_and_one_crossing_a_call(scan: Scan) -> None:
    scanned = scan(
        """
        import torch

        torch._dynamo.config.nested_graph_breaks = True

        def helper(x):
            y = x + 1
            print(end="")  # A
            return y * 2

        def between(x):
            return helper(x) + 1

        @torch.compile
        def outer(x):
            return between(x * 2) + 3

        for _ in range(4):
            outer(torch.ones(3))
        """
    )
    assert crossings(scanned) == {"A": [4]}
    assert sites(scanned)["A"][0].counts.occurrences == 1


def test_a_frame_that_is_given_up_before_its_first_instruction(scan: Scan) -> None:
    scanned = scan(
        """
        import torch

        @torch.compile
        def energy(x):  # A
            return (x * x).sum()

        for _ in range(3):
            torch.func.grad(energy)(torch.arange(4.0))
        """
    )
    assert crossings(scanned) == {"A": [3]}
    [finding] = sites(scanned)["A"]
    assert (finding.code, finding.gb_id) == ("BS302", "GB0149")
