"""What it takes to enter a compiled region on this host, measured on tiny ones when the script is over.

A region costs its launches and a fixed part: the runtime's wrappers around a graph. Two regions that become
one save the fixed part once. So chains of small products, which no compiler fuses, are compiled by the
script's own
backend: of 1, 4 and 16 operations. Sixteen regions of one operation take 15 entries longer than one of
    sixteen.

In a real step a region's wrappers run once, and what they need has left the processor's caches by then. A
loop over one tiny region would find it there, and take half of the time. So before each entry the
second-level cache is filled with something else.
"""

from __future__ import annotations

import statistics
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import torch
import torch.fx

from breakscope.inside.capture.glance import Glance

SIZES = (1, 4, 16)
_WARM, _ROUNDS, _MOST_S = 4, 30, 0.08
_LOOKS = 5
_WIDTH = 16
_CACHE = Path("/sys/devices/system/cpu/cpu0/cache/index2/size")
_LEAST_CACHE, _USUAL_CACHE, _MOST_CACHE = 1 << 18, 1 << 20, 1 << 22


def calibrate(compiler: Callable[..., Any], device: str, *, gradients: bool) -> dict[str, Any]:
    """Nanoseconds of the host.

    Args:
        compiler: the backend, as Dynamo calls it.
        gradients: whether the script's regions keep what backward needs.

    Returns:
        forward: for each size, the time of 16 operations in regions of that size; backward: of their
            backward, if gradients; around: what the runtime's wrappers take of an entry into a region of one
            operation and of sixteen while a glance looks, None where it does not see them; compile_s, run_s:
            what the calibration itself took.
    """
    began = time.perf_counter()
    x = torch.ones(_WIDTH, _WIDTH, device=device, requires_grad=gradients)
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings(action="ignore"))  # they are not the script's
        stack.enter_context(torch.enable_grad() if gradients else torch.no_grad())
        if "torch._inductor" in sys.modules:  # its workers have ended with the script's threads
            from torch._inductor import config

            stack.enter_context(config.patch(compile_threads=1))
        regions = {size: compiler(_chain(size, device, gradients=gradients), [x]) for size in SIZES}
        compiled = time.perf_counter()
        times = _rounds(regions, x, gradients=gradients)
        around = _around({size: regions[size] for size in (SIZES[0], SIZES[-1])}, x)
    return {
        **times,
        "around": around,
        "compile_s": round(compiled - began, 4),
        "run_s": round(time.perf_counter() - compiled, 4),
    }


def _chain(size: int, device: str, *, gradients: bool) -> torch.fx.GraphModule:
    """A graph of so many products with parameters, one after the other."""
    graph, root = torch.fx.Graph(), torch.nn.Module()
    x = graph.placeholder("x")
    for number in range(size):
        weight = torch.nn.Parameter(torch.eye(_WIDTH, device=device), requires_grad=gradients)
        root.register_parameter(f"weight_{number}", weight)
        x = graph.call_function(torch.mm, (x, graph.get_attr(f"weight_{number}")))
    graph.output((x,))
    return torch.fx.GraphModule(root, graph)


def _rounds(regions: dict[int, Any], x: Any, *, gradients: bool) -> dict[str, Any]:
    """Median times of all sizes, in turn."""
    forward: dict[int, list[int]] = {size: [] for size in regions}
    backward: dict[int, list[int]] = {size: [] for size in regions}
    forget = _forget()
    until = time.perf_counter() + _MOST_S
    for number in range(_WARM + _ROUNDS):
        if number == _WARM:
            until = time.perf_counter() + _MOST_S
        elif number > 2 * _WARM and time.perf_counter() > until:
            break
        for size, region in regions.items():
            _begin(x)
            out, took = x, 0
            apart: list[int] = []
            for _ in range(0, max(regions), size):
                forget()
                began = perf_counter_ns()
                out = region(out)[0]
                took += perf_counter_ns() - began
                if gradients:
                    out.register_hook(lambda _gradient, apart=apart: apart.append(_timed(forget)))
            if gradients:
                began = perf_counter_ns()
                torch.autograd.backward(out, torch.ones_like(out))
                backward[size].append(perf_counter_ns() - began - sum(apart))
            forward[size].append(took)
    found: dict[str, Any] = {"forward": _medians(forward)}
    return found | ({"backward": _medians(backward)} if gradients else {})


def _around(regions: dict[int, Any], x: Any) -> dict[str, int | None]:
    """What wrappers take around the code of regions, in turn, as a glance sees it in a step."""
    forget, glance = _forget(), Glance()
    times: dict[int, list[int]] = {size: [] for size in regions}
    for size in list(regions) * _LOOKS:
        _begin(x)
        if not glance.start():
            break
        out, spans = x, []
        for _ in range(max(SIZES)):
            forget()
            began = perf_counter_ns()
            out = regions[size](out)[0]
            spans.append((began, perf_counter_ns()))
        calls = (glance.stop() or {"calls": []})["calls"]
        if len(calls) == len(spans):
            pairs = zip(spans, calls, strict=True)
            times[size] += [end - began - took for (began, end), (_, took, _) in pairs]
    return {str(size): round(statistics.median(found)) if found else None for size, found in times.items()}


def own_ns(region: Callable[[], object], tick: Callable[[], None], marks: list[Any]) -> int:
    """What our own wrappers take between two regions, beside what the marks say that they take themselves.

    Args:
        region: a region that does nothing, wrapped as the script's are; marks: where its marks go.
    """
    forget, times = _forget(), []
    for _ in range(_WARM + _ROUNDS):
        marks.clear()
        forget()
        began = perf_counter_ns()
        region()
        took = perf_counter_ns() - began
        (_, _, entered, *_), (_, _, left, leaving, *_) = marks
        forget()
        times.append(took - (left - entered) - leaving + _timed(tick))
    return int(statistics.median(times[_WARM:]))


def _timed(action: Callable[[], object]) -> int:
    began = perf_counter_ns()
    action()
    return perf_counter_ns() - began


def _forget() -> Callable[[], None]:
    """What puts all else out of the processor's second-level cache."""
    size = min(max(_cache_size(), _LEAST_CACHE), _MOST_CACHE)
    here, there = bytearray(size), bytes(size)

    def forget() -> None:
        here[:] = there

    return forget


def _cache_size() -> int:
    try:
        return int(_CACHE.read_text().strip().removesuffix("K")) << 10
    except (OSError, ValueError):  # not Linux, or a machine that does not say
        return _USUAL_CACHE


def _begin(x: Any) -> None:
    """Begin a round with nothing under way."""
    if x.is_cuda:
        torch.cuda.synchronize()
    if "torch._inductor.cudagraph_trees" in sys.modules:
        torch.compiler.cudagraph_mark_step_begin()


def _medians(times: dict[int, list[int]]) -> dict[str, int]:
    return {str(size): round(statistics.median(values[_WARM:])) for size, values in times.items()}
