"""What a remedy is before it was tried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from breakscope.report.model import Finding, Report, Signature

# What may happen in a script that a remedy must not meet; see capture.outputs.
GRADIENTS = "gradients"
WRITES = "writes"


@dataclass(frozen=True, slots=True)
class Edit:
    """A piece of a file, from character ``start`` to ``end``, and what stands there instead."""

    file: str
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A change that may keep a guard from failing again.

    Attributes:
        rule: its short name, "mark-dynamic".
        summary: what to do, as one imperative sentence.
        edits: the change of the user's own files.
        settings: options of a scan to try it with, where there is no source to change.
        ends: what it must bring about: "recompiles" (those of the finding are gone), or "limit" (the function
            no longer runs out of versions).
        caveat: what else it changes; None if nothing. It needs consent.
        limits: calls that the run did not make, and that it is not right for.
        forbids: what must not happen in the script for it to be right: :data:`GRADIENTS` that flow back
            through compiled calls, :data:`WRITES` of compiled calls to their arguments.
    """

    rule: str
    summary: str
    edits: tuple[Edit, ...]
    settings: dict[str, str] = field(default_factory=dict)
    ends: str = "recompiles"
    caveat: str | None = None
    forbids: str | None = None
    limits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is nothing to try, as one sentence."""

    why: str


@dataclass(frozen=True, slots=True)
class Subject:
    """A finding, with the calls of which its compiles came.

    Attributes:
        signatures: of every compile of the same frame, the first one included, in order.
        main: the file that runs as ``__main__``.
    """

    finding: Finding
    report: Report
    signatures: tuple[Signature, ...]
    main: str

    @property
    def recompiled(self) -> tuple[Signature, ...]:
        """The calls that failed the finding's guard."""
        wanted = set(self.finding.counts.compile_ids)
        return tuple(one for one in self.signatures if one.compile_id in wanted)


def subject(finding: Finding, report: Report, main: str) -> Subject:
    """A finding with what the report knows of its calls."""
    frames = {compile_id.partition("/")[0] for compile_id in finding.counts.compile_ids}
    same = tuple(one for one in report.signatures if (one.compile_id or "").partition("/")[0] in frames)
    return Subject(finding, report, same, main)


@dataclass(frozen=True, slots=True)
class Base:
    """Changes that are made already: remedies are tried on top of them.

    Attributes:
        edits: of files as they are on disk. config: settings of ``torch._dynamo.config``.
    """

    edits: tuple[Edit, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)


Proposal = Candidate | Refusal
