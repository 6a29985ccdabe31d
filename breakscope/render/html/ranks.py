"""The page's section on ranks: the words of every format, with links to the findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass

from breakscope.render.html.texts import name
from breakscope.report.model import Report
from breakscope.view import ranks

_MOST_LINES, _MOST_ROWS = 100, 256


@dataclass(frozen=True, slots=True)
class RankLine:
    """One divergence; ``anchor`` is that of the finding that it is about, empty where there is none."""

    label: str
    text: str
    where: str
    each: str
    anchor: str


@dataclass(frozen=True, slots=True)
class RanksSection:
    """The section: whether ranks differ, in what, and a table row for each process."""

    sentence: str
    alarming: bool
    lines: tuple[RankLine, ...]
    left_out: int
    rows: tuple[tuple[str, ...], ...]
    more_rows: int
    unknown: tuple[str, ...]


def ranks_section(
    report: Report, folders: Sequence[str], *, anchors: Mapping[str, str]
) -> RanksSection | None:
    """The section of a merged report; None for a report of one process."""
    view = ranks.build(report, folders, _MOST_LINES, _MOST_ROWS)
    if view is None:
        return None
    lines = (
        RankLine(
            line.label,
            name(line.text, 600),
            name(line.where),
            name(line.each),
            anchors.get(line.fingerprint or "", ""),
        )
        for line in view.lines
    )
    return RanksSection(
        sentence=view.sentence,
        alarming=view.alarming,
        lines=tuple(lines),
        left_out=view.left_out,
        rows=tuple(tuple(name(cell) for cell in astuple(row)) for row in view.rows),
        more_rows=view.more_rows,
        unknown=view.unknown,
    )
