"""The kernels of each arm's step against the device's ceilings: what bounds them, what they could give back.

Pure, but for the ceilings, which are measured once per device.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from breakscope.bench import ceilings
from breakscope.bench.advice import advise
from breakscope.bench.conducted import Conducted
from breakscope.inside.bench.plan import Arm, Options
from breakscope.report.benchmark import Benchmark, Bound, Ceiling, Kernel, KernelTable

# At this share of a ceiling the ceiling is what bounds a kernel.
_NEAR = 0.6
# A kernel that takes less than so many times the shortest possible one is bound by its launch.
_SHORT = 3
_DTYPES = {"float16": "float16", "bfloat16": "bfloat16", "float32": "float32", "float64": "float64"}


def add(benchmark: Benchmark, found: Conducted, options: Options) -> Benchmark:
    """The benchmark with its kernels, the ceilings and what to try."""
    on_gpu = any(player.last.get("on_gpu") for player in found.players)
    began = time.monotonic()
    measured, note = ceilings.ceilings("cuda" if on_gpu else "cpu", options.device, options.threads)
    took_s = time.monotonic() - began
    spent = benchmark.spent
    # On a CPU a name is an op, and says nothing of its sizes.
    known = _known(found) if on_gpu else _Known({}, {})
    steps_ms = {arm.name: arm.step.median for arm in benchmark.arms if arm.step is not None}
    tables = tuple(
        _table(found, arm, steps_ms.get(arm.name), measured, known, on_gpu) for arm in options.arms()
    )
    exported = tuple(
        script
        for player in found.players
        for script in (player.profile.get("details") or {}).get("exported", ())
    )
    notes = (*benchmark.notes, *([note] if note else []))
    if not on_gpu:
        notes = (
            *notes,
            "kernels of a CPU: times by the profiler; registers, shared memory and grids need a GPU",
        )
    return replace(
        benchmark,
        spent=replace(spent, total_s=round(spent.total_s + took_s, 3), ceilings_s=round(took_s, 3)),
        ceilings=measured,
        kernels=tables,
        advice=tuple(advise(tables, [arm.mode for arm in benchmark.arms if arm.status == "ok"])),
        exported=exported,
        notes=notes,
    )


@dataclass(frozen=True, slots=True)
class _Known:
    """What any arm knows of a kernel: an arm that does not know it itself may be told.

    Attributes:
        details: by name, grid and block; a kernel of Inductor's of the same name in another configuration is
            another kernel. ops: the op that launched it, by name.
    """

    details: dict[Any, dict[str, Any]]
    ops: dict[str, str]


def _known(found: Conducted) -> _Known:
    details: dict[Any, dict[str, Any]] = {}
    ops: dict[str, str] = {}
    for player in found.players:
        for record in (player.profile.get("details") or {}).get("kernels", ()):
            key = _key(record)
            if key not in details or details[key].get("alone_us") is None:
                details[key] = record
        for record in player.profile.get("kernels", ()):
            if record.get("op") and record["category"] == "kernel":
                ops.setdefault(record["name"], record["op"])
    return _Known(details, ops)


def _table(
    found: Conducted,
    arm: Arm,
    step_ms: float | None,
    measured: Sequence[Ceiling],
    known: _Known,
    on_gpu: bool,
) -> KernelTable:
    player = next((one for one in found.of(arm) if one.number == 0), None)
    if player is None or not player.profile.get("kernels"):
        why = (player.failed or player.lost) if player is not None else None
        return KernelTable(arm.name, None, None, None, (), why or "no step could be profiled")
    profile = player.profile
    details = profile.get("details") or {}
    total = sum(record["us"] for record in profile["kernels"])
    # On a CPU, the rest of the step is Python and the dispatcher, and counts as not accounted for.
    whole = total if on_gpu else profile["span_ms"] * 1e3
    own = {_key(record): record for record in details.get("kernels", ())}
    problem = details.get("error") or player.lost
    unknown = problem or _unknown(arm, bool(player.last.get("ended")) and not details)
    rows = []
    for record in profile["kernels"]:
        detail, others = own.get(_key(record)), known.details.get(_key(record))
        better = others is not None and others.get("alone_us") is not None
        if others is not None and (detail is None or (better and detail.get("alone_us") is None)):
            detail = {**others, "elsewhere": True}
        row = _kernel(record, detail, whole, known.ops)
        if row.kind == "copy":
            row = replace(row, alone_why="a copy or a fill")
        elif detail is None:
            row = replace(row, alone_why=unknown)
        else:
            row = judged(row, measured)
        rows.append(row)
    accounted = sum(row.step_us for row in rows if row.kind != "other" or row.op is not None)
    busy = profile.get("busy_ms")
    return KernelTable(
        arm=arm.name,
        device_ms=busy if on_gpu else total / 1e3,
        accounted=accounted / whole if whole else None,
        # Of the timed step: under the profiler the host is slower, and the device waits for it longer.
        gaps_ms=max(0.0, step_ms - busy) if busy is not None and step_ms is not None else None,
        kernels=tuple(rows),
        not_measured=f"details: {problem}" if problem else None,
    )


def _key(record: dict[str, Any]) -> tuple[Any, ...]:
    return record["name"], tuple(record["grid"]), tuple(record["block"])


def _kernel(
    record: dict[str, Any], detail: dict[str, Any] | None, whole_us: float, ops: dict[str, str]
) -> Kernel:
    """A kernel of the step, with what is known of it."""
    op = record.get("op") or ops.get(record["name"])
    base = Kernel(
        name=record["name"],
        kind=_kind(record, op),
        calls=record["calls"],
        step_us=record["us"],
        share=record["us"] / whole_us if whole_us else 0.0,
        registers=record["registers"],
        shared_bytes=record["shared"],
        grid=tuple(record["grid"]),
        block=tuple(record["block"]),
        op=op,
    )
    if detail is None or base.kind == "copy":
        return base
    elsewhere = detail.get("elsewhere", False)
    full = replace(
        base,
        kind=detail["kind"] if detail["kind"] != "other" else base.kind,
        alone_us=detail.get("alone_us"),
        alone_why=detail.get("alone_why"),
        bytes=detail.get("bytes"),
        bytes_how=detail.get("bytes_how"),
        flops=detail.get("flops"),
        registers=detail.get("registers", base.registers),
        spills=detail.get("spills"),
        shared_bytes=detail.get("shared") if detail.get("shared") is not None else base.shared_bytes,
        config=detail.get("config"),
        op_kernels=detail.get("op_kernels", 1),
        op_alone_us=detail.get("op_alone_us"),
        op=detail.get("op") or base.op,
        inputs=tuple(detail.get("inputs", ())),
        sources=tuple(detail.get("sources", ())),
        cut_from=detail.get("cut_from"),
        nodes=tuple(detail.get("nodes", ())),
        exported=None if elsewhere else detail.get("exported"),
    )
    if elsewhere:
        how = "from the same kernel in another arm"
        full = replace(full, bytes_how=f"{full.bytes_how}, {how}" if full.bytes_how else how)
    return full


def _kind(record: dict[str, Any], op: str | None) -> Any:
    if record["category"] in ("gpu_memcpy", "gpu_memset"):
        return "copy"
    if record["name"].startswith("triton_"):
        return "triton"
    if "cpp_fused" in record["name"]:
        return "cpp"
    return "vendor" if op else "other"


def _unknown(arm: Arm, ended: bool) -> str:
    if arm.variant == "eager":
        return "details are taken of compiled arms only"
    if ended:
        return "the script ended before a step could be looked into: let it make more"
    if arm.cuda_graphs:
        return "in the step without CUDA graphs that was looked into, it did not run"
    return "it was not seen in the step that was looked into"


# ---- against the ceilings ----


def judged(kernel: Kernel, measured: Sequence[Ceiling]) -> Kernel:
    """The kernel with its rates, their shares of the ceilings, what bounds it and what it could give back."""
    alone = kernel.alone_us
    whole = kernel.op_alone_us if kernel.op_kernels > 1 else None  # bytes and FLOPs are the op's
    in_step = kernel.step_us / kernel.calls if kernel.calls else None
    per_call = whole or alone or in_step
    if not per_call or (kernel.op_kernels > 1 and whole is None):
        return kernel
    copy = _best(measured, "copy", None)
    matmul = _best(measured, "matmul", _dtype(kernel))
    bandwidth = None if kernel.bytes is None else kernel.bytes / per_call / 1e3  # bytes per us -> GB/s
    tflops = None if kernel.flops is None else kernel.flops / per_call / 1e6
    memory_share = None if bandwidth is None or copy is None else bandwidth / (copy * 1e3)
    compute_share = None if tflops is None or matmul is None else tflops / matmul
    shortest = _best(measured, "launch", None)
    known = kernel.bytes is not None or kernel.flops is not None
    floors = [(shortest or 0.0) * kernel.op_kernels] if known else []
    if kernel.bytes is not None and copy is not None:
        floors.append(kernel.bytes / copy / 1e6)
    if kernel.flops is not None and matmul is not None:
        floors.append(kernel.flops / matmul / 1e6)
    give_back = None
    if floors and alone is not None:
        # From the time alone, with cold caches: in the step a kernel may beat the memory's ceiling out of L2.
        # Of an op of several kernels, each has its share of what the op could give back.
        own = min(alone, in_step if in_step is not None else alone)
        give_back = own * max(0.0, 1 - max(floors) * (alone / per_call) / own) * kernel.calls if own else 0.0
    return replace(
        kernel,
        bandwidth=bandwidth,
        tflops=tflops,
        bandwidth_share=memory_share,
        tflops_share=compute_share,
        bound=_bound(per_call / kernel.op_kernels, memory_share, compute_share, shortest),
        give_back_us=give_back,
    )


def _bound(us: float, memory: float | None, compute: float | None, shortest: float | None) -> Bound | None:
    if memory is None and compute is None:
        return None
    memory, compute = memory or 0.0, compute or 0.0
    if max(memory, compute) >= _NEAR:
        return "memory" if memory >= compute else "compute"
    if shortest is not None and us < _SHORT * shortest:
        return "launch"
    return "latency"


def _best(measured: Sequence[Ceiling], what: str, dtype: str | None) -> float | None:
    values = [one.value for one in measured if one.what == what and (dtype is None or one.dtype == dtype)]
    return max(values, default=None)


def _dtype(kernel: Kernel) -> str | None:
    """The dtype of a kernel's first floating-point input."""
    for text in kernel.inputs:
        name = text.partition("[")[0]
        if name in _DTYPES:
            return _DTYPES[name]
    return "none"
