"""First pass over the events: by type, parsed, in order."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from breakscope.diagnose import records
from breakscope.diagnose.guard_text import Failed
from breakscope.diagnose.guards import GuardFailure, parse_reasons
from breakscope.diagnose.records import BreakRecord
from breakscope.project.sources import Kinds

Event = dict[str, Any]

_FORBIDDEN = re.compile(
    r"stance is 'fail_on_recompile'\. filename: '(?P<file>.+?)', function name: '(?P<name>.+?)',"
    r" line number: (?P<line>\d+)"
)
_FAILED_GUARD = re.compile(r"^    - (.+)$", re.MULTILINE)
_LIMIT = re.compile(r"(?:Recompile|Cache)Limit|(?:recompile|cache_size)_limit")

# Events that are kept as they are, by where.
_KEPT = {
    "error": "errors",
    "compiled": "compiled",
    "device": "devices",
    "cudagraphs": "cudagraphs",
    "fallback": "fallbacks",
    "signature": "signatures",
    "artifact": "artifacts",
    "compiling": "compiling",
    "left": "left",
    "eager": "eager",
    "raised": "raised",
    "twice": "twice",
}

SLOT_STEPS = 0
SLOT_CALLS = 1


@dataclass(frozen=True, slots=True)
class FrameRef:
    """The function that Dynamo was compiling.

    Attributes:
        name: its code name with resume functions folded into what they resume.
        resumed: whether it is a resume function. since: the line behind whose break that goes on; else 0.
    """

    file: str
    name: str
    qualname: str
    line: int
    resumed: bool
    since: int = 0

    @classmethod
    def read(cls, data: dict[str, Any] | None) -> FrameRef | None:
        """From an event's ``frame``."""
        if not data:
            return None
        name = records.unresumed(data["name"])
        resumed = name != data["name"]
        qualname = data.get("qualname") or name
        since = records.resumed_at(data["name"])
        return cls(data["file"], name, name if resumed else qualname, data["line"], resumed, since)


@dataclass(frozen=True, slots=True)
class Break:
    """One occurrence of a graph break.

    Attributes:
        position: (line, byte column, end line, end byte column), or None.
        inlined: how many inlined calls deep it is in ``frame``; None if not known.
        site: counting slot of its crossings; None in an imported trace.
        counting: the slot in which this frame counts: ``site``, or one for callers that inlined it.
        skips: whether the frame that was being compiled is given up as a whole.
        kinds: (file, first line) of its function and of those that called it, and of which kind their names
            were.
    """

    record: BreakRecord
    compile_id: str | None
    frame: FrameRef | None
    position: tuple[int, int, int, int] | None
    inlined: int | None
    site: int | None
    counting: int | None
    step: int | None
    skips: bool
    kinds: tuple[Kinds, ...] = ()


@dataclass(frozen=True, slots=True)
class Recompile:
    """One compile of a frame that had been compiled before.

    Attributes:
        refused: whether the recompile limit was reached, so that Dynamo did not compile after all.
        raised: whether ``set_stance("fail_on_recompile")`` raised in its place, which ended the script.
        failed: for each version all that failed in it. Empty where only the first guard of each is known.
    """

    failures: tuple[GuardFailure, ...]
    compile_id: str | None
    frame: FrameRef | None
    values: dict[str, str]
    step: int | None
    refused: bool = False
    raised: bool = False
    failed: Mapping[str, Sequence[Failed]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Skip:
    """A frame that Dynamo gave up on.

    Attributes:
        slot: counts its calls; site: slot of its break.
        counting: the slot in which it counts crossings, being ``depth`` inlined calls from the break.
        passes: whether its code counts passes of the break, not only calls.
    """

    frame: FrameRef
    slot: int | None
    site: int | None
    limit: bool
    why: str | None
    step: int | None
    counting: int | None = None
    depth: int | None = None
    compile_id: str | None = None
    passes: bool = False


@dataclass(frozen=True, slots=True)
class RegionEvent:
    """A compiled graph. ``slot`` counts its runs.

    Attributes:
        split: "ddp" for one of several into which DDP splits a frame's graph, one for each bucket.
        collectives: collective operations in it, in order; None in an imported trace.
        inputs: of the graph, parameters among them; None in an imported trace.
    """

    compile_id: str | None
    slot: int | None
    ops: int
    breaks: bool
    site: int | None
    frame: FrameRef | None
    split: str | None = None
    collectives: tuple[str, ...] | None = None
    inputs: int | None = None


@dataclass(slots=True)
class Collected:
    """Everything that a run reported."""

    breaks: list[Break] = field(default_factory=list)
    recompiles: list[Recompile] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)
    regions: list[RegionEvent] = field(default_factory=list)
    errors: list[Event] = field(default_factory=list)
    metrics: list[Event] = field(default_factory=list)
    compiled: list[Event] = field(default_factory=list)
    devices: list[Event] = field(default_factory=list)
    signatures: list[Event] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    start: Event | None = None
    torch: Event | None = None
    steps: int | None = None
    by_optimizer: bool = False
    slots: Sequence[int] | None = None
    step_rows: list[Any] = field(default_factory=list)
    later_steps: list[Any] = field(default_factory=list)  # (gains, steps, ns)
    busy: Event | None = None
    samples: list[Event] = field(default_factory=list)
    partial: list[Event] = field(default_factory=list)
    held: list[Event] = field(default_factory=list)
    glances: list[Event] = field(default_factory=list)
    calibration: Event | None = None
    profile: Event | None = None
    sampling: bool = True
    cudagraphs: list[Event] = field(default_factory=list)
    fallbacks: list[Event] = field(default_factory=list)
    artifacts: list[Event] = field(default_factory=list)
    compiling: list[Event] = field(default_factory=list)
    left: list[Event] = field(default_factory=list)
    eager: list[Event] = field(default_factory=list)
    raised: list[Event] = field(default_factory=list)
    twice: list[Event] = field(default_factory=list)
    decided: dict[str | None, list[Event]] = field(default_factory=lambda: defaultdict(list))

    def count(self, slot: int | None) -> int | None:
        """The value of a counting slot; None where nothing was counted."""
        return None if self.slots is None or slot is None else self.slots[slot]


def collect(events: Iterable[Event], slots: Sequence[int] | None) -> Collected:
    """Sort and parse events.

    Args:
        slots: the counting slots as the run left them; None for a trace, where nothing was counted.
    """
    found = Collected(slots=slots)
    if slots is not None:
        found.by_optimizer = slots[SLOT_STEPS] > 0
        found.steps = slots[SLOT_STEPS] if found.by_optimizer else slots[SLOT_CALLS]
    for event in events:
        if event["t"] == "over":
            _start_over(found)
        elif event["t"] in TIMES:
            _take_times(found, event)
        elif event["t"] in ("symbolic", "constant", "asked"):
            _take_decided(found, event)
        else:
            _take(found, event)
    # Older versions of torch do not say in the record that the frame is skipped; the live hook knows.
    given_up = {(skip.site, skip.frame) for skip in found.skips if not skip.limit}
    found.breaks = [replace(b, skips=b.skips or (b.site, b.frame) in given_up) for b in found.breaks]
    refused = {e["cid"] for e in found.metrics if is_limit(e["metrics"])}
    found.recompiles += [made for event in found.raised for made in _forbidden(event)]
    refused |= {skip.compile_id for skip in found.skips if skip.limit and skip.compile_id}
    found.recompiles = [replace(r, refused=r.compile_id in refused) for r in found.recompiles]
    return found


TIMES = ("steps", "later", "sample", "partial", "held", "glance", "calibration", "busy", "profile")


def _forbidden(raised: Event) -> Iterator[Recompile]:
    """The recompile that a stance forbade; torch tells of it in the exception's text only."""
    for error in raised["errors"]:
        if said := _FORBIDDEN.search(error["text"]):
            frame = {"file": said["file"], "name": said["name"], "line": int(said["line"])}
            reasons: list[str] = _FAILED_GUARD.findall(error["text"])
            yield Recompile(parse_reasons(reasons), None, FrameRef.read(frame), {}, None, raised=True)


def _start_over(found: Collected) -> None:
    """Drop what was compiled before the script's own torch.compile; the slots were set back as well."""
    for name in ("breaks", "recompiles", "skips", "regions", "metrics", *_KEPT.values()):
        if name not in ("devices", "compiled"):  # these are told once
            getattr(found, name).clear()
    found.decided.clear()
    found.compiled = [event for event in found.compiled if event["by"] != "breakscope"]
    found.counters = {}


def is_limit(metrics: dict[str, Any]) -> bool:
    """Whether a compile failed because its function had been compiled too often."""
    said = f"{metrics.get('fail_type')} {metrics.get('fail_reason')}"
    return _LIMIT.search(said) is not None


def _take_times(found: Collected, event: Event) -> None:
    if event.get("restart"):
        found.step_rows, found.samples, found.profile = [], [], None
        found.later_steps = []
        found.partial, found.held, found.glances = [], [], []
    if event["t"] == "steps":
        found.step_rows.extend(event["rows"])
    elif event["t"] == "later":
        found.later_steps.extend(event["rows"])
    elif event["t"] == "busy":
        found.busy = event
    elif event["t"] == "profile":
        found.profile = event
    elif event["t"] == "calibration":
        found.calibration = event
    else:
        kinds = {
            "sample": found.samples,
            "partial": found.partial,
            "held": found.held,
            "glance": found.glances,
        }
        kinds[event["t"]].append(event)


def _take_decided(found: Collected, event: Event) -> None:
    told = found.decided[event["cid"]]
    if told and told[-1]["attempt"] != event["attempt"]:
        told.clear()  # Dynamo began anew, without what it had met
    told.append(event)


def _take(found: Collected, event: Event) -> None:
    step = event.get("step" if found.by_optimizer else "call")  # a trace knows of no steps
    event = {**event, "step": step}
    kind = event["t"]
    frame = FrameRef.read(event.get("frame"))
    if kind == "graph_break":
        position = tuple(event["position"]) if event.get("position") else None
        record = records.with_compiled_frame(records.parse_break(event["payload"]), event.get("path") or ())
        found.breaks.append(
            Break(
                record,
                event["cid"],
                frame,
                position,
                event.get("inlined"),
                event.get("site"),
                event.get("counting"),
                step,
                record.skips_frame,
                tuple(map(tuple, event.get("kinds") or ())),
            )
        )
    elif kind == "recompile":
        failures = parse_reasons(event["payload"])
        failed = {
            version: [Failed(*one) for one in some] for version, some in (event.get("failed") or {}).items()
        }
        values = event.get("values") or {}
        found.recompiles.append(Recompile(failures, event["cid"], frame, values, step, failed=failed))
    elif kind == "skip" and frame is not None:
        found.skips.append(
            Skip(
                frame,
                event["slot"],
                event["site"],
                event["limit"],
                event["why"],
                step,
                event["counting"],
                event["depth"],
                event.get("cid"),
                event.get("passes", False),
            )
        )
    elif kind == "region":
        known = event.get("collectives")
        found.regions.append(
            RegionEvent(
                event["cid"],
                event["slot"],
                event["ops"],
                event["breaks"],
                event["site"],
                frame,
                event.get("split"),
                None if known is None else tuple(known),
                event.get("inputs"),
            )
        )
    elif kind == "note":
        if event["text"] not in found.notes:
            found.notes.append(event["text"])
    elif kind == "metrics":
        found.metrics.append(event)
        found.counters = event.get("counters") or found.counters
    elif kind == "counters":
        found.counters = event["counters"]
    elif kind in ("start", "torch"):
        setattr(found, kind, event)
        found.sampling = event.get("cost", found.sampling)
    elif kind in _KEPT:
        getattr(found, _KEPT[kind]).append({**event, "step": step})
