"""Dynamo's frames: which one is in its hands, which it gave up on, and how often they run."""

from __future__ import annotations

import dataclasses
import functools
import sys
import threading
import types
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from breakscope.diagnose import records
from breakscope.diagnose.collect import is_limit
from breakscope.inside import events, torch_api
from breakscope.inside.capture import signatures
from breakscope.inside.capture.at_work import Watch
from breakscope.inside.capture.backend import RegionBackend
from breakscope.inside.capture.crossings import RESUMED, Crossings, SiteKey
from breakscope.inside.torch_api.counting import answer_with_counts, count_runs
from breakscope.inside.torch_api.hooks import never_compile
from breakscope.inside.torch_api.state import innermost_backend

if TYPE_CHECKING:
    from breakscope.inside.capture.agent import Agent


# Dynamo refuses; the program has not failed.
_NO_FAILURES = ("Unsupported", "UserError", "FailOnRecompileLimitHit", "RecompileLimitExceeded")


@dataclasses.dataclass(slots=True)
class Compile:
    """One frame in Dynamo's hands.

    Attributes:
        broke_at: the site at which the latest attempt ended, and how many inlined calls away it is.
        metrics: Dynamo's metrics of this compile, once it is over; cid: its id.
        modes: settings of the thread when it began; tracing changes them.
        caller: the frame that called it.
    """

    frame: Any
    broke_at: tuple[SiteKey, int] | None = None
    metrics: dict[str, Any] = dataclasses.field(default_factory=dict)
    cid: str | None = None
    modes: dict[str, Any] = dataclasses.field(default_factory=dict)
    caller: types.FrameType | None = None


@dataclasses.dataclass(slots=True)
class _Skipped:
    """A frame that Dynamo gave up on: its answer, kept so that each call can be counted."""

    code: types.CodeType  # held: ids of dead code objects are used again
    answer: Any
    called: Callable[[], None] | None  # None where the answer holds code that counts by itself


class Frames:
    """Follows Dynamo from frame to frame, in every thread."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._local = threading.local()
        self._skipped: dict[int, _Skipped] = {}
        self.watch = Watch(agent)
        self.tried_in_eager: set[str] = set()  # ids of compiles that failed
        self.crossings = Crossings(agent.clock, never_compile)

    @property
    def current(self) -> Compile | None:
        """The frame that this thread's Dynamo is compiling."""
        return getattr(self._local, "compile", None)

    def forget(self) -> None:
        """Dynamo was reset: it will try again what it gave up on."""
        self._skipped.clear()
        self.tried_in_eager.clear()  # ids begin again

    def site(self, compile_: Compile | None) -> int | None:
        """The slot of the site at which a compile ended."""
        if compile_ is None or compile_.broke_at is None:
            return None
        return self.crossings.slot(compile_.broke_at[0], 0)

    def callback(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """What stands in the place of ``real``, Dynamo's callback for each frame that it meets."""
        frames = self

        def callback(wrapper: Any, frame: Any, cache_entry: Any, frame_state: Any) -> Any:
            skipped = frames._skipped.get(id(frame.f_code))
            if skipped is not None:
                if skipped.called is not None:
                    skipped.called()
                return skipped.answer
            return frames._convert(real, wrapper, frame, cache_entry, frame_state)

        return callback

    def _convert(self, real: Any, wrapper: Any, frame: Any, cache_entry: Any, frame_state: Any) -> Any:
        """Dynamo's callback for one frame."""
        compile_ = Compile(frame, modes=signatures.modes(), caller=sys._getframe(2))
        outer = self.current
        self._local.compile = compile_
        backend = innermost_backend(wrapper)
        work, phase = self.watch.begin(compile_), "done"
        try:
            with self._capture_flags(isinstance(backend, RegionBackend) and backend.lifted):
                answer = real(wrapper, frame, cache_entry, frame_state)
        except BaseException as error:
            phase = "done" if isinstance(error, Exception) else "stopped"
            if phase == "done" and compile_.metrics.get("fail_type") not in (*_NO_FAILURES, None):
                self._agent.try_in_eager(compile_.cid)
            raise
        finally:
            self._local.compile = outer
            self.watch.end(work, phase)
        if getattr(answer, "guarded_code", None) is None:
            kept = self._agent.guarded(
                "calls of a skipped frame are not counted",
                lambda: self._gave_up(compile_, answer),
            )
            return kept or answer
        return answer

    def _capture_flags(self, wanted: bool) -> AbstractContextManager[Any]:
        # fullgraph=True implies them; without them a lifted one would break where the script did not.
        if not wanted or not torch_api.available("config_patch"):
            return nullcontext()
        flags = {"capture_scalar_outputs": True, "capture_dynamic_output_shape_ops": True}
        return torch_api.get("config_patch")(flags)  # type: ignore[no-any-return]

    def _gave_up(self, compile_: Compile, answer: Any) -> Any:
        """Dynamo returned no code for a frame: because of a break, of the limit, or by design."""
        at_limit = is_limit(compile_.metrics)
        if compile_.broke_at is None and not at_limit:
            return None
        code = compile_.frame.f_code
        slot = self._agent.counters.new()
        site = counting = depth = counted = None
        tick: Callable[[], None] = _nothing
        if compile_.broke_at is not None and not at_limit:
            key, depth = compile_.broke_at
            site, counting = self.crossings.slot(key, 0), self.crossings.slot(key, depth, given_up=True)
            if key[0] == code.co_filename:
                counted = self._agent.guarded(
                    "crossings of a skipped frame are calls of the frame",
                    functools.partial(self._with_counts, answer, code, slot, key[1:], site),
                )
            if counted is None:
                resumed = records.is_resume(code.co_name) and depth == 0
                tick = self.crossings.ticker(counting, RESUMED if resumed else depth)
        self._agent.emit(
            events.SKIP,
            limit=at_limit,
            slot=slot,
            site=site,
            counting=counting,
            depth=depth,
            passes=counted is not None,
            frame=frame_fields(code),
            why=compile_.metrics.get("fail_reason") if at_limit else None,
        )
        # Not applied to the code object: Dynamo then asks again at each call, and we can count.
        called = None if counted is not None else self._on_call(slot, tick)
        kept = counted or dataclasses.replace(answer, apply_to_code=False)
        self._skipped[id(code)] = _Skipped(code, kept, called)
        if called is not None:
            called()
        return kept

    def _on_call(self, slot: int, tick: Callable[[], None]) -> Callable[[], None]:
        """What counts one call of a skipped frame."""
        counters = self._agent.counters

        def called() -> None:
            counters.slots[slot] += 1
            tick()

        never_compile(called.__code__)
        return called

    def _with_counts(
        self, answer: Any, code: types.CodeType, slot: int, position: tuple[int, ...], site: int
    ) -> Any:
        """The answer with code that counts its calls, and passes of the site; None where that cannot be."""
        called = self._on_call(slot, _nothing)
        passing = self.crossings.ticker(site, 0)
        return answer_with_counts(answer, code, called, position, passing)

    def count_runs(self, original: types.CodeType, generated: types.CodeType) -> types.CodeType | None:
        """Dynamo's bytecode hook: have code that ends at a break tick each time it runs."""
        compile_ = self.current
        if compile_ is None or compile_.broke_at is None:
            return None
        key, depth = compile_.broke_at
        tick = self.crossings.ticker(self.crossings.slot(key, depth), depth)
        counted: types.CodeType | None = self._agent.guarded(
            f"crossings in {original.co_name} are not counted",
            lambda: count_runs(generated, tick),
        )
        return counted


def _nothing() -> None:
    return None


def frame_fields(code: types.CodeType) -> dict[str, Any]:
    """A function as events name it."""
    return {
        "file": code.co_filename,
        "name": code.co_name,
        "qualname": code.co_qualname,
        "line": code.co_firstlineno,
    }
