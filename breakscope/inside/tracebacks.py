"""The script's own frames, as they would be without us."""

from __future__ import annotations

import os
import re
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from breakscope.report.owners import owner_of

_PLUMBING = re.compile(r"/torch/(?:_dynamo/|nn/modules/module\.py$)")
_MOST_LINKS, _MOST_TEXT = 8, 2_000
PACKAGE = os.path.join(Path(__file__).resolve().parent.parent, "")


def without_our_frames(hook: Callable[..., Any]) -> Callable[..., Any]:
    """``sys.excepthook`` that shows the script's traceback as it would be without us."""

    def excepthook(
        kind: type[BaseException], error: BaseException, _trace: types.TracebackType | None
    ) -> None:
        seen: set[int] = set()
        link: BaseException | None = error
        while link is not None and id(link) not in seen:
            seen.add(id(link))
            link.__traceback__ = _strip(link.__traceback__)
            link = link.__cause__ or link.__context__
        hook(kind, error, error.__traceback__)

    return excepthook


def is_plumbing(file: str) -> bool:
    """Whether a file is ours, or is how a call reaches a ``forward``: nothing that anybody looks for."""
    return file.startswith((PACKAGE, "<frozen")) or _PLUMBING.search(file.replace("\\", "/")) is not None


def telling(hook: Callable[..., Any], tell: Callable[[list[dict[str, Any]]], None]) -> Callable[..., Any]:
    """``sys.excepthook`` that says first which exceptions ended the script: the last one, and its causes.

    Each with its type, its text, and the ``file`` and ``line`` that raised it; ``at`` is the last line on the
    way there that is not torch's.
    """

    def excepthook(
        kind: type[BaseException], error: BaseException, trace: types.TracebackType | None
    ) -> None:
        links: list[BaseException] = []
        link: BaseException | None = error
        while link is not None and link not in links and len(links) < _MOST_LINKS:
            links.append(link)
            link = link.__cause__ or link.__context__
        tell([{"type": type(one).__name__, "text": _text(one), **_place(one.__traceback__)} for one in links])
        hook(kind, error, trace)

    return excepthook


def _place(trace: types.TracebackType | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    while trace is not None:
        code = trace.tb_frame.f_code
        found |= {"file": code.co_filename, "line": trace.tb_lineno}
        if _is_of_user(code.co_filename):
            found["at"] = {"file": code.co_filename, "line": trace.tb_lineno, "function": code.co_qualname}
        trace = trace.tb_next
    return found


def _text(error: BaseException) -> str:
    try:
        return str(error)[:_MOST_TEXT]
    except Exception:  # noqa: BLE001 -- the script's own class
        return ""


def innermost_of_user(frame: types.FrameType | None) -> types.FrameType | None:
    """The nearest frame from ``frame`` outward that is neither torch's nor ours; None if there is none."""
    while frame is not None:
        if _is_of_user(frame.f_code.co_filename):
            return frame
        frame = frame.f_back
    return None


def _is_of_user(file: str) -> bool:
    return not file.startswith(PACKAGE) and owner_of(file, ()) != "torch" and "<frozen" not in file


def _strip(trace: types.TracebackType | None) -> types.TracebackType | None:
    kept = []
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(PACKAGE):
            kept.append(trace)
        trace = trace.tb_next
    rest: types.TracebackType | None = None
    for entry in reversed(kept):
        rest = types.TracebackType(rest, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return rest
