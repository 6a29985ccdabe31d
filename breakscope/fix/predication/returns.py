"""Branches that return: every path up to the end of the block runs, and the last ``return`` picks."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from breakscope.fix.patch import Rewrite
from breakscope.fix.predication.condition import Condition, split
from breakscope.fix.predication.values import Value
from breakscope.fix.predication.where import Branches
from breakscope.fix.rule import Site, Unsafe
from breakscope.source.dominance import block_of
from breakscope.source.names import names_in, reads_outside

_Renames = dict[str, str]


@dataclass(frozen=True, slots=True)
class End:
    """What a path comes to: lines to run first, and the parts of what it returns."""

    lines: tuple[str, ...]
    texts: tuple[str, ...]
    values: tuple[Value, ...]
    is_tuple: bool


class Returns:
    """Folds one ``if`` with returns, and the statements after it, into one ``return``."""

    def __init__(self, site: Site, top: ast.If) -> None:
        self.site, self.top = site, top
        self.branches = Branches(site, top)
        block, index = block_of(site, top)
        self.rest = block[index + 1 :]
        self.is_elif = site.text(top).startswith("elif")

    def rewrite(self) -> Rewrite:
        """The rewrite.

        Raises:
            Unsafe: the paths must stay apart.
        """
        condition = split(self.site, self.branches.evaluate, self.top.test)
        column = self.top.col_offset + (self.branches.layout.unit if self.is_elif or condition.static else 0)
        only_return = len(self.rest) == 1 and isinstance(self.rest[0], ast.Return) and not self.top.orelse
        if condition.static and not only_return:
            raise Unsafe("Python decides a part of the condition, and more than a `return` follows")
        end = self._if(self.top, condition, self.rest, column, {})
        lines = [*end.lines, f"return {', '.join(end.texts)}"]
        text = self.branches.assembled(self.top, condition, lines)
        if condition.static or self.is_elif or not self.rest or _always_returns([self.top]):
            return self.branches.replaced(text)
        last = self.rest[-1]
        if isinstance(last, ast.Return):
            text += self.branches.layout.trailing(last)
        return self.branches.replaced(text, last)

    def _if(
        self, node: ast.If, condition: Condition, rest: list[ast.stmt], column: int, renames: _Renames
    ) -> End:
        names, mask = dict(self.branches.evaluate.names), self.branches.layout.unique("condition")
        if not _always_returns(node.body):
            raise Unsafe("a branch returns in some cases only")
        then = self._path(node.body, column, renames, aside=True)
        self.branches.evaluate.names = names
        other = self._path([*node.orelse, *rest], column, renames, aside=False)
        return self._combine(condition, mask, then, other, column)

    def _path(self, block: list[ast.stmt], column: int, renames: _Renames, *, aside: bool) -> End:
        """Lines and result of a path.

        Args:
            aside: the path's names must not reach the other paths, which run after it.
        """
        renames = dict(renames)
        lines: list[str] = []
        for index, statement in enumerate(block):
            lines += self.branches.layout.comments(block, index) if index or aside else []
            if isinstance(statement, ast.Return):
                return self._return(statement, lines, renames)
            if isinstance(statement, ast.If):
                if not any(isinstance(node, ast.Return) for node in ast.walk(statement)):
                    raise Unsafe("another branch follows before the `return`")
                condition = split(self.site, self.branches.evaluate, statement.test, ran=False)
                if renames.keys() & names_in([statement.test]):
                    raise Unsafe("a branch inside the branch depends on what the branch assigned")
                lines += self.branches.layout.header_comments(statement)
                end = self._if(statement, condition, block[index + 1 :], column, renames)
                return End((*lines, *end.lines), end.texts, end.values, end.is_tuple)
            lines += self._simple(statement, renames, aside=aside)
        raise Unsafe("one of the paths ends without a `return`")

    def _simple(self, statement: ast.stmt, renames: _Renames, *, aside: bool) -> list[str]:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            return self.branches.layout.lines(statement)
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            raise Unsafe("what stands between the branch and the `return` is more than an assignment")
        target = statement.targets[0]
        if not isinstance(target, ast.Name):
            raise Unsafe(f"a path stores into `{self.site.text(target)}`")
        value = self.branches.evaluate(statement.value)
        changes = _renamed([statement.value], renames)
        if aside and self._read_elsewhere(target.id, statement):
            renames[target.id] = self.branches.layout.unique(f"{target.id}_then")
            changes.append((target, renames[target.id]))
        elif target.id in renames:
            changes.append((target, renames[target.id]))
        self.branches.evaluate.names[target.id] = value
        return self.branches.layout.lines(statement, *changes)

    def _read_elsewhere(self, name: str, statement: ast.stmt) -> bool:
        block, _ = block_of(self.site, statement)
        return bool(reads_outside(self.site, block, name))

    def _return(self, statement: ast.Return, lines: list[str], renames: _Renames) -> End:
        if statement.value is None:
            raise Unsafe("one of the paths returns nothing")
        is_tuple = isinstance(statement.value, ast.Tuple)
        parts = statement.value.elts if isinstance(statement.value, ast.Tuple) else [statement.value]
        if any(isinstance(part, ast.Starred) for part in parts):
            raise Unsafe("a path returns an unpacked value")
        values = tuple(self.branches.evaluate(part) for part in parts)
        texts = tuple(
            self.branches.layout.value(part, statement.col_offset, *_renamed([part], renames))
            for part in parts
        )
        handed_on = [text for text, value in zip(texts, values, strict=True) if not value.fresh]
        if len(set(handed_on)) < len(handed_on):
            raise Unsafe("a path returns one tensor twice")
        return End(tuple(lines), texts, values, is_tuple)

    def _combine(self, condition: Condition, mask: str, then: End, other: End, column: int) -> End:
        if then.is_tuple != other.is_tuple or len(then.texts) != len(other.texts):
            raise Unsafe("the paths return different kinds of values")
        layout = self.branches.layout
        differing = [one != two for one, two in zip(then.texts, other.texts, strict=True)]
        if not any(differing) and not (then.lines or other.lines):
            raise Unsafe("all paths return the same")
        name_it = bool(then.lines or other.lines) or sum(differing) > 1
        lines = [f"{mask} = {condition.text}"] if name_it else []
        mask = mask if name_it else condition.text
        lines += then.lines
        early = list(then.texts)
        if other.lines:  # evaluated before what the other path assigns
            early = [layout.unique("early") for _ in then.texts]
            lines += [f"{name} = {text}" for name, text in zip(early, then.texts, strict=True)]
        lines += other.lines
        texts: list[str] = []
        values: list[Value] = []
        for index, (new, old) in enumerate(zip(then.values, other.values, strict=True)):
            if then.texts[index] == other.texts[index] and not (then.lines or other.lines):
                texts.append(other.texts[index])
                values.append(old)
                continue
            values.append(self.branches.choose(new, old))
            texts.append(self.branches.where(mask, early[index], other.texts[index], column + len("return ")))
        return End(tuple(lines), tuple(texts), tuple(values), then.is_tuple)


def _renamed(nodes: list[ast.expr], renames: _Renames) -> list[tuple[ast.expr, str]]:
    return [
        (one, renames[one.id])
        for node in nodes
        for one in ast.walk(node)
        if isinstance(one, ast.Name) and one.id in renames
    ]


def _always_returns(block: list[ast.stmt]) -> bool:
    last = block[-1] if block else None
    if isinstance(last, ast.Return):
        return True
    return isinstance(last, ast.If) and _always_returns(last.body) and _always_returns(last.orelse)
