"""Blocks of a script's steps between CUDA events, in processes of their own that take turns.

What ``breakscope bench`` says is held against them: the program (``gpu_programs.EVENTS``) is torch alone.
"""

from __future__ import annotations

import json
import os
import random
import select
import statistics
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpu_programs import EVENTS

_SLOW = 1.25  # times the shortest loop of plain Python: that block met a shared core


@dataclass(slots=True)
class Own:
    """One process of that program.

    Attributes:
        made: (milliseconds a step, of steps timed one by one, the longer loop of plain Python beside it) of
            each block.
        busy_ms: how long the device worked in a step; None before the end.
    """

    popen: subprocess.Popen[str]
    log: Path
    made: list[tuple[float, float, float]] = field(default_factory=list)
    busy_ms: float | None = None

    def tell(self, text: str) -> None:
        """One line to it."""
        assert self.popen.stdin is not None
        self.popen.stdin.write(f"{text}\n")
        self.popen.stdin.flush()

    def line(self, timeout_s: float) -> str:
        """Its next line. Raises RuntimeError where none comes."""
        assert self.popen.stdout is not None
        if not select.select([self.popen.stdout], [], [], max(1.0, timeout_s))[0]:
            raise RuntimeError(f"{self.log.name}: no answer in {timeout_s:.0f} s")
        text = self.popen.stdout.readline()
        if not text:
            raise RuntimeError(f"{self.log.name}: ended with {self.popen.wait()}; see it")
        return text


class Blocks:
    """Several such processes, in turn.

    Args:
        folder: for the program and the logs.
        timeout_s: the longest wait for an answer.
    """

    def __init__(self, folder: Path, timeout_s: float = 240.0) -> None:
        self._folder = folder
        self._timeout_s = timeout_s
        self.own: dict[str, Own] = {}

    def start(
        self, name: str, script: Path, mode: str, fixes: str | None, variables: Mapping[str, str]
    ) -> None:
        """Start one; it makes its model and waits."""
        program = self._folder / "events.py"
        program.write_text(EVENTS)
        log = self._folder / f"events-{script.stem}-{name.replace(' · ', '-').replace(' ', '')}.log"
        words = [sys.executable, str(program), str(script), mode, fixes or ""]
        with log.open("w") as stderr:
            popen = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                env={**os.environ, **variables},
            )
        self.own[name] = Own(popen, log)

    def compile(self) -> None:
        """Have all compile and warm up, one by one: nothing else may be at work while kernels are tuned."""
        for own in self.own.values():
            own.line(self._timeout_s)  # "made"
        for own in self.own.values():
            own.tell("compile")
            own.line(self._timeout_s)  # "ready"

    def round(self) -> None:
        """One block of each, in an order that changes."""
        best = min((loop for own in self.own.values() for *_, loop in own.made), default=1e9)
        for name in random.sample(list(self.own), len(self.own)):
            own = self.own[name]
            own.tell(str(best))
            ms, each_ms, *loops = json.loads(own.line(self._timeout_s))
            own.made.append((ms, each_ms, max(loops)))

    def end(self) -> dict[str, dict[str, Any]]:
        """What came of them. The device's work is read last: a profiler slows what comes after it."""
        for own in self.own.values():
            assert own.popen.stdin is not None
            own.popen.stdin.close()
            own.busy_ms = float(own.line(self._timeout_s))
        quick = min((loop for own in self.own.values() for *_, loop in own.made), default=0.0)
        return {name: _result(own, quick) for name, own in self.own.items()}

    def kill(self) -> None:
        """None of them is left."""
        for own in self.own.values():
            own.popen.kill()
            own.popen.wait()


def _result(own: Own, quick: float) -> dict[str, Any]:
    kept = [one for one in own.made if one[-1] <= _SLOW * quick] or own.made
    times = [ms for ms, *_ in kept]
    return {
        "ms": statistics.median(times),
        "range_ms": [min(times), max(times)],
        "each_ms": statistics.median(each for _, each, _ in kept),
        "blocks": len(kept),
        "left_out": len(own.made) - len(kept),
        "busy_ms": own.busy_ms,
        "made": [[round(value, 4) for value in one] for one in own.made],
    }
