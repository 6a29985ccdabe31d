"""The calls of compiled functions in the user's source, and which expression became which argument."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass

from breakscope.fix.patch import Edit, Refusal
from breakscope.fix.remedies.source import File, Files
from breakscope.fix.remedies.subject import Subject
from breakscope.report.model import Compiled, Signature

_ARGUMENT = re.compile(r"(?:args\[(?P<index>\d+)\]|kwargs\['(?P<name>\w+)'\])(?P<rest>.*)$")


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a call, as it was typed.

    Attributes:
        node: the expression; for ``**inputs``, that of the mapping.
        rest: which part of it is meant: ``['mask']``; empty for all of it.
    """

    node: ast.expr
    rest: str


@dataclass(frozen=True, slots=True)
class Site:
    """One place in source that calls something compiled.

    Attributes:
        statement: what evaluates the call, where something may be put in front of it.
        signatures: of the compiles that this call caused.
    """

    file: File
    call: ast.Call
    statement: ast.stmt | None
    signatures: tuple[Signature, ...]

    def argument(self, path: str) -> Argument | None:
        """The expression for ``args[0]`` or ``kwargs['mask']['text']``; None if the call does not show it."""
        found = _ARGUMENT.match(path)
        if found is None:
            return None
        if found["index"] is not None:
            index = int(found["index"]) - self._shift()
            if index < 0 or index >= len(self.call.args):
                return None
            if any(isinstance(node, ast.Starred) for node in self.call.args[: index + 1]):
                return None
            return Argument(self.call.args[index], found["rest"])
        for keyword in self.call.keywords:
            if keyword.arg == found["name"]:
                return Argument(keyword.value, found["rest"])
        mappings = [keyword.value for keyword in self.call.keywords if keyword.arg is None]
        if len(mappings) == 1:
            return Argument(mappings[0], f"[{found['name']!r}]{found['rest']}")
        return None

    def _shift(self) -> int:
        # A method that was compiled in its class takes self as its first argument; the call does not show it.
        signature = self.signatures[0]
        method = not signature.module and signature.parameters[:1] in (("self",), ("cls",))
        shown = len(self.call.args)
        return int(method and len(signature.arguments["args"]) == shown + 1)

    def may_be_none(self, argument: Argument) -> bool:
        """Whether the source says that the argument, a name, is None at times."""
        return isinstance(argument.node, ast.Name) and self.file.may_be_none(argument.node.id, self.call)

    def before(self, argument: Argument) -> list[ast.expr]:
        """What the call evaluates before an argument."""
        parts = [self.call.func, *self.call.args, *(keyword.value for keyword in self.call.keywords)]
        return parts[: parts.index(argument.node)]

    def named(self, argument: Argument, wanted: str) -> tuple[str, tuple[str, ...], tuple[Edit, ...]] | None:
        """A name for an argument: the expression to use, lines that make it, and the changes that use it.

        What is typed as a name needs none. Anything else is computed once, in front of the statement.

        Args:
            wanted: name of the new variable.
        """
        if is_simple(argument.node):
            return self.file.source(argument.node) + argument.rest, (), ()
        if not all(map(is_simple, self.before(argument))) or wanted in self.file.names_around(self.call):
            return None
        if isinstance(argument.node, ast.NamedExpr):
            return None  # the other arguments may read the name that it gets in the call
        line = f"{wanted} = {self.file.source(argument.node)}"
        if "\n" in line:
            return None
        return wanted + argument.rest, (line,), (self.file.replace(argument.node, wanted),)


def is_simple(node: ast.expr) -> bool:
    """Whether an expression may be evaluated twice, and in another order: a name and what is read off it."""
    match node:
        case ast.Name() | ast.Constant():
            return True
        case ast.Attribute(value):
            return is_simple(value)
        case ast.Subscript(value, ast.Constant() | ast.Name()):
            return is_simple(value)
    return False


def sites(signatures: Iterable[Signature], files: Files) -> list[Site]:
    """The calls of the user's own files that caused compiles, in order; others are left out."""
    found: dict[tuple[str, int, int | None], list[Signature]] = {}
    for signature in signatures:
        if signature.call is not None and signature.call.owner == "project":
            found.setdefault((signature.call.file, signature.call.line, signature.call.column), []).append(
                signature
            )
    made = []
    for (path, _, _), same in found.items():
        file = files.open(path)
        call = file.call_at(same[0].call) if file is not None and same[0].call is not None else None
        if file is not None and call is not None:
            made.append(Site(file, call, file.statement(call), tuple(same)))
    return made


def origin(signature: Signature, source: str) -> str | None:
    """Which argument of the outermost call a frame's value is: ``x[0]`` -> ``args[1][0]``."""
    best = max((name for name in signature.origins if _leads(name, source)), key=len, default=None)
    return None if best is None else signature.origins[best] + source[len(best) :]


def _leads(name: str, source: str) -> bool:
    return source == name or (source.startswith(name) and source[len(name)] == "[")


def hidden(subject: Subject, source: str) -> Refusal:
    """Why a value cannot be changed at the call: it is not typed there, or is made behind it."""
    passed = any(origin(signature, source) for signature in subject.signatures)
    broken = any(finding.kind == "graph_break" for finding in subject.report.findings)
    if not passed and broken and source.partition(".")[0] != "self":
        return Refusal(
            f"{source} is not passed by the outermost call but reaches {subject.finding.location.function} "
            "across a graph break: repair the break (breakscope fix), and it is no input any more"
        )
    return Refusal(f"{source} is not an argument that the call in source shows")


def compiling(name: str, targets: Iterable[Compiled], files: Files) -> tuple[File, ast.expr] | None:
    """The ``torch.compile`` in source that compiled something of this name: a call, or a decorator."""
    for target in targets:
        file = files.open(target.file) if target.name == name and target.by != "breakscope" else None
        if file is None:
            continue
        for node in ast.walk(file.tree):
            if isinstance(node, ast.Call) and node.lineno == target.line and _compiles(node.func):
                return file, node
            for decorator in getattr(node, "decorator_list", ()):
                if decorator.lineno == target.line and _compiles(decorator):
                    return file, decorator
    return None


def _compiles(node: ast.expr) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "compile") or (
        isinstance(node, ast.Name) and node.id == "compile"
    )
