"""Every kernel of a step once more, alone: on fresh inputs of the same shape and stride, caches flushed.

On a GPU the time is the profiler's own record of the kernel, the same clock as in the step, so neither
launch overhead nor an event's resolution is in it. On a CPU it is the host's clock around the call.

Kernels are run in groups, and each group's times leave the process before the next begins: a kernel that
ends the process's CUDA context takes those of its own group with it, and no others.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from breakscope.inside.bench import arm_compat, trace
from breakscope.inside.bench.attribution import Done, leaves
from breakscope.inside.bench.records import Record
from breakscope.inside.bench.specs import Inputs, Spec
from breakscope.inside.bench.trace import MARK

GPU_GROUP = 8  # of one profile: starting and reading one takes as long as running some kernels
_REPEATS = 9
_CPU_FLUSH_BYTES = 64 * 1024**2
_MOST_INPUT_BYTES = 8 * 1024**3


class Again:
    """Runs kernels of a step again.

    Args:
        records: of the kernels, completed in place: ``alone_us``, or ``alone_why``.
        done: what launched them, by marker.
    """

    def __init__(self, records: Sequence[Record], done: Sequence[Done], folder: Path, on_gpu: bool) -> None:
        self._done = done
        self._folder = folder
        self._on_gpu = on_gpu
        # Those that assert something of their inputs come last: what ends the context ends nothing else.
        runnable = [
            record for record in records if record["marker"] is not None and "alone_why" not in record
        ]
        self._waiting = sorted(runnable, key=lambda one: bool(one.get("particular")))
        self._flush = _flush_buffer(on_gpu)

    def next_group(self) -> dict[str, Any]:
        """Run some more.

        Returns:
            ``records``: those that were run; ``left``: how many are not yet; ``lost``: what ended the CUDA
            context, after which nothing more can be run.
        """
        size = GPU_GROUP if self._on_gpu else 1
        group, self._waiting = self._waiting[:size], self._waiting[size:]
        lost = None
        try:
            self._on_gpu_times(group) if self._on_gpu else self._on_cpu_times(group)
        except _ContextLostError as error:
            lost = str(error)
        if self._on_gpu and lost is None:
            torch.cuda.empty_cache()
        return {"records": group, "left": len(self._waiting), "lost": lost}

    def _inputs(self, record: Record) -> tuple[Done, Inputs] | None:
        one = self._done[record["marker"]]
        size = sum(leaf.bytes for leaf in leaves(one.arguments) if isinstance(leaf, Spec))
        if size > _MOST_INPUT_BYTES:
            record["alone_why"] = f"its inputs take {size / 1024**3:.1f} GiB"
            return None
        return one, Inputs(one.arguments, arm_compat.tree_map)

    # -- GPU ---------------------------------------------------------------------------------------

    def _on_gpu_times(self, group: Sequence[Record]) -> None:
        torch.cuda.synchronize()
        profiler = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
        profiler.start()
        for number, record in enumerate(group):
            try:
                self._run_on_gpu(record, number)
            except Exception as error:  # noqa: BLE001 -- a kernel that cannot be run again; the reason is kept
                record["alone_why"] = _raised(error)
                _still_usable(record["name"], error)
        profiler.stop()
        from breakscope.inside.bench.probe import exported

        launches = trace.device_launches(exported(profiler, self._folder))
        for number, record in enumerate(group):
            if "alone_why" not in record:
                _read(record, [launch for launch in launches if launch.marker == number])

    def _run_on_gpu(self, record: Record, number: int) -> None:
        prepared = self._inputs(record)
        if prepared is None:
            return
        one, inputs = prepared
        with torch.no_grad():
            for repeat in range(-1, _REPEATS):  # the first is not counted
                inputs.restore()
                # Read, not written: lines that are dirty would be written back in the kernel's own time.
                self._flush.sum()
                if repeat < 0:
                    one.call(*inputs.args, **inputs.kwargs)
                    continue
                with record_function(f"{MARK}{number}"):
                    one.call(*inputs.args, **inputs.kwargs)
            torch.cuda.synchronize()

    # -- CPU ---------------------------------------------------------------------------------------

    def _on_cpu_times(self, group: Sequence[Record]) -> None:
        for record in group:
            try:
                self._run_on_cpu(record)
            except Exception as error:  # noqa: BLE001 -- a kernel that cannot be run again; the reason is kept
                record["alone_why"] = _raised(error)

    def _run_on_cpu(self, record: Record) -> None:
        prepared = self._inputs(record)
        if prepared is None:
            return
        one, inputs = prepared
        times = []
        with torch.no_grad():
            for _ in range(1 + _REPEATS):
                inputs.restore()
                self._flush.fill_(1)
                began = time.perf_counter()
                one.call(*inputs.args, **inputs.kwargs)
                times.append(time.perf_counter() - began)
        record["alone_us"] = statistics.median(times[1:]) * 1e6


class _ContextLostError(Exception):
    """Nothing more can be run on the GPU in this process."""


def _flush_buffer(on_gpu: bool) -> Any:
    if not on_gpu:
        return torch.empty(_CPU_FLUSH_BYTES, dtype=torch.uint8, device="cpu")
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    # Twice the L2: whatever was in it is gone.
    size = 2 * int(getattr(properties, "L2_cache_size", 0) or 64 * 1024**2)
    return torch.zeros(size // 4, dtype=torch.float32, device="cuda")


def _raised(error: Exception) -> str:
    return f"running it again raised {type(error).__name__}: {str(error).strip()[:200]}"


def _still_usable(name: str, error: Exception) -> None:
    """Raises _ContextLostError where an error has made the CUDA context unusable, as an assertion does."""
    try:
        torch.cuda.synchronize()
    except RuntimeError:  # torch's errors of the accelerator are such
        first = str(error).strip().partition("\n")[0]
        raise _ContextLostError(f"{name}, run alone, ended the CUDA context: {first[:200]}") from error


def _read(record: Record, ours: Sequence[trace.Launch]) -> None:
    key = (record["name"], tuple(record["grid"]), tuple(record["block"]))
    mine = [our.us for our in ours if our.key == key]
    if not mine:
        record["alone_why"] = "run again, its op chose another kernel"
        return
    record["alone_us"] = statistics.median(mine)
    record["op_kernels"] = round(len(ours) / _REPEATS)
    record["op_alone_us"] = sum(our.us for our in ours) / _REPEATS
