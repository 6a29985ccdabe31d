"""Which paths a pattern of the configuration means: the rules of .gitignore, without its negation."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


def matches(pattern: str, path: str) -> bool:
    """Whether a path, relative with ``/``, is meant by a pattern.

    ``*`` and ``?`` stop at ``/``, ``**`` does not. A pattern with a ``/`` in it begins at the top, one
    without holds at any depth. A pattern that means a folder means all that is in it.
    """
    return _spec(pattern).match_file(path)


@cache
def _spec(pattern: str) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines([pattern])
