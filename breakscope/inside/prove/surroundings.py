"""Who is around a function while the script calls it: its callers, and who listens to messages.

A rewrite may change what only they can see: the type of an exception, a message that is not written. Whether
they look is asked of the source of these callers, later and elsewhere; here is noted who they are.
"""

from __future__ import annotations

import logging
import os
import sys
import types
import warnings
from dataclasses import dataclass, field
from typing import Any

import torch

from breakscope.inside.prove import reach
from breakscope.report.owners import is_packaged

# Later calls come from the same few places, or the script is one that nobody waits for.
_MOST_CALLS = 4096
_MOST_PLACES = 400
_SHOW = getattr(warnings, "_showwarnmsg_impl", None)
_SHOW_PUBLIC = warnings.showwarning


@dataclass(slots=True)
class Surroundings:
    """What was seen around the calls of one function.

    Attributes:
        callers: places from which it was called, directly or not: file and line, without torch's own.
        listeners: who would see a message: one sentence each, without full stop.
    """

    callers: dict[tuple[str, int], None] = field(default_factory=dict)
    listeners: dict[str, None] = field(default_factory=dict)
    _calls: int = 0
    _seen: set[tuple[int, int]] = field(default_factory=set)

    def note(self, frame: types.FrameType | None) -> None:
        """Look around at the beginning of a call; ``frame``: its caller."""
        self._calls += 1
        if self._calls > _MOST_CALLS:
            return
        while frame is not None and len(self.callers) < _MOST_PLACES:
            key = (id(frame.f_code), frame.f_lasti)
            if key not in self._seen:
                self._seen.add(key)
                file = frame.f_code.co_filename
                if not file.startswith(("<", _TORCH)):
                    self.callers[file, frame.f_lineno] = None
            frame = frame.f_back
        if self._calls & (self._calls - 1) == 0:  # there may be hundreds of loggers
            self.listeners.update(dict.fromkeys(_of_loggers()))
        self.listeners.update(dict.fromkeys(_of_warnings()))

    def result(self) -> dict[str, Any]:
        """For the report."""
        return {"callers": [list(place) for place in self.callers], "listeners": list(self.listeners)}


_TORCH = os.path.dirname(torch.__file__) + os.sep


def _of_warnings() -> list[str]:
    found = []
    if getattr(warnings, "_showwarnmsg_impl", None) is not _SHOW:
        found.append("the script collects warnings (warnings.catch_warnings)")
    elif warnings.showwarning is not _SHOW_PUBLIC:
        found.append("the script shows warnings in its own way (warnings.showwarning)")
    for action, message, category, _module, _line in warnings.filters:
        if issubclass(UserWarning, category) and message is None:
            if action == "error":
                found.append("the script makes warnings errors (warnings.simplefilter)")
            break
    if sys.stderr is not sys.__stderr__:
        found.append("the script reads its own standard error")
    return found


def _of_loggers() -> list[str]:
    """Handlers and filters of a class that is neither Python's nor a library's."""
    found = []
    loggers = [logging.root, *logging.root.manager.loggerDict.values()]
    for logger in loggers:
        if not isinstance(logger, logging.Logger):
            continue
        for handler in (*logger.handlers, *logger.filters):
            for part in (handler, *getattr(handler, "filters", ())):
                if _is_own(type(part)) or isinstance(part, types.FunctionType):
                    name = getattr(part, "__qualname__", type(part).__qualname__)
                    found.append(f"the script listens to messages ({name} of the logger {logger.name!r})")
        if _is_own(type(logger)):
            found.append(f"the script has loggers of its own class ({type(logger).__qualname__})")
    return found


def _is_own(cls: type) -> bool:
    """Whether a class was written by the user: it is not Python's, and not installed."""
    if reach.foreign(cls.__module__):
        return False
    file = getattr(sys.modules.get(cls.__module__), "__file__", None) or ""
    return not is_packaged(file)
