"""``breakscope bench``, with the same steps measured by a program of its own between the rounds.

    python benchmarks/bench_beside.py BLOCKS.json bench [OPTIONS] SCRIPT

What follows BLOCKS.json is breakscope's command line. For each arm a process of torch alone (``own_blocks``)
makes blocks of the script's steps between CUDA events, on the kernels that the arm has compiled: side by
side, both meet the same moods of a shared host. BLOCKS.json gets what came of it, by arm.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from own_blocks import Blocks

from breakscope.bench import conduct, run
from breakscope.bench.players import Player, environment
from breakscope.cli import main


class Beside(conduct.Conductor):
    """Rounds with blocks between them. Where the program of its own fails, bench goes on without it."""

    out: Path

    def _rounds(self, players: Sequence[Player]) -> None:
        self._blocks = Blocks(self.out.parent)
        self._failed: str | None = None
        try:
            self._attempt(lambda: self._start_own(players))
            super()._rounds(players)
            result: dict[str, Any] = {}
            self._attempt(lambda: result.update(self._blocks.end()))
        finally:
            self._blocks.kill()
        found = {"arms": result, "failed": self._failed, "turns": _turns(players)}
        self.out.write_text(json.dumps(found, indent=1))

    def _start_own(self, players: Sequence[Player]) -> None:
        for player in players:
            if player.number or not player.alive:
                continue
            arm, cache = player.arm, player.folder.parent / "cache"
            mode = "eager" if arm.variant == "eager" else arm.mode
            fixes = self._options.fixes if arm.variant == "fixed" else None
            script = Path(self._program.path).absolute()
            self._blocks.start(arm.name, script, mode, fixes, environment(self._options, cache))
        self._say("a program of its own compiles")
        self._blocks.compile()

    def _after_round(self, players: Sequence[Player]) -> None:
        super()._after_round(players)
        self._attempt(self._blocks.round)

    def _attempt(self, action: Callable[[], None]) -> None:
        if self._failed is None:
            try:
                action()
            except (OSError, RuntimeError, ValueError) as error:
                self._failed = str(error)


def _turns(players: Sequence[Player]) -> list[dict[str, Any]]:
    """Every turn of bench's that counts: what the piece of work took beside it, and its steps in order."""
    return [
        {"arm": player.arm.name, "process": player.number, "round": number, "pace_ms": pace}
        | {what: [round(sample[what], 4) for sample in made] for what in ("ms", "host_ms")}
        for player in players
        for number, (pace, made) in enumerate(zip(player.paces, player.rounds, strict=False))
        if made
    ]


if __name__ == "__main__":
    Beside.out = Path(sys.argv.pop(1)).absolute()
    run.Conductor = Beside  # type: ignore[misc]
    raise SystemExit(main())
