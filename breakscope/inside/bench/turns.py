"""Steps of the script, made only when it is this process's turn.

A process reaches its first step, says so and waits. Each grant from the parent lets it make some steps;
it times them, answers, and waits again, inside the script, at the end of a step. A script that calls several
compiled things in turn has steps of several calls (:class:`Cycle`). When the script itself ends early, the
calls of a step of its warm-up are repeated on copies of their inputs; where a step is more than its calls
(there is an optimizer) it cannot be, and the answer says that the script has ended.
"""

from __future__ import annotations

import functools
import os
import threading
import time
import types
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch

from breakscope.inside.bench import arm_compat, pace
from breakscope.inside.bench.ambient import Ambient
from breakscope.inside.bench.copies import Repeated, copied, fresh
from breakscope.inside.bench.cycle import Call, Cycle
from breakscope.inside.bench.held import Held
from breakscope.inside.bench.meter import Mark, Meter, Sample, spin
from breakscope.inside.bench.outputs import KEPT_STEPS, Kept, compare_folders, on_gpu
from breakscope.inside.bench.plan import CUDA_GRAPH_MODES, ArmSettings
from breakscope.inside.bench.sessions import Sessions
from breakscope.inside.bench.wire import (
    COMPARE,
    DONE,
    END,
    FAILED,
    KERNELS,
    READY,
    RUN,
    Channel,
    ClosedError,
    Message,
)
from breakscope.inside.capture.pace import Pace
from breakscope.inside.capture.step_unit import StepUnit


class Turns:
    """One process's steps.

    Attributes:
        when_timed: done once, before the first step that is timed.
        replaying: entered around calls that are made again after the script's end.
    """

    def __init__(self, settings: ArmSettings, channel: Channel, began: float) -> None:
        self._settings = settings
        self._channel = channel
        self._began = began
        self._main = threading.get_ident()
        self._inside = False
        self._over = False
        self._dead = False
        self._ready = False
        self._ended = False  # the script is at its end
        self._open = False  # a grant is being worked off
        self._unit = StepUnit("call" if settings.function is not None else settings.unit)
        self._cycle = Cycle()
        self.when_timed: Callable[[], None] | None = None
        self.replaying: Callable[[], AbstractContextManager[None]] = nullcontext
        self.meter = Meter()
        self.compiles = arm_compat.CompileWatch()
        self.sessions = Sessions(Path(settings.outputs))
        self._grant: Message = {}
        self._pace_ms = 0.0
        self._samples: list[Sample] = []
        self._done_steps = 0
        self._calls: list[tuple[Mark, Mark]] = []
        self._first_cycle: int | None = None  # calls of the first step, while what a step is is a guess
        self._step_began: Mark | None = None
        self._stepping = False
        self._compiles_before = 0
        self._compile_s_before = 0.0
        self._raised: str | None = None
        self._replayed = 0
        self._random = False
        self._held = Held()
        self._copied_outputs = False  # in timed steps
        self._kept = Kept(Path(settings.outputs))
        self._pace = Pace()
        self._due = False  # a step is over, and its end waits for the next call
        self._pending: Message | None = None  # a session that the next call begins
        os.register_at_fork(after_in_child=self._forked)

    # -- what the hooks call -----------------------------------------------------------------------

    def wrap(self, function: Callable[..., Any], *, repeat: bool = False) -> Callable[..., Any]:
        """A function that does as ``function``, in turn.

        Args:
            repeat: measure on copies of the inputs of the first call, again and again.
        """
        turns = self

        @functools.wraps(function)
        def in_turn(*args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling() or turns._passes():
                return function(*args, **kwargs)
            if repeat:
                turns._repeat(function, args, kwargs)
            return turns._call(function, args, kwargs)

        code: types.CodeType = in_turn.__code__  # type: ignore[attr-defined]
        arm_compat.never_compile(code)
        return in_turn

    def optimizer_stepped(self, optimizer: Any) -> None:
        """An optimizer step is over."""
        # One inside of a call is not seen where the call is compiled.
        if not self._ready or self._over or self._inside or not self._unit.stepped():
            return
        if self._cycle.last:
            self._cycle, self._first_cycle = Cycle(), None  # it was a guess until now
        if self._pace.stepped(optimizer):
            if self._grant.get("purpose") is not None:
                self._due = True
                return
            self._end_step()
            self._begin_step()

    def died(self, error: BaseException) -> None:
        """The script ends with an exception."""
        if isinstance(error, SystemExit | KeyboardInterrupt) or self._over:
            return
        self._fail(f"{type(error).__name__}: {str(error).strip()[:600]}")

    # -- steps -------------------------------------------------------------------------------------

    def _passes(self) -> bool:
        """Whether a call is none of ours to time: nested, in another thread, or after the end."""
        return self._inside or self._over or threading.get_ident() != self._main

    def _call(self, function: Any, args: Any, kwargs: Any) -> Any:
        if not self._ready:
            self._first()
        if self._due or self._pending is not None:
            self._between_calls()
        maybe_step = self._unit.kind == "call" or self._unit.open
        if maybe_step:
            self._add(self._described(function, args, kwargs))
            if not self._grant.get("timed"):
                self._held.calling((args, kwargs))
        if self._unit.open:
            self._unit.calling()
        self._inside = True
        try:
            result = self._timed(function, args, kwargs)
        except Exception as error:
            self._raised = f"{type(error).__name__}: {str(error).strip()[:600]}"
            raise
        finally:
            self._inside = False
        if not self._grant.get("timed"):
            # Warm-up steps are timed one by one, the device waited for, before outputs are looked at.
            self._settle(self._calls)
        self._keep(result)
        if self._unit.open:
            self._unit.called()
        if maybe_step and self._settings.mode in CUDA_GRAPH_MODES and not torch.is_grad_enabled():
            result = self._saved(result)
        if self._unit.kind == "call" and not self._cycle.several:
            self._end_step()  # nothing of the script's lies between its call and its turn's end
        return result

    def _saved(self, result: Any) -> Any:
        """A result as the script gets it: copied if it may look at it after the graph's next replay."""
        timed = self._grant.get("timed", False)
        if self._ended or self._settings.function is not None or (timed and self._held.let_go):
            return result
        self._copied_outputs |= timed
        result = copied(result)
        if not timed:
            self._held.returned(result)
        return result

    def _add(self, call: Call) -> None:
        """The call about to be made, to the step that it belongs to."""
        if not self._cycle.begins_with(call):
            self._cycle.add(call)
        elif self._unit.kind == "call":
            self._end_step()
            self._cycle.begin(call)
            self._begin_step()
        else:
            self._cycle.begin(call)
            self._first_cycle = self._first_cycle or len(self._calls) or None

    def _described(self, function: Any, args: Any, kwargs: Any) -> Call:
        """The call about to be made; in the warm-up with copies of its inputs, to make it again."""
        warming_up = not self._grant.get("timed") and self._grant.get("purpose") is None
        copy = warming_up and not self._ended and self._settings.function is None
        if copy:
            args, kwargs = fresh((args, kwargs))
            self.meter.settle()
        return Call(function, args, kwargs, Ambient.now(), untouched=copy)

    def _between_calls(self) -> None:
        """Begin and end what is looked into where an optimizer's own record of its step is closed.

        It is open in the optimizer's hooks, and a profiler that starts or stops inside of it corrupts memory.
        """
        if self._due:
            self._due = False
            self._end_step()
        if self._pending is not None:
            message, self._pending = self._pending, None
            self.sessions.begin(message, self.meter.on_gpu)
        self._begin_step()

    def _timed(self, function: Any, args: Any, kwargs: Any) -> Any:
        watched = self._keeps()
        state = arm_compat.random_state() if watched else None
        first = self.meter.mark()
        try:
            return function(*args, **kwargs)
        finally:
            self._calls.append((first, self.meter.mark()))
            if watched:
                self._random |= arm_compat.random_state() != state

    def _first(self) -> None:
        """The first step is about to begin: everything is loaded, nothing is compiled."""
        self._unit.guess()
        self._ready = True
        _at_script_end(self._script_ended)
        self.meter.settle()
        self._send(READY, startup_s=time.perf_counter() - self._began, unit=self._unit.kind)
        self._wait()
        if self._unit.kind == "optimizer":
            self._begin_step()

    def _begin_step(self) -> None:
        if self._settings.mode in CUDA_GRAPH_MODES:
            torch.compiler.cudagraph_mark_step_begin()
        self._calls = []
        self._compiles_before = self.compiles.count
        if not self._grant.get("timed"):
            self._compile_s_before = self.compiles.seconds
        self.sessions.begin_step()
        # A step that is a call has the call's own marks: nothing of ours lies between.
        self._step_began = self.meter.mark() if self._unit.kind == "optimizer" else None
        self._stepping = True

    def _settle(self, spans: Sequence[tuple[Mark, Mark]]) -> None:
        """The last of them is over for the host when the device is done."""
        self.meter.settle()
        spans[-1][1].host_ns = time.perf_counter_ns()

    def _end_step(self) -> None:
        if not self._stepping:
            return
        self._stepping = False
        timed = self._grant.get("timed", False)
        spans = self._calls
        if self._unit.kind == "call":
            spans, self._first_cycle = spans[: self._first_cycle], None
        elif self._step_began:
            spans = [(self._step_began, self.meter.mark())]
            if not timed:
                self._settle(spans)
        compiles = self.compiles.count - self._compiles_before
        # Between timed steps every microsecond counts: there it is read once, for all of them.
        compile_s = 0.0 if timed else self.compiles.seconds - self._compile_s_before
        self._samples.append(Sample(spans, self._calls, compiles, compile_s))
        self._done_steps += 1
        self.sessions.end_step()
        if len(self._samples) >= self._grant["settle"] + self._grant["steps"]:
            self._answer()
            self._wait()

    # -- the line ----------------------------------------------------------------------------------

    def _answer(self, ended: bool = False) -> None:
        self._open = False
        self.meter.settle()
        extra = self.sessions.end()
        timed = self._grant.get("timed", False)
        if timed:
            extra["pace_ms"] = [self._pace_ms, pace.probe_ms()]
            if self.compiles.seconds > self._compile_s_before:
                extra["compiled_why"] = self.compiles.reasons()
                if not any(sample.compiles for sample in self._samples):
                    extra["tuned"] = True  # in one of them, nobody knows which
        samples = [
            {**sample.told(timed), "settle": index < self._grant["settle"]}
            for index, sample in enumerate(self._samples)
        ]
        peak, kind = self.meter.peak_mib()
        self._samples = []
        self._send(
            DONE,
            samples=samples,
            ended=ended,
            steps=self._done_steps,
            raised=self._raised,
            replayed=self._replayed,
            calls=self._cycle.names(),
            unit=self._unit.kind,
            unit_why=self._unit.why,
            random=self._random,
            copied_outputs=self._copied_outputs,
            on_gpu=self.meter.on_gpu,
            peak_mib=peak,
            memory_kind=kind,
            compiles=self.compiles.count,
            compile_s=self.compiles.seconds,
            phases=self.compiles.phases(),
            info=arm_compat.about(self.meter.on_gpu),
            **extra,
        )

    def _wait(self) -> None:
        """Until it is this process's turn again."""
        while True:
            try:
                message = self._channel.receive()
            except ClosedError:
                os._exit(1)  # the benchmark is gone; nobody wants the rest
            if message["t"] == RUN:
                self._begin_grant(message)
                return
            if message["t"] == COMPARE:
                self._send(DONE, results=compare_folders(message["base"], message["others"]))
            elif message["t"] == KERNELS:
                self._send(DONE, **self.sessions.next_kernels())
            elif message["t"] == END:
                self._over = True
                raise SystemExit(0)

    def _begin_grant(self, message: Message) -> None:
        self._grant = message
        self._open = True
        marks = 2 + 2 * max(1, len(self._calls))  # in a step, if the next one is like the last
        self.meter.prepare(marks * (message["settle"] + message["steps"]) + 8)
        self.meter.settle()
        self.meter.reset_peak()
        spin(message.get("spin_ms", 0.0))
        if message.get("timed"):
            self._unit.settle()
            self.compiles.reasons()  # those of the warm-up are no news
            self._compile_s_before = self.compiles.seconds
            if self.when_timed is not None:
                self.when_timed()
                self.when_timed = None
            self._pace_ms = pace.settle_on_a_fast_cpu(message.get("best_pace_ms"))
        if self._unit.kind == "optimizer" and message.get("purpose") is not None:
            self._pending = message
        else:
            self.sessions.begin(message, self.meter.on_gpu)

    def _send(self, kind: str, **fields: Any) -> None:
        try:
            self._channel.send(kind, **fields)
        except ClosedError:
            os._exit(1)

    def _fail(self, error: str) -> None:
        if not self._dead:
            self._dead = True
            self._over = True
            self._send(FAILED, error=error, step=self._done_steps)

    # -- the script's end --------------------------------------------------------------------------

    def _script_ended(self) -> None:
        if self._over or self._dead:
            return
        self._ended = True
        try:
            self._unit.ended()
            if self._unit.kind == "call":
                self._end_step()  # of several calls: the last one is known to be the last only now
            while True:
                if self._open and self._unit.kind == "call" and self._cycle.again:
                    self._replay()
                elif self._open:
                    self._answer(ended=True)
                else:
                    self._wait()
        except SystemExit:
            return
        except BaseException as error:  # noqa: BLE001 -- the last chance to say what happened
            self.died(error)

    def _replay(self) -> None:
        self._replayed += 1
        for call in self._cycle.again:
            with call.ambient.entered(), self.replaying():
                self._call_again(call.function, call.again)

    def _repeat(self, function: Any, args: Any, kwargs: Any) -> None:
        """``--function``: its first inputs, until the benchmark says END."""
        repeated = Repeated(args, kwargs)
        while True:
            self._call_again(function, repeated)

    def _call_again(self, function: Any, repeated: Repeated) -> None:
        args, kwargs = repeated.inputs()
        self._call(function, args, kwargs)

    # -- outputs -----------------------------------------------------------------------------------

    def _keeps(self) -> bool:
        return self._done_steps < KEPT_STEPS and self._replayed == 0

    def _keep(self, result: Any) -> None:
        if self._done_steps >= KEPT_STEPS:
            return
        self.meter.on_gpu = self.meter.on_gpu or on_gpu(result)
        self._kept.keep(result, self._done_steps)

    def _forked(self) -> None:
        # A worker of the script's: it has no turn, and must not keep the line open.
        self._over = True
        self._channel.close()


def _at_script_end(callback: Callable[[], None]) -> None:
    """Call once when ``__main__`` is over and Python has not yet begun to shut down.

    ``atexit`` comes too late: thread pools, the script's own and those of Inductor, take no more work then.
    """
    shutdown: Callable[[], None] = threading._shutdown  # type: ignore[attr-defined]

    def script_is_over() -> None:
        callback()
        shutdown()

    threading._shutdown = script_is_over  # type: ignore[attr-defined]
