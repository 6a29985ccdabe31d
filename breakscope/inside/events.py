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
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from breakscope.inside.start import PID

Event = dict[str, Any]

START = "start"  # agent alive: pid, python, wall (seconds since 1970)
FORKED = "forked"  # a fork of the process is alive: pid, and the script's line that made it
TORCH = "torch"  # torch was imported: its version, and that of triton
COMPILED = "compiled"  # something was given to torch.compile: name, by, file, line, backend, fullgraph
COMPILING = (
    "compiling"  # how far a long compile is: cid, phase, frame, ops, seconds, the lines that ran most often
)
GRAPH_BREAK = "graph_break"  # Dynamo's dynamo_graph_break_reason record, with exact position
RECOMPILE = "recompile"  # Dynamo's recompile_reasons record, with live values of what the guards check
SYMBOLIC = "symbolic"  # a compile takes a size or number for any value: its sources, torch's symbol
CONSTANT = "constant"  # it made a constant of one after all: sources, the line, whether it had to
ASKED = "asked"  # it asked something of sizes or numbers, and holds only where the answer is the same
ERROR = "error"  # Dynamo's dynamo_error record
RAISED = "raised"  # an exception ended the script: type and text of it, and of those that it came of
TWICE = "twice"  # the script takes a gradient that can be differentiated again: file, line, function
EAGER = "eager"  # a call that failed was made again in eager: outcome, its error, whether we had it compiled
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
LATER = "later"  # rows of (gains of the slots, steps, ns of all): steps too late for a row each, added up
SAMPLE = "sample"  # one steady step in full: its marks, see capture.clock
PARTIAL = "partial"  # the rest of a step from a site on that sampled steps do not come to
HELD = "held"  # a sampled step in which the device was kept busy at each mark, see capture.clock
GLANCE = "glance"  # a step with its guard checks and operations, see capture.glance
CALIBRATION = "calibration"  # what entering a region takes on this host, see capture.calibrate
# How busy the machine was: load per CPU, samples, how often others took the CPU in them, and how often the
# card was at its power limit, of so many times asked.
BUSY = "busy"
PROFILE = "profile"  # steps under torch's profiler, see capture.window; or why there are none
OVER = "over"  # the script compiles by itself after all: what breakscope compiled until now is not counted
NOTE = "note"  # something that the reader of the report must know
SEEN = "seen"  # what could have been compiled: shown when --compile FUNCTION was never called
WATCHED = "watched"  # when outermost calls ended, by the class of their module: see capture.stopwatch
LEFT = "left"  # a module was called and left alone, for it has no parameters: name of its class
CHILD = "child"  # a process of the script's that cannot be followed: command, why
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
    "inductor_fx_remote_cache_miss_count",
    "aotautograd_local_cache_hit_count",
    "aotautograd_local_cache_miss_count",
    "aotautograd_remote_cache_hit_count",
    "aotautograd_remote_cache_miss_count",
    "num_triton_bundles",
)

# Artifacts in which torch says why a cache of compiled code was not asked, and what we call that cache.
CACHE_BYPASSES = {"fx_graph_cache_bypass": "fx_graph", "aotautograd_cache_bypass": "aot_autograd"}

# Of what is written while nothing is compiled, a forked process's own file must have these too.
_HEAD = frozenset({START, TORCH, COMPILED})
_MOST_OF_HEAD = 256  # a script may give torch.compile a new function in every step
_WORK = frozenset({REGION, GRAPH_BREAK, RECOMPILE, SKIP, ERROR, METRICS, COMPILING})
OF_FORK = ".fork-"  # between the name of a file and the process that writes it
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
        forked: told of the file of a forked process, when it is first written to.

    Args:
        children: name of the files of forked processes, with :data:`PID` in it; None to write nothing there.
    """

    def __init__(self, path: str, children: str | None = None) -> None:
        self._path = path
        self._pid = os.getpid()
        self._open()
        self.failed: str | None = None
        self._children = children
        self._apart = False  # a fork, of which nothing is known but that it is there and what it counts
        self._head: list[Event] = []
        self.forked: Callable[[str], None] = lambda _path: None

    def remember(self, event: Event) -> None:
        """Take an event that is in the file already, for those of forked processes."""
        self._head.append(event)

    def write(self, event: Event) -> None:
        """Append one event in a single write, so that threads cannot mix two lines."""
        if event["t"] in _HEAD and len(self._head) < _MOST_OF_HEAD:
            self._head.append(event)
        # A forked child (a DataLoader worker) has our descriptor and our hooks, but is not the script.
        forked = self._apart or os.getpid() != self._pid
        if forked and not self._begin_in_child(event) and not self._apart:
            return
        if self.failed is not None:
            return
        data = (json.dumps(event, separators=(",", ":")) + "\n").encode("utf-8")
        try:
            if not self._is_open():
                self._open()
            if os.write(self._fd, data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            self.failed = error.strerror or str(error)

    def _begin_in_child(self, event: Event) -> bool:
        """Begin a file of this process's own, once it compiles; False as long as it does not."""
        if self._children is None or event["t"] not in _WORK:
            return False
        self._path = self._children.replace(PID, str(os.getpid()))
        try:
            self._open()
        except OSError:  # it outlives its scan, whose folder is gone
            self._children = None
            return False
        self._pid, self._apart, self.failed = os.getpid(), False, None
        for known in self._head:
            own = {"pid": self._pid, "wall": time.time()} if known["t"] == START else {}
            os.write(self._fd, (json.dumps({**known, **own}, separators=(",", ":")) + "\n").encode("utf-8"))
        self.forked(self._path)
        return True

    def move_to(self, path: str) -> None:
        """Write into a file of this process's own: a fork does not write among its parent's events.

        Once it compiles, it is a process of the report with a file like its parent's.
        """
        self._path, self._pid, self._apart = path, os.getpid(), True
        self._open()

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

    def move_to(self, path: str) -> None:
        """A fork keeps events of its own as it is."""

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

    def be_of_fork(self, path: str | None) -> None:
        """Count from 0, in a file of this process's own; numbers that were given out stay what they are."""
        if path is None:
            self.slots = Counters.in_memory().slots
        else:
            Counters.create(Path(path))
            self.slots = Counters.open(path).slots

    def used(self) -> list[int]:
        """The values of all slots given out so far."""
        return self.slots[: self._next].tolist()  # type: ignore[no-any-return]

    def new(self) -> int:
        """A slot that counts from 0. Past the last one every caller shares SLOT_OVERFLOW."""
        slot = min(self._next, SLOT_OVERFLOW)
        self._next += 1
        return slot


_SHARED = 200  # longer texts are each their own


def read_events(path: Path) -> Iterator[Event]:
    """The events of a file. A last line that the script could not finish is left out."""
    with path.open("rb") as stream:
        yield from parse_events(stream)


def parse_events(stream: BinaryIO) -> Iterator[Event]:
    """The events of an open file, as :func:`read_events` gives them."""
    # A run of hours has tens of thousands, with the same names and files in them.
    known: dict[str, str] = {}

    def shared(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return {
            known.setdefault(key, key): known.setdefault(value, value)
            if type(value) is str and len(value) < _SHARED
            else value
            for key, value in pairs
        }

    for line in stream:
        if not line.endswith(b"\n"):
            return
        try:
            event = json.loads(line, object_pairs_hook=shared)
        except ValueError:
            continue  # a write cut short by a full disk, followed by a later one
        if isinstance(event, dict) and isinstance(event.get("t"), str):
            yield event
