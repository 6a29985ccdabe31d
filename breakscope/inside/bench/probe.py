"""Profiles inside an arm's process, around granted steps: how busy the device is, and with what."""

from __future__ import annotations

import json
import os
import statistics
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch.profiler import ProfilerActivity, profile, record_function

from breakscope.inside.bench import trace
from breakscope.inside.bench.attribution import Attribution
from breakscope.inside.bench.wire import Message

if TYPE_CHECKING:
    from breakscope.inside.bench.alone import Again


def begin(purpose: str, message: Message, folder: Path, on_gpu: bool) -> Session:
    """Start a session that lasts for the granted steps.

    Args:
        purpose: "profile" for kernels and their times; "kernels" for who launched each, and to run it again.
    """
    session = _Profile if purpose == "profile" else _Kernels
    return session(message, folder, on_gpu)


class Session:
    """A profiler around steps.

    Attributes:
        again: runs the kernels of the steps again, once the session has ended; None where it cannot.
    """

    def __init__(self, message: Message, folder: Path, on_gpu: bool) -> None:
        self.again: Again | None = None
        self.message = message
        self.folder = folder
        self.on_gpu = on_gpu
        # Between profiles CUPTI stays: torch sets this itself where its config asks for CUDA graphs, and does
        # not see a mode that was asked of one compile. Kernels may be launched a little slower from here on,
        # but no step is timed any more. Events are not parsed by torch (acc_events): the file has them.
        os.environ.setdefault("TEARDOWN_CUPTI", "0")
        activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
        self._profile = profile(activities=activities, record_shapes=False, with_stack=False)
        self._profile.start()
        self._marker: Any = None

    def begin_step(self) -> None:
        """A step begins; the device has nothing to do."""
        self._marker = record_function(trace.STEP)
        self._marker.__enter__()

    def end_step(self) -> None:
        """A step is over, and the device has been waited for."""
        self._marker.__exit__(None, None, None)

    def events(self) -> list[dict[str, Any]]:
        """Stop, and read what was recorded."""
        self._profile.stop()
        return exported(self._profile, self.folder)

    def end(self) -> dict[str, Any]:
        """Stop, and say what was found."""
        raise NotImplementedError


def exported(profiler: Any, folder: Path) -> list[dict[str, Any]]:
    """The events of a profile, by way of the file that PyTorch documents."""
    path = folder / "trace.json"
    profiler.export_chrome_trace(str(path))
    events: list[dict[str, Any]] = json.loads(path.read_text("utf-8", "replace"))["traceEvents"]
    path.unlink()
    return events


class _Profile(Session):
    def end(self) -> dict[str, Any]:
        events = self.events()
        settle, steps = self.message["settle"], self.message["steps"]
        spans = trace.steps(events)[settle : settle + steps]
        if not spans:
            return {"kernels": [], "busy_ms": None, "span_ms": None}
        launches = trace.device_launches(events) if self.on_gpu else trace.cpu_launches(events)
        busy = [trace.busy_us(trace.within(launches, [span])) / 1e3 for span in spans]
        return {
            "kernels": trace.grouped(launches, spans),
            "busy_ms": statistics.median(busy) if self.on_gpu else None,
            "span_ms": statistics.median((end - begin) / 1e3 for begin, end in spans),
        }


class _Kernels(Session):
    def __init__(self, message: Message, folder: Path, on_gpu: bool) -> None:
        self._attribution = Attribution(on_gpu)
        super().__init__(message, folder, on_gpu)
        self._attribution.__enter__()

    def end(self) -> dict[str, Any]:
        self._attribution.__exit__(None, None, None)
        events = self.events()
        spans = trace.steps(events)[: self.message["steps"]]
        launches = trace.device_launches(events) if self.on_gpu else trace.cpu_launches(events)
        try:
            from breakscope.inside.bench import alone, records

            found: dict[str, Any] = {
                "kernels": records.describe(self._attribution, trace.within(launches, spans))
            }
            if self.message.get("export"):
                from breakscope.inside.bench import export

                found["exported"] = export.write(self._attribution, found, Path(self.message["export"]))
            self.again = alone.Again(found["kernels"], self._attribution.done, self.folder, self.on_gpu)
        except Exception as error:  # noqa: BLE001 -- the arm's times stand; what is missing is said
            where = traceback.extract_tb(error.__traceback__)[-1]
            found = {"error": f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"}
        return {"details": found}
