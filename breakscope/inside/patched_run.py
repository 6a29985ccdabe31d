"""The agent of ``breakscope run --fixes``: applies a folder of fixes, and does nothing else."""

from __future__ import annotations

import json
import sys

from breakscope.inside import overlay, tracebacks


def start(settings: str) -> None:
    """Called by the boot file. ``settings``: JSON with ``fixes`` (a folder) and ``script`` (a path)."""
    data = json.loads(settings)
    sys.excepthook = tracebacks.without_our_frames(sys.excepthook)
    overlay.install(data["fixes"], data["script"])
