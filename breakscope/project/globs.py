"""Which paths a pattern of the configuration means: the rules of .gitignore, without its negation."""

from __future__ import annotations

import re
from functools import cache


def matches(pattern: str, path: str) -> bool:
    """Whether a path, relative with ``/``, is meant by a pattern.

    ``*`` and ``?`` stop at ``/``, ``**`` does not. A pattern with a ``/`` in it begins at the top, one
    without holds at any depth. A pattern that means a folder means all that is in it.
    """
    return _compiled(pattern).match(path) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    body = pattern.strip("/")
    anchored = "/" in pattern.rstrip("/")
    parts = []
    index = 0
    while index < len(body):
        if body.startswith("**/", index):
            parts.append("(?:[^/]+/)*")
            index += 3
        elif body.startswith("**", index):
            parts.append(".*")
            index += 2
        else:
            character = body[index]
            parts.append({"*": "[^/]*", "?": "[^/]"}.get(character) or re.escape(character))
            index += 1
    # A trailing slash means a folder: something must be in it.
    end = "/" if pattern.endswith("/") else "(?:/|$)"
    return re.compile(("" if anchored else "(?:.*/)?") + "".join(parts) + end)
