"""What it takes to enter a compiled region on this host, measured on tiny ones when the script is over.

A region costs its launches and a fixed part: the runtime's wrappers around a graph. Two regions that become one
save the fixed part once. So chains of small products, which no compiler fuses, are compiled by the script's own
backend: of 1, 4 and 16 operations. Sixteen regions of one operation take 15 entries longer than one of sixteen.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from time import perf_counter_ns
from typing import Any

import torch
import torch.fx

SIZES = (1, 4, 16)
_WARM, _ROUNDS, _MOST_S = 6, 40, 0.1
_WIDTH = 16


def calibrate(compiler: Callable[..., Any], device: str, *, gradients: bool) -> dict[str, Any]:
    """Nanoseconds of the host.

    Args:
        compiler: the backend, as Dynamo calls it.
        gradients: whether the script's regions keep what backward needs.

    Returns:
        forward: for each size, the time of 16 operations in regions of that size; backward: of their backward, if
            gradients; compile_s, run_s: what the calibration itself took.
    """
    began = time.perf_counter()
    x = torch.ones(_WIDTH, _WIDTH, device=device, requires_grad=gradients)
    weights = [torch.eye(_WIDTH, device=device, requires_grad=gradients) for _ in range(max(SIZES))]
    with ExitStack() as stack:
        stack.enter_context(torch.enable_grad() if gradients else torch.no_grad())
        if "torch._inductor" in sys.modules:  # its workers have ended with the script's threads
            from torch._inductor import config

            stack.enter_context(config.patch(compile_threads=1))
        regions = {size: compiler(_chain(size), [x, *weights[:size]]) for size in SIZES}
        compiled = time.perf_counter()
        times = _rounds(regions, x, weights, gradients=gradients)
    return {
        **times,
        "compile_s": round(compiled - began, 4),
        "run_s": round(time.perf_counter() - compiled, 4),
    }


def _chain(size: int) -> torch.fx.GraphModule:
    """A graph of so many products, one after the other."""
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    for weight in [graph.placeholder(f"weight_{number}") for number in range(size)]:
        x = graph.call_function(torch.mm, (x, weight))
    graph.output((x,))
    return torch.fx.GraphModule(torch.nn.Module(), graph)


def _rounds(regions: dict[int, Any], x: Any, weights: list[Any], *, gradients: bool) -> dict[str, Any]:
    """Median times of all sizes, in turn."""
    forward: dict[int, list[int]] = {size: [] for size in regions}
    backward: dict[int, list[int]] = {size: [] for size in regions}
    until = time.perf_counter() + _MOST_S
    for number in range(_WARM + _ROUNDS):
        if number == _WARM:
            until = time.perf_counter() + _MOST_S
        elif number > 2 * _WARM and time.perf_counter() > until:
            break
        for size, region in regions.items():
            _begin(x)
            began = perf_counter_ns()
            out = x
            for first in range(0, len(weights), size):
                out = region(out, *weights[first : first + size])[0]
            done = perf_counter_ns()
            if gradients:
                torch.autograd.backward(out, out.detach())
            ended = perf_counter_ns()
            if number >= _WARM:
                forward[size].append(done - began)
                backward[size].append(ended - done)
    found: dict[str, Any] = {"forward": _medians(forward)}
    return found | ({"backward": _medians(backward)} if gradients else {})


def _begin(x: Any) -> None:
    """Begin a round with nothing under way."""
    if x.is_cuda:
        torch.cuda.synchronize()
    if "torch._inductor.cudagraph_trees" in sys.modules:
        torch.compiler.cudagraph_mark_step_begin()


def _medians(times: dict[int, list[int]]) -> dict[str, int]:
    return {str(size): round(statistics.median(values)) for size, values in times.items()}
