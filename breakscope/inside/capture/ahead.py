"""What a scan needs before the script's first line: changed source, and the function that is to be compiled.

Started by the boot file apart from everything: what it imports is not left for the script to find.
"""

from __future__ import annotations

import sys
from typing import Any

from breakscope.inside import events, overlay
from breakscope.inside.capture import targets
from breakscope.inside.events import EventWriter
from breakscope.inside.settings import AGENT, Settings


def start(settings_text: str) -> None:
    """Called by the boot file."""
    settings = Settings.loads(settings_text)
    if settings.fixes is not None:
        overlay.install(settings.fixes, settings.script)
    if settings.function is not None:
        target = targets.Target.parse(settings.function)
        targets.install(target, settings.script, _compiled, lambda names: _tell(settings.events, names))


def _compiled(function: Any) -> Any:
    import torch  # noqa: F401 -- the agent comes with it

    agent = getattr(sys.modules.get(AGENT), "running", None)
    return function if agent is None else agent.compile_target(function)


def _tell(file: str, names: list[str]) -> None:
    writer = EventWriter(file)
    writer.write({"t": events.SEEN, "at": 0.0, "step": 0, "call": 0, "what": "functions", "names": names})
    writer.close()
