"""A comparison on a terminal, or as plain text where that is no terminal."""

from __future__ import annotations

from rich.text import Text

from breakscope.diagnose.compare import Comparison
from breakscope.view import diff_view
from breakscope.view.diff_view import DiffView, Row, Section, SectionName
from breakscope.view.layout import Layout, apart, printed

_STYLES: dict[SectionName, str] = {
    "new": "bold red",
    "fixed": "bold green",
    "unseen": "bold yellow",
    "changed": "bold yellow",
    "moved": "bold",
    "unchanged": "dim",
}
# Rows that ask for nothing: counted, and listed only on request.
_QUIET = ("moved", "unchanged")


def render(
    comparison: Comparison,
    *,
    width: int,
    color: bool,
    all: bool = False,  # noqa: A002 - the flag's name
    root: str | None = None,
) -> str:
    """The comparison as text that ends with a newline.

    Args:
        comparison: what to show.
        width: columns that no line exceeds, at least 20.
        color: whether to use ANSI styles; without them the text has no control codes.
        all: also list what only moved or did not change.
        root: folder to which paths are shown relative, besides those in which the scripts ran.
    """
    view = diff_view.build(comparison, root=root)
    return printed(_Layout(width).screen(view, all), color=color)


class _Layout(Layout):
    """Lays a comparison out in a width."""

    def screen(self, view: DiffView, everything: bool) -> list[Text]:
        blocks = [self.wrap(Text(view.title, "bold"))]
        if view.settings:
            lines = self.wrap(Text("the runs differ in more than the findings:"))
            blocks.append(
                lines + [line for name, text in view.settings for line in self.labelled(name, text)]
            )
        blocks.append(
            [line for doubt in view.doubts for line in self.wrap(Text(f"but: {doubt}", "bold yellow"))]
        )
        blocks.append(self.wrap(Text(view.verdict, "bold")))
        blocks.append(
            [
                line
                for name, old, new in view.totals
                for line in self.labelled(name, f"{old}{diff_view.ARROW}{new}")
            ]
        )
        quiet = [section for section in view.sections if section.name in _QUIET and not everything]
        blocks += [self.section(section) for section in view.sections if section not in quiet]
        if quiet:
            names = " and ".join(f"{len(section.rows):,} {section.name}" for section in quiet)
            blocks.append(self.wrap(Text(f"{names}: --all lists them", "dim")))
        return apart(blocks)

    def section(self, section: Section) -> list[Text]:
        lines = self.wrap(Text(f"{section.heading} ({len(section.rows):,})", _STYLES[section.name]))
        for row in section.rows:
            lines += self.row(row)
        return lines

    def row(self, row: Row) -> list[Text]:
        head = Text.assemble((row.code, "bold"), "  ", row.title, f"  ({row.amount})")
        place = Text.assemble((row.where, "cyan"), "  " if row.function else "", row.function)
        lines = self.wrap(head, "  ") + self.wrap(place, "    ")
        for change in row.changes:
            lines += self.wrap(Text(change), "    ")
        return lines

    def labelled(self, label: str, text: str) -> list[Text]:
        return self.wrap(Text.assemble((f"{label}  ", "dim"), text), "  ")
