"""The profiler's trace of some steps, read: which kernels ran, how long, and who launched them. Pure."""

from __future__ import annotations

import bisect
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

STEP = "breakscope_step"
MARK = "breakscope#"  # a marker around one operation: "breakscope#12"
_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
_LAUNCHES = ("cuda_runtime", "cuda_driver")

Event = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel, copy or fill on the device, or one operation on a CPU. Times in microseconds.

    Attributes:
        category: as the trace names it: kernel, gpu_memcpy, gpu_memset, cpu_op.
        us: time in it; on a CPU without what it called.
        marker: number of the innermost marker that launched it; None outside of all.
        op: the innermost op of torch's that launched it; None outside of all.
    """

    name: str
    category: str
    begin: float
    us: float
    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()
    registers: int | None = None
    shared: int | None = None
    marker: int | None = None
    op: str | None = None

    @property
    def key(self) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
        """Launches of one kernel in one configuration have the same."""
        return self.name, self.grid, self.block


def steps(events: Sequence[Event]) -> list[tuple[float, float]]:
    """(begin, end) of each marked step."""
    marks = [
        event
        for event in events
        if event.get("name") == STEP and event.get("cat") in ("user_annotation", "cpu_op")
    ]
    return sorted((float(mark["ts"]), float(mark["ts"]) + float(mark["dur"])) for mark in marks)


def device_launches(events: Sequence[Event]) -> list[Launch]:
    """What ran on the GPU, in order, each with the marker that launched it."""
    launched_at = {
        event["args"]["correlation"]: event
        for event in events
        if event.get("cat") in _LAUNCHES and "correlation" in event.get("args", {})
    }
    markers, ops = _markers(events), _ops(events)
    found = []
    for event in events:
        if event.get("cat") not in _DEVICE or event.get("ph") != "X":
            continue
        arguments = event.get("args", {})
        host = launched_at.get(arguments.get("correlation"))
        found.append(
            Launch(
                # Inside a CUDA graph the profiler does not know which memory a fill fills.
                name=str(event["name"]).removesuffix(" (Unknown)"),
                category=str(event["cat"]),
                begin=float(event["ts"]),
                us=float(event["dur"]),
                grid=tuple(arguments.get("grid", ())),
                block=tuple(arguments.get("block", ())),
                registers=arguments.get("registers per thread"),
                shared=arguments.get("shared memory"),
                marker=None if host is None else markers.around(host["tid"], float(host["ts"])),
                op=None if host is None else ops.around(host["tid"], float(host["ts"])),
            )
        )
    return sorted(found, key=lambda launch: launch.begin)


def cpu_launches(events: Sequence[Event]) -> list[Launch]:
    """What ran on the CPU, each without the time of what it called, and with its innermost marker."""
    markers = _markers(events)
    threads: dict[Any, list[Event]] = {}
    for one in events:
        if one.get("cat") == "cpu_op" and one.get("ph") == "X" and not _is_marker(one):
            threads.setdefault(one["tid"], []).append(one)
    found = []
    for thread, ops in threads.items():
        for one, own in _self_times(ops):
            marker = markers.around(thread, float(one["ts"]))
            name = str(one["name"])
            if _is_kernel(name):
                found.append(Launch(name, "cpu_op", float(one["ts"]), own, marker=marker, op=name))
    return sorted(found, key=lambda launch: launch.begin)


def _is_kernel(name: str) -> bool:
    """Whether a CPU event is work on data; Dynamo's and autograd's own events are not."""
    return ("::" in name and not name.startswith("autograd::")) or "cpp_" in name


def _is_marker(event: Event) -> bool:
    return str(event["name"]).startswith((STEP, MARK))


def _self_times(ops: Sequence[Event]) -> Iterable[tuple[Event, float]]:
    """Each event of one thread with its time less that of the events directly inside it."""
    own = [float(one["dur"]) for one in ops]
    order = sorted(range(len(ops)), key=lambda at: (float(ops[at]["ts"]), -float(ops[at]["dur"])))
    open_: list[int] = []
    for at in order:
        begin = float(ops[at]["ts"])
        while open_ and float(ops[open_[-1]]["ts"]) + float(ops[open_[-1]]["dur"]) <= begin:
            open_.pop()
        if open_:
            own[open_[-1]] -= float(ops[at]["dur"])
        open_.append(at)
    return ((ops[at], max(0.0, own[at])) for at in order)


class _Spans:
    """Spans by thread, each with a value, to find the innermost one around a moment."""

    _BACK = 64  # spans that may have begun and ended since the one that is looked for began

    def __init__(self, spans: Iterable[tuple[Any, float, float, Any]]) -> None:
        self._by_thread: dict[Any, list[tuple[float, float, Any]]] = {}
        for thread, begin, end, value in spans:
            self._by_thread.setdefault(thread, []).append((begin, end, value))
        for found in self._by_thread.values():
            found.sort(key=lambda span: span[:2])
        self._begins = {thread: [one[0] for one in found] for thread, found in self._by_thread.items()}

    def around(self, thread: Any, moment: float) -> Any:
        """The value of the innermost span; None outside of all."""
        at = bisect.bisect_right(self._begins.get(thread, []), moment)
        spans = self._by_thread.get(thread, [])
        for _, end, value in reversed(spans[max(0, at - self._BACK) : at]):
            if moment <= end:
                return value
        return None


def _span(event: Event, value: Any) -> tuple[Any, float, float, Any]:
    begin = float(event["ts"])
    return event["tid"], begin, begin + float(event["dur"]), value


def _markers(events: Sequence[Event]) -> _Spans:
    return _Spans(
        _span(event, int(str(event["name"])[len(MARK) :]))
        for event in events
        if event.get("cat") in ("user_annotation", "cpu_op") and str(event["name"]).startswith(MARK)
    )


def _ops(events: Sequence[Event]) -> _Spans:
    return _Spans(
        _span(event, str(event["name"]))
        for event in events
        if event.get("cat") == "cpu_op" and event.get("ph") == "X" and _is_kernel(str(event["name"]))
    )


def within(launches: Iterable[Launch], spans: Sequence[tuple[float, float]]) -> list[Launch]:
    """Those that began inside one of the spans."""
    return [launch for launch in launches if any(begin <= launch.begin <= end for begin, end in spans)]


def busy_us(launches: Iterable[Launch]) -> float:
    """Time in which at least one of them ran."""
    total, end = 0.0, float("-inf")
    for one in sorted(launches, key=lambda launch: launch.begin):
        total += max(0.0, one.begin + one.us - max(end, one.begin))
        end = max(end, one.begin + one.us)
    return total


def grouped(launches: Sequence[Launch], spans: Sequence[tuple[float, float]]) -> list[dict[str, Any]]:
    """Per step: one record for each kernel in each configuration, the costliest first.

    Times are medians over the steps, so that one disturbed step does not count.
    """
    steps_of: dict[Any, list[list[Launch]]] = {}
    for at, span in enumerate(spans):
        for one in within(launches, [span]):
            steps_of.setdefault(one.key, [[] for _ in spans])[at].append(one)
    records = []
    for by_step in steps_of.values():
        group = [one for step in by_step for one in step]
        records.append(
            {
                "name": group[0].name,
                "category": group[0].category,
                "calls": len(group) / len(spans),
                "us": statistics.median(sum(one.us for one in step) for step in by_step),
                "grid": list(group[0].grid),
                "block": list(group[0].block),
                "registers": group[0].registers,
                "shared": group[0].shared,
                "op": group[0].op,
            }
        )
    return sorted(records, key=lambda record: -record["us"])
