"""A user's file as text and as a tree, and the small changes that remedies make to it.

Changes are splices of the text at places that the tree gives: whatever is not named stays as it was typed.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator

from breakscope.fix.patch import Edit
from breakscope.fix.source_file import Source, read
from breakscope.report.model import Location
from breakscope.source.module import parsed
from breakscope.source.names import defaults
from breakscope.source.span import characters

_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_CONDITIONAL = (*_SCOPES, ast.BoolOp, ast.IfExp)


class File:
    """A Python file with its tree. Raises SyntaxError where it has none."""

    def __init__(self, path: str, source: Source) -> None:
        self.path, self.text = path, source.text
        self.module = parsed(source.text)
        self.tree = self.module.tree
        self._starts = [0]
        for line in self.text.split("\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)
        self._parents = self.module.parents

    # -- places ----------------------------------------------------------------------------------

    def offset(self, line: int, column: int) -> int:
        """Characters before a line (from 1) and a column in bytes (from 0)."""
        start = self._starts[line - 1]
        return start + characters(self.text[start : self._starts[line]], column)

    def line(self, number: int) -> str | None:
        """The text of a line, without its indentation; None if there is no such line."""
        return (
            self.text[self._starts[number - 1] : self._starts[number]].strip()
            if number < len(self._starts)
            else None
        )

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """First character of a node, and the one after its last."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)

    def source(self, node: ast.expr | ast.stmt) -> str:
        """A node as it was typed."""
        start, end = self.span(node)
        return self.text[start:end]

    def call_at(self, place: Location) -> ast.Call | None:
        """The call with exactly this extent."""
        if place.column is None or place.end_line is None or place.end_column is None:
            return None
        start = self._starts[place.line - 1] + place.column - 1
        end = self._starts[place.end_line - 1] + place.end_column - 1
        calls = (node for node in ast.walk(self.tree) if isinstance(node, ast.Call))
        return next((call for call in calls if self.span(call) == (start, end)), None)

    def parents(self, node: ast.AST) -> Iterator[ast.AST]:
        """What holds a node, innermost first."""
        while (parent := self._parents.get(node)) is not None:
            yield parent
            node = parent

    def statement(self, node: ast.AST) -> ast.stmt | None:
        """The statement that evaluates a node once, always, whenever it runs itself; None if there is none.

        Something may be put in front of it. So it must begin its line, and not be an ``elif`` or a ``while``.
        """
        inside: ast.AST = node
        for parent in self.parents(node):
            if isinstance(parent, _CONDITIONAL):
                return None
            if isinstance(parent, ast.stmt):
                start, _ = self.span(parent)
                line = self.text[self._starts[parent.lineno - 1] : start]
                first = isinstance(parent, ast.With | ast.AsyncWith) and inside is not parent.items[0]
                compound = isinstance(
                    parent, ast.While | ast.Try | ast.Match | ast.ClassDef | ast.FunctionDef
                )
                if line.strip() or compound or first or self.text.startswith("elif", start):
                    return None
                return parent
            inside = parent
        return None

    def names_around(self, node: ast.AST) -> frozenset[str]:
        """Every name in the function, or the module, that holds a node: taken, for a new variable."""
        functions = (p for p in self.parents(node) if isinstance(p, ast.FunctionDef | ast.AsyncFunctionDef))
        scope: ast.AST = next(functions, self.tree)
        return frozenset(
            part.id if isinstance(part, ast.Name) else part.arg
            for part in ast.walk(scope)
            if isinstance(part, ast.Name | ast.arg)
        )

    def may_be_none(self, name: str, node: ast.AST) -> bool:
        """Whether a name may hold None by what is written in the function, or module, around a node.

        None is assigned to it, is its default or a part of its annotation, or it comes of a ``get``.
        """
        functions = (p for p in self.parents(node) if isinstance(p, ast.FunctionDef | ast.AsyncFunctionDef))
        scope: ast.AST = next(functions, self.tree)
        values: list[ast.AST] = []
        for part in ast.walk(scope):
            match part:
                case ast.Assign(targets, value) if any(_binds(one, name) for one in targets):
                    values.append(value)
                case ast.AnnAssign(target, _, ast.expr() as value) if _binds(target, name):
                    values.append(value)
                case ast.arguments():
                    values += [default for own, default in defaults(part).items() if own == name]
                case ast.arg(arg, ast.expr() as annotation) if arg == name:
                    values.append(annotation)
        return any(_is_none(part) for value in values for part in ast.walk(value))

    def begins_line(self, offset: int) -> bool:
        """Whether nothing but its indentation stands before a character in its line."""
        return not self.text[:offset][self.text.rfind("\n", 0, offset) + 1 :].strip()

    def indent_of(self, offset: int) -> str:
        """The indentation of the line that a character begins."""
        return self.text[self.text.rfind("\n", 0, offset) + 1 : offset]

    # -- changes ---------------------------------------------------------------------------------

    def before(self, statement: ast.stmt, lines: list[str]) -> Edit:
        """Lines in front of a statement, indented as it is."""
        start, _ = self.span(statement)
        indent = self.text[self._starts[statement.lineno - 1] : start]
        return Edit(start, start, "".join(f"{line}\n{indent}" for line in lines), self.path)

    def replace(self, node: ast.expr | ast.stmt, text: str) -> Edit:
        """Another text in the place of a node."""
        return Edit(*self.span(node), text, self.path)

    def after(self, node: ast.expr | ast.stmt, text: str) -> Edit:
        """A text right behind a node."""
        _, end = self.span(node)
        return Edit(end, end, text, self.path)

    def keyword(self, call: ast.Call, text: str) -> Edit:
        """One more keyword argument, the last."""
        _, end = self.span(call)
        parts = [*call.args, *(keyword.value for keyword in call.keywords)]
        if not parts:
            return Edit(end - 1, end - 1, text, self.path)
        last = max(self.span(part)[1] for part in parts)
        # Behind the last argument, so that a trailing comma stays; behind its own brackets, if it has any.
        at = end - 1 if ")" in self.text[last : end - 1] else last
        return Edit(at, at, f", {text}", self.path)

    def torch_import(self) -> tuple[Edit, ...]:
        """What makes the name ``torch`` known in the file; nothing where it is."""
        for node in self.tree.body:
            if isinstance(node, ast.Import) and any(
                (alias.asname or alias.name.partition(".")[0]) == "torch" for alias in node.names
            ):
                return ()
        return (self.at_top("import torch"),)

    def at_top(self, line: str) -> Edit:
        """A line behind the imports that the file begins with."""
        last: ast.stmt | None = None
        for node in self.tree.body:
            docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if not docstring and not isinstance(node, ast.Import | ast.ImportFrom):
                break
            last = node
        if last is None:
            # Not at the very top: a first line may be for the shell, and say how the file is encoded.
            start = self._starts[min(map(_first_line, self.tree.body[:1]), default=1) - 1]
            return Edit(start, start, f"{line}\n", self.path)
        gap = "\n" if isinstance(last, ast.Import | ast.ImportFrom) and line.startswith("import") else "\n\n"
        _, end = self.span(last)
        behind, _, _ = self.text[end:].partition("\n")
        if not behind.strip() or behind.lstrip().startswith("#"):  # a comment stays with what it is about
            end += len(behind)
        return Edit(end, end, gap + line, self.path)


def _binds(target: ast.expr, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(target))


def _is_none(node: ast.AST) -> bool:
    match node:
        case ast.Constant(None) | ast.Name("Optional") | ast.Attribute(attr="Optional"):
            return True
        case ast.Call(ast.Attribute(attr="get" | "pop")):
            return True
    return False


def _first_line(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


class Files:
    """The files of one session by real path, each parsed once; new ones are read into ``sources``."""

    def __init__(self, sources: dict[str, Source] | None = None) -> None:
        self.sources = {} if sources is None else sources
        self._files: dict[str, File | None] = {}

    def open(self, path: str | None) -> File | None:
        """A file, or None where it is not Python source that can be read."""
        if path is None:
            return None
        path = os.path.realpath(path)
        if path not in self._files:
            try:
                if path not in self.sources:
                    self.sources[path] = read(path)
                self._files[path] = File(path, self.sources[path])
            except (OSError, SyntaxError, ValueError):
                self._files[path] = None
        return self._files[path]
