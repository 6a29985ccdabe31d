"""Which possible breaks to show: by code and by level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from breakscope import catalog
from breakscope.errors import UsageError
from breakscope.report.lint import Linted


class Choice(NamedTuple):
    """Codes, or prefixes of codes, to show and to leave out, and the level from which on to show.

    Attributes:
        select: empty for all.
        level: "likely" or "possible", which shows both.
    """

    select: tuple[str, ...]
    ignore: tuple[str, ...]
    level: str

    @classmethod
    def parse(cls, select: Sequence[str], ignore: Sequence[str], level: str) -> Choice:
        """From options such as ``BS101,BS2``.

        Raises:
            UsageError: no code begins like that.
        """
        return cls(_codes(select), _codes(ignore), level)

    def apply(self, linted: Linted) -> tuple[Linted, int]:
        """What to show, and how many are left out only because of their level."""
        chosen = [
            one
            for one in linted.possible
            if (not self.select or one.code.startswith(self.select)) and not one.code.startswith(self.ignore)
        ]
        shown = tuple(one for one in chosen if self.level == "possible" or one.level == "likely")
        return replace(linted, possible=shown), len(chosen) - len(shown)


def _codes(options: Sequence[str]) -> tuple[str, ...]:
    names = tuple(name.strip().upper() for option in options for name in option.split(",") if name.strip())
    for name in names:
        if not any(entry.code.startswith(name) for entry in catalog.codes()):
            raise UsageError(f"no code begins with {name!r}: `breakscope explain --list` shows them all")
    return names
