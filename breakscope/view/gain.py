"""What repairs would gain, in words: of one finding, of several, of all."""

from __future__ import annotations

from collections.abc import Sequence

from breakscope.report.model import Cost, Finding, Report
from breakscope.view.text import count, milliseconds, seconds

ASSUMED = (
    "assumed is that waits, guards and entries at the breaks go, that what runs eagerly there stays, and "
    "that nothing else changes"
)
_PARTED = 0.2  # least and most are both said if they are so far apart, as a part of what is likely
_LEAST_PARTED_MS = 0.01
_NOTHING = 0.01  # of a step
_APART = 0.1  # of the sum of costs: what repairs gain together is said from here on
_SMALL_FACTOR = 1.2
_SECOND_MS = 1e3
_SELDOM = 0.95  # of the steady steps: a break that fewer come to is priced by the step that does
_MUCH_EAGER = 0.25  # of the time between regions, from which on eager work is spoken of


def average_ms(report: Report, cost: Cost) -> float:
    """What a finding costs an average steady step, though not all may come to it."""
    steady = report.timing.steady_steps if report.timing else None
    if not steady or cost.steps is None:
        return cost.ms_per_step
    return cost.ms_per_step * cost.steps / steady


def is_uneven(report: Report) -> bool:
    """Whether some site is one that only part of the steady steps come to."""
    timing = report.timing
    if timing is None or not timing.steady_steps or not timing.steady_ms:
        return False
    steps = [finding.cost.steps for finding in report.findings if finding.cost]
    return any(some is not None and some < _SELDOM * timing.steady_steps for some in steps)


def amount(report: Report, costs: Sequence[Cost]) -> str:
    """``0.2 to 0.3 ms a step (12%)``; ``22 ms in each of 29 steps (90%)``."""
    shares = [cost.share for cost in costs if cost.share is not None]
    share = f" ({sum(shares):.0%})" if len(shares) == len(costs) else ""
    steady = report.timing.steady_steps if report.timing else None
    steps = {cost.steps for cost in costs}
    [same] = steps if len(steps) == 1 else [None]
    if steady and same is not None and same < _SELDOM * steady:
        where = f"in each of {count(same, 'step')}" if same > 1 else "in 1 step"
        return f"{_sum(costs)} ms {where}{share}"
    if steady and same is None and len(costs) > 1:
        return f"{milliseconds(sum(average_ms(report, cost) for cost in costs))} ms an average step{share}"
    return f"{_sum(costs)} ms a step{share}"


def _sum(costs: Sequence[Cost]) -> str:
    likely = sum(cost.ms_per_step for cost in costs)
    least = sum(cost.ms_per_step if cost.least_ms is None else cost.least_ms for cost in costs)
    most = sum(cost.ms_per_step if cost.most_ms is None else cost.most_ms for cost in costs)
    return between(least, likely, most)


def between(least: float | None, likely: float, most: float | None) -> str:
    """A figure, or two where the readings part: ``0.2 to 0.3``."""
    if least is None or most is None or most - least <= max(_PARTED * likely, _LEAST_PARTED_MS):
        return milliseconds(likely)
    low, high = milliseconds(least), milliseconds(most)
    return f"{low} to {high}" if low != high else low


def faster(report: Report) -> str | None:
    """What repairing everything would gain; None where the report does not know that."""
    timing = report.timing
    if timing is None or timing.gain_ms is None or not timing.step_ms:
        return None
    places = sum(
        finding.cost is not None and finding.cost.ms_per_step > 0 and finding.intended is None
        for finding in report.findings
    )
    times = timing.steady_steps if is_uneven(report) else None
    whole = timing.step_ms if times is None else (timing.steady_ms or 0.0) / times
    least, likely, most = timing.least_gain_ms or 0.0, timing.gain_ms, timing.most_gain_ms or timing.gain_ms
    if not places or likely < _NOTHING * whole:
        return f"repairing the breaks would gain next to nothing of {milliseconds(whole)} ms a step"
    who = {1: "the one place", 2: "both places"}.get(places, f"all {places} places")
    skipped = (one for finding in report.findings if finding.cost is not None for one in finding.skipped)
    # What stands behind a break in such a function was not traced.
    unless = ", if nothing else breaks in what is skipped as a whole" * any(
        one.since is None for one in skipped
    )
    longest, shortest = whole - least, max(whole - most, 0.0)
    slow, fast = (_times(whole / max(part, _NOTHING * whole)) for part in (longest, shortest))
    by = slow if slow == fast else f"{slow} to {fast}"
    if times is not None:
        all_ms = whole * times, (whole - likely) * times
        unit = "s" if all_ms[0] >= _SECOND_MS else "ms"
        before, after = (milliseconds(ms / (_SECOND_MS if unit == "s" else 1)) for ms in all_ms)
        change = f"{before} → {after} {unit} in all"
        return f"repairing {who} would make the steady steps about {by} faster ({change}){unless}"
    after = between(shortest, whole - likely, longest)
    change = f"{milliseconds(whole)} → {after} ms"
    return f"repairing {who} would make a step about {by} faster ({change}){unless}"


def _times(factor: float) -> str:
    return f"{factor:.2f}x" if factor < _SMALL_FACTOR else f"{factor:.1f}x"


def stays(finding: Finding) -> str:
    """How long what runs eagerly at a finding takes, where that is no small part; else empty."""
    cost = finding.cost
    eager = cost.parts.get("eager_work") if cost is not None else None
    if cost is None or not eager:
        return ""
    if not finding.skipped and eager < _MUCH_EAGER * cost.parts.get("gap", 0.0):
        return ""
    return f"{milliseconds(eager)} ms a step of operations run eagerly here; that is not what a repair gains"


def together(report: Report, findings: Sequence[Finding]) -> str:
    """What several sites of one function cost together, where that is not the sum; else empty."""
    names = {finding.fingerprint for finding in findings}
    known = report.timing.functions if report.timing else ()
    ms = next((one.ms for one in known if set(one.fingerprints) == names), None)
    alone = sum(average_ms(report, finding.cost) for finding in findings if finding.cost)
    if ms is None or abs(ms - alone) <= _APART * alone:
        return ""
    return f", {milliseconds(ms)} together"


def compiling(finding: Finding) -> str:
    """What the recompiles of a cause took; empty if it is not known."""
    seen = finding.compiling
    if seen is None:
        return ""
    guards = ""
    if seen.guards_ms_per_step:
        guards = f"; their guards add at most {milliseconds(seen.guards_ms_per_step)} ms to a step"
    return f"{count(seen.versions, 'more version')}, {seconds(seen.seconds)} of compile time{guards}"


def horizon(finding: Finding) -> str:
    """What a finding takes in as many steps as were asked for; empty if nobody asked."""
    return (
        ""
        if finding.horizon_ms is None
        else f"{milliseconds(finding.horizon_ms)} ms over the steps asked for"
    )


def made_of(cost: Cost) -> str:
    """What the host does for a break, the longest first; empty if it is not known."""
    names = {
        "resume": "going on in Python",
        "guards": "guards",
        "wait": "waiting for the device",
        "entry": "entering the next region",
        "eager_work": "eager work that stays",
    }
    known = [(cost.parts[part], words) for part, words in names.items() if cost.parts.get(part)]
    return ", ".join(f"{milliseconds(ms)} ms {words}" for ms, words in sorted(known, reverse=True))


def ranks(groups: Sequence[Sequence[Finding]]) -> list[int]:
    """The rank of each group, from 1. Groups whose costs are within each other's spread have the same."""
    found: list[int] = []
    leader: tuple[float, float] | None = None
    for number, group in enumerate(groups, 1):
        costs = [finding.cost for finding in group if finding.cost is not None]
        mine = sum(cost.ms_per_step for cost in costs), sum(cost.spread_ms or 0.0 for cost in costs)
        if leader is not None and costs and leader[0] > 0 and leader[0] - mine[0] <= leader[1] + mine[1]:
            found.append(found[-1])
            continue
        leader = mine if costs else None
        found.append(number)
    return found
