"""Keeps the user's formatting: lines, comments and indentation of statements that move or change a little."""

from __future__ import annotations

import ast
import io
import tokenize

from breakscope.fix.patch import Edit, apply
from breakscope.fix.rule import Site, Unsafe
from breakscope.source.names import new_name


class Layout:
    """Source text of one site's statements, ready to stand at another indentation.

    Attributes:
        unit: one level of indentation. width: the longest line that new code should have.
    """

    def __init__(self, site: Site) -> None:
        self.site = site
        self.taken: set[str] = set()
        self.width = min(120, max(88, *map(len, site.lines)))
        first = site.function.body[0]
        self.unit = (
            max(1, first.col_offset - site.function.col_offset) if first.lineno > site.function.lineno else 4
        )
        self._comments = _comments(site.source)

    def unique(self, wish: str) -> str:
        """A name that nothing else has, neither in the module nor in what was rendered."""
        name, number = new_name(self.site, wish), 1
        while name in self.taken:
            number += 1
            name = new_name(self.site, f"{wish}_{number}")
        self.taken.add(name)
        return name

    def lines(self, statement: ast.stmt, *changes: tuple[ast.expr, str]) -> list[str]:
        """A statement's lines from column 0, some of its expressions replaced, its comment kept."""
        start, end = self.site.offsets(statement)
        text = self.site.source[start:end]
        if "\n" in text and ('"""' in text or "'''" in text):
            raise Unsafe("a branch holds a text of several lines")
        edits = []
        for number, (node, _) in enumerate(changes):
            first, last = self.outer(node)
            edits.append(Edit(first - start, last - start, f"\0{number}\0"))
        # New text is relative to column 0 already, so it goes in after the old text was moved there.
        text = dedent(apply(text, edits), statement.col_offset)
        for number, (_, new) in enumerate(changes):
            text = text.replace(f"\0{number}\0", new)
        return (text + self.trailing(statement)).split("\n")

    def value(self, node: ast.expr, column: int, *changes: tuple[ast.expr, str]) -> str:
        """An expression's source as an argument of a call; its later lines relative to ``column``."""
        if isinstance(
            node, ast.GeneratorExp | ast.NamedExpr | ast.Yield | ast.YieldFrom | ast.Tuple | ast.Lambda
        ):
            raise Unsafe("a branch assigns what is not a plain expression")
        start, end = self.site.offsets(node)
        edits = [
            Edit(self.site.offsets(one)[0] - start, self.site.offsets(one)[1] - start, new)
            for one, new in changes
        ]
        return dedent(apply(self.site.source[start:end], edits), column)

    def outer(self, node: ast.expr) -> tuple[int, int]:
        """Offsets of an expression with the parentheses around it."""
        start, end = self.site.offsets(node)
        source = self.site.source
        while True:
            before, after = start - 1, end
            while before >= 0 and source[before] in " \t\n\\":
                before -= 1
            while after < len(source) and source[after] in " \t\n\\":
                after += 1
            if before < 0 or after >= len(source) or source[before] != "(" or source[after] != ")":
                return start, end
            previous = source[:before].rstrip()[-1:]
            if previous.isalnum() or previous in ("_", ")", "]"):
                word = source[:before].rstrip().rsplit(None, 1)[-1] if source[:before].strip() else ""
                if word not in ("return", "if", "elif", "and", "or", "not", "in", "while", "assert"):
                    return start, end
            start, end = before, after + 1

    def trailing(self, statement: ast.stmt) -> str:
        """The comment behind a statement, with two spaces before it."""
        span = self.site.span(statement)
        found = self._comments.get(span.end_line)
        return f"  {found[1]}" if found and found[0] >= span.end_column - 1 else ""

    def comments(self, block: list[ast.stmt], index: int) -> list[str]:
        """The comment lines in front of a statement of a block."""
        statement = block[index]
        last = statement.lineno
        first = self.site.span(block[index - 1]).end_line + 1 if index else last
        if not index:
            while self._is_comment_line(first - 1):
                first -= 1
        return [
            self.site.lines[number - 1].strip()
            for number in range(first, last)
            if self._is_comment_line(number) or (index and not self.site.lines[number - 1].strip())
        ]

    def header_comments(self, node: ast.If) -> list[str]:
        """Comments on the lines of an ``if`` up to its colon, as lines of their own."""
        last = node.body[0].lineno
        return [self._comments[number][1] for number in range(node.lineno, last) if self._trailing_at(number)]

    def comments_in(self, node: ast.stmt) -> list[str]:
        """Every comment on the lines of a statement."""
        span = self.site.span(node)
        return [self._comments[n][1] for n in range(span.line, span.end_line + 1) if n in self._comments]

    def between(self, above: ast.stmt, below: ast.stmt) -> list[str]:
        """Comments between two blocks: above and on the line of an ``else``."""
        first, last = self.site.span(above).end_line + 1, below.lineno
        while self._is_comment_line(last - 1):  # those belong to the statement below
            last -= 1
        return [self._comments[number][1] for number in range(first, last) if number in self._comments]

    def end(self, statement: ast.stmt) -> int:
        """Offset of a statement's end, the comment behind it included."""
        span = self.site.span(statement)
        found = self._comments.get(span.end_line)
        if found and found[0] >= span.end_column - 1:
            return self.site.starts[span.end_line - 1] + found[0] + len(found[1])
        return self.site.offsets(statement)[1]

    def _trailing_at(self, number: int) -> bool:
        return number in self._comments and not self._is_comment_line(number)

    def _is_comment_line(self, number: int) -> bool:
        return 0 < number <= len(self.site.lines) and self.site.lines[number - 1].lstrip().startswith("#")

    def call(self, function: str, arguments: list[str], indent: int) -> str:
        """A call on one line if it fits, else an argument a line. Lines after the first are relative."""
        flat = f"{function}({', '.join(arguments)})"
        if "\n" not in flat and "#" not in flat and indent + len(flat) <= self.width:
            return flat
        inner = " " * self.unit
        rows = [f"{inner}{argument},".replace("\n", f"\n{inner}") for argument in arguments]
        return "\n".join([f"{function}(", *rows, ")"])


def dedent(text: str, column: int) -> str:
    """Text whose first line begins at a column, its other lines moved left by as much."""
    first, *rest = text.split("\n")
    moved = [line[min(column, len(line) - len(line.lstrip())) :] for line in rest]
    return "\n".join([first, *moved])


def indented(lines: list[str], columns: int) -> str:
    """Lines (each may hold several) moved right."""
    return "\n".join(" " * columns + one if one else one for line in lines for one in line.split("\n"))


def _comments(source: str) -> dict[int, tuple[int, str]]:
    """Column (from 0) and text of the comment on each line."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {
        token.start[0]: (token.start[1], token.string) for token in tokens if token.type == tokenize.COMMENT
    }
