"""What every format shows of a benchmark: tables and sentences, before any layout.

Every text is harmless and without a line break; every number has its unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from breakscope.report.benchmark import Advice, ArmResult, Benchmark, Estimate, KernelTable, Verdict
from breakscope.view.text import NOT_MEASURED, and_more, harmless, milliseconds, seconds

_MOST_KERNELS = 40
_NAME = 60  # characters of a kernel's name


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        lengths: for each row a number to draw a bar of, or None; empty where there is nothing to draw.
        numeric: which columns hold numbers, and stand right.
        more: what was left out, as a sentence.
        detail: too wide for a terminal.
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[bool, ...]
    lengths: tuple[float | None, ...] = ()
    more: str | None = None
    detail: bool = False


@dataclass(frozen=True, slots=True)
class BenchView:
    """A whole benchmark.

    Attributes:
        title: what was measured and where, in one line.
        alarms: what casts doubt on the figures: wrong outputs, noise.
        sentences: verdicts and the recommendation, the most important first.
        facts: (what, value) pairs on the method.
        notes: what a reader must know.
    """

    title: str
    alarms: tuple[str, ...]
    sentences: tuple[str, ...]
    tables: tuple[Table, ...]
    facts: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


def build(benchmark: Benchmark) -> BenchView:
    """The view of a benchmark."""
    tables = [_arms(benchmark), _verdicts(benchmark.verdicts), _totals(benchmark)]
    tables += [_compiles(benchmark), _resources(benchmark)]
    for table in benchmark.kernels:
        tables += [_kernels(table), _launches(table)] if table.kernels else []
    tables += [_advice(benchmark.advice), _ceilings(benchmark)]
    return BenchView(
        title=harmless(
            f"benchmark of {benchmark.unit} on {benchmark.device or 'an unknown device'}"
            + (f", torch {benchmark.torch}" if benchmark.torch else "")
        ),
        alarms=tuple(map(harmless, _alarms(benchmark))),
        sentences=tuple(map(harmless, _sentences(benchmark))),
        tables=tuple(table for table in tables if table is not None),
        facts=tuple((what, harmless(text)) for what, text in _facts(benchmark)),
        notes=tuple(map(harmless, _notes(benchmark))),
    )


# ---- sentences ----


def _alarms(benchmark: Benchmark) -> list[str]:
    wrong = [
        f"{arm.name} computes another result than eager mode: {arm.outputs.why}"
        for arm in benchmark.arms
        if arm.outputs is not None and arm.outputs.status == "different"
    ]
    failed = [f"{arm.name} failed: {arm.reason}" for arm in benchmark.arms if arm.status == "failed"]
    noisy = [f"noisy: {reason}" for reason in benchmark.noisy]
    return [*wrong, *failed, *noisy]


def _sentences(benchmark: Benchmark) -> list[str]:
    chosen = benchmark.recommendation
    if chosen is None:
        return []
    if chosen.arm is None:
        return [chosen.why]
    return [f"use {chosen.arm}: {chosen.why}"]


def _facts(benchmark: Benchmark) -> list[tuple[str, str]]:
    threads = f"{benchmark.threads} on CPUs {benchmark.cpus}" if benchmark.threads else NOT_MEASURED
    spent = benchmark.spent
    warming = f"compiling and warming up {seconds(spent.warmup_s)}"
    if spent.compile_s is not None:
        rest = max(0.0, spent.warmup_s - spent.compile_s)
        warming = f"compiling {seconds(spent.compile_s)}, warming up {seconds(rest)}"
    took = (
        f"{seconds(spent.total_s)}: starting {seconds(spent.startup_s)}, {warming}, "
        f"timed rounds {seconds(spent.timed_s)}, profiles and comparison {seconds(spent.kernels_s)}"
    )
    if spent.ceilings_s:
        took += f", the device's ceilings {seconds(spent.ceilings_s)}"
    pace = []
    if benchmark.pace_ms is not None:
        work = "for the same piece of Python work beside each turn that counts"
        pace = [("CPU pace", f"{benchmark.pace_ms:.3g} ms {work}")]
    facts = [
        ("clock", benchmark.clock),
        ("method", benchmark.method),
        ("L2 cache", benchmark.l2),
        ("CPU threads", threads),
        *pace,
        ("seed", str(benchmark.seed)),
        ("took", took),
    ]
    clocks = [state.sm_mhz for state in benchmark.gpu if state.sm_mhz is not None]
    if clocks:
        heat = [state.temperature_c for state in benchmark.gpu if state.temperature_c is not None]
        warm = f", {min(heat):.0f} to {max(heat):.0f} °C" if heat else ""
        facts.append(("GPU between rounds", f"SM clock {min(clocks):.0f} to {max(clocks):.0f} MHz{warm}"))
    if benchmark.exported:
        facts.append(("exported", f"{len(benchmark.exported)} scripts"))
    return facts


def _notes(benchmark: Benchmark) -> list[str]:
    notes = list(benchmark.notes)
    for arm in benchmark.arms:
        notes += [f"{arm.name}: {note}" for note in arm.notes]
        notes += [
            f"{arm.name}: {count} timed steps thrown out: {why}" for why, count in arm.discarded.items()
        ]
        if arm.outputs is not None and arm.outputs.status == "not compared":
            notes.append(f"{arm.name}: outputs not compared: {arm.outputs.why}")
    for table in benchmark.kernels:
        if table.not_measured:
            notes.append(f"kernels of {table.arm}: not measured: {table.not_measured}")
    return notes


# ---- tables ----


def _table(
    title: str,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    text_columns: int = 1,
    lengths: Sequence[float | None] = (),
    more: str | None = None,
) -> Table | None:
    """A table without the columns in which no row has anything; None without rows."""
    if not rows:
        return None
    kept = [
        at for at in range(len(head)) if at < text_columns or any(row[at] not in ("", "-") for row in rows)
    ]
    return Table(
        title=title,
        head=tuple(head[at] for at in kept),
        rows=tuple(tuple(harmless(row[at]) for at in kept) for row in rows),
        numeric=tuple(at >= text_columns for at in kept),
        lengths=tuple(lengths),
        more=more,
    )


def _arms(benchmark: Benchmark) -> Table | None:
    base = next((arm.step for arm in benchmark.arms if arm.variant == "eager" and arm.step), None)
    head = ("arm", "ms a step", "95% interval", "vs eager", "crossings", "outputs")
    rows = []
    for arm in benchmark.arms:
        if arm.step is None:
            rows.append((arm.name, "failed", *["-"] * (len(head) - 2)))
            continue
        rows.append(
            (
                arm.name,
                milliseconds(arm.step.median),
                f"{milliseconds(arm.step.low)} to {milliseconds(arm.step.high)}",
                "-" if base is None or arm.step is base else f"{base.median / arm.step.median:.2f}x",
                "-" if arm.crossings_per_step is None else f"{arm.crossings_per_step:.3g}",
                _outputs(arm),
            )
        )
    lengths = [arm.step.median if arm.step else None for arm in benchmark.arms]
    return _table("arms", head, rows, 1, lengths)


def _resources(benchmark: Benchmark) -> Table | None:
    head = ("arm", "spread", "in calls", "device busy", "host", "steps/s", "MiB", "graphs")
    rows = [
        (
            arm.name,
            f"{milliseconds(arm.step.spread)} ms",
            "-" if arm.calls is None else f"{milliseconds(arm.calls.median)} ms",
            _busy(arm),
            _host(arm),
            "-" if arm.throughput is None else f"{arm.throughput:,.4g}",
            "-" if arm.peak_memory_mib is None else f"{arm.peak_memory_mib:,.0f}",
            _count(arm.graphs),
        )
        for arm in benchmark.arms
        if arm.step is not None
    ]
    return _table("what a step takes", head, rows)


def _busy(arm: ArmResult) -> str:
    if arm.device_busy_ms is None or arm.step is None:
        return "-"
    bound = f", {arm.bound}-bound" if arm.bound else ""
    return f"{milliseconds(arm.device_busy_ms)} ms{bound}"


def _host(arm: ArmResult) -> str:
    return "-" if arm.host is None or arm.device_busy_ms is None else f"{milliseconds(arm.host.median)} ms"


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _outputs(arm: ArmResult) -> str:
    if arm.outputs is None:
        return "-"
    if arm.outputs.status != "same":
        return arm.outputs.status.upper() if arm.outputs.status == "different" else arm.outputs.status
    if arm.outputs.error == 0:
        return "bitwise equal"
    return f"within {arm.outputs.error:.1g} (of {arm.outputs.tolerance:.0e})"


def _compiles(benchmark: Benchmark) -> Table | None:
    head = ("arm", "process", "cache", "to first step", "first step", "compile", "first steps, ms",
            "ms a step", "break-even, steps")  # fmt: skip
    rows = []
    judged = {verdict.arm: verdict.judgement for verdict in benchmark.verdicts if verdict.base == "eager"}
    for arm in benchmark.arms:
        never = {"slower": "never", "no evidence": "no evidence"}.get(judged.get(arm.name, ""), "-")
        for number, process in enumerate(arm.processes, 1):
            paid = arm.break_even_steps if number == 1 else arm.warm_break_even_steps
            shown = number == 1 or process.cache == "warm"
            rows.append(
                (
                    arm.name if number == 1 else "",
                    str(number),
                    process.cache,
                    seconds(process.startup_s),
                    "-" if process.first_step_s is None else seconds(process.first_step_s),
                    seconds(process.compile_s) if process.compiles else "-",
                    ", ".join(map(milliseconds, process.first_steps_ms[:4])),
                    "-" if process.step is None else milliseconds(process.step.median),
                    "" if not shown else never if paid is None else f"{paid:,}",
                )
            )
    return _table("starting and compiling", head, rows, 3)


def _verdicts(verdicts: Sequence[Verdict]) -> Table | None:
    head = ("arm", "against", "verdict", "ratio", "95% interval", "confidence")
    rows = [
        (
            verdict.arm,
            verdict.base,
            verdict.judgement,
            f"{verdict.ratio:.3g}x",
            f"{verdict.low:.3g} to {verdict.high:.3g}",
            f"{verdict.confidence:.1%}",
        )
        for verdict in verdicts
    ]
    return _table("verdicts", head, rows, 3)


def _totals(benchmark: Benchmark) -> Table | None:
    chosen = benchmark.recommendation
    if chosen is None:
        return None
    rows = [
        (total.arm, total.arithmetic, f"{total.low_s:,.2f} to {total.high_s:,.2f} s")
        for total in chosen.totals
    ]
    return _table(f"{chosen.horizon:,} steps", ("arm", "arithmetic", "interval"), rows, 2)


def _ceilings(benchmark: Benchmark) -> Table | None:
    rows = [
        (ceiling.what, ceiling.dtype, ceiling.by, f"{ceiling.value:,.4g} {ceiling.unit}", ceiling.how)
        for ceiling in benchmark.ceilings
    ]
    return _table("measured ceilings of this device", ("what", "dtype", "by", "reached", "how"), rows, 3)


def _advice(advice: Sequence[Advice]) -> Table | None:
    rows = [(one.arm, one.kernel, one.text, f"{one.give_back_us:,.1f} µs") for one in advice]
    return _table("what to try", ("arm", "kernel", "advice", "at most, a step"), rows, 3)


def _kernels(table: KernelTable) -> Table | None:
    head = ("kernel", "kind", "calls", "µs a step", "share", "alone, µs", "of copy", "of matmul", "bound",
            "could give back, µs")  # fmt: skip
    rows = [
        (
            _short(kernel.name),
            kernel.kind,
            f"{kernel.calls:g}",
            f"{kernel.step_us:,.1f}",
            f"{kernel.share:.1%}",
            "-" if kernel.alone_us is None else f"{kernel.alone_us:,.2f}",
            _share(kernel.bandwidth_share),
            _share(kernel.tflops_share),
            kernel.bound or "-",
            "-" if kernel.give_back_us is None else f"{kernel.give_back_us:,.1f}",
        )
        for kernel in table.kernels[:_MOST_KERNELS]
    ]
    hidden = len(table.kernels) - len(rows)
    device = NOT_MEASURED if table.device_ms is None else f"{milliseconds(table.device_ms)} ms"
    accounted = "" if table.accounted is None else f", {table.accounted:.1%} of it identified"
    return _table(
        f"kernels of {table.arm}: device time {device} a step{accounted}",
        head,
        rows,
        2,
        [kernel.step_us for kernel in table.kernels[:_MOST_KERNELS]],
        f"{hidden:,} more kernels are in the report file" if hidden else None,
    )


def _launches(table: KernelTable) -> Table | None:
    head = ("kernel", "op", "inputs", "from", "grid", "block", "config", "regs", "spills", "shared", "MB",
            "GFLOP", "GB/s", "TFLOP/s", "why not alone")  # fmt: skip
    rows = [
        (
            _short(kernel.name),
            kernel.op or "-",
            and_more(kernel.inputs, 4),
            and_more(kernel.sources or kernel.nodes, 3),
            _extent(kernel.grid),
            _extent(kernel.block),
            kernel.config or "-",
            _count(kernel.registers),
            _count(kernel.spills),
            _count(kernel.shared_bytes),
            "-" if kernel.bytes is None else f"{kernel.bytes / 1e6:,.3g}",
            "-" if kernel.flops is None else f"{kernel.flops / 1e9:,.3g}",
            "-" if kernel.bandwidth is None else f"{kernel.bandwidth:,.0f}",
            "-" if kernel.tflops is None else f"{kernel.tflops:,.3g}",
            kernel.alone_why or "-",
        )
        for kernel in table.kernels[:_MOST_KERNELS]
    ]
    made = _table(f"how they were launched: {table.arm}", head, rows, 7)
    return None if made is None else replace(made, detail=True)


def _extent(sizes: Sequence[int]) -> str:
    return " x ".join(map(str, sizes)) or "-"


def _short(text: str) -> str:
    return text if len(text) <= _NAME else f"{text[: _NAME - 3]}..."


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def interval(estimate: Estimate | None) -> str:
    """``1.42 ms (1.40 to 1.45)``."""
    if estimate is None:
        return NOT_MEASURED
    return (
        f"{milliseconds(estimate.median)} ms ({milliseconds(estimate.low)} to {milliseconds(estimate.high)})"
    )
