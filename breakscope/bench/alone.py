"""Every kernel of a step once more, alone: on fresh inputs of the same shape and stride, caches flushed.

On a GPU the time is the profiler's own record of the kernel, the same clock as in the step, so neither
launch overhead nor an event's resolution is in it. On a CPU it is the host's clock around the call.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils.flop_counter import FlopCounterMode

from breakscope.bench import arm_compat, trace
from breakscope.bench.attribution import Attribution, Done
from breakscope.bench.graphs import recorded_graphs
from breakscope.bench.origins import Origin, origins
from breakscope.bench.specs import Spec, fresh
from breakscope.bench.trace import MARK, Launch

_REPEATS = 9
_CPU_FLUSH_BYTES = 64 * 1024**2
_MOST_INPUT_BYTES = 8 * 1024**3
_MOST_KERNELS = 400

Record = dict[str, Any]


def measure(attribution: Attribution, launches: Sequence[Launch], folder: Path, on_gpu: bool) -> Record:
    """What is known of each kernel that the step launched, by name and launch configuration.

    Returns:
        ``kernels``: a list of records, ``other_us``: time of launches that nothing of ours launched.
    """
    groups: dict[Any, list[Launch]] = {}
    for launch in launches:
        groups.setdefault(launch.key, []).append(launch)
    where = origins(
        (str(module.__file__), _text(module.__file__)) for module in arm_compat.generated_modules()
    )
    lines = {name: lines for graph in recorded_graphs() for name, lines in graph.sources.items()}
    records = [_record(group, attribution.done, where, lines) for group in groups.values()]
    costly = sorted(records, key=lambda record: -record["us"])[:_MOST_KERNELS]
    runner = _GpuRunner(folder) if on_gpu else _CpuRunner()
    for record in costly:
        runner.add(record, attribution.done)
    runner.finish()
    return {"kernels": costly}


def _text(path: Any) -> str:
    try:
        return Path(path).read_text("utf-8", "replace")
    except (OSError, TypeError):
        return ""


def _record(
    group: Sequence[Launch],
    done: Sequence[Done],
    where: dict[str, Origin],
    lines: dict[str, tuple[str, ...]],
) -> Record:
    # An op of a graph is announced twice, outside and inside of the dispatcher; the inner one has the marker.
    first = next((one for one in group if one.marker is not None), group[0])
    record: Record = {
        "name": first.name,
        "category": first.category,
        "grid": list(first.grid),
        "block": list(first.block),
        "us": sum(launch.us for launch in group),
        "calls": len(group),
        "marker": first.marker,
        "kind": "copy" if first.category in ("gpu_memcpy", "gpu_memset") else "other",
        "registers": first.registers,
        "shared": first.shared,
    }
    if first.marker is None:
        record["op"] = first.op
        if first.op is not None and record["kind"] == "other":
            record["kind"] = "vendor"
        record["alone_why"] = (
            "it ran outside of compiled graphs, where its inputs are not known"
            if first.op is not None
            else "no op of torch's launched it: a custom kernel"
        )
        return record
    one = done[first.marker]
    inputs = [leaf for leaf in leaves(one.arguments) if isinstance(leaf, Spec)]
    record["inputs"] = [str(leaf) for leaf in inputs]
    record["op"] = one.name
    if record["kind"] == "other":
        record["kind"] = "vendor" if one.kind == "op" else one.kind
    if one.kind == "op":
        record["bytes"] = sum(leaf.bytes for leaf in (*inputs, *_fresh_outputs(one, inputs)))
        record["bytes_how"] = "inputs and outputs once"
        return record
    if one.kind == "triton":
        record.update(arm_compat.triton_facts(one.kernel))
        record["name"] = first.name
        if "bytes" in record:
            record["bytes_how"] = "Inductor's estimate"
    if "bytes" not in record:
        record["bytes"] = sum(leaf.bytes for leaf in inputs)
        record["bytes_how"] = "every argument once"
    origin = where.get(one.name)
    if origin is not None:
        record["nodes"] = list(origin.nodes)
        record["fragment"] = list(origin.fragment)
        record["op"] = ", ".join(origin.ops) or one.name
        record["sources"] = list(dict.fromkeys(line for node in origin.nodes for line in lines.get(node, ())))
    return record


def _fresh_outputs(one: Done, inputs: Sequence[Spec]) -> list[Spec]:
    """Outputs that are not also among the inputs (``out=`` and in-place ops return what they were given)."""
    schema = getattr(one.call, "_schema", None)
    aliased = schema is not None and any(item.alias_info is not None for item in schema.returns)
    return [] if aliased and inputs else one.outputs


def leaves(value: Any) -> list[Any]:
    """The leaves of nested arguments."""
    found: list[Any] = []
    arm_compat.tree_map(found.append, value)
    return found


def _prepared(one: Done) -> tuple[Any, Any]:
    size = sum(leaf.bytes for leaf in leaves(one.arguments) if isinstance(leaf, Spec))
    if size > _MOST_INPUT_BYTES:
        raise _TooLargeError(f"its inputs take {size / 1024**3:.1f} GiB")
    args, kwargs = arm_compat.tree_map(fresh, one.arguments)
    return args, kwargs


class _TooLargeError(Exception):
    pass


def _flops(one: Done, args: Any, kwargs: Any) -> int | None:
    if one.kind != "op":
        return None
    with FlopCounterMode(display=False) as counter:
        one.call(*args, **kwargs)
    return int(counter.get_total_flops()) or None


class _GpuRunner:
    """All kernels under one profiler; read at the end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        # Twice the L2, written: whatever was in it is gone.
        size = 2 * int(getattr(properties, "L2_cache_size", 0) or 64 * 1024**2)
        self._flush = torch.empty(size // 4, dtype=torch.int32, device="cuda")
        self._added: list[Record] = []
        self._profile = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], acc_events=True)
        torch.cuda.synchronize()
        self._profile.start()

    def add(self, record: Record, done: Sequence[Done]) -> None:
        """Run what launched the kernel some times more."""
        if record["marker"] is None or "alone_why" in record:
            return
        one = done[record["marker"]]
        try:
            with torch.no_grad():
                args, kwargs = _prepared(one)
                flops = _flops(one, args, kwargs)  # the first run, not counted
                if flops is not None:
                    record["flops"] = flops
                one.call(*args, **kwargs)
                number = len(self._added)
                for _ in range(_REPEATS):
                    self._flush.zero_()
                    with record_function(f"{MARK}{number}"):
                        one.call(*args, **kwargs)
                torch.cuda.synchronize()
            self._added.append(record)
        except _TooLargeError as error:
            record["alone_why"] = str(error)
        except Exception as error:  # noqa: BLE001 -- a kernel that cannot be run again; the reason is kept
            record["alone_why"] = f"running it again raised {type(error).__name__}: {str(error)[:200]}"

    def finish(self) -> None:
        """Read the times."""
        torch.cuda.synchronize()
        self._profile.stop()
        from breakscope.bench.probe import exported

        launches = trace.device_launches(exported(self._profile, self._folder))
        for number, record in enumerate(self._added):
            ours = [one for one in launches if one.marker == number]
            key = (record["name"], tuple(record["grid"]), tuple(record["block"]))
            mine = [one.us for one in ours if one.key == key]
            if not mine:
                record["alone_why"] = "run again, its op chose another kernel"
                continue
            record["alone_us"] = statistics.median(mine)
            record["op_kernels"] = round(len(ours) / _REPEATS)
            record["op_alone_us"] = sum(one.us for one in ours) / _REPEATS


class _CpuRunner:
    """The host's clock around each call."""

    def __init__(self) -> None:
        self._flush = torch.empty(_CPU_FLUSH_BYTES, dtype=torch.uint8)

    def add(self, record: Record, done: Sequence[Done]) -> None:
        """Run what did the work some times more."""
        if record["marker"] is None or "alone_why" in record:
            return
        one = done[record["marker"]]
        if one.kind == "op" and record["name"].removeprefix("aten::") != one.name.split(".")[1]:
            record["alone_why"] = f"a part of {one.name}, which is measured as a whole"
            record["bytes"] = record["bytes_how"] = None
            return
        try:
            with torch.no_grad():
                args, kwargs = _prepared(one)
                flops = _flops(one, args, kwargs)
                if flops is not None:
                    record["flops"] = flops
                times = []
                for _ in range(_REPEATS):
                    self._flush.fill_(1)
                    began = time.perf_counter()
                    one.call(*args, **kwargs)
                    times.append(time.perf_counter() - began)
            record["alone_us"] = statistics.median(times) * 1e6
        except _TooLargeError as error:
            record["alone_why"] = str(error)
        except Exception as error:  # noqa: BLE001 -- a kernel that cannot be run again; the reason is kept
            record["alone_why"] = f"running it again raised {type(error).__name__}: {str(error)[:200]}"

    def finish(self) -> None:
        """Nothing is left to do."""
