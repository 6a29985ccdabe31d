"""What recompiles cost: seconds of compile time in the run, and guards in every step from then on.

Each version of a function that Dynamo keeps has guards, which are checked until one version fits. So a
version that a recompile added lengthens the way to the others by at most its own check, which Dynamo has
timed; and all of them by no more than a steady step was seen to check guards.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

from breakscope.diagnose.collect import Collected
from breakscope.report.model import Compiling, Finding


def priced(found: Collected, findings: Sequence[Finding]) -> list[Finding]:
    """The findings, with what their recompiles took."""
    return [
        replace(finding, compiling=_compiling(found, finding)) if finding.kind == "recompile" else finding
        for finding in findings
    ]


def _compiling(found: Collected, finding: Finding) -> Compiling | None:
    ids = set(finding.counts.compile_ids)
    metrics = [event["metrics"] for event in found.metrics if event["cid"] in ids]
    times = [metric["duration_us"] for metric in metrics if metric.get("duration_us") is not None]
    if not times:
        return None
    guards = [metric["guard_latency_us"] for metric in metrics if metric.get("guard_latency_us") is not None]
    calls = _calls_per_step(found, ids)
    seen = _checked_ms(found)
    added = None
    if guards and calls is not None and seen is not None:
        added = round(min(seen, sum(guards) * calls / 1e3), 6)
    return Compiling(
        seconds=round(sum(times) / 1e6, 6),
        versions=len(times),
        guards_ms_per_step=added,
    )


def _checked_ms(found: Collected) -> float | None:
    """For how long a steady step checks guards; None where no glance saw one."""
    times = [sum(took for _, took in event["lookups"]) for event in found.glances]
    return statistics.median(times) / 1e6 if times else None


def _calls_per_step(found: Collected, ids: set[str]) -> float | None:
    """How often a step calls the function of some compiles: as often as any of its versions runs."""
    frames = {compile_id.partition("/")[0] for compile_id in ids}
    runs = [
        found.count(region.slot)
        for region in found.regions
        if region.compile_id is not None and region.compile_id.partition("/")[0] in frames
    ]
    known = [count for count in runs if count is not None]
    return sum(known) / found.steps if known and found.steps else None
