"""What is given to torch.compile, by the script or by us, and the regions that come of it."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from breakscope.inside import events, torch_api
from breakscope.inside.capture.backend import RegionBackend
from breakscope.inside.capture.frames import Frames, frame_fields
from breakscope.inside.capture.outermost import OutermostCall
from breakscope.inside.capture.outputs import OutputRecorder
from breakscope.inside.capture.trace_records import TraceHandler

if TYPE_CHECKING:
    from breakscope.inside.capture.agent import Agent

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
        self._outermost_seen: set[str] = set()
        self.quiet = False  # while we compile on the script's behalf, under the module's name
        self._recorder: OutputRecorder | None = None
        if agent.settings.outputs is not None:
            self._recorder = OutputRecorder(Path(agent.settings.outputs), torch_api.never_compile)

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
            return _Context(real(*args, **kwargs), self._agent, self, "none", fullgraph, lifted)
        wrapped = RegionBackend(
            self._choose_backend(backend), backend, lifted, self._on_region, self._on_call, self._agent.clock
        )
        context = real(wrapped, *args[1:], **kwargs)
        if kwargs.get("disable"):
            return context  # torch.compile(disable=True) compiles nothing
        return _Context(context, self._agent, self, _backend_name(backend), fullgraph, lifted)

    def _choose_backend(self, script_backend: Any) -> Callable[..., Any]:
        settings = self._agent.settings
        if settings.backend == "inductor" and settings.mode is not None:
            return torch_api.get("inductor_wrapper")(settings.mode, None, self._agent.dynamic)  # type: ignore[no-any-return]
        if settings.backend == "inductor" and _backend_name(script_backend) == "inductor":
            return script_backend  # type: ignore[no-any-return]  # keeps the script's mode and options
        name = script_backend if settings.backend == "as-script" else settings.backend
        return torch_api.get("lookup_backend")(name)  # type: ignore[no-any-return]

    def recorded(self, function: Any, compiled: Any) -> Any:
        """``compiled``, the compiled form of ``function``; in a trial, with its outputs kept."""
        if self._recorder is None:
            return compiled
        if not isinstance(compiled, torch.nn.Module):
            return self._recorder.wrap(compiled) if callable(compiled) else compiled
        # OptimizedModule calls its own forward; a module that was not compiled is called through the class.
        name = "forward" if compiled is not function else "_call_impl"
        object.__setattr__(compiled, name, self._recorder.wrap(getattr(compiled, name)))
        return compiled

    def outermost_call(self) -> OutermostCall:
        """What answers for every module call of a script that compiles nothing."""
        return OutermostCall(
            in_backward=torch_api.in_backward,
            wants=self._agent.wants_outermost,
            skips=torch_api.skipped_by_rule,
            compile_call=self._compile_outermost,
            on_call=self._saw_outermost,
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

    def _on_region(self, graph_module: Any, example_inputs: Any, ops: int, collectives: list[str]) -> int:
        slot = self._agent.counters.new()
        compile_ = self._frames.current
        reason = getattr(graph_module, "compile_subgraph_reason", None)
        cid = torch_api.compile_id()
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
            breaks=breaks,
            split="ddp" if split else None,
            collectives=collectives,
            site=self._frames.site(compile_),
            frame=None if compile_ is None else frame_fields(compile_.frame.f_code),
        )
        self._note_device(example_inputs)
        return slot

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

            self._agent.clock.device = CudaClock()

    def _on_call(self) -> AbstractContextManager[Any]:
        return _Call(self._agent, self._local)


class _Context:
    """What ``torch._dynamo.optimize`` returns, told apart by what it is applied to."""

    def __init__(
        self, real: Any, agent: Agent, compiles: Compiles, backend: str, fullgraph: bool, lifted: bool
    ) -> None:
        self._real = real
        self._agent = agent
        self._compiles = compiles
        self._fields = {"backend": backend, "fullgraph": fullgraph, "lifted": lifted}

    def __call__(self, function: Any) -> Any:
        if not self._compiles.quiet:
            owner = getattr(function, "__self__", None)
            module = function if isinstance(function, torch.nn.Module) else owner
            is_module = isinstance(module, torch.nn.Module)
            name = type(module).__name__ if is_module else getattr(function, "__qualname__", repr(function))
            self._agent.guarded(
                "something compiled is not listed",
                lambda: self._agent.compiled(name, is_module, **self._fields),
            )
        return self._compiles.recorded(function, self._real(function))

    def __enter__(self) -> Any:
        return self._real.__enter__()

    def __exit__(self, *error: object) -> Any:
        return self._real.__exit__(*error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


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
