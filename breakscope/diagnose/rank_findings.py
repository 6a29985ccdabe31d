"""One finding of several processes: its texts from one of them, its numbers from all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from breakscope.diagnose import given_up
from breakscope.report import codec
from breakscope.report.model import (
    Compiling,
    Cost,
    Counts,
    Finding,
    Guard,
    RankCounts,
    Suggestion,
)

_EFFECTS = ("ended", "incomplete", None)
_STATUS = ("proved", "unproved", "refused")


def combine(versions: Sequence[Finding], order: dict[str, int]) -> Finding:
    """The finding of all processes that the versions are about.

    Its texts are those of the first process that has it: a cause of recompiles, say, has its own sizes on
    each rank.

    Args:
        versions: the same finding, by fingerprint, of merged reports.
        order: place of each process in the merged report.
    """
    entries = _entries(versions, order)
    first = min(
        versions,
        key=lambda version: (order[version.by_rank[0].process], _text(replace(version, suggestion=None))),
    )
    cost = _cost(entries)
    guards = [entry.guard for entry in entries if entry.guard]
    return replace(
        first,
        counts=_counts(entries),
        cost=cost,
        guard=_guard(guards),
        skipped=given_up.each_once(one for entry in entries for one in entry.skipped),
        ranks=tuple(sorted({entry.rank for entry in entries})),
        first_step=min((e.first_step for e in entries if e.first_step is not None), default=None),
        last_step=max((e.last_step for e in entries if e.last_step is not None), default=None),
        suggestion=_suggestion(versions),
        not_measured=None if cost else first.not_measured,
        by_rank=tuple(entries),
        compiling=_compiling(versions),
        horizon_ms=None,
        expected=first.expected if all(version.expected is not None for version in versions) else None,
        effect=min((version.effect for version in versions), key=_EFFECTS.index),
    )


def _compiling(versions: Sequence[Finding]) -> Compiling | None:
    """What the recompiles took in the process where that was most: processes compile at one time."""
    known = (version.compiling for version in versions if version.compiling)
    return max(known, key=lambda c: (c.seconds, c.versions, c.guards_ms_per_step or 0.0), default=None)


def _entries(versions: Sequence[Finding], order: dict[str, int]) -> list[RankCounts]:
    known: dict[str, RankCounts] = {}
    for entry in (entry for version in versions for entry in version.by_rank):
        other = known.setdefault(entry.process, entry)
        if other != entry:  # a report was changed after it was made: any choice, but always the same
            known[entry.process] = min(other, entry, key=_text)
    return sorted(known.values(), key=lambda entry: order[entry.process])


def _text(record: Finding | RankCounts) -> str:
    return json.dumps(codec.encode(record, type(record)), sort_keys=True)


def _counts(entries: Sequence[RankCounts]) -> Counts:
    crossings = [entry.counts.crossings for entry in entries]
    ids = {one for entry in entries for one in entry.counts.compile_ids}
    return Counts(
        occurrences=sum(entry.counts.occurrences for entry in entries),
        crossings=None
        if None in crossings
        else sum(crossing for crossing in crossings if crossing is not None),
        compile_ids=tuple(sorted(ids, key=_by_number)),
    )


def _by_number(compile_id: str) -> tuple[tuple[bool, int, str], ...]:
    parts = compile_id.split("/")
    return tuple((not part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts)


def _cost(entries: Sequence[RankCounts]) -> Cost | None:
    """The cost on the rank where it is highest: the others wait for it at the next collective."""
    known = [(entry.cost, entry.rank) for entry in entries if entry.cost]
    if len(known) < 2:
        return known[0][0] if known else None
    worst, rank = max(known, key=lambda one: one[0].ms_per_step)
    return replace(worst, method=f"{worst.method}; on rank {rank}, the highest of {len(known)}")


def _guard(guards: Sequence[Guard]) -> Guard | None:
    if not guards:
        return None
    values = dict.fromkeys(value for guard in guards for value in guard.values)
    return replace(guards[0], values=tuple(values))


def _suggestion(versions: Sequence[Finding]) -> Suggestion | None:
    """The one that was proved furthest, whichever process it was made for."""
    known = [version.suggestion for version in versions if version.suggestion]
    return min(
        known,
        key=lambda one: (
            _STATUS.index(one.status),
            json.dumps(codec.encode(one, Suggestion), sort_keys=True),
        ),
        default=None,
    )
