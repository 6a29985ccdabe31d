"""One run of a program on several ranks: torchrun launches them, each has the agent in it.

What torchrun does not tell (which rank died first, of what, in which step) is put together here from what
its process noted and from what the ranks' agents left.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from breakscope.diagnose.build import build
from breakscope.diagnose.merge import Identity, as_rank, merge
from breakscope.diagnose.outcome import Outcome
from breakscope.errors import LaunchError
from breakscope.inside import elastic, events
from breakscope.inside.elastic import PROCESS, Worker
from breakscope.inside.settings import Settings
from breakscope.report.model import Report, Status
from breakscope.run import launch
from breakscope.run.launch import Ended, Program
from breakscope.run.observe import Observed, own_words, seen_here
from breakscope.run.program import project_roots
from breakscope.run.progress import Progress

_TERMINATED = -signal.SIGTERM


@dataclass(frozen=True, slots=True)
class Run:
    """What all ranks have in common."""

    what: Program
    settings: Settings
    folder: Path
    ended: Ended


def observe(
    what: Program,
    torchrun: Sequence[str],
    settings: Settings,
    folder: Path,
    timeout_s: float | None,
    *,
    live: bool = False,
) -> Observed:
    """Run the program on the ranks that torchrun starts here, and merge what they report.

    Args:
        torchrun: its options, as one would type them before the script.
        folder: where the agents write; the caller removes it.
        live: draw a live line on the terminal while the script is silent.

    Raises:
        LaunchError: if torchrun started no rank.
    """
    settings = replace(
        settings,
        script=what.path,
        roots=project_roots(what, Path.cwd()),
        events=str(folder / f"events-{PROCESS}"),
        counters=str(folder / f"counters-{PROCESS}"),
    )
    agent = elastic.agent(settings.agent(), folder / "workers")
    program = Program("torch.distributed.run", True, (*torchrun, *what.command), what.path)
    progress = Progress(folder, time.monotonic())
    ended = launch.run(program, agent, timeout_s, status=progress.line if live else None)
    workers = elastic.workers(folder / "workers")
    _end_orphans(workers)
    if not workers:
        raise LaunchError(f"torchrun ended with exit status {ended.exit_code} before it started a rank")
    run = Run(what, settings, folder, ended)
    recorded = {worker: _events(folder, worker) for worker in workers}
    reports = [_report(run, worker, workers, recorded[worker]) for worker in workers]
    return Observed(merge(reports), ended, tuple(event for one in recorded.values() for event in one))


def _end_orphans(workers: Sequence[Worker]) -> None:
    """A worker has a session of its own: it would outlive a torchrun that had to be killed."""
    for worker in workers:
        if worker.ended is None:
            with suppress(OSError):
                if os.getpgid(worker.pid) == worker.pid:
                    os.killpg(worker.pid, signal.SIGKILL)


def _events(folder: Path, worker: Worker) -> tuple[events.Event, ...]:
    file = folder / f"events-{worker.name}"
    return tuple(events.read_events(file)) if file.exists() else ()


def _report(run: Run, worker: Worker, workers: Sequence[Worker], recorded: Sequence[events.Event]) -> Report:
    counters = run.folder / f"counters-{worker.name}"
    slots = events.Counters.read(counters) if counters.exists() else None
    status, after = _ending(worker, workers, run.ended)
    over = worker.ended if worker.ended is not None else worker.began + run.ended.duration_s
    outcome = Outcome(
        script=("-m " if run.what.module else "") + run.what.script,
        argv=own_words(run.what.args),
        cwd=str(Path.cwd()),
        status=status,
        exit_code=None if worker.code is None else worker.code if worker.code >= 0 else 128 - worker.code,
        started_at=datetime.fromtimestamp(worker.began, UTC).isoformat(timespec="seconds"),
        duration_s=round(max(0.0, over - worker.began), 3),
        backend=run.settings.backend,
        mode=run.settings.mode,
        roots=run.settings.roots,
        notes=tuple(_notes(worker, recorded, run.ended)),
    )
    report = build(recorded, slots, outcome)
    report = replace(report, run=replace(report.run, world_size=worker.world_size))
    start = next((event for event in recorded if event["t"] == events.START), None)
    identity = Identity(
        rank=worker.rank,
        job=worker.job,
        attempt=worker.attempt,
        host=socket.gethostname(),
        pid=worker.pid,
        began=start["wall"] if start else worker.began,
        ended=after,
    )
    return as_rank(seen_here(report, worker.began), identity)


def _ending(worker: Worker, workers: Sequence[Worker], whole: Ended) -> tuple[Status, str | None]:
    """How a rank ended, and in words where that came after another rank's death."""
    code = worker.code
    if code == 0:
        return "ok", None
    if whole.status in ("timeout", "interrupted") and code in (None, _TERMINATED, -signal.SIGKILL):
        return whole.status, None
    status: Status = "script_error" if code is not None and code > 0 else "killed"
    first = first_to_fail(workers, worker.attempt)
    if first is None or first == worker or worker.ended is None or first.ended is None:
        return status, None
    if code == _TERMINATED:
        return status, f"was stopped by torchrun after rank {first.rank} had ended"
    how = f"failed with exit status {code}" if code is not None and code > 0 else "was killed too"
    return status, f"{how}, {worker.ended - first.ended:.1f} s after rank {first.rank} had ended"


def first_to_fail(workers: Sequence[Worker], attempt: int) -> Worker | None:
    """The rank whose end came first among those that did not end well."""
    failed = [
        worker for worker in workers if worker.attempt == attempt and worker.code and worker.ended is not None
    ]
    return min(failed, key=lambda one: one.ended or 0.0, default=None)


def _notes(worker: Worker, recorded: Sequence[events.Event], whole: Ended) -> list[str]:
    kinds = {event["t"] for event in recorded}
    notes = []
    if events.START not in kinds:
        notes.append("it ended before the first hook was in place: nothing was captured")
    elif events.TORCH not in kinds:
        notes.append("it never imported torch")
    if whole.status == "timeout" and worker.code != 0:
        notes.append(f"ended after {whole.timeout_s:g} s, as asked by --timeout; counts are those up to then")
    elif worker.code is not None and worker.code < 0 and worker.code != _TERMINATED:
        name = launch.signal_name(-worker.code)
        hint = " (the system's out-of-memory killer does this)" if name == "SIGKILL" else ""
        notes.append(f"it was ended by {name}{hint}; its counts are those up to then")
    elif events.START in kinds and events.END not in kinds:
        notes.append("it ended without Python's shutdown; its counts are those up to then")
    return notes
