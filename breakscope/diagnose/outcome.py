"""How a run went, as its parent saw it."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from breakscope.report.model import Status


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the launcher knows and the events do not.

    Attributes:
        script: as the user wrote it; argv: the script's own arguments.
        exit_code: what the script ended with; 128 + n for signal n.
        roots: directories of the user's project.
        notes: what happened to the run that a reader must know.
    """

    script: str
    argv: tuple[str, ...]
    cwd: str
    status: Status
    exit_code: int | None
    started_at: str
    duration_s: float
    backend: str
    mode: str | None
    roots: tuple[str, ...]
    notes: tuple[str, ...] = ()


def killer(exit_code: int | None) -> str | None:
    """The signal that ended a killed run: ``SIGKILL`` for 137 and for -9; None for what is no signal."""
    if exit_code is None:
        return None
    try:
        return signal.Signals(-exit_code if exit_code < 0 else exit_code - 128).name
    except ValueError:
        return None
