"""Comments in source that say which findings to leave out: ``# breakscope: ignore[BS101] -- reason``.

Such a comment holds for the statement that it stands in or, on a line of its own, for the next statement.
On the line of a ``def``, of a ``class`` or of one of their decorators it holds for all of the body.
Codes may be prefixes (``BS1``). Standard library only, and nothing is tokenized that has no such comment.
"""

from __future__ import annotations

import re
import tokenize
from dataclasses import dataclass
from io import StringIO

_MARK = "breakscope:"
_COMMENT = re.compile(r"#\s*breakscope:\s*(?P<rest>.*)$")
_IGNORE = re.compile(r"ignore\s*\[(?P<codes>[^\]]*)\]\s*(?:--\s*(?P<reason>.*?)\s*)?$")
_CODE = re.compile(r"BS\d{1,3}$")
_LAYOUT = frozenset(
    {
        tokenize.NEWLINE,
        tokenize.NL,
        tokenize.COMMENT,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    }
)


@dataclass(frozen=True, slots=True)
class Suppression:
    """One comment. Lines count from 1.

    Attributes:
        line: where the comment stands.
        codes: codes, or prefixes of codes, that it names.
        reason: what its author says after ``--``; None without.
        first: first line for which it holds; last: the last one.
    """

    line: int
    codes: tuple[str, ...]
    reason: str | None
    first: int
    last: int

    def holds(self, code: str, first: int, last: int) -> bool:
        """Whether it is about a finding with this code on these lines."""
        return self.first <= last and first <= self.last and code.startswith(self.codes)


@dataclass(frozen=True, slots=True)
class Malformed:
    """A comment for breakscope that suppresses nothing, and why, as the end of a sentence."""

    line: int
    text: str
    why: str


@dataclass(frozen=True, slots=True)
class Suppressions:
    """The comments of one file, in the order of their lines."""

    entries: tuple[Suppression, ...] = ()
    malformed: tuple[Malformed, ...] = ()

    def find(self, code: str, first: int, last: int | None = None) -> Suppression | None:
        """The comment that suppresses a finding; of several the one that holds for the fewest lines.

        Args:
            code: the finding's code.
            first: the finding's first line.
            last: its last line; None if it has one line.
        """
        fit = [entry for entry in self.entries if entry.holds(code, first, first if last is None else last)]
        return min(fit, key=lambda entry: entry.last - entry.first, default=None)


def read(path: str) -> Suppressions:
    """The comments of a file.

    Raises:
        OSError: the file cannot be read.
        SyntaxError: it names an encoding that Python does not know.
        ValueError: it is not text.
    """
    with tokenize.open(path) as stream:
        return parse(stream.read())


def parse(text: str) -> Suppressions:
    """The comments in Python source. After an error in the source no comment is found any more."""
    if _MARK not in text:
        return Suppressions()
    entries: list[Suppression] = []
    malformed: list[Malformed] = []
    for statement in _statements(text):
        for line, comment in statement.comments:
            found = _COMMENT.search(comment)
            if found is None:
                continue
            read_one = _read(line, found, statement)
            if isinstance(read_one, Malformed):
                malformed.append(read_one)
            else:
                entries.append(read_one)
    entries.sort(key=lambda entry: entry.line)
    malformed.sort(key=lambda one: one.line)
    return Suppressions(tuple(entries), tuple(malformed))


def _read(line: int, found: re.Match[str], statement: _Statement) -> Suppression | Malformed:
    text, rest = found[0], found["rest"]
    shape = _IGNORE.match(rest)
    if shape is None:
        if re.match(r"ignore\b(?!\s*\[)", rest):
            return Malformed(line, text, "it names no code; write ignore[BS101]")
        return Malformed(line, text, "only `ignore[CODE, …] -- reason` is understood")
    codes = tuple(code.strip() for code in shape["codes"].split(",") if code.strip())
    wrong = next((code for code in codes if not _CODE.match(code)), None)
    if wrong is not None or not codes:
        what = f"{wrong!r} is no code" if wrong else "it names no code"
        return Malformed(line, text, f"{what}; write ignore[BS101]")
    return Suppression(line, codes, shape["reason"] or None, statement.first, statement.last)


@dataclass(slots=True)
class _Statement:
    """A logical line, its body included where it begins a function or a class."""

    first: int
    last: int
    comments: list[tuple[int, str]]


def _statements(text: str) -> list[_Statement]:
    """Every statement with comments, in the order of their ends."""
    reader = _Reader()
    try:
        for token in tokenize.generate_tokens(StringIO(text).readline):
            reader.take(token)
    except (tokenize.TokenError, SyntaxError):
        pass  # Python itself says so, and what stands before the error holds
    reader.finish()
    return reader.found


class _Reader:
    """Puts tokens together to statements, those with comments into ``found``; fast, for there are many."""

    def __init__(self) -> None:
        self.found: list[_Statement] = []
        self._comments: list[tuple[int, str]] = []  # of the statement that is being read
        self._word: str | None = None  # its first word; None between two statements
        self._first = 0  # its first line, decorators included; 0 before it
        self._end = 0  # last line with anything but comments
        self._depth = 0
        self._header: _Statement | None = None  # a def or class whose body may begin now
        self._bodies: list[tuple[int, _Statement]] = []  # open ones, with the depth of what is inside

    def take(self, token: tokenize.TokenInfo) -> None:
        """Read one token."""
        kind = token.type
        if kind in _LAYOUT:
            self._layout(kind, token)
            return
        if self._header is not None:
            self._header_without_body()
        if self._word is None or self._word == "async":
            self._word = token.string
            self._first = self._first or token.start[0]
        self._end = token.end[0]

    def _layout(self, kind: int, token: tokenize.TokenInfo) -> None:
        if kind == tokenize.NEWLINE:
            self._line_ended(token.start[0])
        elif kind == tokenize.COMMENT:
            if _MARK in token.string:
                self._comments.append((token.start[0], token.string))
        elif kind == tokenize.INDENT:
            self._depth += 1
            if self._header is not None:
                self._bodies.append((self._depth, self._header))
                self._header = None
        elif kind == tokenize.DEDENT:
            if self._bodies and self._bodies[-1][0] == self._depth:
                self._close()
            self._depth -= 1

    def _line_ended(self, line: int) -> None:
        self._end = line
        word, self._word = self._word, None
        if word == "@":
            return  # the decorated def goes on with it
        if word in ("def", "class"):
            self._header = _Statement(self._first, line, self._comments)
            self._comments = []
        elif self._comments:
            self.found.append(_Statement(self._first, line, self._comments))
            self._comments = []
        self._first = 0

    def _header_without_body(self) -> None:
        """``def f(): return 1`` is over where no indentation follows."""
        if self._header is not None:
            self.found.append(self._header)
            self._header = None

    def _close(self) -> None:
        body = self._bodies.pop()[1]
        body.last = max(self._end, body.last)
        self.found.append(body)

    def finish(self) -> None:
        """Take what has not ended with the last token."""
        self._header_without_body()
        while self._bodies:
            self._close()
        if self._comments:
            end = self._end if self._first else 0
            self.found.append(_Statement(self._first, end, self._comments))
