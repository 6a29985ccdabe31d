"""A finding as the page shows it: one row to scan, sort and filter, and what opens under it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from breakscope import catalog
from breakscope.catalog.links import torch_page
from breakscope.diagnose import guards
from breakscope.render.html.diff import Diff, side_by_side
from breakscope.render.html.highlight import line_spans
from breakscope.render.html.lines import Line, lay_out
from breakscope.render.html.pictures import TONES, Tone
from breakscope.render.html.sources import Excerpt
from breakscope.render.html.texts import LONGEST_TEXT, block, name
from breakscope.report.model import Finding, Frame, Guard, Report, Suggestion
from breakscope.report.ranking import is_open
from breakscope.view import gain
from breakscope.view.finding import inside, severity_words
from breakscope.view.following import Following, counted
from breakscope.view.text import count, first_line, per_step, short_path
from breakscope.view.words import is_new

_MOST_GUARDS = 64
_MOST_FRAMES = 60
_MOST_HINTS = 20
_MOST_EVIDENCE = 40
_LARGEST_PATCH = 100_000  # characters; a longer one is no edit that one reads in a page

Pair = tuple[str, str]
"""A label and its value."""


@dataclass(frozen=True, slots=True)
class Caller:
    """One entry of the call path."""

    where: str
    function: str
    source: Line | None
    owner: str


@dataclass(frozen=True, slots=True)
class GuardRow:
    """One row of the guard table."""

    subject: str
    cause: str
    expected: str
    actual: str
    values: str
    expression: str


@dataclass(frozen=True, slots=True)
class Repair:
    """A suggestion. ``patch`` is the diff as it is, to be copied; None where there is none that fits."""

    rule: str
    summary: str
    status: str
    why: str
    evidence: tuple[Pair, ...]
    diff: Diff
    patch: str | None
    note: str


@dataclass(frozen=True, slots=True)
class FindingView:
    """One finding.

    Attributes:
        anchor: what stands behind ``#`` in a link to it.
        amount: what it costs, else how often it happened; ``rate`` is the same in a step's terms.
        heat: 0 to 4, as :func:`heats` says.
        file: index into the page's files.
        news: whether an earlier report has it too; None where none was given.
        follows: whether it follows from another finding, and goes with it.
        severity: what it did to the run, else how bad it is.
        closed: "expected" or "meant to be so" where nothing is to be done about it, and then ``why_closed``
            says why; else empty.
        torch_page: address of torch's page about its id; None where there is none.
    """

    anchor: str
    code: str
    kind: str
    tone: Tone
    title: str
    place: str
    file: int
    line: int
    column: int
    function: str
    owner: str
    amount: str
    rate: str
    cost: float | None
    crossings: int | None
    occurrences: int
    heat: int
    fix: str | None
    advice: str
    reason: str
    said: str
    hints: tuple[str, ...]
    facts: tuple[Pair, ...]
    callers: tuple[Caller, ...]
    guards: tuple[GuardRow, ...]
    skipped: tuple[tuple[str, str, str, str, str], ...]
    repair: Repair | None
    excerpt: Excerpt
    news: Literal["new", "known"] | None
    severity: str
    closed: str
    why_closed: str
    follows: bool = False
    torch_page: str | None = None


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes views of findings; holds what all of them need.

    Attributes:
        folders: paths are shown relative to these.
        known: fingerprints that are not new; None where nothing is known about that.
    """

    report: Report
    folders: tuple[str, ...]
    known: frozenset[str] | None
    links: Following

    def view(self, finding: Finding, anchor: str, heat: int, file: int, excerpt: Excerpt) -> FindingView:
        """The view of one finding."""
        place = finding.location
        amount, rate = self._amount(finding)
        return FindingView(
            anchor=anchor,
            code=name(finding.code),
            kind=finding.kind,
            tone=TONES[finding.kind],
            title=name(first_line(finding.title)),
            place=self.place(finding),
            file=file,
            line=place.line,
            column=place.column or 0,
            function=name(place.function or ""),
            owner=place.owner,
            amount=amount,
            rate=rate,
            cost=finding.cost.ms_per_step if finding.cost else None,
            crossings=finding.counts.crossings,
            occurrences=finding.counts.occurrences,
            heat=heat,
            fix=finding.suggestion.status if finding.suggestion else None,
            advice=advice(finding) if is_open(finding) else "",
            reason=block(finding.reason),
            said=block(finding.explanation),
            hints=tuple(block(hint) for hint in finding.hints[:_MOST_HINTS]),
            facts=tuple(self._facts(finding)),
            callers=tuple(self._caller(frame) for frame in _call_path(finding)[-_MOST_FRAMES:]),
            guards=tuple(_guard(guard) for guard in _all_guards(finding)[:_MOST_GUARDS]),
            skipped=tuple(
                (
                    name(one.function),
                    one.extent,
                    self.path(one.file, one.line),
                    count(one.calls, "call"),
                    block(one.why),
                )
                for one in finding.skipped
            ),
            repair=_repair(finding.suggestion) if finding.suggestion else None,
            excerpt=excerpt,
            news=self._news(finding),
            follows=finding.fingerprint in self.links.by,
            severity=severity_words(finding),
            closed="meant to be so" if finding.intended else "expected" if finding.expected else "",
            why_closed=name(finding.intended or finding.expected or "", LONGEST_TEXT),
            torch_page=torch_page(finding.gb_id),
        )

    def _news(self, finding: Finding) -> Literal["new", "known"] | None:
        if self.known is None:
            return None
        return "new" if is_new(finding, self.known) else "known"

    def place(self, finding: Finding) -> str:
        """``model.py:41:12``."""
        return self.path(finding.location.file, finding.location.line, finding.location.column)

    def short(self, finding: Finding) -> str:
        """The place without folders: ``layer.py:41:12``."""
        return self.place(finding).replace("\\", "/").rpartition("/")[2]

    def path(self, file: str, line: int | None = None, column: int | None = None) -> str:
        """A path as one would type it where the script ran, with line and column behind it."""
        numbers = [str(number) for number in (line, column) if number is not None]
        return ":".join((name(short_path(file, self.folders)), *numbers))

    def _amount(self, finding: Finding) -> Pair:
        if finding.kind == "recompile":
            often, rate = count(finding.counts.occurrences, "recompile"), _when(finding)
        elif finding.counts.crossings is None:
            often, rate = count(finding.counts.occurrences, "occurrence"), "crossings not measured"
        else:
            often, steps = count(finding.counts.crossings, "crossing"), self.report.totals.steps
            rate = per_step(finding.counts.crossings, steps) if steps else ""
        if finding.cost is None:
            return often, rate
        return gain.amount(self.report, [finding.cost]), often

    def _facts(self, finding: Finding) -> list[Pair]:
        counts = finding.counts
        facts = [("occurrences", f"{counts.occurrences:,} (reports while compiling)")]
        if finding.kind != "recompile":
            crossings = "not measured" if counts.crossings is None else f"{counts.crossings:,}"
            if counts.crossings is not None and self.report.totals.steps:
                crossings += f" ({per_step(counts.crossings, self.report.totals.steps)})"
            facts.append(("crossings", crossings))
        if finding.cost:
            facts.append(("cost", " · ".join((self._amount(finding)[0], name(finding.cost.method)))))
        else:
            why = f": {name(finding.not_measured)}" if finding.not_measured else ""
            facts.append(("cost", f"not measured{why}"))
        facts += self._linked(finding)
        facts += _parts_of(finding)
        if when := _when(finding):
            facts.append(("when", when))
        if self.report.run.world_size > 1:
            facts.append(("ranks", ", ".join(map(str, finding.ranks))))
        if finding.gb_id:
            facts.append(("torch's id", name(finding.gb_id)))
        if counts.compile_ids:
            facts.append(("compile ids", name(" ".join(counts.compile_ids))))
        if finding.called_from:
            facts.append(("called from", self.path(finding.called_from.file, finding.called_from.line)))
        return facts

    def _linked(self, finding: Finding) -> list[Pair]:
        """The finding from which this one follows, or what follows from it."""
        cause = self.links.by.get(finding.fingerprint)
        if cause is not None:
            return [("follows from", f"{name(cause.code)} at {self.place(cause)}")]
        text = counted(self.links.of.get(finding.fingerprint, ()))
        return [("with it", text)] if text else []

    def _caller(self, frame: Frame) -> Caller:
        source = None if frame.source is None else lay_out(frame.source, line_spans(frame.source))
        return Caller(self.path(frame.file, frame.line), name(frame.function), source, frame.owner)


def _parts_of(finding: Finding) -> list[Pair]:
    """What a cost is made of, as far as it is known."""
    facts = [
        ("what the host does for it", gain.made_of(finding.cost) if finding.cost else ""),
        ("what stays", gain.stays(finding)),
        ("compiling", gain.compiling(finding)),
        ("in all", gain.horizon(finding)),
        ("inside the gap", name(inside(finding.cost))),
    ]
    return [(label, words) for label, words in facts if words]


def heats(findings: Sequence[Finding]) -> list[int]:
    """How much of the worst each finding is, 1 to 4 by quarters; 0 for nothing and for what was not measured.

    Cost where the report has any: a count says nothing beside it. Else crossings with crossings, and
    recompiles with recompiles.
    """
    costs = any(finding.cost for finding in findings)
    amounts = [_amount(finding, costs) for finding in findings]
    most: dict[str, float] = {}
    for measure, value in amounts:
        most[measure] = max(value, most.get(measure, 0.0))
    return [
        0 if value <= 0 else min(4, 1 + int(4 * value / most[measure] - 1e-9)) for measure, value in amounts
    ]


def _amount(finding: Finding, costs: bool) -> tuple[str, float]:
    if costs:
        return "cost", finding.cost.ms_per_step if finding.cost else 0.0
    if finding.kind == "recompile":
        return "recompiles", float(finding.counts.occurrences)
    counts = finding.counts
    return "crossings", float(counts.occurrences if counts.crossings is None else counts.crossings)


def advice(finding: Finding) -> str:
    """What to do, in one sentence."""
    suggestion = finding.suggestion
    if suggestion and suggestion.status != "refused":
        return _sentence(first_line(suggestion.summary))
    if finding.advice:
        return _sentence(" ".join(finding.advice.split()))
    if finding.kind == "recompile" and finding.guard:
        return _sentence(guards.remedy(finding.guard))
    # A code of a newer breakscope has no entry: Dynamo's own hints are better than nothing.
    entry = catalog.find(finding.code)
    return entry.fix if entry else name(first_line(next(iter(finding.hints), "")))


def _sentence(text: str) -> str:
    code = any(sign in text.partition(" ")[0] for sign in "._(=")  # torch.where stays as it is
    return name(text if code else text[:1].upper() + text[1:], LONGEST_TEXT)


def _when(finding: Finding) -> str:
    first, last = finding.first_step, finding.last_step
    if first is None:
        return ""
    if finding.kind != "recompile":
        return f"since step {first:,}"  # reported while compiling, crossed whenever its function is called
    return f"step {first:,}" if last is None or last == first else f"steps {first:,} to {last:,}"


def _call_path(finding: Finding) -> Sequence[Frame]:
    if finding.stack:
        return finding.stack
    return (finding.called_from,) if finding.called_from else ()


def _all_guards(finding: Finding) -> Sequence[Guard]:
    return (finding.guard, *finding.guards) if finding.guard else finding.guards


def _guard(guard: Guard) -> GuardRow:
    subject = name(guard.source) if guard.source is not None else "not known"
    if guard.dimension is not None:
        subject += f", {'stride of ' if guard.cause == 'stride' else ''}dimension {guard.dimension}"
    return GuardRow(
        subject=subject,
        cause=guard.cause.replace("_", " "),
        expected="not known" if guard.expected is None else name(guard.expected),
        actual="not known" if guard.actual is None else name(guard.actual),
        values=name(", ".join(guard.values)),
        expression=block(guard.expression, 1_000),
    )


def _repair(suggestion: Suggestion) -> Repair:
    fits = len(suggestion.diff) <= _LARGEST_PATCH
    note = "" if fits else "The diff is too long for this page; breakscope report shows it."
    evidence = list(suggestion.evidence.items())[:_MOST_EVIDENCE]
    return Repair(
        rule=name(suggestion.rule),
        summary=name(first_line(suggestion.summary)),
        status=suggestion.status,
        why=block(suggestion.why),
        evidence=tuple((name(str(key).replace("_", " ")), _value(value)) for key, value in evidence),
        diff=side_by_side(suggestion.diff if fits else ""),
        patch=suggestion.diff if fits and suggestion.diff.strip() else None,
        note=note,
    )


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return name(value)
    return name(json.dumps(value, ensure_ascii=False, default=str))
