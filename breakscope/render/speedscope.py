"""Compile phases as a file for speedscope: one profile for each process, phases inside of compiles.

The file format: https://www.speedscope.app/file-format-schema.json, with evented profiles. How long each
phase took is known, when it began is not. Torch's phases contain one another, and so they are drawn: the
outermost begins with the compile, each inner one when the outer one's own time is over, and all end together.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from breakscope.diagnose.merge import Identity, as_rank
from breakscope.diagnose.rank_groups import by_process
from breakscope.report.model import Compile, Report
from breakscope.view.compiling import PHASES
from breakscope.view.lanes import Timed, lanes

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_LONE_SURROGATE = "backslashreplace"


class _Frames:
    """The names that a file shares between its profiles."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._known: dict[tuple[str, str | None, int | None], int] = {}

    def number(self, name: str, file: str | None = None, line: int | None = None) -> int:
        key = (name, file, line)
        if key not in self._known:
            self._known[key] = len(self.rows)
            place = {"file": file, "line": line}
            self.rows.append({"name": name, **{k: v for k, v in place.items() if v is not None}})
        return self._known[key]


def render(report: Report) -> str:
    """The file as JSON text. Compiles without a time are left out, and the name of the file says how many."""
    whole = report if report.ranks else as_rank(report, Identity())
    frames = _Frames()
    profiles = []
    compiles = by_process(whole.compiles)
    lost = 0
    for rank in whole.ranks:
        own = compiles.get(rank.process, [])
        timed = lanes(own)
        lost += len(own) - sum(map(len, timed))
        for number, lane in enumerate(timed):
            name = f"rank {rank.rank}" + (f", thread {number + 1}" if number else "")
            profiles.append(_profile(name if len(whole.ranks) > 1 or number else "compiles", lane, frames))
    left_out = f", {lost} compiles without a time left out" if lost else ""
    data = {
        "$schema": SCHEMA,
        "name": f"compiles of {report.run.script}{left_out}",
        "exporter": f"breakscope {report.tool.version}",
        "activeProfileIndex": 0,
        "shared": {"frames": frames.rows},
        "profiles": profiles or [_profile("compiles", [], frames)],
    }
    text = json.dumps(data, ensure_ascii=False, allow_nan=False)
    return text.encode(errors=_LONE_SURROGATE).decode() + "\n"


def _profile(name: str, lane: Sequence[Timed], frames: _Frames) -> dict[str, Any]:
    events: list[dict[str, Any]] = []
    for at, seconds, one in lane:
        events += _events(at, at + seconds, one, frames)
    return {
        "type": "evented",
        "name": name,
        "unit": "seconds",
        "startValue": 0,
        "endValue": events[-1]["at"] if events else 0,
        "events": events,
    }


def _events(start: float, end: float, one: Compile, frames: _Frames) -> list[dict[str, Any]]:
    """A compile opened, its phases inside of one another, and all closed again, the innermost first."""
    opened = [(start, frames.number(f"{one.function} [{one.compile_id}]", one.file, one.line))]
    at = start
    for phase, spent in one.phases.items():
        opened.append((at, frames.number(PHASES.get(phase, phase))))
        at = min(at + max(spent, 0.0), end)  # rounding must not carry a phase beyond its compile
    return [
        *({"type": "O", "frame": frame, "at": begin} for begin, frame in opened),
        *({"type": "C", "frame": frame, "at": end} for _, frame in reversed(opened)),
    ]
