"""Recompiles: one finding for each function and cause; and the limit that they can use up."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from breakscope import catalog
from breakscope.diagnose import guards
from breakscope.diagnose.collect import Collected, FrameRef, Recompile
from breakscope.diagnose.guard_paths import placeless
from breakscope.diagnose.guards import GuardFailure
from breakscope.diagnose.places import Places
from breakscope.diagnose.records import RawFrame
from breakscope.report.model import Counts, Finding, Guard


@dataclass(slots=True)
class Cause:
    """Every recompile of one function for one reason."""

    frame: FrameRef
    guard: Guard
    failure: GuardFailure
    recompiles: list[Recompile] = field(default_factory=list)


def causes(found: Collected) -> tuple[list[Cause], list[Recompile]]:
    """Group recompiles by function and cause. Returns the causes, and recompiles without a frame.

    A recompile names one failed guard for each compiled version that did not fit, the latest version
    first. The latest is the one that a user would have expected to fit: its guard is the cause.
    """
    grouped: dict[tuple[object, ...], Cause] = {}
    lost: list[Recompile] = []
    for item in found.recompiles:
        if item.refused:
            continue  # nothing was compiled; the limit's own finding tells
        if item.frame is None or not item.failures:
            lost.append(item)
            continue
        failure = item.failures[0]
        # The name with its resume prefix tells a value that entered a resumed function from others.
        name = (
            f"torch_dynamo_resume_in_{item.frame.name}_at_{item.frame.line}"
            if item.frame.resumed
            else item.frame.name
        )
        guard = guards.classify(failure, function=name, actuals=item.values)
        key = (item.frame.file, *guards.finding_key(guard, item.frame.name))
        cause = grouped.get(key)
        if cause is None:
            cause = grouped[key] = Cause(item.frame, replace(guard, resumed=item.frame.resumed), failure)
        else:
            resumed = cause.guard.resumed and item.frame.resumed
            cause.guard = replace(guards.merge_values(cause.guard, guard), resumed=resumed)
        cause.recompiles.append(item)
    return list(grouped.values()), lost


def findings(causes_found: list[Cause], places: Places) -> list[Finding]:
    """One finding for each cause."""
    return [_finding(cause, places) for cause in causes_found]


def _finding(cause: Cause, places: Places) -> Finding:
    code = catalog.cause_code(cause.guard.cause)
    frame = cause.frame
    location = places.definition(frame.file, frame.line, frame.name, frame.qualname)
    raw = (RawFrame(f.file, f.line, f.function, f.source) for f in cause.failure.user_stack)
    stack = places.stack(raw)
    about = f"{placeless(str(cause.guard.source))} {cause.guard.dimension}"
    steps = [r.step for r in cause.recompiles if r.step is not None]
    return Finding(
        fingerprint=places.fingerprint(code, location, about, of_function=True),
        code=code,
        kind="recompile",
        gb_id=None,
        title=guards.describe(cause.guard),
        reason=cause.guard.expression,
        explanation=catalog.entry(code).why,
        hints=(),
        location=location,
        stack=stack,
        counts=Counts(
            occurrences=len(cause.recompiles),
            crossings=None,
            compile_ids=tuple(dict.fromkeys(r.compile_id for r in cause.recompiles if r.compile_id)),
        ),
        called_from=places.caller(location, stack),
        guard=cause.guard,
        first_step=min(steps, default=None),
        last_step=max(steps, default=None),
    )


def limits(found: Collected, causes_found: list[Cause], places: Places) -> list[Finding]:
    """One finding for each function that reached the recompile limit, with the guards that used it up."""
    made: dict[tuple[str, str], Finding] = {}
    for skip in found.skips:
        if not skip.limit:
            continue
        frame = skip.frame
        used = [
            cause
            for cause in causes_found
            if (cause.frame.file, cause.frame.name) == (frame.file, frame.name)
        ]
        location = places.definition(frame.file, frame.line, frame.name, frame.qualname)
        entry = catalog.entry("BS303")
        calls = found.count(skip.slot)
        before = made.get((frame.file, frame.name))
        if before is not None and before.counts.crossings is not None:
            calls = (calls or 0) + before.counts.crossings
        made[frame.file, frame.name] = Finding(
            fingerprint=places.fingerprint("BS303", location, of_function=True),
            code="BS303",
            kind="skip",
            gb_id=None,
            title=entry.title,
            reason=skip.why or entry.title,
            explanation=entry.why,
            hints=(),
            location=location,
            stack=(),
            counts=Counts(
                occurrences=1,
                crossings=calls,
                compile_ids=tuple(r.compile_id for c in used for r in c.recompiles if r.compile_id),
            ),
            guards=tuple(cause.guard for cause in used),
            first_step=skip.step,
            last_step=skip.step,
        )
    return list(made.values())
