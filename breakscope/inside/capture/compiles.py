"""What is given to torch.compile, by the script or by us, and the regions that come of it."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import threading
import types
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.fx

from breakscope.inside import events, torch_api
from breakscope.inside.capture.backend import FirstForms, RegionBackend
from breakscope.inside.capture.calibrate import calibrate, own_ns
from breakscope.inside.capture.frames import Frames, frame_fields
from breakscope.inside.capture.outermost import OutermostCall
from breakscope.inside.capture.outputs import OutputRecorder
from breakscope.inside.capture.stopwatch import Stopwatch
from breakscope.inside.capture.trace_records import TraceHandler
from breakscope.inside.compiled import OptimizeContext, module_of, with_calls_wrapped
from breakscope.inside.torch_api.hooks import never_compile
from breakscope.inside.torch_api.state import compile_id, in_backward, skipped_by_rule
from breakscope.report.owners import owner_of

if TYPE_CHECKING:
    from breakscope.inside.capture.agent import Agent

_HERE = os.path.dirname(__file__)
# How DDPOptimizer marks the graphs into which it splits one, so that buckets reduce while others compute.
_DDP_SPLIT = "DDPOptimizer intentional graph-break"


class Compiles:
    """Stands between ``torch.compile`` and Dynamo."""

    def __init__(self, agent: Agent, frames: Frames, handler: TraceHandler) -> None:
        self._agent = agent
        self._frames = frames
        self._handler = handler
        self._local = threading.local()
        self._devices: set[str] = set()
        self._uses: dict[tuple[str, bool], tuple[int, Any]] = {}  # by device and gradients: number, backend
        self._outermost_seen: set[str] = set()
        self._left_seen: set[str] = set()
        self._past_seen: set[type[torch.nn.Module]] = set()
        # Asking Dynamo's rules takes 0.1 ms.
        self._is_layer: Callable[[Any], bool] = functools.cache(lambda kind: skipped_by_rule(kind.forward))
        self.quiet = False  # while we compile on the script's behalf, under the module's name
        self._recorder: OutputRecorder | None = None
        self.stopwatch: Stopwatch | None = None
        if agent.settings.stopwatch:
            self.stopwatch = Stopwatch(lambda: agent.seconds, never_compile)
        elif agent.settings.outputs is not None:
            self._recorder = OutputRecorder(Path(agent.settings.outputs), never_compile)

    def optimize(self, real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """``torch._dynamo.optimize`` with our backend around the chosen one."""
        settings = self._agent.settings
        backend = args[0] if args else kwargs.pop("backend", "inductor")
        fullgraph = bool(kwargs.get("nopython", False))
        lifted = fullgraph and not settings.keep_fullgraph
        if lifted:
            kwargs["nopython"] = False
        if settings.dynamic != "auto":
            kwargs["dynamic"] = self._agent.dynamic
        if settings.backend == "none":
            kwargs["disable"] = True
            return self._listed(real(*args, **kwargs), "none", fullgraph, lifted)
        chosen = self._choose_backend(backend)
        if settings.forms is not None:
            chosen = FirstForms(chosen, settings.forms)
        on_region = functools.partial(self._on_region, chosen)
        wrapped = RegionBackend(
            chosen, backend, lifted, on_region, self._on_call, self._on_graph, self._agent.clock
        )
        context = real(wrapped, *args[1:], **kwargs)
        if kwargs.get("disable"):
            return context  # torch.compile(disable=True) compiles nothing
        return self._listed(context, _backend_name(backend), fullgraph, lifted)

    def _choose_backend(self, script_backend: Any) -> Callable[..., Any]:
        settings = self._agent.settings
        if settings.eager_rounding:
            torch_api.get("inductor_config").emulate_precision_casts = True
        if settings.eager_random:
            torch_api.get("inductor_config").fallback_random = True
        if settings.backend == "inductor" and settings.mode is not None:
            return torch_api.get("inductor_wrapper")(settings.mode, None, self._agent.dynamic)  # type: ignore[no-any-return]
        if settings.backend == "inductor" and _backend_name(script_backend) == "inductor":
            return script_backend  # type: ignore[no-any-return]  # keeps the script's mode and options
        name = script_backend if settings.backend == "as-script" else settings.backend
        return torch_api.get("lookup_backend")(name)  # type: ignore[no-any-return]

    def _listed(self, context: Any, backend: str, fullgraph: bool, lifted: bool) -> OptimizeContext:
        """The context of ``optimize``; what it is applied to is listed in the report."""

        def compiled(function: Any) -> Any:
            if not self.quiet:
                module = module_of(function)
                name = type(module).__name__ if module is not None else _qualname(function)
                self._agent.guarded(
                    "something compiled is not listed",
                    lambda: self._agent.compiled(
                        name, module is not None, backend=backend, fullgraph=fullgraph, lifted=lifted
                    ),
                )
            return self.recorded(function, context(function))

        return OptimizeContext(context, compiled)

    def recorded(self, function: Any, compiled: Any) -> Any:
        """``compiled``, the compiled form of ``function``; in a trial with its outputs kept, or timed."""
        if self.stopwatch is not None:
            wrap = functools.partial(self.stopwatch.wrap, of=module_of(function))
            return with_calls_wrapped(function, compiled, wrap)
        return (
            compiled
            if self._recorder is None
            else with_calls_wrapped(function, compiled, self._recorder.wrap)
        )

    def outermost_call(self) -> OutermostCall:
        """What answers for every module call of a script that compiles nothing."""
        return OutermostCall(
            in_backward=in_backward,
            wants=self._agent.wants_outermost,
            skips=skipped_by_rule,
            compile_call=self._compile_outermost,
            on_call=self._saw_outermost,
            on_left=self._saw_left,
            on_return=self._agent.start_over_if_due,
        )

    def _compile_outermost(self, call_impl: Any) -> Any:
        self._agent.by_us = True
        self.quiet = True
        try:
            return torch.compile(call_impl, dynamic=self._agent.dynamic)
        finally:
            self._agent.by_us = False
            self.quiet = False

    def _saw_outermost(self, module: Any) -> None:
        name = type(module).__name__
        if name not in self._outermost_seen:
            self._outermost_seen.add(name)
            self._agent.compiled_outermost(name)
        if self._is_layer(type(module)) and (kind := _called_past(sys._getframe(1))) is not None:
            self._saw_past(kind)

    def _saw_past(self, kind: type[torch.nn.Module]) -> None:
        if kind not in self._past_seen:
            self._past_seen.add(kind)
            code = _code_of(kind.forward)
            name, file = f"{kind.__qualname__}.forward", Path(code.co_filename).name if code else ""
            self._agent.note(
                f"{name} is called by that name and not through its module's call, so torch.compile(module)"
                " compiles none of it, and --compile auto only the layers in it: call the module itself, or"
                f" scan with --compile {file}:{name}"
            )

    def _saw_left(self, module: Any) -> None:
        name = type(module).__name__
        if name not in self._left_seen:
            self._left_seen.add(name)
            self._agent.emit(events.LEFT, name=name)

    def _on_region(
        self, compiler: Any, graph_module: Any, example_inputs: Any, ops: int, collectives: list[str]
    ) -> int:
        slot = self._agent.counters.new()
        compile_ = self._frames.current
        reason = getattr(graph_module, "compile_subgraph_reason", None)
        cid = compile_id()
        broke = compile_ is not None and compile_.broke_at is not None
        breaks = bool(getattr(reason, "graph_break", False))
        split = breaks and str(getattr(reason, "reason", "")).startswith(_DDP_SPLIT)
        if split:  # says nothing of how the frame's code ends: all its graphs but the last run into the next
            breaks = broke
        elif breaks and compile_ is not None and not broke:
            # torch 2.9 keeps some breaks to itself; the graph knows why it ends.
            self._agent.guarded(
                "a break without a record was lost",
                lambda: self._handler.break_from_graph(reason, cid, compile_),
            )
        self._agent.emit(
            events.REGION,
            cid=cid,
            slot=slot,
            ops=ops,
            inputs=len(example_inputs),
            breaks=breaks,
            split="ddp" if split else None,
            collectives=collectives,
            site=self._frames.site(compile_),
            frame=None if compile_ is None else frame_fields(compile_.frame.f_code),
        )
        self._note_device(example_inputs)
        self._note_use(compiler, example_inputs)
        return slot

    def _note_use(self, compiler: Any, example_inputs: Any) -> None:
        """How a region is used, for :meth:`calibrate`. A backend of the script's own is not called by us."""
        # torch.compile wraps a function that is given as backend.
        own = getattr(compiler, "compiler_fn", compiler)
        module = getattr(own, "__module__", None) or type(own).__module__
        if module.partition(".")[0] != "torch":
            return
        devices = {device.type for v in example_inputs if (device := getattr(v, "device", None)) is not None}
        learns = any(getattr(value, "requires_grad", False) for value in example_inputs)
        use = "cuda" if "cuda" in devices else "cpu", torch.is_grad_enabled() and learns
        if not self._uses:
            self._agent.saw_first_region()
        number, _ = self._uses.get(use, (0, None))
        self._uses[use] = number + 1, compiler

    def calibrate(self) -> None:
        """Measure what it takes to enter a region as most of the script's are."""
        if not self._uses:
            return
        (device, gradients), (_, compiler) = max(self._uses.items(), key=lambda item: item[1][0])
        found = calibrate(compiler, device, gradients=gradients)
        self._agent.emit(events.CALIBRATION, device=device, gradients=gradients, own=self._own_ns(), **found)

    def _own_ns(self) -> int:
        """What our own wrappers take of a gap."""
        clock = self._agent.clock
        marks = clock.rehearse()
        nothing = torch.fx.GraphModule(torch.nn.Module(), torch.fx.Graph())
        slot = self._agent.counters.new()
        region = RegionBackend(
            lambda _graph, _inputs: _nothing,
            None,
            False,
            lambda *_: slot,
            nullcontext,
            lambda *_: None,
            clock,
        )(nothing, [])
        try:
            return own_ns(region, self._frames.crossings.ticker(slot, 0), marks)
        finally:
            clock.marks = None

    def _note_device(self, example_inputs: Any) -> None:
        for value in example_inputs:
            kind = getattr(getattr(value, "device", None), "type", None)
            if kind is not None and kind not in self._devices:
                self._devices.add(kind)
                module: Any = getattr(torch, kind, None)
                count = module.device_count() if hasattr(module, "device_count") and kind != "cpu" else 1
                named = hasattr(module, "get_device_name") and kind != "cpu"
                name = module.get_device_name() if module is not None and named else kind
                self._agent.guarded(
                    "steps are timed on the host only", functools.partial(self._time_on, kind)
                )
                self._agent.emit(events.DEVICE, type=kind, name=name, count=count)

    def _time_on(self, kind: str) -> None:
        if kind == "cuda":
            from breakscope.inside.capture.cuda_clock import CudaClock

            clock = CudaClock()
            clock.hold(1)  # the first one loads its kernel, which takes as long as many steps
            self._agent.clock.device = clock

    def _on_graph(self) -> None:
        if self._agent.settings.backend != "eager":  # which is done at once
            self._frames.watch.backend_begins()

    def _on_call(self) -> AbstractContextManager[Any]:
        return _Call(self._agent, self._local)


def _nothing() -> None:
    return None


def _called_past(frame: types.FrameType | None) -> type[torch.nn.Module] | None:
    """The class whose ``forward`` calls one of torch's layers, where that was called by its name.

    Its module's own call would be the outermost one.
    """
    while frame is not None and (
        frame.f_code.co_filename.startswith(_HERE) or owner_of(frame.f_code.co_filename, ()) == "torch"
    ):
        frame = frame.f_back
    module = frame.f_locals.get("self") if frame is not None else None
    if frame is None or not isinstance(module, torch.nn.Module):
        return None
    forwards = ((kind, kind.__dict__.get("forward")) for kind in type(module).__mro__)
    return next((kind for kind, forward in forwards if _code_of(forward) is frame.f_code), None)


def _code_of(function: Any) -> types.CodeType | None:
    return getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None


class _Call(AbstractContextManager[None]):
    """Around one call of a compiled function; only the outermost counts."""

    __slots__ = ("_agent", "_local")

    def __init__(self, agent: Agent, local: threading.local) -> None:
        self._agent = agent
        self._local = local

    def __enter__(self) -> None:
        depth = getattr(self._local, "depth", 0)
        self._local.depth = depth + 1
        if depth == 0:
            self._agent.outermost_call_begins()

    def __exit__(self, *error: object) -> None:
        self._local.depth -= 1
        if self._local.depth == 0:
            self._agent.outermost_call_ended()


def _backend_name(backend: Any) -> str:
    name = getattr(backend, "compiler_name", None) or getattr(backend, "__name__", None) or backend
    return str(name)


def _qualname(function: Any) -> str:
    return str(getattr(function, "__qualname__", repr(function)))
