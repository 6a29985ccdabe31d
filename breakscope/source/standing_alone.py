"""The part of a module that some of its names need: what stands alone, for a reproducer."""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Callable, Iterable, Iterator

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_SETTINGS = ("torch._dynamo.config.", "torch._inductor.config.", "torch._functorch.config.")
_IMPLICIT = frozenset(dir(builtins)) | {"__name__", "__file__", "__doc__"}


class NotAloneError(Exception):
    """What a part of a module needs and cannot have by itself; the text is the end of a sentence."""


class Standing:
    """The top statements of a module.

    Args:
        lines: the module's text, line by line.
        is_own: whether the name of a module is one of the project's, which others do not have.
    """

    def __init__(self, lines: Iterable[str], is_own: Callable[[str], bool]) -> None:
        self._lines = list(lines)
        self._is_own = is_own
        try:
            self.tree = ast.parse("\n".join(self._lines))
        except (SyntaxError, ValueError, RecursionError):
            raise NotAloneError("its file is not the Python that breakscope runs on") from None
        self._binding: dict[str, list[ast.stmt]] = {}
        for statement in self.tree.body:
            for name in _bound(statement):
                self._binding.setdefault(name, []).append(statement)

    def text(self, names: Iterable[str]) -> str:
        """The statements that the names need, in the module's order, without ``torch.compile`` as decorator.

        Settings of torch at the top of the module are among them.

        Raises:
            NotAloneError: one of the names cannot be had without the rest of the program.
        """
        chosen = {id(statement) for statement in self.tree.body if _is_setting(statement)}
        waiting, seen = list(names), set(_IMPLICIT)
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            for statement in self._statements_of(name):
                if id(statement) not in chosen:
                    chosen.add(id(statement))
                    waiting += self._needs(statement)
        kept = [statement for statement in self.tree.body if id(statement) in chosen]
        return "".join(
            ("\n\n" if isinstance(statement, _DEFINITIONS) else "") + self._source(statement) + "\n"
            for statement in kept
        ).lstrip("\n")

    def calls_of(self, name: str) -> Iterator[str]:
        """Every call of a name in the module, as an expression."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
                yield ast.unparse(node)

    def defined_at(self, name: str, line: int | None) -> bool:
        """Whether a function or class of that name is defined at the top, at that line if one is given."""
        return any(
            isinstance(statement, _DEFINITIONS)
            and (line is None or _first(statement) <= line <= _last(statement))
            for statement in self._binding.get(name, ())
        )

    def _statements_of(self, name: str) -> list[ast.stmt]:
        found = self._binding.get(name, [])
        if not found:
            stars: list[ast.stmt] = [
                one for one in self.tree.body if isinstance(one, ast.ImportFrom) and one.names[0].name == "*"
            ]
            if not stars:
                raise NotAloneError(f"{name} gets its value inside of a function")
            found = stars
        for statement in found:
            if isinstance(statement, ast.For | ast.While | ast.With | ast.AsyncFor | ast.AsyncWith):
                raise NotAloneError(f"{name} gets its value while the script runs")
            own = next(filter(self._is_own, _modules(statement)), None)
            if own is not None:
                raise NotAloneError(f"{name} comes from {own}, another file of the project")
        return found

    def _needs(self, statement: ast.stmt) -> set[str]:
        return global_names(self._source(statement))

    def _source(self, statement: ast.stmt) -> str:
        left_out = {
            line
            for node in ast.walk(statement)
            if isinstance(node, _DEFINITIONS)
            for decorator in node.decorator_list
            if "compile" in ast.unparse(decorator).partition("(")[0]
            for line in range(decorator.lineno, (decorator.end_lineno or decorator.lineno) + 1)
        }
        numbers = range(_first(statement), _last(statement) + 1)
        return "\n".join(self._lines[number - 1] for number in numbers if number not in left_out)


def global_names(source: str) -> set[str]:
    """The names that a piece of a module reads and does not keep to a function of its own."""
    top = symtable.symtable(source, "<part>", "exec")
    found = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_referenced()}
    tables = list(top.get_children())
    while tables:
        table = tables.pop()
        tables += table.get_children()
        found |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global()}
    return found


def _first(statement: ast.stmt) -> int:
    decorators = statement.decorator_list if isinstance(statement, _DEFINITIONS) else []
    return min([statement.lineno, *(one.lineno for one in decorators)])


def _last(statement: ast.stmt) -> int:
    return statement.end_lineno or statement.lineno


def _bound(statement: ast.stmt) -> set[str]:
    """Names to which a top statement gives a value."""
    if isinstance(statement, _DEFINITIONS):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
    if isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test):
        return set()  # not so where a module is imported
    found = {
        node.id
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    for part in ast.iter_child_nodes(statement):
        if isinstance(part, ast.stmt):
            found |= _bound(part)
    return found


def _modules(statement: ast.stmt) -> Iterator[str]:
    """The modules that a statement imports, itself or somewhere inside; "." for those beside it."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


def _is_setting(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and ast.unparse(statement).startswith(_SETTINGS)
