"""A module's text and its syntax tree; what is asked of the whole tree is found once and kept."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate

from breakscope.source.span import Span

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


class Module:
    r"""A parsed module.

    Attributes:
        source: its text, with ``\n`` line ends. lines: the text, line by line. starts: where each begins.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.tree = ast.parse(source)
        self.lines = source.split("\n")
        self.starts = (0, *accumulate(len(line) + 1 for line in self.lines))

    @cached_property
    def parents(self) -> Mapping[ast.AST, ast.AST]:
        """The node around each node."""
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    @cached_property
    def bound(self) -> frozenset[str]:
        """Names that something other than an import gives a value to, anywhere."""
        found: set[str] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                found.add(node.id)
            elif isinstance(node, ast.arg):
                found.add(node.arg)
            elif isinstance(node, FunctionNode | ast.ClassDef):
                found.add(node.name)
        return frozenset(found)

    @cached_property
    def imported(self) -> frozenset[str]:
        """Names that an import gives a value to, anywhere."""
        aliases = (node for node in ast.walk(self.tree) if isinstance(node, ast.alias))
        return frozenset(alias.asname or alias.name for alias in aliases)

    @cached_property
    def names(self) -> frozenset[str]:
        """Every name that is bound or read anywhere, but for those that are only imported."""
        return self.bound | {node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name)}

    @cached_property
    def imports(self) -> Mapping[str, str]:
        """Imported names that are not bound to anything else: ``F`` -> ``torch.nn.functional``."""
        found: dict[str, str] = {}
        clashing = set(self.bound)
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and (node.level or not node.module):
                clashing.update(alias.asname or alias.name for alias in node.names)
                continue
            if not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            for alias in node.names:
                if isinstance(node, ast.ImportFrom):
                    bound, target = alias.asname or alias.name, f"{node.module}.{alias.name}"
                else:
                    bound = alias.asname or alias.name.partition(".")[0]
                    target = alias.name if alias.asname else bound
                if found.setdefault(bound, target) != target:
                    clashing.add(bound)
        return {bound: target for bound, target in found.items() if bound not in clashing}


@lru_cache(maxsize=32)
def parsed(source: str) -> Module:
    """The module of a text, each text parsed once.

    Raises:
        SyntaxError: it does not parse.
    """
    return Module(source)


@dataclass(frozen=True, slots=True)
class Scope:
    """One function of a module: what names and places are asked about."""

    module: Module
    function: FunctionNode

    @property
    def source(self) -> str:
        """Text of the module."""
        return self.module.source

    @property
    def tree(self) -> ast.Module:
        """The module, parsed."""
        return self.module.tree

    @property
    def parents(self) -> Mapping[ast.AST, ast.AST]:
        """The node around each node of the module."""
        return self.module.parents

    @property
    def lines(self) -> list[str]:
        """The module's text, line by line."""
        return self.module.lines

    @property
    def starts(self) -> tuple[int, ...]:
        """Where each line begins in the text."""
        return self.module.starts

    def span(self, node: ast.expr | ast.stmt) -> Span:
        """Where a node stands."""
        return Span.of(node, self.lines)

    def offsets(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Where a node begins and ends in ``source``, in characters."""
        span = self.span(node)
        return (
            self.starts[span.line - 1] + span.column - 1,
            self.starts[span.end_line - 1] + span.end_column - 1,
        )

    def text(self, node: ast.expr | ast.stmt) -> str:
        """The source of a node, as written, without parentheses around it."""
        start, end = self.offsets(node)
        return self.source[start:end]
