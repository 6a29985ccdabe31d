"""When steps end, and what a steady one is made of.

Every step leaves its wall time and what its counting slots gained: the timeline. Some steps after warm-up are
sampled: each region's entry and exit, each run into a site and each outermost call leave a *mark* with the
host's time and, where regions run on a GPU, a CUDA event in the region's own stream. A mark has the time
before it and the time that making it took (an event takes the host ten microseconds or more), so that what
the clock itself costs can be left out. Between steps without marks a region costs one comparison more than
without a clock.

After a burst one further step is looked into. It is a *glance* at its operations and guard checks
(:mod:`breakscope.inside.capture.glance`), or, on a GPU, after some bursts, a *held* step. In that the
device is kept busy at each mark for as long as the host will take to the next one, so that it then does
what it was given without a
pause: how long it works can be read off its events.

Marks with device events take the host longer, and leave the processor's caches colder. So only the first
steps of a burst have events; the others say how long the host takes, and on a CPU all do.

A site that few steps come to may be missed by all samples. So a run into one, in a step without marks,
begins them in the middle of the step: a *partial* sample.

Samples come in short bursts with ever longer pauses between them, because the speed of a machine changes from
one second to the next. After the first bursts the next one waits until all that sampling took is a small
share of the steady steps: where these are short, reading a glance takes as long as some of them. Nothing here
waits for the device inside a sampled step. One synchronisation stands before a burst, to tie the device's
clock to the host's, and the step after it is thrown away.
"""

from __future__ import annotations

import os
import resource
import threading
from collections import defaultdict
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from breakscope.inside import events
from breakscope.inside.events import Counters

# Kinds of marks, as they stand in a SAMPLE event.
CALL, RETURN, ENTER, LEAVE, TICK = range(5)

QUIET = 2  # steps without a compile before sampling: CUDA graphs warm up and record in these
BURST = 6  # sampled steps in a row; the first pause is as long, and each later one twice the one before
MOST_SAMPLES = 60
WITH_EVENTS = 2  # of a burst
# What follows the first bursts, and so on: these steps take several times as long as others.
AFTER_BURST = ("glance", "held", "glance", None, None)
MOST_SHARE = 0.04  # of the steady steps' time that sampling may take
FREE_BURSTS = 2  # taken whatever they take, so that short scripts have some samples too
ENOUGH = 6  # sampled steps that come to a site; one that has less is watched for in the others
MOST_MARKS = 20_000  # in one step; a step with more is not sampled
MOST_STEPS = 2_000  # with a row each; later ones are added up, but for those that were sampled or compiled
_HOLD_MORE_NS = 30_000  # making marks takes its time too
_FLUSH_STEPS = 100
_FLUSH_NS = 1_000_000_000

# Kind, slot, host's time before the mark, time that making it took, device event, event after a hold.
Mark = tuple[int, int, int, int, Any, Any]


class Clock:
    """Times the steps of one process.

    Args:
        emit: writes one event; must not raise.
        counters: whose gains are noted at the end of each step.
        began: ``perf_counter_ns`` at the start of the run.
        sample: whether to mark steady steps at all (``--cost``).

    Attributes:
        counters: the slots that hooks increment.
        marks: where the marks of the step under way go; None while it is not sampled.
        device: gives what records device events, once a region ran on a GPU; None on a CPU.
        window: torch's profiler, if it is to look at some steps.
        glance: observes operations and guard checks, once torch is there.
        enough: slots of sites that enough samples came to.
    """

    def __init__(self, emit: Callable[..., None], counters: Counters, began: int, *, sample: bool) -> None:
        self._emit = emit
        self.counters = counters
        self._began = began
        self._sample = sample
        self._step = 0
        self._step_began = self._first_began = began
        self._slots: list[int] = []
        self._gains: dict[int, int] | None = None
        self._compiled = False
        self._quiet = 0
        self._burst = self._pause = self._resting = 0
        self._kept = 0
        self._lead_in = False
        self._pending: list[tuple[str, int, int, int, list[Mark], Any, Any]] = []
        self._buffer: list[list[Any]] = []
        self._later: dict[tuple[tuple[int, int], ...], list[int]] = defaultdict(lambda: [0, 0])
        self._preempted = self._preempted_before = 0
        self._flushed = began
        self._anchor: Any = None
        self._thread = 0
        self._called = False
        self._under_profiler = self._looked = False
        self._profiled: list[dict[str, Any]] = []
        self._plan: list[str] = []  # what the coming steps are for, besides samples
        self._as = events.SAMPLE  # what the step under way is for
        self._bursts = 0
        self._hold: list[int] = []  # how long to hold the device at each mark of a held step
        self._lengths: list[int] = []  # from each mark of the latest sampled step to the next
        self._steady = self._spent = 0  # time of steady steps, and what sampling took of it
        self._usual = 0  # of the latest step without any of it
        self._touched = False  # whether the step before the one under way had marks, which are written now
        self.marks: list[Mark] | None = None
        self.device: Any = None
        self.window: Any = None
        self.glance: Any = None
        self._limited: list[bool] = []  # whether the card was at its power limit, before each burst
        self.enough: set[int] = set()
        self._seen: dict[int, int] = {}

    @property
    def sampled(self) -> int:
        """How many steps were sampled."""
        return self._kept

    def rehearse(self) -> list[Mark]:
        """Have marks made that are no step's: the script is over, and what making them takes is asked."""
        self._thread = threading.get_ident()
        self.device, self.marks = None, []
        return self.marks

    # ---- what hooks tell it ----

    def compiling(self) -> None:
        """Something is being compiled in this step."""
        self._compiled = True

    def call(self) -> None:
        """An outermost compiled call begins."""
        if not self._called:
            # Imports and the building of the model are no part of the first step.
            self._called = True
            self._first_began = self._step_began = perf_counter_ns()
        if self.marks is not None:
            self._thread = threading.get_ident()
            self._mark(CALL, 0)

    def returned(self) -> None:
        """The outermost compiled call is over."""
        if self.marks is not None:
            self._mark(RETURN, 0)

    def tick(self, slot: int) -> None:
        """Execution runs into a site. Only to be called while there are marks."""
        if threading.get_ident() == self._thread and self.marks is not None:
            self.marks.append((TICK, slot, perf_counter_ns(), 0, None, None))

    def tick_of_a_rare_site(self, slot: int) -> None:
        """Execution runs into a site that not enough samples came to, in a step without marks."""
        if not self._sample or not self._bursts or self._quiet < QUIET:
            return
        self._as, self.marks = events.PARTIAL, []
        self._thread = threading.get_ident()
        self.tick(slot)

    def region(self, slot: int, run: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Run a region with marks around it. Only to be called while there are marks."""
        if threading.get_ident() != self._thread or self.marks is None:
            return run(*args, **kwargs)
        self._mark(ENTER, slot)
        try:
            if self._under_profiler:
                with self.window.region():
                    return run(*args, **kwargs)
            return run(*args, **kwargs)
        finally:
            self._mark(LEAVE, slot)

    def _mark(self, kind: int, slot: int) -> None:
        now = perf_counter_ns()
        event = self.device.event() if self._has_events() else None
        after = self.device.hold(self._hold.pop(0)) if self._hold and kind != CALL else None
        if self.marks is not None:
            self.marks.append((kind, slot, now, perf_counter_ns() - now, event, after))

    def _has_events(self) -> bool:
        if self.device is None or self._as == events.PARTIAL:
            return False
        return self._as == events.HELD or self._burst < WITH_EVENTS

    # ---- steps ----

    def step_ended(self) -> None:
        """A step is over."""
        now = perf_counter_ns()
        end = self.device.event() if self.marks is not None and self._has_events() else None
        self._note(now)
        self._account(now - self._step_began)
        if self._under_profiler:
            self._profile(now)
        elif self.marks is not None:
            self._take(now, end)
        self._as, self._hold = events.SAMPLE, []
        self._quiet = 0 if self._compiled else self._quiet + 1
        if self._compiled:
            self._burst = self._pause = self._resting = 0
            self._plan = []
        self._compiled = False
        self._step += 1
        if not self._under_profiler:
            self._prepare()
        if self._pending and self.marks is None:
            self._resolve(wait=False)
        self._step_began = perf_counter_ns() if self._lead_in else now

    def _account(self, took: int) -> None:
        """Add up what sampling takes: marks, colder caches, and writing them in the next step."""
        touched = self.marks is not None or self._touched
        self._touched = self.marks is not None
        if self._compiled:
            return
        if not touched:
            self._usual = took
        elif self._usual:
            self._spent += max(0, took - self._usual)
        self._steady += self._usual  # not what the script waits for in between

    def restart(self) -> None:
        """Steps are counted in another way from now on; what was timed so far is all one step."""
        if self._under_profiler:
            self._stop_looking()
        if self._as == events.GLANCE and self.marks is not None:
            self.glance.stop()
        self._as, self._plan, self._hold = events.SAMPLE, [], []
        self._looked = False  # what it saw is dropped with the rest
        self._emit(events.STEPS, restart=True, rows=[])
        self._buffer, self._pending, self.marks, self._anchor = [], [], None, None
        self._later.clear()
        self._step, self._quiet, self._kept, self._preempted = 0, 0, 0, 0
        self._burst = self._pause = self._resting = 0
        self._slots, self._gains, self._lead_in = [], None, False
        self._step_began = self._first_began

    def _note(self, now: int) -> None:
        """Keep the step for the timeline."""
        slots = self.counters.used()
        before = self._slots
        before.extend([0] * (len(slots) - len(before)))
        gains = {i: new - old for i, (new, old) in enumerate(zip(slots, before, strict=True)) if new != old}
        self._slots = slots
        took = now - self._step_began
        if self._step >= MOST_STEPS and not self._compiled and self.marks is None:
            alike = self._later[tuple(sorted(gains.items()))]
            alike[0] += 1
            alike[1] += took
        else:
            same = gains == self._gains
            self._gains = gains
            # Steady steps gain the same: said once.
            self._buffer.append([self._step, self._step_began - self._began, took, None if same else gains])
        if max(len(self._buffer), len(self._later)) >= _FLUSH_STEPS or now - self._flushed > _FLUSH_NS:
            self.flush()

    def flush(self) -> None:
        """Write the steps that are not written yet."""
        if self._buffer:
            self._emit(events.STEPS, rows=self._buffer)
            self._buffer = []
            self._gains = None
        if self._later:
            rows = [[dict(gains), *alike] for gains, alike in self._later.items()]
            self._emit(events.LATER, rows=rows)
            self._later.clear()
        self._flushed = perf_counter_ns()

    def _take(self, now: int, end: Any) -> None:
        """Keep a sampled step, unless it compiled or is the one after our synchronisation."""
        marks, self.marks = self.marks or [], None
        usable = not self._compiled and not self._lead_in and 0 < len(marks) <= MOST_MARKS
        seen = self.glance.stop() if self._as == events.GLANCE else None
        if self._as == events.GLANCE:
            if usable and seen is not None:
                self._emit_glance(now, marks, seen)
        elif self._as == events.PARTIAL and len(marks) > MOST_MARKS:
            self._count_sites(marks)  # not to be tried again and again
        elif usable:
            self._pending.append((self._as, self._step, self._step_began, now, marks, end, self._anchor))
            self._count_sites(marks)
            if self._as == events.SAMPLE:
                self._kept += 1
                self._burst += 1
                self._preempted += _preemptions() - self._preempted_before
                timed = [mark for mark in marks if mark[0] != TICK]
                ends = [*(mark[2] for mark in timed[1:]), now]
                lengths = zip(timed, ends, strict=True)
                # In a call, before its first region, the device is given nothing.
                self._lengths = [end - mark[2] for mark, end in lengths if mark[0] != CALL]
        self._lead_in = False

    def _count_sites(self, marks: list[Mark]) -> None:
        for slot in {mark[1] for mark in marks if mark[0] == TICK}:
            self._seen[slot] = self._seen.get(slot, 0) + 1
            if self._seen[slot] >= ENOUGH:
                self.enough.add(slot)

    def _emit_glance(self, now: int, marks: list[Mark], seen: dict[str, Any]) -> None:
        """Write what a glance saw, from the beginning of its step on."""
        began = self._step_began
        self._emit(
            events.GLANCE,
            of=self._step,
            ns=now - began,
            marks=[[kind, slot, at - began, took] for kind, slot, at, took, _, _ in marks],
            **{name: [[row[0] - began, *row[1:]] for row in rows] for name, rows in seen.items()},
        )

    def _prepare(self) -> None:
        """Decide whether the coming step is sampled."""
        if self._burst >= BURST:
            self._pause = self._resting = 2 * self._pause or BURST
            self._burst = 0
            purpose = AFTER_BURST[self._bursts % len(AFTER_BURST)]
            self._bursts += 1
            self._plan = [purpose] if purpose is not None else []
            if self.window is not None and not self._looked:
                self._look_closer()
                return
        if self._plan and self._quiet >= QUIET and not self._lead_in and self._look_into(self._plan.pop(0)):
            return
        resting = self._resting or (not self._burst and self._takes_too_much())
        if not self._sample or self._kept >= MOST_SAMPLES or self._quiet < QUIET or resting:
            self._resting = max(0, self._resting - 1)
            self._anchor = None
            return
        if self.device is not None and self._anchor is None:
            self._anchor = self.device.anchor()
            self._lead_in = True
            limited = self.device.at_power_limit()
            if limited is not None:
                self._limited.append(limited)
        self.marks, self._preempted_before = [], _preemptions()

    def _takes_too_much(self) -> bool:
        """Whether the next burst has to wait until more steps were made without marks."""
        return self._bursts >= FREE_BURSTS and self._spent > MOST_SHARE * self._steady

    def _look_into(self, purpose: str) -> bool:
        """Let the coming step be a glance or a held one; False where that cannot be."""
        if purpose == events.GLANCE and (self.glance is None or not self.glance.start()):
            return False
        if purpose == events.HELD:
            if self._anchor is None or self.device is None:
                return False
            self._hold = [round(1.25 * length) + _HOLD_MORE_NS for length in self._lengths]
        self._as, self.marks = purpose, []
        return True

    def _look_closer(self) -> None:
        """Let the profiler run over the coming steps."""
        self._looked, self._profiled = True, []
        try:
            self.window.start()
        except Exception as error:  # noqa: BLE001 - the script's profiler runs, or torch was built without
            self._emit(events.PROFILE, why=f"torch's profiler did not start: {error}")
            return
        self._under_profiler, self._anchor, self.marks = True, None, []

    def _profile(self, now: int) -> None:
        """Keep a step that ran under the profiler; after the last one, what the profiler saw."""
        marks, self.marks = self.marks or [], []
        rows = [[kind, slot, at - self._step_began, took] for kind, slot, at, took, _, _ in marks]
        began, took = self._step_began - self._began, now - self._step_began
        self._profiled.append({"of": self._step, "at": began, "ns": took, "marks": rows})
        if self._compiled or len(self._profiled) > self.window.steps:
            self._stop_looking()

    def _stop_looking(self) -> None:
        self._under_profiler, self.marks = False, None
        try:
            seen = self.window.stop()
        except Exception as error:  # noqa: BLE001 - the report says so
            self._emit(events.PROFILE, why=f"torch's profiler could not be read: {error}")
            return
        self._emit(events.PROFILE, steps=self._profiled, compiled=self._compiled, **seen)

    def _resolve(self, *, wait: bool) -> None:
        """Write the samples whose device events have happened."""
        latest = next((end for *_, end, _ in reversed(self._pending) if end is not None), None)
        if self.device is not None and not self.device.done(latest, wait=wait):
            return
        for kind_of_step, step, start, end, marks, event, anchor in self._pending:
            rows = []
            for kind, slot, at, took, mark, after in marks:
                row = [kind, slot, at - start, took]
                if mark is not None and anchor:
                    row += self.device.since(anchor, mark)
                if after is not None and anchor:
                    row.append(self.device.since(anchor, after)[0])
                rows.append(row)
            device_end = self.device.since(anchor, event) if event is not None and anchor else None
            self._emit(
                kind_of_step,
                of=step,
                ns=end - start,
                anchor=None if anchor is None else anchor[1] - start,
                device_end=None if device_end is None else device_end[0],
                marks=rows,
            )
        if self.device is not None:
            self.device.reuse(
                event for *_, marks, end, _ in self._pending for event in (end, *_events(marks))
            )
        self._pending = []

    def finish(self) -> None:
        """The script is over: write what is left."""
        if self._as == events.GLANCE and self.marks is not None:
            self.glance.stop()  # the script ends in the middle of the step
        if self._under_profiler:
            self._stop_looking()
        elif self.window is not None and not self._looked:
            few = "the script ended before the first samples were taken"
            self._emit(events.PROFILE, why=few)
        self.marks = None
        self._sample = False
        self.flush()
        if self._pending:
            self._resolve(wait=True)
        if self._kept:
            load = os.getloadavg()[0] / (os.cpu_count() or 1)
            self._emit(
                events.BUSY,
                load=load,
                samples=self._kept,
                preempted=self._preempted,
                power=[sum(self._limited), len(self._limited)],
            )


def _preemptions() -> int:
    """How often the CPU was taken from this thread for somebody else (of the process, outside of Linux)."""
    return resource.getrusage(getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)).ru_nivcsw


def _events(marks: list[Mark]) -> list[Any]:
    """The device events of some marks."""
    return [event for mark in marks for event in mark[4:]]
