"""The last word: the script with and without the patches under Inductor, both against eager."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from breakscope.fix.patch import Patch
from breakscope.fix.trials import Trials, eagerly, steps_timed
from breakscope.inside.settings import Settings, form
from breakscope.report.model import Timing
from breakscope.run.trial import Comparison, Trial

# Relative to the largest value of a tensor. Fusion changes rounding with and without patches; what counts
# is that the patches do not take Inductor's results farther from eager's than it is already.
FLOOR = 1e-3
FACTOR = 4.0
# Farther apart than this without the patches (other random numbers), results say nothing about them.
LOOSE = 0.1
# Of each frame: as it is first compiled, for sizes as they are, and once more, for sizes that vary.
FORMS = 2
# Where messages alone are left out: the operations are the same, only the graphs of them are larger.
FORMS_OF_SILENT = 1


def begin_under_inductor(trials: Trials, patches: Sequence[Patch], settings: Settings) -> None:
    """Begin what :func:`under_inductor` will ask for first, where that can be."""
    if trials.untimed:
        trials.begin_with(patches, _as_eager(patches, settings))
    else:
        trials.begin_pair(patches, _compiled(settings))


def _compiled(settings: Settings) -> Settings:
    """How the script is run with and without the patches."""
    return replace(settings, backend="inductor", cost=True)


def _as_eager(patches: Sequence[Patch], settings: Settings) -> Settings:
    """How it is run with the patches, to be held against eager alone: it rounds and draws as eager code."""
    silent = all(patch.rewrite.silent and not patch.rewrite.branches for patch in patches)
    forms = FORMS_OF_SILENT if silent else FORMS
    return replace(_compiled(settings), eager_rounding=True, eager_random=True, forms=forms)


def under_inductor(trials: Trials, patches: Sequence[Patch], settings: Settings) -> dict[str, Any]:
    """Compare under Inductor. What forked runs have against the patches is asked of plain ones again.

    Returns:
        ``verdict``: "agrees", "differs", "slower" or "not compared", and ``why``; the distances from eager,
        relative, ``before`` and ``after``, unless the patches change no bit; ``step_ms``, without and with
        the patches, where steps could be timed and nothing went on beside them, and ``compiled_ms`` of it: in
        compiled graphs and at breaks, which is what the patches change.
    """
    found = _compared(trials, patches, settings)
    against = found["verdict"] in ("differs", "slower") or "calls" not in found
    if against and trials.forking:
        with trials.plainly():
            found = _compared(trials, patches, settings)
    return found


def _compared(trials: Trials, patches: Sequence[Patch], settings: Settings) -> dict[str, Any]:
    inductor = _compiled(settings)
    if trials.untimed and (near := _near_eager(trials, patches, settings)) is not None:
        return near
    alone = trials.timed_alone(patches, inductor)
    # With and without the patches at one time, so that their steps are timed on a machine that is as busy.
    with trials.side_by_side(patches, inductor) as ran:
        after, before = ran
        if unusable := _unusable(after, before):
            return unusable
        same = trials.compared(before, after)
        distances = None
        if not (same.bitwise and same.calls):  # else it is as far from eager as it was
            eager = trials.uncompiled
            if eager.ended.status != "ok":
                why = f"the script run eagerly ended with {eager.ended.status}"
                return {"verdict": "not compared", "why": why}
            distances = trials.compared(eager, before), trials.compared(eager, after)
    times = _steps(before.report.timing, after.report.timing) if alone else {}
    if distances is None:
        verdict = {"verdict": "agrees", "why": "bit for bit as without the patches", "calls": same.calls}
    else:
        verdict = _judged(trials, patches, settings, *distances)
    if verdict["verdict"] == "differs" or not verdict["calls"]:
        return {**verdict, **times}
    skipped = any(
        finding.kind == "skip" for finding in before.report.findings
    )  # what ran eagerly was not counted
    slower = _slower(before.report.timing, after.report.timing, skipped)
    if slower is not None:
        # Once more: on a machine that others use, one run can be slower than the next whatever it runs.
        again = trials.run(inductor)
        with trials.with_patches(patches, inductor) as patched:
            slower = _slower(again.report.timing, patched.report.timing, skipped)
            times = _steps(again.report.timing, patched.report.timing) or times
    if slower is not None:
        return {**verdict, "verdict": "slower", "why": slower, **times}
    return {**verdict, **times}


def _near_eager(trials: Trials, patches: Sequence[Patch], settings: Settings) -> dict[str, Any] | None:
    """The answer, where the run with the patches gives it; None where the one without is needed as well.

    That one tells how long steps took, and how far from eager Inductor's results were before. Where no step
    can be timed, and results are so near that they pass whatever they were before, it would tell nothing.
    """
    wanted = _as_eager(patches, settings)
    with trials.with_patches(patches, wanted) as after:
        if after.ended.status != "ok" or steps_timed(after.report) or trials.uncompiled.ended.status != "ok":
            return None
        now = trials.compared(trials.uncompiled, after)
    if not now.calls or now.differences or now.max_rel > FLOOR:
        return None
    why = "bit for bit as eager" if now.bitwise else f"within {now.max_rel:.2g} of eager"
    why += (
        ", where Inductor rounds and draws as eager does; not run without the patches: no step could be timed"
    )
    found = {"verdict": "agrees", "after": now.max_rel, "calls": now.calls}
    if left := sum(form(region.compile_id) >= (wanted.forms or 0) for region in after.report.regions):
        graphs = "a graph" if left == 1 else f"{left} graphs"
        why += f"; Inductor was not given {graphs} of later recompiles"
        found["as_traced"] = left
    return {**found, "why": why}


def _judged(
    trials: Trials, patches: Sequence[Patch], settings: Settings, was: Comparison, now: Comparison
) -> dict[str, Any]:
    """The verdict on outputs that the patches change: how far from eager's they were, and are."""
    found = {"before": was.max_rel, "after": now.max_rel, "calls": now.calls}
    if not now.calls:
        return {"verdict": "not compared", "why": "no outermost call returned anything", **found}
    rounded = None
    if different := _apart(was, now):
        # Other shapes and types, or NaN in one of them, are no matter of rounding.
        rounded = None if now.differences else _rounded_alike(trials, patches, settings)
        if rounded is None:
            return {"verdict": "differs", "why": different, **found}
    if was.max_rel > LOOSE:
        why = f"without the patches too, Inductor's results are {was.max_rel:.2g} from eager's"
        return {"verdict": "not compared", "why": why, **found}
    why = f"within {now.max_rel:.2g} of eager, {was.max_rel:.2g} without the patches"
    if rounded is not None:
        why += f"; within {rounded:.2g} where Inductor rounds as eager does"
    return {"verdict": "agrees", "why": why, **found}


def _unusable(after: Trial, before: Trial) -> dict[str, Any] | None:
    """The answer where one of the runs did not come to its end."""
    if before.ended.status != "ok":
        why = f"without the patches the script ends with {before.ended.status}"
        return {"verdict": "not compared", "why": why}
    if after.ended.status != "ok":
        return {"verdict": "differs", "why": f"under Inductor the script ends with {after.ended.status}"}
    return None


def _apart(was: Comparison, now: Comparison) -> str | None:
    """What takes Inductor's results farther from eager's with the patches than they are without."""
    if now.differences and not was.differences:
        return f"under Inductor the outputs differ: {now.differences[0]}"
    if now.max_rel > max(FLOOR, FACTOR * was.max_rel):
        return (
            f"under Inductor the outputs differ from eager by {now.max_rel:.2g}, before by {was.max_rel:.2g}"
        )
    return None


def _rounded_alike(trials: Trials, patches: Sequence[Patch], settings: Settings) -> float | None:
    """The distance from eager where Inductor rounds as eager does; None if it differs there as well.

    A larger graph is fused more, and fused code rounds half precisions less often. Where a model chooses by
    such numbers (the experts of a token), a last bit becomes another result, with no fault of the patches.
    """
    rounding = replace(settings, backend="inductor", cost=False, eager_rounding=True)
    with trials.side_by_side(patches, rounding, [eagerly(settings)]) as ran:
        after, before, eager = ran
        if {trial.ended.status for trial in ran} != {"ok"}:
            return None
        was, now = trials.compared(eager, before), trials.compared(eager, after)
    apart = _apart(was, now) is not None or was.max_rel > LOOSE
    return None if apart or not now.calls else now.max_rel


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


def _slower(before: Timing | None, after: Timing | None, skipped: bool) -> str | None:
    """What got slower by more than chance: steps, or compiled code: such steps also write what calls return.

    Steps by a tenth and three times their spread. Compiled code by half and by a tenth of a step: both are
    medians, and no measure of their spread is kept.

    Args:
        skipped: something ran eagerly before, and was in no compiled code.
    """
    times = _steps(before, after)
    if before is None or after is None or not times:
        return None
    was_ms, now_ms = times["step_ms"]
    spread = max(before.spread_ms or 0.0, after.spread_ms or 0.0)
    if now_ms - was_ms > max(0.1 * was_ms, 3 * spread):
        return f"a step takes {now_ms:.3g} ms instead of {was_ms:.3g}"
    if "compiled_ms" in times and not skipped:
        was, now = times["compiled_ms"]
        if now > 1.5 * was and now - was > 0.1 * was_ms:
            return f"compiled code takes {now:.3g} ms of a step, where it took {was:.3g} with the breaks"
    return None
