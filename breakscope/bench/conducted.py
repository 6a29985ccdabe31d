"""What came of a benchmark's processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from breakscope.bench.players import Player
from breakscope.bench.slow_turns import SlowTurns
from breakscope.inside.bench.plan import Arm
from breakscope.report.benchmark import GpuState


@dataclass(slots=True)
class Conducted:
    """What came of a benchmark's processes.

    Attributes:
        alone: arms that were measured alone, with the reason.
        outputs: fields of ``Outputs`` by arm.
        spent: seconds by part.
        slow_turns: what was done about turns beside which the CPU was slow.
        interrupted: by whoever runs it, after something was measured.
    """

    players: list[Player] = field(default_factory=list)
    alone: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    gpu: list[GpuState] = field(default_factory=list)
    spent: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    slow_turns: SlowTurns = field(default_factory=SlowTurns)
    interrupted: bool = False

    def of(self, arm: Arm) -> list[Player]:
        """An arm's processes."""
        return [player for player in self.players if player.arm == arm]
