"""Events and the outcome of a run, made into a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from breakscope import __version__
from breakscope.diagnose import (
    compile_time,
    cost,
    double_backward,
    effects,
    failures,
    following,
    generation,
    intended,
    recompile_cost,
    recompiles,
    refusals,
    sites,
    step_parts,
    timeline,
    vacuous,
)
from breakscope.diagnose.collect import Collected, Event, collect
from breakscope.diagnose.outcome import Outcome
from breakscope.diagnose.places import Places, distinct
from breakscope.diagnose.signatures import signatures
from breakscope.report.model import (
    Artifact,
    Compiled,
    Device,
    Finding,
    FunctionGain,
    Reconciliation,
    Region,
    Report,
    Run,
    Tool,
    Totals,
    Unattributed,
)
from breakscope.report.ranking import is_site, worst_first
from breakscope.report.secrets import NOTE, is_masked, masked

# What an eager backend cannot show; said in every report made with one.
_BLIND = (
    "backend {backend}: CUDA-graph skips, Inductor fallbacks and kernel time are not visible; "
    "scan with --backend inductor to see them"
)


def build(events: Iterable[Event], slots: Sequence[int] | None, outcome: Outcome) -> Report:
    """The report of one process.

    Args:
        events: what the agent wrote, in order.
        slots: its counting slots; None if they could not be read.
    """
    found = collect(events, slots)
    seen = [one for item in found.breaks for one in item.kinds]
    places = Places(outcome.roots, sites.OWN, seen)
    folded, lost = sites.fold(found.breaks)
    site_findings = intended.mark(sites.findings(found, folded, places))
    meant = {index for index, finding in enumerate(site_findings) if finding.intended}
    priced = cost.costs(found, folded, outcome.backend, meant)
    site_findings = _priced(site_findings, priced)
    by_slot = {slot: index for index, site in enumerate(folded) for slot in site.slots}
    causes, lost_recompiles = recompiles.causes(found, places)
    failed, unplaced_errors = failures.failures(found, places, outcome.backend)
    made = distinct(
        [
            *site_findings,
            *recompiles.limits(found, causes, places),
            *recompile_cost.priced(found, recompiles.findings(found, causes, places)),
            *failed,
            *double_backward.findings(found, places),
            *refusals.findings(found, places),
            *compile_time.findings(found, places, outcome, priced.timing),
        ]
    )
    made = generation.led_back(following.linked(made, causes, places), places)
    found.notes.extend(note for note in (priced.note, *priced.machine) if note is not None)
    regions = _regions(found, places, made, by_slot, priced.region_ms)
    compiles = timeline.compiles(found, made)
    unattributed = (
        *(Unattributed("graph_break", b.compile_id, b.record.text) for b in lost),
        *(
            Unattributed("recompile", r.compile_id, "; ".join(f.raw for f in r.failures))
            for r in lost_recompiles
        ),
        *unplaced_errors,
    )
    reconciliation = _reconciliation(found, unattributed, regions, made, places)
    made = effects.mark(found, made, vacuous=reconciliation.vacuous)
    report = Report(
        tool=Tool("breakscope", __version__),
        run=_run(found, outcome, regions, places),
        totals=_totals(found, made, regions),
        reconciliation=reconciliation,
        findings=tuple(sorted(made, key=worst_first)),
        regions=regions,
        steps=timeline.with_parts(
            timeline.steps(found, compiles, [sites.counted_by(found, site) for site in folded]),
            # As in _regions: the site findings come first, in the order of the sites.
            step_parts.parts(found, cost.owners_of(found, folded), [one.fingerprint for one in made]),
        ),
        compiles=compiles,
        timing=replace(priced.timing, functions=_by_function(site_findings, priced)),
        signatures=signatures(found.signatures, places, by_optimizer=found.by_optimizer),
        artifacts=_artifacts(found),
    )
    hidden = masked(report)
    if hidden is report and not any(map(is_masked, report.run.argv)):
        return report
    return replace(hidden, run=replace(hidden.run, notes=(*hidden.run.notes, NOTE)))


def _reconciliation(
    found: Collected,
    unattributed: tuple[Unattributed, ...],
    regions: Sequence[Region],
    made: Sequence[Finding],
    places: Places,
) -> Reconciliation:
    """Dynamo's numbers. Vacuous where nothing was compiled, and nothing was about to be."""
    nothing = not regions and compile_time.unfinished(found) is None
    reason = vacuous.why(found, made, places) if nothing else None
    return Reconciliation(_dynamo(found), unattributed, nothing, reason)


def _artifacts(found: Collected) -> tuple[Artifact, ...]:
    """What was kept of each compile; what a restarted compile produced again is listed once."""
    kept = (Artifact(e["cid"] or "?", e["what"], e["digest"], e["size"]) for e in found.artifacts)
    return tuple(dict.fromkeys(kept))


def _priced(findings: Sequence[Finding], priced: cost.Costs) -> list[Finding]:
    """Site findings with their costs; what was never crossed in a steady step costs nothing there."""
    made = []
    for index, finding in enumerate(findings):
        found = priced.by_site.get(index)
        why = priced.why_not
        if found is None and why is None:
            why = "it was not reached in a steady step"
        made.append(replace(finding, cost=found, not_measured=None if found else why))
    return made


def _by_function(findings: Sequence[Finding], priced: cost.Costs) -> tuple[FunctionGain, ...]:
    """What the sites of each function cost together, where it has several: all, and those of one code."""
    by_place: dict[tuple[str | None, ...], list[int]] = {}
    for index, finding in enumerate(findings):
        if finding.cost is not None:
            place = finding.location.file, finding.location.function
            for key in (place, (*place, finding.code)):
                by_place.setdefault(key, []).append(index)
    groups = {tuple(some): some for some in by_place.values()}
    together = priced.together
    return tuple(
        FunctionGain(tuple(findings[index].fingerprint for index in some), together(some))
        for some in groups.values()
        if len(some) > 1 and together is not None
    )


def _regions(
    found: Collected,
    places: Places,
    made: Sequence[Finding],
    by_slot: dict[int, int],
    region_ms: Mapping[int, float],
) -> tuple[Region, ...]:
    regions = []
    buckets: dict[str | None, list[int | None]] = {}
    for event in found.regions:
        if event.split is not None:
            buckets.setdefault(event.compile_id, []).append(event.slot)
    for event in found.regions:
        name = "<unknown>"
        if event.frame is not None:
            frame = event.frame
            name = (
                places.definition(frame.file, frame.line, frame.name, frame.qualname).function or frame.name
            )
        # distinct() keeps the order: the site findings come first, in the order of the sites.
        ended_by = split = None
        together = buckets.get(event.compile_id, []) if event.split is not None else []
        if together:
            split = f"DDP bucket {together.index(event.slot) + 1} of {len(together)}"
        if event.breaks and event.site in by_slot and event.slot in (together[-1:] or [event.slot]):
            ended_by = made[by_slot[event.site]].fingerprint
        calls = found.count(event.slot)
        ms = None if event.slot is None else region_ms.get(event.slot)
        whole = None if calls is None or ms is None else round(ms * calls, 6)
        regions.append(
            Region(
                compile_id=event.compile_id or "?",
                function=name,
                ops=event.ops,
                calls=calls,
                ms=whole,
                ended_by=ended_by,
                split=split,
                collectives=event.collectives,
            )
        )
    return tuple(regions)


def _totals(found: Collected, made: Sequence[Finding], regions: Sequence[Region]) -> Totals:
    breaks = [f for f in made if is_site(f)]
    crossings = [f.counts.crossings for f in breaks]
    # A trace has no qualified names: two classes' forward() are told apart by where they begin.
    skipped = {
        (s.frame.file, s.frame.name, s.frame.qualname, None if s.frame.resumed else s.frame.line)
        for s in found.skips
    }
    return Totals(
        sites=len(breaks),
        occurrences=sum(f.counts.occurrences for f in breaks),
        crossings=None
        if None in crossings or found.slots is None
        else sum(c for c in crossings if c is not None),
        recompiles=sum(not recompile.refused for recompile in found.recompiles),
        skips=len(skipped),
        regions=len(regions),
        ops=sum(region.ops for region in regions),
        steps=found.steps,
    )


def _dynamo(found: Collected) -> dict[str, int]:
    return {
        "graph_break_records": len(found.breaks),
        "recompile_records": len(found.recompiles),
        "compilation_metrics": len(found.metrics),
        **found.counters,
    }


def _run(found: Collected, outcome: Outcome, regions: Sequence[Region], places: Places) -> Run:
    notes = [*outcome.notes, *_lifted(found), *found.notes, *_splits(regions)]
    if (twice := double_backward.note(found, outcome.backend, places)) is not None:
        notes.append(twice)
    if outcome.backend in ("eager", "aot_eager") and found.regions:
        notes.append(_BLIND.format(backend=outcome.backend))
    # What a graph of a few tensors on the host is beside: the last of the others.
    elsewhere = [one for one in found.devices if one["type"] not in ("cpu", "meta")]
    device = next(reversed(elsewhere or found.devices), None)
    targets = tuple(Compiled(e["name"], e["by"], e.get("file"), e.get("line")) for e in found.compiled)
    return Run(
        script=outcome.script,
        argv=outcome.argv,
        cwd=outcome.cwd,
        status=outcome.status,
        exit_code=outcome.exit_code,
        started_at=outcome.started_at,
        duration_s=outcome.duration_s,
        backend=outcome.backend,
        mode=outcome.mode,
        compiled=tuple(dict.fromkeys(target.name for target in targets)),
        world_size=1,
        python=found.start["python"] if found.start else "",
        torch=found.torch["version"] if found.torch else None,
        triton=found.torch["triton"] if found.torch else None,
        device=Device(device["type"], device["name"], device["count"]) if device else None,
        targets=tuple(dict.fromkeys(targets)),
        notes=tuple(notes),
    )


def _splits(regions: Sequence[Region]) -> list[str]:
    names = dict.fromkeys(region.function for region in regions if region.split is not None)
    if not names:
        return []
    text = (
        f"DDP splits the graphs of {', '.join(names)} at its buckets, so that gradients reduce early: "
        "these are no breaks (torch._dynamo.config.optimize_ddp = False turns it off)"
    )
    return [text]


def _lifted(found: Collected) -> list[str]:
    names = sorted({e["name"] for e in found.compiled if e.get("lifted")})
    if not names:
        return []
    return [
        f"fullgraph=True was lifted for {', '.join(names)}, to see every break (--keep-fullgraph leaves it)"
    ]
