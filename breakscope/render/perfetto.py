"""Steps and compiles as a trace for Perfetto or chrome://tracing: one process for each rank.

Inside of a step that was sampled lie its parts: runs of regions, and the gaps between them with the site that
each is due to. Crossings and launches of every step are counters on the same clock.

The Trace Event Format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU. Times
are in microseconds since the first rank began. How long each phase of a compile took is known, when it began
is not: phases are drawn one after the other, from the outermost to the innermost.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from breakscope.diagnose.merge import Identity, as_rank
from breakscope.diagnose.rank_groups import by_process
from breakscope.report.model import Compile, Finding, Rank, Report, Step
from breakscope.view.lanes import lanes

_STEPS, _COMPILES = 1, 10  # numbers of the first thread of each kind
_LONE_SURROGATE = "backslashreplace"

Slice = dict[str, Any]


def render(report: Report) -> str:
    """The trace as JSON text. What has no time is counted under ``otherData`` and not drawn."""
    whole = report if report.ranks else as_rank(report, Identity())
    began = [rank.began for rank in whole.ranks if rank.began is not None]
    events: list[Slice] = []
    lost = 0
    findings = {one.fingerprint: one for one in whole.findings}
    all_regions = by_process(whole.regions)
    all_steps, all_compiles = by_process(whole.steps), by_process(whole.compiles)
    for number, rank in enumerate(whole.ranks):
        offset = rank.began - min(began) if rank.began is not None else 0.0
        steps, compiles = all_steps.get(rank.process, []), all_compiles.get(rank.process, [])
        regions = {one.compile_id: one.function for one in all_regions.get(rank.process, [])}
        drawn = [*_steps(steps, offset), *_parts(steps, offset, regions, findings)]
        drawn += _compiles(compiles, offset)
        lost += sum(step.at_s is None or step.ms is None for step in steps)
        lost += sum(one.at_s is None or one.seconds is None for one in compiles)
        events += _names(number, _name(rank, whole.ranks), {one["tid"] for one in drawn})
        events += ({**one, "pid": number} for one in (*drawn, *_counters(steps, offset)))
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


def _parts(
    steps: Iterable[Step], offset: float, regions: Mapping[str, str], findings: Mapping[str, Finding]
) -> list[Slice]:
    """What the host did in the steps that were sampled, inside of the steps' own slices."""
    made = []
    for step in steps:
        if step.at_s is None or step.ms is None:
            continue
        for part in step.parts:
            finding = findings.get(part.finding or "")
            name: str = part.what
            if part.region is not None:
                name = f"{regions.get(part.region, 'region')} [{part.region}]"
            elif finding is not None:
                name = f"gap: {finding.code} {finding.location.function or ''}".rstrip()
            at = max(0.0, min(part.at_ms, step.ms))
            length = max(0.0, min(part.ms, step.ms - at))  # rounding must not carry a part beyond its step
            start = offset + step.at_s + at / 1e3
            made.append(_slice(name, part.what, _STEPS, start, length / 1e3, finding=part.finding))
    return made


def _counters(steps: Iterable[Step], offset: float) -> list[Slice]:
    """Crossings and launches, one value for each step."""
    return [
        {
            "ph": "C",
            "name": name,
            "cat": "count",
            "ts": round((offset + step.at_s) * 1e6, 3),
            "args": {name: count},
        }
        for step in steps
        for name, count in (("crossings", step.crossings), ("launches", step.launches))
        if step.at_s is not None and step.ms is not None and count is not None
    ]


def _compiles(compiles: Iterable[Compile], offset: float) -> list[Slice]:
    made: list[Slice] = []
    timed = ((number, *row) for number, lane in enumerate(lanes(compiles)) for row in lane)
    for lane, at, seconds, one in timed:
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
