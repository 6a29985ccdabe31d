"""The only folder that touches torch's private API.

Every private name that breakscope uses stands in :data:`ACCESSES`, with the reason, the torch
versions whose spelling is known, and what is lost without it. Nothing is lost in silence: what a
torch version lacks becomes a note in the report (:func:`missing`).

Imports torch; used by the agent inside the user's script and by :func:`breakscope.explain` only.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
from typing import Any

MINIMUM_TORCH = (2, 9)
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
            "run_backward",
            "torch.autograd:_engine_run_backward",
            "each gradient that a script takes begins here, also one that is to be differentiated again",
            "that compiled code cannot be differentiated twice is told only where a run ends with it",
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
            "no_torch_function",
            "torch._C:DisableTorchFunction",
            "modes of the script's own would see that we read a tensor's dtype",
            "of which kind names are at a break is not known",
        ),
        _since_29(
            "hold_device",
            "torch.cuda:_sleep",
            "keeps the device busy in a few steps, so that what it has to do there is timed without pauses",
            "how long the device works in a step is not known where it waits for the host",
        ),
        _since_29(
            "cache_entries",
            "torch._C._dynamo.eval_frame:_debug_get_cache_entry_list",
            "the versions of a code object, with their guards: all that failed in one tells what differed",
            "of each version that did not fit the first guard that failed is known alone",
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
            "Inductor in the mode that --mode names; and it is not loaded where nothing is compiled",
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
