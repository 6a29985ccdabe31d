"""What the agent inside the script tells the parent: one JSON object a line, appended and flushed.

Each event has ``t`` (its type, one of the constants below), ``at`` (seconds since the agent started)
and ``step`` (the step during which it happened). Dynamo's own records travel as Dynamo wrote them
(``payload``); reading them is the work of :mod:`breakscope.diagnose`, which a trace file feeds too.

Numbers that change with every call (how often a region ran, crossings, steps) are not events: they
live in a shared memory map of 64-bit slots (:class:`Counters`) that survives any death of the script.
"""

from __future__ import annotations

import errno
import json
import mmap
import os
from array import array
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

Event = dict[str, Any]

START = "start"  # agent alive: pid, python, wall (seconds since 1970)
TORCH = "torch"  # torch was imported: its version, and that of triton
COMPILED = "compiled"  # something was given to torch.compile: name, by, file, line, backend, fullgraph
GRAPH_BREAK = "graph_break"  # Dynamo's dynamo_graph_break_reason record, with exact position
RECOMPILE = "recompile"  # Dynamo's recompile_reasons record, with live values of what the guards check
ERROR = "error"  # Dynamo's dynamo_error record
METRICS = "metrics"  # the fields that we use of Dynamo's compilation_metrics
REGION = "region"  # a graph was compiled: ops, slot of its run counter
SKIP = "skip"  # Dynamo gave up on a frame: code, slot of its call counter
SIGNATURE = "signature"  # with what the outermost compiled call was called, of which a compile came
DEVICE = "device"  # tensors of a region live here: type, name, count
CUDAGRAPHS = "cudagraphs"  # Inductor did without a CUDA graph: its own words
FALLBACK = "fallback"  # ops of a region that Inductor has no kernel for
ARTIFACT = "artifact"  # a text that a compile produced was kept: what, digest, size
COUNTERS = "counters"  # torch._dynamo.utils.counters, summed
STEPS = "steps"  # rows of (index, start ns, length ns, gains of the slots or None for the same as before)
SAMPLE = "sample"  # one steady step in full: its marks, see capture.clock
PROFILE = "profile"  # steps under torch's profiler, see capture.window; or why there are none
NOTE = "note"  # something that the reader of the report must know
SEEN = "seen"  # what could have been compiled: shown when --compile FUNCTION was never called
END = "end"  # the script ended in an orderly way

# Of Dynamo's compilation_metrics (99 fields, whole configurations among them) these travel.
METRIC_FIELDS = (
    "co_name",
    "co_filename",
    "co_firstlineno",
    "cache_size",
    "graph_op_count",
    "fail_type",
    "fail_reason",
    "fail_user_frame_filename",
    "fail_user_frame_lineno",
    "restart_reasons",
    "recompile_reason",
    "cudagraph_skip_reason",
    "is_forward",
    "start_time_us",
    "duration_us",
    "dynamo_cumulative_compile_time_us",
    "aot_autograd_cumulative_compile_time_us",
    "inductor_cumulative_compile_time_us",
    "triton_compile_time_us",
    "guard_latency_us",
    "inductor_fx_local_cache_hit_count",
    "inductor_fx_local_cache_miss_count",
    "inductor_fx_remote_cache_hit_count",
)

SLOTS = 65_536
SLOT_STEPS = 0
SLOT_CALLS = 1
SLOT_OVERFLOW = SLOTS - 1
_FIRST_FREE = 2

_HIGH = 400  # above what programs that become daemons close
_SPARE = 4


class EventWriter:
    """Appends events to a file. Never raises into the script: a full disk ends the capture instead.

    Attributes:
        failed: why nothing is written any more, or None.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._pid = os.getpid()
        self._open()
        self.failed: str | None = None

    def write(self, event: Event) -> None:
        """Append one event in a single write, so that threads cannot mix two lines."""
        # A forked child (a DataLoader worker) has our descriptor and our hooks, but is not the script.
        if self.failed is not None or os.getpid() != self._pid:
            return
        data = (json.dumps(event, separators=(",", ":")) + "\n").encode("utf-8")
        try:
            if not self._is_open():
                self._open()
            if os.write(self._fd, data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            self.failed = error.strerror or str(error)

    def close(self) -> None:
        """Nothing more will be written."""
        os.close(self._fd)

    def _open(self) -> None:
        with high_numbers():
            self._fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._identity = _identity(self._fd)

    def _is_open(self) -> bool:
        # A script may close descriptors that it did not open, and a file of its own then gets our number.
        try:
            return _identity(self._fd) == self._identity
        except OSError:
            return False


@contextmanager
def high_numbers() -> Iterator[None]:
    """What is opened inside gets a high descriptor: a script may count on the numbers of its own files."""
    taken = []
    with suppress(OSError):  # there are no more: then of those there are, the last
        taken.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        while taken[-1] < _HIGH:
            taken.append(os.dup(taken[0]))
    try:
        for descriptor in taken[-_SPARE:]:
            os.close(descriptor)
        yield
    finally:
        for descriptor in taken[:-_SPARE]:
            os.close(descriptor)


def _identity(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


class EventList:
    """Keeps events in memory, for :func:`breakscope.explain`."""

    failed: str | None = None

    def __init__(self) -> None:
        self.events: list[Event] = []

    def write(self, event: Event) -> None:
        """Keep one event."""
        self.events.append(event)


class Counters:
    """64-bit slots that the script increments and the parent reads, also after a SIGKILL.

    ``slots[i] += 1`` is atomic under the GIL: CPython switches threads only at calls and jumps.
    """

    def __init__(self, slots: Any) -> None:
        self.slots = slots
        self._next = _FIRST_FREE

    @classmethod
    def in_memory(cls) -> Counters:
        """Slots of this process only."""
        return cls(array("q", bytes(8 * SLOTS)))

    @classmethod
    def create(cls, path: Path) -> None:
        """Make the file. Its blocks are reserved now: a full disk later must not kill the script."""
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(fd, 0, 8 * SLOTS)
            else:
                os.write(fd, bytes(8 * SLOTS))
        finally:
            os.close(fd)

    @classmethod
    def open(cls, path: str) -> Counters:
        """Map the file that the parent made."""
        with high_numbers():  # for the map too, which keeps a descriptor of its own
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                return cls(memoryview(mmap.mmap(fd, 8 * SLOTS)).cast("q"))
            finally:
                os.close(fd)

    @staticmethod
    def read(path: Path) -> array[int]:
        """All values, as left by the script. Raises OSError if the file cannot be read."""
        return Counters.parse(path.read_bytes())

    @staticmethod
    def parse(data: bytes) -> array[int]:
        """All values, of a file's content."""
        values = array("q")
        values.frombytes(data[: 8 * SLOTS])
        return values

    def used(self) -> list[int]:
        """The values of all slots given out so far."""
        return self.slots[: self._next].tolist()  # type: ignore[no-any-return]

    def new(self) -> int:
        """A slot that counts from 0. Past the last one every caller shares SLOT_OVERFLOW."""
        slot = min(self._next, SLOT_OVERFLOW)
        self._next += 1
        return slot


def read_events(path: Path) -> Iterator[Event]:
    """The events of a file. A last line that the script could not finish is left out."""
    with path.open("rb") as stream:
        yield from parse_events(stream)


def parse_events(stream: BinaryIO) -> Iterator[Event]:
    """The events of an open file, as :func:`read_events` gives them."""
    for line in stream:
        if not line.endswith(b"\n"):
            return
        try:
            event = json.loads(line)
        except ValueError:
            continue  # a write cut short by a full disk, followed by a later one
        if isinstance(event, dict) and isinstance(event.get("t"), str):
            yield event
