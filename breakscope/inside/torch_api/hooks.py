"""Hooks on Dynamo and on modules, each of which returns what takes it out; what Dynamo is to leave alone."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

from breakscope.inside.capture.recode import asking_first
from breakscope.inside.torch_api import MISSING, get

_ASK = "_breakscope_asks_"  # a global of the module that defines nn.Module
_UNITS_OF_AN_ENTRY = 8  # of a line table (CPython, Objects/locations.md)


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


def watch_gradients(differentiable: Callable[[], None]) -> Callable[[], None]:
    """Have ``differentiable`` called where a gradient is taken with ``create_graph=True``, in eager code."""
    import torch.autograd as home

    real = get("run_backward")

    def run_backward(*arguments: Any, **options: Any) -> Any:
        # Behind the outputs, their gradients, and whether the graph is kept.
        if options.get("create_graph") or arguments[3:4] == (True,):
            differentiable()
        return real(*arguments, **options)

    never_compile(run_backward.__code__)
    home._engine_run_backward = run_backward

    def undo() -> None:
        home._engine_run_backward = real

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


def leave_inductor_alone() -> None:
    """Have torch.compile ask Inductor's settings for its configuration, and not load its compiler for that.

    Where nothing is compiled, that is the only use of it, and loading it takes a second or more.
    """
    wrapper = get("inductor_wrapper")
    if not hasattr(wrapper, "get_compiler_config"):
        return

    def get_compiler_config(self: Any) -> Any:
        from torch._inductor import config

        with config.patch(self.config):
            return config.get_config_copy()

    wrapper.get_compiler_config = get_compiler_config


def forget_everything() -> None:
    """Empty Dynamo's caches and counters."""
    import torch._dynamo

    torch._dynamo.reset()
    counters = get("counters")
    if counters is not MISSING:
        counters.clear()


def never_compile(code: types.CodeType) -> None:
    """Keep Dynamo from compiling a code object of ours."""
    skip_code = get("skip_code")
    if skip_code is not MISSING:
        skip_code(code)
