"""Lines on stderr that are not the script's own: torch's log, its warnings about compiling, and our messages.

A patch makes a graph break go, and torch's notice of it with it. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_LOG_LINE = re.compile(r"[VIWEF]\d{4} \d\d:\d\d:\d\d")
_COMPILER = (
    r"[/\\]torch[/\\](?:_dynamo|_inductor|_functorch|_higher_order_ops|_subclasses|_logging|compiler|fx)[/\\]"
)
# A graph's own code has no file; outside of it the same warns at a line of the script, or nothing does.
_WARNING = re.compile(rf"(?:.*{_COMPILER}.*\.py|<eval_with_key>[.\d]*):\d+: \w+: ")
_TRACEBACK = "Traceback (most recent call last):"
_FRAME = '  File "'
# A warning's text may have lines of its own; behind it stands the line of source, indented by two.
_MAX_WARNING = 15

Numbered = tuple[int, str]


def script_lines(lines: Sequence[Numbered]) -> list[Numbered]:
    """The lines of stderr without torch's notices about compiling, our own, and frames of tracebacks.

    The frames are left out because Dynamo puts its own among them; what was raised stays.
    """
    kept: list[Numbered] = []
    at = 0
    while at < len(lines):
        _, text = lines[at]
        if _LOG_LINE.match(text) or text.startswith("breakscope: "):
            at += 1
        elif _WARNING.match(text):
            at = _behind_warning(lines, at)
        elif text.strip() == _TRACEBACK:
            kept.append(lines[at])
            at += 1
            while at < len(lines) and lines[at][1].startswith("  "):
                at += 1
        else:
            kept.append(lines[at])
            at += 1
    return kept


def _behind_warning(lines: Sequence[Numbered], at: int) -> int:
    """The place behind a warning; frames that its text quotes are part of it."""
    in_frame = False
    for index in range(at + 1, min(at + 1 + _MAX_WARNING, len(lines))):
        text = lines[index][1]
        in_frame = text.startswith(_FRAME) or (in_frame and text.startswith("    "))
        if text.startswith("  ") and not in_frame:
            return index + 1
    return at + 1
