"""The private API of torch that a benchmark's child processes touch, beyond ``capture.compat``.

Each use says why, and what is done without it.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import types
from collections.abc import Callable
from typing import Any

import torch

from breakscope.capture import compat

never_compile_pending: list[types.CodeType] = []


def never_compile(code: types.CodeType) -> None:
    """Keep Dynamo from compiling a frame of ours. Waits until Dynamo is loaded, and does not load it."""
    if "torch._dynamo" in sys.modules:
        compat.never_compile(code)
    else:
        never_compile_pending.append(code)


def dynamo_loaded() -> None:
    """Dynamo has just been loaded."""
    while never_compile_pending:
        compat.never_compile(never_compile_pending.pop())


class CompileWatch:
    """Counts and times everything that torch compiles, in any thread.

    Reason for ``torch._dynamo.callback``: it reports frames, lazily compiled backwards and recordings of
    CUDA graphs alike, with nothing in the path of a call. Without it, ``seconds`` and ``count`` stay 0 and
    ``works`` is False, which becomes a note.
    """

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0
        self.works = True
        self._began = 0.0
        self._lock = threading.Lock()

    def install(self) -> None:
        """Begin; Dynamo is loaded."""
        try:
            from torch._dynamo.callback import on_compile_end, on_compile_start
        except ImportError:
            self.works = False
            return
        on_compile_start(self._start)
        on_compile_end(self._end)

    def _start(self, *_args: Any) -> None:
        with self._lock:
            self.count += 1
            self._began = time.perf_counter()

    def _end(self, *_args: Any) -> None:
        with self._lock:
            self.seconds += time.perf_counter() - self._began

    def phases(self) -> dict[str, float]:
        """Seconds by phase as torch counts them; empty where it does not. A phase holds what it calls."""
        dynamo = sys.modules.get("torch._dynamo.utils")
        spent = getattr(dynamo, "cumulative_time_spent_ns", {})
        return {str(name): round(float(time_ns) / 1e9, 4) for name, time_ns in spent.items()}


def random_state() -> tuple[bytes, ...]:
    """The state of torch's generators: whether a call drew random numbers shows as a difference."""
    state = [bytes(torch.get_rng_state().numpy())]
    if torch.cuda.is_available() and torch.cuda.is_initialized() and not capturing():
        state.append(bytes(torch.cuda.get_rng_state().numpy()))
    return tuple(state)


def capturing() -> bool:
    """Whether a CUDA graph is being recorded on this stream."""
    return torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()


def tree_map(function: Callable[[Any], Any], value: Any) -> Any:
    """Apply to every leaf, through result classes that are registered with torch (those of transformers are).

    Reason for ``torch.utils._pytree``: the public one (``torch.utils.pytree``) is newer than torch 2.9.
    """
    from torch.utils import _pytree

    return _pytree.tree_map(function, value)


def about(on_gpu: bool) -> dict[str, Any]:
    """What this process runs on."""
    affinity = getattr(os, "sched_getaffinity", None)
    return {
        "torch": torch.__version__,
        "graphs": _graphs(),
        "device": torch.cuda.get_device_name() if on_gpu else None,
        "device_uuid": str(getattr(torch.cuda.get_device_properties(0), "uuid", "")) if on_gpu else None,
        "threads": torch.get_num_threads(),
        "cpus": sorted(affinity(0)) if affinity else None,
    }


def _graphs() -> int | None:
    """Graphs that Dynamo has compiled in this process; None where its counters are not there."""
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", None)
    return None if counters is None else int(counters["stats"]["unique_graphs"])
