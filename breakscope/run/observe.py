"""One run of a program with the agent in it, read into a report. Writes nothing but the run's own files."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from breakscope.diagnose import forks
from breakscope.diagnose.build import build
from breakscope.diagnose.outcome import Outcome
from breakscope.inside import events
from breakscope.inside.capture.secrets import Redactor
from breakscope.inside.settings import Settings
from breakscope.report.machine import this_machine
from breakscope.report.model import Report
from breakscope.report.secrets import mask_words
from breakscope.run import children, launch
from breakscope.run.launch import Ended, Program
from breakscope.run.program import project_roots
from breakscope.run.progress import Progress
from breakscope.run.recording import Recording, stand_somewhere
from breakscope.run.warm import Warm


@dataclass(frozen=True, slots=True)
class Observed:
    """A run that is over: the report, how it ended, and the events that the report was made of."""

    report: Report
    ended: Ended
    recorded: tuple[events.Event, ...]


def observe(
    what: Program,
    settings: Settings,
    folder: Path,
    timeout_s: float | None,
    *,
    live: bool = False,
    stdout: int | None = None,
    stderr: int | None = None,
    warm: Warm | None = None,
) -> Observed:
    """Run the program to its end, whatever the end is, and diagnose it.

    Args:
        settings: what the agent is to do; the script, its project and the file names are filled in here.
        folder: where the agent writes; the caller removes it.
        live: draw a live line on the terminal while the script is silent.
        stdout: descriptor that takes the script's output; None for our own.
        stderr: the same for its errors; None for where its output goes.
        warm: as for :func:`breakscope.run.launch.run`.
    """
    cwd, started = Path.cwd(), time.time()
    roots = project_roots(what, cwd)
    with Recording(folder) as recording:
        settings = replace(
            settings,
            script=what.path,
            roots=roots,
            events=recording.place_of("events"),
            counters=recording.place_of("counters"),
        )
        agent = settings.agent()
        progress = Progress(folder, time.monotonic())
        ended = launch.run(
            what,
            agent,
            timeout_s,
            status=progress.line if live else None,
            stdout=stdout,
            stderr=stderr,
            warm=warm,
        )
        stand_somewhere(cwd)
        recorded, slots = recording.events(), recording.slots()
    outcome = Outcome(
        script=("-m " if what.module else "") + what.script,
        argv=own_words(what.args),
        cwd=str(cwd),
        status=ended.status,
        exit_code=ended.exit_code,
        started_at=ended.started_at,
        duration_s=ended.duration_s,
        backend=settings.backend,
        mode=settings.mode,
        roots=roots,
        notes=(
            *_notes(ended, recorded),
            *recording.lost,
            *_of_forks(folder, recorded, str(cwd)),
            *children.not_followed(recorded),
        ),
    )
    report = children.with_children(build(recorded, slots, outcome), outcome, recorded, folder)
    asked = {"compile": settings.compile, "dynamic": settings.dynamic, "steps": settings.steps}
    return Observed(
        seen_here(replace(report, run=replace(report.run, asked=asked)), started), ended, recorded
    )


def seen_here(report: Report, started: float) -> Report:
    """A report with what shows later that it is of this machine and of these files."""
    run = replace(report.run, sources=_hashes(report, started), machine=this_machine())
    return replace(report, run=run)


def own_words(words: Sequence[str]) -> tuple[str, ...]:
    """A script's arguments without secrets: of the environment, or by their shape or name."""
    cleaned = Redactor(live=False).clean({"words": list(words)})["words"]
    return mask_words(cleaned)


def _of_forks(folder: Path, recorded: Sequence[events.Event], cwd: str) -> list[str]:
    """What forked processes of the script did, a sentence for each that ran compiled code."""
    notes = []
    for file in sorted(folder.glob(f"events{events.OF_FORK}*")):
        if file.with_name(file.name.replace(events.OF_FORK, "-", 1)).exists():
            continue  # it compiled, and is a process of the report
        slots = events.Counters.read(file.with_name(file.name.replace("events", "counters", 1)))
        notes.append(forks.note(recorded, tuple(events.read_events(file)), slots, cwd))
    return [note for note in notes if note is not None]


def _hashes(report: Report, started: float) -> dict[str, str]:
    """sha256 of the files that hold findings, unless they changed while the script ran."""
    hashes = {}
    for file in {finding.location.file for finding in report.findings}:
        try:
            status = os.stat(file)
            if stat.S_ISREG(status.st_mode) and status.st_mtime <= started:
                hashes[file] = hashlib.sha256(Path(file).read_bytes()).hexdigest()
        except (OSError, ValueError):
            continue  # "<string>", or gone
    return dict(sorted(hashes.items()))


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
        hint = " (the system's out-of-memory killer does this)" if ended.signal == "SIGKILL" else ""
        notes.append(f"the script was ended by {ended.signal}{hint}; counts are those up to then")
    elif events.START in kinds and events.END not in kinds:
        notes.append("the script ended without Python's shutdown, or its last events could not be written")
    return notes
