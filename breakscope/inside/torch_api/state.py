"""What Dynamo and autograd are doing right now, and what they have counted."""

from __future__ import annotations

import dataclasses
import functools
import sys
import types
from typing import Any

from breakscope.inside.torch_api import MISSING, available, get


def compile_id() -> str | None:
    """Dynamo's id of the compile under way, as ``"frame/recompile"``."""
    current = get("current_compile_id")
    found = None if current is MISSING else current()
    return None if found is None else str(found)


def writes(tensor: Any) -> int | None:
    """How often a tensor was written to; None where torch does not count."""
    # Tensors of inference mode have no counter.
    return tensor._version if available("tensor_version") and not tensor.is_inference() else None


@dataclasses.dataclass(frozen=True, slots=True)
class EntryCall:
    """The outermost compiled call that is under way in this thread.

    Attributes:
        function: what was compiled. frame: where Dynamo was entered; its callers are the script's.
    """

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    frame: types.FrameType


def entry_call() -> EntryCall | None:
    """The call by which this thread entered compiled code; None if it did not, or torch hides it."""
    code = _entry_code()
    frame: types.FrameType | None = sys._getframe(1)
    found = None
    while frame is not None and code is not None:
        if frame.f_code is code:
            found = frame
        frame = frame.f_back
    if found is None:
        return None
    local = found.f_locals
    return EntryCall(local.get("fn"), tuple(local["args"]), dict(local["kwargs"]), found)


@functools.cache
def _entry_code() -> types.CodeType | None:
    outer = getattr(get("entry"), "__code__", None)
    inner = (item for item in outer.co_consts if isinstance(item, types.CodeType)) if outer else ()
    return next(
        (
            code
            for code in inner
            if {"args", "kwargs"} <= set(code.co_varnames[:2])
            and "fn" in code.co_freevars
            and code.co_name == "compile_wrapper"
        ),
        None,
    )


def in_backward() -> bool:
    """Whether autograd is running backward in this thread."""
    task_id = get("graph_task_id")
    return task_id is not MISSING and task_id() != -1


def skipped_by_rule(function: Any) -> bool:
    """Whether Dynamo refuses to compile a function as a frame of its own."""
    check = get("skipped_by_rule")
    return check is not MISSING and bool(check(function))


def counted() -> dict[str, int]:
    """Dynamo's counters that ours can be held against."""
    counters = get("counters")
    if counters is MISSING:
        return {}
    return {
        "counters.graph_break": sum(counters["graph_break"].values()),
        "counters.unique_graphs": counters["stats"]["unique_graphs"],
        "counters.frames_total": counters["frames"]["total"],
        "counters.frames_ok": counters["frames"]["ok"],
    }


def translators(innermost: Any) -> list[Any]:
    """Dynamo's translators of the calls that are under way, the outermost first."""
    found = [innermost]
    while (outer := getattr(found[-1], "parent", None)) is not None:
        found.append(outer)
    return found[::-1]


def innermost_backend(callback: Any) -> Any:
    """The backend under Dynamo's layers of callbacks."""
    while hasattr(callback, "_torchdynamo_orig_backend"):
        callback = callback._torchdynamo_orig_backend
    return callback
