"""A comparison in GitHub's Markdown, for a comment on a pull request."""

from __future__ import annotations

from breakscope.diagnose.compare import Comparison
from breakscope.view import diff_view
from breakscope.view.diff_view import DiffView, Section
from breakscope.view.markup import code, plain
from breakscope.view.words import clip

MAX_BYTES = 65_536  # GitHub allows so many characters in a comment; bytes are never fewer

_LINE = 300  # characters of one text
_CUT_NOTE = 100  # bytes kept free in each section to say what was cut
_FOLDED = ("moved", "unchanged")


def render(comparison: Comparison, *, root: str | None = None, max_bytes: int = MAX_BYTES) -> str:
    """The comparison as Markdown that ends with a newline.

    Args:
        comparison: what to show.
        root: folder to which paths are shown relative, besides those in which the scripts ran.
        max_bytes: most that the text takes as UTF-8; the last rows of the last sections go first.
    """
    view = diff_view.build(comparison, root=root)
    text = _head(view)
    for section in view.sections:
        text += _section(section, max_bytes - len(text.encode()) - _CUT_NOTE * len(view.sections))
    return text


def _head(view: DiffView) -> str:
    parts = [f"## breakscope: {plain(view.verdict)}", plain(clip(view.title, _LINE))]
    if view.settings:
        rows = "\n".join(f"- {name}: {code(clip(text, _LINE))}" for name, text in view.settings)
        parts.append(f"The runs differ in more than the findings:\n\n{rows}")
    if view.doubts:
        doubts = "\n".join(f"> {plain(doubt[0].upper() + doubt[1:])}." for doubt in view.doubts)
        parts.append(f"> [!WARNING]\n{doubts}")
    if view.totals:
        rows = "\n".join(f"| {name} | {left} | {right} |" for name, left, right in view.totals)
        parts.append(f"| | old | new |\n| --- | --: | --: |\n{rows}")
    return "\n\n".join(parts) + "\n"


def _section(section: Section, room: int) -> str:
    heading = f"{section.heading[0].upper()}{section.heading[1:]} ({len(section.rows):,})"
    start = "| code | what | where | how much | changes |\n| --- | --- | --- | --- | --- |\n"
    fold = section.name in _FOLDED
    opening = f"\n<details><summary>{heading}</summary>\n\n{start}" if fold else f"\n### {heading}\n\n{start}"
    closing = "\n</details>\n" if fold else ""
    used = len((opening + closing).encode())
    rows: list[str] = []
    for row in section.rows:
        cells = (
            code(clip(row.code, 40)),
            plain(clip(row.title, _LINE)),
            f"{code(clip(row.where, _LINE))} {plain(clip(row.function, _LINE))}".strip(),
            plain(clip(row.amount, _LINE)),
            plain(clip("; ".join(row.changes), _LINE)),
        )
        line = f"| {' | '.join(cells)} |\n"
        used += len(line.encode())
        if used > room:
            break
        rows.append(line)
    cut = len(section.rows) - len(rows)
    left_out = f"{cut:,} of these {len(section.rows):,} do not fit here."
    if not rows:
        return f"\n{heading}: {left_out}\n"
    return opening + "".join(rows) + (f"\n{left_out}\n" if cut else "") + closing
