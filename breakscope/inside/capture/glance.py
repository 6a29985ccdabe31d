"""What the host does in one step: guard checks and operations, by torch's observers of operations.

Every operation of torch, and each time that Dynamo looks for code whose guards hold, passes an observer
that a profiler may set. This is the oldest of torch's profilers, which is that and nothing more: to begin
and to end it takes a tenth of a millisecond, and the device is not watched at all. It makes each operation
longer by a microsecond, so its times are scaled to those of steps without it. Inductor tells it of each call
of a region and of each launch, as it does under any profiler.
"""

from __future__ import annotations

from time import perf_counter_ns
from typing import Any

from torch.autograd import ProfilerConfig, ProfilerState, profiler

from breakscope.inside import torch_api

LOOKUP = "TorchDynamo Cache Lookup"
_TIE = "breakscope tie"
_CALL = "## Call CompiledFxGraph"  # what Inductor made of a region, inside of the runtime's wrappers
MOST_OPERATIONS = 4_000  # of one step, outermost ones


class Glance:
    """Observes this thread for a step."""

    _NEEDS = ("glance_start", "glance_stop", "glance_options", "profiler_enabled", "profiler_prepare")
    _SAYS = "profiler_says"  # Inductor tells observers of calls and launches only while this is set

    def __init__(self) -> None:
        self._tied = 0
        self._on = False

    def start(self) -> bool:
        """Begin; False where torch lacks it, or where a profiler of the script's runs."""
        if not all(map(torch_api.available, self._NEEDS)) or torch_api.get("profiler_enabled")():
            return False
        asked = (False, False, False, False, False)  # shapes, memory, stacks, operations, modules
        options = ProfilerConfig(ProfilerState.CPU, *asked, torch_api.get("glance_options")())
        torch_api.get("glance_start")(options)
        self._on = True
        profiler._prepare_profiler = self._give_way
        self._tell_inductor(True)
        for _ in range(2):  # the first time takes its time
            begin = perf_counter_ns()
            with profiler.record_function(_TIE):
                self._tied = (begin + perf_counter_ns()) // 2
        return True

    def _give_way(self, *args: Any, **kwargs: Any) -> Any:
        """The script's own profiler is about to start, which two cannot do at a time."""
        self.stop()
        return torch_api.get("profiler_prepare")(*args, **kwargs)

    def _tell_inductor(self, watched: bool) -> None:
        if torch_api.available(self._SAYS):
            torch_api.get(self._SAYS)(watched)

    def stop(self) -> dict[str, Any] | None:
        """End, and say what was seen; None if it has ended before.

        Returns:
            lookups: [beginning, length]; calls: [beginning, length, launches] of what Inductor made of
            regions; ops: [beginning, length, name, whether it waits for the device] of outermost operations.
            In order, in nanoseconds by ``perf_counter_ns``.
        """
        if not self._on:
            return None
        self._on = False
        self._tell_inductor(False)
        profiler._prepare_profiler = torch_api.get("profiler_prepare")
        found: dict[str, Any] = {"lookups": [], "calls": [], "ops": []}
        try:
            threads = torch_api.get("glance_stop")()
        except RuntimeError:  # steps end in another thread than the one they begin in
            return None
        for thread in threads:
            if any(event.name() == _TIE for event in thread):
                _read(thread, self._tied, found)
        return found


def _read(thread: list[Any], tied: int, found: dict[str, Any]) -> None:
    """Sort the events of one thread."""
    first = thread[0]
    zero = [first.cpu_elapsed_us(event) for event in thread if event.name() == _TIE][-1]
    open_: list[tuple[str, float]] = []
    outermost, waits, launches = 0, False, 0
    for event in thread:
        kind = event.kind()
        if kind == "push":
            name = event.name()
            launches = 0 if name.startswith(_CALL) else launches + _called_directly(open_)
            open_.append((name, first.cpu_elapsed_us(event)))
            outermost += "::" in name
            waits = waits or name in _WAITING
        elif kind == "pop" and open_:
            name, began = open_.pop()
            at, took = tied + round((began - zero) * 1e3), round((first.cpu_elapsed_us(event) - began) * 1e3)
            if name == LOOKUP:
                found["lookups"].append([at, took])
            elif name.startswith(_CALL):
                found["calls"].append([at, took, launches])
            elif "::" in name:
                outermost -= 1
                if not outermost and len(found["ops"]) < MOST_OPERATIONS:
                    found["ops"].append([at, took, name, waits])
                    waits = False


def _called_directly(open_: list[tuple[str, float]]) -> bool:
    return bool(open_) and open_[-1][0].startswith(_CALL)


# Operations that end when the device has ended all that they read.
_WAITING = frozenset({"aten::_local_scalar_dense", "aten::nonzero", "aten::equal", "aten::masked_select"})
