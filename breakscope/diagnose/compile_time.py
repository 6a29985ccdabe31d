"""Findings about compile time: unrolled loops, compiles that took most of the run or never ended."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from breakscope import catalog
from breakscope.diagnose.collect import Collected, Event, FrameRef, is_limit
from breakscope.diagnose.origins import where_defined
from breakscope.diagnose.outcome import Outcome
from breakscope.diagnose.places import Places
from breakscope.diagnose.records import RawFrame
from breakscope.diagnose.sites import OWN
from breakscope.report.model import Counts, Finding, Location, Report, Signature, Timing

# A network of 80 layers in a loop is no fault; a loop over a sequence is longer, and its graph too.
LEAST_OPS, LEAST_TIMES = 1_000, 100
_LEAST_UNFINISHED_S = 5.0
_LEAST_FUNCTION_S, _LEAST_COMPILE_S = 30.0, 60.0
_LEAST_LAYERS_S = 5.0  # of a function for which something is known that is cheaper
_MOST = 0.5  # of the run
_ASKED = "looked at because --regional asked for it: the compile took no longer than others"
_STEPS_ASKED = re.compile(r"^stopped after \d+ steps, as asked by --steps$")


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop of which Dynamo put every round into the graph.

    Attributes:
        line: where it begins; text: its head.
    """

    file: str
    line: int
    text: str
    times: int


def findings(found: Collected, places: Places, outcome: Outcome, timing: Timing | None) -> list[Finding]:
    """What compiling itself has to say, the worst first."""
    latest = {(event["number"]): event for event in found.compiling}
    made: dict[str, Finding] = {}
    named: set[Location | None] = set()
    for event in latest.values():
        finding = _of_compile(event, places, outcome)
        if finding is not None:
            made.setdefault(finding.fingerprint, finding)
            named.add(_function(event, places))
    return [*made.values(), *_of_run(found, places, outcome, timing, named)]


def unfinished(found: Collected) -> Event | None:
    """The compile that was under way when the run ended; None where there was none."""
    latest = {event["number"]: event for event in found.compiling}
    under_way = [event for event in latest.values() if event["phase"] != "done"]
    return max(under_way, key=lambda event: event["seconds"], default=None)


def _function(event: Event, places: Places) -> Location | None:
    """The function of an event: many classes of one file have a ``forward``, told apart by its line."""
    frame = FrameRef.read(event.get("frame"))
    return None if frame is None else places.definition(frame.file, frame.line, frame.name, frame.qualname)


def _of_compile(event: Event, places: Places, outcome: Outcome) -> Finding | None:
    seconds, over = _seconds(event, outcome), event["phase"] == "done"
    frame = FrameRef.read(event["frame"])
    if frame is None:
        return None
    took = f"took {seconds:,.0f} s to compile" if over else f"was still compiled after {seconds:,.0f} s"
    graph = f"{event['ops']:,} ops in the graph of {frame.qualname}, which {took}"
    loop = _loop(event, places) if event["ops"] >= LEAST_OPS else None
    if loop is not None:
        at = places.location(RawFrame(loop.file, loop.line, _name(loop, places), None), None)
        reason = f"`{loop.text}` was unrolled {loop.times:,} times: {graph}"
        return _finding("BS401", at, reason, event, places)
    if over or seconds < _LEAST_UNFINISHED_S:
        return None
    at = places.definition(frame.file, frame.line, frame.name, frame.qualname)
    return _finding("BS404", at, f"{graph}, when the run ended", event, places, of_function=True)


def _seconds(event: Event, outcome: Outcome) -> float:
    if event["phase"] in ("done", "stopped"):
        return float(event["seconds"])
    # The last word of a process that was killed: the compile went on until the end.
    return float(event["seconds"] + max(0.0, outcome.duration_s - event["at"]))


def _loop(event: Event, places: Places) -> Loop | None:
    """The innermost loop around the line that ran most often."""
    for file, line, times in event["lines"]:
        if times < LEAST_TIMES:
            return None
        head = places.sources.loop_around(file, line)
        if head is not None:
            text = (places.sources.line(file, head) or "").strip().rstrip(":")
            return Loop(file, head, text, times)
    return None


def _name(loop: Loop, places: Places) -> str:
    span = places.sources.function_around(loop.file, loop.line)
    return span.name if span else "<module>"


def _of_run(
    found: Collected,
    places: Places,
    outcome: Outcome,
    timing: Timing | None,
    named: set[Location | None],
) -> list[Finding]:
    """Compiles that ended and took most of the run, of functions of which nothing was said yet."""
    by_function: dict[Location, list[Event]] = defaultdict(list)
    for event in found.metrics:
        function = _function(event, places)
        if function is not None and event["metrics"].get("duration_us"):
            by_function[function].append(event)
    if not by_function:
        return []
    spent = {key: sum(_duration(event) for event in events) for key, events in by_function.items()}
    worst = max(spent, key=lambda key: spent[key])
    if worst in named:
        return []
    whole, limit = sum(spent.values()), _MOST * outcome.duration_s
    alike = _layers_of(found, by_function[worst])
    layers = _layer_words(alike)
    broken = {one.compile_id for one in found.breaks}
    reason = _out_of_proportion(found, outcome, timing, whole)
    if whole >= max(_LEAST_COMPILE_S, limit) and reason is not None:
        finding = _about_function(found, "BS402", f"{reason}{layers}", by_function[worst], places)
        cheaper = _cheaper(by_function[worst])
        return [replace(finding, advice=_first_of_all(by_function[worst], cheaper, broken))]
    if spent[worst] >= max(_LEAST_LAYERS_S if layers else _LEAST_FUNCTION_S, limit):
        reason = (
            f"{spent[worst]:,.0f} of the run's {outcome.duration_s:,.0f} s went into compiling it{layers}"
        )
        finding = _about_function(found, "BS403", reason, by_function[worst], places)
        parts = _each_layer(alike) if alike else _in_parts(worst, places)
        return [replace(finding, advice=_first_of_all(by_function[worst], parts, broken))]
    return []


def _cheaper(events: Sequence[Event]) -> str:
    """How compiling is made cheaper; of the cache only where Inductor, which has one, was at work."""
    text = catalog.entry("BS402").fix
    cached = any(event["metrics"].get("inductor_cumulative_compile_time_us") for event in events)
    return text if cached else text.replace(", keep the compile cache, or", ", or")


def _in_parts(function: Location, places: Places) -> str:
    """In which parts a function is to be compiled: what a turn of its loop calls, where it has one."""
    way = places.sources.around_function(function.file, function.line)
    loops = [node for node in ast.walk(way[-1]) if isinstance(node, ast.For)] if way else []
    for loop in loops:
        if not isinstance(loop.iter, ast.Call) or ast.unparse(loop.iter.func) != "range":
            continue
        calls = [node for line in loop.body for node in ast.walk(line) if isinstance(node, ast.Call)]
        functions = [ast.unparse(call.func) for call in calls]
        called = [name for name in functions if re.fullmatch(r"self\.\w+", name)]
        if called:
            return (
                f"Its loop (line {loop.lineno}) is unrolled: compile what a turn calls"
                f" ({', '.join(dict.fromkeys(called[:_MOST_CALLED]))}) each on its own, and leave the loop to"
                " Python."
            )
    return catalog.entry("BS403").fix


_MOST_CALLED = 3
_GENERIC = catalog.entry("BS403").fix
SEE_TO_RECOMPILES = "See to its recompiles first"


def _first_of_all(events: Sequence[Event], then: str, broken: Collection[str | None]) -> str:
    """What to do about compiles, with what comes before that.

    A function may be compiled again for most of the time, or in pieces, as the graph breaks in it.

    Args:
        broken: the compiles that ended at a graph break.
    """
    events = [event for event in events if not is_limit(event["metrics"])]  # which compiled nothing
    again = [event for event in events if not re.match(r"\d+/0\b", event.get("cid") or "")]
    whole, later = (sum(map(_duration, some)) for some in (events, again))
    pieces = {(event.get("cid") or "").partition("/")[0] for event in events}
    if later > whole / 2:
        return (
            f"{SEE_TO_RECOMPILES}: {len(again)} of its {len(events)} compiles are such, and took"
            f" {later:,.0f} of {whole:,.0f} s."
            + _longest(events, broken)
            + f" Its graph breaks multiply them: it is compiled in {len(pieces)} pieces." * (len(pieces) > 1)
            + f" {then}" * (then != _GENERIC)
        )
    if len(pieces) > 1:
        said = f"Repair its graph breaks first: it is compiled in {len(pieces)} pieces"
        if again:
            took = f"{later:,.0f} of {whole:,.0f} s"
            said += f"; {len(again)} of its {len(events)} compiles are recompiles ({took})"
        return f"{said}. {then}"
    return then


LONGEST = "The longest took"


def _longest(events: Sequence[Event], broken: Collection[str | None]) -> str:
    """How long one compile took, where that is several times as long as the first of the same code."""
    first = {(event.get("cid") or "").partition("/")[0]: event for event in reversed(events)}
    longest = max(events, key=_duration)
    began = first[(longest.get("cid") or "").partition("/")[0]]
    took, before = _duration(longest), _duration(began)
    if took < max(_LEAST_LAYERS_S, _SEVERAL_TIMES * before):
        return ""
    if began.get("cid") in broken and longest.get("cid") not in broken:
        ended = f"the first of the same code had ended at a graph break ({before:,.1f} s)"
        return f" One took {took:,.0f} s; {ended}."
    return f" {LONGEST} {took:,.0f} s, where the first of the same code took {before:,.1f} s."


_SEVERAL_TIMES = 3


def _layers_of(found: Collected, events: Sequence[Event]) -> list[tuple[str, str, int]]:
    """(path, class, number) of layers that are alike in what these compiles compiled."""
    compiled = {event.get("cid") for event in events}
    alike = next(
        (one["alike"] for one in found.signatures if one.get("alike") and one["cid"] in compiled), ()
    )
    return [(one["path"], one["name"], one["count"]) for one in alike]


def _each_layer(layers: Sequence[tuple[str, str, int]]) -> str:
    path, name, _ = max(layers, key=lambda one: one[2])
    return (
        f"Compile each {name} by itself in place of the whole (what is around them runs eagerly then), so"
        f" that one compile serves all that are alike: for layer in model.{path}: layer.compile()."
    )


def _layer_words(layers: Sequence[tuple[str, str, int]]) -> str:
    if not layers:
        return ""
    named = " and ".join(f"{count} alike {name} in {path}" for path, name, count in layers)
    return (
        f"; it holds {named}: compiled by itself, one serves all that are called alike (breakscope remedy"
        " measures it)"
    )


def about_layers(report: Report, call: Signature, roots: tuple[str, ...]) -> Finding:
    """A finding about a compiled module that holds layers alike, however short its compile was."""
    places = Places(roots, OWN)
    file, line = call.entry_file or "", call.entry_line or 1
    location = places.definition(file, line, call.function.rpartition(".")[2], call.function)
    took = sum(one.seconds or 0.0 for one in report.compiles if one.compile_id == call.compile_id)
    layers = _layer_words([(one.path, one.name, one.count) for one in call.alike])
    event = {"cid": call.compile_id, "step": call.step}
    reason = f"compiling it took {took:.1f} s{layers}"
    finding = _finding("BS403", location, reason, event, places, of_function=True)
    return replace(finding, title="layers that are alike, compiled as a whole", expected=_ASKED)


def _duration(event: Event) -> float:
    return float(event["metrics"]["duration_us"]) / 1e6


def _out_of_proportion(
    found: Collected, outcome: Outcome, timing: Timing | None, compile_s: float
) -> str | None:
    """After how many steps compiling pays; None where this run makes as many, or was cut short."""
    step_ms = timing.step_ms if timing is not None else None
    if not step_ms or found.steps is None or any(map(_STEPS_ASKED.match, found.notes)):
        return None
    # Steps were timed as eager ones are, under these, and half of each is saved; else what is as much again.
    saved_ms = step_ms / 2 if outcome.backend in ("eager", "aot_eager") else step_ms
    needed = compile_s * 1e3 / saved_ms
    if found.steps >= needed:
        return None
    return (
        f"compiling took {compile_s:,.0f} of {outcome.duration_s:,.0f} s; if compiled steps are twice as "
        f"fast as eager ones, that is won back after {needed:,.0f} steps, and this run made {found.steps:,}"
    )


def _about_function(
    found: Collected, code: str, reason: str, events: Sequence[Event], places: Places
) -> Finding:
    frame = FrameRef.read(events[0]["frame"])
    assert frame is not None
    at = where_defined(found, frame, (event["cid"] for event in events), places)
    finding = _finding(code, at, reason, events[0], places, of_function=True)
    made = tuple(dict.fromkeys(event["cid"] for event in events if event.get("cid")))
    return replace(finding, counts=Counts(len(events), None, made))


def _finding(
    code: str, location: Location, reason: str, event: Event, places: Places, *, of_function: bool = False
) -> Finding:
    entry = catalog.entry(code)
    step = event.get("step")
    return Finding(
        fingerprint=places.fingerprint(code, location, of_function=of_function),
        code=code,
        kind="compile",
        gb_id=None,
        title=entry.title,
        reason=reason,
        explanation=entry.why,
        hints=(),
        location=location,
        stack=(),
        counts=Counts(1, None, (event["cid"],) if event.get("cid") else ()),
        first_step=step,
        last_step=step,
        not_measured="it is paid while compiling, not in a steady step",
    )
