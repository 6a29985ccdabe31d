"""One scan, from a command line to a saved report."""

from __future__ import annotations

import ast
import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from breakscope import schema
from breakscope.capture import events, targets
from breakscope.capture.progress import Progress
from breakscope.capture.settings import Settings
from breakscope.child import launch
from breakscope.child.launch import Agent, Ended, Program
from breakscope.child.program import check_torch, project_roots
from breakscope.diagnose.build import build
from breakscope.diagnose.outcome import Outcome
from breakscope.errors import OutputError, TargetError
from breakscope.model import Report

FOLDER = ".breakscope"
LATEST = "latest.json"


@dataclass(frozen=True, slots=True)
class Scan:
    """A finished scan.

    Attributes:
        exit_code: the script's own, with which ``breakscope scan`` exits too.
        problem: one sentence where the scan could not do what was asked of it; it then exits with 2.
    """

    report: Report
    path: Path
    exit_code: int
    problem: str | None = None


def check_target(what: Program, settings: Settings) -> None:
    """Make sure that a function of the script itself exists before anything runs.

    Raises:
        TargetError: naming the functions that there are.
    """
    if settings.function is None:
        return
    target = targets.Target.parse(settings.function)
    path = target.place if target.is_path() else what.path if target.place is None else None
    if path is None or not os.path.isfile(path):
        return
    try:
        names = list(targets.functions(ast.parse(Path(path).read_bytes())))
    except (SyntaxError, ValueError):
        return  # Python itself will say so
    if target.qualname not in names:
        seen = ", ".join(names) or "none"
        raise TargetError(f"{os.path.relpath(path)} has no function {target.qualname}; it has: {seen}")


def scan(
    what: Program,
    settings: Settings,
    *,
    output: Path | None = None,
    timeout_s: float | None = None,
    live: bool = False,
) -> Scan:
    """Run the program and leave a report, whatever becomes of it.

    Args:
        live: draw a live line on the terminal while the script is silent.
        output: file for the report; None for ``.breakscope/latest.json`` with earlier ones kept.

    Raises:
        BreakscopeError: if nothing could be run, or the report could not be written.
    """
    check_torch()
    check_target(what, settings)
    cwd = Path.cwd()
    place = output.absolute() if output else cwd / FOLDER / LATEST
    if place.is_dir():
        raise OutputError(f"cannot write the report to {output}: it is a directory")
    roots = project_roots(what, cwd)
    settings = replace(settings, script=what.path, roots=roots)
    with launch.workspace(place.parent) as folder:
        events.Counters.create(folder / "counters")
        settings = replace(settings, events=str(folder / "events"), counters=str(folder / "counters"))
        agent = Agent("breakscope.capture.agent", settings.dumps())
        progress = Progress(folder, time.monotonic())
        ended = launch.run(what, agent, timeout_s, status=progress.line if live else None)
        recorded = list(events.read_events(folder / "events")) if (folder / "events").exists() else []
        slots = events.Counters.read(folder / "counters")
        outcome = Outcome(
            script=("-m " if what.module else "") + what.script,
            argv=what.args,
            cwd=str(cwd),
            status=ended.status,
            exit_code=ended.exit_code,
            started_at=ended.started_at,
            duration_s=ended.duration_s,
            backend=settings.backend,
            mode=settings.mode,
            roots=roots,
            notes=tuple(_notes(ended, recorded)),
        )
        report = build(recorded, slots, outcome)
        _save(report, place, keep=output is None)
    return Scan(report, place, ended.exit_code, _problem(settings, recorded, report))


def _notes(ended: Ended, recorded: Sequence[events.Event]) -> list[str]:
    kinds = {event["t"] for event in recorded}
    notes = []
    if events.START not in kinds:
        notes.append("the script ended before the first hook was in place: nothing was captured")
    elif events.TORCH not in kinds:
        notes.append("the script never imported torch")
    if ended.status == "timeout":
        notes.append(f"ended after {ended.timeout_s:g} s, as asked by --timeout; counts are those up to then")
    elif ended.signal is not None:
        hint = " (the system's out-of-memory killer does this)" if ended.signal.name == "SIGKILL" else ""
        notes.append(f"the script was ended by {ended.signal.name}{hint}; counts are those up to then")
    elif events.START in kinds and events.END not in kinds:
        notes.append("the script ended without Python's shutdown, or its last events could not be written")
    return notes


def _problem(settings: Settings, recorded: Sequence[events.Event], report: Report) -> str | None:
    """Why ``--compile FUNCTION`` came to nothing, if it did."""
    if settings.function is None or report.run.status != "ok":
        return None
    missing = next((event["names"] for event in recorded if event["t"] == events.SEEN), None)
    if missing is not None:
        return f"there is no function {settings.function}; its module has: {', '.join(missing) or 'none'}"
    if not any(event["t"] == events.COMPILED and event["by"] == "breakscope" for event in recorded):
        return f"{settings.function} was never defined: its module was not imported by the script"
    worked = (events.REGION, events.SKIP, events.GRAPH_BREAK, events.METRICS)
    if not any(event["t"] in worked for event in recorded):
        return f"{settings.function} was never called"
    return None


def _save(report: Report, place: Path, *, keep: bool) -> None:
    schema.save(report, place)
    if keep:
        # The same report under its time, so that the next scan does not take it away.
        stamp = report.run.started_at.replace(":", "-").partition("+")[0]
        copy = place.with_name(f"{stamp}-{os.getpid()}.json")
        try:
            shutil.copyfile(place, copy)
        except OSError as error:
            raise OutputError(f"cannot write {copy}: {error.strerror}") from error
