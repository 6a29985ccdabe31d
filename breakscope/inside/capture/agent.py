"""The child side of a scan: hooks inside the user's process.

Started by ``breakscope/inside/boot`` when the script itself has imported torch (so that what the script
sets before that import still counts), it hooks Dynamo when Dynamo is loaded, and writes what it is told
as events. It judges nothing: reading the events is the parent's work. Whatever goes wrong here must not
reach the script.
"""

from __future__ import annotations

import atexit
import os
import platform
import sys
import threading
import time
import traceback
import types
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from breakscope.inside import events, imports, tracebacks
from breakscope.inside.capture import targets
from breakscope.inside.capture.clock import Clock
from breakscope.inside.capture.pace import Pace
from breakscope.inside.capture.secrets import Redactor
from breakscope.inside.events import Counters, Event, EventList, EventWriter
from breakscope.inside.settings import Settings
from breakscope.report.owners import owner_of

if TYPE_CHECKING:
    from breakscope.inside.capture.step_unit import StepUnit


MOST_FORKS = 64  # of more, nothing is kept

running: Agent | None = None


def start(settings_text: str, began_ns: int, *, forked: bool) -> Callable[[], None] | None:
    """Begin to observe this process, whose script has just imported torch. Called once, by the boot file.

    Args:
        began_ns: ``time.perf_counter_ns()`` at the start of the process.
        forked: whether it is a fork of the process that the settings are for.

    Returns:
        What is to be called when the script has ended; None where the process is left alone.
    """
    global running  # noqa: PLW0603 -- what is compiled by name asks for it
    given = Settings.loads(settings_text)
    settings = (given.of_children() if forked else given).of_process()
    if not Path(settings.folder).is_dir() or (forked and not given.children):
        return None  # a child that outlives its scan, or that is not asked for
    writer = EventWriter(settings.events, settings.of_children().events if settings.children else None)
    running = Agent(settings, writer, _counters(settings.counters), began_ns)
    writer.forked = running.forked_process_compiles
    if forked or given != settings:
        running.start_event()
    else:  # the boot file has said so
        writer.remember(running.alive())
    running.begin()
    return running.end


def _counters(file: str) -> Counters:
    if file and not Path(file).exists():  # a rank's, or a child's: nobody knew how many there would be
        Counters.create(Path(file))
    return Counters.open(file) if file else Counters.in_memory()


class Agent:
    """What one observed process is asked to do, and where it writes.

    Args:
        sink: takes events; must not raise.
        counters: slots for steps, calls, region runs and crossings.
        began_ns: when the process began; None for now.
    """

    def __init__(
        self,
        settings: Settings,
        sink: EventWriter | EventList,
        counters: Counters,
        began_ns: int | None = None,
    ) -> None:
        self.settings = settings
        self.counters = counters
        self._sink = sink
        self._began = time.perf_counter_ns() if began_ns is None else began_ns
        self.clock = Clock(self._emit_raw, counters, self._began, sample=settings.cost)
        self._pace = Pace()
        self._local = threading.local()
        self._redactor = Redactor()
        self._script_compiles = False
        self._compiled_early = self._over_due = False
        self._awaits_script = False  # --steps waits for the script's own torch.compile
        self._in_trial = False
        self._forks = 0
        self._stopping = False
        self._begun = False
        self._unit: StepUnit | None = None  # asked by --steps alone
        self.dynamo: Any = None  # breakscope.inside.capture.dynamo, once torch is there

    # -- life ------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Hook the process, now that torch is there."""
        self._begun = True
        os.register_at_fork(before=self._forking, after_in_child=self._forked)
        if self.settings.compile == "auto" and self.settings.steps is not None:
            self._awaits_script = targets.compiles_itself(self.settings.script)
        self.hook_torch()

    def start_event(self) -> None:
        """Say that the agent is alive."""
        self._sink.write(self.alive())

    def alive(self) -> Event:
        """The event that begins a file."""
        return {
            "t": events.START,
            "at": 0.0,
            "step": 0,
            "call": 0,
            "pid": os.getpid(),
            "python": platform.python_version(),
            "cost": self.settings.cost,
            # The clock that several processes have in common, to lay their times side by side.
            "wall": time.time() - (time.perf_counter_ns() - self._began) / 1e9,
        }

    def hook_torch(self) -> None:
        """Hook torch, which has just been imported."""
        from breakscope.inside.capture import dynamo

        if self.settings.steps is not None:
            from breakscope.inside.capture.step_unit import StepUnit

            self._unit = StepUnit("auto")
        hook = tracebacks.without_our_frames(sys.excepthook)
        sys.excepthook = tracebacks.telling(hook, lambda errors: self.emit(events.RAISED, errors=errors))
        self.dynamo = dynamo.TorchHooks(self)
        self.dynamo.install()
        imports.after_import("torch._dynamo", self.dynamo.install_dynamo)

    def saw_first_region(self) -> None:
        """Something was compiled: all that a compiler needs is loaded."""
        if self._begun:
            atexit.register(self._calibrate)  # later than those of torch, so called before them

    def _calibrate(self) -> None:
        # In a trial steps are timed, and no site is priced.
        if self.clock.sampled and self.settings.outputs is None:
            self.guarded("the last steps are not timed", self.clock.finish)
            self.guarded("what entering compiled code takes is not known", self.dynamo.calibrate)

    def end(self) -> None:
        """The script is over."""
        if self.dynamo is not None:
            self.dynamo.finish()
        self.guarded("the last steps are not timed", self.clock.finish)
        if self._sink.failed is not None:
            sys.__stderr__ and print(
                f"breakscope: the capture stopped: {self._sink.failed}", file=sys.__stderr__
            )
        self.emit(events.END)

    def _emit_raw(self, kind: str, **fields: Any) -> None:
        # Numbers of ours: nothing in them to redact, and many.
        self._sink.write({"t": kind, **fields})

    def _forking(self) -> None:
        self._forks += not self._in_trial

    def _forked(self) -> None:
        """In a forked worker: it keeps its hooks, but what it counts and compiles is told apart."""
        if self._in_trial or self._forks > MOST_FORKS or not self.settings.counters:
            self.counters.be_of_fork(None)
            return
        self.guarded("what a forked process does is not known", self._tell_apart)

    def _tell_apart(self) -> None:
        suffix = f"{events.OF_FORK}{os.getpid()}"
        self.counters.be_of_fork(self.settings.counters + suffix)
        self._sink.move_to(self.settings.events + suffix)
        caller: types.FrameType | None = sys._getframe(1)
        roots = self.settings.roots
        while caller is not None and owner_of(caller.f_code.co_filename, roots) != "project":
            caller = caller.f_back
        place = {"file": caller.f_code.co_filename, "line": caller.f_lineno} if caller else {}
        self.emit(events.FORKED, pid=os.getpid(), **place)

    def forked_process_compiles(self, file: str) -> None:
        """A forked process compiles, so that its counts are wanted: they move to a file beside its events."""
        path = Path(file.replace("events-", "counters-"))
        Counters.create(path)
        slots = Counters.open(str(path)).slots
        slots[:] = memoryview(self.counters.slots)
        self.counters.slots = slots

    # -- writing ---------------------------------------------------------------------------------

    def emit(self, kind: str, **fields: Any) -> None:
        """Write one event."""
        slots = self.counters.slots
        event: Event = {
            "t": kind,
            "at": round((time.perf_counter_ns() - self._began) / 1e9, 6),
            "step": slots[events.SLOT_STEPS],
            "call": slots[events.SLOT_CALLS],
            **self._redactor.clean(fields),
        }
        self._sink.write(event)

    def redacted(self, text: str) -> str:
        """A text without what the environment keeps secret."""
        return str(self._redactor.clean({"text": text})["text"])

    @property
    def seconds(self) -> float:
        """Since the process began."""
        return (time.perf_counter_ns() - self._began) / 1e9

    def note(self, text: str) -> None:
        """Tell the reader of the report something that they must know."""
        self.emit(events.NOTE, text=text)

    # -- steps -----------------------------------------------------------------------------------

    def optimizer_stepped(self, optimizer: Any) -> None:
        """Count one optimizer step."""
        if self._unit is not None:
            self._unit.stepped()
        if self._pace.stepped(optimizer):
            self.counters.slots[events.SLOT_STEPS] = done = self._pace.steps
            if done == 1:
                self.clock.restart()  # what were calls until now are steps
            self.clock.step_ended()
            self._stop_after(done)

    def outermost_call_begins(self) -> None:
        """An outermost call of something compiled is about to be made."""
        if self._unit is not None and self._unit.open:
            if not self.counters.slots[events.SLOT_CALLS]:
                self._unit.guess()
            self._unit.calling()
        self.clock.call()

    def outermost_call_ended(self) -> None:
        """Count one outermost call of something compiled."""
        self.counters.slots[events.SLOT_CALLS] += 1
        self.clock.returned()
        if self._pace.steps:
            return
        self.clock.step_ended()
        if self._unit is not None:
            if self._unit.open:
                self._unit.called()
            if self._unit.kind == "call" and not self._awaits_script:
                self._stop_after(self.counters.slots[events.SLOT_CALLS])

    def _stop_after(self, done: int) -> None:
        if self.settings.steps is None or done < self.settings.steps:
            return
        if not self._stopping:
            self._stopping = True
            self.note(f"stopped after {done} steps, as asked by --steps")
            raise SystemExit(0)
        if done > self.settings.steps + 1:
            # The script caught SystemExit and went on; it was asked kindly.
            self.end()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)

    # -- what is compiled ------------------------------------------------------------------------

    def compile_target(self, function: Any) -> Any:
        """The decorator of ``--compile FUNCTION``."""
        import torch

        self._local.by_us = True
        try:
            return torch.compile(function, dynamic=self.dynamic)
        finally:
            self._local.by_us = False

    def watch_calls(self, function: Any) -> Any:
        """The decorator of a function that is watched, and not compiled."""
        return self.dynamo.watched(function)

    @property
    def dynamic(self) -> bool | None:
        """``--dynamic`` as torch.compile takes it."""
        return {"auto": None, "true": True, "false": False}[self.settings.dynamic]

    @property
    def by_us(self) -> bool:
        """Whether the compile under way was asked for by breakscope."""
        return getattr(self._local, "by_us", False)

    @by_us.setter
    def by_us(self, value: bool) -> None:
        self._local.by_us = value

    def wants_outermost(self) -> bool:
        """Whether an outermost module call is to be compiled now: not once the script compiles itself."""
        if self.settings.compile != "auto" or self._script_compiles:
            return False
        data = sys.modules.get("torch.utils.data")  # what a worker loads is no network of the script's
        return data is None or data.get_worker_info() is None

    def compiled_outermost(self, name: str) -> None:
        """Note an outermost module call that we compile."""
        self._compiled_early = True
        self.emit(events.COMPILED, name=name, by="breakscope")

    def start_over_if_due(self) -> None:
        """Undo what we compiled before the script's first ``torch.compile``: plain use would not have.

        A warm-up in eager, a module that is called in a constructor. Not while one of them is under way.
        """
        if not self._over_due or self.dynamo.in_outermost_call():
            return
        self._over_due = self._compiled_early = False
        self.guarded("what was compiled before the script's own torch.compile is counted", self._start_over)

    def _start_over(self) -> None:
        self.dynamo.forget_everything()
        slots = self.counters.slots
        for slot in range(len(self.counters.used())):
            if slot != events.SLOT_STEPS:
                slots[slot] = 0
        self.clock.restart()
        self.emit(events.OVER)

    def compiled(self, name: str, is_module: bool, **fields: Any) -> None:
        """Note what was given to torch.compile, and by whom."""
        caller = tracebacks.innermost_of_user(sys._getframe(1))
        owner = owner_of(caller.f_code.co_filename, self.settings.roots) if caller else "library"
        by = "breakscope" if self.by_us else "script" if owner == "project" else "library"
        # A library's decorated helper is not the script's choice; its compiling a whole model is
        # (Trainer and Accelerate do, on the script's behalf).
        if by == "script" or (by == "library" and is_module):
            self._script_compiles, self._awaits_script = True, False
            self._over_due = self._compiled_early
            self.start_over_if_due()
        place = (
            {"file": caller.f_code.co_filename, "line": caller.f_lineno}
            if caller and by != "breakscope"
            else {}
        )
        self.emit(events.COMPILED, name=name, by=by, **place, **fields)

    def try_in_eager(self, cid: str | None) -> None:
        """A call failed under torch.compile: note whether eager fails too. Each compile is tried once."""
        if cid is None or cid in self.dynamo.tried_in_eager:
            return
        self.dynamo.tried_in_eager.add(cid)
        self.guarded("whether an error is eager's too is not known", lambda: self._try_in_eager(cid))

    def _try_in_eager(self, cid: str) -> None:
        from breakscope.inside.capture.eager_trial import tried

        self._in_trial = True
        try:
            answer = tried()
        finally:
            self._in_trial = False
        self.emit(events.EAGER, cid=cid, by_us=self.dynamo.in_outermost_call(), **answer)

    # -- helpers for hooks -----------------------------------------------------------------------

    def guarded(self, what: str, action: Callable[[], Any]) -> Any:
        """Run a hook's own work. Its failure is a note, never the script's.

        Args:
            what: what the report lacks if it fails, as a sentence's subject.
        """
        try:
            return action()
        except Exception as error:  # noqa: BLE001 -- our fault must not become the user's
            where = traceback.extract_tb(error.__traceback__)[-1]
            self.note(f"{what}: {type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})")
            return None
