"""The fast reader of TORCH_TRACE files: finds the records that a report needs, skips all others unread.

A record is one line (a glog prefix, then a JSON object, the envelope) and its payload: lines that begin
with a tab. Nine tenths of a trace are records that no report needs. They are neither split into lines nor
decoded: the reader jumps from one envelope to the next by searching for what stands between prefix and
object, looks at the object's first key, and goes on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Protocol

from breakscope.diagnose.decided import DECISIONS
from breakscope.inside.events import CACHE_BYPASSES
from breakscope.traces.damage import MAX_RECORD, Damage
from breakscope.traces.payloads import payload_text

CHUNK = 1 << 17  # a chunk and its copy stay in the processor's cache
_PREFIX = re.compile(
    rb"[VIWEC](?P<time>\d{4} \d\d:\d\d:\d\d\.\d+) (?P<pid>\d+) [^\t\n]{1,4096}:\d+",
)
_PREFIX_START = re.compile(rb"[VIWEC]\d{4} \d\d:\d\d:\d\d\.")
_ANY_RECORD = re.compile(rb"(?m)^[VIWEC]\d{4} \d\d:\d\d:\d\d\.\d+ \d+ [^\t\n]{1,4096}:\d+\] \{\"")
_RECORD_END = re.compile(rb"\n(?!\t)")
_TAIL = 8192  # more than the longest prefix, which names a source file, with the mark and the kind

KINDS = (
    "str",
    "dynamo_start",
    "dynamo_output_graph",
    "compilation_metrics",
    "inductor_output_code",
    *DECISIONS,
)
ARTIFACTS = (
    "dynamo_graph_break_reason",
    "recompile_reasons",
    "dynamo_error",
    "torch_version",
    *CACHE_BYPASSES,
)


class Source(Protocol):
    """Where bytes come from: a file, plain or decompressed."""

    def read(self, size: int, /) -> bytes:
        """At most ``size`` bytes; none at the end."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """One record.

    Attributes:
        kind: the envelope's first key, or the artifact's name.
        pid: the process that wrote it.
        time: when it was written, in seconds since the beginning of that year.
        payload: None where it was not asked for or there is none.
        intact: whether the payload has the checksum that the record names.
    """

    kind: str
    data: dict[str, Any]
    pid: int
    time: float
    payload: str | None = None
    intact: bool = True


class Reader:
    """Reads envelopes out of bytes as they come.

    Args:
        kinds, artifacts: what is wanted, as regular expressions. The payload of an artifact is always
            read, that of a kind where it stands in ``with_payload``.

    Attributes:
        is_trace: whether there was a record of any kind.
    """

    def __init__(
        self,
        damage: Damage,
        kinds: Sequence[str] = KINDS,
        artifacts: Sequence[str] = ARTIFACTS,
        with_payload: Sequence[str] = (),
    ) -> None:
        self._damage = damage
        self._with_payload = frozenset(with_payload)
        self._mark = re.compile(
            rf'\] \{{"(?:({"|".join(kinds)})"|artifact": \{{"name": "({"|".join(artifacts)})")'.encode()
        )
        self._pending = b""
        self.is_trace = False

    def read(self, source: Source) -> Iterator[Envelope]:
        """Every wanted record of a source, to its end."""
        while chunk := source.read(CHUNK):
            yield from self.feed(chunk)
        yield from self.finish()

    def feed(self, chunk: bytes) -> Iterator[Envelope]:
        """The wanted records that ``chunk`` completes."""
        return self._take(self._pending + chunk, final=False)

    def finish(self) -> Iterator[Envelope]:
        """The wanted records in what is left: nothing will follow."""
        rest, self._pending = self._pending, b""
        if rest and not rest.endswith(b"\n"):
            self._damage.add("cut")
        return self._take(rest, final=True)

    def _take(self, data: bytes, *, final: bool) -> Iterator[Envelope]:
        at, size = 0, len(data)
        self.is_trace = self.is_trace or _ANY_RECORD.search(data) is not None
        while (mark := self._mark.search(data, at)) is not None:
            at = mark.end()
            prefix = _prefix(data, mark.start())
            if prefix is None:
                continue  # a payload that quotes a record
            kind = (mark[1] or mark[2]).decode()
            payload = mark[1] is None or kind in self._with_payload
            end = _end(data, at, payload=payload)
            if end is None and not final:
                return self._keep(data, prefix.start())
            end = size if end is None else end
            envelope = self._decode(
                data[mark.start() + 2 : end], kind, prefix, payload=payload, last=final and end == size
            )
            if envelope is not None:
                at = end  # else another writer's record may begin within the damaged line
                yield envelope
        return self._keep_tail(data, at)

    def _keep(self, data: bytes, start: int) -> None:
        """Keep a record that is not complete yet."""
        if len(data) - start > MAX_RECORD:
            self._damage.add("oversize")
            self._keep_tail(data, start)
        else:
            self._pending = data[start:]

    def _keep_tail(self, data: bytes, at: int) -> None:
        """Keep the last line, which has no mark yet; of a long one its end, and whether it is payload."""
        start = max(at, data.rfind(b"\n", at) + 1)
        cut = max(start, len(data) - _TAIL)
        is_payload = cut > start and data[start : start + 1] == b"\t"
        self._pending = b"\t" * is_payload + data[cut:]

    def _decode(
        self, record: bytes, kind: str, prefix: re.Match[bytes], *, payload: bool, last: bool
    ) -> Envelope | None:
        line, newline, raw = record.partition(b"\n")
        try:
            data = json.loads(line)
            time = seconds(prefix["time"])
        except (ValueError, RecursionError):
            if newline or not last:  # else it is the line in which the file was cut off, counted already
                self._damage.add("envelopes")
            return None
        text, intact = None, True
        if payload:
            text, intact = payload_text(raw, data.get("has_payload"), self._damage)
            if not intact and not last:
                self._damage.add("checksums")
            elif not intact:
                self._damage.counts["cut"] = 1  # however often that shows
        return Envelope(kind, data, int(prefix["pid"]), time, text, intact)


def _prefix(data: bytes, mark: int) -> re.Match[bytes] | None:
    """The glog prefix before a mark; None in a payload, which may quote anything."""
    start = data.rfind(b"\n", 0, mark) + 1
    if data[start : start + 1] == b"\t":
        return None
    match = _PREFIX.fullmatch(data, start, mark)
    if match is None:
        # After a line that another writer, or the same one when it was killed, did not finish.
        for begins in _PREFIX_START.finditer(data, start, mark):
            match = _PREFIX.fullmatch(data, begins.start(), mark) or match
    return match


def _end(data: bytes, mark: int, *, payload: bool) -> int | None:
    """Where a record ends; None if that is not in ``data``."""
    if not payload:
        newline = data.find(b"\n", mark)
        return None if newline < 0 else newline + 1
    match = _RECORD_END.search(data, mark)
    # At the very end another line of the payload may follow.
    return None if match is None or match.end() == len(data) else match.end()


def seconds(text: bytes) -> float:
    """The time of a prefix ("1121 14:06:55.810000") in seconds since its year began.

    The prefix names no year: every year is taken for a leap year. Raises ValueError for no time.
    """
    days = (date(2000, int(text[:2]), int(text[2:4])) - date(2000, 1, 1)).days
    hours, minutes, rest = text[5:].split(b":")
    return ((days * 24 + int(hours)) * 60 + int(minutes)) * 60 + float(rest)
