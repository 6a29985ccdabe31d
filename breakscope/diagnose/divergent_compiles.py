"""What ranks compiled unlike each other, and who waited for whom meanwhile."""

from __future__ import annotations

import statistics
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from breakscope.diagnose.rank_groups import Group, by_process
from breakscope.report.model import Compile, Divergence, Region, Report, Step

# What is shorter is not worth a line: a rank waits this long for another in any step.
WAITED_MS = 50.0
_LONGER = (
    2.0  # times as long one must have compiled as the one that waited: all warm up, none at the same pace
)
SKEW_S = 1.0
_SKEW_SHARE = 0.2

_Key = TypeVar("_Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Records:
    """What every process of a report compiled and ran, by process."""

    regions: Mapping[str, list[Region]]
    compiles: Mapping[str, list[Compile]]
    steps: Mapping[str, list[Step]]

    @classmethod
    def of(cls, report: Report) -> Records:
        """Of all processes; a fleet has many groups, and its records are sorted out only once."""
        return cls(by_process(report.regions), by_process(report.compiles), by_process(report.steps))


def find(records: Records, group: Group, explained: Sequence[Divergence]) -> list[Divergence]:
    """Divergences of compiles; a frame whose findings differ anyway (``explained``) is not named again."""
    functions = {one.function for one in explained}
    regions = {process: records.regions.get(process, []) for process in group.numbers}
    compiles = {process: records.compiles.get(process, []) for process in group.numbers}
    steps = {process: records.steps.get(process, []) for process in group.numbers}
    return [
        *_waits(steps, compiles, regions, group),
        *_collectives(regions, group),
        *_graphs(regions, compiles, group, functions),
        *_caches(compiles, group),
        *_skew(compiles, group),
    ]


# ---- who waited for whom ----


def _waits(
    steps: Mapping[str, list[Step]],
    compiles: Mapping[str, list[Compile]],
    regions: Mapping[str, list[Region]],
    group: Group,
) -> list[Divergence]:
    """Per compiling rank, the time that others spent beyond their usual step while it compiled.

    A rank waited in a step if its step took longer than its own compiles and its usual step explain, and
    another rank compiled longer meanwhile. It waited for the one that compiled longest, at most for what that
    one compiled longer.
    """
    usual = {process: _usual_ms(own) for process, own in steps.items()}
    at: dict[int, dict[str, Step]] = {}
    for process, own in steps.items():
        for step in own:
            at.setdefault(step.index, {})[process] = step
    waits: dict[str, dict[str, float]] = {}
    first: dict[str, int] = {}
    for index, together in sorted(at.items()):
        slowest = max(together, key=lambda process: together[process].compile_ms or 0.0)
        longest = together[slowest].compile_ms or 0.0
        for process, step in together.items():
            base = usual[process]
            if process == slowest or step.ms is None or step.compile_ms is None or base is None:
                continue
            waited = min(step.ms - step.compile_ms - base, longest - step.compile_ms)
            if waited >= WAITED_MS and longest >= _LONGER * step.compile_ms:
                own_waits = waits.setdefault(slowest, {})
                own_waits[process] = own_waits.get(process, 0.0) + waited
                first.setdefault(slowest, index)
    return [
        _wait(group, who, waited, first[who], _slowest(first[who], compiles[who], regions[who]))
        for who, waited in waits.items()
    ]


def _usual_ms(steps: Sequence[Step]) -> float | None:
    quiet = [step.ms for step in steps if step.ms is not None and step.compiles == 0]
    return statistics.median(quiet) if quiet else None


def _slowest(step: int, compiles: Sequence[Compile], regions: Sequence[Region]) -> str | None:
    """The function whose compile took longest in a step, by its qualified name where it has a graph."""
    then = [one for one in compiles if one.step == step]
    longest = max(then, key=lambda one: one.seconds or 0.0, default=None)
    if longest is None:
        return None
    names = {region.compile_id: region.function for region in regions}
    return names.get(longest.compile_id, longest.function)


def _wait(group: Group, who: str, waited: Mapping[str, float], step: int, function: str | None) -> Divergence:
    most = max(waited.values())
    text = (
        f"{group.words(waited)} waited up to {most:,.0f} ms for {group.words([who])}, "
        f"which compiled{f' {function}' if function else ''}, first at step {step}"
    )
    return group.made(
        "waited",
        text,
        [who],
        function=function,
        step=step,
        ms=round(most, 3),
        by_rank={process: f"waited {ms:,.0f} ms" for process, ms in waited.items()},
    )


def _skew(compiles: Mapping[str, list[Compile]], group: Group) -> list[Divergence]:
    """Ranks that compiled much longer in all, whether or not anybody was seen to wait."""
    known = {
        process: sum(one.seconds for one in own if one.seconds is not None)
        for process, own in compiles.items()
        if any(one.seconds is not None for one in own)
    }
    if len(known) < 2:
        return []
    slowest, quickest = max(known, key=known.__getitem__), min(known, key=known.__getitem__)
    gap = known[slowest] - known[quickest]
    if gap < SKEW_S or gap < _SKEW_SHARE * known[slowest]:
        return []
    text = (
        f"{group.words([slowest])} compiled for {known[slowest]:,.1f} s, "
        f"{group.words([quickest])} for {known[quickest]:,.1f} s"
    )
    by_rank = {process: f"{seconds:,.1f} s" for process, seconds in known.items()}
    return [group.made("skew", text, [slowest], ms=round(gap * 1000, 1), by_rank=by_rank)]


# ---- graphs, collectives, caches ----


def _graphs(
    regions: Mapping[str, list[Region]],
    compiles: Mapping[str, list[Compile]],
    group: Group,
    explained: set[str | None],
) -> list[Divergence]:
    """Functions that became other graphs: another number of them, or other sizes."""
    found = []
    for function in dict.fromkeys(one.function for own in regions.values() for one in own):
        if function in explained:
            continue
        ops = {
            process: tuple(one.ops for one in own if one.function == function)
            for process, own in regions.items()
        }
        odd = odd_ones(group.comparable(ops))
        if not odd:
            continue
        by_rank = {process: _graph_words(own) for process, own in ops.items()}
        usual = next(by_rank[process] for process in ops if process not in odd)
        text = f"{function} became {by_rank[odd[0]]} on {group.words(odd)}, {usual} on the others"
        step = _first_unlike_step(regions, compiles, function)
        found.append(group.made("graphs", text, odd, function=function, step=step, by_rank=by_rank))
    return found


def _graph_words(ops: tuple[int, ...]) -> str:
    if not ops:
        return "no graph"
    shown = " + ".join(map(str, ops[:6])) + (" + …" if len(ops) > 6 else "")
    return f"{len(ops)} graph{'' if len(ops) == 1 else 's'} ({shown} op{'' if ops == (1,) else 's'})"


def _first_unlike_step(
    regions: Mapping[str, list[Region]], compiles: Mapping[str, list[Compile]], function: str
) -> int | None:
    """The step of the first graph that not all have alike."""
    graphs = {process: [r for r in own if r.function == function] for process, own in regions.items()}
    common = 0
    shortest = min(map(len, graphs.values()))
    while common < shortest and len({own[common].ops for own in graphs.values()}) == 1:
        common += 1
    steps = []
    for process, own in graphs.items():
        if common < len(own):
            by_id = {one.compile_id: one.step for one in compiles[process]}
            steps.append(by_id.get(own[common].compile_id))
    return min((step for step in steps if step is not None), default=None)


def _collectives(regions: Mapping[str, list[Region]], group: Group) -> list[Divergence]:
    """Another order of the collectives inside compiled graphs: ranks may wait for each other for ever."""
    orders = {
        process: tuple(name for one in own for name in one.collectives or ())
        for process, own in regions.items()
    }
    odd = odd_ones(group.comparable(orders))
    if not odd:
        return []
    usual = next(order for process, order in orders.items() if process not in odd)
    theirs = orders[odd[0]]
    at = next(
        (i for i, pair in enumerate(zip(theirs, usual, strict=False)) if pair[0] != pair[1]),
        min(len(theirs), len(usual)),
    )
    here, there = (order[at] if at < len(order) else "no more" for order in (theirs, usual))
    text = (
        f"collectives compiled into graphs differ from number {at + 1} on: "
        f"{here} on {group.words(odd)}, {there} on the others"
    )
    by_rank = {process: f"{len(order):,} collectives" for process, order in orders.items()}
    return [group.made("collectives", text, odd, by_rank=by_rank)]


def _caches(compiles: Mapping[str, list[Compile]], group: Group) -> list[Divergence]:
    """Frames that some ranks took from the compile cache and others compiled."""
    found = []
    for function in dict.fromkeys(one.function for own in compiles.values() for one in own):
        said = {
            process: tuple(one.cache or "not asked" for one in own if one.function == function)
            for process, own in compiles.items()
        }
        said = group.comparable(said)
        if len({len(own) for own in said.values()}) > 1:
            continue  # another number of compiles is a divergence of its own
        missed = [process for process, own in said.items() if "miss" in own]
        if not missed or not any("hit" in own for own in said.values()) or not odd_ones(said):
            continue
        hits = [process for process in said if process not in missed]
        by_rank = {process: ", ".join(own) for process, own in said.items()}
        text = f"{group.words(missed)} missed the compile cache for {function}" + (
            f", {group.words(hits)} hit it" if hits else ", not alike"
        )
        found.append(group.made("cache", text, missed, function=function, by_rank=by_rank))
    return found


def odd_ones(values: Mapping[str, _Key]) -> list[str]:
    """The processes whose value is not the usual one; the first process's counts as usual in a tie."""
    times: dict[_Key, int] = {}
    for value in values.values():
        times[value] = times.get(value, 0) + 1
    usual = max(times, key=lambda value: times[value])
    return [process for process, value in values.items() if value != usual]
