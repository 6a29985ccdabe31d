"""Text from a report, made fit for a page: nothing invisible, nothing endless, many lines kept as lines.

Markup needs no care here: the template escapes, and the page's script sets text, never HTML.
"""

from __future__ import annotations

from breakscope.view.text import harmless

LONGEST_TEXT = 4_000  # characters of one text that the page shows; the report file has the rest
LONGEST_NAME = 300  # the same for a name, a path or a value


def block(text: str, most: int = LONGEST_TEXT) -> str:
    """Text of several lines: each harmless, the whole cut with a note of how much was left out."""
    kept = text[:most]
    lines = (harmless(line.removesuffix("\r")) for line in kept.split("\n"))
    return "\n".join(lines).strip("\n") + _left_out(text, most)


def name(text: str, most: int = LONGEST_NAME) -> str:
    """Text on one line, harmless, cut with a note."""
    return harmless(text[:most]) + _left_out(text, most)


def units(text: str) -> int:
    """Length as JavaScript counts it: characters beyond the basic plane are two."""
    return len(text) + sum(character > "\uffff" for character in text)


def _left_out(text: str, most: int) -> str:
    rest = len(text) - most
    return f" … ({rest:,} more characters in the report file)" if rest > 0 else ""
