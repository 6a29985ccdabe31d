"""The private API of torch that a benchmark's child processes touch, beyond ``capture.compat``.

Each use says why, and what is done without it.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import threading
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from breakscope.inside.torch_api import hooks

_CPP_DEFINITION = r"^{name} = async_compile\.cpp_pybinding\(.*?^'''\)"

never_compile_pending: list[types.CodeType] = []


def never_compile(code: types.CodeType) -> None:
    """Keep Dynamo from compiling a frame of ours. Waits until Dynamo is loaded, and does not load it."""
    if "torch._dynamo" in sys.modules:
        hooks.never_compile(code)
    else:
        never_compile_pending.append(code)


def dynamo_loaded() -> None:
    """Dynamo has just been loaded."""
    while never_compile_pending:
        hooks.never_compile(never_compile_pending.pop())


# What Inductor does at the first launch of a kernel, after the compile that made it has ended.
_TUNING = ("CachingAutotuner.benchmark_all_configs", "CachingAutotuner.coordinate_descent_tuning")


class CompileWatch:
    """Counts and times everything that torch compiles, in any thread.

    Reason for ``torch._dynamo.callback``: it reports frames, lazily compiled backwards and recordings of
    CUDA graphs alike, with nothing in the path of a call. Without it, ``seconds`` and ``count`` stay 0 and
    ``works`` is False, which becomes a note. Kernels are tuned where they are launched first, outside of
    what it reports; those seconds are in torch's counters of phases.
    """

    def __init__(self) -> None:
        self.count = 0
        self.works = True
        self._inside_s = 0.0
        self._began = 0.0
        self._tuned_before = 0.0
        self._tuned_inside = 0.0
        self._told: Any = None
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
            self._tuned_before = _tuning_s()

    def _end(self, *_args: Any) -> None:
        with self._lock:
            self._inside_s += time.perf_counter() - self._began
            self._tuned_inside += _tuning_s() - self._tuned_before

    @property
    def seconds(self) -> float:
        """Spent compiling, the tuning of kernels at their first launch included."""
        return self._inside_s + _tuning_s() - self._tuned_inside

    def phases(self) -> dict[str, float]:
        """Seconds by phase as torch counts them; empty where it does not. A phase holds what it calls."""
        return {str(name): round(float(time_ns) / 1e9, 4) for name, time_ns in _phases_ns().items()}

    def reasons(self) -> list[str]:
        """Why frames were compiled since this was last asked, as ``function: guard that failed``.

        Reason for ``get_compilation_metrics``: it keeps Dynamo's own reason of each recompile. Without it,
        nothing is said.
        """
        read = getattr(sys.modules.get("torch._dynamo.utils"), "get_compilation_metrics", list)
        metrics: list[Any] = read()
        # Only the last ones are kept, so that their number says nothing.
        told = next((place for place, one in enumerate(metrics) if one is self._told), -1)
        self._told = metrics[-1] if metrics else None
        return list(dict.fromkeys(f"{metric.co_name}: {_why(metric)}" for metric in metrics[told + 1 :]))


def _why(metrics: Any) -> str:
    """Of ``0/1: tensor 'x' size mismatch …`` what comes after 0/1, the compile whose guard failed."""
    reason = str(getattr(metrics, "recompile_reason", None) or "")
    first = reason.partition("\n")[0].partition("  #")[0].strip()
    return first.partition(": ")[2] or first or "for the first time"


def _phases_ns() -> Any:
    return getattr(sys.modules.get("torch._dynamo.utils"), "cumulative_time_spent_ns", {})


def _tuning_s() -> float:
    phases = _phases_ns()
    return sum(float(phases.get(name, 0)) for name in _TUNING) / 1e9


def random_state() -> tuple[bytes, ...]:
    """The state of torch's generators: whether a call drew random numbers shows as a difference."""
    state = [bytes(torch.get_rng_state().tolist())]
    if torch.cuda.is_available() and torch.cuda.is_initialized() and not capturing():
        state.append(bytes(torch.cuda.get_rng_state().tolist()))
    return tuple(state)


def capturing() -> bool:
    """Whether a CUDA graph is being recorded on this stream."""
    return bool(torch.cuda.is_available() and torch.cuda.is_current_stream_capturing())


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


def without_dispatch() -> Any:
    """A context in which no dispatch mode sees what we do ourselves inside a step that one is watching."""
    return torch._C._DisableTorchDispatch()


def around_triton(around: Callable[[Callable[..., Any], Any, Any, Any], Any]) -> Callable[[], None]:
    """Have every launch of a Triton kernel of Inductor's pass through ``around(real, kernel, args, kwargs)``.

    Reason for ``CachingAutotuner.run``: generated code launches through it, whatever the launcher. Without
    it, Triton kernels are listed with their times in the step only. Returns what takes it out again.
    """
    try:
        from torch._inductor.runtime.triton_heuristics import CachingAutotuner
    except ImportError:
        return lambda: None
    real = CachingAutotuner.run

    def run(kernel: Any, *args: Any, **kwargs: Any) -> Any:
        return around(real, kernel, args, kwargs)

    CachingAutotuner.run = run

    def undo() -> None:
        CachingAutotuner.run = real

    return undo


def around_graphs(context: Callable[[bool | None], Any]) -> Callable[[], None]:
    """Have every run of a graph that Inductor compiled, forward or backward, happen in a context.

    Reason for ``CompiledFxGraph.__call__``: both pass through it, in whatever thread. Returns what takes it
    out again.

    Args:
        context: told whether it is a backward; None where this torch does not say.
    """
    try:
        from torch._inductor.output_code import CompiledFxGraph
    except ImportError:
        return lambda: None
    real = CompiledFxGraph.__call__

    def call(graph: Any, inputs: Any) -> Any:
        with context((getattr(graph, "fx_kwargs", None) or {}).get("is_backward")):
            return real(graph, inputs)

    CompiledFxGraph.__call__ = call

    def undo() -> None:
        CompiledFxGraph.__call__ = real

    return undo


class CudaGraphSwitch:
    """Lets what Inductor put into CUDA graphs run without them, for the step that is looked into.

    Reason for ``compile_fx.cudagraphify``: what was put into a CUDA graph is known there, and nowhere after.
    It adds one Python call to each run of a graph. Without it, such an arm's kernels take what is known of
    the same kernel in another arm.
    """

    def __init__(self) -> None:
        self.off = False

    def install(self) -> None:
        """Before anything is compiled; ``torch._inductor.compile_fx`` is loaded."""
        from torch._inductor import compile_fx

        real = getattr(compile_fx, "cudagraphify", None)
        if real is None:
            return

        def cudagraphify(model: Any, *args: Any, **kwargs: Any) -> Any:
            recorded = real(model, *args, **kwargs)

            def run(inputs: Any) -> Any:
                return (model if self.off else recorded)(inputs)

            return run

        compile_fx.cudagraphify = cudagraphify


def around_cpp(around: Callable[[str, Callable[..., Any], Any, Any], Any]) -> Callable[[], None]:
    """Have every call of a C++ kernel of Inductor's pass through ``around(name, real, args, kwargs)``.

    Generated code finds them as globals of its module, named ``cpp_…``. Returns what takes it out again.
    """
    replaced: list[tuple[dict[str, Any], str, Any]] = []
    for module in generated_modules():
        for name, value in list(vars(module).items()):
            if name.startswith("cpp_") and callable(value) and not isinstance(value, type):
                replaced.append((vars(module), name, value))
                vars(module)[name] = _through(around, name, value)

    def undo() -> None:
        for namespace, name, value in replaced:
            namespace[name] = value

    return undo


def _through(around: Callable[..., Any], name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return around(name, real, args, kwargs)

    return call


def generated_modules() -> list[types.ModuleType]:
    """The modules that Inductor has generated and loaded in this process."""
    cache = getattr(sys.modules.get("torch._inductor.codecache"), "PyCodeCache", None)
    return list(getattr(cache, "modules", []))


@functools.cache
def cpp_definition(name: str) -> str | None:
    """The statement that defines a C++ kernel in a module that Inductor has generated."""
    pattern = re.compile(_CPP_DEFINITION.format(name=re.escape(name)), re.MULTILINE | re.DOTALL)
    for module in generated_modules():
        try:
            text = Path(str(module.__file__)).read_text("utf-8", "replace")
        except OSError:
            continue
        match = pattern.search(text)
        if match is not None:
            return match[0]
    return None


def triton_facts(kernel: Any) -> dict[str, Any]:
    """What a ``CachingAutotuner`` knows of its kernel; keys are missing where this torch does not say."""
    meta = getattr(kernel, "inductor_meta", None) or {}
    facts: dict[str, Any] = {"name": str(getattr(getattr(kernel, "fn", None), "__name__", "triton"))}
    if meta.get("kernel_num_gb") is not None:
        facts["bytes"] = int(float(meta["kernel_num_gb"]) * 1e9)
    if meta.get("kernel_flop"):
        facts["flops"] = int(meta["kernel_flop"])
    launchers = getattr(kernel, "launchers", None) or []
    if len(launchers) == 1:
        launcher = launchers[0]
        for ours, theirs in (("registers", "n_regs"), ("spills", "n_spills"), ("shared", "shared")):
            value = getattr(launcher, theirs, None)
            if isinstance(value, int):
                facts[ours] = value
        config = getattr(launcher, "config", None)
        if config is not None:
            facts["config"] = str(config)
    filename = getattr(kernel, "filename", None)
    if filename:
        facts["file"] = str(filename)
    return facts
