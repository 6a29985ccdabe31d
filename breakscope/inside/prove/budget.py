"""How long a proof may take, and a test call in it."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from breakscope.inside.prove.patience import Patience

MAX_CAPTURED = 8
# The first calls are searched around, and get most of the time; the others are compared as they are.
SHARES = (0.5, 0.25)
SEARCHED = len(SHARES)
REST_SHARE = 0.25 / (MAX_CAPTURED - SEARCHED)
# How many times the budget a proof of `fix` may take that has not driven every branch when its time is up.
MOST_TIMES = 4
# How long a test call may take: so many seconds, and so many times what the script's own arguments take. The
# new form gets more, because it is wrong where it does not end.
PATIENCE_S: Mapping[str, float] = {"watched": 2.0, "new": 20.0}
PATIENCE_TIMES = 20.0


def clock() -> float:
    """Seconds for the budget of a proof: those that this thread is at work, and an eighth of those that pass.

    So a machine that others use as well leaves a proof nearly all of its inputs, and one that waits does end.
    """
    return time.thread_time() + time.monotonic() / 8


@dataclass(slots=True)
class Budget:
    """The time for the proof of one function, divided among the script's calls of it.

    Attributes:
        more_s: what may be taken on top of it, by :meth:`extend`.
        deadline: of the call that is looked at, on :func:`clock`.
    """

    seconds: float
    more_s: float = 0.0
    deadline: float = 0.0
    _spare_s: float = 0.0

    def begin(self, call: int) -> None:
        """Set the deadline of a call of the script; ``call``: its number, from 1."""
        share = SHARES[call - 1] if call <= SEARCHED else REST_SHARE
        self.deadline = clock() + self.seconds * share + self._spare_s

    def end(self) -> None:
        """Leave what a call did not need to the calls after it."""
        self._spare_s = max(0.0, self.deadline - clock())

    def over(self, *, needed: bool = False) -> bool:
        """Whether the time of a call is up. What is needed for a proof gets as much time again."""
        return clock() > self.deadline + (self.seconds if needed else 0)

    def extend(self) -> bool:
        """Give the call that is looked at the time of a whole budget more; False where there is none left."""
        more = min(self.seconds, self.more_s)
        self.more_s -= more
        self.deadline += more
        return more > 0


@dataclass(slots=True)
class Allowance:
    """How long one test call may take.

    Attributes:
        usual_s: what the script's own arguments take.
        endless: calls of the old form that did not end.
    """

    patience: Patience = field(default_factory=Patience)
    usual_s: float = math.inf
    endless: int = 0

    def of(self, form: str) -> contextlib.AbstractContextManager[None]:
        """Ends a test call that takes much longer than the script's own arguments do."""
        most = PATIENCE_S.get(form, math.inf)
        if form == "watched":
            most /= 1 + self.endless  # where one input has no end, others like it have none
        return self.patience.within(most + PATIENCE_TIMES * self.usual_s)
