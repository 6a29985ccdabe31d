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
        kept: both forms have it, with the same code behind it: it need not go both ways.
        block: it is a block of code, which has to run once.
        computed: it is a comparison that is computed with: of tensors it has no ways.
        on: of one that is kept, the way that leads to changed code, where the other leaves the function or
            the turn of a loop: it has to go that one all the same.
    """

    text: str
    operand_of: str | None = None
    taken: Counter[bool] = field(default_factory=Counter)
    unknown: bool = False
    kept: bool = False
    block: bool = False
    computed: bool = False
    on: bool | None = None

    @property
    def driven(self) -> bool:
        """Whether it went each way that it has to go."""
        return self.unknown or all(self.taken[way] for way in self.needed)

    @property
    def needed(self) -> tuple[bool, ...]:
        """The ways that it has to go."""
        if self.kept:
            return () if self.on is None else (self.on,)
        return self.ways

    @property
    def ways(self) -> tuple[bool, ...]:
        """The ways that there are."""
        return (True,) if self.block else (True, False)
