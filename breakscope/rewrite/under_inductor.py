"""The last word: the script with and without the patches under Inductor, both against eager."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from breakscope.capture.settings import Settings
from breakscope.capture.trial import compare
from breakscope.model import Timing
from breakscope.rewrite.candidates import Candidate
from breakscope.rewrite.together import WholeScript

# Relative to the largest value of a tensor. Fusion changes rounding with and without patches; what counts
# is that the patches do not take Inductor's results farther from eager's than it is already.
FLOOR = 1e-3
FACTOR = 4.0


def under_inductor(trials: WholeScript, patches: Sequence[Candidate], settings: Settings) -> dict[str, Any]:
    """Compare under Inductor.

    Returns:
        ``verdict``: "agrees", "differs", "slower" or "not compared", and ``why``; the distances from eager,
        relative; ``step_ms``, without and with the patches, where steps could be timed, and ``compiled_ms``
        of it: in compiled graphs and at breaks, which is what the patches change.
    """
    eager = trials.run(replace(settings, backend="none"))
    if eager.ended.status != "ok":
        return {"verdict": "not compared", "why": f"the script run eagerly ended with {eager.ended.status}"}
    inductor = replace(settings, backend="inductor", cost=True)
    before = trials.run(inductor)
    if before.ended.status != "ok":
        return {
            "verdict": "not compared",
            "why": f"without the patches the script ends with {before.ended.status}",
        }
    with trials.with_patches(patches, inductor) as after:
        if after.ended.status != "ok":
            return {"verdict": "differs", "why": f"under Inductor the script ends with {after.ended.status}"}
        was, now = compare(eager, before), compare(eager, after)
    times = _steps(before.report.timing, after.report.timing)
    found = {"before": was.max_rel, "after": now.max_rel, "calls": now.calls, **times}
    if not now.calls:
        return {"verdict": "not compared", "why": "no outermost call returned anything", **found}
    if now.differences and not was.differences:
        return {
            "verdict": "differs",
            "why": f"under Inductor the outputs differ: {now.differences[0]}",
            **found,
        }
    if now.max_rel > max(FLOOR, FACTOR * was.max_rel):
        why = (
            f"under Inductor the outputs differ from eager by {now.max_rel:.2g}, before by {was.max_rel:.2g}"
        )
        return {"verdict": "differs", "why": why, **found}
    if _slower(before.report.timing, after.report.timing):
        was_ms, now_ms = times["step_ms"]
        why = f"a step takes {now_ms:.3g} ms instead of {was_ms:.3g}"
        return {"verdict": "slower", "why": why, **found}
    skipped = any(one.kind == "skip" for one in before.report.findings)  # what ran eagerly was not counted
    if not skipped and _more_inside(times):
        was_ms, now_ms = times["compiled_ms"]
        why = f"compiled code takes {now_ms:.3g} ms of a step, where it took {was_ms:.3g} with the breaks"
        return {"verdict": "slower", "why": why, **found}
    why = f"within {now.max_rel:.2g} of eager, {was.max_rel:.2g} without the patches"
    return {"verdict": "agrees", "why": why, **found}


def _steps(before: Timing | None, after: Timing | None) -> dict[str, Any]:
    if before is None or after is None or before.step_ms is None or after.step_ms is None:
        return {}
    found = {"step_ms": [before.step_ms, after.step_ms]}
    inside = [_inside(before), _inside(after)]
    return {**found, "compiled_ms": inside} if None not in inside else found


def _inside(timing: Timing) -> float | None:
    if timing.regions_ms is None or timing.breaks_ms is None or timing.bound != "host":
        return None
    return timing.regions_ms + timing.breaks_ms


def _more_inside(times: dict[str, Any]) -> bool:
    """Whether compiled code itself got much slower: steps of these runs also write what calls return.

    By half, and by a tenth of a step: both are medians, and no measure of their spread is kept.
    """
    if "compiled_ms" not in times:
        return False
    was, now = times["compiled_ms"]
    return bool(now > 1.5 * was and now - was > 0.1 * times["step_ms"][0])


def _slower(before: Timing | None, after: Timing | None) -> bool:
    """Whether steps got slower by more than chance: a tenth, and three times the spread."""
    if not _steps(before, after):
        return False
    assert before is not None
    assert before.step_ms is not None
    assert after is not None
    assert after.step_ms is not None
    spread = max(before.spread_ms or 0.0, after.spread_ms or 0.0)
    return after.step_ms - before.step_ms > max(0.1 * before.step_ms, 3 * spread)
