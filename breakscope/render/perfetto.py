"""Steps and compiles as a trace for Perfetto or chrome://tracing: one process for each rank.

The Trace Event Format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU. Times
are in microseconds since the first rank began. How long each phase of a compile took is known, when it began
is not: phases are drawn one after the other, from the outermost to the innermost.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from breakscope.diagnose.merge import Identity, as_rank
from breakscope.diagnose.rank_groups import by_process
from breakscope.report.model import Compile, Rank, Report, Step

_STEPS, _COMPILES = 1, 10  # numbers of the first thread of each kind
_LONE_SURROGATE = "backslashreplace"

Slice = dict[str, Any]


def render(report: Report) -> str:
    """The trace as JSON text. What has no time is counted under ``otherData`` and not drawn."""
    whole = report if report.ranks else as_rank(report, Identity())
    began = [rank.began for rank in whole.ranks if rank.began is not None]
    events: list[Slice] = []
    lost = 0
    all_steps, all_compiles = by_process(whole.steps), by_process(whole.compiles)
    for number, rank in enumerate(whole.ranks):
        offset = rank.began - min(began) if rank.began is not None else 0.0
        steps, compiles = all_steps.get(rank.process, []), all_compiles.get(rank.process, [])
        drawn = [*_steps(steps, offset), *_compiles(compiles, offset)]
        lost += sum(step.at_s is None or step.ms is None for step in steps)
        lost += sum(one.at_s is None or one.seconds is None for one in compiles)
        events += _names(number, _name(rank, whole.ranks), {one["tid"] for one in drawn})
        events += ({**one, "pid": number} for one in drawn)
    data = {
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "otherData": {"made_by": f"breakscope {report.tool.version}", "without_time": lost},
    }
    text = json.dumps(data, ensure_ascii=False, allow_nan=False)
    return text.encode(errors=_LONE_SURROGATE).decode() + "\n"


def _name(rank: Rank, ranks: Sequence[Rank]) -> str:
    jobs = len({one.job for one in ranks}) > 1
    restarts = any(one.attempt for one in ranks)
    return (
        (f"{rank.job} " if jobs else "")
        + f"rank {rank.rank}"
        + (f", attempt {rank.attempt}" if restarts else "")
    )


def _names(pid: int, name: str, tids: Iterable[int]) -> list[Slice]:
    """What Perfetto calls the process and its threads."""
    named = [
        {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}},
        {"ph": "M", "pid": pid, "name": "process_sort_index", "args": {"sort_index": pid}},
    ]
    for tid in sorted(tids):
        thread = "steps" if tid == _STEPS else "compiles"
        named.append({"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": thread}})
    return named


def _steps(steps: Iterable[Step], offset: float) -> list[Slice]:
    return [
        _slice(
            f"step {step.index}",
            "step",
            _STEPS,
            offset + step.at_s,
            step.ms / 1e3,
            compile_ms=step.compile_ms,
            compiles=step.compiles,
            crossings=step.crossings,
            launches=step.launches,
        )
        for step in steps
        if step.at_s is not None and step.ms is not None
    ]


def _compiles(compiles: Iterable[Compile], offset: float) -> list[Slice]:
    made: list[Slice] = []
    free: list[float] = []  # when each thread's last slice ends: slices of one thread must not overlap
    timed = [
        (one.at_s, one.seconds, one) for one in compiles if one.at_s is not None and one.seconds is not None
    ]
    for at, seconds, one in sorted(timed, key=lambda item: (item[0], -item[1])):
        lane = next((lane for lane, end in enumerate(free) if end <= at), len(free))
        free[lane : lane + 1] = [at + seconds]
        tid, start = _COMPILES + lane, offset + at
        made.append(
            _slice(
                f"{one.function} [{one.compile_id}]",
                "compile",
                tid,
                start,
                seconds,
                file=one.file,
                line=one.line,
                step=one.step,
                cache=one.cache,
                finding=one.finding,
                failed=one.failed,
            )
        )
        left = seconds
        for phase, length in one.phases.items():
            length = min(length, left)  # rounding must not carry a phase beyond its compile
            made.append(_slice(phase, "phase", tid, start + seconds - left, length))
            left -= length
    return made


def _slice(name: str, category: str, tid: int, at: float, seconds: float, **args: Any) -> Slice:
    known = {key: value for key, value in args.items() if value is not None}
    return {
        "ph": "X",
        "name": name,
        "cat": category,
        "tid": tid,
        "ts": round(at * 1e6, 3),
        "dur": round(seconds * 1e6, 3),
        "args": known,
    }
