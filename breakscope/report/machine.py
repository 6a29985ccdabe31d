"""Which machine, and which user on it, made a report."""

from __future__ import annotations

import hashlib
import os
import socket
from functools import cache
from pathlib import Path


@cache
def this_machine() -> str:
    """A digest that names this machine and its present user, and tells nothing about them."""
    parts = [socket.gethostname(), str(os.getuid())]
    for file in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        try:
            parts.append(Path(file).read_text(encoding="ascii").strip())
        except (OSError, ValueError):
            continue
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
