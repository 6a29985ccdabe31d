"""From a failed guard to the cause of a recompile.

:func:`classify` turns Dynamo's text into a :class:`~breakscope.report.model.Guard`: what differed, in the
user's words. Two kinds of text reach it: sentences ("tensor 'x' size mismatch …") and Python
conditions that held when the frame was compiled (``n == 3``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from breakscope.diagnose.guard_advice import TENSORS, describe, remedy
from breakscope.diagnose.guard_context import Context
from breakscope.diagnose.guard_expressions import read_expression, sources
from breakscope.diagnose.guard_messages import (
    identity_source,
    is_message,
    read_identity,
    read_message,
    read_tensor_check,
)
from breakscope.diagnose.guard_text import GuardFailure, parse_reasons, without_old
from breakscope.report.model import Guard, GuardCause

__all__ = [
    "MAX_VALUES",
    "GuardFailure",
    "classify",
    "describe",
    "finding_key",
    "guard_sources",
    "merge_values",
    "parse_reasons",
    "remedy",
    "without_old",
]

MAX_VALUES = 32


def classify(failure: GuardFailure, *, function: str, actuals: Mapping[str, str] | None = None) -> Guard:
    """The cause of one recompile; ``other``, with the text, where nothing fits.

    Args:
        failure: one reason, from :func:`parse_reasons`.
        function: bare name of the code object that was compiled again.
        actuals: what a live hook read at the failing call: for each of :func:`guard_sources`, the
            repr of its value, or another short text ("list of 3", a type's name). Used where
            Dynamo's text does not tell the actual value.
    """
    context = Context(failure.expression, failure.comment, function, actuals or {})
    for read in (read_tensor_check, read_message, read_identity, read_expression):
        if guard := read(context):
            return guard
    return context.guard("other")


def guard_sources(expression: str) -> tuple[str, ...]:
    """What to read for the actual value of a failed guard.

    Each is a chain of attributes and constant items, and at most ``size()``, ``stride()`` or
    ``storage_offset()``, to be evaluated with ``{"L": f_locals, "G": f_globals}``; the chain may no
    longer exist. Empty where the guard's text tells all. A value may be of any type: do not take
    the repr of a tensor, or of what holds one, which would wait for its device.
    """
    if is_message(expression):
        return ()
    if path := identity_source(expression):
        return (path.raw,)
    return tuple(path.raw for path in sources(expression))


def finding_key(guard: Guard, function: str) -> tuple[str, GuardCause, str | None, int | None]:
    """What two recompiles share when they are one finding: everything but the values."""
    # With neither a cause nor a source, only the text tells two findings apart.
    text = guard.expression if guard.cause == "other" else None
    return function, guard.cause, guard.source or text, guard.dimension


def merge_values(old: Guard, new: Guard) -> Guard:
    """The first guard, with the values of both in order of first sight, at most 32."""
    values = dict.fromkeys((*old.values, *new.values))
    if "a tensor" in values and not values.keys() <= TENSORS:
        values.pop("torch.Tensor", None)  # it says no more beside None
    return replace(old, values=tuple(values)[:MAX_VALUES])
