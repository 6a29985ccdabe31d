"""What names in one file stand for: imports, its own functions and classes, its loggers."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

from breakscope.lint import known
from breakscope.lint.kinds import Kind, of_annotation
from breakscope.source.names import name_parts

# The usual short names, in a file that gets them by `from x import *` or takes them as given.
_USUAL = {"torch": "torch", "np": "numpy", "numpy": "numpy"}


@dataclass(slots=True)
class ClassNames:
    """What methods of a class need to know of it.

    Attributes:
        kinds: attribute -> its kind, from assignments in the constructor.
        made_by: attribute -> name of the class or function whose result it holds.
        numbers: attributes that begin as a plain number.
        returns: method -> the kind that its annotation promises.
    """

    name: str
    bases: tuple[str, ...] = ()
    kinds: dict[str, Kind] = field(default_factory=dict)
    made_by: dict[str, str] = field(default_factory=dict)
    numbers: set[str] = field(default_factory=set)
    returns: dict[str, Kind] = field(default_factory=dict)
    methods: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = field(default_factory=dict)


@dataclass(slots=True)
class Names:
    """What the names of one file stand for.

    Attributes:
        imports: name -> dotted name; relative ones begin with dots.
        functions: module-level function -> the kind that it returns.
        kinds: module-level variable -> its kind.
        made_by: module-level variable -> name of the class or function whose result it holds.
        loggers: variables that hold a logger.
    """

    imports: dict[str, str] = field(default_factory=dict)
    functions: dict[str, Kind] = field(default_factory=dict)
    classes: dict[str, ClassNames] = field(default_factory=dict)
    kinds: dict[str, Kind] = field(default_factory=dict)
    made_by: dict[str, str] = field(default_factory=dict)
    loggers: set[str] = field(default_factory=set)
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def add_import(self, node: ast.Import | ast.ImportFrom) -> None:
        """Take in one import statement."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    self.imports[alias.asname] = alias.name
                else:
                    top = alias.name.partition(".")[0]
                    self.imports[top] = top
            return
        origin = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name != "*":
                dot = "" if not origin or origin.endswith(".") else "."
                self.imports[alias.asname or alias.name] = f"{origin}{dot}{alias.name}"

    def dotted(self, node: ast.expr) -> str | None:
        """``torch.nn.functional.pad`` for ``F.pad``: the full name; None for what is no name.

        A name that is not imported here stands for itself.
        """
        parts = name_parts(node)
        if not parts:
            return None
        first = parts[0]
        usual = first if first in self.functions else _USUAL.get(first, first)
        return ".".join([self.imports.get(first) or usual, *parts[1:]])

    def is_logger(self, node: ast.expr) -> bool:
        """Whether an expression is a logger, by what it was assigned or by its name."""
        if isinstance(node, ast.Name):
            return node.id in self.loggers or node.id in known.LOGGER_NAMES or self.dotted(node) == "logging"
        return isinstance(node, ast.Attribute) and node.attr in ("logger", "_logger")

    def add_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Take in a function of the module."""
        self.functions[node.name] = of_annotation(node.returns)

    def inherited(self, owner: ClassNames, method: str) -> Iterable[ClassNames]:
        """Classes of this file in which a method of ``owner`` may be, nearest first."""
        seen: set[str] = set()
        queue = [owner]
        while queue:
            one = queue.pop(0)
            if one.name in seen:
                continue
            seen.add(one.name)
            if method in one.methods:
                yield one
            queue += [self.classes[base] for base in one.bases if base in self.classes]
