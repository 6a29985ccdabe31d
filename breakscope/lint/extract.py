"""Reads one file: what it defines, what its functions call, and what would break in them if compiled."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from breakscope.lint import known
from breakscope.lint.constructors import is_number, read_constructor
from breakscope.lint.evaluator import Found
from breakscope.lint.facts import Class, Facts, Function, failed
from breakscope.lint.flow import Flow, FunctionNode
from breakscope.lint.kinds import UNKNOWN, VALUE, Kind, last_name, of_annotation
from breakscope.lint.names import ClassNames, Names
from breakscope.lint.parameters import read_parameters

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_BLOCKS = (ast.If, ast.Try, ast.With)
# torch.compile on a LightningModule compiles these too.
_ENTRIES = frozenset({"forward", "training_step", "validation_step", "test_step", "predict_step"})
_MOST_BYTES = 20_000_000


def may_matter(source: bytes) -> bool:
    """Whether a file can hold code that is compiled, without another file's help."""
    named = b"def forward" in source or b"LightningModule" in source
    return named or (b"torch" in source and _compiles(source))


def _compiles(source: bytes) -> bool:
    """Whether a file may compile any of its functions; in others only ``forward`` can be compiled."""
    if b"compile" not in source and b"_dynamo" not in source:
        return False
    rest = source.replace(b"re.compile(", b"")
    return any(sign in rest for sign in (b".compile", b"compile(", b"import compile", b"_dynamo"))


def read(source: bytes, *, everything: bool = False) -> Facts:
    """The facts of one file.

    Args:
        source: the file's content.
        everything: look into every function; else only where something in this file is compiled.
    """
    if len(source) > _MOST_BYTES:
        return failed(f"it has {len(source):,} bytes, more than lint reads ({_MOST_BYTES:,})")
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        place = f"line {error.lineno}: " if error.lineno else ""
        return failed(f"it is not Python that this version reads: {place}{error.msg}")
    except ValueError as error:
        return failed(f"it is not Python source: {error}")
    except (RecursionError, MemoryError):
        return failed("its expressions are nested too deeply")
    try:
        return _Module(tree, everything=everything or _compiles(source)).facts()
    except RecursionError:
        return failed("its expressions are nested too deeply")


class _Around(NamedTuple):
    """What is known around a function: variables, and functions by their qualified names."""

    env: dict[str, Kind]
    locals: dict[str, str]


class _Pending(NamedTuple):
    """A function that was not read yet."""

    node: FunctionNode
    owner: ClassNames | None
    around: _Around


_NOTHING = _Around({}, {})


class _Module:
    """Reads the functions of one module, from those that may be compiled to what these call."""

    def __init__(self, tree: ast.Module, *, everything: bool) -> None:
        self.names = Names()
        self.everything = everything
        self.found: dict[str, Function] = {}
        self.compiled: list[str] = []
        self.pending: dict[str, _Pending] = {}
        self.by_name: dict[str, list[str]] = {}
        self.ready: set[str] = set()
        self.classes: list[ClassNames] = []
        self.queue: list[str] = []
        self.top = Flow(self.names, None, Found())
        self.tree = tree
        self._take_in(tree.body, "")

    # ---- what is defined ----

    def _take_in(self, body: Sequence[ast.stmt], prefix: str) -> None:
        statements = list(_flat(body))
        for node in statements:
            if isinstance(node, ast.Import | ast.ImportFrom):
                self.names.add_import(node)
            elif isinstance(node, _FUNCTIONS):
                self.names.add_function(node)
            elif isinstance(node, ast.ClassDef):
                self.names.classes[node.name] = ClassNames(node.name)
        for node in statements:
            if isinstance(node, _FUNCTIONS):
                self._add_function(node, node.name, None, _NOTHING)
            elif isinstance(node, ast.ClassDef):
                self._add_class(node, prefix, _NOTHING)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                self._variable(node)
            elif isinstance(node, ast.Expr) and self.everything:
                self.top.kind(node.value)

    def _variable(self, node: ast.Assign | ast.AnnAssign) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        value = node.value
        if value is None:
            return
        kind = UNKNOWN
        if isinstance(value, ast.Constant):
            kind = VALUE
        elif isinstance(value, ast.Call):
            maker = last_name(value.func)
            if maker in known.LOGGER_MAKERS:
                self.names.loggers |= {target.id for target in targets if isinstance(target, ast.Name)}
            kind = self.top.kind(value)
            made_by = self.names.dotted(value.func)
            if made_by:
                self.names.made_by |= {one.id: made_by for one in targets if isinstance(one, ast.Name)}
        members = _members(value)
        for target in targets:
            if isinstance(target, ast.Name):
                if members:
                    self.names.tables[target.id] = members
                elif kind is not UNKNOWN:
                    self.names.kinds[target.id] = kind
                if isinstance(value, ast.Name):  # an alias: new_name = old_name
                    self.names.tables[target.id] = (value.id,)

    def _add_function(self, node: FunctionNode, name: str, owner: ClassNames | None, around: _Around) -> None:
        self.pending[name] = _Pending(node, owner, around)
        self.by_name.setdefault(node.name, []).append(name)
        compiled = _is_compiled(self._decorators(node))
        if self.everything or compiled or (owner is not None and node.name in _ENTRIES):
            self.queue.append(name)

    def _add_class(self, node: ast.ClassDef, prefix: str, around: _Around) -> None:
        own = ClassNames(prefix + node.name)
        own.bases = tuple(filter(None, (self.names.dotted(_unsubscripted(base)) for base in node.bases)))
        if not prefix:
            self.names.classes[node.name] = own
        self.classes.append(own)
        for statement in _flat(node.body):
            if isinstance(statement, _FUNCTIONS):
                own.methods[statement.name] = statement
                returns = of_annotation(statement.returns)
                if returns is not UNKNOWN:
                    own.returns[statement.name] = returns
                self._add_function(statement, f"{own.name}.{statement.name}", own, around)
            elif isinstance(statement, ast.ClassDef):
                self._add_class(statement, f"{own.name}.", around)
            elif isinstance(statement, ast.AnnAssign | ast.Assign):
                _class_attribute(own, statement)

    def _decorators(self, node: FunctionNode) -> tuple[str, ...]:
        found = []
        for decorator in node.decorator_list:
            name = self.names.dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)
            if (
                name in ("functools.partial", "partial")
                and isinstance(decorator, ast.Call)
                and decorator.args
            ):
                name = self.names.dotted(decorator.args[0])
            if name:
                found.append(f"{name}()" if isinstance(decorator, ast.Call) else name)
        return tuple(found)

    # ---- what they do ----

    def facts(self) -> Facts:
        """Read what may be compiled, and what that calls in this file."""
        while self.queue:
            name = self.queue.pop()
            if name not in self.found and name in self.pending:
                self._read(name)
        classes = tuple(
            Class(one.name, one.bases, tuple(one.methods), dict(one.made_by)) for one in self.classes
        )
        others = tuple(name for name in self.pending if name not in self.found)
        return Facts(
            self.names.imports,
            tuple(self.found.values()),
            classes,
            self.names.tables,
            (*dict.fromkeys([*self.top.found.compiled, *self.compiled]),),
            others,
        )

    def _read(self, name: str) -> None:
        node, owner, around = self.pending[name]
        if owner is not None:
            self._make_ready(owner)
        found = Found()
        flow = Flow(self.names, owner, found, name)
        flow.env, flow.locals = dict(around.env), dict(around.locals)
        floats = read_parameters(flow, node, owner)
        flow.run(node.body)
        decorators = self._decorators(node)
        self.found[name] = Function(
            name,
            owner.name if owner else "",
            node.lineno,
            decorators,
            _is_compiled(decorators),
            _wraps(node, decorators),
            tuple(found.calls.values()),
            tuple(dict.fromkeys(found.candidates)),
            floats,
        )
        self.compiled += found.compiled
        prefix = f"{name}.<locals>."
        for inner in flow.nested:
            inside = _Around(inner.env, inner.locals)
            if isinstance(inner.node, ast.ClassDef):
                self._add_class(inner.node, prefix, inside)
            else:
                self._add_function(inner.node, prefix + inner.node.name, owner, inside)
                self.queue.append(prefix + inner.node.name)
        for call in found.calls.values():
            self.queue += self.by_name.get(re.split(r"[.:]", call.target)[-1], ())
        for decorator in decorators:
            self.queue += self.by_name.get(decorator.removesuffix("()").rpartition(".")[2], ())
        for target in found.compiled:
            self.queue += self.by_name.get(re.split(r"[.:]", target)[-1], ())

    def _make_ready(self, owner: ClassNames) -> None:
        """Find out what the constructor puts where; bases of this file first."""
        if owner.name in self.ready:
            return
        self.ready.add(owner.name)
        for base in owner.bases:
            parent = self.names.classes.get(base)
            if parent is not None and parent is not owner:
                self._make_ready(parent)
                owner.kinds = {**parent.kinds, **owner.kinds}
                owner.made_by = {**parent.made_by, **owner.made_by}
                owner.numbers |= parent.numbers
        read_constructor(self.names, owner)


# ---- small things ----


def _class_attribute(owner: ClassNames, statement: ast.Assign | ast.AnnAssign) -> None:
    """Take in an attribute that the class itself sets or promises."""
    if isinstance(statement, ast.AnnAssign):
        targets: list[ast.expr] = [statement.target]
        kind = of_annotation(statement.annotation)
    else:
        targets, kind = statement.targets, UNKNOWN
    if kind is UNKNOWN and isinstance(statement.value, ast.Constant):
        kind = VALUE
    for target in targets:
        if isinstance(target, ast.Name):
            if kind is not UNKNOWN:
                owner.kinds[target.id] = kind
            if is_number(statement.value):
                owner.numbers.add(target.id)


def _is_compiled(decorators: tuple[str, ...]) -> bool:
    return any(name.removesuffix("()") in known.COMPILERS for name in decorators)


def _wraps(node: FunctionNode, decorators: tuple[str, ...]) -> bool:
    """Whether a function looks like what a decorator returns: @wraps, or any arguments handed through."""
    named = any(name.removesuffix("()").rpartition(".")[2] == "wraps" for name in decorators)
    return named or (node.args.vararg is not None and node.args.kwarg is not None)


def _flat(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a block and of the conditionals in it, in order."""
    for node in body:
        if isinstance(node, _BLOCKS):
            yield from _flat(node.body)
            if isinstance(node, ast.If | ast.Try):
                yield from _flat(node.orelse)
            if isinstance(node, ast.Try):
                for handler in node.handlers:
                    yield from _flat(handler.body)
                yield from _flat(node.finalbody)
            if isinstance(node, ast.If):
                continue
        else:
            yield node


def _members(value: ast.expr) -> tuple[str, ...]:
    """Names of the functions and classes in a table of them."""
    if isinstance(value, ast.Dict):
        return tuple(one.id for one in value.values if isinstance(one, ast.Name))
    if isinstance(value, ast.List | ast.Tuple):
        return tuple(elt.id for elt in value.elts if isinstance(elt, ast.Name))
    if isinstance(value, ast.Call) and value.args and isinstance(value.args[0], ast.Dict):
        return _members(value.args[0])
    return ()


def _unsubscripted(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Subscript) else node
