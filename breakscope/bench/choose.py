"""When compiling pays, and which arm to use for a run of a given length. Pure arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence

from breakscope.report.benchmark import ArmResult, Estimate, Process, Recommendation, Total

# A process's first steps cost more than steady ones; these are looked at.
_MS = 1e3


def extra_s(process: Process, step: Estimate) -> float:
    """Seconds that the first steps take beyond as many steady ones: compiling, and all that comes with it."""
    first = [ms / _MS for ms in process.first_steps_ms]
    return max(0.0, sum(first) - len(first) * step.median / _MS)


def break_even(process: Process, step: Estimate, eager: ArmResult) -> int | None:
    """Steps after which the arm has overtaken eager; None if it never does."""
    if eager.step is None or not eager.processes:
        return None
    gain_s = (eager.step.median - step.median) / _MS
    cost_s = extra_s(process, step) - extra_s(eager.processes[0], eager.step)
    if cost_s <= 0:
        return 0 if gain_s >= 0 else None
    return math.ceil(cost_s / gain_s) if gain_s > 0 else None


def recommend(arms: Sequence[ArmResult], horizon: int) -> Recommendation | None:
    """The arm that ends first after ``horizon`` steps, from an empty cache; None without measured arms.

    Arms that failed or that compute something else are not candidates. Where the intervals of the two
    fastest overlap there is no evidence, and no arm is named; nor where the others failed.
    """
    totals = [_total(arm, horizon) for arm in arms if _eligible(arm)]
    known = sorted((total for total in totals if total is not None), key=lambda total: total.seconds)
    if not known:
        return None
    best = known[0]
    failed = [arm.name for arm in arms if arm.status == "failed"]
    if len(known) == 1 and failed:
        why = f"no recommendation: {', '.join(failed)} failed, so {best.arm} was held against nothing"
        return Recommendation(horizon, None, why, tuple(known))
    if len(known) == 1:
        return Recommendation(horizon, best.arm, "it is the only arm that can be recommended", tuple(known))
    second = known[1]
    ahead = f"{best.seconds:,.2f} s against {second.seconds:,.2f} s of {second.arm}"
    if best.high_s < second.low_s:
        why = f"{ahead} for {horizon:,} steps, first steps included; their intervals do not overlap"
        return Recommendation(horizon, best.arm, why, tuple(known))
    why = f"no evidence: {best.arm} takes {ahead} for {horizon:,} steps, and their intervals overlap"
    return Recommendation(horizon, None, why, tuple(known))


def _eligible(arm: ArmResult) -> bool:
    wrong = arm.outputs is not None and arm.outputs.status == "different"
    return arm.status == "ok" and arm.step is not None and not wrong


def _total(arm: ArmResult, horizon: int) -> Total | None:
    if arm.step is None or not arm.processes:
        return None
    extra = extra_s(arm.processes[0], arm.step)
    step = arm.step
    return Total(
        arm=arm.name,
        seconds=extra + horizon * step.median / _MS,
        low_s=extra + horizon * step.low / _MS,
        high_s=extra + horizon * step.high / _MS,
        arithmetic=f"{extra:.2f} s at the start + {horizon:,} x {step.median:.4g} ms "
        f"= {extra + horizon * step.median / _MS:,.2f} s",
    )
