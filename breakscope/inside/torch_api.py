"""The only module that touches torch's private API.

Every private name that breakscope uses stands in :data:`ACCESSES`, with the reason, the torch
versions whose spelling is known, and what is lost without it. Nothing is lost in silence: what a
torch version lacks becomes a note in the report (:func:`missing`).

Imports torch; used by the agent inside the user's script and by :func:`breakscope.explain` only.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from breakscope.diagnose.records import unresumed
from breakscope.inside.capture.recode import asking_first

MINIMUM_TORCH = (2, 9)
_UNITS_OF_AN_ENTRY = 8  # of a line table (CPython, Objects/locations.md)
_ASK = "_breakscope_asks_"  # a global of the module that defines nn.Module
# The logger of an artifact; asked for by name, because importing its module loads Inductor.
CUDAGRAPH_LOG = "torch._inductor.cudagraph_utils.__cudagraphs"
NEWEST_TRIED = (2, 15)


@dataclasses.dataclass(frozen=True, slots=True)
class Access:
    """One private name of torch.

    Attributes:
        paths: ``((first torch version, "module:attribute"), ...)``, oldest first; the newest entry
            that is not newer than the running torch is used.
        reason: what breakscope needs it for.
        fallback: what the report lacks, or what is done instead, where it is not there.
    """

    name: str
    paths: tuple[tuple[tuple[int, int], str], ...]
    reason: str
    fallback: str


def _since_29(name: str, path: str, reason: str, fallback: str) -> Access:
    return Access(name, (((2, 9), path),), reason, fallback)


ACCESSES: dict[str, Access] = {
    access.name: access
    for access in (
        _since_29(
            "trace_log",
            "torch._logging._internal:trace_log",
            "the structured trace logger: the one surface that reports every graph break",
            "no graph breaks or recompiles can be reported",
        ),
        _since_29(
            "optimize",
            "torch._dynamo:optimize",
            "every way to compile ends here: the backend is wrapped, fullgraph lifted, the name noted",
            "compiled functions are not listed and regions are not counted",
        ),
        _since_29(
            "reset",
            "torch._dynamo:reset",
            "Dynamo forgets its skipped frames then, and so must we",
            "calls of skipped frames may be miscounted after torch.compiler.reset()",
        ),
        _since_29(
            "current_compile_id",
            "torch._guards:CompileContext.current_compile_id",
            "ties a region to the compile that made it",
            "regions have no compile id",
        ),
        _since_29(
            "profiler_enabled",
            "torch.autograd:_profiler_enabled",
            "a profiler of the script's own must not be ended by ours",
            "scan --profile does not look inside of gaps",
        ),
        _since_29(
            "glance_start",
            "torch._C._autograd:_enable_profiler_legacy",
            "observes operations and guard checks of one step without loading the profiler's libraries",
            "what guards and eager operations take of a break is not known",
        ),
        _since_29(
            "glance_stop",
            "torch._C._autograd:_disable_profiler_legacy",
            "ends what glance_start began",
            "what guards and eager operations take of a break is not known",
        ),
        _since_29(
            "glance_options",
            "torch._C._profiler:_ExperimentalConfig",
            "glance_start asks for it, and for nothing in it",
            "what guards and eager operations take of a break is not known",
        ),
        _since_29(
            "profiler_prepare",
            "torch.autograd.profiler:_prepare_profiler",
            "every profiler of the script's begins here: ours gives way",
            "what guards and eager operations take of a break is not known",
        ),
        _since_29(
            "profiler_says",
            "torch.autograd.profiler:_set_is_profiler_enabled",
            "Inductor then tells observers of each call of a region and of each launch",
            "what entering a region takes is not scaled to the steps of the script",
        ),
        _since_29(
            "hold_device",
            "torch.cuda:_sleep",
            "keeps the device busy in a few steps, so that what it has to do there is timed without pauses",
            "how long the device works in a step is not known where it waits for the host",
        ),
        _since_29(
            "frame_callback",
            "torch._dynamo.convert_frame:CatchErrorsWrapper.__call__",
            "Dynamo's frame callback: tells which frames it gave up on, and counts their calls",
            "skipped frames are known, their calls are not counted",
        ),
        _since_29(
            "bytecode_hook",
            "torch._dynamo.convert_frame:register_bytecode_hook",
            "compiled code that ends at a break is made to count its runs: these are the crossings",
            "crossings are counted by the region before them: breaks before the first op are not counted",
        ),
        _since_29(
            "transform_code",
            "torch._dynamo.bytecode_transformation:transform_code_object",
            "puts the counting call into compiled code",
            "crossings are counted by the region before them: breaks before the first op are not counted",
        ),
        _since_29(
            "create_instruction",
            "torch._dynamo.bytecode_transformation:create_instruction",
            "puts the counting call into compiled code",
            "crossings are counted by the region before them: breaks before the first op are not counted",
        ),
        _since_29(
            "create_call_function",
            "torch._dynamo.bytecode_transformation:create_call_function",
            "puts the counting call into compiled code",
            "crossings are counted by the region before them: breaks before the first op are not counted",
        ),
        _since_29(
            "guarded_code",
            "torch._dynamo.types:GuardedCode",
            "a frame that Dynamo gave up on runs a copy of its code that counts passes of the site",
            "crossings in skipped frames are calls of the frame",
        ),
        _since_29(
            "guard_manager",
            "torch._dynamo.guards:GuardManagerWrapper",
            "guards that always hold, for that copy",
            "crossings in skipped frames are calls of the frame",
        ),
        _since_29(
            "compile_id_type",
            "torch._guards:CompileId",
            "every code in Dynamo's cache has one",
            "crossings in skipped frames are calls of the frame",
        ),
        _since_29(
            "skip_code",
            "torch._dynamo.eval_frame:skip_code",
            "our own Python frames must not be compiled",
            "frames of breakscope may appear among the compiled ones",
        ),
        _since_29(
            "break_log",
            "torch._dynamo.convert_frame:graph_break_log",
            "a frame that is skipped as a whole reaches the trace logger only while this log is on",
            "some skipped frames are not reported",
        ),
        _since_29(
            "module_call",
            "torch.nn:Module._wrapped_call_impl",
            "--compile auto answers here for every module, without changing one",
            "--compile auto compiles nothing",
        ),
        _since_29(
            "extract_stack",
            "torch._guards:TracingContext.extract_stack",
            "how deep in inlined calls a break is",
            "a break in an inlined helper may be counted twice",
        ),
        _since_29(
            "counters",
            "torch._dynamo.utils:counters",
            "Dynamo's own numbers, to reconcile ours with",
            "no reconciliation with Dynamo's counters",
        ),
        _since_29(
            "config_patch",
            "torch._dynamo.config:patch",
            "a lifted fullgraph=True keeps the two capture flags that it implies",
            "a lifted fullgraph=True may show breaks that it would not have had",
        ),
        _since_29(
            "lookup_backend",
            "torch._dynamo.backends.registry:lookup_backend",
            "turns a backend's name into the backend",
            "only --backend as-script works",
        ),
        _since_29(
            "inductor_wrapper",
            "torch:_TorchCompileInductorWrapper",
            "Inductor in the mode that --mode names",
            "--mode has no effect",
        ),
        _since_29(
            "inductor_config",
            "torch._inductor:config",
            "emulate_precision_casts, fallback_random: Inductor rounds and draws as eager code does",
            "a patch of code in half precision may stay unproved for its rounding alone",
        ),
        _since_29(
            "skipped_by_rule",
            "torch._dynamo.trace_rules:check",
            "tells the modules of torch itself, which Dynamo compiles only inside another frame",
            "--compile auto does not compile a network that is one nn.Sequential",
        ),
        _since_29(
            "tensor_version",
            "torch:Tensor._version",
            "tells whether a call wrote to a tensor that it was given",
            "remedies that copy an argument are not proved",
        ),
        _since_29(
            "entry",
            "torch._dynamo.eval_frame:_TorchDynamoContext.__call__",
            "the frame of its inner function holds the arguments of the outermost compiled call",
            "recompile remedies cannot be placed at a call, and there is no warm-up plan",
        ),
        _since_29(
            "set_stance",
            "torch._dynamo.decorators:_set_stance",
            "under some stances compiled functions run eagerly, without a break or a recompile",
            "calls that a stance of torch.compiler.set_stance lets run eagerly are not told of",
        ),
        _since_29(
            "line_table",
            "torch._dynamo.bytecode_transformation:linetable_311_writer",
            "it writes a change of line twice for long instructions: lines of resumed functions are off",
            "in resumed functions lines may be off behind an expression of several lines",
        ),
        _since_29(
            "create_proxy",
            "torch._dynamo.output_graph:OutputGraph.create_proxy",
            "every op that goes into a graph: the live line counts them, and loops that are unrolled show",
            "the live line does not count ops, and unrolled loops are not found",
        ),
        _since_29(
            "graph_task_id",
            "torch._C:_current_graph_task_id",
            "a module called again by checkpointing inside backward is not an outermost call",
            "activation checkpointing may show modules compiled on their own",
        ),
    )
}


class _Missing:
    """Stands for a name that this torch does not have."""


MISSING = _Missing()


def torch_version() -> tuple[int, int]:
    """(major, minor) of the running torch."""
    import torch

    major, minor = torch.__version__.split("+")[0].split(".")[:2]
    return int(major), int(minor)


@functools.cache
def get(name: str) -> Any:
    """The object that ``ACCESSES[name]`` names in the running torch, or :data:`MISSING`."""
    version = torch_version()
    known = [path for since, path in ACCESSES[name].paths if since <= version]
    if not known:
        return MISSING
    module_name, _, attribute = known[-1].partition(":")
    try:
        found: Any = importlib.import_module(module_name)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        return MISSING
    return found


def available(name: str) -> bool:
    """Whether the running torch has it."""
    return get(name) is not MISSING


def missing() -> list[str]:
    """One sentence for each private name that the running torch lacks. Imports Dynamo."""
    version = ".".join(map(str, torch_version()))
    return [
        f"torch {version} has no {access.paths[-1][1].replace(':', '.')}: {access.fallback}"
        for access in ACCESSES.values()
        if not available(access.name)
    ]


def watch_stances(told: Callable[[str], None]) -> Callable[[], None]:
    """Have ``told`` called with the name of each stance that is set; returns what undoes that."""
    from torch._dynamo import decorators as home

    real = get("set_stance")

    @functools.wraps(real)
    def set_stance(stance: Any) -> Any:
        told(stance.stance)
        return real(stance)

    home._set_stance = set_stance
    return lambda: setattr(home, "_set_stance", real)


# -- what Dynamo is doing right now ------------------------------------------------------------


def compile_id() -> str | None:
    """Dynamo's id of the compile under way, as ``"frame/recompile"``."""
    current = get("current_compile_id")
    found = None if current is MISSING else current()
    return None if found is None else str(found)


@dataclasses.dataclass(frozen=True, slots=True)
class BreakDetails:
    """What the live objects know about a break that its text does not say.

    Attributes:
        position: (line, byte column, end line, end byte column) of the broken expression, lines
            from 1 and columns from 0; None where Dynamo does not know.
        inlined: how many inlined calls deep the break is in the frame being compiled; None if
            not known.
        path: (file, line, function) of the frame being compiled, and of each inlined call to the break. The
            record's text leaves the first one out where an item() or the like broke in an inlined call.
    """

    position: tuple[int, int, int, int] | None
    inlined: int | None
    path: tuple[tuple[str, int, str], ...] = ()


def break_details(file: str, line: int, name: str) -> BreakDetails:
    """Details of the break that Dynamo is reporting to the trace logger at this moment.

    Args:
        file: file of the innermost user frame, as the record's text gives it.
        line: its line; torch's own log is off by some lines now and then.
        name: its function, a resume function under the name of what it resumes.
    """
    error = sys.exc_info()[1]
    translators = list(_translators(error))
    positions = (_position(translator, file, line) for translator in translators)
    position = next(filter(None, positions), None)
    stack = _real_stack(error)
    if position is None and stack:
        position = _summary_position(stack[-1], file, line)
    if position is None:
        own = (one for one in translators if unresumed(one.f_code.co_name) == name)
        position = next(filter(None, (_position(one, file, None) for one in own)), None)
    path = tuple((one.filename, one.lineno, unresumed(one.name)) for one in stack or ())
    return BreakDetails(position, None if stack is None else max(len(stack) - 1, 0), path)


def _translators(error: BaseException | None) -> Iterator[Any]:
    """Dynamo's instruction translators at work, innermost inlined call first.

    They are the ``self`` of frames: of those that the exception went through (an inlined callee is
    gone from the stack by the time its caller reports the break), then of those still running.
    """
    seen: set[int] = set()
    chain: list[BaseException] = []
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        chain.append(error)
        error = error.__cause__ or error.__context__
    for link in reversed(chain):
        frames = []
        traceback = link.__traceback__
        while traceback is not None:
            frames.append(traceback.tb_frame)
            traceback = traceback.tb_next
        for frame in reversed(frames):
            yield from _translator_of(frame)
    running: types.FrameType | None = sys._getframe(1)
    while running is not None:
        yield from _translator_of(running)
        running = running.f_back


def _translator_of(frame: types.FrameType) -> Iterator[Any]:
    if not frame.f_code.co_filename.endswith("symbolic_convert.py"):
        return
    translator = frame.f_locals.get("self")
    if hasattr(translator, "current_instruction") and hasattr(translator, "f_code"):
        yield translator


def _position(translator: Any, file: str, line: int | None) -> tuple[int, int, int, int] | None:
    positions = getattr(translator.current_instruction, "positions", None)
    if positions is None or translator.f_code.co_filename != file:
        return None
    start, column, end, end_column = (
        positions.lineno,
        positions.col_offset,
        positions.end_lineno,
        positions.end_col_offset,
    )
    if None in (start, column, end, end_column) or (line is not None and not start <= line <= end):
        return None
    return start, column, end, end_column


def _summary_position(summary: Any, file: str, line: int) -> tuple[int, int, int, int] | None:
    column, end_column = getattr(summary, "colno", None), getattr(summary, "end_colno", None)
    if summary.filename != file or summary.lineno != line or column is None or end_column is None:
        return None
    end_line = getattr(summary, "end_lineno", None) or line
    return line, column, end_line, end_column


def _real_stack(error: BaseException | None) -> list[Any] | None:
    stack = getattr(error, "real_stack", None)
    if stack is None and available("extract_stack"):
        stack = get("extract_stack")()
    return None if stack is None else list(stack)


def writes(tensor: Any) -> int | None:
    """How often a tensor was written to; None where torch does not count."""
    # Tensors of inference mode have no counter.
    return tensor._version if available("tensor_version") and not tensor.is_inference() else None


@dataclasses.dataclass(frozen=True, slots=True)
class EntryCall:
    """The outermost compiled call that is under way in this thread.

    Attributes:
        function: what was compiled. frame: where Dynamo was entered; its callers are the script's.
    """

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    frame: types.FrameType


def entry_call() -> EntryCall | None:
    """The call by which this thread entered compiled code; None if it did not, or torch hides it."""
    code = _entry_code()
    frame: types.FrameType | None = sys._getframe(1)
    found = None
    while frame is not None and code is not None:
        if frame.f_code is code:
            found = frame
        frame = frame.f_back
    if found is None:
        return None
    local = found.f_locals
    return EntryCall(local.get("fn"), tuple(local["args"]), dict(local["kwargs"]), found)


@functools.cache
def _entry_code() -> types.CodeType | None:
    outer = getattr(get("entry"), "__code__", None)
    inner = (item for item in outer.co_consts if isinstance(item, types.CodeType)) if outer else ()
    return next(
        (
            code
            for code in inner
            if {"args", "kwargs"} <= set(code.co_varnames[:2])
            and "fn" in code.co_freevars
            and code.co_name == "compile_wrapper"
        ),
        None,
    )


# -- hooks: each returns what takes it out again ---------------------------------------------------


def answer_module_calls(answer: Callable[[Any], Callable[..., Any] | None]) -> Callable[[], None]:
    """Have every call of an ``nn.Module`` ask what to call instead of its ``_call_impl``.

    It is the code of ``nn.Module._wrapped_call_impl`` that asks, and the function stays the one that Dynamo
    knows: a module's call is inlined as before, under the same guards.
    """
    import torch

    function = torch.nn.Module._wrapped_call_impl
    original, namespace = function.__code__, function.__globals__
    before = namespace.get(_ASK)
    namespace[_ASK] = answer
    function.__code__ = asking_first(function, _ASK)

    def undo() -> None:
        function.__code__ = original
        if before is None:
            del namespace[_ASK]
        else:
            namespace[_ASK] = before

    return undo


def replace_entry_points(optimize: Callable[..., Any], reset: Callable[[], None]) -> Callable[[], None]:
    """Put functions in the place of ``torch._dynamo.optimize`` and ``torch._dynamo.reset``."""
    import torch._dynamo as dynamo

    real, real_reset = get("optimize"), get("reset")
    dynamo.optimize, dynamo.reset = optimize, reset

    def undo() -> None:
        dynamo.optimize, dynamo.reset = real, real_reset

    return undo


def replace_frame_callback(callback: Callable[..., Any]) -> Callable[[], None]:
    """Put a function in the place of Dynamo's callback for each frame that it meets."""
    from torch._dynamo.convert_frame import CatchErrorsWrapper

    real = get("frame_callback")
    CatchErrorsWrapper.__call__ = callback

    def undo() -> None:
        CatchErrorsWrapper.__call__ = real

    return undo


def write_lines_once() -> Callable[[], None]:
    """Have Dynamo write right lines into the code that it makes; returns what undoes that.

    An instruction of more than eight code units takes several entries of a line table, and torch (seen in
    2.13) gives each of them the whole change of line. All that follows in the function is then off by it: in
    torch's own log, in tracebacks, and in the positions that a break in a resumed function is told by.
    """
    from torch._dynamo import bytecode_transformation as home

    real = get("line_table")

    def write_lines(first_line: int) -> tuple[list[int], Callable[[Any, int], None]]:
        table, write = real(first_line)

        def write_in_parts(positions: Any, units: int) -> None:
            while units > _UNITS_OF_AN_ENTRY:
                write(positions, _UNITS_OF_AN_ENTRY)
                units -= _UNITS_OF_AN_ENTRY
            write(positions, units)  # its line is the present one by now: no change

        return table, write_in_parts

    home.linetable_311_writer = write_lines
    return lambda: setattr(home, "linetable_311_writer", real)


def forget_everything() -> None:
    """Empty Dynamo's caches and counters."""
    import torch._dynamo

    torch._dynamo.reset()
    counters = get("counters")
    if counters is not MISSING:
        counters.clear()


def in_backward() -> bool:
    """Whether autograd is running backward in this thread."""
    task_id = get("graph_task_id")
    return task_id is not MISSING and task_id() != -1


def skipped_by_rule(function: Any) -> bool:
    """Whether Dynamo refuses to compile a function as a frame of its own."""
    check = get("skipped_by_rule")
    return check is not MISSING and bool(check(function))


def never_compile(code: types.CodeType) -> None:
    """Keep Dynamo from compiling a code object of ours."""
    skip_code = get("skip_code")
    if skip_code is not MISSING:
        skip_code(code)


def counted() -> dict[str, int]:
    """Dynamo's counters that ours can be held against."""
    counters = get("counters")
    if counters is MISSING:
        return {}
    return {
        "counters.graph_break": sum(counters["graph_break"].values()),
        "counters.unique_graphs": counters["stats"]["unique_graphs"],
        "counters.frames_total": counters["frames"]["total"],
        "counters.frames_ok": counters["frames"]["ok"],
    }


def count_ops(took_op: Callable[[Any], None]) -> Callable[[], None]:
    """Have ``took_op`` told of each op that Dynamo is about to put into a graph. Returns what undoes it."""
    from torch._dynamo.output_graph import OutputGraph

    real = get("create_proxy")

    def create_proxy(output: Any, kind: str, *args: Any, **kwargs: Any) -> Any:
        if kind.startswith("call_"):
            took_op(output)
        return real(output, kind, *args, **kwargs)

    OutputGraph.create_proxy = create_proxy

    def undo() -> None:
        OutputGraph.create_proxy = real

    return undo


def translators(innermost: Any) -> list[Any]:
    """Dynamo's translators of the calls that are under way, the outermost first."""
    found = [innermost]
    while (outer := getattr(found[-1], "parent", None)) is not None:
        found.append(outer)
    return found[::-1]


def innermost_backend(callback: Any) -> Any:
    """The backend under Dynamo's layers of callbacks."""
    while hasattr(callback, "_torchdynamo_orig_backend"):
        callback = callback._torchdynamo_orig_backend
    return callback


def answer_with_counts(
    answer: Any,
    code: types.CodeType,
    entering: Callable[[], object],
    position: tuple[int, ...],
    passing: Callable[[], object],
) -> Any:
    """Dynamo's answer for a frame that it gave up on, with a copy of its code that counts.

    Args:
        answer: what Dynamo answered.
        entering: called each time the frame runs.
        position: (line, column, end line, end column) of an expression, or (line,); passing: called each
            time that is evaluated.

    Returns:
        None where that cannot be: a generator is resumed in the middle, a module's code has no fast locals,
        or the answer holds for what the frame calls, too.
    """
    strategy = answer.frame_exec_strategy
    if code.co_flags & _RESUMABLE or not code.co_flags & inspect.CO_OPTIMIZED:
        return None
    if strategy.recursive_action.name != "DEFAULT":
        return None
    if not all(map(available, ("guarded_code", "guard_manager", "compile_id_type"))):
        return None
    copy = _counting(code, entering, position, passing)
    if copy is None:
        return None
    # The frame's own action: run the code of the cache. DEFAULT is what is done with what it calls already.
    again = type(strategy)(strategy.recursive_action, strategy.recursive_action)
    number = get("compile_id_type")(frame_id=0, frame_compile_id=0)
    kept = get("guarded_code")(copy, get("guard_manager")(), number)
    return dataclasses.replace(
        answer, frame_exec_strategy=again, apply_to_code=False, guarded_code=kept, skip_reason=None
    )


_RESUMABLE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def _counting(
    code: types.CodeType,
    entering: Callable[[], object],
    position: tuple[int, ...],
    passing: Callable[[], object],
) -> types.CodeType | None:
    """``code`` with a call in front, and one before the first instruction of an expression."""
    found = False

    def insert(instructions: list[Any], _options: dict[str, Any]) -> None:
        nonlocal found
        at = next((n for n, one in enumerate(instructions) if _is_part(one, position)), None)
        if at is not None:
            found = True
            target, call = instructions[at], _call_of(passing)
            for one in instructions:  # who jumps there counts as well
                if one.target is target:
                    one.target = call[0]
            instructions[at:at] = call
        names = [instruction.opname for instruction in instructions]
        start = names.index("RESUME") + 1 if "RESUME" in names else 0
        instructions[start:start] = _call_of(entering)

    copy = _transform(code, insert, entering, passing)
    return copy if found else None


def _is_part(instruction: Any, position: tuple[int, ...]) -> bool:
    at = instruction.positions
    if at is None or None in (at.lineno, at.col_offset, at.end_lineno, at.end_col_offset):
        return False
    if instruction.opname in ("RESUME", "COPY_FREE_VARS", "MAKE_CELL"):
        return False
    if len(position) == 1:
        return bool(at.lineno == position[0])
    line, column, end, end_column = position
    begins_inside = (line, column) <= (at.lineno, at.col_offset)
    return bool(begins_inside and (at.end_lineno, at.end_col_offset) <= (end, end_column))


def count_runs(code: types.CodeType, tick: Callable[[], object]) -> types.CodeType:
    """``code`` with a call of ``tick`` in front.

    ``code`` is bytecode that Dynamo generated; it is run, never traced.
    """

    def insert(instructions: list[Any], _options: dict[str, Any]) -> None:
        names = [instruction.opname for instruction in instructions]
        start = names.index("RESUME") + 1 if "RESUME" in names else 0
        instructions[start:start] = _call_of(tick)

    return _transform(code, insert, tick)


def _call_of(tick: Callable[[], object]) -> list[Any]:
    create_instruction, create_call_function = get("create_instruction"), get("create_call_function")
    load = create_instruction("LOAD_CONST", argval=tick)
    return [*_push_null_and(load, create_call_function), create_instruction("POP_TOP")]


def _push_null_and(load: Any, create_call_function: Callable[..., list[Any]]) -> list[Any]:
    # With push_null the helper emits what this Python needs around the callable (3.11-3.14 differ).
    call = create_call_function(0, push_null=True)
    null = [instruction for instruction in call if instruction.opname == "PUSH_NULL"]
    rest = [instruction for instruction in call if instruction.opname not in ("PUSH_NULL", "SWAP", "ROT_TWO")]
    # 3.13 changed the order from (NULL, callable) to (callable, NULL).
    return [load, *null, *rest] if sys.version_info >= (3, 13) else [*null, load, *rest]


def _transform(code: types.CodeType, insert: Callable[..., None], *called: object) -> types.CodeType:
    # torch keeps transformed code by its hash, which covers its constants; Dynamo puts dicts among them.
    stand_ins: dict[int, object] = {}
    constants = []
    for item in code.co_consts:
        hashable = item if _is_hashable(item) else object()
        if hashable is not item:
            stand_ins[id(hashable)] = item
        constants.append(hashable)
    transformed = get("transform_code")(code.replace(co_consts=tuple(constants)), insert)
    # torch returns (code, tracer output) since 2.9; earlier builds returned the code alone.
    new_code = transformed[0] if isinstance(transformed, tuple) else transformed
    if not isinstance(new_code, types.CodeType):
        raise TypeError("transform_code_object returned no code object")
    if not any(item is called[0] for item in new_code.co_consts):
        raise TypeError("the counting call did not reach the compiled code")
    return new_code.replace(co_consts=tuple(stand_ins.get(id(item), item) for item in new_code.co_consts))


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
