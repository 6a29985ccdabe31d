"""From Dynamo's text of a failed guard to its parts.

Dynamo says why a frame was compiled again in one artifact, ``recompile_reasons``: a bare string for
one reason, a JSON list for several. Each reason names a cache entry, the guard of it that failed
first, and sometimes the line that made the guard and a user stack. Dynamo takes ``L['x']`` down to
``x`` before it writes the text, but not everywhere, so both spellings are read here.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

from breakscope.report.model import Frame

_COMPILE_ID = re.compile(r"(?:(!?\d+(?:/\d+)*)|None):(?: |$)")
_HINT = re.compile(r" \(HINT: .*\)$", re.DOTALL)
_STACK = re.compile(r"\nUser stack trace:\n")
# The function that runs what is left of another after a graph break.
RESUMED = re.compile(r"torch_dynamo_resume_in_(?P<name>.+)_at_(?P<line>\d+)$")
_FRAME = re.compile(r'  File "(?P<file>.*)", line (?P<line>\d+), in (?P<function>.*)$')
_LONG, _MOST = 16_000, 16  # characters of a payload, and reasons that are kept of a longer one


class Failed(NamedTuple):
    """One guard of a version that failed.

    Attributes:
        at: of a tensor's size the dimension; before, now: and both values.
        text: the guard's, of what is no tensor, and of a parameter's size.
    """

    source: str
    at: int | None = None
    before: str = ""
    now: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class GuardFailure:
    """One reason for a recompile: a cache entry and its first guard that failed.

    Attributes:
        compile_id: the cache entry that failed (``"0/0"``), not the compilation that followed.
        expression: the guard without the id, the comment and the stack.
        comment: where the guard came from, with Dynamo's hint.
        user_stack: outermost first, resumed functions under the name of the function that they resume;
            only torch >= 2.13 gives one. Whose code a frame is (``owner``) is not decided here.
        raw: the whole text.
    """

    compile_id: str | None
    expression: str
    comment: str | None
    user_stack: tuple[Frame, ...]
    raw: str


def parse_reasons(payload: str | list[Any]) -> tuple[GuardFailure, ...]:
    """Read a ``recompile_reasons`` payload.

    Never raises: a text that fits nothing becomes a failure with that text as its expression.
    """
    if isinstance(payload, str):
        try:
            # A guard such as "[1, 2]" alone never occurs: every reason starts with a compile id.
            decoded = json.loads(payload)
        except (ValueError, RecursionError):
            decoded = payload
        payload = decoded if isinstance(decoded, list) else [decoded if isinstance(decoded, str) else payload]
    return tuple(_parse_reason(reason if isinstance(reason, str) else repr(reason)) for reason in payload)


def without_old(payload: str | list[Any]) -> str | list[Any]:
    """A ``recompile_reasons`` payload without all but the latest reasons, if it is a long one.

    Dynamo names every cache entry at every recompile, the latest first: thousands of recompiles are millions
    of reasons, and only the first tells why it was compiled again (:mod:`breakscope.diagnose.recompiles`).
    """
    if isinstance(payload, str) and len(payload) > _LONG:
        try:
            decoded = json.loads(payload)
        except (ValueError, RecursionError):
            return payload
        payload = decoded if isinstance(decoded, list) else payload
    return payload if isinstance(payload, str) else payload[:_MOST]


def _parse_reason(raw: str) -> GuardFailure:
    text, stack = raw, tuple[Frame, ...]()
    if parted := _STACK.search(raw):
        text, stack = raw[: parted.start()], _parse_stack(raw[parted.end() :])
    compile_id = None
    if identified := _COMPILE_ID.match(text):
        compile_id, text = identified.group(1), text[identified.end() :]
    expression, comment = _split_comment(text)
    return GuardFailure(compile_id, expression, comment, stack, raw)


def _parse_stack(text: str) -> tuple[Frame, ...]:
    frames: list[Frame] = []
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if not (found := _FRAME.match(line)):
            continue
        below = lines[number + 1] if number + 1 < len(lines) else ""
        source = below.strip() if below.startswith("    ") else None
        name = resumed["name"] if (resumed := RESUMED.match(found["function"])) else found["function"]
        frames.append(Frame(found["file"], int(found["line"]), name, source))
    return tuple(frames)


def _split_comment(text: str) -> tuple[str, str | None]:
    """The guard, and what follows the first ``#`` that is not inside a string."""
    start = text.find("  # ")
    while start >= 0 and _inside_string(text[:start]):
        start = text.find("  # ", start + 1)
    if start < 0:
        # Texts of the C++ side have unbalanced quotes and no comment, but may end with a hint.
        if hint := _HINT.search(text):
            return text[: hint.start()].strip(), hint.group().strip(" ()")
        return text.strip(), None
    return text[:start].strip(), text[start + 4 :].strip()


def _inside_string(text: str) -> bool:
    quote, escaped = "", False
    for char in text:
        if escaped:
            escaped = False
        elif quote and char == "\\":
            escaped = True
        elif quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
    return bool(quote)
