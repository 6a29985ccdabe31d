"""The records of one process, made into the events that a live scan of it would have written.

What a record says about a place is taken only where it can be held against another: a payload has a
checksum; the function of a compile is named when it begins and again when it ends; a failure's line stands
in the error's text. Records that contradict each other are damaged, and what they name is left out.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from breakscope.diagnose import decided, guards, records
from breakscope.diagnose.collect import is_limit
from breakscope.inside import events
from breakscope.inside.capture.artifacts import Store, kind_of
from breakscope.inside.capture.secrets import Redactor
from breakscope.inside.events import METRIC_FIELDS, Event
from breakscope.traces.damage import Damage
from breakscope.traces.envelopes import Envelope

_LEFT_OUT = "the text of this record is damaged: it does not have its checksum\n"
_FRAME_KEYS = {"file": "co_filename", "name": "co_name", "line": "co_firstlineno"}
_FAILURE_KEYS = ("fail_user_frame_filename", "fail_user_frame_lineno")


@dataclass(slots=True)
class _Compile:
    """A compile under way.

    Attributes:
        frame: the function, as ``dynamo_start`` named it.
        waiting: its events, whose function may turn out to be another or none.
        site: number of the site at which its latest attempt ended.
        error: text of its ``dynamo_error``.
        bypassed: caches that were not asked, and why.
    """

    frame: dict[str, Any] | None = None
    waiting: list[Event] = field(default_factory=list)
    site: int | None = None
    graph: bool = False
    error: str | None = None
    bypassed: dict[str, str] = field(default_factory=dict)
    started: bool = False


class Assembler:
    """Takes the records of one process in order.

    Attributes:
        records: how many were taken.
        events: what :func:`breakscope.diagnose.build.build` takes, so far.
        first_time, last_time: of the records taken, in seconds of their year.
        began: when the first compile began, in seconds of the epoch; None if no record told.
        inductor: whether anything was compiled by Inductor.
    """

    def __init__(self, damage: Damage, store: Store | None = None) -> None:
        """Args: ``store``: keeps what each compile produced; None to keep nothing."""
        self._damage = damage
        self._store = store
        self._redactor = Redactor(live=False)
        self.events: list[Event] = []
        self.records = 0
        self._ranks: Counter[int] = Counter()
        self.first_time: float | None = None
        self.last_time = 0.0
        self.began: float | None = None
        self.inductor = False
        self._strings: dict[Any, str] = {}
        self._open: dict[str | None, _Compile] = {}
        self._functions: dict[Any, dict[str, Any]] = {}
        self._sites: dict[tuple[object, ...], int] = {}
        self._told: set[str] = set()
        self._on: dict[str, Callable[[Envelope], None]] = {
            "str": self._on_string,
            "torch_version": self._on_version,
            "inductor_output_code": self._on_output_code,
            "dynamo_start": self._on_start,
            "dynamo_output_graph": self._on_graph,
            "dynamo_graph_break_reason": self._on_break,
            "recompile_reasons": self._on_recompile,
            "dynamo_error": self._on_error,
            "compilation_metrics": self._on_metrics,
            **dict.fromkeys(decided.DECISIONS, self._on_decision),
            **dict.fromkeys(events.CACHE_BYPASSES, self._on_bypass),
        }
        self._latest: tuple[str | None, dict[str, Any] | None] = (None, None)

    @property
    def rank(self) -> int | None:
        """The rank that most records name; None where none does."""
        return self._ranks.most_common(1)[0][0] if self._ranks else None

    @property
    def names_no_torch(self) -> bool:
        """Whether something was compiled and the version of torch was never told."""
        return bool(self.events) and "torch" not in self._told

    def take(self, envelope: Envelope) -> None:
        """Take one record. A record of an unexpected shape counts as damaged."""
        if self.first_time is None:
            self.first_time = envelope.time
        self.last_time = envelope.time
        self.records += 1
        try:
            self._take(envelope)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            # The JSON is well-formed and still not what Dynamo writes.
            self._damage.add("envelopes")

    def finish(self) -> None:
        """No more records will come."""
        self._damage.add("unfinished", sum(compile_.started for compile_ in self._open.values()))

    def _take(self, envelope: Envelope) -> None:
        rank = envelope.data.get("rank")
        if type(rank) is int and rank >= 0:
            self._ranks[rank] += 1
        if self._store is not None and envelope.payload is not None and envelope.intact:
            self._keep(envelope, self._store)
        take = self._on.get(envelope.kind)
        if take is not None:
            take(envelope)

    def _keep(self, envelope: Envelope, store: Store) -> None:
        kind = kind_of(envelope.data)
        if kind is not None:
            text = str(self._redactor.clean({"text": envelope.payload})["text"])
            size = len(text.encode(errors="surrogatepass"))
            self._emit(envelope, events.ARTIFACT, what=kind, digest=store.put(text), size=size)

    def _emit(self, envelope: Envelope, kind: str, **fields: Any) -> Event:
        at = envelope.time - (self.first_time or 0.0)
        fields = self._redactor.clean(fields)
        event: Event = {"t": kind, "at": round(at, 6), "cid": cid_of(envelope.data), **fields}
        self.events.append(event)
        return event

    def _compile(self, data: dict[str, Any]) -> _Compile:
        return self._open.setdefault(cid_of(data), _Compile())

    def _on_string(self, envelope: Envelope) -> None:
        text, number = envelope.data["str"]
        self._strings[number] = str(text)

    def _on_graph(self, envelope: Envelope) -> None:
        self._compile(envelope.data).graph = True

    def _on_decision(self, envelope: Envelope) -> None:
        if (event := decided.read(envelope.data, self._strings)) is not None:
            what, fields = event
            self._emit(envelope, what, attempt=envelope.data.get("attempt"), **fields)

    def _on_error(self, envelope: Envelope) -> None:
        if envelope.intact:
            self._compile(envelope.data).error = envelope.payload
        self._emit(envelope, events.ERROR, payload=envelope.payload or "")

    def _on_version(self, envelope: Envelope) -> None:
        version = _json_field(envelope, "pytorch_version")
        if version and "torch" not in self._told:
            self._told.add("torch")
            self._emit(envelope, events.TORCH, version=version, triton=None)

    def _on_output_code(self, envelope: Envelope) -> None:
        self.inductor = True
        compile_ = self._open.get(cid_of(envelope.data))
        ops = records.fallback_ops(envelope.payload or "") if envelope.intact else []
        # Code of a backward graph is made when no function is being compiled.
        if ops and compile_ is not None:
            event = self._emit(envelope, events.FALLBACK, ops=ops)
            compile_.waiting.append(event)
            self._place(event, compile_.frame)

    def _on_start(self, envelope: Envelope) -> None:
        data = envelope.data
        compile_ = self._compile(data)
        compile_.started = True
        stack = data["dynamo_start"].get("stack") or []
        if not stack:
            return
        last = stack[-1]
        file = self._strings.get(last["filename"])
        if file is None:
            return  # its string was lost; the end of the compile will name the file
        compile_.frame = {"file": file, "name": str(last["name"]), "line": int(last["line"])}
        for event in compile_.waiting:
            self._place(event, compile_.frame)

    def _place(self, event: Event, frame: dict[str, Any] | None) -> None:
        """Say in which function an event happened, where the event itself does not contradict that."""
        event["frame"] = frame
        if frame is None or event["t"] != events.GRAPH_BREAK:
            return
        path = records.parse_break(event["payload"]).frames
        event["inlined"] = _depth(path, frame)

    def _on_break(self, envelope: Envelope) -> None:
        compile_ = self._compile(envelope.data)
        if not envelope.intact or not envelope.payload:
            text = _LEFT_OUT + (envelope.payload or "")
            self._emit(envelope, events.GRAPH_BREAK, payload=text, frame=None)
            return
        payload = sys.intern(envelope.payload)  # the same break is told again in every recompile
        location = records.parse_break(payload).location
        site = None
        if location is not None:
            key = (location.file, location.line, location.carets)
            site = self._sites.setdefault(key, len(self._sites))
            compile_.site = site
        event = self._emit(
            envelope,
            events.GRAPH_BREAK,
            attempt=envelope.data.get("attempt"),
            payload=payload,
            site=site,
            counting=site,
        )
        cid, frame = self._latest
        if not compile_.started and cid == event["cid"] and frame is not None and site is not None:
            # Some versions of torch report a skipped frame only when its compile is over.
            self._open.pop(cid)
            self._place(event, frame)
            self._skip(envelope, frame, site)
            return
        compile_.waiting.append(event)
        self._place(event, compile_.frame)

    def _on_recompile(self, envelope: Envelope) -> None:
        compile_ = self._compile(envelope.data)
        text = envelope.payload or ""
        frame_id = str(envelope.data.get("frame_id"))
        told = {reason.compile_id for reason in guards.parse_reasons(text)} - {None}
        same = all(str(cid).lstrip("!").split("/")[-2:-1] in ([], [frame_id]) for cid in told)
        if not envelope.intact or not same:
            if envelope.intact:
                self._damage.add("contradictions")
            self._emit(envelope, events.RECOMPILE, payload=_LEFT_OUT + text, frame=None)
            return
        latest = guards.without_old(text)
        latest = sys.intern(latest) if isinstance(latest, str) else latest
        event = self._emit(envelope, events.RECOMPILE, payload=latest)
        compile_.waiting.append(event)
        self._place(event, compile_.frame)

    def _on_bypass(self, envelope: Envelope) -> None:
        if envelope.intact:
            reason = records.bypass_reason(envelope.payload or "")
            self._compile(envelope.data).bypassed[events.CACHE_BYPASSES[envelope.kind]] = reason

    def _on_metrics(self, envelope: Envelope) -> None:
        data = envelope.data
        metrics: dict[str, Any] = data["compilation_metrics"]
        cid = cid_of(data)
        compile_ = self._open.pop(cid, None) or _Compile()
        fields = {key: metrics[key] for key in METRIC_FIELDS if metrics.get(key) is not None}
        frame = self._function(cid, metrics, compile_)
        if frame is None and any(key in fields for key in _FRAME_KEYS.values()):
            for key in (*_FRAME_KEYS.values(), *_FAILURE_KEYS):
                fields.pop(key, None)
        if not _failure_is_told(fields, compile_.error):
            self._damage.add("contradictions")
            for key in (*_FRAME_KEYS.values(), *_FAILURE_KEYS):
                fields.pop(key, None)
        self._on_process(envelope, metrics)
        frame_id = data.get("frame_id")
        if frame is not None:
            self._functions[frame_id] = frame
        else:  # at the recompile limit Dynamo names the frame's number only
            frame = self._functions.get(frame_id) if not fields.get("co_name") else None
        for event in compile_.waiting:
            if event.get("frame") is None or event["frame"] != frame:
                self._place(event, frame)
        self._latest = cid, frame
        self._on_end(envelope, compile_, metrics, frame)
        self._emit(envelope, events.METRICS, metrics=fields, bypassed=compile_.bypassed, frame=frame)

    def _function(
        self, cid: str | None, metrics: dict[str, Any], compile_: _Compile
    ) -> dict[str, Any] | None:
        """The function that was compiled, where all that names it agrees."""
        named = {key: metrics.get(name) for key, name in _FRAME_KEYS.items()}
        if any(value is None for value in named.values()):
            return None
        if (compile_.frame or named) != named or metrics.get("compile_id", cid) not in (cid, None):
            self._damage.add("contradictions")
            return None
        return named

    def _on_process(self, envelope: Envelope, metrics: dict[str, Any]) -> None:
        """What the end of a compile says about the whole process."""
        if self.began is None and isinstance(began := metrics.get("start_time"), float):
            self.began = began
        if metrics.get("inductor_cumulative_compile_time_us"):
            self.inductor = True
        python = metrics.get("python_version")
        if python and "python" not in self._told:
            self._told.add("python")
            self._emit(envelope, events.START, python=str(python).split()[0])

    def _on_end(
        self,
        envelope: Envelope,
        compile_: _Compile,
        metrics: dict[str, Any],
        frame: dict[str, Any] | None,
    ) -> None:
        """What came of a compile: a region, or a function given up."""
        if compile_.graph and isinstance(ops := metrics.get("graph_op_count"), int):
            self._emit(
                envelope,
                events.REGION,
                slot=None,
                ops=ops,
                breaks=compile_.site is not None,
                site=compile_.site,
                frame=frame,
            )
        # Without guards there is no code either. Only newer versions of torch say so in as many words.
        gave_up = metrics.get("guard_count") is None and compile_.site is not None
        if frame is not None and is_limit(metrics):
            self._skip(envelope, frame, None, metrics.get("fail_reason"))
        elif frame is not None and gave_up:
            self._skip(envelope, frame, compile_.site)

    def _skip(
        self, envelope: Envelope, frame: dict[str, Any], site: int | None, limit: str | None = None
    ) -> None:
        """Dynamo gave up on a function: for a break at ``site``, or because of the recompile limit."""
        fields = {"slot": None, "counting": None, "depth": None, "frame": frame}
        self._emit(envelope, events.SKIP, limit=site is None, site=site, why=limit, **fields)


def cid_of(data: dict[str, Any]) -> str | None:
    """Dynamo's ``frame/recompile`` id of a record."""
    frame, recompile = data.get("frame_id"), data.get("frame_compile_id")
    return None if frame is None else f"{frame}/{recompile}"


def _depth(path: tuple[records.RawFrame, ...], frame: dict[str, Any]) -> int | None:
    """How many inlined calls lie between a function and the innermost of a call path; None if unknown."""
    name = records.unresumed(frame["name"])
    for away, entry in enumerate(reversed(path)):
        if (entry.file, entry.name) == (frame["file"], name):
            return away
    return None


def _failure_is_told(metrics: dict[str, Any], error: str | None) -> bool:
    """Whether the place of a failure stands in the error's text too, where there is one that has places."""
    file, line = (metrics.get(key) for key in _FAILURE_KEYS)
    if file is None or error is None or "from user code:" not in error:
        return True
    return f'File "{file}", line {line}, in ' in error


def _json_field(envelope: Envelope, name: str) -> str | None:
    import json

    if not envelope.intact or not envelope.payload:
        return None
    value = json.loads(envelope.payload).get(name)
    return value if isinstance(value, str) else None
