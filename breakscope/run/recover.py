"""What a scan left whose own process was killed: its script went on, and wrote what it was asked to."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from breakscope.diagnose.build import build
from breakscope.diagnose.outcome import Outcome
from breakscope.errors import ReportError
from breakscope.inside import events
from breakscope.inside.settings import Settings
from breakscope.report.latest import LATEST, save
from breakscope.report.machine import this_machine
from breakscope.report.model import Report
from breakscope.report.secrets import mask_words
from breakscope.run.launch import Program
from breakscope.run.program import project_roots
from breakscope.run.workspace import SCAN, ownerless


@dataclass(frozen=True, slots=True)
class Left:
    """A scan that was cut off.

    Attributes:
        folder: of its files. script: as the user wrote it.
        running: its script still runs.
    """

    folder: Path
    script: str
    started_at: str
    running: bool


def note_scan(folder: Path, what: Program, settings: Settings) -> None:
    """Write down what is scanned, for the case that we are killed."""
    cwd = Path.cwd()
    data = {
        "script": ("-m " if what.module else "") + what.script,
        "argv": mask_words(what.args),
        "cwd": str(cwd),
        "roots": project_roots(what, cwd),
        "backend": settings.backend,
        "mode": settings.mode,
        "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "asked": {"compile": settings.compile, "dynamic": settings.dynamic, "steps": settings.steps},
    }
    with suppress(OSError):  # then there is nothing to take up
        (folder / SCAN).write_text(json.dumps(data), encoding="utf-8")


def left(beside: Path) -> list[Left]:
    """The scans that were cut off and wrote their files here."""
    found = []
    for folder in ownerless(beside):
        data = _noted(folder)
        if data is not None:
            found.append(Left(folder, str(data["script"]), str(data["started_at"]), _runs(folder)))
    return found


def recover(beside: Path) -> Report:
    """Make the report of the latest scan that was cut off, save it as the latest one, and remove its files.

    Raises:
        ReportError: there is none, or its script still runs.
        OutputError: the report cannot be written.
    """
    scans = left(beside)
    if not scans:
        raise ReportError(f"no scan was cut off in {beside}")
    over = [scan for scan in scans if not scan.running]
    if not over:
        raise ReportError(f"{scans[-1].script} still runs; ask again when it has ended")
    latest = max(over, key=lambda scan: scan.started_at)
    report = _report(latest.folder)
    save(report, beside / LATEST, keep=True)
    shutil.rmtree(latest.folder, ignore_errors=True)
    return report


def _noted(folder: Path) -> dict[str, Any] | None:
    try:
        data = json.loads((folder / SCAN).read_bytes())
    except (OSError, ValueError):
        return None
    wanted = {"script", "argv", "cwd", "roots", "backend", "mode", "started_at"}
    return data if isinstance(data, dict) and wanted <= data.keys() else None


def _recorded(folder: Path) -> list[events.Event]:
    file = folder / "events"
    return list(events.read_events(file)) if file.exists() else []


def _runs(folder: Path) -> bool:
    recorded = _recorded(folder)
    start = next((event for event in recorded if event["t"] == events.START), None)
    if start is None or any(event["t"] == events.END for event in recorded):
        return False
    try:
        os.kill(start["pid"], 0)
        # One that has ended and that nobody has asked about still has its number.
        return ") Z " not in Path(f"/proc/{start['pid']}/stat").read_text()
    except FileNotFoundError:
        return True  # not Linux
    except OSError:
        return False  # gone, or another user's process has its number now


def _report(folder: Path) -> Report:
    data = _noted(folder)
    if data is None:
        raise ReportError(f"{folder / SCAN} is damaged")
    recorded = _recorded(folder)
    kinds = {event["t"] for event in recorded}
    notes = ["breakscope was killed during the scan: how the script ended is not known"]
    if events.END not in kinds:
        notes.append("the script ended without Python's shutdown; counts are those up to then")
    counters = folder / "counters"
    slots = events.Counters.parse(counters.read_bytes()) if counters.exists() else None
    outcome = Outcome(
        script=data["script"],
        argv=tuple(data["argv"]),
        cwd=data["cwd"],
        status="unknown",
        exit_code=None,
        started_at=data["started_at"],
        duration_s=max((event.get("at", 0.0) for event in recorded), default=0.0),
        backend=data["backend"],
        mode=data["mode"],
        roots=tuple(data["roots"]),
        notes=tuple(notes),
    )
    report = build(recorded, slots, outcome)
    # Without digests of the sources: they may have changed since.
    return replace(report, run=replace(report.run, asked=data.get("asked", {}), machine=this_machine()))
