"""Colours for Python source: which characters are keywords, strings, comments and so on. Stdlib only."""

from __future__ import annotations

import builtins
import io
import keyword
import token
import tokenize
from collections.abc import Sequence

Span = tuple[int, int, str]
"""(start, end, class) in characters of one line; the class is one letter that page.css knows."""

KEYWORD, STRING, COMMENT, NUMBER, DEFINED, BUILTIN, DECORATOR = "k", "s", "c", "n", "d", "b", "a"

_LONGEST_LINE = 20_000  # such a line is data, not code, and costs the tokenizer seconds
_STRINGS = frozenset(
    kind
    for name in (
        "STRING",
        *(f"{letter}STRING_{part}" for letter in "FT" for part in ("START", "MIDDLE", "END")),
    )
    if (kind := getattr(token, name, None)) is not None
)
_KINDS = {tokenize.COMMENT: COMMENT, token.NUMBER: NUMBER} | dict.fromkeys(_STRINGS, STRING)
_BUILTINS = frozenset(name for name in dir(builtins) if not name.startswith("_")) | {"self", "cls"}
_LAYOUT = frozenset({token.NEWLINE, token.INDENT, token.DEDENT, tokenize.NL, token.ENDMARKER})


def spans(lines: Sequence[str]) -> list[list[Span]]:
    """The coloured parts of each line, in order and apart from each other.

    Text that is not Python, or stops being it, is left without colours from there on: a report must
    show any file.
    """
    found: list[list[Span]] = [[] for _ in lines]
    if any(len(line) > _LONGEST_LINE for line in lines):
        return found
    previous = ""
    starts_line = True
    try:
        for item in tokenize.generate_tokens(io.StringIO("\n".join(lines)).readline):
            kind = _kind(item, previous, starts_line)
            if kind:
                _add(found, item, kind)
            if item.type in _LAYOUT:
                starts_line = True
            elif item.type != tokenize.COMMENT:
                previous, starts_line = item.string, False
    except (tokenize.TokenError, SyntaxError, ValueError):
        return found
    return found


def line_spans(line: str) -> list[Span]:
    """The same for a line on its own, such as one of a diff."""
    start = len(line) - len(line.lstrip())
    return [(a + start, b + start, kind) for a, b, kind in spans([line[start:]])[0]]


def _kind(item: tokenize.TokenInfo, previous: str, starts_line: bool) -> str:
    if item.type != token.NAME:
        decorates = item.string == "@" and starts_line
        return DECORATOR if decorates else _KINDS.get(item.type, "")
    if keyword.iskeyword(item.string) or (starts_line and _is_soft_keyword(item)):
        return KEYWORD
    if previous in ("def", "class"):
        return DEFINED
    return BUILTIN if item.string in _BUILTINS and previous != "." else ""


def _is_soft_keyword(item: tokenize.TokenInfo) -> bool:
    # `match = 1` is a name; a statement ends its line with a colon.
    return item.string in ("match", "case") and item.line.split("#")[0].rstrip().endswith(":")


def _add(found: list[list[Span]], item: tokenize.TokenInfo, kind: str) -> None:
    (first, start), (last, end) = item.start, item.end
    for number in range(first, min(last, len(found)) + 1):
        row = found[number - 1]
        stop = end if number == last else _LONGEST_LINE
        begin = max(start if number == first else 0, row[-1][1] if row else 0)
        if begin < stop:
            row.append((begin, stop, kind))
