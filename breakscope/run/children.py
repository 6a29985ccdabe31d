"""What the children of a script left, made into reports of their own beside the script's."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from breakscope.diagnose.build import build
from breakscope.diagnose.merge import Identity, as_rank, merge
from breakscope.diagnose.outcome import Outcome
from breakscope.inside import events
from breakscope.inside.events import Event
from breakscope.report.model import Report

# Whoever has one of these had Dynamo at work in it.
_WORK = frozenset({events.REGION, events.GRAPH_BREAK, events.SKIP, events.METRICS, events.COMPILING})
_JOB = "script"


@dataclass(frozen=True, slots=True)
class Child:
    """A process that compiled something. ``number`` counts them from 1, by when they began."""

    number: int
    recorded: tuple[Event, ...]
    counters: Path


def children(folder: Path) -> list[Child]:
    """The children that compiled something, in the order in which they began."""
    found = []
    for file in folder.glob("events-*"):
        recorded = tuple(events.read_events(file))
        if any(event["t"] in _WORK for event in recorded):
            found.append(
                (_start(recorded)["wall"], recorded, folder / file.name.replace("events-", "counters-"))
            )
    found.sort(key=lambda child: (child[0], child[2].name))
    return [Child(number, recorded, file) for number, (_, recorded, file) in enumerate(found, start=1)]


def with_children(report: Report, outcome: Outcome, recorded: Sequence[Event], folder: Path) -> Report:
    """The report of a script and of its children, a process each; the script's own where there are none."""
    found = children(folder)
    if not found:
        return report
    own = [] if report.reconciliation.vacuous else [_as_process(report, recorded, 0)]
    parts = own + [_as_process(_report(child, outcome), child.recorded, child.number) for child in found]
    merged = merge(parts)
    where = "this report is of them" if not own else "the script is rank 0"
    pids = ", ".join(str(_start(child.recorded)["pid"]) for child in found)
    note = f"children of the script compiled, {where}: processes {pids} (--no-children leaves them out)"
    run = replace(
        merged.run,
        script=report.run.script,
        argv=report.run.argv,
        status=report.run.status,
        exit_code=report.run.exit_code,
        started_at=report.run.started_at,
        duration_s=report.run.duration_s,
        notes=(note, *dict.fromkeys((*report.run.notes, *merged.run.notes))),
    )
    return replace(merged, run=run)


def _report(child: Child, outcome: Outcome) -> Report:
    slots = events.Counters.read(child.counters) if child.counters.exists() else None
    return build(child.recorded, slots, replace(outcome, notes=()))


def _as_process(report: Report, recorded: Sequence[Event], number: int) -> Report:
    start = _start(recorded)
    # A job each: what children do need not be alike, and nobody waits for another.
    job = _JOB if number == 0 else f"{_JOB}'s child {number}"
    return as_rank(
        report,
        Identity(rank=number, job=job, host=socket.gethostname(), pid=start["pid"], began=start["wall"]),
    )


def _start(recorded: Sequence[Event]) -> Event:
    first = next((event for event in recorded if event["t"] == events.START), None)
    return first or {"pid": os.getpid(), "wall": 0.0}


def not_followed(recorded: Sequence[Event]) -> list[str]:
    """A note for each child that could not be followed."""
    each = dict.fromkeys((event["command"], event["why"]) for event in recorded if event["t"] == events.CHILD)
    return [
        f"a child was not followed, {why}: {command}; to see it, scan what stands there after python"
        for command, why in each
    ]
