"""Text into GitHub's Markdown, so that it shows as it is: no markup, no link, nobody mentioned."""

from __future__ import annotations

import re

from breakscope.view.text import harmless
from breakscope.view.words import lines

# What means something inside a line or a table cell, or to GitHub ($ is mathematics). A character
# reference is never markup, in any renderer, and a reader of the plain file can still make out the text.
# An underscore between letters is none, and a name is easier to read with it.
_SPECIAL = re.compile(r"[\\`*\[\]<!~&|$]|(?<![^\W_])_|_(?![^\W_])|^[>#+-]|(?<=:)/(?=/)|(?<=\bwww)\.")
_REFERENCE = re.compile(r"(?<=[@#])(?=\w)|(?<=\bGH)(?=-\d)", re.IGNORECASE)
_WORD_JOINER = "&#8288;"


def plain(text: str) -> str:
    """Text as text. ``@ada`` and ``#12`` get an invisible character: GitHub links them even as entities."""
    escaped = _entities(harmless(text))
    # Entities hold "#" themselves, and never before a letter of the text.
    parts = re.split(r"(&#\d+;)", escaped)
    return "".join(
        part if index % 2 else _REFERENCE.sub(_WORD_JOINER, part) for index, part in enumerate(parts)
    )


def code(text: str) -> str:
    """Text in a code span that also holds backticks and, in a table, pipes. GitHub links nothing there."""
    return f"<code>{_entities(harmless(text))}</code>" if text else ""


def block(text: str, language: str) -> str:
    """Lines as a fenced block, with a fence that the text cannot close."""
    content = lines(text)
    longest = max(map(len, re.findall(r"`+", content)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{content}\n{fence}"


def _entities(text: str) -> str:
    return _SPECIAL.sub(lambda match: f"&#{ord(match[0])};", text)
