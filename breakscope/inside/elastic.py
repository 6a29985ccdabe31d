"""Inside torchrun's own process: puts an agent into each worker that it starts, and notes how each ends.

torchrun is what launches the ranks, restarts them and tears them down; this module only stands at
``subprocess.Popen``, through which torchrun starts every worker. It is itself started as an agent, by the
boot file, before torchrun's first line.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from breakscope.inside.start import Agent, with_agent

# In the settings of a worker's agent: stands for the name of the worker, which has files of its own.
PROCESS = "%process%"


@dataclass(frozen=True, slots=True)
class Plan:
    """What torchrun's process is to do with each worker.

    Attributes:
        module, settings, events, ahead: of the agent, with :data:`PROCESS` in the names of its files.
        log: file for what becomes of the workers.
    """

    module: str
    settings: str
    log: str
    events: str | None
    ahead: str | None


@dataclass(frozen=True, slots=True)
class Worker:
    """One process that torchrun started.

    Attributes:
        job: torchrun's run id.
        attempt: how often the workers had been restarted before.
        began: seconds since 1970; ended the same, None if that was not seen.
        code: exit code, or minus the number of the signal that ended it; None if that was not seen.
    """

    job: str
    rank: int
    local_rank: int
    world_size: int
    attempt: int
    pid: int
    began: float
    ended: float | None = None
    code: int | None = None

    @property
    def name(self) -> str:
        """Names its files."""
        return f"{self.rank}.{self.attempt}"


def agent(worker_agent: Agent, log: Path) -> Agent:
    """The agent for torchrun's process, which puts ``worker_agent`` into each worker."""
    plan = Plan(worker_agent.module, worker_agent.settings, str(log), worker_agent.events, worker_agent.ahead)
    return Agent("breakscope.inside.elastic", json.dumps(asdict(plan)), worker_agent.environment)


def start(settings: str) -> None:
    """Begin to watch what torchrun starts. Called once, by the boot file, in torchrun's process."""
    plan = Plan(**json.loads(settings))
    real = subprocess.Popen

    class Popen(real):  # type: ignore[valid-type, misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            variables = kwargs.get("env") or {}
            worker = _worker(variables)
            if worker is None:  # a helper program of torch's
                super().__init__(*args, **kwargs)
                return
            name = f"{worker['rank']}.{worker['attempt']}"
            settings, events = (text and text.replace(PROCESS, name) for text in (plan.settings, plan.events))
            kwargs["env"] = with_agent(
                variables, Agent(plan.module, settings or "", events=events, ahead=plan.ahead)
            )
            super().__init__(*args, **kwargs)
            self._worker: dict[str, Any] | None = {**worker, "pid": self.pid, "began": time.time()}
            _note(plan.log, self._worker)
            threading.Thread(target=self._await, daemon=True).start()

        def _await(self) -> None:
            # Who died first is known only here: torchrun looks ten times a second, rank by rank. The dead
            # process is left for torchrun to collect.
            try:
                seen = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            except ChildProcessError:
                return  # torchrun was quicker, and told through poll or wait
            if seen is not None:
                exited = seen.si_code == os.CLD_EXITED
                self._ended(seen.si_status if exited else -seen.si_status)

        def _ended(self, code: int | None) -> None:
            worker = getattr(self, "_worker", None)
            if code is not None and worker is not None:
                self._worker = None
                _note(plan.log, {**worker, "ended": time.time(), "code": code})

        def poll(self) -> int | None:
            code: int | None = super().poll()
            self._ended(code)
            return code

        def wait(self, timeout: float | None = None) -> int:
            code: int = super().wait(timeout)
            self._ended(code)
            return code

    subprocess.Popen = Popen  # type: ignore[misc]


def _worker(variables: Mapping[str, str]) -> dict[str, Any] | None:
    """Which worker a process with these variables is; None if it is none."""
    if "TORCHELASTIC_RUN_ID" not in variables or "RANK" not in variables:
        return None
    return {
        "job": variables["TORCHELASTIC_RUN_ID"],
        "rank": int(variables["RANK"]),
        "local_rank": int(variables.get("LOCAL_RANK", 0)),
        "world_size": int(variables.get("WORLD_SIZE", 1)),
        "attempt": int(variables.get("TORCHELASTIC_RESTART_COUNT", 0)),
    }


def _note(log: str, fields: Mapping[str, Any]) -> None:
    with open(log, "ab", buffering=0) as file:
        file.write(json.dumps(fields).encode() + b"\n")


def workers(log: Path) -> list[Worker]:
    """What became of every worker, by rank and attempt; each end as it was first seen."""
    known: dict[tuple[int, int, int], Worker] = {}
    for fields in _lines(log):
        worker = Worker(**fields)
        key = worker.rank, worker.attempt, worker.pid
        if key not in known or (known[key].ended is None and worker.ended is not None):
            known[key] = worker
    return sorted(known.values(), key=lambda one: (one.rank, one.attempt, one.pid))


def _lines(log: Path) -> Iterator[dict[str, Any]]:
    if log.exists():
        for line in log.read_bytes().splitlines():
            with suppress(ValueError):  # the last one, where torchrun itself was killed
                yield json.loads(line)
