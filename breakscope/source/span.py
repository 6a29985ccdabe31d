"""The place of an expression or a statement in its file.

Positions are those of :class:`breakscope.report.model.Location`: lines and columns from 1, columns in
characters, ``end_column`` after the last character.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """The place of an expression in its file."""

    line: int
    column: int
    end_line: int
    end_column: int

    def key(self) -> str:
        """For JSON."""
        return f"{self.line}:{self.column}-{self.end_line}:{self.end_column}"

    @classmethod
    def parse(cls, key: str) -> Span:
        """Inverse of :meth:`key`."""
        start, _, end = key.partition("-")
        line, column = map(int, start.split(":"))
        end_line, end_column = map(int, end.split(":"))
        return cls(line, column, end_line, end_column)

    @classmethod
    def of(cls, node: ast.expr | ast.stmt, lines: list[str]) -> Span:
        """Where a node stands.

        Args:
            lines: those of the module's source, because ``ast`` counts columns in UTF-8 bytes.
        """
        end_line = node.end_lineno or node.lineno
        end = node.end_col_offset or 0
        return cls(
            node.lineno,
            characters(lines[node.lineno - 1], node.col_offset) + 1,
            end_line,
            characters(lines[end_line - 1], end) + 1,
        )


def characters(line: str, offset: int) -> int:
    """A column in UTF-8 bytes, in characters."""
    if line.isascii():
        return offset
    return len(line.encode(errors="surrogatepass")[:offset].decode(errors="replace"))
