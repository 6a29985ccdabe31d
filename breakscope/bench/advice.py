"""What to try, only where it was measured: kernels far under the ceiling, worst first. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from breakscope.inside.bench.plan import CUDA_GRAPH_MODES
from breakscope.report.benchmark import Advice, Kernel, KernelTable

_LEAST_US = 1.0
_LEAST_SHARE = 0.005
_MOST = 12
_SMALL_GRID = 64


def advise(tables: Iterable[KernelTable], modes: Iterable[str | None] = ()) -> list[Advice]:
    """What could give back most, with what to try: a kernel once, for the arm in which it is most.

    Args:
        modes: of the arms that were measured; what was tried is not advised.
    """
    tried = {mode.removesuffix("-no-cudagraphs") for mode in modes if mode}
    found: dict[tuple[str, tuple[str, ...]], Advice] = {}
    for table in tables:
        for kernel in table.kernels:
            best = found.get((kernel.name, kernel.inputs))
            if _worth_it(kernel) and (best is None or best.give_back_us < (kernel.give_back_us or 0.0)):
                ideas = list(_ideas(kernel, tried))
                if ideas:
                    text = "; ".join([f"at {_reached(kernel):.0%} of the ceiling", *ideas])
                    advice = Advice(table.arm, kernel.name, kernel.give_back_us or 0.0, text)
                    found[kernel.name, kernel.inputs] = advice
    return sorted(found.values(), key=lambda one: -one.give_back_us)[:_MOST]


def _worth_it(kernel: Kernel) -> bool:
    back = kernel.give_back_us
    return back is not None and back >= _LEAST_US and kernel.share >= _LEAST_SHARE


def _reached(kernel: Kernel) -> float:
    return max(kernel.bandwidth_share or 0.0, kernel.tflops_share or 0.0)


def _ideas(kernel: Kernel, tried: set[str]) -> Iterator[str]:
    autotune = [] if "max-autotune" in tried else ["max-autotune"]
    attempt = [f"try {mode}" for mode in autotune]
    blocks = math.prod(kernel.grid)
    if kernel.spills:
        yield f"it spills {kernel.spills} registers: {_any([*attempt, 'split the fused expression'])}"
    if kernel.bound == "launch":
        graphs = [] if tried & set(CUDA_GRAPH_MODES) else ["reduce-overhead (CUDA graphs)"]
        yield f"too short to fill the card: {_any([*graphs, 'a larger batch', 'more fusion'])}"
    elif _is_attention(kernel):
        yield "attention over too little data to fill the card: a larger batch or longer sequences"
        yield "another backend of torch.nn.attention.sdpa_kernel may be faster at this size"
    elif kernel.kind == "vendor" and "convolution" in (kernel.op or ""):
        yield f"a small convolution: {_any(['channels_last', 'a larger batch', *autotune])}"
    elif kernel.kind == "vendor" and kernel.flops:
        wide = any(text.startswith("float32") for text in kernel.inputs)
        if wide:
            yield "a float32 product: bfloat16, or torch.set_float32_matmul_precision('high')"
        else:
            sizes = "sizes that are multiples of 64"
            yield f"a small or narrow product: {_any([*autotune, 'a larger batch', sizes])}"
    elif kernel.kind in ("triton", "cpp") and any(not _dense(text) for text in kernel.inputs):
        yield f"an input's last dimension is not contiguous: {_any(['another layout', *autotune])}"
    elif kernel.grid and blocks < _SMALL_GRID:
        yield f"only {blocks} blocks: too few for the card; {_any([*autotune, 'a larger batch'])}"
    elif kernel.kind in ("triton", "cpp"):
        yield from attempt
    if kernel.cut_from:
        yield f"it begins a graph where {kernel.cut_from} ended one: in one graph they could be one kernel"


def _any(ideas: Sequence[str]) -> str:
    """``a, b, or c``."""
    if len(ideas) < 3:
        return " or ".join(ideas)
    return f"{', '.join(ideas[:-1])}, or {ideas[-1]}"


def _is_attention(kernel: Kernel) -> bool:
    return kernel.kind == "vendor" and any(word in (kernel.op or "") for word in ("attention", "flash_attn"))


def _dense(text: str) -> bool:
    _, _, stride = text.partition(" stride ")
    steps = [int(word) for word in stride.strip("[]").split(",") if word.strip()]
    return not steps or 1 in steps[-1:] or steps[-1] == 0 or len(steps) == 1
