"""What to try, only where it was measured: kernels far under the ceiling, worst first. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from breakscope.benchmark import Advice, Kernel, KernelTable

_LEAST_US = 1.0
_LEAST_SHARE = 0.005
_MOST = 12
_SMALL_GRID = 64


def advise(tables: Iterable[KernelTable]) -> list[Advice]:
    """What could give back most, with what to try: a kernel once, for the arm in which it is most."""
    found: dict[tuple[str, tuple[str, ...]], Advice] = {}
    for table in tables:
        for kernel in table.kernels:
            best = found.get((kernel.name, kernel.inputs))
            if _worth_it(kernel) and (best is None or best.give_back_us < (kernel.give_back_us or 0.0)):
                text = "; ".join(_ideas(kernel, table.kernels))
                advice = Advice(table.arm, kernel.name, kernel.give_back_us or 0.0, text)
                found[kernel.name, kernel.inputs] = advice
    return sorted(found.values(), key=lambda one: -one.give_back_us)[:_MOST]


def _worth_it(kernel: Kernel) -> bool:
    back = kernel.give_back_us
    return back is not None and back >= _LEAST_US and kernel.share >= _LEAST_SHARE


def _ideas(kernel: Kernel, others: Sequence[Kernel]) -> Iterator[str]:
    size = 1
    for extent in kernel.grid:
        size *= extent
    reached = max(kernel.bandwidth_share or 0.0, kernel.tflops_share or 0.0)
    yield f"at {reached:.0%} of the ceiling"
    if kernel.spills:
        yield f"it spills {kernel.spills} registers: try max-autotune, or split the fused expression"
    if kernel.bound == "launch":
        yield "too short to fill the card: reduce-overhead (CUDA graphs), a larger batch, or more fusion"
    elif _is_attention(kernel):
        yield "attention over too little data to fill the card: a larger batch or longer sequences"
        yield "another backend of torch.nn.attention.sdpa_kernel may be faster at this size"
    elif kernel.kind == "vendor" and "convolution" in (kernel.op or ""):
        yield "a small convolution: channels_last, a larger batch, or max-autotune"
    elif kernel.kind == "vendor" and kernel.flops:
        wide = any(text.startswith("float32") for text in kernel.inputs)
        if wide:
            yield "a float32 product: bfloat16, or torch.set_float32_matmul_precision('high')"
        else:
            yield "a small or narrow product: max-autotune, a larger batch, sizes that are multiples of 64"
    elif kernel.kind in ("triton", "cpp") and any(not _dense(text) for text in kernel.inputs):
        yield "an input's last dimension is not contiguous: another layout, or max-autotune"
    elif kernel.grid and size < _SMALL_GRID:
        yield f"only {size} blocks: too few for the card; max-autotune or a larger batch"
    elif kernel.kind in ("triton", "cpp"):
        yield "try max-autotune"
    twins = sum(one.kind == kernel.kind and one.op == kernel.op for one in others)
    if kernel.kind in ("triton", "cpp") and twins > 1:
        yield f"{twins} kernels do these ops: a graph break between them keeps them from being fused"


def _is_attention(kernel: Kernel) -> bool:
    return kernel.kind == "vendor" and any(word in (kernel.op or "") for word in ("attention", "flash_attn"))


def _dense(text: str) -> bool:
    _, _, stride = text.partition(" stride ")
    steps = [int(word) for word in stride.strip("[]").split(",") if word.strip()]
    return not steps or 1 in steps[-1:] or steps[-1] == 0 or len(steps) == 1
