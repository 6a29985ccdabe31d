"""Which possible breaks to show: by code and by level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from breakscope.project import globs
from breakscope.report.lint import Linted, Possible
from breakscope.report.owners import stable_path


class Choice(NamedTuple):
    """Codes, or prefixes of codes, to show and to leave out, and the level from which on to show.

    Attributes:
        select: empty for all.
        level: "likely" or "possible", which shows both.
        by_path: codes to leave out in paths that match a pattern; the paths are relative to ``root``.
    """

    select: tuple[str, ...]
    ignore: tuple[str, ...]
    level: str
    by_path: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    root: str = ""

    def apply(self, linted: Linted) -> tuple[Linted, int]:
        """What to show, and how many are left out only because of their level."""
        chosen = [
            one
            for one in linted.possible
            if (not self.select or one.code.startswith(self.select))
            and not one.code.startswith(self.ignore)
            and not self._is_ignored_there(one)
        ]
        shown = tuple(one for one in chosen if self.level == "possible" or one.level == "likely")
        return replace(linted, possible=shown), len(chosen) - len(shown)

    def _is_ignored_there(self, one: Possible) -> bool:
        path = stable_path(one.location.file, (self.root,)).lstrip("/")
        return any(
            one.code.startswith(codes) and globs.matches(pattern, path)
            for pattern, codes in self.by_path.items()
        )
