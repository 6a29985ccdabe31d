"""What the page of a comparison says, as plain data: the words of every diff format, and what a page adds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from breakscope.diagnose.compare import Comparison, Pair
from breakscope.render.html.highlight import line_spans
from breakscope.render.html.lines import lay_out
from breakscope.render.html.pictures import TONES, Tone
from breakscope.render.html.pieces import Pieces, pieces
from breakscope.render.html.texts import name
from breakscope.report.model import Finding
from breakscope.view import diff_view
from breakscope.view.diff_view import Row, Section, SectionName
from breakscope.view.excerpt import expression_span
from breakscope.view.text import NOT_MEASURED, milliseconds

_MOST_ROWS = 200  # findings of one section; nobody reads more, and --format json has them all
_FOLDED = frozenset[SectionName]({"moved", "unchanged"})
_MEANINGS: dict[SectionName, str] = {
    "new": "Only the new report has these.",
    "fixed": "Only the old report has these, although the new run got to where they showed.",
    "unseen": "Only the old report has these, and the new run may not have got to where they showed.",
    "changed": "Both reports have these, with other numbers.",
    "moved": "Both reports have these, at another line or column.",
    "unchanged": "Both reports have these, in the same place and with the same numbers.",
}


@dataclass(frozen=True, slots=True)
class Count:
    """A number of a finding in both runs; ``differs`` says whether to point at it."""

    what: str
    before: str
    after: str
    differs: bool


@dataclass(frozen=True, slots=True)
class FindingRow:
    """One finding.

    Attributes:
        where: its place in the new report; in the old one if only that has it.
        source: the line there as the report stored it; None where it is not known.
        changes: what is not as it was, in words.
    """

    code: str
    tone: Tone
    title: str
    where: str
    function: str
    amount: str
    source: Pieces | None
    counts: tuple[Count, ...]
    changes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Panel:
    """Findings that had the same fate; ``left_out`` more are only in the reports."""

    name: SectionName
    heading: str
    total: str
    meaning: str
    folded: bool
    rows: tuple[FindingRow, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """The whole page.

    Attributes:
        tone: good where something is better, nothing is worse and nothing casts doubt on that.
        settings: (what, ``old -> new``) of the runs: what else may explain the differences.
        totals: (what, old, new) of the sums that differ.
    """

    title: str
    tone: Literal["good", "bad", "void"]
    verdict: str
    doubts: tuple[str, ...]
    settings: tuple[tuple[str, str], ...]
    totals: tuple[tuple[str, str, str], ...]
    panels: tuple[Panel, ...]
    tool: str


def build(comparison: Comparison, *, root: str | None) -> ComparisonView:
    """The view of a comparison, with paths relative to the root or to where the scripts ran."""
    said = diff_view.build(comparison, root=root)
    tool = comparison.after.tool
    return ComparisonView(
        title=name(said.title),
        tone=_tone(comparison),
        verdict=_sentence(said.verdict),
        doubts=tuple(_sentence(doubt) for doubt in said.doubts),
        settings=tuple((what, name(text)) for what, text in said.settings),
        totals=said.totals,
        panels=tuple(_panel(section, _entries(comparison, section.name)) for section in said.sections),
        tool=f"{name(tool.name)} {name(tool.version)}",
    )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _tone(comparison: Comparison) -> Literal["good", "bad", "void"]:
    if comparison.doubts:
        return "void"
    changes = [change for pair in comparison.changed for change in pair.changes]
    if comparison.new or any(change.new > change.old for change in changes):
        return "bad"
    return "good" if comparison.fixed or changes else "void"


def _entries(comparison: Comparison, section: SectionName) -> Sequence[Finding | Pair]:
    """What the section's rows were made of, in their order."""
    lists: dict[SectionName, Sequence[Finding | Pair]] = {
        "new": comparison.new,
        "fixed": comparison.fixed,
        "unseen": comparison.unseen,
        "changed": comparison.changed,
        "moved": comparison.moved,
        "unchanged": comparison.unchanged,
    }
    return lists[section]


def _panel(section: Section, entries: Sequence[Finding | Pair]) -> Panel:
    shown = list(zip(section.rows, entries, strict=True))[:_MOST_ROWS]
    return Panel(
        name=section.name,
        heading=f"{section.heading[:1].upper()}{section.heading[1:]}",
        total=f"{len(section.rows):,}",
        meaning=_MEANINGS[section.name],
        folded=section.name in _FOLDED,
        rows=tuple(_row(row, *_sides(section.name, entry)) for row, entry in shown),
        left_out=len(section.rows) - len(shown),
    )


def _sides(section: SectionName, entry: Finding | Pair) -> tuple[Finding, Finding | None, Finding | None]:
    """The finding to show, and what it is in the old and in the new report."""
    if isinstance(entry, Pair):
        return entry.new, entry.old, entry.new
    return (entry, None, entry) if section == "new" else (entry, entry, None)


def _row(row: Row, finding: Finding, old: Finding | None, new: Finding | None) -> FindingRow:
    return FindingRow(
        code=name(row.code),
        tone=TONES[finding.kind],
        title=name(row.title),
        where=name(row.where),
        function=name(row.function),
        amount=name(row.amount),
        source=_source(finding),
        counts=tuple(_counts(old, new)),
        changes=tuple(map(name, row.changes)),
    )


def _source(finding: Finding) -> Pieces | None:
    place = finding.location
    if place.source is None:
        return None
    return pieces(lay_out(place.source, line_spans(place.source), expression_span(place)))


def _counts(old: Finding | None, new: Finding | None) -> list[Count]:
    """Each number that one of the reports has, before and after."""
    sides = (old, new)
    found = [("occurrences", [None if side is None else f"{side.counts.occurrences:,}" for side in sides])]
    if any(side is not None and side.counts.crossings is not None for side in sides):
        found.append(("crossings", [None if side is None else _crossings(side) for side in sides]))
    if any(side is not None and side.cost is not None for side in sides):
        found.append(("ms a step", [None if side is None else _cost(side) for side in sides]))
    return [_count(what, *texts) for what, texts in found]


def _count(what: str, before: str | None, after: str | None) -> Count:
    """A finding that a report does not have has no number there, which is not zero."""
    return Count(what, before or "-", after or "-", before != after and None not in (before, after))


def _crossings(finding: Finding) -> str:
    crossings = finding.counts.crossings
    return NOT_MEASURED if crossings is None else f"{crossings:,}"


def _cost(finding: Finding) -> str:
    return milliseconds(finding.cost.ms_per_step) if finding.cost else NOT_MEASURED
