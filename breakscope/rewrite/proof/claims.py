"""What a proof is given: what the rewrite says of itself, and the conditions that have to go both ways."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from breakscope.rewrite.proof.picture import Comparer

REASSOCIATED = 1e-5


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


@dataclass(frozen=True, slots=True)
class Claims:
    """What a rewrite says of itself (:class:`breakscope.rewrite.rule.Rewrite`).

    Attributes:
        conditional: it states assumptions, the recorded dtypes among them: a result of another dtype in a
            run with all dtypes changed breaks the assumption, and is noted as the limit that it is.
        compiled_only: the new code is another one only while it is compiled: that is what is searched around.
        zeros: it asks for consent to gradients of zero where there were none, or says that none flow.
    """

    exact: bool
    unaliased: bool = False
    early: tuple[str, ...] = ()
    conditional: bool = False
    compiled_only: bool = False
    zeros: bool = False

    def comparer(self) -> Comparer:
        """Compares old and new by these claims."""
        return Comparer(0.0 if self.exact else REASSOCIATED, self.unaliased, self.zeros)
