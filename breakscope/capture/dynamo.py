"""The hooks in torch: what Dynamo reports, what it compiles, how often that runs.

Imported by the agent once the script has imported torch.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
import traceback
import types
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import torch

from breakscope.capture import compat, events, live_values
from breakscope.capture.backend import RegionBackend
from breakscope.capture.crossings import RESUMED, Crossings, SiteKey
from breakscope.capture.outermost import OutermostCall
from breakscope.diagnose import guards, records
from breakscope.diagnose.collect import is_limit

if TYPE_CHECKING:
    from breakscope.capture.agent import Agent

METRIC_FIELDS = (
    "co_name",
    "co_filename",
    "co_firstlineno",
    "cache_size",
    "graph_op_count",
    "fail_type",
    "fail_reason",
    "fail_user_frame_filename",
    "fail_user_frame_lineno",
    "restart_reasons",
    "recompile_reason",
    "cudagraph_skip_reason",
    "is_forward",
    "start_time_us",
    "duration_us",
    "dynamo_cumulative_compile_time_us",
    "aot_autograd_cumulative_compile_time_us",
    "inductor_cumulative_compile_time_us",
    "triton_compile_time_us",
    "guard_latency_us",
)


@dataclasses.dataclass(slots=True)
class _Compile:
    """One frame in Dynamo's hands.

    Attributes:
        broke_at: the site at which the latest attempt ended, and how many inlined calls away it is.
        metrics: Dynamo's metrics of this compile, once it is over.
    """

    frame: Any
    broke_at: tuple[SiteKey, int] | None = None
    metrics: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(slots=True)
class _Skipped:
    """A frame that Dynamo gave up on: its answer, kept so that each call can be counted."""

    code: types.CodeType  # held: ids of dead code objects are used again
    answer: Any
    slot: int
    tick: Callable[[], None]


class TorchHooks:
    """Everything that is hooked in torch, for one agent."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self._crossings = Crossings(agent.counters, compat.never_compile)
        self._local = threading.local()
        self._skipped: dict[int, _Skipped] = {}
        self._undo: list[Callable[[], None]] = []
        self._devices: set[str] = set()
        self._dynamo_ready = False
        self._outermost_seen: set[str] = set()
        self.quiet = False

    # -- installing ------------------------------------------------------------------------------

    def install(self) -> None:
        """Hook what ``import torch`` brought. Dynamo itself may never be loaded."""
        agent = self.agent
        agent.emit(events.TORCH, version=torch.__version__, triton=_version_of("triton"))
        agent.guarded("Dynamo's records cannot be read", self._listen)
        agent.guarded("optimizer steps are not counted", self._count_optimizer_steps)
        if agent.settings.compile == "auto":
            agent.guarded("--compile auto compiles nothing", self._answer_outermost_calls)

    def _listen(self) -> None:
        log = compat.get("trace_log")
        handler = _Handler(self)
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
        agent = self.agent

        def stepped(optimizer: Any, _args: Any, _kwargs: Any) -> None:
            # A compiled optimizer step is traced through here, and must not be changed by it.
            if torch.compiler.is_compiling():
                return
            agent.optimizer_stepped(optimizer)

        from torch.optim.optimizer import register_optimizer_step_post_hook

        self._undo.append(register_optimizer_step_post_hook(stepped).remove)

    def _answer_outermost_calls(self) -> None:
        if not compat.available("module_call"):
            return
        outermost = OutermostCall(
            in_backward=compat.in_backward,
            wants=self.agent.wants_outermost,
            skips=compat.skipped_by_rule,
            compile_call=self._compile_outermost,
            on_call=self._saw_outermost,
            caller=compat.module_call_code(),
        )
        self._undo.append(compat.answer_module_calls(outermost))

    def _compile_outermost(self, call_impl: Any) -> Any:
        self.agent.by_us = True
        self.quiet = True
        try:
            return torch.compile(call_impl, dynamic=self.agent.dynamic)
        finally:
            self.agent.by_us = False
            self.quiet = False

    def _saw_outermost(self, module: Any) -> None:
        name = type(module).__name__
        if name not in self._outermost_seen:
            self._outermost_seen.add(name)
            self.agent.emit(events.COMPILED, name=name, by="breakscope")

    def install_dynamo(self) -> None:
        """Hook Dynamo, which has just been loaded."""
        if self._dynamo_ready:
            return
        self._dynamo_ready = True
        for sentence in compat.missing():
            self.agent.note(sentence)
        version = compat.torch_version()
        if version > compat.NEWEST_TRIED:
            self.agent.note(f"torch {torch.__version__} is newer than any that breakscope was tried on")
        for what, hook in (
            ("what is compiled is not known", self._hook_optimize),
            ("skipped frames are not counted", self._hook_callback),
            ("crossings are not counted", self._hook_bytecode),
            ("some skipped frames are not reported", self._open_break_log),
            ("our own frames may be compiled", self._hide_our_frames),
        ):
            self.agent.guarded(what, hook)

    def _hide_our_frames(self) -> None:
        compat.never_compile(OutermostCall.__get__.__code__)

    def _open_break_log(self) -> None:
        """Have whole-frame skips reported without having them printed."""
        log = compat.get("break_log")
        if log is compat.MISSING or log.isEnabledFor(logging.DEBUG):
            return
        level = log.level
        log.setLevel(logging.DEBUG)
        log.addFilter(_drop)

        def undo() -> None:
            log.setLevel(level)
            log.removeFilter(_drop)

        self._undo.append(undo)

    def _hook_optimize(self) -> None:
        real, real_reset = compat.get("optimize"), compat.get("reset")

        def optimize(*args: Any, **kwargs: Any) -> Any:
            return self._optimize(real, *args, **kwargs)

        def reset() -> None:
            self._skipped.clear()
            real_reset()

        optimize.__wrapped__ = real  # type: ignore[attr-defined]
        self._undo.append(compat.replace_entry_points(optimize, reset))

    def _hook_callback(self) -> None:
        real = compat.get("frame_callback")
        if real is compat.MISSING:
            return
        hooks = self

        def callback(wrapper: Any, frame: Any, cache_entry: Any, frame_state: Any) -> Any:
            skipped = hooks._skipped.get(id(frame.f_code))
            if skipped is not None:
                hooks.agent.counters.slots[skipped.slot] += 1
                skipped.tick()
                return skipped.answer
            return hooks._convert(real, wrapper, frame, cache_entry, frame_state)

        self._undo.append(compat.replace_frame_callback(callback))

    def _hook_bytecode(self) -> None:
        register = compat.get("bytecode_hook")
        if register is not compat.MISSING:
            self._undo.append(register(self._on_bytecode).remove)

    def uninstall(self) -> None:
        """Take every hook out again, the latest first."""
        while self._undo:
            self._undo.pop()()

    # -- compiling -------------------------------------------------------------------------------

    def _optimize(self, real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """``torch._dynamo.optimize`` with our backend around the chosen one."""
        settings = self.agent.settings
        backend = args[0] if args else kwargs.pop("backend", "inductor")
        fullgraph = bool(kwargs.get("nopython", False))
        lifted = fullgraph and not settings.keep_fullgraph
        if lifted:
            kwargs["nopython"] = False
        if settings.dynamic != "auto":
            kwargs["dynamic"] = self.agent.dynamic
        wrapped = RegionBackend(
            self._choose_backend(backend), backend, lifted, self._on_region, self._on_call
        )
        context = real(wrapped, *args[1:], **kwargs)
        if kwargs.get("disable"):
            return context  # torch.compile(disable=True) compiles nothing
        return _Context(context, self.agent, self, _backend_name(backend), fullgraph, lifted)

    def _choose_backend(self, script_backend: Any) -> Callable[..., Any]:
        settings = self.agent.settings
        if settings.backend == "inductor" and settings.mode is not None:
            return compat.get("inductor_wrapper")(settings.mode, None, self.agent.dynamic)  # type: ignore[no-any-return]
        if settings.backend == "inductor" and _backend_name(script_backend) == "inductor":
            return script_backend  # type: ignore[no-any-return]  # keeps the script's mode and options
        name = script_backend if settings.backend == "as-script" else settings.backend
        return compat.get("lookup_backend")(name)  # type: ignore[no-any-return]

    def _convert(self, real: Any, wrapper: Any, frame: Any, cache_entry: Any, frame_state: Any) -> Any:
        """Dynamo's callback for one frame."""
        compile_ = _Compile(frame)
        outer = getattr(self._local, "compile", None)
        self._local.compile = compile_
        backend = compat.innermost_backend(wrapper)
        try:
            with self._capture_flags(isinstance(backend, RegionBackend) and backend.lifted):
                answer = real(wrapper, frame, cache_entry, frame_state)
        finally:
            self._local.compile = outer
        if getattr(answer, "guarded_code", None) is None:
            kept = self.agent.guarded(
                "calls of a skipped frame are not counted",
                lambda: self._gave_up(compile_, answer),
            )
            return kept or answer
        return answer

    def _capture_flags(self, wanted: bool) -> AbstractContextManager[Any]:
        # fullgraph=True implies them; without them a lifted one would break where the script did not.
        if not wanted or not compat.available("config_patch"):
            return nullcontext()
        flags = {"capture_scalar_outputs": True, "capture_dynamic_output_shape_ops": True}
        return compat.get("config_patch")(flags)  # type: ignore[no-any-return]

    def _gave_up(self, compile_: _Compile, answer: Any) -> Any:
        """Dynamo returned no code for a frame: because of a break, of the limit, or by design."""
        at_limit = is_limit(compile_.metrics)
        if compile_.broke_at is None and not at_limit:
            return None
        code = compile_.frame.f_code
        slot = self.agent.counters.new()
        site = counting = depth = None
        tick: Callable[[], None] = _nothing
        if compile_.broke_at is not None and not at_limit:
            key, depth = compile_.broke_at
            site, counting = self._crossings.slot(key, 0), self._crossings.slot(key, depth, given_up=True)
            resumed = records.is_resume(code.co_name) and depth == 0
            tick = self._crossings.ticker(counting, RESUMED if resumed else depth)
        self.agent.emit(
            events.SKIP,
            limit=at_limit,
            slot=slot,
            site=site,
            counting=counting,
            depth=depth,
            frame=_frame_fields(code),
            why=compile_.metrics.get("fail_reason") if at_limit else None,
        )
        # Not applied to the code object: Dynamo then asks again at each call, and we can count.
        kept = dataclasses.replace(answer, apply_to_code=False)
        self._skipped[id(code)] = _Skipped(code, kept, slot, tick)
        self.agent.counters.slots[slot] += 1
        tick()
        return kept

    def _on_bytecode(self, original: types.CodeType, generated: types.CodeType) -> types.CodeType | None:
        compile_ = getattr(self._local, "compile", None)
        if compile_ is None or compile_.broke_at is None:
            return None
        key, depth = compile_.broke_at
        tick = self._crossings.ticker(self._crossings.slot(key, depth), depth)
        counted: types.CodeType | None = self.agent.guarded(
            f"crossings in {original.co_name} are not counted",
            lambda: compat.count_runs(generated, tick),
        )
        return counted

    def _on_region(self, graph_module: Any, example_inputs: Any, ops: int) -> Callable[[], None]:
        slot = self.agent.counters.new()
        counters = self.agent.counters
        compile_ = getattr(self._local, "compile", None)
        reason = getattr(graph_module, "compile_subgraph_reason", None)
        cid = compat.compile_id()
        if compile_ is not None and compile_.broke_at is None and getattr(reason, "graph_break", False):
            # torch 2.9 keeps some breaks to itself; the graph knows why it ends.
            self.agent.guarded(
                "a break without a record was lost", lambda: self._break_from_graph(reason, cid, compile_)
            )
        self.agent.emit(
            events.REGION,
            cid=cid,
            slot=slot,
            ops=ops,
            breaks=bool(getattr(reason, "graph_break", False)),
            site=self._site(compile_),
            frame=None if compile_ is None else _frame_fields(compile_.frame.f_code),
        )
        self._note_device(example_inputs)

        def ran() -> None:
            counters.slots[slot] += 1

        return ran

    def _site(self, compile_: _Compile | None) -> int | None:
        """The slot of the site at which a compile ended."""
        if compile_ is None or compile_.broke_at is None:
            return None
        return self._crossings.slot(compile_.broke_at[0], 0)

    def _break_from_graph(self, reason: Any, cid: str | None, compile_: _Compile) -> None:
        """Report a break by what ``torch._dynamo.explain`` reads: the reason that a graph carries."""
        stack = list(reason.user_stack)
        if not stack:
            return
        at = stack[-1]
        text = (
            f"Graph break in user code at {at.filename}:{at.lineno}\nGraph Break Reason: {reason.reason}\n"
            f"\nUser code traceback:\n{''.join(traceback.format_list(stack))}"
        )
        self._report_break(text, cid, None, compile_, inlined=len(stack) - 1)

    def _note_device(self, example_inputs: Any) -> None:
        for value in example_inputs:
            kind = getattr(getattr(value, "device", None), "type", None)
            if kind is not None and kind not in self._devices:
                self._devices.add(kind)
                module: Any = getattr(torch, kind, None)
                count = module.device_count() if hasattr(module, "device_count") and kind != "cpu" else 1
                named = hasattr(module, "get_device_name") and kind != "cpu"
                name = module.get_device_name() if module is not None and named else kind
                self.agent.emit(events.DEVICE, type=kind, name=name, count=count)

    def _on_call(self) -> AbstractContextManager[Any]:
        return _Call(self.agent, self._local)

    # -- what Dynamo reports ---------------------------------------------------------------------

    def on_record(self, record: logging.LogRecord) -> None:
        """One record of the structured trace."""
        metadata: dict[str, Any] = record.metadata  # type: ignore[attr-defined]
        if "compilation_metrics" in metadata:
            self._on_metrics(metadata)
            return
        name = metadata["artifact"].get("name") if "artifact" in metadata else None
        if name == "dynamo_graph_break_reason":
            self._on_break(metadata, str(record.payload))  # type: ignore[attr-defined]
        elif name == "recompile_reasons":
            self._on_recompile(metadata, record.payload)  # type: ignore[attr-defined]
        elif name == "dynamo_error":
            self.agent.emit(events.ERROR, cid=_cid(metadata), payload=str(record.payload))  # type: ignore[attr-defined]

    def _on_break(self, metadata: dict[str, Any], payload: str) -> None:
        compile_ = getattr(self._local, "compile", None)
        self._report_break(payload, _cid(metadata), metadata.get("attempt"), compile_)

    def _report_break(
        self,
        payload: str,
        cid: str | None,
        attempt: int | None,
        compile_: _Compile | None,
        inlined: int | None = None,
    ) -> None:
        record = records.parse_break(payload)
        location = record.location
        fields: dict[str, Any] = {}
        if location is not None:
            details = compat.break_details(location.file, location.line)
            key = (location.file, *(details.position or (location.line,)))
            depth = details.inlined if inlined is None else inlined
            if compile_ is not None:
                depth = _depth(record.frames, compile_.frame.f_code, depth)
            own, counting = self._crossings.slot(key, 0), self._crossings.slot(key, depth or 0)
            fields = {"position": details.position, "inlined": depth, "site": own, "counting": counting}
            if compile_ is not None:
                compile_.broke_at = (key, depth or 0)
        frame = None if compile_ is None else _frame_fields(compile_.frame.f_code)
        self.agent.emit(events.GRAPH_BREAK, cid=cid, attempt=attempt, payload=payload, frame=frame, **fields)

    def _on_recompile(self, metadata: dict[str, Any], payload: Any) -> None:
        compile_ = getattr(self._local, "compile", None)
        values: dict[str, str] = {}
        frame = None
        if compile_ is not None:
            frame = _frame_fields(compile_.frame.f_code)
            for failure in guards.parse_reasons(payload):
                values.update(live_values.read(guards.guard_sources(failure.expression), compile_.frame))
        self.agent.emit(events.RECOMPILE, cid=_cid(metadata), payload=payload, frame=frame, values=values)

    def _on_metrics(self, metadata: dict[str, Any]) -> None:
        metrics = metadata["compilation_metrics"]
        compile_ = getattr(self._local, "compile", None)
        if compile_ is not None:
            compile_.metrics = metrics
        fields = {key: metrics[key] for key in METRIC_FIELDS if metrics.get(key) is not None}
        if isinstance(fields.get("restart_reasons"), set | frozenset):
            fields["restart_reasons"] = sorted(fields["restart_reasons"])
        frame = None if compile_ is None else _frame_fields(compile_.frame.f_code)
        self.agent.emit(
            events.METRICS, cid=_cid(metadata), metrics=fields, frame=frame, counters=compat.counted()
        )

    def finish(self) -> None:
        """The script is over: Dynamo's numbers as they ended."""
        if self._dynamo_ready:
            self.agent.emit(events.COUNTERS, counters=compat.counted())


class _Handler(logging.Handler):
    """Takes the structured trace while Dynamo is in the act, so that its live objects can be asked."""

    def __init__(self, hooks: TorchHooks) -> None:
        super().__init__(logging.DEBUG)
        self._hooks = hooks

    def emit(self, record: logging.LogRecord) -> None:
        hooks = self._hooks
        if hasattr(record, "metadata"):
            hooks.agent.guarded("a record of Dynamo's was lost", lambda: hooks.on_record(record))


class _Context:
    """What ``torch._dynamo.optimize`` returns, told apart by what it is applied to."""

    def __init__(
        self, real: Any, agent: Agent, hooks: TorchHooks, backend: str, fullgraph: bool, lifted: bool
    ) -> None:
        self._real = real
        self._agent = agent
        self._hooks = hooks
        self._fields = {"backend": backend, "fullgraph": fullgraph, "lifted": lifted}

    def __call__(self, function: Any) -> Any:
        if not self._hooks.quiet:
            owner = getattr(function, "__self__", None)
            module = function if isinstance(function, torch.nn.Module) else owner
            is_module = isinstance(module, torch.nn.Module)
            name = type(module).__name__ if is_module else getattr(function, "__qualname__", repr(function))
            self._agent.guarded(
                "something compiled is not listed",
                lambda: self._agent.compiled(name, is_module, **self._fields),
            )
        return self._real(function)

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
        self._local.depth = getattr(self._local, "depth", 0) + 1

    def __exit__(self, *error: object) -> None:
        self._local.depth -= 1
        if self._local.depth == 0:
            self._agent.outermost_call_ended()


def _drop(_record: logging.LogRecord) -> bool:
    return False


def _nothing() -> None:
    return None


def _depth(frames: Sequence[records.RawFrame], code: types.CodeType, said: int | None) -> int:
    """How many inlined calls lie between a frame and the innermost of a call path.

    Args:
        said: what Dynamo's exception says; some lose their inner frames on the way out.
    """
    name = records.unresumed(code.co_name)
    for away, frame in enumerate(reversed(frames)):
        if (frame.file, frame.name) == (code.co_filename, name):
            return max(away, said or 0)
    return said or 0


def _cid(metadata: dict[str, Any]) -> str | None:
    frame, recompile = metadata.get("frame_id"), metadata.get("frame_compile_id")
    return None if frame is None else f"{frame}/{recompile}"


def _frame_fields(code: types.CodeType) -> dict[str, Any]:
    return {
        "file": code.co_filename,
        "name": code.co_name,
        "qualname": code.co_qualname,
        "line": code.co_firstlineno,
    }


def _backend_name(backend: Any) -> str:
    name = getattr(backend, "compiler_name", None) or getattr(backend, "__name__", None) or backend
    return str(name)


def _version_of(distribution: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
