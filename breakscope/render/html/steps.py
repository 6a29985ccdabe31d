"""Every step's wall time, and what compiling cost: two pictures as plain geometry."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from breakscope.render.html.pictures import WIDTH
from breakscope.render.html.texts import name
from breakscope.report.model import Compile, Report, Step, Timing
from breakscope.view.compiling import PHASES, answers, compiled_late, from_caches
from breakscope.view.report_view import why_untimed
from breakscope.view.text import NOT_MEASURED, and_more, count, milliseconds, seconds

HEIGHT = 120
_MOST_COLUMNS = 200
_LEAST_HEIGHT = 2
_MOST_ROWS = 12


@dataclass(frozen=True, slots=True)
class Column:
    """One step, or the longest of several that share a column."""

    x: float
    width: float
    height: float
    compiled: bool
    text: str


@dataclass(frozen=True, slots=True)
class StepsView:
    """The steps as columns whose height is the logarithm of their time.

    Attributes:
        caption: the steady step in words; late: what compiled after warm-up.
        missing: why there is nothing to draw.
    """

    columns: tuple[Column, ...]
    caption: str
    late: str
    low: str
    high: str
    missing: str | None


def steps_view(report: Report) -> StepsView:
    """The timeline of a report's steps; on several ranks, of the lowest."""
    rank = min((step.rank for step in report.steps), default=0)
    timed = [step for step in report.steps if step.ms is not None and step.rank == rank]
    if not timed:
        return StepsView((), "", "", "", "", "Not measured: this report has no step times")
    times = [max(step.ms or 0.0, 1e-6) for step in timed]
    low, high = min(times), max(times)
    each = math.ceil(len(timed) / _MOST_COLUMNS)
    groups = [timed[at : at + each] for at in range(0, len(timed), each)]
    width = WIDTH / len(groups)
    columns = tuple(
        Column(
            x=round(index * width, 2),
            width=round(max(width * 0.86, 0.6), 2),
            height=_height(max(step.ms or 0.0 for step in group), low, high),
            compiled=any(step.compiles for step in group),
            text=_text(group),
        )
        for index, group in enumerate(groups)
    )
    more = f"Each column is the longest of {each} steps. " if each > 1 else ""
    return StepsView(
        columns,
        more + _steady(report),
        compiled_late(report) or "",
        f"{milliseconds(low)} ms",
        f"{milliseconds(high)} ms",
        None,
    )


def _steady(report: Report) -> str:
    timing = report.timing
    if timing is None or timing.step_ms is None:
        why = why_untimed(report)
        because = f": {name(why)}" if why else ""
        return f"What a steady step is made of: {NOT_MEASURED}{because}."
    spread = f" ± {milliseconds(timing.spread_ms)}" if timing.spread_ms else ""
    bound = {"host": ", which waits for the host", "device": ", which waits for the device"}.get(
        timing.bound or "", ""
    )
    return (
        f"A steady step takes {milliseconds(timing.step_ms)}{spread} ms"
        f"{bound if report.run.device and report.run.device.type != 'cpu' else ''} ({name(timing.method)})."
        f"{_parts(timing)}"
    )


def _parts(timing: Timing) -> str:
    said = ""
    if timing.guard_us is not None:
        said += (
            f" Guards, before the first compiled code, take {milliseconds(timing.guard_us / 1e3)} ms of it."
        )
    if timing.entry_us is not None:
        took = f", calibrated in {timing.calibration_s:.2g} s" if timing.calibration_s else ""
        said += (
            f" Entering a compiled graph takes {milliseconds(timing.entry_us / 1e3)} ms on this host{took}."
        )
    if timing.device_busy_ms is not None:
        said += f" The device works for {milliseconds(timing.device_busy_ms)} ms of it."
    return said


def _height(ms: float, low: float, high: float) -> float:
    """Logarithmic: a step that compiles takes a thousand times as long as one that does not."""
    if high <= low * 1.001:
        return HEIGHT / 2
    part = math.log(max(ms, low) / low) / math.log(high / low)
    return round(_LEAST_HEIGHT + (HEIGHT - _LEAST_HEIGHT) * (0.12 + 0.88 * part), 1)


def _text(group: Sequence[Step]) -> str:
    first, last = group[0], group[-1]
    longest = max(group, key=lambda step: step.ms or 0.0)
    steps = f"step {first.index:,}" if len(group) == 1 else f"steps {first.index:,} to {last.index:,}"
    parts = [f"{steps}: {milliseconds(longest.ms or 0.0)} ms"]
    compiles = sum(step.compiles for step in group)
    if compiles:
        spent = sum(step.compile_ms or 0.0 for step in group)
        parts.append(f"{count(compiles, 'compile')}, {milliseconds(spent)} ms")
    if len(group) == 1 and longest.crossings is not None:
        parts.append(f"{count(longest.crossings, 'crossing')}, {count(longest.launches, 'region run')}")
    return "; ".join(parts)


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of a row's bar: one phase."""

    x: float
    width: float
    shade: int
    text: str


@dataclass(frozen=True, slots=True)
class CompileRow:
    """One function: how often it was compiled, and how long that took."""

    function: str
    detail: str
    amount: str
    slices: tuple[Slice, ...]


@dataclass(frozen=True, slots=True)
class CompileView:
    """Compile time by function and phase, the longest first."""

    rows: tuple[CompileRow, ...]
    legend: tuple[tuple[str, int, str], ...]
    caption: str
    left_out: int
    missing: str | None


def compile_view(report: Report) -> CompileView:
    """What compiling cost."""
    known = [one for one in report.compiles if one.seconds is not None]
    if not known:
        why = "nothing was compiled" if report.reconciliation.vacuous else "this report has no compile times"
        return CompileView((), (), "", 0, f"Not measured: {why}")
    by_function: dict[tuple[str, str | None, int | None], list[Compile]] = {}
    for one in known:
        by_function.setdefault((one.function, one.file, one.line), []).append(one)
    rows = sorted(by_function.values(), key=_seconds, reverse=True)
    longest = _seconds(rows[0])
    whole = _seconds(known)
    present = [phase for phase in PHASES if any(phase in one.phases for one in known)]
    present += sorted({phase for one in known for phase in one.phases} - set(PHASES))
    legend = tuple(
        (PHASES.get(phase, name(phase)), min(index, 4), seconds(_phase(known, phase)))
        for index, phase in enumerate(present)
    )
    caption = f"{count(len(known), 'compile')} of {count(len(rows), 'function')}, {seconds(whole)} in all"
    if said := from_caches(report):
        caption += f"; {said}"
    return CompileView(
        tuple(_row(group, longest, present) for group in rows[:_MOST_ROWS]),
        legend,
        caption,
        max(0, len(rows) - _MOST_ROWS),
        None,
    )


def _row(group: Sequence[Compile], longest: float, present: Sequence[str]) -> CompileRow:
    slices = []
    at = 0.0
    for index, phase in enumerate(present):
        width = WIDTH * _phase(group, phase) / longest if longest else 0.0
        if width > 0:
            text = f"{PHASES.get(phase, name(phase))}: {seconds(_phase(group, phase))}"
            slices.append(Slice(round(at, 1), round(width, 1), min(index, 4), text))
        at += width
    failed = sum(one.failed is not None for one in group)
    steps = dict.fromkeys(one.step for one in group if one.step is not None)
    when = f"at step {and_more([f'{step:,}' for step in steps], 4)}" if steps else ""
    said = and_more(dict.fromkeys(filter(None, map(answers, group))), 2)
    words = [count(len(group), "compile"), when, f"{failed} failed" if failed else "", name(said)]
    return CompileRow(
        name(group[0].function), ", ".join(filter(None, words)), seconds(_seconds(group)), tuple(slices)
    )


def _seconds(group: Sequence[Compile]) -> float:
    return sum(one.seconds or 0.0 for one in group)


def _phase(group: Sequence[Compile], phase: str) -> float:
    return sum(one.phases.get(phase, 0.0) for one in group)
