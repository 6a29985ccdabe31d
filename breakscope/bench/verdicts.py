"""Which arms are held against which, round by round."""

from __future__ import annotations

from collections.abc import Sequence

from breakscope.bench import stats
from breakscope.bench.conducted import Conducted
from breakscope.bench.players import repeatability, samples
from breakscope.inside.bench.plan import Arm, Options
from breakscope.report.benchmark import Verdict


def judge(found: Conducted, options: Options, good: Sequence[str]) -> list[Verdict]:
    """Each arm against eager, each fixed one against its unfixed twin, and settings against each other.

    Args:
        good: names of the arms that were measured.
    """
    plan = [arm for arm in options.arms() if arm.name in good]
    pairs: list[tuple[Arm, Arm]] = [(arm, base) for arm in plan for base in _bases(arm, plan)]
    verdicts = []
    for arm, base in pairs:
        one, other = ([player for player in found.of(each) if player.failed is None] for each in (arm, base))
        mine, theirs = ([samples(player, "ms") for player in players] for players in (one, other))
        least = max(map(repeatability, (*one, *other)), default=stats.REPEATABILITY)
        verdict = stats.compare(arm.name, base.name, mine, theirs, least=least)
        if verdict is not None:
            verdicts.append(verdict)
    return verdicts


def _bases(arm: Arm, plan: Sequence[Arm]) -> list[Arm]:
    bases = [one for one in plan if one.variant == "eager" and one != arm]
    if arm.variant == "fixed":
        bases += [one for one in plan if one.variant == "compiled" and _same_settings(one, arm)]
    if arm.variant != "eager":
        bases += [one for one in plan[: plan.index(arm)] if one.variant == arm.variant]
    return bases


def _same_settings(one: Arm, other: Arm) -> bool:
    return (one.mode, one.dynamic) == (other.mode, other.dynamic)
