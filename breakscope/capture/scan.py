"""One scan, from a command line to a saved report."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from breakscope import schema
from breakscope.capture import events, launch, targets
from breakscope.capture.launch import Ended, Program
from breakscope.capture.settings import Settings
from breakscope.diagnose.build import build
from breakscope.diagnose.outcome import Outcome
from breakscope.errors import OutputError, ScriptNotFoundError, TargetError, TorchMissingError
from breakscope.model import Report

FOLDER = ".breakscope"
LATEST = "latest.json"
MINIMUM_TORCH = (2, 9)


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


def program(script: str, args: Sequence[str], *, module: bool) -> Program:
    """What to run.

    Raises:
        ScriptNotFoundError: if there is no such script or module, or it is not Python.
    """
    if module:
        return Program(script, True, tuple(args), _module_path(script))
    path = Path(script)
    if path.is_dir():
        if not (path / "__main__.py").is_file():
            raise ScriptNotFoundError(f"{script} is a directory; name a Python script in it")
        return Program(script, False, tuple(args), str((path / "__main__.py").resolve()))
    if not path.exists():
        raise ScriptNotFoundError(f"there is no file {script}")
    try:
        with path.open("rb") as stream:
            start = stream.read(65536)
    except OSError as error:
        raise ScriptNotFoundError(f"cannot read {script}: {error.strerror}") from error
    # A zip with a __main__.py is something that Python runs; anything else with NULs is not.
    if b"\0" in start and not start.startswith(b"PK"):
        raise ScriptNotFoundError(f"{script} is not a Python script")
    return Program(script, False, tuple(args), str(path.resolve()))


def _module_path(module: str) -> str:
    # Only the outermost package is looked up: looking deeper would import, and so run, its parents.
    top = module.partition(".")[0]
    sys.path.insert(0, os.getcwd())
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError) as error:
        raise ScriptNotFoundError(f"cannot find module {module}: {error}") from error
    finally:
        sys.path.pop(0)
    if spec is None:
        raise ScriptNotFoundError(f"there is no module named {top}")
    if spec.submodule_search_locations:
        base = Path(next(iter(spec.submodule_search_locations))).joinpath(*module.split(".")[1:])
        for candidate in (base.with_suffix(".py"), base / "__main__.py"):
            if candidate.is_file():
                return str(candidate.resolve())
    return str(Path(spec.origin).resolve()) if spec.origin else module


def check_torch() -> None:
    """Make sure that the script will find a torch that we know.

    Raises:
        TorchMissingError: if there is none, or it is older than 2.9.
    """
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        if importlib.util.find_spec("torch") is not None:
            return  # a build without metadata; the agent will say its version
        raise TorchMissingError(
            f"torch is not installed for {sys.executable}; install breakscope where your script's torch is"
        ) from None
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers and (int(numbers[1]), int(numbers[2])) < MINIMUM_TORCH:
        raise TorchMissingError(f"torch {version} is too old; breakscope needs 2.9 or newer")


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
        ended = launch.run(what, settings, folder, timeout_s, live=live)
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


def project_roots(what: Program, cwd: Path) -> tuple[str, ...]:
    """The user's project: where they are, and where the script is."""
    folders = [str(cwd.resolve())]
    if os.path.isabs(what.path):
        folders.append(str(Path(what.path).resolve().parent))
    return tuple(dict.fromkeys(folders))


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
