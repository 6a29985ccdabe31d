"""What judging says: the policy that goes in, the verdict that comes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from breakscope.project.baseline import Known
from breakscope.project.budgets import Spent
from breakscope.project.config import Budgets
from breakscope.project.config.model import OWNERS
from breakscope.project.suppressed import Comment
from breakscope.report.model import Finding, Owner, Report

Outcome = Literal["clean", "known", "new", "strict", "budget", "not_measured", "vacuous", "died"]
State = Literal["new", "known", "suppressed", "meant", "expected"]

# Worst first: a report that says nothing makes every other answer worthless.
_EXIT_CODES: dict[Outcome, int] = {
    "died": 3,
    "vacuous": 3,
    "new": 1,
    "strict": 1,
    "budget": 1,
    "not_measured": 2,
    "known": 0,
    "clean": 0,
}
_SEVERITY = tuple(_EXIT_CODES)


@dataclass(frozen=True, slots=True)
class Policy:
    """What counts, and how much of it is too much.

    Attributes:
        select: codes, or prefixes of codes, that count; ignore: those of them that do not.
        per_path_ignore: codes that do not count in paths that match a pattern.
        owners: whose code findings count in.
        strict: whether known findings fail, too.
    """

    select: tuple[str, ...] = ("BS",)
    ignore: tuple[str, ...] = ()
    per_path_ignore: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    owners: tuple[Owner, ...] = OWNERS
    strict: bool = False
    budgets: Budgets = field(default_factory=Budgets)


@dataclass(frozen=True, slots=True)
class Judged:
    """A finding that counts, and what is said of it.

    Attributes:
        why: the reason of its suppression, as what it is known where that is not plain, or why it is meant to
            be so, or expected; None otherwise.
    """

    finding: Finding
    state: State
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer for one target.

    Attributes:
        target: its name; report: what was judged.
        judged: the findings that count, worst first.
        left_out: how many do not count, by select, ignore, paths and owners.
        gone: what the baseline knows of this target and the run, which came to its end, did not show.
        spent: each budget that is set.
        why: sentences that say what fails; empty where nothing does.
        strict: whether known findings fail, too.
    """

    target: str
    report: Report
    outcome: Outcome
    judged: tuple[Judged, ...]
    left_out: int
    gone: tuple[Known, ...]
    spent: tuple[Spent, ...]
    why: tuple[str, ...]
    strict: bool

    @property
    def exit_code(self) -> int:
        """0 passed, 1 failed, 2 cannot be judged as asked, 3 the run says nothing."""
        return _EXIT_CODES[self.outcome]

    def of(self, *states: State) -> tuple[Finding, ...]:
        """The findings in these states, worst first."""
        return tuple(one.finding for one in self.judged if one.state in states)


@dataclass(frozen=True, slots=True)
class Check:
    """The answer for all targets.

    Attributes:
        unused: comments that suppressed nothing in any of the runs; malformed: those not understood.
        baseline: the baseline's path as a user would type it.
    """

    verdicts: tuple[Verdict, ...]
    unused: tuple[Comment, ...]
    malformed: tuple[Comment, ...]
    baseline: str

    @property
    def exit_code(self) -> int:
        """That of the worst verdict."""
        worst = min(
            (_SEVERITY.index(verdict.outcome) for verdict in self.verdicts), default=len(_SEVERITY) - 1
        )
        return _EXIT_CODES[_SEVERITY[worst]]
