"""What our own Python was started with, so that the script's can be started with the same."""

from __future__ import annotations

import importlib.util
import os
import sys

from breakscope.errors import UsageError

# Variable -> its value before our Python started, and what that made of it. None: it was not there.
_changed: dict[bytes, tuple[bytes | None, bytes | None]] = {}


def note_start() -> None:
    """Note what starting this Python did to the environment: called first by the command line.

    Python sets LC_CTYPE where the locale is C, and the environment's sitecustomize may set what it likes. The
    script's own Python does the same again, and must not find it done.
    """
    try:
        with open("/proc/self/environ", "rb") as file:
            lines = file.read().split(b"\0")
    except OSError:
        return  # not Linux
    before = dict(line.split(b"=", 1) for line in lines if b"=" in line)
    for name in before.keys() | os.environb.keys():
        old, new = before.get(name), os.environb.get(name)
        if old != new:
            _changed[name] = old, new


def environment() -> dict[str, str]:
    """The environment that the script gets: ours, without what starting our own Python did to it."""
    ours = dict(os.environb)
    for name, (old, new) in _changed.items():
        if ours.get(name) != new:
            continue  # changed again since, on purpose
        if old is None:
            ours.pop(name, None)
        else:
            ours[name] = old
    return {os.fsdecode(name): os.fsdecode(value) for name, value in ours.items()}


def sitecustomize_failed() -> bool:
    """Whether the environment's sitecustomize failed when our own Python started, which has said so then."""
    loaded = "sitecustomize" in sys.modules or sys.flags.no_site
    return not loaded and importlib.util.find_spec("sitecustomize") is not None


def options() -> list[str]:
    """Options of Python that were given to us: those of ``python -O -m breakscope scan`` are the script's.

    Raises:
        UsageError: for options under which Python does not start our part of the script's process.
    """
    main = getattr(sys.modules["__main__"], "__spec__", None)
    if main is None or main.name != "breakscope.__main__":
        return []  # the first line of an installed command has options of its own
    if sys.flags.ignore_environment or sys.flags.no_site:
        raise UsageError("python -I, -E and -S keep breakscope out of the script's process; leave them out")
    words = sys.orig_argv
    return words[1 : words.index("-m")] if "-m" in words else []
