"""What a scan was asked to do: made by the command line, read by the agent in the child."""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass, replace
from typing import Literal

from breakscope.inside.start import PID, Agent

AGENT = "breakscope.inside.capture.agent"
AHEAD = "breakscope.inside.capture.ahead"

Dynamic = Literal["auto", "true", "false"]


@dataclass(frozen=True, slots=True)
class Settings:
    """Options of a capture.

    Attributes:
        compile: ``auto``, ``script``, or a function: ``train_step``, ``model.py:Net.forward``,
            ``pkg.mod:fn``.
        backend: ``eager``, ``aot_eager``, ``inductor``, ``as-script`` for the script's own, or ``none``:
            nothing is compiled (for trials).
        mode: Inductor's mode, or None for the script's own.
        keep_fullgraph: leave ``fullgraph=True`` in force, so that the first break raises.
        steps: stop the script after this many steps; None for its own length.
        events: file for the agent's events; counters: file of its counting slots.
        script: what runs as ``__main__``: its absolute path, or the module's name.
        roots: directories of the user's project.
        cost: mark steady steps, to know what each site costs.
        children: follow the Python processes that the script starts.
        profile: let torch's profiler look at some steady steps.
        seed: of torch's, Python's and numpy's generators, set once when torch is imported; None to leave
            them alone.
        artifacts: folder that gets what each compile produced; None to keep nothing.
        outputs: folder that gets what the outermost compiled calls return; None to keep nothing.
        fixes: folder of fixes that are applied to source as it is loaded (:mod:`breakscope.inside.overlay`).
        watch: a function, named as for ``compile``, whose calls count as outermost ones though it is not
            compiled: its outputs are kept, or its calls timed.
        stopwatch: time the outermost calls, with compiler caches that are empty.
        eager_rounding: Inductor rounds numbers of half precision where eager code does.
        eager_random: Inductor draws random numbers by the operators that draw them in eager code.
        forms: how many forms of a frame the backend is given; graphs of later ones run as traced. None: all.
    """

    compile: str = "auto"
    backend: str = "eager"
    mode: str | None = None
    dynamic: Dynamic = "auto"
    keep_fullgraph: bool = False
    steps: int | None = None
    events: str = ""
    counters: str = ""
    script: str = ""
    roots: tuple[str, ...] = ()
    cost: bool = True
    seed: int | None = None
    outputs: str | None = None
    fixes: str | None = None
    artifacts: str | None = None
    profile: bool = False
    children: bool = False
    watch: str | None = None
    stopwatch: bool = False
    eager_rounding: bool = False
    eager_random: bool = False
    forms: int | None = None

    def dumps(self) -> str:
        """For the child's environment."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def loads(cls, text: str) -> Settings:
        """Inverse of :meth:`dumps`."""
        data = json.loads(text)
        return cls(**{**data, "roots": tuple(data["roots"])})

    def agent(self) -> Agent:
        """The agent that does it."""
        needs_ahead = (
            self.fixes is not None
            or self.function is not None
            or self.watch is not None
            or self.children
            or self.stopwatch
        )
        module = AGENT if self.events else ""  # nothing can be recorded
        return Agent(module, self.dumps(), events=self.events, ahead=AHEAD if needs_ahead else None)

    @property
    def folder(self) -> str:
        """Where the processes of a scan have their files."""
        return os.path.dirname(self.events)

    def of_children(self) -> Settings:
        """The same for each process that this one starts, with files named by its process id."""
        events, counters = (os.path.join(self.folder, f"{name}-{PID}") for name in ("events", "counters"))
        return replace(self, events=events, counters=counters)

    def of_process(self) -> Settings:
        """The same in the process whose agent it is."""
        pid = str(os.getpid())
        return replace(self, events=self.events.replace(PID, pid), counters=self.counters.replace(PID, pid))

    @property
    def function(self) -> str | None:
        """The function to compile, if one was named."""
        return None if self.compile in ("auto", "script") else self.compile


def form(compile_id: str | None) -> int:
    """How many forms of its frame were compiled before a graph's: 2 of ``0/2``; 0 where it is not said."""
    number = (compile_id or "").rpartition("/")[2].partition("_")[0]  # "0/2_1": traced a second time
    return int(number) if number.isdecimal() else 0
