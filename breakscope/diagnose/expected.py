"""Recompiles that a healthy script has: for evaluation, for a second size, for a smaller last batch.

A version of a function is compiled for each combination of a few properties of its calls: whether
gradients are on, whether the module trains, whether a size is the first one seen or any other. What has
two values makes two versions of everything else, and that is all. Only what goes on beyond that repeats
or grows, and is a fault.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from breakscope.diagnose.collect import Collected, Recompile
from breakscope.report.model import Guard

if TYPE_CHECKING:
    from breakscope.diagnose.recompiles import Cause

# A mode has two values. A number is made dynamic by torch when a second one comes. What may come once is
# waited for, because it may grow.
Axis = Literal["mode", "number", "once"]
Row = tuple[Recompile, Guard]

_SETTLED = 5  # steps without another recompile of it, after which what came once is taken to have come once
_GLOBAL_MODE = re.compile(r"grad_mode|autocast\b.*|autocast_\w+")
_GRADIENT_KEYS = re.compile(
    r"with(?:out)? (?:Autograd\w*|ADInplaceOrView)(?:, (?:Autograd\w*|ADInplaceOrView))*"
)
_FLAGS = ("True", "False", "None")
_APART = ("0", "1")  # sizes and numbers that torch always compiles apart


def reasons(found: Collected, causes: Sequence[Cause]) -> list[str | None]:
    """For each cause why it is expected; None for one that repeats, grows, or is none of the known kinds."""
    by_code: dict[str, list[tuple[int, list[Row]]]] = defaultdict(list)
    for index, cause in enumerate(causes):
        for code, rows in _by_code(cause).items():
            by_code[code].append((index, rows))
    real = {index for index, cause in enumerate(causes) if cause.refused}
    for together in by_code.values():
        axes = {index: _axis(rows[0][1]) for index, rows in together}
        modes = sum(len(rows) for index, rows in together if axes[index] == "mode")
        whole = sum(len(rows) for index, rows in together if axes[index] is not None)
        real |= {
            index
            for index, rows in together
            if not _is_bounded(found, axes[index], rows, modes, whole - len(rows))
        }
    return [
        None if index in real or not cause.recompiles else _why(cause) for index, cause in enumerate(causes)
    ]


def _by_code(cause: Cause) -> dict[str, list[Row]]:
    """The recompiles of a cause by code object: a function and what resumes it are compiled apart."""
    rows: dict[str, list[Row]] = defaultdict(list)
    for row in zip(cause.recompiles, cause.guards, strict=True):
        frame = cause.frame
        rows[(row[0].compile_id or f"{frame.file}:{frame.line}").partition("/")[0]].append(row)
    return rows


def _axis(guard: Guard) -> Axis | None:
    """What kind of property differed; None for one that a healthy script does not vary."""
    both = (guard.expected, guard.actual)
    match guard.cause:
        case "global_state":
            names = (guard.source or "").split(", ")
            return "mode" if all(map(_GLOBAL_MODE.fullmatch, names)) else None
        case "requires_grad":
            return "mode"
        case "dispatch_keys":
            return "mode" if all(value and _GRADIENT_KEYS.fullmatch(value) for value in both) else None
        case "size" | "symbolic_shape" | "int_value" | "float_value":
            return "number"
        case "module_attribute":
            if (guard.source or "").endswith(".training"):
                return "mode"
            # A whole number of a module is compiled in for good: it may be a counter.
            return "number" if all(value and _is_float(value) for value in both) else _flag(guard)
        case "constant_value":
            return _flag(guard)
        case "type":
            return "once" if {"None", "not a tensor"} & set(both) else None
        case "container":
            return "once" if both[0] in ("0 items", "empty", "present", "missing") else None
    return None


def _flag(guard: Guard) -> Axis | None:
    values = (guard.expected or "", guard.actual or "")
    return "once" if all(value in _FLAGS or value[:1] in "'\"" for value in values) else None


def _is_float(text: str) -> bool:
    return re.fullmatch(r"-?\d+\.\d*(?:e[-+]?\d+)?|-?\d+e[-+]?\d+", text) is not None


def _is_bounded(found: Collected, axis: Axis | None, rows: Sequence[Row], modes: int, others: int) -> bool:
    """Whether one property of one code object made no more versions than it has to.

    Args:
        modes: recompiles of this code object for modes; others: for all such properties but this one.
    """
    if axis == "mode":
        return len(rows) <= 1 + others
    if axis == "number":
        values = [value for _, guard in rows for value in guard.values]
        apart = sum(value in values for value in _APART)
        return len(rows) <= (1 + modes) * (1 + apart) and not _is_chain(rows)
    if axis == "once":
        step = rows[-1][0].step
        return (
            len(rows) == 1 and step is not None and found.steps is not None and step + _SETTLED < found.steps
        )
    return False


def _is_chain(rows: Sequence[Row]) -> bool:
    """Whether the version made for a second value did not fit a third one: the value is not made dynamic."""
    made = {guard.actual for _, guard in rows[:-1]} - {*_APART, None}
    return any(guard.expected in made for _, guard in rows[1:] if guard.cause != "symbolic_shape")


# ---- in words ----


def _why(cause: Cause) -> str:
    guard = cause.guard
    times = len(cause.recompiles)
    made = "compiled once more" if times == 1 else f"compiled {times} times more"
    match guard.cause:
        case "global_state" if guard.source == "grad_mode":
            return "one graph with gradients and one without, as training and evaluation need"
        case "global_state":
            return f"one graph for each state of {guard.source}"
        case "dispatch_keys":
            return f"one graph for {guard.source} made in inference mode, and one for others"
        case "requires_grad":
            return f"one graph where {guard.source} needs gradients, and one where it does not"
        case "module_attribute" if (guard.source or "").endswith(".training"):
            return "one graph each for train() and eval()"
        case "size":
            return _why_size(guard, made)
        case "symbolic_shape":
            return f"sizes on either side of what the code was compiled for: {made}"
        case "int_value" | "float_value" | "module_attribute" if _axis(guard) == "number":
            return f"a second value of {guard.source}, after which torch takes any: {made}"
    return f"one graph for each of the two: {made}, and not again"


def _why_size(guard: Guard, made: str) -> str:
    before, after = guard.expected or "", guard.actual or ""
    if after in _APART:
        return f"torch compiles a size of {after} apart: {made}"
    if guard.dimension == 0 and before.isdecimal() and after.isdecimal() and int(after) < int(before):
        return (
            f"a smaller batch ({after} after {before}): {made}; "
            "if it is the last one of an epoch, drop_last=True of the DataLoader leaves it out"
        )
    return f"a second size of dimension {guard.dimension}, after which torch takes any: {made}"
