"""What a benchmark is made of: frozen records, written as ``benchmark`` of a report.

``None`` always means "not measured" or "does not apply", never zero. Times are milliseconds where the
name ends in ``_ms``, seconds where it ends in ``_s``; memory is in MiB (1,048,576 bytes).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from breakscope.report.codec import MismatchError, decode, encode

LAYOUT = 1

Variant = Literal["eager", "compiled", "fixed"]
Judgement = Literal["faster", "slower", "no evidence"]
Bound = Literal["memory", "compute", "launch", "latency"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A median with what is known of its error.

    Attributes:
        median: of all timed samples; low, high: its 95% confidence interval.
        spread: half of the distance between the quartiles of the samples.
        samples: how many were timed and kept.
    """

    median: float
    low: float
    high: float
    spread: float
    samples: int


@dataclass(frozen=True, slots=True)
class Outputs:
    """An arm's outputs against those of the eager arm, same seed and inputs.

    Attributes:
        status: "same" within the tolerance; "different": the arm computes something else, which is an
            error however fast it is; "not compared" with the reason in ``why``.
        error: largest norm of a difference over the norm of eager's tensor; tolerance: what was allowed for
            the dtype in which that was.
        tensors: how many were compared.
    """

    status: Literal["same", "different", "not compared"]
    why: str
    error: float | None = None
    tolerance: float | None = None
    tensors: int = 0


@dataclass(frozen=True, slots=True)
class Process:
    """One process of an arm. The first compiles into an empty cache, the second finds it filled.

    Attributes:
        cache: "cold", "warm", or "none" where nothing is cached (eager, or a backend without a cache).
        startup_s: from the start of the process to its first step; processes start side by side.
        first_step_s: the first step, compiles included; first_steps_ms: the first steps of all.
        compile_s: wall time in compiles; phases: of it, by phase, as torch counts them; a phase holds
            what it calls.
        compiles: how many there were; late_compiles: of these, after the warm-up.
        steady: whether the warm-up ended because the steps had become steady.
    """

    cache: Literal["cold", "warm", "none"]
    startup_s: float
    first_step_s: float | None
    first_steps_ms: tuple[float, ...]
    compile_s: float
    compiles: int
    late_compiles: int
    steady: bool
    step: Estimate | None
    phases: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ArmResult:
    """One arm: what was measured of it, or why it failed.

    Attributes:
        name: as tables show it: "eager", "compiled · reduce-overhead".
        mode: Inductor's mode; "as-script" for what the script asks for; None for eager.
        interleaved: False for an arm that ran alone, because it did not fit beside the others.
        step: a step, in milliseconds, over all processes; calls: the part in outermost compiled calls, where
            a step is more than that; host: time in which the host was busy with it.
        device_busy_ms: time per step in which the device worked; None without a GPU.
        throughput: steps a second.
        peak_memory_mib: allocated at most during timed steps; memory_kind says by whom.
        graphs: compiled graphs; crossings_per_step: as a scan counts them.
        break_even_steps: steps until the cold compile has paid for itself against eager; None where there is
            no evidence that the arm is faster; warm_break_even_steps: the same with a filled cache.
        discarded: timed steps thrown out, with the reason.
        bound: what the step waits for.
    """

    name: str
    variant: Variant
    mode: str | None
    dynamic: str
    status: Literal["ok", "failed"]
    reason: str | None = None
    interleaved: bool = True
    step: Estimate | None = None
    calls: Estimate | None = None
    host: Estimate | None = None
    device_busy_ms: float | None = None
    bound: Literal["host", "device"] | None = None
    throughput: float | None = None
    peak_memory_mib: float | None = None
    memory_kind: str | None = None
    graphs: int | None = None
    crossings_per_step: float | None = None
    break_even_steps: int | None = None
    warm_break_even_steps: int | None = None
    discarded: dict[str, int] = field(default_factory=dict)
    outputs: Outputs | None = None
    processes: tuple[Process, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """Two arms compared.

    Attributes:
        ratio: time of ``base`` over time of ``arm``: above 1, ``arm`` is faster; low, high: its 95% interval.
        confidence: share of the resampled comparisons that agree with the judgement, 0 to 1.
    """

    arm: str
    base: str
    judgement: Judgement
    ratio: float
    low: float
    high: float
    confidence: float


@dataclass(frozen=True, slots=True)
class Total:
    """What an arm takes over the whole horizon.

    Attributes:
        arithmetic: how it was reckoned, in words.
    """

    arm: str
    seconds: float
    low_s: float
    high_s: float
    arithmetic: str


@dataclass(frozen=True, slots=True)
class Recommendation:
    """Which arm to use for a run of ``horizon`` steps, compile time included.

    Attributes:
        arm: the winner; None where there is no evidence for one.
        totals: every arm that may be recommended, fastest first.
    """

    horizon: int
    arm: str | None
    why: str
    totals: tuple[Total, ...]


@dataclass(frozen=True, slots=True)
class GpuState:
    """The card as it was found between rounds; read, never set."""

    at_s: float
    sm_mhz: float | None
    max_sm_mhz: float | None
    memory_mhz: float | None
    temperature_c: float | None
    power_w: float | None
    throttle: str | None
    other_processes: int | None


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A limit of this device, measured on it.

    Attributes:
        what: "copy", "triad", "matmul", or "launch": the shortest kernel.
        by: who reached it: "triton" (a kernel of ours) or "vendor".
        value: TB/s (read and written), TFLOP/s, or microseconds of the shortest kernel; unit says which.
    """

    what: str
    dtype: str
    by: str
    value: float
    unit: Literal["TB/s", "TFLOP/s", "us"]
    how: str


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel that a step launches.

    Attributes:
        kind: "triton" (generated by Inductor), "cpp" (likewise, on a CPU), "vendor" (cuBLAS, cuDNN, attention
            and other code behind an ATen op), "copy" (memory copies and fills), "other".
        calls: per step; step_us: in the step, all calls together, by the profiler; share: of the step's
            device time.
        alone_us: one call, run alone on fresh inputs of the same shape and stride with the L2 cache flushed;
            alone_why: why that was not measured.
        op_kernels: kernels that its op launches, this one included; op_alone_us: all of them alone.
        bytes, flops: of one call of the op; bytes_how: where the number is from.
        bandwidth: GB/s of one call alone, else in the step; tflops: TFLOP/s likewise; of an op of several
            kernels, over all of them. bandwidth_share, tflops_share: of this device's measured ceiling.
        give_back_us: time a step that would be gone if it ran at the ceiling.
        cut_from: the kernel right before it, in the graph before: in one graph they could be one kernel.
        op: ATen op or ops that it does; inputs: their shapes, strides and dtypes; sources: source lines;
            nodes: FX nodes it came from.
    """

    name: str
    kind: Literal["triton", "cpp", "vendor", "copy", "other"]
    calls: float
    step_us: float
    share: float
    alone_us: float | None = None
    alone_why: str | None = None
    bytes: int | None = None
    bytes_how: str | None = None
    flops: int | None = None
    bandwidth: float | None = None
    bandwidth_share: float | None = None
    tflops: float | None = None
    tflops_share: float | None = None
    bound: Bound | None = None
    give_back_us: float | None = None
    registers: int | None = None
    spills: int | None = None
    shared_bytes: int | None = None
    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()
    config: str | None = None
    op: str | None = None
    inputs: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    cut_from: str | None = None
    exported: str | None = None
    op_kernels: int = 1
    op_alone_us: float | None = None


@dataclass(frozen=True, slots=True)
class KernelTable:
    """The kernels of one arm's steady step, the costliest first.

    Attributes:
        device_ms: device time of a profiled step; accounted: share of it in kernels that are identified;
            gaps_ms: time of a timed step in which the device did nothing.
        not_measured: why there are no kernels; None where there are.
    """

    arm: str
    device_ms: float | None
    accounted: float | None
    gaps_ms: float | None
    kernels: tuple[Kernel, ...]
    not_measured: str | None = None


@dataclass(frozen=True, slots=True)
class Advice:
    """What to try, with what it could give back at most."""

    arm: str
    kernel: str
    give_back_us: float
    text: str


@dataclass(frozen=True, slots=True)
class Spent:
    """Where the benchmark's own time went, in seconds.

    Attributes:
        warmup_s: compiles included; compile_s: of it in compiles, those of processes that failed included.
        timed_s: the rounds, with the steps in them that are not counted.
        kernels_s: outputs compared, profiles, kernels run alone; ceilings_s: the device's ceilings, 0 where
            they were kept from an earlier run.
    """

    total_s: float
    startup_s: float
    warmup_s: float
    timed_s: float
    kernels_s: float
    compile_s: float | None = None
    ceilings_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Arms, verdicts and kernels of one script.

    Attributes:
        layout: version of this layout.
        unit: what a step is, in words; clock: what timed it; method: how, in words.
        horizon: steps for which the recommendation is made.
        l2: in which state the L2 cache was.
        pace_ms: what a fixed piece of Python work took beside the turns that count, in the middle: steps that
            wait for the host of another machine, or of a busier one, are as much slower as it is.
        threads: CPU threads of each arm; cpus: which CPUs they may use.
        interrupted: whether it was ended early, and holds what had been measured up to then.
        noisy: why the figures deserve less trust; empty for a quiet run.
    """

    layout: int
    unit: str
    clock: str
    method: str
    device: str | None
    torch: str | None
    seed: int
    threads: int | None
    cpus: str | None
    l2: str
    arms: tuple[ArmResult, ...]
    verdicts: tuple[Verdict, ...]
    recommendation: Recommendation | None
    spent: Spent
    pace_ms: float | None = None
    interrupted: bool = False
    noisy: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    gpu: tuple[GpuState, ...] = ()
    ceilings: tuple[Ceiling, ...] = ()
    kernels: tuple[KernelTable, ...] = ()
    advice: tuple[Advice, ...] = ()
    exported: tuple[str, ...] = ()


def to_dict(benchmark: Benchmark) -> dict[str, Any]:
    """As it stands in a report."""
    encoded: dict[str, Any] = encode(benchmark, Benchmark)
    return encoded


def from_dict(data: dict[str, Any] | None) -> Benchmark | None:
    """The benchmark of a report; None where there is none, or one of a layout that is not ours."""
    if data is None or data.get("layout") != LAYOUT:
        return None
    try:
        decoded: Benchmark = decode(data, Benchmark)
    except MismatchError:
        return None
    return decoded
