"""The Python API: the engine of ``breakscope scan`` inside the calling process."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from breakscope.diagnose.build import build
from breakscope.diagnose.outcome import Outcome
from breakscope.errors import UsageError
from breakscope.report import schema
from breakscope.report.model import Report

if TYPE_CHECKING:
    from breakscope.fix.evidence import Verdict


def load(path: str | os.PathLike[str]) -> Report:
    """Read a report file.

    Raises:
        ReportError: if the file is missing, damaged, not a report, or of a newer version.
    """
    return schema.load(path)


def explain(
    function: Callable[..., Any],
    *,
    backend: str | Callable[..., Any] = "eager",
    fullgraph: bool = False,
    dynamic: bool | None = None,
) -> Callable[..., Report]:
    """Report on one call of a function or module, in the manner of ``torch._dynamo.explain``.

    Dynamo's caches are reset before and after, and every hook is taken out again.

    Args:
        function: what to compile; of something compiled already, what it was made from.
        backend: name of a backend, or one of your own.
        fullgraph: raise at the first break, as ``torch.compile(fullgraph=True)`` does.

    Returns:
        A callable that takes the function's arguments and returns the report of that call. The
        function's own exceptions pass through.

    Example::

        report = breakscope.explain(model)(inputs)
        assert report.totals.sites == 0
    """

    def call(*args: Any, **kwargs: Any) -> Report:
        from breakscope.inside.capture.inprocess import capture

        started = Started.now()
        events, slots = capture(
            function,
            lambda compiled: compiled(*args, **kwargs),
            backend=backend,
            fullgraph=fullgraph,
            dynamic=dynamic,
        )
        return build(events, slots, started.outcome(function, backend))

    return call


def prove(
    old: Callable[..., Any],
    new: Callable[..., Any],
    *calls: Any,
    exact: bool = True,
    budget_s: float = 20.0,
) -> Verdict:
    """Hold a rewritten function to the proof that ``breakscope prove`` makes of a patch.

    Both are called in copies of the arguments and of all that they reach, on the calls given and on inputs
    invented around them, eagerly and the new one compiled as well. Dynamo's caches are reset.

    Args:
        old, new: plain functions with a source, undecorated; of a method, the function of its class.
        calls: a tuple of positional arguments, a mapping of keyword arguments, or one argument, each.
        exact: equal bit for bit; else up to the order of sums.
        budget_s: seconds for all comparisons.

    Returns:
        ``status`` ("proved", "needs consent", "unproved", "refused"), ``why``, and ``evidence``.

    Raises:
        UsageError: there are no calls, or no source to read.

    Example::

        verdict = breakscope.prove(old, new, (torch.randn(3, 4),))
        assert verdict.status == "proved", verdict.why
    """
    from breakscope.fix.judge import judge
    from breakscope.inside.prove.claims import Claims
    from breakscope.inside.prove.inprocess import SourceError, compared

    if not calls:
        raise UsageError("there is nothing to call the functions with")
    claims = Claims(exact=exact)
    try:
        result = compared(old, new, [arguments(call) for call in calls], claims, budget_s)
    except SourceError as error:
        raise UsageError(str(error)) from None
    conditions = [{**one, "unknown": False} for one in result["conditions"]]
    return judge({"functions": [{**result, "conditions": conditions}], "files": []}, claims)


def arguments(given: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call: a tuple of them, a mapping of keyword arguments, or one argument."""
    if isinstance(given, tuple):
        return given, {}
    # Outputs of tokenizers are mappings, too.
    if isinstance(given, Mapping):
        return (), dict(given)
    return (given,), {}


@dataclass(frozen=True, slots=True)
class Started:
    """When an in-process capture began.

    Attributes:
        at: time of day, ISO 8601; clock: reading of the monotonic clock, in seconds.
    """

    at: str
    clock: float

    @classmethod
    def now(cls) -> Started:
        """At this moment."""
        return cls(datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic())

    def outcome(self, function: Callable[..., Any], backend: str | Callable[..., Any]) -> Outcome:
        """The outcome of a capture that has just come to its end."""
        return Outcome(
            script=getattr(function, "__qualname__", type(function).__qualname__),
            argv=(),
            cwd=str(Path.cwd()),
            status="ok",
            exit_code=None,
            started_at=self.at,
            duration_s=round(time.monotonic() - self.clock, 3),
            backend=backend if isinstance(backend, str) else getattr(backend, "__name__", repr(backend)),
            mode=None,
            roots=_roots(function),
        )


def _roots(function: Any) -> tuple[str, ...]:
    module = sys.modules.get(getattr(function, "__module__", "") or "")
    file = getattr(module, "__file__", None)
    folders = [str(Path.cwd()), *([str(Path(file).resolve().parent)] if file else [])]
    return tuple(dict.fromkeys(folders))
