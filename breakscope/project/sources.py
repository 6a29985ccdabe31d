"""Reading the user's source files: lines, the function around a line, columns."""

from __future__ import annotations

import ast
import re
import sys
import tokenize
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from itertools import takewhile
from pathlib import Path, PurePath

from breakscope.source.span import characters
from breakscope.source.walking import walk

# (line, byte column, end line, end byte column): lines from 1, columns from 0, as in Python's ast.
Position = tuple[int, int, int, int]


_STRING_OR_COMMENT = re.compile(
    r'''"""(?:\\.|[^\\])*?"""|\'{3}(?:\\.|[^\\])*?\'{3}|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|#.*'''
)


@dataclass(frozen=True, slots=True)
class Span:
    """A function in a file.

    Attributes:
        first: line of its first decorator, or of ``def``; line: that of ``def``; last: its last line.
    """

    qualname: str
    name: str
    first: int
    line: int
    last: int


# (file, a line of the function, its names and their kinds): the first line, or where it is resumed.
Kinds = tuple[str, int, Mapping[str, str]]


class Sources:
    """The files of one report, each read once. A file that cannot be read has no lines.

    Args:
        seen: of which kind the names of functions were when they ran. A function's node has them as
            ``kinds``, with "" for a name that was of several.
    """

    def __init__(self, seen: Sequence[Kinds] = ()) -> None:
        self._seen = seen
        self.lines = cache(self._lines)
        self._spans = cache(self._read_spans)
        self._spans_of = cache(self._read_spans_of)
        # Trees are large, and sites are looked at file by file, with those that they import.
        self._tree = lru_cache(maxsize=8)(self._parse)
        self._imports = cache(self._read_imports)
        self._begins = cache(self._read_begins)
        self._evaluated_first = cache(self._read_evaluated_first)
        self._known = cache(lambda file: _known("\n".join(self.lines(file))))

    def _lines(self, file: str) -> tuple[str, ...]:
        try:
            # tokenize.open honours the coding cookie, as Python did when it ran the file.
            with tokenize.open(file) as stream:
                return tuple(stream.read().split("\n"))
        except (OSError, SyntaxError, UnicodeDecodeError, ValueError):
            return ()

    def line(self, file: str, number: int) -> str | None:
        """One line as it stands in the file; None if it cannot be read."""
        lines = self.lines(file)
        return lines[number - 1] if 0 < number <= len(lines) else None

    def mentions(self, file: str, pattern: re.Pattern[str], within: Span | None = None) -> bool:
        """Whether a line holds the pattern, comments left out; False where the file cannot be read."""
        lines = self.lines(file)
        lines = lines if within is None else lines[within.first - 1 : within.last]
        return any(pattern.search(without_comment(line)) for line in lines)

    def column(self, file: str, number: int, byte_offset: int) -> int:
        """Python counts columns in UTF-8 bytes from 0; people count characters from 1."""
        line = self.line(file, number)
        if line is None:
            return byte_offset + 1
        return characters(line, byte_offset) + 1

    def underlined(
        self, file: str, number: int, text: str, carets: tuple[int, int]
    ) -> Position | tuple[int, int, None, None] | None:
        """The position that carets show under the text of a line; None where it cannot be told.

        Args:
            text: the line without its indentation; it must be what the file holds now.
            carets: first character and the one after the last, counted from 0 in ``text``.

        Returns:
            A position without an end where the carets go on to the end of the line and nothing ends there:
            Python cuts what goes on to another line, and Dynamo gives some instructions such an extent.
        """
        line = self.line(file, number)
        if line is None or line.strip() != text:
            return None
        indent = len(line) - len(line.lstrip())
        first, last = (len(line[: indent + offset].encode()) for offset in carets)
        if carets[1] < len(text):
            return number, first, number, last
        begin = self._begin_at(file, (number, first))
        if (number, last, True) in begin:
            return number, first, number, last
        if carets[0]:
            return number, first, None, None
        for end_line, end_column, _ in begin:
            extent = number, first, end_line or number, end_column or last
            part = self.narrow(file, extent)
            if part != extent:
                return part
        return None

    def function(self, file: str, number: int, name: str) -> Span | None:
        """The innermost function called ``name`` that contains a line."""
        around = [s for s in self._spans_of(file).get(name, ()) if s.first <= number <= s.last]
        return min(around, key=lambda s: s.last - s.first, default=None)

    def function_around(self, file: str, number: int) -> Span | None:
        """The innermost function that contains a line, whatever its name."""
        around = [span for span in self._spans(file) if span.first <= number <= span.last]
        return min(around, key=lambda span: span.last - span.first, default=None)

    def loop_around(self, file: str, number: int) -> int | None:
        """Where the innermost loop, or comprehension, begins that runs a line; None where there is none."""
        tree = self._tree(file)
        loops = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
        span = self.function_around(file, number)
        around = [
            node
            for node in walk(tree or ast.Module([], []))
            if isinstance(node, loops)
            and node.lineno <= number <= (node.end_lineno or node.lineno)
            # A function that a loop only defines does not run in it.
            and (span is None or node.lineno >= span.line)
        ]
        inner = min(around, key=lambda node: (node.end_lineno or 0) - node.lineno, default=None)
        return None if inner is None else inner.lineno

    def narrow(self, file: str, position: Position) -> Position:
        """The part of a whole statement that is evaluated where it begins.

        Some Pythons give a jump the extent of its ``if``, body included; what broke is its condition.
        """
        return self._evaluated_first(file).get(position, position)

    def _read_evaluated_first(self, file: str) -> Mapping[Position, Position]:
        """The extent of each statement with a body -> that of what is evaluated where it begins."""
        known = self._known(file)
        if known.evaluated_first is None:
            known.evaluated_first = _evaluated_first_in(self._tree(file) or ast.Module([], []))
        return known.evaluated_first

    def _begin_at(self, file: str, place: tuple[int, int]) -> Sequence[_End]:
        """Where the expressions and statements end that begin at a place."""
        known = self._known(file).begin_at
        if place not in known:
            known[place] = [
                (node.end_lineno, node.end_col_offset, isinstance(node, ast.expr))
                for node in walk(self._tree(file) or ast.Module([], []))
                if isinstance(node, ast.expr | ast.stmt) and (node.lineno, node.col_offset) == place
            ]
        return known[place]

    def around_line(self, file: str, number: int) -> list[ast.AST]:
        """The nodes that contain the place where a line begins, outermost first."""
        text = self.line(file, number) or ""
        begin = len(text) - len(text.lstrip())
        return self.around(file, (number, begin, number, begin))

    def around_function(self, file: str, number: int) -> list[ast.AST]:
        """The nodes around the innermost function that holds a line, itself last; else none."""
        span = self.function_around(file, number)
        if span is None:
            return []
        text = self.line(file, span.line) or ""
        around = self.around(file, (span.line, len(text) - len(text.lstrip()), span.last, 0))
        return around if around and isinstance(around[-1], ast.FunctionDef) else []

    def around(self, file: str, position: Position) -> list[ast.AST]:
        """The nodes that contain a place, outermost first; of an expression this holds the whole of it."""
        tree = self._tree(file)
        if tree is None:
            return []
        line, column, end_line, end_column = position
        found: list[ast.AST] = [tree]
        node: ast.AST | None = tree
        while node is not None:
            node = next(
                (
                    child
                    for child in self._children(file, node, (line, column))
                    if _begins(child) <= (line, column) and (end_line, end_column) <= _ends(child)
                ),
                None,
            )
            found += [] if node is None else [node]
        return found

    def _children(self, file: str, node: ast.AST, place: tuple[int, int]) -> Iterable[ast.AST]:
        """The parts of a node; of a module, which may have thousands, the last that begins before a place."""
        if not isinstance(node, ast.Module):
            return ast.iter_child_nodes(node)
        after = bisect_right(self._begins(file), place)
        return node.body[max(after - 1, 0) : after]

    def _read_begins(self, file: str) -> list[tuple[int, int]]:
        tree = self._tree(file)
        return [] if tree is None else [(one.lineno, one.col_offset) for one in tree.body]

    def in_block(self, file: str, number: int) -> bool:
        """Whether a line is in the body of a loop, a ``try`` or a ``with`` of its own function.

        Dynamo cannot resume in the middle of these.
        """
        tree = self._tree(file)
        if tree is None:
            return False

        def within(body: list[ast.stmt]) -> bool:
            return bool(body) and body[0].lineno <= number <= (body[-1].end_lineno or body[-1].lineno)

        inside = False
        node: ast.AST | None = tree
        while node is not None:
            child = None
            for candidate in self._children(file, node, (number, _FAR)):
                first, last = getattr(candidate, "lineno", None), getattr(candidate, "end_lineno", None)
                if first is not None and first <= number <= (last or first):
                    child = candidate
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                inside = False
            elif isinstance(child, ast.For | ast.AsyncFor | ast.While | ast.Try | ast.With | ast.AsyncWith):
                inside = inside or within(child.body)
            node = child
        return inside

    def _parse(self, file: str) -> ast.Module | None:
        """The tree of a file; it has the file's name, and ``elsewhere`` finds what it imports from others."""
        tree = _parsed("\n".join(self.lines(file)))
        if tree is not None:
            tree.file = PurePath(file).name  # type: ignore[attr-defined]
            tree.path = file  # type: ignore[attr-defined]
            tree.elsewhere = partial(self.imported, file)  # type: ignore[attr-defined]
        known = [(line, names) for of, line, names in self._seen if of == file]
        nodes = walk(tree) if tree is not None and known else ()
        functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
        for line, names in known:
            around = [one for one in functions if _first_line(one) <= line <= (one.end_lineno or line)]
            if around:
                _mark(max(around, key=_first_line), names)
        return tree

    def imported(
        self, file: str, name: str, depth: int = 0
    ) -> tuple[ast.Module, ast.FunctionDef | ast.ClassDef] | None:
        """The function or class of another file that a file has under a name: ``f``, ``utils.f``.

        It is looked for among the files beside this one and above it, and nowhere else: what is installed
        is no code that a person follows.
        """
        *first, last = name.split(".")
        known = self._imports(file)
        for at in range(len(first), -1, -1):
            bound = known.get(".".join([*first, last][: at + 1]))
            rest = [*first, last][at + 1 :]
            if bound is None:
                continue
            level, module = bound
            whole = [*module, *rest]
            found = next(
                (
                    (other, whole[size:])
                    for size in range(len(whole) - 1, -1, -1)
                    if (other := _file_of(file, level, tuple(whole[:size]))) is not None
                ),
                None,
            )
            if found is None or len(found[1]) != 1 or found[0] == file:
                return None
            other, (wanted,) = found
            tree = self._tree(other)
            for node in tree.body if tree is not None else ():
                if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == wanted:
                    assert tree is not None
                    return tree, node
            return self.imported(other, wanted, depth + 1) if depth < _HANDED_ON else None
        return None

    def _read_imports(self, file: str) -> dict[str, tuple[int, tuple[str, ...]]]:
        """The names that a file imports -> how far up, and the dotted name from there."""
        tree = self._tree(file)
        found: dict[str, tuple[int, tuple[str, ...]]] = {}
        for node in tree.body if tree is not None else ():
            match node:
                case ast.Import(names):
                    for one in names:
                        whole = tuple(one.name.split("."))
                        found[one.asname or one.name] = 0, whole
                case ast.ImportFrom(module, names, level):
                    whole = tuple((module or "").split(".")) if module else ()
                    found |= {one.asname or one.name: (level or 0, (*whole, one.name)) for one in names}
        return found

    def _read_spans(self, file: str) -> tuple[Span, ...]:
        return _spans_in("\n".join(self.lines(file)))

    def _read_spans_of(self, file: str) -> dict[str, list[Span]]:
        found: dict[str, list[Span]] = {}
        for span in self._spans(file):
            found.setdefault(span.name, []).append(span)
        return found


_HANDED_ON = 3  # files that import a name from the next one
_ABOVE = 5  # folders in which a package of that name may lie
_NO_PROJECT = ("torch", "numpy", "pandas", "scipy", "transformers", *sys.stdlib_module_names)


@lru_cache(maxsize=1024)
def _file_of(file: str, level: int, module: tuple[str, ...]) -> str | None:
    """The file of a module that a file imports, beside it or above it; None of what lies elsewhere."""
    folders = [*Path(file).parents]
    if not level and (not module or module[0] in _NO_PROJECT):
        return None
    roots = folders[level - 1 : level] if level else folders[:_ABOVE]
    for root in roots:
        for path in (root.joinpath(*module).with_suffix(".py"), root.joinpath(*module, "__init__.py")):
            if (module or path.name == "__init__.py") and path.is_file():
                return str(path)
    return None


def _mark(function: ast.FunctionDef, names: Mapping[str, str]) -> None:
    """Put to a function of which kind its names were; what it has of another break may differ."""
    held: dict[str, str] = getattr(function, "kinds", {})
    for name, kind in names.items():
        before = held.setdefault(name, kind)
        if before != kind:
            held[name] = _both(before, kind)
    function.kinds = held  # type: ignore[attr-defined]


def _both(one: str, other: str) -> str:
    """What a name was that was of two kinds: numpy's number is what breaks, where Python's has come too."""
    if one.split()[:1] == other.split()[:1]:
        return one.partition(" ")[0]
    if {one, other} & {"int", "float"}:
        return next((kind for kind in (one, other) if kind.startswith("numpy")), "")
    return ""


def _first_line(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Where a function's code begins: at its first decorator."""
    return min([node.lineno, *(one.lineno for one in node.decorator_list)])


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


# End line and column, and whether it is an expression.
_End = tuple[int | None, int | None, bool]


@dataclass(slots=True)
class _Known:
    """What was asked of a text, without its tree, which is large.

    Attributes:
        begin_at: where nodes end that begin at a place.
    """

    evaluated_first: Mapping[Position, Position] | None = None
    begin_at: dict[tuple[int, int], Sequence[_End]] = field(default_factory=dict)


# Kept from one report to the next: in a test, every call path begins with the same dozen files of pytest.
@lru_cache(maxsize=64)
def _known(_text: str) -> _Known:
    return _Known()


def _evaluated_first_in(tree: ast.Module) -> dict[Position, Position]:
    found: dict[Position, Position] = {}
    for node in walk(tree):
        if isinstance(node, ast.If | ast.While):
            part = node.test
        elif isinstance(node, ast.For):
            part = node.iter
        elif isinstance(node, ast.With):
            part = node.items[0].context_expr
        elif isinstance(node, ast.BoolOp):
            found.update(_jumps_of(node))
            continue
        else:
            continue
        found.setdefault(_extent(node), _extent(part))
    return found


@lru_cache(maxsize=64)  # as above
def _spans_in(text: str) -> tuple[Span, ...]:
    tree = _parsed(text)
    if tree is None:
        return ()
    spans: list[Span] = []

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                first = _first_line(child)
                qualname = prefix + child.name
                last = child.end_lineno or child.lineno
                spans.append(Span(qualname, child.name, first, child.lineno, last))
                visit(child, f"{qualname}.<locals>.")
            elif isinstance(child, ast.ClassDef):
                visit(child, f"{prefix}{child.name}.")
            elif isinstance(child, ast.Lambda):
                last = child.end_lineno or child.lineno
                spans.append(Span(f"{prefix}<lambda>", "<lambda>", child.lineno, child.lineno, last))
                visit(child, prefix)
            else:
                visit(child, prefix)

    visit(tree, "")
    return tuple(spans)


def _jumps_of(test: ast.BoolOp) -> dict[Position, Position]:
    """The extent of ``x is None`` -> that of the operand after it whose value is asked.

    Python 3.11 gives the jump after an operand the extent of the comparison before it, and to ask whether an
    object is None, a certain text or of some length never needs a tensor's value.
    """
    found = {}
    for at, value in enumerate(test.values):
        match value:
            case (
                ast.Compare(ops=[ast.Is() | ast.IsNot()])
                | ast.Compare(comparators=[ast.Constant(str())])
                | ast.Compare(left=ast.Call(ast.Name("len")))
            ):
                after = takewhile(lambda one: not isinstance(one, ast.Compare), test.values[at + 1 :])
                asked = [
                    one for one in after if isinstance(one, ast.Call | ast.Subscript) and not _is_plain(one)
                ]
                if len(asked) == 1:
                    found[_extent(value)] = _extent(asked[0])
    return found


def _is_plain(value: ast.expr) -> bool:
    """Whether it asks what an object is, and no value: ``isinstance(x, tuple)``."""
    return isinstance(value, ast.Call) and getattr(value.func, "id", None) in ("isinstance", "len", "hasattr")


def _extent(node: ast.stmt | ast.expr) -> Position:
    line, column = node.lineno, node.col_offset
    return line, column, node.end_lineno or line, node.end_col_offset or column


_FAR = 1 << 30
_NOWHERE = (_FAR, 0)


def _begins(node: ast.AST) -> tuple[int, int]:
    line = getattr(node, "lineno", None)
    if line is None:
        # A node without a place (arguments, a comprehension's for) is where its parts are.
        return min(map(_begins, ast.iter_child_nodes(node)), default=_NOWHERE)
    return line, node.col_offset  # type: ignore[attr-defined]


def _ends(node: ast.AST) -> tuple[int, int]:
    line = getattr(node, "end_lineno", None)
    if line is None:
        return max(map(_ends, ast.iter_child_nodes(node)), default=(0, 0))
    return line, node.end_col_offset  # type: ignore[attr-defined]


def without_comment(line: str) -> str:
    """A line of source without the comment at its end.

    Not by ``tokenize``: the line may be a part of a statement, on which Pythons differ.
    """
    comment = next((found for found in _STRING_OR_COMMENT.finditer(line) if found[0][0] == "#"), None)
    return line[: comment.start()] if comment else line
