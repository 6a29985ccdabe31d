"""The conditions of the old code that the new code does not have: each has to go both ways."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Condition:
    """A condition of the old code that the new code does not have.

    Attributes:
        operand_of: the whole condition, if it is an operand of ``and`` or ``or`` in one.
        taken: how many test calls took it, true and false.
        unknown: it was the truth of an object whose ``__bool__`` is not ours to call.
    """

    text: str
    operand_of: str | None = None
    taken: Counter[bool] = field(default_factory=Counter)
    unknown: bool = False

    @property
    def driven(self) -> bool:
        """Whether it went both ways."""
        return self.unknown or (self.taken[True] > 0 and self.taken[False] > 0)
