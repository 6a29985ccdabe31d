"""Benchmarks made by hand, for tests that need no process."""

from __future__ import annotations

from dataclasses import replace

from breakscope.report.benchmark import (
    Advice,
    ArmResult,
    Benchmark,
    Ceiling,
    Estimate,
    GpuState,
    Kernel,
    KernelTable,
    Outputs,
    Process,
    Spent,
    Verdict,
)


def around(median: float, share: float = 0.01, samples: int = 60) -> Estimate:
    """An estimate with an interval of ``share`` to each side."""
    return Estimate(median, median * (1 - share), median * (1 + share), median * share / 2, samples)


def process(first_steps_ms: tuple[float, ...], step_ms: float, cache: str = "cold") -> Process:
    return Process(
        cache=cache,  # type: ignore[arg-type]
        startup_s=6.0,
        first_step_s=first_steps_ms[0] / 1e3,
        first_steps_ms=first_steps_ms,
        compile_s=sum(first_steps_ms) / 1e3,
        compiles=2,
        late_compiles=0,
        steady=True,
        step=around(step_ms),
    )


EAGER = ArmResult(
    "eager",
    "eager",
    None,
    "auto",
    "ok",
    step=around(4.0),
    throughput=250.0,
    graphs=0,
    crossings_per_step=0.0,
    processes=(process((10.0, 4.0, 4.0), 4.0, "none"),),
)
FAST = ArmResult(
    "compiled · reduce-overhead",
    "compiled",
    "reduce-overhead",
    "auto",
    "ok",
    step=around(1.0),
    host=around(0.4),
    device_busy_ms=0.95,
    bound="device",
    throughput=1000.0,
    peak_memory_mib=512.0,
    memory_kind="allocated by torch on the GPU",
    graphs=2,
    crossings_per_step=12.0,
    break_even_steps=3339,
    warm_break_even_steps=1002,
    discarded={"something was compiled in it": 2},
    outputs=Outputs("same", "2 tensors of the first 2 calls", 2e-4, 1e-2, 2),
    processes=(process((10_000.0, 20.0, 1.0), 1.0), process((3_000.0, 20.0, 1.0), 1.0, "warm")),
    notes=("process 2: its steps were not steady when the warm-up ended",),
)
FAILED = ArmResult(
    "fixed · reduce-overhead",
    "fixed",
    "reduce-overhead",
    "auto",
    "failed",
    reason="hang: no answer for 60 s (--timeout) after 3 steps; it was ended",
)
TRITON = Kernel(
    "triton_poi_fused_add_relu_0",
    "triton",
    calls=6.0,
    step_us=60.0,
    share=0.06,
    alone_us=10.0,
    bytes=20_000_000,
    bytes_how="Inductor's estimate",
    registers=32,
    spills=0,
    shared_bytes=0,
    grid=(2048, 1, 1),
    block=(128, 1, 1),
    op="aten.add, aten.relu",
    inputs=("float16[8, 128, 768] stride [98304, 768, 1]",),
)
MATMUL = Kernel(
    "sm90_xmma_gemm_f16f16",
    "vendor",
    calls=12.0,
    step_us=240.0,
    share=0.25,
    alone_us=20.0,
    bytes=8_000_000,
    flops=9_663_676_416,
    grid=(128, 1, 1),
    block=(384, 1, 1),
    op="aten.addmm.out",
    inputs=("float16[768] stride [1]", "float16[1024, 768] stride [768, 1]"),
)
CEILINGS = (
    Ceiling("copy", "bytes", "vendor", 4.0, "TB/s", "copy_"),
    Ceiling("copy", "bytes", "triton", 4.2, "TB/s", "ours"),
    Ceiling("launch", "float32", "vendor", 1.5, "us", "in a CUDA graph"),
    Ceiling("matmul", "float16", "vendor", 700.0, "TFLOP/s", "torch.mm"),
    Ceiling("matmul", "float32", "vendor", 50.0, "TFLOP/s", "torch.mm"),
)
GPU = GpuState(12.0, 1980.0, 1980.0, 3201.0, 44.0, 320.0, "", None)
BENCHMARK = Benchmark(
    layout=1,
    unit="an outermost compiled call",
    clock="CUDA events",
    method="2 processes per arm",
    device="NVIDIA H200",
    torch="2.11.0",
    seed=0,
    threads=16,
    cpus="0-15",
    l2="warm",
    arms=(EAGER, FAST, FAILED),
    verdicts=(Verdict("compiled · reduce-overhead", "eager", "faster", 4.0, 3.9, 4.1, 1.0),),
    recommendation=None,
    spent=Spent(107.0, 20.0, 60.0, 15.0, 5.0, compile_s=55.0, ceilings_s=7.0),
    pace_ms=2.125,
    noisy=("the card was throttled: power cap",),
    notes=("a note",),
    gpu=(GPU,),
    ceilings=CEILINGS,
    kernels=(
        KernelTable("compiled · reduce-overhead", 0.95, 0.98, 0.02, (MATMUL, TRITON)),
        KernelTable("fixed · reduce-overhead", None, None, None, (), "hang"),
    ),
    advice=(Advice("compiled · reduce-overhead", "triton_poi_fused_add_relu_0", 31.4, "try max-autotune"),),
)
WRONG = replace(
    FAST, outputs=Outputs("different", "call 0, result: differs by 0.5 of its norm", 0.5, 1e-2, 2)
)
