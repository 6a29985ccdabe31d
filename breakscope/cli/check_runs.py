"""What ``breakscope check`` judges: a script or the configured targets, run now, or a report file."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from breakscope.errors import ConfigError, ScriptNotFoundError, TargetError, UsageError
from breakscope.project.config import Budgets, Config, Target
from breakscope.report.model import Report

_FOLDER = "check"
# Options of scan that say how ranks are launched, beside their number.
_LAUNCH = ("nnodes", "node_rank", "rdzv_id", "rdzv_backend", "rdzv_endpoint", "max_restarts")


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asks to judge.

    Attributes:
        report: a report file; program: what stands after ``--``, None without; targets: their names.
        options: every option of scan with its value; given: names of those that were typed.
    """

    report: Path | None
    program: list[str] | None
    targets: tuple[str, ...]
    options: Mapping[str, Any]
    given: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """A report to judge, and under which name and with which budgets."""

    target: str
    report: Report
    path: Path
    budgets: Budgets


def holds_one(asked: Asked, config: Config) -> bool:
    """Whether one target is asked for, which some formats need."""
    several = len(asked.targets or config.targets) > 1
    return asked.report is not None or asked.program is not None or not several


def runs(asked: Asked, config: Config, budgets: Budgets, *, live: bool) -> list[Run]:
    """Run or read what was asked for.

    Args:
        budgets: those of the command line, which come before a target's.
        live: show the script's output and a live line; without, its output goes to stderr.

    Raises:
        BreakscopeError: nothing can be run or read as asked.
    """
    if sum((asked.report is not None, asked.program is not None, bool(asked.targets))) > 1:
        raise UsageError("name a report, or a script after --, or targets; not several of these")
    if asked.given and asked.program is None:
        option = f"--{asked.given[0].strip('_').replace('_', '-')}"
        raise UsageError(f"{option} is for a script to run: put -- SCRIPT at the end")
    if asked.program is not None:
        report, place = _scan(asked.program, asked.options, None, live)
        return [_named(report, place, budgets)]
    if asked.report is None and (config.targets or asked.targets):
        chosen = _chosen(config, asked.targets)
        for one in chosen:
            _check_target(one, config)  # all of them, before the first takes its minutes
        return [_run_target(one, config, asked.options, budgets, live) for one in chosen]
    return [_saved(config, asked.report, budgets)]


def _named(report: Report, path: Path, budgets: Budgets) -> Run:
    from breakscope.project import gate

    return Run(gate.target_name(report), report, path, budgets)


def _saved(config: Config, path: Path | None, budgets: Budgets) -> Run:
    from breakscope.project import gate
    from breakscope.report import schema
    from breakscope.report.latest import FOLDER, LATEST

    place = path or Path(FOLDER) / LATEST
    if path is None and not place.exists():
        raise UsageError(
            f"there is nothing to check: no target is configured and there is no {place}; "
            "name a script: breakscope check -- SCRIPT"
        )
    if place.suffix == ".py" and place.is_file():
        raise UsageError(f"{place} is a script, not a report; to run it: breakscope check -- {place}")
    report = schema.load(place)
    gate.check_project(report, place, config.root)
    if path is None:
        # Nobody named it: it may be older than the source.
        print(f"breakscope: judging {place}, made at {report.run.started_at}", file=sys.stderr)
    return _named(report, place, budgets)


def _chosen(config: Config, names: Sequence[str]) -> list[Target]:
    from difflib import get_close_matches

    targets = {target.name: target for target in config.targets}
    for name in names:
        if name not in targets:
            near = get_close_matches(name, targets, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(targets) or 'none'}"
            raise UsageError(f"the configuration has no target {name!r}; {hint}")
    return [targets[name] for name in dict.fromkeys(names)] or list(config.targets)


def _words(target: Target) -> list[str]:
    return [*(["-m", target.module] if target.module else [str(target.script)]), *target.args]


def _check_target(target: Target, config: Config) -> None:
    from breakscope.run.program import program

    try:
        with contextlib.chdir(config.root):
            program(target.module or str(target.script), target.args, module=target.module is not None)
    except ScriptNotFoundError as error:
        raise ConfigError(f"target {target.name!r} of {config.file}: {error}") from None


def _report_file(target: Target, config: Config) -> Path:
    """Where the report of a target is kept. Two names that look alike as files get a number."""
    from breakscope.report.latest import FOLDER

    slugs = [re.sub(r"[^\w.-]+", "-", one.name).strip("-.") or "target" for one in config.targets]
    index = [one.name for one in config.targets].index(target.name)
    number = f"-{slugs[: index + 1].count(slugs[index])}" if slugs.count(slugs[index]) > 1 else ""
    return config.root / FOLDER / _FOLDER / f"{slugs[index]}{number}.json"


def _run_target(
    target: Target, config: Config, options: Mapping[str, Any], budgets: Budgets, live: bool
) -> Run:
    options = {
        **options,
        "compile_": target.compile,
        "backend": target.backend,
        "mode": target.mode,
        "dynamic": target.dynamic,
        "keep_fullgraph": target.keep_fullgraph,
        "steps": target.steps,
        "timeout": target.timeout,
    }
    place = _report_file(target, config)
    with contextlib.chdir(config.root):
        report, path = _scan(_words(target), options, place, live)
    return Run(target.name, report, path, budgets.over(target.budgets))


def _scan(
    words: list[str], options: Mapping[str, Any], output: Path | None, live: bool
) -> tuple[Report, Path]:
    from breakscope.cli import scan, torchrun

    rest = dict(options)
    launch = {name: rest.pop(name) for name in _LAUNCH}
    launcher = torchrun.options(rest.pop("nproc_per_node"), **launch, others=rest.pop("torchrun_options"))
    # click gives what the parser of scan would have made a Path of.
    for name in ("fixes", "python"):
        rest[name] = None if rest[name] is None else Path(rest[name])
    with contextlib.nullcontext() if live else _stdout_to_stderr():
        result = scan.run(words, **rest, launcher=launcher, output=output, live=live)
    if result.problem is not None:
        raise TargetError(result.problem)
    return result.report, result.path


@contextlib.contextmanager
def _stdout_to_stderr() -> Iterator[None]:
    """Standard output is for our answer: what the script prints goes where it does no harm."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
