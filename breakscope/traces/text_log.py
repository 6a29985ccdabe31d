"""TORCH_LOGS text (``graph_breaks``, ``recompiles``) made into the events of a scan.

Less is known from it than from a trace: no regions, no compile times, no failures. Every line of a message
has the same prefix; other output may stand between the lines. From its second time on, a break is logged
without its call path, which is then that of the first time.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
from dataclasses import dataclass, field
from typing import Any

from breakscope.diagnose import records
from breakscope.inside import events
from breakscope.inside.capture.secrets import Redactor
from breakscope.inside.events import Event
from breakscope.traces.envelopes import Source, seconds

_LINE = re.compile(
    rb"""(?P<prefix>
        (?:\[rank(?P<rank>\d+)\]:)?
        [VIWEC](?P<time>\d{4}\ \d\d:\d\d:\d\d\.\d+)\ (?P<pid>\d+)\ (?P<module>[^\s:]+):\d+\]
        (?:\ \[(?P<trace>[\d/_!]{1,64})\])?
        (?:\ \[__(?P<what>\w+)\])?
    )\ ?(?P<text>[^\n]*)\n?""",
    re.VERBOSE,
)
# Written without any TORCH_LOGS.
_WARNS = b"_dynamo/convert_frame.py"
_CID = re.compile(r"!?(?:\d+/)?(\d+/\d+)(?:_\d+)?$")
_CHUNK = 1 << 20
_LONGEST_LINE = 1 << 20
_HEADS = ("Graph break ", "Graph break: ", "Recompiling function ", "WON'T CONVERT ", "torch._dynamo hit ")
_LIMIT = re.compile(
    r"(?P<why>torch\._dynamo hit config\.\w+ \(\d+\))\n"
    r" +function: '(?P<name>.+)' \((?P<file>.+):(?P<line>\d+)\)\n"
)
_REPEATED = re.compile(
    r"Graph break \((?:user stack suppressed due to duplicate graph break|details suppressed)\) "
    r"in user code at (?P<file>.+):(?P<line>\d+)\n"
)
_RECOMPILED = re.compile(r"Recompiling function (?P<name>.+?) in (?P<file>.+):(?P<line>\d+)$", re.MULTILINE)
_REASON = re.compile(r"^ {4}- ", re.MULTILINE)
_STACK = "\nUser code traceback:\n"


@dataclass(slots=True)
class LogProcess:
    """One process of a log, with what :class:`breakscope.traces.assemble.Assembler` has too."""

    rank: int | None = None
    events: list[Event] = field(default_factory=list)
    first_time: float | None = None
    last_time: float = 0.0
    began: float | None = None
    inductor: bool = False
    prefix: bytes = b""
    trace: bytes | None = None
    time: float = 0.0
    what: bytes = b""
    lines: list[str] = field(default_factory=list)
    paths: dict[tuple[str, int], str] = field(default_factory=dict)
    redactor: Redactor = field(default_factory=lambda: Redactor(live=False))

    def take(self, match: re.Match[bytes]) -> None:
        """Take one line."""
        text = match["text"].decode("utf-8", errors="replace").removesuffix("\r")
        if match["prefix"] != self.prefix or (self.lines and text.startswith(_HEADS)):
            self.finish()
            self.prefix, self.trace, self.what = match["prefix"], match["trace"], match["what"] or b""
            with contextlib.suppress(ValueError):  # a damaged date: that of the message before is near enough
                self.time = seconds(match["time"])
        self.lines.append(text)

    def finish(self) -> None:
        """The message at hand is complete."""
        if not self.lines:
            return
        text = "\n".join(self.lines)
        self.lines = []
        if self.first_time is None:
            self.first_time = self.time
        self.last_time = self.time
        read = {b"recompiles": _recompile, b"graph_breaks": self._break}.get(self.what, _limit)
        fields = read(text)
        cid = _CID.match(self.trace.decode()) if self.trace else None
        at = round(self.time - self.first_time, 6)
        if fields is not None:
            fields = self.redactor.clean(fields)
            self.events.append({"at": at, "cid": cid[1] if cid else None, **fields})

    def _break(self, text: str) -> dict[str, Any] | None:
        if not text.startswith(_HEADS):
            return None  # its beginning is not in the log
        repeated = _REPEATED.match(text)
        if repeated is not None:
            place = repeated["file"], int(repeated["line"])
            path = self.paths.get(place)
            text = f"Graph break in user code at {place[0]}:{place[1]}\n{text[repeated.end() :]}"
            text += "" if path is None else _STACK + path
        else:
            location = records.parse_break(text).location
            if location is not None:
                self.paths[location.file, location.line] = text.partition(_STACK)[2]
        return {"t": events.GRAPH_BREAK, "payload": sys.intern(text), "frame": None}


def _recompile(text: str) -> dict[str, Any] | None:
    head = _RECOMPILED.match(text)
    if head is None:
        return None
    reasons = [reason.rstrip() for reason in _REASON.split(text)[1:]]
    frame = {"name": head["name"], "file": head["file"], "line": int(head["line"])}
    return {"t": events.RECOMPILE, "payload": json.dumps(reasons), "frame": frame}


def _limit(text: str) -> dict[str, Any] | None:
    """The warning that a function was compiled too often, and runs eagerly from now on."""
    found = _LIMIT.match(text)
    if found is None:
        return None
    frame = {"name": found["name"], "file": found["file"], "line": int(found["line"])}
    slots = {"slot": None, "site": None, "counting": None, "depth": None}
    return {"t": events.SKIP, "limit": True, "why": found["why"], "frame": frame, **slots}


class TextLog:
    """A log, read line by line.

    Attributes:
        processes: by rank and process id.
    """

    def __init__(self) -> None:
        self.processes: dict[tuple[bytes | None, bytes], LogProcess] = {}

    def read(self, source: Source) -> bool:
        """Take every line of a source. Returns whether there was a message of Dynamo's."""
        rest = b""
        while chunk := source.read(_CHUNK):
            data = rest + chunk
            whole = data.rfind(b"\n") + 1
            self._take(data[:whole])
            rest = data[whole:] if len(data) - whole < _LONGEST_LINE else b""
        self._take(rest)
        for process in self.processes.values():
            process.finish()
        return any(process.events for process in self.processes.values())

    def _take(self, data: bytes) -> None:
        for match in _LINE.finditer(data):
            ours = match["what"] in (b"graph_breaks", b"recompiles")
            if not ours and (match["what"] or not match["module"].endswith(_WARNS)):
                continue
            key = match["rank"], match["pid"]
            if key not in self.processes:
                self.processes[key] = LogProcess(None if match["rank"] is None else int(match["rank"]))
            self.processes[key].take(match)
