"""What forked processes of the script did: counted apart, and named."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from breakscope.diagnose import sites
from breakscope.diagnose.collect import TIMES, Event, collect

_SHOWN = 3


def note(recorded: Sequence[Event], own: Sequence[Event], slots: Sequence[int], cwd: str) -> str | None:
    """One sentence on a forked process; None if it ran nothing compiled.

    Args:
        recorded: events of the script's process.
        own: those of the fork; it began with the compiled code that its parent had by then.
        slots: the fork's counting slots.
    """
    if not own or own[0]["t"] != "forked":
        return None
    before = [event for event in recorded if event["t"] not in _NUMBERS and event["at"] <= own[0]["at"]]
    found = collect([*before, *own[1:]], slots)
    folded, _ = sites.fold(found.breaks)
    crossed = {_place(site, cwd): sites.crossings(found, site) or 0 for site in folded}
    crossed = {place: count for place, count in crossed.items() if count}
    launches = sum(found.count(region.slot) or 0 for region in found.regions)
    compiles = sum(event["t"] == "metrics" for event in own)
    if not crossed and not launches and not compiles:
        return None
    total = sum(crossed.values())
    where = f" ({', '.join(_some(crossed))})" if crossed else ""
    came = f", forked at {_short(own[0]['file'], cwd)}:{own[0]['line']}," if own[0].get("file") else ""
    return (
        f"process {own[0]['pid']}{came} is not in the totals: {total} crossing{'s' * (total != 1)}{where}, "
        f"{launches} graph launch{'es' * (launches != 1)}, {compiles} compile{'s' * (compiles != 1)}"
    )


# What a parent says of its own steps.
_NUMBERS = (*TIMES, "over")


def _some(crossed: dict[str, int]) -> Iterable[str]:
    worst = sorted(crossed.items(), key=lambda item: -item[1])
    yield from (f"{place}: {count}" for place, count in worst[:_SHOWN])
    if len(worst) > _SHOWN:
        yield f"{len(worst) - _SHOWN} more"


def _place(site: sites.Site, cwd: str) -> str:
    line = site.position[0] if site.position else site.frame.line
    return f"{_short(site.frame.file, cwd)}:{line}"


def _short(file: str, cwd: str) -> str:
    return file.removeprefix(os.path.join(cwd, ""))
