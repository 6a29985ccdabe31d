"""What Dynamo is at work on: for the live line, for compiles that do not end, for loops that it unrolls."""

from __future__ import annotations

import threading
import time
import types
from collections import Counter
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from breakscope.inside import events
from breakscope.inside.torch_api.state import compile_id, translators
from breakscope.report.owners import owner_of

if TYPE_CHECKING:
    from breakscope.inside.capture.agent import Agent
    from breakscope.inside.capture.frames import Compile

_EVERY_S = 1.0
_MANY_OPS = 1_000  # of fewer nobody asks where they come from
_MOST_LINES = 40


class AtWork:
    """Follows one thread's compile from op to op.

    Attributes:
        told: whether anything was said of it, so that its end must be said, too.
        ops: put into the graph so far.
        outer: the compile inside of which this one began; None for most.
    """

    def __init__(
        self, agent: Agent, compile_: Compile, number: int, owners: dict[str, str], outer: AtWork | None
    ) -> None:
        self._agent = agent
        self.outer = outer
        self._frame = compile_.frame
        self._number = number
        self._owners = owners
        self._began = self._last_told = time.perf_counter()
        self._output: Any = None
        self.ops = 0
        self._cid: str | None = None
        self._visits: Counter[tuple[types.CodeType, int, int]] = Counter()
        self._entries: Counter[types.CodeType] = Counter()  # calls of it that had an op
        self._path: list[tuple[Any, int]] = []  # of the op before; held, for an address is soon used again
        self.told = False

    def took_op(self, output: Any) -> None:
        """Dynamo puts an op into the graph."""
        if output is not self._output:  # it began anew, knowing where the graph breaks
            self._output, self.ops = output, 0
            self._visits.clear()
            self._entries.clear()
        self.ops += 1
        self._note_lines(output.current_tx)
        if time.perf_counter() - self._last_told >= _EVERY_S:
            self.tell("dynamo")

    def _note_lines(self, innermost: Any) -> None:
        """Count a run of each call on the way to this op, unless the op before came through the same one."""
        path = [(translator, translator.instruction_pointer or 0) for translator in translators(innermost)]
        for level, ((at, pointer), before) in enumerate(zip_longest(path, self._path[: len(path)])):
            same = (
                before is not None
                and before[0] is at
                and before[1] == pointer
                and level + 1 < len(path)
                and level + 1 < len(self._path)
                and self._path[level + 1][0] is path[level + 1][0]
            )
            if not same and (level == 0 or self._is_of_project(at.f_code)):
                self._visits[at.f_code, at.lineno, pointer] += 1
                self._entries[at.f_code] += before is None or before[0] is not at
        self._path = path

    def _is_of_project(self, code: types.CodeType) -> bool:
        file = code.co_filename
        if file not in self._owners:
            self._owners[file] = owner_of(file, self._agent.settings.roots)
        return self._owners[file] == "project"

    def tell(self, phase: str) -> None:
        """Say where the compile is.

        Args:
            phase: "dynamo", "backend", "done", or "stopped" by what is no error of the compile.
        """
        from breakscope.inside.capture.frames import frame_fields

        self.told = True
        self._cid = self._cid or compile_id()
        self._last_told = time.perf_counter()
        self._agent.emit(
            events.COMPILING,
            number=self._number,
            cid=self._cid,
            phase=phase,
            frame=frame_fields(self._frame.f_code),
            ops=self.ops,
            seconds=round(self._last_told - self._began, 3),
            lines=self._lines() if self.ops >= _MANY_OPS else [],
        )

    def _lines(self) -> list[list[Any]]:
        """(file, line, times that it ran in a call of its function) of the lines that ran most often."""
        times: dict[tuple[str, int], int] = {}
        for (code, line, _), count in self._visits.items():
            key = (code.co_filename, line)
            times[key] = max(times.get(key, 0), round(count / max(1, self._entries[code])))
        most = sorted(times.items(), key=lambda item: -item[1])[:_MOST_LINES]
        return [[file, line, count] for (file, line), count in most]


class Watch:
    """Of all threads: what each one's Dynamo is at work on."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._local = threading.local()
        self._number = 0
        self._owners: dict[str, str] = {}

    def begin(self, compile_: Compile) -> AtWork:
        """A frame goes into Dynamo's hands; hand what this returns to :meth:`end`."""
        self._number += 1
        outer = getattr(self._local, "work", None)
        work = AtWork(self._agent, compile_, self._number, self._owners, outer)
        self._local.work = work
        return work

    def end(self, work: AtWork, phase: str) -> None:
        """It came out again."""
        self._local.work = work.outer
        if work.told or work.ops >= _MANY_OPS:
            self._agent.guarded("a compile's end was not noted", lambda: work.tell(phase))

    def took_op(self, output: Any) -> None:
        """Dynamo puts an op into the graph of this thread's frame."""
        work = getattr(self._local, "work", None)
        if work is not None:
            self._agent.guarded("where ops come from is not known", lambda: work.took_op(output))

    def backend_begins(self) -> None:
        """The graph is complete, and goes to the backend."""
        work = getattr(self._local, "work", None)
        if work is not None:
            self._agent.guarded("a compile's progress was not noted", lambda: work.tell("backend"))
