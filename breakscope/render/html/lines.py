"""One source line as the page shows it: harmless text, its colours, and where the marked part stands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from breakscope.render.html.highlight import Span
from breakscope.render.html.texts import units
from breakscope.view.text import harmless

WIDEST = 400  # characters of a line that are shown; the rest is data rather than code
_BEFORE = 120  # of these, how many stand before the marked expression
ELLIPSIS = "…"


@dataclass(frozen=True, slots=True)
class Line:
    """Text to show.

    Attributes:
        text: harmless; cut with … on the sides where something is missing.
        runs: its colours, as ``<letter><length>`` one after the other: ``k2.1b5``; a dot is no colour.
            Lengths count as JavaScript does.
        mark: (start, end) of the marked part in ``text``, counted the same way.
    """

    text: str
    runs: str
    mark: tuple[int, int] | None = None


def _window(raw: str, focus: int | None) -> tuple[int, int]:
    """The part of a line to show, so that what is at ``focus`` is in it."""
    if len(raw) <= WIDEST:
        return 0, len(raw)
    low = max(0, min((focus or 0) - _BEFORE, len(raw) - WIDEST))
    return low, low + WIDEST


def lay_out(
    raw: str, spans: Sequence[Span], mark: tuple[int, int] | None = None, focus: int | None = None
) -> Line:
    """A line with its colours and its mark, both in characters of ``raw``.

    ``focus`` is what must be in the part that is shown, where that is not the start of the mark.
    """
    low, high = _window(raw, mark[0] if mark and focus is None else focus)
    pieces = [(ELLIPSIS, ".")] if low else []
    pieces += [(harmless(raw[start:end]), kind) for start, end, kind in _cover(spans, low, high)]
    if high < len(raw):
        pieces.append((ELLIPSIS, "."))
    runs = [(units(text), kind) for text, kind in pieces if text]
    only_plain = all(kind == "." for _, kind in runs)
    return Line(
        text="".join(text for text, _ in pieces),
        runs="" if only_plain else "".join(f"{kind}{length}" for length, kind in runs),
        mark=_shown_mark(raw, mark, low, high) if mark else None,
    )


def _shown_mark(raw: str, mark: tuple[int, int], low: int, high: int) -> tuple[int, int] | None:
    start, end = max(mark[0], low), min(mark[1], high)
    if start >= end:
        return None
    begin = units(harmless(raw[low:start])) + (1 if low else 0)
    return begin, begin + units(harmless(raw[start:end]))


def _cover(spans: Iterable[Span], low: int, high: int) -> Iterable[Span]:
    """The spans inside a range, with the gaps between them as spans without colour."""
    at = low
    for start, end, kind in spans:
        start, end = max(start, at), min(end, high)
        if start >= end:
            continue
        if at < start:
            yield at, start, "."
        yield start, end, kind
        at = end
    if at < high:
        yield at, high, "."
