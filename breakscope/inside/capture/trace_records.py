"""What Dynamo reports, taken from its structured trace while it is in the act."""

from __future__ import annotations

import logging
import traceback
import types
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from breakscope.diagnose import decided, guards, records
from breakscope.diagnose.guard_text import Failed
from breakscope.inside import events
from breakscope.inside.capture import artifacts, live_values, signatures
from breakscope.inside.capture.frames import Compile, Frames, frame_fields
from breakscope.inside.events import CACHE_BYPASSES, METRIC_FIELDS
from breakscope.inside.torch_api.details import break_details
from breakscope.inside.torch_api.failing import failing
from breakscope.inside.torch_api.state import compile_id, counted

if TYPE_CHECKING:
    from breakscope.inside.capture.agent import Agent


class CudaGraphHandler(logging.Handler):
    """A handler on Inductor's log of CUDA graphs: its warnings say which region does without one."""

    def __init__(self, agent: Agent, frames: Frames) -> None:
        super().__init__(logging.WARNING)
        self._agent = agent
        self._frames = frames

    def emit(self, record: logging.LogRecord) -> None:
        """Take one warning."""
        self._agent.guarded("a word on CUDA graphs was lost", lambda: self._take(record))

    def _take(self, record: logging.LogRecord) -> None:
        compile_ = self._frames.current
        frame = None if compile_ is None else frame_fields(compile_.frame.f_code)
        text = record.getMessage()
        if "skipping cudagraph" in text:
            self._agent.emit(events.CUDAGRAPHS, cid=compile_id(), text=text, frame=frame)


class TraceHandler(logging.Handler):
    """A handler on the trace logger: runs inside Dynamo, so that its live objects can be asked."""

    def __init__(self, agent: Agent, frames: Frames) -> None:
        super().__init__(logging.DEBUG)
        self._agent = agent
        self._frames = frames
        self._files: dict[int, str] = {}  # by the numbers under which Dynamo writes them
        self._bypassed: dict[str | None, dict[str, str]] = {}  # by compile: why a cache was not asked
        self._broken: str | None = None  # the last compile that broke: an error of the same says nothing more
        folder = agent.settings.artifacts
        self._store = None if folder is None else artifacts.Store(Path(folder))

    def emit(self, record: logging.LogRecord) -> None:
        """Take one record."""
        if hasattr(record, "metadata"):
            self._agent.guarded("a record of Dynamo's was lost", lambda: self._take(record))

    def _take(self, record: logging.LogRecord) -> None:
        """One record of the structured trace."""
        metadata: dict[str, Any] = record.metadata  # type: ignore[attr-defined]
        kind = artifacts.kind_of(metadata) if self._store is not None else None
        if self._store is not None and kind is not None:
            text = self._agent.redacted(str(record.payload))  # type: ignore[attr-defined]
            kept = {"digest": self._store.put(text), "size": len(text.encode(errors="surrogatepass"))}
            self._agent.emit(events.ARTIFACT, cid=_cid(metadata), what=kind, **kept)
        if "inductor_output_code" in metadata:
            self._on_output_code(metadata, str(record.payload))  # type: ignore[attr-defined]
            return
        if "compilation_metrics" in metadata:
            self._on_metrics(metadata)
            return
        if "str" in metadata:
            text, number = metadata["str"]
            self._files[number] = text
            return
        if (event := decided.read(metadata, self._files)) is not None:
            what, fields = event
            self._agent.emit(what, cid=_cid(metadata), attempt=metadata.get("attempt"), **fields)
            return
        name = metadata["artifact"].get("name") if "artifact" in metadata else None
        if name == "dynamo_graph_break_reason":
            self._on_break(metadata, str(record.payload))  # type: ignore[attr-defined]
        elif name == "recompile_reasons":
            self._on_recompile(metadata, record.payload)  # type: ignore[attr-defined]
        elif (cache := CACHE_BYPASSES.get(name or "")) is not None:
            reason = records.bypass_reason(str(record.payload))  # type: ignore[attr-defined]
            self._bypassed.setdefault(_cid(metadata), {})[cache] = reason
        elif name == "dynamo_error" and _cid(metadata) != self._broken:
            self._agent.emit(events.ERROR, cid=_cid(metadata), payload=str(record.payload))  # type: ignore[attr-defined]

    def _on_break(self, metadata: dict[str, Any], payload: str) -> None:
        compile_ = self._frames.current
        self.report_break(payload, _cid(metadata), metadata.get("attempt"), compile_)

    def report_break(
        self,
        payload: str,
        cid: str | None,
        attempt: int | None,
        compile_: Compile | None,
        inlined: int | None = None,
    ) -> None:
        """Emit one graph break, with what the live objects know of its place.

        Args:
            inlined: how many inlined calls deep it is, where the caller knows better than Dynamo says.
        """
        payload = records.without_traceback(payload)
        record = records.parse_break(payload)
        self._broken = cid
        location = record.location
        fields: dict[str, Any] = {}
        if location is not None:
            details = break_details(location.file, location.line, location.name)
            key = (location.file, *(details.position or (location.line,)))
            depth = details.inlined if inlined is None else inlined
            if compile_ is not None:
                depth = _depth(record.frames, compile_.frame.f_code, depth)
            own, counting = self._frames.crossings.slot(key, 0), self._frames.crossings.slot(key, depth or 0)
            fields = {"position": details.position, "inlined": depth, "site": own, "counting": counting}
            fields["path"] = details.path
            fields["kinds"] = details.kinds
            if compile_ is not None:
                compile_.broke_at = (key, depth or 0)
        frame = None if compile_ is None else frame_fields(compile_.frame.f_code)
        self._agent.emit(events.GRAPH_BREAK, cid=cid, attempt=attempt, payload=payload, frame=frame, **fields)
        if record.reasons and records.code_of(record.reasons[0]) == "BS190":
            self._agent.try_in_eager(cid)

    def _on_recompile(self, metadata: dict[str, Any], payload: Any) -> None:
        compile_ = self._frames.current
        values: dict[str, str] = {}
        failed: dict[str, list[Failed]] = {}
        frame = None
        payload = guards.without_old(payload)
        if compile_ is not None:
            frame = frame_fields(compile_.frame.f_code)
            failed = failing(compile_.frame)
            texts = list(dict.fromkeys(one.text for some in failed.values() for one in some if one.text))
            for failure in (*guards.parse_reasons(payload), *guards.parse_reasons(texts)):
                values.update(live_values.read(guards.guard_sources(failure.expression), compile_.frame))
        told = {"payload": payload, "frame": frame, "values": values, "failed": failed}
        self._agent.emit(events.RECOMPILE, cid=_cid(metadata), **told)

    def _on_output_code(self, metadata: dict[str, Any], code: str) -> None:
        ops = records.fallback_ops(code)
        if ops:
            compile_ = self._frames.current
            frame = None if compile_ is None else frame_fields(compile_.frame.f_code)
            self._agent.emit(events.FALLBACK, cid=_cid(metadata), ops=ops, frame=frame)

    def _on_metrics(self, metadata: dict[str, Any]) -> None:
        metrics = metadata["compilation_metrics"]
        compile_ = self._frames.current
        self._agent.clock.compiling()  # a backward graph is compiled outside of any frame
        if compile_ is not None:
            compile_.metrics, compile_.cid = metrics, _cid(metadata)
        fields = {key: metrics[key] for key in METRIC_FIELDS if metrics.get(key) is not None}
        if isinstance(fields.get("restart_reasons"), set | frozenset):
            fields["restart_reasons"] = sorted(fields["restart_reasons"])
        if _cid(metadata) == self._broken:
            fields.pop("fail_reason", None)  # the break's own text
        frame = None if compile_ is None else frame_fields(compile_.frame.f_code)
        self._agent.emit(
            events.METRICS,
            cid=_cid(metadata),
            metrics=fields,
            bypassed=self._bypassed.pop(_cid(metadata), {}),
            frame=frame,
            counters=counted(),
        )
        if compile_ is not None and "fail_type" not in fields:
            self._agent.guarded(
                "a compile lacks its arguments",
                lambda: self._agent.emit(
                    events.SIGNATURE, cid=_cid(metadata), frame=frame, **signatures.of_compile(compile_)
                ),
            )

    def break_from_graph(self, reason: Any, cid: str | None, compile_: Compile) -> None:
        """Report a break by what ``torch._dynamo.explain`` reads: the reason that a graph carries."""
        stack = list(reason.user_stack)
        if not stack:
            return
        at = stack[-1]
        text = (
            f"Graph break in user code at {at.filename}:{at.lineno}\nGraph Break Reason: {reason.reason}\n"
            f"\nUser code traceback:\n{''.join(traceback.format_list(stack))}"
        )
        self.report_break(text, cid, None, compile_, inlined=len(stack) - 1)


def _depth(frames: Sequence[records.RawFrame], code: types.CodeType, said: int | None) -> int:
    """How many inlined calls lie between a frame and the innermost of a call path.

    Args:
        said: what Dynamo's exception says; some lose their inner frames on the way out.
    """
    name = records.unresumed(code.co_name)
    for away, frame in enumerate(reversed(frames)):
        if (frame.file, frame.name) == (code.co_filename, name):
            return max(away, said or 0)
    return said or 0


def _cid(metadata: dict[str, Any]) -> str | None:
    frame, recompile = metadata.get("frame_id"), metadata.get("frame_compile_id")
    return None if frame is None else f"{frame}/{recompile}"
