"""The report on a terminal, or as plain text where that is no terminal."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from typing import TypeVar

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from breakscope.catalog.links import help_page, torch_page
from breakscope.render.sarif_places import quoted
from breakscope.report.model import FindingKind, Report
from breakscope.view import report_view
from breakscope.view.excerpt import excerpt
from breakscope.view.finding import Detail, Group, Place
from breakscope.view.layout import WIDEST, Layout, apart, printed
from breakscope.view.report_view import View

_NARROW = 60  # columns below which indentation is saved
_GAP = "  "
_DOT = " · "
_KIND_STYLES: dict[FindingKind, str] = {
    "skip": "bold red",
    "graph_break": "bold yellow",
    "recompile": "bold cyan",
    "compile": "bold cyan",
}
_SEVERITY_STYLES = {"warning": "yellow", "note": "dim"}
_T = TypeVar("_T")
_LABEL = len("do this") + len(_GAP)


def render(
    report: Report,
    *,
    width: int | None,
    color: bool,
    limit: int = 20,
    everything: bool = False,
    root: str | None = None,
    next_steps: Sequence[tuple[str, str]] = (),
    links: bool = False,
) -> str:
    """The report as text that ends with a newline; worst finding first.

    Args:
        report: what to show.
        width: columns that no line exceeds, at least 20; None for those of the terminal, or 80.
        color: whether to use ANSI styles; without them the text has no control codes.
        limit: findings to show; the others are summed up in one line.
        everything: show every finding, every frame of a call path and every guard's own text.
        root: folder to which paths are shown relative, besides that in which the script ran.
        next_steps: (command, what it does) lines for the end.
        links: whether codes, ids and places lead to their pages and files; only with ``color``.
    """
    view = report_view.build(report, limit=limit, all=everything, root=root)
    text = render_view(view, width=width, color=color, next_steps=next_steps, links=links)
    if not report.benchmark:
        return text
    from breakscope.render import bench_terminal
    from breakscope.report import benchmark

    measured = benchmark.from_dict(report.benchmark)
    if measured is None:
        return text
    return text + "\n" + bench_terminal.render(measured, width=min(_width(width), WIDEST), color=color)


def render_view(
    view: View,
    *,
    width: int | None,
    color: bool,
    next_steps: Sequence[tuple[str, str]] = (),
    links: bool = False,
) -> str:
    """A view that is ready, laid out as :func:`render` does."""
    return printed(_Layout(_width(width), links).screen(view, next_steps), color=color)


def _width(asked: int | None) -> int:
    return shutil.get_terminal_size((80, 24)).columns if asked is None else asked


class _Layout(Layout):
    """Lays a view out in a width."""

    def __init__(self, width: int, links: bool) -> None:
        super().__init__(width)
        self._links = links

    def screen(self, view: View, next_steps: Sequence[tuple[str, str]]) -> list[Text]:
        verdict = self.wrap(Text(view.verdict, "green")) if view.verdict else []
        first = self.wrap(Text(view.alarm, "bold red")) if view.alarm else verdict
        blocks = [first + self.flow(view.header), self.flow(view.totals)]
        blocks.append(self.ranks(view.ranks))
        blocks.append(verdict if view.alarm else [])
        number_width = len(str(len(view.groups))) + 1
        blocks += [self.group(group, number_width) for group in view.groups]
        if view.more:
            blocks.append(self.wrap(Text(view.more)))
        if view.closed or view.closed_groups:
            blocks.append([Text("─" * self.width, "dim"), *self.rows(view.closed)])
            blocks += [self.group(group, number_width) for group in view.closed_groups]
        blocks.append(self.rows(view.notes))
        blocks.append(self.next_steps(next_steps))
        return apart(blocks)

    def rows(self, rows: Sequence[tuple[str, str]]) -> list[Text]:
        """Labels, and texts beside them."""
        width = max((cell_len(label) for label, _ in rows), default=0) + len(_GAP)
        return [line for label, text in rows for line in self.labelled(label, text, "", width)]

    def ranks(self, lines: Sequence[tuple[str, str]]) -> list[Text]:
        """In what ranks differ; the first line sums up."""
        width = max((cell_len(label) for label, _ in lines), default=0) + len(_GAP)
        made = []
        for first, (label, text) in _first(lines):
            style = "bold" if first else "bold red" if label else "dim"
            prefix = Text.assemble((label.ljust(width), "bold" if first else style))
            made += self.hang(prefix, Text(text, "" if label and not first else style))
        return made

    def group(self, group: Group, number_width: int) -> list[Text]:
        number = Text(f"{group.number or '':>{number_width}}{_GAP}", "dim")
        indent = " " * (2 if self.width < _NARROW else number.cell_len)
        style = _SEVERITY_STYLES.get(group.severity, "bold red")
        page = help_page(group.code) if self._links else None  # which reads the package's metadata
        code = self.leading(_KIND_STYLES[group.kind], page)
        title = Text.assemble((group.code, code), _GAP, (group.severity, style), _GAP, (group.title, "bold"))
        lines = self.sides(number, title, Text(group.amount, "bold"), indent)
        for place in group.places:
            lines += self.place(place, indent)
        return lines + self.details(group.details, indent)

    def place(self, place: Place, indent: str) -> list[Text]:
        file = self.leading("cyan", _address(place.location.file))
        where = Text.assemble((place.where, file), _GAP if place.function else "", (place.function, "bold"))
        gb_id = Text(place.gb_id, self.leading("dim", torch_page(place.gb_id)))
        whole = Text.assemble(where, _GAP, place.counts) if place.counts else where
        if len(indent) + whole.cell_len + len(_GAP) + gb_id.cell_len <= self.width:
            lines = self.sides(Text(indent), whole, gb_id, indent)
        else:
            lines = self.sides(Text(indent), where, gb_id, indent)
            lines += self.wrap(Text(place.counts), indent) if place.counts else []
        lines += self.source(place, indent + (_GAP if self.width < _NARROW else "   "))
        return lines + self.details(place.details, indent)

    def source(self, place: Place, indent: str) -> list[Text]:
        shown = excerpt(place.location, self.width - len(indent))
        if shown is None:
            return []
        lines = [Text(indent + shown.text)]
        if shown.mark:
            offset, width = shown.mark
            lines.append(Text.assemble(indent, " " * offset, ("^" * width, "bold red")))
        return lines

    def next_steps(self, steps: Sequence[tuple[str, str]]) -> list[Text]:
        label = f"next{_GAP}"
        column = max((cell_len(command) for command, _ in steps), default=0) + len(_GAP)
        lines = []
        for first, (command, purpose) in _first(steps):
            prefix = Text(label if first else " " * len(label), "dim")
            line = Text.assemble(prefix, (command, "bold"), " " * (column - cell_len(command)), purpose)
            if line.cell_len <= self.width:
                lines.append(line)
            else:
                lines += self.hang(prefix, Text(command, "bold"))
                lines += self.wrap(Text(purpose), " " * (len(label) + len(_GAP)))
        return lines

    def leading(self, style: str, address: str | None) -> Style:
        """A style that leads to an address, where links are wanted."""
        return Style.parse(style) + Style(link=address if self._links else None)

    # ---- lines ----

    def sides(self, prefix: Text, left: Text, right: Text, indent: str) -> list[Text]:
        """Left, and right at the far end of its last line, or of a line of its own."""
        pieces = self.pieces(left, self.width - max(prefix.cell_len, len(indent)))
        lines = [Text.assemble(prefix if first else indent, piece) for first, piece in _first(pieces)]
        if not right:
            return lines
        space = self.width - lines[-1].cell_len - right.cell_len
        if space >= len(_GAP):
            lines[-1] = Text.assemble(lines[-1], " " * space, right)
            return lines
        space = self.width - right.cell_len
        return lines + ([Text.assemble(" " * space, right)] if space >= 0 else self.wrap(right, indent))

    def details(self, details: Sequence[Detail], indent: str) -> list[Text]:
        return [
            line
            for label, texts in details
            for first, text in _first(texts)
            for line in self.labelled(label if first else "", text, indent, _LABEL)
        ]

    def labelled(self, label: str, text: str, indent: str, label_width: int) -> list[Text]:
        return self.hang(Text.assemble(indent, (label.ljust(label_width), "dim")), Text(text))

    def hang(self, prefix: Text, body: Text) -> list[Text]:
        """The body beside the prefix, its later lines under its first."""
        pieces = self.pieces(body, self.width - prefix.cell_len)
        later = Text(" " * prefix.cell_len)
        return [Text.assemble(prefix if first else later, piece) for first, piece in _first(pieces)]

    def flow(self, items: Sequence[str]) -> list[Text]:
        """Items side by side, a new line before one that does not fit; the first one stands out."""
        lines: list[Text] = []
        for first, item in _first(items):
            text = Text(item, "bold" if first else "")
            if lines and lines[-1].cell_len + len(_DOT) + text.cell_len <= self.width:
                lines[-1] = Text.assemble(lines[-1], (_DOT, "dim"), text)
            else:
                lines += self.wrap(text)
        return lines


def _address(file: str) -> str | None:
    return f"file://{quoted(file)}" if file.startswith("/") else None


def _first(items: Iterable[_T]) -> Iterable[tuple[bool, _T]]:
    return ((index == 0, item) for index, item in enumerate(items))
