"""The deeper look of ``scan --profile``: torch's profiler over a few steady steps.

It shows what lies inside of a gap: waits for the device, operations that run eagerly, launches. It makes
every step slower, so it says how a gap divides and not how long it is. Regions are marked in the profile; as
they have marks of :mod:`breakscope.inside.capture.clock` too, both clocks can be laid over each other.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from breakscope.inside import torch_api

STEPS = 5
REGION = "breakscope region"
_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
_RUNTIME = ("cuda_runtime", "cuda_driver")
_SHADOW = "gpu_user_annotation"


class Window:
    """One window of the profiler.

    Args:
        file: where the profiler may write for a moment.

    Attributes:
        steps: how many it is for; one more goes before them, in which things settle.
    """

    steps = STEPS

    def __init__(self, file: Path) -> None:
        self._file = file
        self._profile: Any = None

    def start(self) -> None:
        """Begin. Takes a second or two: the profiler's libraries are loaded now.

        Raises:
            RuntimeError: if a profiler is running already.
        """
        if not torch_api.available("profiler_enabled") or torch_api.get("profiler_enabled")():
            raise RuntimeError("one is running already")
        # libkineto tells the script's stderr when it starts and stops.
        os.environ.setdefault("KINETO_LOG_LEVEL", "99")
        on_gpu = torch.cuda.is_available() and torch.cuda.is_initialized()
        activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
        self._profile = profile(activities=activities)
        with warnings.catch_warnings():
            # Of a second cycle, which there is none of. With acc_events torch would not warn, but parse all
            # events in Python at the end; the file has them.
            warnings.filterwarnings("ignore", message=".*Profiler clears events", category=UserWarning)
            self._profile.start()

    def region(self) -> AbstractContextManager[object]:
        """What a region runs in while the window is open."""
        return record_function(REGION)  # type: ignore[no-any-return]  # torch's is not typed

    def stop(self) -> dict[str, Any]:
        """End, and say what was seen: see :func:`compact`."""
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            torch.cuda.synchronize()  # of kernels that have not run yet nothing would be known
        self._profile.stop()
        try:
            self._profile.export_chrome_trace(str(self._file))
            return compact(json.loads(self._file.read_text("utf-8", "replace"))["traceEvents"])
        finally:
            self._file.unlink(missing_ok=True)


def compact(events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """What is needed of a trace in Chrome's format. Times in microseconds on the profiler's clock.

    Returns:
        regions: beginnings of the marked regions; ops: (beginning, duration, name) of operations outside of
        regions that no other one called; waits: (beginning, duration) of calls that wait for the device;
        launches: beginnings of calls that give the device work; busy: (beginning, end) of stretches in which
        the device worked. All of the thread that the regions ran in, and in order.
    """
    timed = [event for event in events if event.get("ph") == "X"]
    # A mark on the host throws a shadow on the device, under the same name.
    threads = [one["tid"] for one in timed if one["name"] == REGION and one.get("cat") != _SHADOW]
    thread = max(set(threads), key=threads.count) if threads else None
    mine = [one for one in timed if one["tid"] == thread and one.get("cat") != _SHADOW]
    mine.sort(key=lambda one: one["ts"])
    ops = [one for one in mine if one.get("cat") == "cpu_op" and "::" in one["name"]]
    runtime = [one for one in mine if one.get("cat") in _RUNTIME]
    regions = [one for one in mine if one["name"] == REGION]
    return {
        "regions": [region["ts"] for region in regions],
        "ops": [[one["ts"], one["dur"], one["name"]] for one in _outermost([*regions, *ops])],
        "waits": [[one["ts"], one["dur"]] for one in runtime if _waits(one["name"])],
        "launches": [one["ts"] for one in runtime if "Launch" in one["name"]],
        "busy": _stretches([one for one in timed if one.get("cat") in _DEVICE]),
    }


def _waits(name: str) -> bool:
    return "Synchronize" in name or name == "cudaMemcpy"


def _outermost(spans: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Those that lie in no other one, without the regions."""
    found, end = [], float("-inf")
    for span in sorted(spans, key=lambda span: (span["ts"], -span["dur"])):
        if span["ts"] >= end:
            end = span["ts"] + span["dur"]
            if span["name"] != REGION:
                found.append(span)
    return found


def _stretches(spans: Sequence[Mapping[str, Any]]) -> list[list[float]]:
    """Times joined where they touch or overlap."""
    joined: list[list[float]] = []
    for span in sorted(spans, key=lambda span: span["ts"]):
        begin, end = span["ts"], span["ts"] + span["dur"]
        if joined and begin <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], end)
        else:
            joined.append([begin, end])
    return joined
