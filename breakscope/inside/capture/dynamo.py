"""The hooks in torch, put in and taken out.

Imported by the agent once the script has imported torch. What the hooks do is in ``trace_records`` (what
Dynamo reports), ``compiles`` (what is compiled) and ``frames`` (what Dynamo does with each frame).
"""

from __future__ import annotations

import logging
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from breakscope.inside import events, torch_api
from breakscope.inside.capture.compiles import Compiles
from breakscope.inside.capture.frames import Frames
from breakscope.inside.capture.outermost import OutermostCall
from breakscope.inside.capture.trace_records import CudaGraphHandler, TraceHandler
from breakscope.inside.torch_api.hooks import (
    answer_module_calls,
    count_ops,
    forget_everything,
    never_compile,
    replace_entry_points,
    replace_frame_callback,
    watch_gradients,
    watch_stances,
    write_lines_once,
)
from breakscope.inside.torch_api.state import compile_id, counted
from breakscope.inside.tracebacks import innermost_of_user

if TYPE_CHECKING:
    from breakscope.inside.capture.agent import Agent


# The stances under which a compiled function may run eagerly, with neither a break nor a recompile.
_EAGERLY = {
    "force_eager": "while it holds, compiled functions run eagerly, and their calls are in no count here",
    "eager_on_recompile": "while it holds, calls that fit nothing compiled run eagerly, uncounted here",
    "eager_then_compile": "the first call of each function runs eagerly, and is in no count here",
    "aot_eager_then_compile": "the first call of each function is compiled without Inductor",
}


class TorchHooks:
    """Everything that is hooked in torch, for one agent."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._frames = Frames(agent)
        self._handler = TraceHandler(agent, self._frames)
        self._compiles = Compiles(agent, self._frames, self._handler)
        self._outermost: OutermostCall | None = None
        self.tried_in_eager = self._frames.tried_in_eager
        self._undo: list[Callable[[], None]] = []
        self._differentiated: set[tuple[str, int]] = set()
        self._dynamo_ready = self._finished = False

    def install(self) -> None:
        """Hook what ``import torch`` brought. Dynamo itself may never be loaded."""
        agent = self._agent
        agent.emit(
            events.TORCH,
            version=torch.__version__,
            triton=_version_of("triton"),
            cost=agent.settings.cost,
        )
        if agent.settings.seed is not None:
            agent.guarded("the generators are not seeded", lambda: _seed(agent.settings.seed))
        agent.guarded("Dynamo's records cannot be read", self._listen)
        agent.guarded("optimizer steps are not counted", self._count_optimizer_steps)
        agent.guarded("gradients of gradients are not seen", self._watch_gradients)
        if agent.settings.compile == "auto":
            agent.guarded("--compile auto compiles nothing", self._answer_outermost_calls)

    def _watch_gradients(self) -> None:
        if torch_api.available("run_backward"):
            self._undo.append(watch_gradients(self._differentiable))

    def _differentiable(self) -> None:
        """A gradient is taken that can be differentiated again: tell of each line once."""
        # AOTAutograd takes gradients while it compiles.
        if compile_id() is not None:
            return
        frame = innermost_of_user(sys._getframe(1))
        if frame is None or (place := (frame.f_code.co_filename, frame.f_lineno)) in self._differentiated:
            return
        self._differentiated.add(place)
        self._agent.emit(events.TWICE, file=place[0], line=place[1], function=frame.f_code.co_qualname)

    def _listen(self) -> None:
        log = torch_api.get("trace_log")
        handler = self._handler
        level, propagate = log.level, log.propagate
        log.addHandler(handler)
        log.setLevel(logging.DEBUG)
        # The records are ours to take, not for the root logger to print. torch sets the same.
        log.propagate = False

        def undo() -> None:
            log.removeHandler(handler)
            log.setLevel(level)
            log.propagate = propagate

        self._undo.append(undo)

    def _count_optimizer_steps(self) -> None:
        agent = self._agent

        def stepped(optimizer: Any, _args: Any, _kwargs: Any) -> None:
            # A compiled optimizer step is traced through here, and must not be changed by it.
            if torch.compiler.is_compiling():
                return
            agent.optimizer_stepped(optimizer)

        from torch.optim.optimizer import register_optimizer_step_post_hook

        self._undo.append(register_optimizer_step_post_hook(stepped).remove)

    def _answer_outermost_calls(self) -> None:
        if torch_api.available("module_call"):
            self._outermost = self._compiles.outermost_call()
            self._undo.append(answer_module_calls(self._outermost.answer))

    def in_outermost_call(self) -> bool:
        """Whether this thread is in a module call that we compiled."""
        return self._outermost is not None and self._outermost.under_way

    def watched(self, function: Any) -> Any:
        """A function whose calls are outermost ones, and not compiled."""
        return self._compiles.recorded(function, function)

    def forget_everything(self) -> None:
        """Empty Dynamo's caches and counters, and ours of its frames."""
        self._frames.forget()
        forget_everything()

    def install_dynamo(self) -> None:
        """Hook Dynamo, which has just been loaded."""
        if self._dynamo_ready:
            return
        self._dynamo_ready = True
        for sentence in torch_api.missing():
            self._agent.note(sentence)
        version = torch_api.torch_version()
        if version > torch_api.NEWEST_TRIED:
            self._agent.note(f"torch {torch.__version__} is newer than any that breakscope was tried on")
        for what, hook in (
            ("what is compiled is not known", self._hook_optimize),
            ("lines in resumed functions may be off", self._mend_lines),
            ("skipped frames are not counted", self._hook_callback),
            ("crossings are not counted", self._hook_bytecode),
            ("some skipped frames are not reported", self._open_break_log),
            ("regions without CUDA graphs are not reported", self._listen_to_cudagraphs),
            ("our own frames may be compiled", self._hide_our_frames),
            ("calls that a stance lets run eagerly are not told of", self._hook_stances),
            ("ops are not counted while Dynamo is at work", self._hook_ops),
            ("no step runs under the profiler", self._open_window),
            ("what guards and eager operations take of a break is not known", self._allow_glances),
        ):
            self._agent.guarded(what, hook)

    def _open_window(self) -> None:
        settings = self._agent.settings
        if settings.profile:
            from breakscope.inside.capture.window import Window

            self._agent.clock.window = Window(Path(settings.events).with_suffix(".trace.json"))

    def _allow_glances(self) -> None:
        from breakscope.inside.capture.glance import Glance

        glance = self._agent.clock.glance = Glance()
        if glance.start():  # the first time takes ten times as long, and would be in a steady step
            glance.stop()

    def _mend_lines(self) -> None:
        if torch_api.available("line_table"):
            self._undo.append(write_lines_once())

    def _hide_our_frames(self) -> None:
        never_compile(OutermostCall.answer.__code__)

    def _open_break_log(self) -> None:
        """Have whole-frame skips reported without having them printed."""
        log = torch_api.get("break_log")
        if log is torch_api.MISSING or log.isEnabledFor(logging.DEBUG):
            return
        level = log.level
        log.setLevel(logging.DEBUG)
        log.addFilter(_drop)

        def undo() -> None:
            log.setLevel(level)
            log.removeFilter(_drop)

        self._undo.append(undo)

    def _listen_to_cudagraphs(self) -> None:
        log = logging.getLogger(torch_api.CUDAGRAPH_LOG)
        handler = CudaGraphHandler(self._agent, self._frames)
        log.addHandler(handler)
        self._undo.append(lambda: log.removeHandler(handler))

    def _hook_optimize(self) -> None:
        real, real_reset = torch_api.get("optimize"), torch_api.get("reset")

        def optimize(*args: Any, **kwargs: Any) -> Any:
            return self._compiles.optimize(real, *args, **kwargs)

        def reset() -> None:
            self._frames.forget()
            real_reset()

        optimize.__wrapped__ = real  # type: ignore[attr-defined]
        self._undo.append(replace_entry_points(optimize, reset))

    def _hook_callback(self) -> None:
        real = torch_api.get("frame_callback")
        if real is not torch_api.MISSING:
            self._undo.append(replace_frame_callback(self._frames.callback(real)))

    def _hook_stances(self) -> None:
        told = set()

        def tell(stance: str) -> None:
            if stance in _EAGERLY and stance not in told:
                told.add(stance)
                self._agent.note(f'torch.compiler.set_stance("{stance}"): {_EAGERLY[stance]}')

        if torch_api.available("set_stance"):
            self._undo.append(watch_stances(tell))

    def _hook_ops(self) -> None:
        if torch_api.available("create_proxy"):
            self._undo.append(count_ops(self._frames.watch.took_op))

    def _hook_bytecode(self) -> None:
        register = torch_api.get("bytecode_hook")
        if register is not torch_api.MISSING:
            self._undo.append(register(self._frames.count_runs).remove)

    def uninstall(self) -> None:
        """Take every hook out again, the latest first."""
        while self._undo:
            self._undo.pop()()

    def finish(self) -> None:
        """The script is over: Dynamo's numbers as they ended."""
        if self._dynamo_ready and not self._finished:
            self._finished = True
            self._agent.emit(events.COUNTERS, counters=counted())
            if self._compiles.stopwatch is not None:
                self._agent.emit(events.WATCHED, ends=self._compiles.stopwatch.ends)

    def calibrate(self) -> None:
        """The script is over, and steps of it were sampled."""
        self.finish()
        self.uninstall()  # what is compiled from here on is ours
        self._compiles.calibrate()


def _seed(seed: Any) -> None:
    random.seed(seed)
    torch.manual_seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)


def _drop(_record: logging.LogRecord) -> bool:
    return False


def _version_of(distribution: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
