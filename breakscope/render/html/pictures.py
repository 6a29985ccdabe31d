"""The page's pictures as plain geometry: pure functions of a report. The template draws them as inline SVG.

Bars are drawn in a box 1,000 units wide that is stretched to the page; text stands beside them as
ordinary text, so that a phone, a printer and a screen reader get it whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from breakscope.render.html.texts import name
from breakscope.report.model import Finding, FindingKind, Region, Report, SkippedFrame
from breakscope.view import gain
from breakscope.view.report_view import lost_ms, step_ms, why_untimed
from breakscope.view.text import NOT_MEASURED, count, milliseconds, per_step

WIDTH = 1_000
_MOST_PARTS = 8
_LEAST = 3  # units; a part of a bar that nobody sees is a part that nobody asks about
_PATH_ROWS = 60

Tone = Literal["break", "skip", "recompile", "compiled", "rest"]
TONES: dict[FindingKind, Tone] = {
    "graph_break": "break",
    "skip": "skip",
    "recompile": "recompile",
    "compile": "recompile",
}


@dataclass(frozen=True, slots=True)
class Label:
    """How a picture names a finding: its anchor in the page, its place (``short``: no folders), its title."""

    anchor: str
    place: str
    short: str
    title: str
    code: str


Labels = dict[str, Label]
"""By fingerprint."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a bar: from ``x`` on, ``width`` units; ``shade`` tells parts of the same tone apart."""

    x: float
    width: float
    tone: Tone
    shade: int
    text: str
    amount: str
    share: str
    anchor: str | None


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of parts.

    Attributes:
        missing: what was not measured, and what is shown instead; None where nothing is missing.
    """

    caption: str
    parts: tuple[Part, ...]
    missing: str | None


def step_time(report: Report, labels: Labels) -> Bar:
    """Where a step's time goes; where the report has no timings, where its crossings are."""
    lost = lost_ms(report)
    if lost is None:
        return _crossings(report, labels)
    timed = [finding for finding in report.findings if finding.cost and finding.cost.ms_per_step > 0]
    costs = {one.fingerprint: gain.average_ms(report, one.cost) for one in timed if one.cost}
    step = step_ms(report)
    amounts = [(finding, costs[finding.fingerprint]) for finding in timed]
    rest = max(0.0, step - lost) if step is not None else 0.0
    inside = _inside(report, timed, rest)
    words = f"of {milliseconds(step)} ms" if step is not None else "the length of a step is not known"
    return Bar(
        caption=f"One step: {milliseconds(lost)} ms lost, {words}",
        parts=_parts(amounts, labels, inside, lambda value: f"{milliseconds(value)} ms"),
        missing=_untimed(report, lost, step),
    )


def _inside(report: Report, timed: Sequence[Finding], rest: float) -> list[tuple[float, Tone, str]]:
    """What is left of a step beside the breaks: (milliseconds, tone, words)."""
    regions = report.timing.regions_ms if report.timing else None
    if regions is None:
        return [(rest, "compiled", "compiled regions and everything else")]
    # Entering a region after a break is the break's, and happens inside the region.
    entries = sum(finding.cost.parts.get("entry", 0.0) for finding in timed if finding.cost)
    regions = min(rest, max(0.0, regions - entries))
    return [
        (regions, "compiled", "compiled regions"),
        (rest - regions, "rest", "outside of what is compiled: data, backward, optimizer, the script's own"),
    ]


def _untimed(report: Report, lost: float, step: float | None) -> str | None:
    if step is None:
        return "The rest of the step: not measured"
    words = []
    if not any(one.seconds is not None for one in report.compiles):
        words.append("Compile time: not measured")
    if lost > step * 1.001:
        words.append("The costs add up to more than a step: some of them overlap")
    return ". ".join(words) or None


def _crossings(report: Report, labels: Labels) -> Bar:
    amounts = [
        (finding, float(finding.counts.crossings)) for finding in report.findings if finding.counts.crossings
    ]
    steps = report.totals.steps

    def words(value: float) -> str:
        each = f", {per_step(int(value), steps)}" if steps else ""
        return f"{count(int(value), 'crossing')}{each}"

    why = why_untimed(report)
    missing = f"Time: {NOT_MEASURED}, {name(why) if why else 'this report has no timings'}"
    if not amounts:
        nothing = "nor has it any crossings to show instead"
        return Bar("One step", (), f"{missing}; {nothing}")
    total = int(sum(value for _, value in amounts))
    return Bar(
        caption=f"Where execution leaves compiled code: {count(total, 'crossing')}",
        parts=_parts(amounts, labels, [], words),
        missing=f"{missing}. Shown instead: how often execution left compiled code. Count is not cost",
    )


def _parts(
    amounts: Sequence[tuple[Finding, float]],
    labels: Labels,
    inside: Sequence[tuple[float, Tone, str]],
    words: Callable[[float], str],
) -> tuple[Part, ...]:
    ordered = sorted(amounts, key=lambda pair: -pair[1])
    total = sum(value for _, value in ordered) + sum(value for value, _, _ in inside)
    shown, hidden = ordered[:_MOST_PARTS], ordered[_MOST_PARTS:]
    pieces: list[tuple[float, Tone, str, str | None]] = []
    for finding, value in shown:
        label = labels[finding.fingerprint]
        pieces.append((value, TONES[finding.kind], f"{label.place} · {label.title}", label.anchor))
    if hidden:
        text = f"{count(len(hidden), 'more finding')}"
        pieces.append((sum(value for _, value in hidden), "rest", text, None))
    pieces += [(value, tone, text, None) for value, tone, text in inside if value > 0]
    parts: list[Part] = []
    at = 0.0
    shades: dict[Tone, int] = {}
    for value, tone, text, anchor in pieces:
        width = WIDTH * value / total
        shade = shades.get(tone, 0)
        shades[tone] = shade + 1
        share = f"{value / total:.0%}" if value / total >= 0.005 else "under 1%"
        drawn = max(width, _LEAST)
        parts.append(
            Part(min(at, WIDTH - drawn), drawn, tone, min(shade, 4), text, words(value), share, anchor)
        )
        at += width
    return tuple(parts)


# ---- the path of execution ----


@dataclass(frozen=True, slots=True)
class Stop:
    """One row of the path: a region, or a place where execution leaves compiled code.

    Attributes:
        length: of its bar, in units; None where its amount was not measured.
    """

    kind: Literal["region", "break", "skip"]
    title: str
    detail: str
    amount: str
    length: float | None
    anchor: str | None


@dataclass(frozen=True, slots=True)
class Path:
    """The rows in the order in which Dynamo first compiled them; ``scale`` says what the bars mean."""

    stops: tuple[Stop, ...]
    left_out: int
    scale: str


def path(report: Report, labels: Labels) -> Path:
    """Execution through regions, breaks and eager functions, with how often and, if measured, how long."""
    frames: dict[float, list[Region]] = {}
    for region in report.regions:
        frames.setdefault(_frame(region.compile_id), []).append(region)
    timed = any(region.ms for region in report.regions)
    by_name = {finding.fingerprint: finding for finding in report.findings}
    rows: list[tuple[float, int, float | None, Stop]] = []
    placed: set[str] = set()
    for number, regions in frames.items():
        rows.append(
            (number, 0, _total([r.ms if timed else r.calls for r in regions]), _region(regions, timed))
        )
        for fingerprint in dict.fromkeys(r.ended_by for r in regions if r.ended_by is not None):
            if fingerprint not in by_name:
                continue
            finding = by_name[fingerprint]
            calls = _total([r.calls for r in regions if r.ended_by == fingerprint])
            placed.add(finding.fingerprint)
            rows.append((number, 1, None, _break(finding, labels, calls)))
    for finding in report.findings:
        first_versions = [_frame(one) for one in finding.counts.compile_ids if one.endswith("/0")]
        # Of a skip without a region, the function that runs eagerly says more.
        shown = finding.fingerprint in placed or (finding.kind == "skip" and finding.skipped)
        if finding.kind != "recompile" and not shown:
            at = min(first_versions, default=_frame(""))
            rows.append((at, 1, None, _break(finding, labels, finding.counts.crossings)))
        at = max(first_versions, default=_frame(""))
        rows += [(at, 2, None, _skip(one, labels[finding.fingerprint])) for one in finding.skipped]
    rows.sort(key=lambda row: row[:2])
    most = max((amount for _, _, amount, _ in rows if amount), default=None)
    stops = tuple(_scaled(stop, amount, most) for _, _, amount, stop in rows)
    scale = "bars: time in the region" if timed else "bars: how often the region ran; times were not measured"
    return Path(stops[:_PATH_ROWS], max(0, len(stops) - _PATH_ROWS), scale)


def _region(regions: Sequence[Region], timed: bool) -> Stop:
    ops = sorted({region.ops for region in regions})
    span = count(ops[0], "op") if len(ops) == 1 else f"{ops[0]:,} to {ops[-1]:,} ops"
    versions = f", compiled {len(regions):,} times" if len(regions) > 1 else ""
    calls = count(_whole(_total([region.calls for region in regions])), "run")
    ms = _total([region.ms for region in regions])
    amount = f"{milliseconds(ms)} ms in {calls}" if timed and ms is not None else calls
    return Stop("region", name(regions[0].function), f"compiled region, {span}{versions}", amount, None, None)


def _break(finding: Finding, labels: Labels, calls: float | None) -> Stop:
    label = labels[finding.fingerprint]
    amount = count(_whole(calls), "crossing")
    if finding.cost:
        amount += f", {milliseconds(finding.cost.ms_per_step)} ms a step"
    return Stop("break", label.short, f"{label.code} {label.title}", amount, None, label.anchor)


def _skip(frame: SkippedFrame, label: Label) -> Stop:
    calls = count(frame.calls, "call")
    detail = f"runs eagerly {frame.extent}: {label.code} {label.title} at {label.short}"
    return Stop("skip", name(frame.function), detail, calls, None, label.anchor)


def _scaled(stop: Stop, amount: float | None, most: float | None) -> Stop:
    if amount is None or not most:
        return stop
    length = max(_LEAST, WIDTH * amount / most) if amount else 0.0
    return replace(stop, length=round(length, 1))


def _frame(compile_id: str) -> float:
    """The number of a frame in Dynamo's ``frame/recompile``; what has none comes last."""
    head = compile_id.rpartition("/")[0].rpartition("/")[2]
    return float(head) if head.isascii() and head.isdigit() else float("inf")


def _total(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
