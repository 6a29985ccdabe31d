"""A report that is being fixed: what was asked for, and what has been judged so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from breakscope.fix.evidence import Verdict
from breakscope.fix.observers import Observers
from breakscope.fix.outcomes import NoPatch
from breakscope.fix.patch import Patch
from breakscope.fix.proofs import Proofs
from breakscope.fix.runs import Script
from breakscope.fix.source_file import Source, shown_diff
from breakscope.fix.together import FIXABLE
from breakscope.fix.trials import Trials
from breakscope.inside.settings import Settings
from breakscope.report.model import Finding, Report

DECLINED = "you declined it"


@dataclass(frozen=True, slots=True)
class Options:
    """What ``breakscope fix`` was asked for.

    Attributes:
        select, ignore: codes, or prefixes of codes.
        unsafe: accept rewrites that change behaviour.
        inductor: compare under Inductor in the end.
        settings: how the script is compiled in trials.
        command: asked for a diff where no rule has a rewrite, at most ``tries`` times for each finding.
        proofs: folder where proofs are kept; None: nowhere. forks: runs after the first may be forks.
    """

    settings: Settings
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    unsafe: bool = False
    inductor: bool = True
    command: str = ""
    tries: int = 3
    proofs: Path | None = None
    forks: bool = True

    def asked(self, finding: Finding) -> bool:
        """Whether a finding's code was asked for."""
        chosen = not self.select or finding.code.startswith(self.select)
        return chosen and not finding.code.startswith(self.ignore or ("\0",))

    def wants(self, finding: Finding) -> bool:
        """Whether a finding is to be looked at: it was asked for, and it is not a recompile."""
        return finding.kind in FIXABLE and self.asked(finding)


# Asked about each patch that could be accepted, with its diff.
Choose = Callable[[Patch, Verdict, str], bool]


@dataclass(slots=True)
class Work:
    """A report being fixed.

    Attributes:
        hoisted: places of findings whose values were looked at, whether they can be read earlier.
    """

    report: Report
    script: Script
    options: Options
    proofs: Proofs
    trials: Trials
    sources: dict[str, Source]
    progress: Callable[[str], None]
    choose: Choose | None
    root: Path
    judged: list[tuple[Patch, Verdict]] = field(default_factory=list)
    unpatched: list[NoPatch] = field(default_factory=list)
    revealed: set[str] = field(default_factory=set)
    observers: Observers = field(default_factory=Observers)
    hoisted: set[tuple[str, int, int | None]] = field(default_factory=set)

    def acceptable(self, patch: Patch, verdict: Verdict) -> bool:
        """Whether a patch may be one of the fixes: proved, or with consent, and something to apply."""
        consented = verdict.status == "needs consent" and self.options.unsafe
        return (verdict.status == "proved" or consented) and patch.applies

    def accepted(self) -> list[Patch]:
        return [patch for patch, verdict in self.judged if self.acceptable(patch, verdict)]

    def declined(self, patch: Patch, verdict: Verdict) -> bool:
        """Whether somebody who is asked does not want a patch that could be accepted."""
        return (
            self.choose is not None
            and self.acceptable(patch, verdict)
            and not self.choose(patch, verdict, shown_diff(patch, self.sources, self.root))
        )
