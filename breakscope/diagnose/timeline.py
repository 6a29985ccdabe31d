"""The steps of a run and every compile in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from breakscope.diagnose import records
from breakscope.diagnose.collect import Collected, Event
from breakscope.report.model import CacheAnswer, Compile, Finding, Step, StepPart

Phases = dict[str, float]


def steps(
    found: Collected, compiles: Sequence[Compile], site_slots: Sequence[int | None]
) -> tuple[Step, ...]:
    """Every step that was timed.

    Args:
        site_slots: for each site the slot that counts its crossings.
    """
    region_slots = {region.slot for region in found.regions}
    sites_of = Counter(slot for slot in site_slots if slot is not None)
    compile_ms: dict[int, float] = {}
    count: dict[int, int] = {}
    for compile_ in compiles:
        if compile_.step is not None:
            compile_ms[compile_.step] = compile_ms.get(compile_.step, 0.0) + (compile_.seconds or 0.0) * 1e3
            count[compile_.step] = count.get(compile_.step, 0) + 1
    made = []
    crossed = launched = 0
    for index, start, length, gains in found.step_rows:
        if gains is not None:
            slots = {int(slot): gain for slot, gain in gains.items()}
            crossed = sum(gain * sites_of[slot] for slot, gain in slots.items())
            launched = sum(gain for slot, gain in slots.items() if slot in region_slots)
        made.append(
            Step(
                index=index,
                # To the nanosecond: a step must not begin before the one in front of it ends.
                at_s=start / 1e9,
                ms=round(length / 1e6, 6),
                compile_ms=round(compile_ms.get(index, 0.0), 3),
                compiles=count.get(index, 0),
                crossings=crossed,
                launches=launched,
            )
        )
    return tuple(made)


def with_parts(steps: Sequence[Step], parts: Mapping[int, tuple[StepPart, ...]]) -> tuple[Step, ...]:
    """The steps, with the parts of those that were taken apart."""
    return tuple(replace(step, parts=parts[step.index]) if step.index in parts else step for step in steps)


def compiles(found: Collected, findings: Sequence[Finding]) -> tuple[Compile, ...]:
    """Every compile that Dynamo gave metrics of, in order."""
    causes = _causes(findings)
    return tuple(_compile(found, event, causes) for event in found.metrics)


def _causes(findings: Sequence[Finding]) -> dict[str, str]:
    """The finding for which a compile happened: a recompile's cause."""
    return {
        cid: finding.fingerprint
        for finding in findings
        if finding.kind == "recompile"
        for cid in finding.counts.compile_ids
    }


def _compile(found: Collected, event: Event, causes: Mapping[str, str]) -> Compile:
    metrics = event["metrics"]
    frame = event.get("frame") or {}
    live = found.slots is not None
    seconds = metrics.get("duration_us")
    bypassed = event.get("bypassed") or {}
    caches = _caches(metrics, bypassed)
    name = metrics.get("co_name") or frame.get("name") or "<unknown>"
    return Compile(
        compile_id=event["cid"] or "?",
        function=records.unresumed(name),
        file=metrics.get("co_filename") or frame.get("file"),
        line=metrics.get("co_firstlineno") or frame.get("line"),
        step=event["step"] if live else None,
        at_s=_began(event, seconds) if live else None,
        seconds=None if seconds is None else seconds / 1e6,
        phases=phases(metrics),
        cache=caches.get("fx_graph"),
        caches=caches,
        bypassed=bypassed,
        finding=causes.get(event["cid"] or ""),
        failed=metrics.get("fail_type"),
    )


def _began(event: Event, duration_us: int | None) -> float:
    # The event is written when the compile is over.
    return float(max(0.0, round(event["at"] - (duration_us or 0) / 1e6, 6)))


def phases(metrics: Mapping[str, Any]) -> Phases:
    """Seconds by phase. Dynamo's figures contain one another; here each is without what it contains."""
    whole = metrics.get("duration_us")
    if whole is None:
        return {}
    aot = metrics.get("aot_autograd_cumulative_compile_time_us")
    inductor = metrics.get("inductor_cumulative_compile_time_us")
    kernels = metrics.get("triton_compile_time_us")
    inner = [
        ("dynamo", whole),
        ("aot_autograd", aot),
        ("inductor", inductor),
        # Kernels may be compiled in the background, beside Inductor: then they are no part of it.
        ("triton", None if kernels is None or inductor is None else min(kernels, inductor)),
    ]
    known = [(name, value) for name, value in inner if value is not None]
    made = {}
    for (name, value), (_, inside) in zip(known, [*known[1:], ("", 0)], strict=True):
        made[name] = max(0, value - inside) / 1e6
    return made


def _caches(metrics: Mapping[str, Any], bypassed: Mapping[str, str]) -> dict[str, CacheAnswer]:
    """What each cache answered, of those that were asked. A graph that was not there counts more than others.

    Of Triton torch tells only that kernels came with a graph out of the cache.
    """
    found: dict[str, CacheAnswer] = {}
    for cache, name in (("aot_autograd", "aotautograd"), ("fx_graph", "inductor_fx")):
        hits, misses = (
            any(metrics.get(f"{name}_{where}_cache_{answer}_count") for where in ("local", "remote"))
            for answer in ("hit", "miss")
        )
        if cache in bypassed:
            found[cache] = "bypass"
        elif hits or misses:
            found[cache] = "miss" if misses else "hit"
    if metrics.get("num_triton_bundles"):
        found["triton"] = "hit"
    return found
