"""Medians with honest intervals, and comparisons of two arms. Pure: numbers in, numbers out.

A process is a list of rounds, a round a list of samples (milliseconds). Samples of one round share what
the machine did just then, and rounds of one process share its memory layout and its compiled code, so
they are resampled at each level, and what processes of one arm disagree about widens the interval.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Sequence

from breakscope.report.benchmark import Estimate, Judgement, Verdict

Round = Sequence[float]
Process = Sequence[Round]

RESAMPLES = 500
CONFIDENCE = 0.95
# What a single run cannot see of itself: placement, clocks, the hour. Two runs of one arm differ by this
# much on a quiet machine, so no interval is narrower, and nothing closer than this is called faster.
REPEATABILITY = 0.005
# For a GPU Inductor times a few candidates of many kernels and keeps the best, which is another one when the
# timings are close: two compiles of one model differ by this much (docs/benchmarks.md). The processes of an
# arm share one cache, and cannot show it.
TUNED_REPEATABILITY = 0.02
MIN_SAMPLES = 5


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which that share lies, between neighbours by their distance."""
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no values")
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def spread(values: Sequence[float]) -> float:
    """Half of the distance between the quartiles."""
    return (quantile(values, 0.75) - quantile(values, 0.25)) / 2


def pooled(process: Process) -> list[float]:
    """All samples of a process."""
    return [sample for samples in process for sample in samples]


def estimate(
    processes: Sequence[Process], *, resolution: float = 0.0, least: float = REPEATABILITY, seed: int = 0
) -> Estimate | None:
    """Median over processes with its 95% interval; None without samples.

    The interval covers that of every process, is at least the share ``least`` of the median wide to each
    side, and at least the clock's ``resolution``.
    """
    full = [process for process in processes if pooled(process)]
    if not full:
        return None
    everything = [sample for process in full for sample in pooled(process)]
    median = statistics.median(statistics.median(pooled(process)) for process in full)
    intervals = [_interval(process, seed) for process in full]
    margin = max(least * median, resolution)
    return Estimate(
        median=median,
        low=max(0.0, min([median - margin, *(low for low, _ in intervals)])),
        high=max([median + margin, *(high for _, high in intervals)]),
        spread=spread(everything),
        samples=len(everything),
    )


def _interval(process: Process, seed: int) -> tuple[float, float]:
    """Percentile bootstrap of the median, rounds first and then samples within each."""
    medians = _resampled(process, statistics.median, random.Random(seed))  # noqa: S311 -- no secret
    tail = (1 - CONFIDENCE) / 2
    return quantile(medians, tail), quantile(medians, 1 - tail)


def _resampled(
    process: Process, statistic: Callable[[Sequence[float]], float], generator: random.Random
) -> list[float]:
    rounds = [list(samples) for samples in process if samples]
    found = []
    for _ in range(RESAMPLES):
        drawn: list[float] = []
        for samples in generator.choices(rounds, k=len(rounds)):
            drawn += generator.choices(samples, k=len(samples))
        found.append(statistic(drawn))
    return found


def compare(
    arm: str,
    base: str,
    arm_processes: Sequence[Process],
    base_processes: Sequence[Process],
    *,
    least: float = REPEATABILITY,
    seed: int = 0,
) -> Verdict | None:
    """Whether ``arm`` takes less time than ``base``; None where one of them has no samples.

    Rounds with the same index ran one after the other and are compared with each other, so that what
    drifts over the whole run cancels. Every pair of processes has its say: the interval covers them all, and
    is at least the share ``least`` wide to each side.
    """
    pairs = [
        _ratio(arm_process, other, seed)
        for arm_process in arm_processes
        for other in base_processes
        if pooled(arm_process) and pooled(other)
    ]
    if not pairs:
        return None
    fewest = min(
        sum(len(pooled(process)) for process in processes) for processes in (arm_processes, base_processes)
    )
    middle = math.exp(statistics.median(math.log(ratio) for ratio, _, _, _ in pairs))
    low = min([middle * (1 - least), *(low for _, low, _, _ in pairs)])
    high = max([middle * (1 + least), *(high for _, _, high, _ in pairs)])
    judgement: Judgement = "no evidence"
    if fewest >= MIN_SAMPLES and low > 1 + REPEATABILITY:
        judgement = "faster"
    elif fewest >= MIN_SAMPLES and high < 1 - REPEATABILITY:
        judgement = "slower"
    above = statistics.fmean(share for _, _, _, share in pairs)
    agreeing = {"faster": above, "slower": 1 - above}.get(judgement, max(above, 1 - above))
    return Verdict(arm, base, judgement, middle, low, high, round(agreeing, 4))


def _ratio(arm: Process, base: Process, seed: int) -> tuple[float, float, float, float]:
    """(base over arm, low, high, share of resamples above 1) for one pair of processes."""
    paired = [(one, other) for one, other in zip(arm, base, strict=False) if one and other]
    if not paired:  # the rounds do not overlap: compare as if they were one
        paired = [(pooled(arm), pooled(base))]
    generator = random.Random(seed)  # noqa: S311 -- no secret
    # Noise beside the samples must not make a ratio of two zeros.
    tiny = 1e-9
    found = []
    for _ in range(RESAMPLES):
        logs = []
        for one, other in generator.choices(paired, k=len(paired)):
            mine = statistics.median(generator.choices(one, k=len(one)))
            theirs = statistics.median(generator.choices(other, k=len(other)))
            logs.append(math.log(max(theirs, tiny) / max(mine, tiny)))
        found.append(math.exp(statistics.median(logs)))
    logs = [
        math.log(max(statistics.median(other), tiny) / max(statistics.median(one), tiny))
        for one, other in paired
    ]
    tail = (1 - CONFIDENCE) / 2
    return (
        math.exp(statistics.median(logs)),
        quantile(found, tail),
        quantile(found, 1 - tail),
        sum(ratio > 1 for ratio in found) / len(found),
    )


def steady(times: Sequence[float], *, window: int = 4, tolerance: float = 0.1) -> bool:
    """Whether the last steps of a warm-up have stopped getting faster or slower.

    The medians of the last two windows differ by at most the tolerance, or by less than the samples
    themselves scatter.
    """
    if len(times) < 2 * window:
        return False
    before, last = times[-2 * window : -window], times[-window:]
    gap = abs(statistics.median(before) - statistics.median(last))
    return gap <= max(tolerance * statistics.median(last), spread(times[-2 * window :]))
