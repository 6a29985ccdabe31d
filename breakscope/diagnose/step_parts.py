"""What the host did in some of the sampled steps, for a time line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from breakscope.diagnose.collect import Collected
from breakscope.diagnose.gaps import Sampled, take_apart
from breakscope.report.model import StepPart

_MOST_STEPS, _MOST_PARTS = 4, 400  # of a report: a time line shows no more, and the file stays small


def parts(
    found: Collected, owners: Mapping[int, int], fingerprints: Sequence[str]
) -> dict[int, tuple[StepPart, ...]]:
    """By number of the step: the parts of the first one of each shape.

    Args:
        owners: index of the site that each counting slot belongs to; fingerprints: of the sites' findings.
    """
    regions = {region.slot: region for region in found.regions if region.slot is not None}
    ids = {slot: region.compile_id for slot, region in regions.items()}
    drawn: dict[int, tuple[StepPart, ...]] = {}
    shapes: set[object] = set()
    for event in found.samples:
        step = take_apart(event, regions, owners)
        if step.shape in shapes or len(step.spans) > _MOST_PARTS:
            continue
        shapes.add(step.shape)
        drawn[event["of"]] = _parts(step, ids, fingerprints)
        if len(drawn) == _MOST_STEPS:
            break
    return drawn


def _parts(step: Sampled, ids: Mapping[int, str | None], fingerprints: Sequence[str]) -> tuple[StepPart, ...]:
    return tuple(
        StepPart(
            what=span.what,
            at_ms=round(span.begin / 1e6, 6),
            ms=round(span.ns / 1e6, 6),
            region=None if span.slot is None else ids.get(span.slot),
            finding=fingerprints[span.owner] if span.what == "gap" and span.owner is not None else None,
        )
        for span in step.spans
        if span.what != "outside"
    )
