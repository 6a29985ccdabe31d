"""Turns beside which the CPU was slow: told by ``pace``, left out where enough others remain."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from breakscope.bench.players import Player
from breakscope.inside.bench.pace import SLOW

REASON = "the CPU was slow beside them"


@dataclass(slots=True)
class SlowTurns:
    """What was done about them.

    Attributes:
        turns: all that were made; left_out: those that count in no figure.
        worst: the longest that the piece of work took, as a multiple of its best.
        kept_by: arms that met so many that theirs were kept.
        pace_ms: what the piece of work took beside the turns that count, in the middle.
    """

    turns: int = 0
    left_out: int = 0
    worst: float = 1.0
    kept_by: list[str] = field(default_factory=list)
    pace_ms: float | None = None


def best(players: Sequence[Player]) -> float | None:
    """The best pace in milliseconds that any process has seen before its steps; None before there is one."""
    return min((before for player in players for before, _ in player.paces), default=None)


def enough(players: Sequence[Player], wanted: int) -> bool:
    """Whether every process has made that many turns on a CPU that was not slow."""
    reference = best(players)
    return reference is None or all(
        _slow(player, reference).count(False) >= wanted for player in players if player.paces
    )


def leave_out(players: Sequence[Player], least: int) -> SlowTurns:
    """Take slow turns out of the rounds of each process that has at least so many others."""
    found = SlowTurns()
    reference = best(players)
    if reference is None:
        return found
    for player in players:
        slow = _slow(player, reference)
        found.turns += len(slow)
        found.worst = max([found.worst, *(before / reference for before, _ in player.paces)])
        if True not in slow:
            continue
        if slow.count(False) < least:
            if player.arm.name not in found.kept_by:
                found.kept_by.append(player.arm.name)
            continue
        for number, one in enumerate(slow):
            if one:
                found.left_out += 1
                player.discarded[REASON] = player.discarded.get(REASON, 0) + len(player.rounds[number])
                player.rounds[number] = []
    counted = [
        before
        for player in players
        for (before, _), samples in zip(player.paces, player.rounds, strict=True)
        if samples
    ]
    found.pace_ms = statistics.median(counted) if counted else None
    return found


def _slow(player: Player, reference: float) -> list[bool]:
    """By round. After its steps a process is held against itself: threads of the step may still be awake."""
    if not player.paces:
        return []
    own = max(reference, min(after for _, after in player.paces))
    return [before > SLOW * reference or after > SLOW * own for before, after in player.paces]
