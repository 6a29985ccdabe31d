"""What a scan needs before the script's first line: changed source, a function to compile, children.

Started by the boot file apart from everything: what it imports is not left for the script to find. So what
runs later imports nothing.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from breakscope.inside import events, overlay
from breakscope.inside.capture import targets
from breakscope.inside.capture.children import Children
from breakscope.inside.capture.secrets import Redactor
from breakscope.inside.events import EventWriter
from breakscope.inside.settings import AGENT, Settings


def start(settings_text: str) -> None:
    """Called by the boot file."""
    settings = Settings.loads(settings_text).of_process()
    if settings.events and not Path(settings.folder).is_dir():
        return  # a child that outlives its scan
    if settings.fixes is not None:
        overlay.install(settings.fixes, settings.script)
    told = _Told(settings.events)
    if settings.stopwatch:
        cache = os.path.join(settings.folder, "cache")
        os.environ |= {"TORCHINDUCTOR_CACHE_DIR": cache, "TRITON_CACHE_DIR": os.path.join(cache, "triton")}
    asked = [
        targets.Decorated(targets.Target.parse(name), decorator)
        for name, decorator in ((settings.function, _compiled), (settings.watch, _watched))
        if name is not None
    ]
    if asked:
        targets.install(asked, settings.script, told.functions)
    if settings.children and settings.events:
        Children(settings, told.event).follow()


def _compiled(function: Any) -> Any:
    import torch  # noqa: F401 -- the agent comes with it

    agent = getattr(sys.modules.get(AGENT), "running", None)
    return function if agent is None else agent.compile_target(function)


def _watched(function: Any) -> Any:
    import torch  # noqa: F401 -- the agent comes with it

    agent = getattr(sys.modules.get(AGENT), "running", None)
    return function if agent is None else agent.watch_calls(function)


class _Told:
    """Events of a process whose agent may never be loaded."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._redactor = Redactor()

    def functions(self, names: list[str]) -> None:
        """The functions of a module that has none of the name that was asked for."""
        self.event(events.SEEN, what="functions", names=names)

    def event(self, kind: str, **fields: Any) -> None:
        """Write one event. A folder that is gone, or full, is not the script's affair."""
        with suppress(OSError):
            writer = EventWriter(self._file)
            writer.write({"t": kind, "at": 0.0, "step": 0, "call": 0, **self._redactor.clean(fields)})
            writer.close()
