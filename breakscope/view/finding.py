"""One finding, or a group of them, in the words of the terminal."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath

from breakscope import catalog
from breakscope.catalog.entry import Severity
from breakscope.diagnose.guard_advice import remedy
from breakscope.report.model import (
    Cost,
    Effect,
    Finding,
    FindingKind,
    Frame,
    Guard,
    Location,
    Report,
    SkippedFrame,
)
from breakscope.report.ranking import is_open
from breakscope.view import gain
from breakscope.view.following import Following, counted
from breakscope.view.text import count, first_line, harmless, milliseconds, per_step, short_path

_KIND_NOUNS: dict[FindingKind, str] = {
    "skip": "skip",
    "graph_break": "site",
    "recompile": "cause",
    "compile": "compile",
}
_EFFECTS: dict[Effect, str] = {"ended": "ended the run", "incomplete": "report incomplete"}
_SHOWN_GUARDS = 5
_SHOWN_CALLERS = 6
_SETTING = re.compile(r"(?<=config\.)\w+")
_ARROW = " > "
# What to call that which differed, where the source alone does not say it.
_SUBJECTS = ("dtype", "device", "requires_grad", "rank", "type")

Detail = tuple[str, tuple[str, ...]]
"""A label and the lines beside it."""


@dataclass(frozen=True, slots=True)
class Place:
    """One finding.

    Attributes:
        counts: how often and when, beyond what the head of a group of one says.
        details: what stands under the source.
    """

    where: str
    function: str
    counts: str
    gb_id: str
    location: Location
    details: tuple[Detail, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Findings with the same code in the same function, under one head.

    Attributes:
        number: 0 for what nothing is to be done about.
        severity: what it did to the run, else how bad it is.
        amount: what the group costs, else how often it happened.
        details: those that hold for all of its places, which do not repeat them.
    """

    number: int
    code: str
    kind: FindingKind
    severity: str
    title: str
    amount: str
    places: tuple[Place, ...]
    details: tuple[Detail, ...]


@dataclass(frozen=True, slots=True)
class Maker:
    """Puts findings into words; holds what all of them need."""

    report: Report
    folders: tuple[str, ...]
    all: bool
    links: Following | None = None

    def group(self, number: int, whole: list[Finding], shown: list[Finding]) -> Group:
        """A group of findings, worst first, of which the first ones are shown."""
        worst = whole[0]
        alone = len(whole) == 1
        details = [self._details(finding) for finding in shown]
        # What places have in common is said once, after the last of them.
        shared = tuple(detail for detail in details[0] if all(detail in other for other in details))
        if alone:
            shared = ()
        return Group(
            number=number,
            code=harmless(worst.code),
            kind=worst.kind,
            severity=severity_words(worst),
            title=first_line(worst.title) if alone else _title(worst),
            amount=self._amount(whole),
            places=tuple(
                self._place(finding, [one for one in own if one not in shared], alone=alone)
                for finding, own in zip(shown, details, strict=True)
            ),
            details=shared,
        )

    def line(self, finding: Finding) -> str:
        """A finding that nothing is to be done about, in one line."""
        where = self._path(finding.location.file, finding.location.line)
        function = f" {harmless(finding.location.function)}" if finding.location.function else ""
        why = harmless(finding.intended or finding.expected or "")
        return f"{harmless(finding.code)} {where}{function} · {first_line(finding.title)} · {why}"

    def _amount(self, findings: list[Finding]) -> str:
        costs = [finding.cost for finding in findings if finding.cost]
        if costs:
            return gain.amount(self.report, costs) + gain.together(self.report, findings)
        amount = self._how_often(findings)
        if len(findings) > 1:
            amount = f"{count(len(findings), _KIND_NOUNS[findings[0].kind])}, {amount}"
        return amount

    def _how_often(self, findings: list[Finding]) -> str:
        if findings[0].kind == "recompile":
            return count(sum(finding.counts.occurrences for finding in findings), "recompile")
        if findings[0].kind == "compile":
            return count(sum(finding.counts.occurrences for finding in findings), "compile")
        known = [one.counts.crossings for one in findings if one.counts.crossings is not None]
        crossings = sum(known) if len(known) == len(findings) else None
        functions = {one.calls_of for one in findings}
        text = count(crossings, "crossing")
        if len(functions) == 1 and crossings is not None and (function := functions.pop()) is not None:
            text = f"{count(crossings, 'call')} of {harmless(function)}"
        if crossings is None:
            return f"{count(sum(one.counts.occurrences for one in findings), 'occurrence')}, {text}"
        steps = self.report.totals.steps
        return f"{text} ({per_step(crossings, steps)})" if crossings and steps else text

    def _place(self, finding: Finding, details: list[Detail], *, alone: bool) -> Place:
        said_in_head = alone and finding.cost is None
        counts = [] if said_in_head else [self._how_often([finding])]
        counts += [text for text in (self._when(finding), self._ranks(finding)) if text]
        where = self._path(finding.location.file, finding.location.line, finding.location.column)
        if finding.location.owner != "project":
            where += f" ({finding.location.owner})"
        return Place(
            where=where,
            function=harmless(finding.location.function or ""),
            counts=", ".join(counts),
            gb_id=harmless(finding.gb_id or ""),
            location=finding.location,
            details=tuple(details),
        )

    def _details(self, finding: Finding) -> list[Detail]:
        details: list[Detail] = [
            ("reason", (self._reason(finding),)),
            ("guard", tuple(self._guards(finding))),
            ("also", tuple(self._skipped(one) for one in finding.skipped)),
            # What is on the stack of a guard is where the value is used, not how one got to the function.
            ("used at" if finding.kind == "recompile" else "via", (self._callers(finding),)),
            ("from", (self._own_line(finding),)),
            ("with it", (self._with(finding),)),
            ("compile", (gain.compiling(finding),)),
            ("takes", (gain.horizon(finding),)),
            ("eager", (gain.stays(finding),)),
            ("inside", (harmless(inside(finding.cost)),)),
            ("expected", (harmless(finding.expected or ""),)),
            ("meant", (harmless(finding.intended or ""),)),
            ("do this", (self._advice(finding) if is_open(finding) else "",)),
            ("torch", self._hints(finding)),
        ]
        return [(label, texts) for label, texts in details if any(texts)]

    def _with(self, finding: Finding) -> str:
        """What follows from a cause, and what a consequence follows from."""
        if self.links is None:
            return ""
        cause = self.links.by.get(finding.fingerprint)
        if cause is not None:
            place = cause.location
            return f"follows from {harmless(cause.code)} at {self._path(place.file, place.line)}"
        text = counted(self.links.of.get(finding.fingerprint, ()))
        return text if self.all or not text else f"{text} (--all shows them)"

    def _hints(self, finding: Finding) -> tuple[str, ...]:
        """Torch's own hints: a setting that the advice does not name; all of them with --all."""
        hints = [harmless(" ".join(hint.split())) for hint in finding.hints]
        if self.all:
            return tuple(hints)
        said = self._advice(finding)
        settings = ((_SETTING.search(hint), hint) for hint in hints)
        return tuple(_first_sentence(hint) for found, hint in settings if found and found[0] not in said)

    def _path(self, file: str, line: int, column: int | None = None) -> str:
        return f"{short_path(file, self.folders)}:{line}" + (f":{column}" if column is not None else "")

    def _when(self, finding: Finding) -> str:
        first, last, steps = finding.first_step, finding.last_step, self.report.totals.steps
        if first is None:
            return ""
        # A break is reported while compiling, but it is crossed as long as its function is called.
        if finding.kind != "recompile" or last is None or steps is None or last >= steps - 1:
            return f"since step {first}"
        return f"at step {first} only" if last == first else f"steps {first} to {last}"

    def _ranks(self, finding: Finding) -> str:
        if len(finding.ranks) >= self.report.run.world_size:
            return ""
        return f"rank{'s' * (len(finding.ranks) != 1)} {', '.join(map(str, finding.ranks))} only"

    def _reason(self, finding: Finding) -> str:
        if finding.kind == "recompile":
            return ""
        reason = harmless(" ".join(finding.reason.split())) if self.all else first_line(finding.reason)
        return "" if reason.casefold() == finding.title.strip().casefold() else reason

    def _guards(self, finding: Finding) -> list[str]:
        lines = []
        if finding.guard:
            recompiles = count(finding.counts.occurrences, "recompile") if finding.kind == "recompile" else ""
            lines.append(guard_line(finding.guard) + (f" ({recompiles})" if recompiles else ""))
            if self.all and lines[0] != harmless(finding.guard.expression):
                lines.append(harmless(finding.guard.expression))
        shown = finding.guards if self.all else finding.guards[:_SHOWN_GUARDS]
        lines += map(guard_line, shown)
        if len(shown) < len(finding.guards):
            lines.append(f"and {len(finding.guards) - len(shown)} more guards")
        return lines

    def _skipped(self, frame: SkippedFrame) -> str:
        place = f"{harmless(frame.function)} ({self._path(frame.file, frame.line)})"
        why = f": {first_line(frame.why)}" if frame.why.strip() else ""
        return f"runs eagerly {frame.extent}: {place}, {count(frame.calls, 'call')}{why}"

    def _callers(self, finding: Finding) -> str:
        frames = list(finding.stack)
        if frames and (frames[-1].file, frames[-1].line) == (finding.location.file, finding.location.line):
            frames.pop()
        if not frames and finding.called_from and finding.location.owner != "project":
            frames = [finding.called_from]
        steps: list[str] = []
        folded = 0
        for frame in frames:
            if frame.owner == "project":
                steps += _folded(folded)
                folded = 0
                steps.append(self._caller(frame))
            else:
                folded += 1
        steps += _folded(folded)
        if len(steps) > _SHOWN_CALLERS and not self.all:
            left_out = len(steps) - _SHOWN_CALLERS + 1
            steps[2 : 2 + left_out] = [f"… {left_out} more"]
        return _ARROW.join(steps)

    def _own_line(self, finding: Finding) -> str:
        """The line of the project that leads to a place in somebody else's code, or that made a call."""
        own_code = finding.location.owner == "project"
        frames = [*filter(None, (finding.called_from,)), *(() if own_code else finding.stack)]
        said = f"{finding.expected or finding.advice or ''} "
        if own_code and any(re.search(rf"\b{_short(frame)}\b", said) for frame in frames):
            return ""  # what is said names the call itself
        own = [
            f"{self._path(frame.file, frame.line)}  {harmless(frame.source.strip())}"
            for frame in frames
            if frame.owner == "project" and frame.source
        ]
        return own[-1] if own else ""

    def _caller(self, frame: Frame) -> str:
        return f"{self._path(frame.file, frame.line)} {harmless(frame.function)}"

    def _advice(self, finding: Finding) -> str:
        suggestion = finding.suggestion
        if suggestion and suggestion.status != "refused":
            return f"{first_line(suggestion.summary)} ({suggestion.status} rewrite)"
        if finding.advice:
            advice = harmless(" ".join(finding.advice.split()))
        elif finding.kind == "recompile" and finding.guard:
            advice = harmless(remedy(finding.guard))
        else:
            # A code of a newer breakscope has no entry: Dynamo's own hints are better than nothing.
            entry = catalog.find(finding.code)
            advice = first_line(entry.fix if entry else next(iter(finding.hints), ""))
        if suggestion is None:
            return advice
        return f"{advice.removesuffix('.')} (no rewrite: {first_line(suggestion.why)})"


def severity(finding: Finding) -> Severity:
    """How bad a finding is; ``warning`` for a code that only a newer breakscope knows."""
    return catalog.severity(finding) or "warning"


def severity_words(finding: Finding) -> str:
    """How bad a finding is, in the words of the screen."""
    if finding.effect is not None:
        return _EFFECTS[finding.effect]
    return "note" if severity(finding) == "info" else severity(finding)


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.!])(?<!e\.g\.)(?<!i\.e\.)\s", text, maxsplit=1)[0]


def _folded(frames: int) -> list[str]:
    return [f"… {count(frames, 'library frame')}"] if frames else []


def _title(finding: Finding) -> str:
    """What all findings of a group have in common."""
    entry = catalog.find(finding.code)
    return first_line(entry.title if entry else finding.title)


def guard_line(guard: Guard) -> str:
    """``x dim 0: 3 -> 4, 7, 9``; the guard's own text where its source or values are not known."""
    values = (*guard.values, guard.actual)
    seen = dict.fromkeys(value for value in values if value not in (None, guard.expected))
    if guard.source is None or guard.expected is None or not seen:
        return harmless(guard.expression)
    subject = guard.source
    if guard.dimension is not None:
        subject += " stride of" if guard.cause == "stride" else ""
        subject += f" dim {guard.dimension}"
    elif guard.cause in _SUBJECTS:
        subject += f" {guard.cause}"
    return harmless(f"{subject}: {guard.expected} -> {', '.join(str(value) for value in seen)}")


def inside(cost: Cost | None) -> str:
    """What lies inside of a gap, the longest first; empty if the profiler did not look."""
    if cost is None or cost.inside is None:
        return ""
    seen = cost.inside
    ops = ", ".join(f"{name} x{times:g}" for name, times in seen.ops.items())
    parts = [
        (seen.waiting_ms, "waiting for the device"),
        (seen.eager_ms, f"in eager operations ({ops})" if ops else "in eager operations"),
        (seen.python_ms, "in Python"),
    ]
    text = ", ".join(
        f"{milliseconds(ms)} ms {what}" for ms, what in sorted(parts, key=lambda part: -part[0]) if ms > 0
    )
    return text + (f"; {seen.launches:g} launches" if seen.launches else "")


def _short(frame: Frame) -> str:
    """A pattern for a line as sentences name it: ``train.py:27``."""
    return re.escape(f"{PurePath(frame.file.replace(chr(92), '/')).name}:{frame.line}")
