"""A report that is being fixed: what was asked for, and what has been judged so far."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from breakscope.fix import store
from breakscope.fix.candidates import FIXABLE, Candidate, Refused
from breakscope.fix.judge import Judgement
from breakscope.fix.observers import Observers
from breakscope.fix.runs import Script
from breakscope.fix.text import Source
from breakscope.fix.together import WholeScript
from breakscope.inside.settings import Settings
from breakscope.report.model import Finding


@dataclass(frozen=True, slots=True)
class Options:
    """What ``breakscope fix`` was asked for.

    Attributes:
        select, ignore: codes, or prefixes of codes.
        unsafe: accept rewrites that change behaviour.
        inductor: compare under Inductor in the end.
        settings: how the script is compiled in trials.
    """

    settings: Settings
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    unsafe: bool = False
    inductor: bool = True

    def asked(self, finding: Finding) -> bool:
        """Whether a finding's code was asked for."""
        chosen = not self.select or finding.code.startswith(self.select)
        return chosen and not finding.code.startswith(self.ignore or ("\0",))

    def wants(self, finding: Finding) -> bool:
        """Whether a finding is to be looked at: it was asked for, and it is not a recompile."""
        return finding.kind in FIXABLE and self.asked(finding)


Choose = Callable[[Candidate, Judgement, str], bool]


@dataclass(slots=True)
class Work:
    """A report being fixed."""

    script: Script
    options: Options
    trials: WholeScript
    sources: dict[str, Source]
    progress: Callable[[str], None]
    choose: Choose | None
    root: Path
    judged: list[tuple[Candidate, Judgement]] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    revealed: set[str] = field(default_factory=set)
    observers: Observers = field(default_factory=Observers)

    def accepted(self) -> list[Candidate]:
        return [one for one, judgement in self.judged if acceptable(one, judgement, self.options)]


def acceptable(patch: Candidate, judgement: Judgement, options: Options) -> bool:
    """Whether a rewrite may be part of the fixes: it is proved, or there is consent."""
    if needs_consent(patch, judgement):
        return options.unsafe and judgement.evidence.get("works", True)
    return judgement.status == "proved"


def needs_consent(patch: Candidate, judgement: Judgement) -> bool:
    """Whether a rewrite changes behaviour."""
    return patch.rewrite.consent or bool(judgement.evidence.get("needs_consent"))


def diff(work: Work, patch: Candidate, root: Path) -> str:
    """A patch as the user sees it: a diff of the file, or settings of Dynamo."""
    source = work.sources[patch.file]
    if not patch.edits:
        lines = (f"torch._dynamo.config.{name} = {value}" for name, value in patch.rewrite.config.items())
        return "".join(f"+{line}\n" for line in lines)
    return source.diff(source.changed(patch.edits), store.shown_name(patch.file, root))


def place(finding: Finding) -> tuple[str, int, int | None]:
    """Where a finding stands: real path, line, column."""
    where = finding.location
    return os.path.realpath(where.file), where.line, where.column
