"""Tests that a model compiles without breaks: for the fixture of pytest, and for any other runner."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from breakscope.api import Started, arguments, prove
from breakscope.diagnose.build import build
from breakscope.errors import UsageError
from breakscope.project import suppressed
from breakscope.project.baseline import Baseline
from breakscope.project.config import Budgets, check_codes
from breakscope.project.judge import judge
from breakscope.project.verdict import Policy, Verdict
from breakscope.report.model import Report
from breakscope.report.owners import repository_of

if TYPE_CHECKING:
    from breakscope.fix import evidence as fix_evidence

Inputs = Any
"""What to call with: a tuple of positional arguments, a mapping of keyword arguments, one argument, or a
list of any of these, one for each call."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A function, compiled and called.

    Attributes:
        report: everything that was seen; problems: what is wrong with it, as text of several lines.
    """

    report: Report
    problems: tuple[str, ...]


def assert_clean(function: Callable[..., Any], inputs: Inputs, **options: Any) -> Report:
    """Fail with an AssertionError unless a function compiles cleanly. Arguments as for :func:`try_out`."""
    __tracebackhide__ = True
    tried = try_out(function, inputs, **options)
    if tried.problems:
        raise AssertionError("\n\n".join(tried.problems))
    return tried.report


def assert_same(
    old: Callable[..., Any],
    new: Callable[..., Any],
    inputs: Inputs,
    *,
    allow: Sequence[str] = (),
    exact: bool = True,
    budget_s: float = 20.0,
) -> fix_evidence.Verdict:
    """Fail with an AssertionError unless a rewritten function is proved to compute what the old one does.

    Args:
        inputs: see :data:`Inputs`. allow: statuses besides "proved" that will do: "unproved".
        exact, budget_s: as for :func:`breakscope.prove`.
    """
    __tracebackhide__ = True
    verdict = prove(
        old, new, *(inputs if isinstance(inputs, list) else [inputs]), exact=exact, budget_s=budget_s
    )
    if verdict.status not in ("proved", *allow):
        raise AssertionError(f"{new.__qualname__} is {verdict.status}: {verdict.why}")
    return verdict


def try_out(
    function: Callable[..., Any],
    inputs: Inputs,
    *,
    allow: Sequence[str] = (),
    warmup: int = 2,
    max_recompiles: int = 0,
    backend: str | Callable[..., Any] = "eager",
    dynamic: bool | None = None,
    compare: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    suppress: bool = True,
) -> Tried:
    """Compile a function or module, call it, and say what is not clean about it.

    It is called with every input once, and then from the first again until one call follows the warm-up.
    Whatever the function raises passes through.

    Args:
        function: what to compile; of something compiled already, what it was made from.
        inputs: see :data:`Inputs`.
        allow: codes, or prefixes of codes, of breaks and recompiles that are no fault.
        warmup: how many calls may compile again, as Dynamo does when it learns that a size varies.
        max_recompiles: how often the calls after the warm-up may.
        backend: name of a backend, or one of your own. "eager" needs no compiler and is the fastest.
        dynamic: as ``torch.compile`` takes it.
        compare: whether the first output for each input must equal that of the function itself, run before on
            copies of the input and, for a module, of the module.
        rtol: relative tolerance of that; None for the default of ``torch.testing.assert_close`` by dtype.
        atol: absolute tolerance; both or none.
        suppress: whether ``# breakscope: ignore[CODE]`` in the source holds.

    Raises:
        UsageError: an argument that makes no sense.
    """
    codes = (allow,) if isinstance(allow, str) else tuple(allow)
    if wrong := check_codes(codes):
        raise UsageError(f"allow: {wrong}")
    if warmup < 0 or max_recompiles < 0:
        raise UsageError("warmup and max_recompiles are numbers from 0")
    given = [arguments(one) for one in (inputs if isinstance(inputs, list) else [inputs])]
    if not given:
        raise UsageError("inputs is an empty list: there is nothing to call with")

    from breakscope.inside import events
    from breakscope.inside.capture.eager_outputs import EagerOutputs
    from breakscope.inside.capture.inprocess import capture

    inner = getattr(function, "_torchdynamo_orig_callable", function)
    started = Started.now()
    expected = EagerOutputs(inner, given) if compare else None
    differences: list[str] = []

    def drive(compiled: Callable[..., Any]) -> None:
        for number, (args, kwargs) in enumerate(_schedule(given, warmup)):
            got = compiled(*args, **kwargs)
            said = expected.difference(number, got, rtol=rtol, atol=atol) if expected else None
            differences.extend([f"call {number}: {said}"] if said else [])

    seen, slots = capture(function, drive, backend=backend, fullgraph=False, dynamic=dynamic)
    outcome = started.outcome(function, backend)
    report = build(seen, slots, outcome)
    late = [one for one in seen if not (one["t"] == events.RECOMPILE and one["call"] < warmup)]
    verdict = _judged(_without_warm_up(build(late, slots, outcome)), codes, max_recompiles, suppress=suppress)
    return Tried(report, tuple(_problems(report, verdict, differences, warmup)))


def _without_warm_up(report: Report) -> Report:
    """A report of what came after the warm-up, where no recompile is expected any more."""
    findings = (dataclasses.replace(finding, expected=None) for finding in report.findings)
    return dataclasses.replace(report, findings=tuple(findings))


def _schedule(given: Sequence[Any], warmup: int) -> Iterator[Any]:
    return itertools.islice(itertools.cycle(given), max(len(given), warmup + 1))


def _judged(report: Report, allow: tuple[str, ...], max_recompiles: int, *, suppress: bool) -> Verdict:
    root = repository_of(report.run.cwd) or report.run.cwd
    reasons = suppressed.apply(report, root).reasons if suppress else None
    policy = Policy(ignore=allow, budgets=Budgets(max_recompiles=max_recompiles))
    return judge(report.run.script, report, Baseline(), policy, reasons)


def _problems(report: Report, verdict: Verdict, differences: Sequence[str], warmup: int) -> Iterator[str]:
    name = report.run.script
    if report.reconciliation.vacuous:
        yield f"nothing was compiled: no graph came of {name}, so that it breaks nowhere means nothing"
    breaks = [one for one in verdict.of("new") if one.kind != "recompile"]
    if breaks:
        count = "1 graph break" if len(breaks) == 1 else f"{len(breaks)} graph breaks"
        yield _shown(f"{count} in {name}", dataclasses.replace(report, findings=tuple(breaks)))
    recompiles = [one for one in verdict.of("new") if one.kind == "recompile"]
    for spent in verdict.spent:
        if spent.exceeded:
            calls = "call" if warmup == 1 else "calls"
            head = f"{name} after {warmup} warm-up {calls}: {spent.sentence}"
            yield _shown(head, dataclasses.replace(report, findings=tuple(recompiles)))
    if differences:
        yield "\n".join([f"{name} computes something else when compiled", *differences])


def _shown(head: str, report: Report) -> str:
    """The findings as the terminal shows them."""
    from breakscope.render import terminal
    from breakscope.view import report_view

    view = report_view.build(report, limit=20, all=False, root=str(Path.cwd()))
    bare = dataclasses.replace(view, alarm=None, header=(), totals=(), notes=(), verdict=None)
    return f"{head}\n\n{terminal.render_view(bare, width=100, color=False)}".rstrip()
