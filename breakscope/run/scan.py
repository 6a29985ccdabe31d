"""One scan, from a command line to a saved report."""

from __future__ import annotations

import ast
import os
import re
import socket
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from breakscope.diagnose.merge import Identity, as_rank
from breakscope.errors import OutputError, TargetError
from breakscope.inside import events
from breakscope.inside.capture import targets
from breakscope.inside.settings import Settings
from breakscope.report.latest import FOLDER, place_of, save
from breakscope.report.model import Report
from breakscope.run import launch, ranks, recover
from breakscope.run.launch import Program
from breakscope.run.observe import Observed, observe
from breakscope.run.program import check_torch


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
    torchrun: Sequence[str] | None = None,
) -> Scan:
    """Run the program and leave a report, whatever becomes of it.

    Args:
        live: draw a live line on the terminal while the script is silent.
        output: file for the report; None for ``.breakscope/latest.json`` with earlier ones kept, or, under
            the user's own torchrun, for a file named after the job and the rank.
        torchrun: options of torchrun, which then launches the program on several ranks; None for one process.

    Raises:
        BreakscopeError: if nothing could be run, or the report could not be written.
    """
    check_torch()
    check_target(what, settings)
    who = _identity() if torchrun is None else None
    place = place_of(output) if output or who is None else Path.cwd() / FOLDER / _name(who)
    if place.is_dir():
        raise OutputError(f"cannot write the report to {output}: it is a directory")
    with launch.workspace(place.parent, or_elsewhere=output is None) as folder:
        if torchrun is None:
            recover.note_scan(folder, what, settings)
            seen = observe(what, settings, folder, timeout_s, live=live)
        else:
            seen = ranks.observe(what, torchrun, settings, folder, timeout_s, live=live)
        report = seen.report if who is None else _stamped(seen, who)
        missed, exit_code = _problem(settings, seen), seen.ended.exit_code
        del seen  # many events, which the report needs no more
        place, problem = _save(report, place, keep=output is None and who is None)
    return Scan(report, place, exit_code, problem or missed)


def _save(report: Report, place: Path, *, keep: bool) -> tuple[Path, str | None]:
    """Where the report went, and what to say if that is elsewhere: the script's time is not spent twice."""
    try:
        with suppress(OSError):  # the script may have removed it
            place.parent.mkdir(parents=True, exist_ok=True)
        save(report, place, keep=keep)
    except OutputError as error:
        try:
            elsewhere = Path(tempfile.mkdtemp(prefix="breakscope-")) / place.name
            save(report, elsewhere, keep=False)
        except (OSError, OutputError):
            raise error from None
        return elsewhere, f"{error}; it is in {elsewhere}"
    return place, None


def _identity() -> Identity | None:
    """Which rank this scan is of, where the user's own torchrun started it; None elsewhere.

    torchrun calls a job "none" unless told otherwise: then its process tells it from others on this host.
    """
    job, rank = os.environ.get("TORCHELASTIC_RUN_ID"), os.environ.get("RANK", "")
    if job is None or not rank.isdecimal():
        return None
    return Identity(
        rank=int(rank),
        job=job if job != "none" else f"torchrun-{socket.gethostname()}-{os.getppid()}",
        attempt=int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")),
        host=socket.gethostname(),
    )


def _name(who: Identity) -> str:
    """The report file of one rank: ranks run side by side, and must not write over each other."""
    job = re.sub(r"[^\w.-]", "_", who.job or "")
    return f"{job}-rank{who.rank}" + (f"-attempt{who.attempt}" if who.attempt else "") + ".json"


def _stamped(seen: Observed, who: Identity) -> Report:
    start = next((event for event in seen.recorded if event["t"] == events.START), None)
    if start is not None:
        who = replace(who, pid=start["pid"], began=start["wall"])
    size = os.environ.get("WORLD_SIZE", "1")
    run = replace(seen.report.run, world_size=int(size) if size.isdecimal() else 1)
    return as_rank(replace(seen.report, run=run), who)


def _problem(settings: Settings, seen: Observed) -> str | None:
    """Why ``--compile FUNCTION`` came to nothing, if it did."""
    recorded = seen.recorded
    if settings.function is None or seen.report.run.status != "ok":
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
