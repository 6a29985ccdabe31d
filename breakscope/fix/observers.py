"""Who could tell: what the user's own source does with what a rewrite changes for others.

A rewrite may leave a tensor of its own where the old code left one that is held elsewhere too, raise another
exception, or write no message. Values are compared by running both forms; who looks at *which object* it is,
catches the exception, or listens, is searched for here, in the source of the modules that the script loaded.
Each answer is a sentence that names the place, or None: nobody was found.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from breakscope.fix.messages import MESSAGE_METHODS
from breakscope.fix.source_file import Parents, parents_of
from breakscope.inside.prove.paths import attribute, bare

# Of a tensor: what neither hands it on nor tells it from an equal one.
_FACTS = {"shape", "dtype", "device", "ndim", "requires_grad", "is_cuda", "layout", "itemsize", "nbytes"}
_ASKS = {"size", "dim", "numel", "item", "tolist", "nelement", "element_size", "is_floating_point"}
_IDENTITY = {"data_ptr", "untyped_storage", "storage", "is_set_to", "register_hook", "requires_grad_", "data"}
_READERS = {"float", "int", "bool", "str", "repr", "print", "len", "format", "hasattr", "isinstance", "type"}
_STORES = {"register_buffer", "register_parameter", "hasattr", "delattr"}
_SETTERS = {"register_buffer", "register_parameter"}
_ALL_BUFFERS = {"buffers", "named_buffers", "_buffers", "state_dict"}
_QUIET_MANAGERS = (
    "torch",
    "open",
    "tqdm",
    "warnings",
    "contextlib.nullcontext",
    "contextlib.redirect",
    "time",
)
_CATCHING_MANAGERS = re.compile(r"suppress|raises|catch|assert|ignor|guard|retry")
_LOGGING_CLASSES = {"Handler", "StreamHandler", "FileHandler", "Filter", "Logger", "LoggerAdapter"}
_LISTENING = {"showwarning", "captureWarnings", "setLoggerClass", "assertLogs", "assertWarns", "warns"}


@dataclass(slots=True)
class _Module:
    """One file, parsed."""

    file: str
    lines: list[str]
    tree: ast.Module
    parents: Parents

    def place(self, node: ast.AST) -> str:
        """Where a node stands, for a reader."""
        return f"{os.path.basename(self.file)}:{getattr(node, 'lineno', 0)}"

    def quoted(self, node: ast.AST) -> str:
        """The line of a node, shortened, with its place."""
        line = getattr(node, "lineno", 0)
        text = " ".join(self.lines[line - 1].split())[:80] if 0 < line <= len(self.lines) else ""
        return f"`{text}` ({self.place(node)})"


@dataclass(slots=True)
class Observers:
    """Searches source files, each parsed once.

    Attributes:
        texts: source by file, for files that are not on disk; others are read.
    """

    texts: dict[str, str] = field(default_factory=dict)
    _modules: dict[str, _Module | None] = field(default_factory=dict)

    def of_objects(self, paths: Sequence[str], files: Iterable[str]) -> str | None:
        """Who could tell that attributes do not hold one object any more, or do not share their memory.

        Args:
            paths: to what held it, as the proof names them: ``self.seen``, ``self._buffers['scale']``.
            files: where to search.
        """
        named = [(path, attribute(path)) for path in paths]
        names = {name for _, name in named if name is not None}
        buffers = any("_buffers" in path for path in paths)
        for module in self._parsed(files):
            for node in _mentions(module, {*names, *_ALL_BUFFERS} if buffers else names):
                name = getattr(node, "attr", getattr(node, "value", None))
                if name in names and not _stores_by_name(node, module) and tells(node, module.parents, names):
                    return module.quoted(node)
                if buffers and isinstance(node, ast.Attribute) and node.attr in _ALL_BUFFERS:
                    return f"{module.quoted(node)}, which sees all buffers,"
        # An argument, an item of a list, a global: who else holds it cannot be told from its name.
        return next(
            (f"whoever holds `{bare(path).lstrip('.')}`" for path, name in named if name is None), None
        )

    def of_names(self, names: Iterable[str], function: str, files: Iterable[str]) -> str | None:
        """Who else mentions attributes that one function (its bare name) makes: by name, or as text."""
        wanted = set(names)
        for module in self._parsed(files):
            for node in _mentions(module, wanted):
                if _function_of(node, module) != function:
                    return module.quoted(node)
        return None

    def catching(self, callers: Iterable[tuple[str, int]]) -> str | None:
        """Who catches an exception of a function, or does something because of it, among its callers."""
        for file, line in callers:
            module = self._module(file)
            for node in ast.walk(module.tree) if module is not None else ():
                if module is None or not _holds(node, line):
                    continue
                if isinstance(node, ast.Try | ast.TryStar) and (
                    node.handlers or (node.finalbody and not _takes_back(node, module))
                ):
                    return f"the `try` at {module.place(node)}"
                if isinstance(node, ast.With | ast.AsyncWith) and (name := _catches(node, module)):
                    return f"`with {name}` at {module.place(node)}"
        return None

    def listening(self, files: Iterable[str]) -> str | None:
        """Who collects warnings, makes them errors, or gets log records by a class of the user's."""
        for module in self._parsed(files):
            for node in ast.walk(module.tree):
                if _listens(node):
                    return module.quoted(node)
        return None

    def _parsed(self, files: Iterable[str]) -> Iterator[_Module]:
        for file in dict.fromkeys(files):
            module = self._module(file)
            if module is not None:
                yield module

    def _module(self, file: str) -> _Module | None:
        if file not in self._modules:
            try:
                source = self.texts.get(file)
                source = Path(file).read_text(encoding="utf-8") if source is None else source
                tree = ast.parse(source)
            except (OSError, ValueError, SyntaxError):
                self._modules[file] = None
            else:
                self._modules[file] = _Module(file, source.splitlines(), tree, parents_of(tree))
        return self._modules[file]


def _mentions(module: _Module, names: set[str]) -> Iterator[ast.AST]:
    """Where a module has one of some names, as an attribute or as text."""
    for node in ast.walk(module.tree):
        named = node.attr if isinstance(node, ast.Attribute) else getattr(node, "value", None)
        if isinstance(named, str) and named in names:
            yield node


def _stores_by_name(node: ast.AST, module: _Module) -> bool:
    """Whether a text is the name under which something is stored, asked for or deleted."""
    called = module.parents.get(node)
    function = called.func if isinstance(node, ast.Constant) and isinstance(called, ast.Call) else None
    return getattr(function, "attr", getattr(function, "id", "")) in _STORES


def _function_of(node: ast.AST, module: _Module) -> str | None:
    above = module.parents.get(node)
    while above is not None and not isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef):
        above = module.parents.get(above)
    return above.name if above is not None else None


def tells(node: ast.AST, parents: Parents, names: Collection[str] = (), depth: int = 0) -> bool:
    """Whether a use of a tensor may tell which one it is, write into it, or hand it on.

    Args:
        names: attributes that it may be stored into.
    """
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del) and depth == 0:
        # Another object in its place is no writing into it; ``+=`` is.
        return isinstance(parents[node], ast.AugAssign)
    up = parents[node]
    if isinstance(
        up, ast.BinOp | ast.UnaryOp | ast.Expr | ast.FormattedValue | ast.If | ast.While | ast.Assert
    ):
        return False
    if isinstance(up, ast.Compare):
        none = any(
            isinstance(comparator, ast.Constant) and comparator.value is None for comparator in up.comparators
        )
        return not none and any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in up.ops)
    if isinstance(up, ast.AugAssign):
        return up.target is node
    if isinstance(up, ast.Subscript) and up.value is node:
        return not isinstance(up.ctx, ast.Load) or tells(up, parents, names, depth)
    if isinstance(up, ast.Attribute):
        return _methodtells(up, parents, names, depth)
    if isinstance(up, ast.Call | ast.keyword):
        return _calltells(up, node, parents, names, depth)
    if isinstance(up, ast.Assign) and up.value is node:
        return any(_target_tells(target, parents, names, depth) for target in up.targets)
    return True


def _methodtells(up: ast.Attribute, parents: Parents, names: Collection[str], depth: int) -> bool:
    if not isinstance(up.ctx, ast.Load) or up.attr in _IDENTITY:
        return True
    if up.attr in _FACTS:
        return False
    call = parents[up]
    if not isinstance(call, ast.Call) or call.func is not up:
        return tells(up, parents, names, depth)
    if up.attr.endswith("_") and not up.attr.endswith("__"):
        return True
    return bool(up.attr not in _ASKS and tells(call, parents, names, depth))


def _calltells(up: ast.AST, node: ast.AST, parents: Parents, names: Collection[str], depth: int) -> bool:
    call = parents[up] if isinstance(up, ast.keyword) else up
    if not isinstance(call, ast.Call) or call.func is node:
        return True
    name = ast.unparse(call.func)
    first = call.args[0] if call.args else None
    if name.rpartition(".")[2] in _SETTERS and isinstance(first, ast.Constant) and first.value in names:
        return False  # one of the places is given the other
    if name in _READERS:
        return False
    # The functions of torch compute; what they give may be the tensor itself.
    return not name.startswith(("torch.", "F.", "math.")) or tells(call, parents, names, depth)


def _target_tells(target: ast.expr, parents: Parents, names: Collection[str], depth: int) -> bool:
    if isinstance(target, ast.Attribute):
        return target.attr not in names
    if not isinstance(target, ast.Name) or depth > 3:
        return True
    above: ast.AST = target
    while not isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module):
        above = parents[above]
    return any(
        tells(one, parents, names, depth + 1)
        for one in ast.walk(above)
        if isinstance(one, ast.Name) and one.id == target.id and isinstance(one.ctx, ast.Load)
    )


def _holds(node: ast.AST, line: int) -> bool:
    """Whether a statement's guarded part holds a line."""
    body = getattr(node, "body", None)
    if not isinstance(node, ast.Try | ast.TryStar | ast.With | ast.AsyncWith) or not body:
        return False
    return bool(body[0].lineno <= line <= (body[-1].end_lineno or 0))


def _takes_back(node: ast.Try | ast.TryStar, module: _Module) -> bool:
    """Whether a ``finally`` only takes back what its function set before: then an exception leaves no trace.

    Where the exception leaves the compiled call that holds both, neither was done. It is a variable of the
    context (``token = variable.set(value)``), or an attribute (``saved = self.mode``, ``self.mode = saved``).
    """
    above = module.parents[node]
    while not isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module):
        above = module.parents[above]
    before = [
        one for one in ast.walk(above) if isinstance(one, ast.Assign) and one.lineno < node.body[0].lineno
    ]
    return all(_restores(statement, before, module) for statement in node.finalbody)


def _restores(statement: ast.stmt, before: Sequence[ast.Assign], module: _Module) -> bool:
    """Whether a statement gives something the value that it had."""

    def given(target: str) -> set[str]:
        return {
            ast.unparse(one.value) for one in before if [ast.unparse(to) for to in one.targets] == [target]
        }

    match statement:
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(variable), "reset"), [ast.Name(token)], [])):
            is_set = [value.startswith(f"{variable}.set(") for value in given(token)] == [True]
            return is_set and _is_context_variable(variable, module)
        case ast.Assign([ast.Attribute() as target], ast.Name(saved)):
            return given(saved) == {ast.unparse(target)}
        case ast.If(test, body, orelse):
            asks = any(isinstance(one, ast.Call | ast.NamedExpr | ast.Await) for one in ast.walk(test))
            return not asks and _restored(body, orelse, before, module)
    return False


def _restored(
    body: Sequence[ast.stmt], orelse: Sequence[ast.stmt], before: Sequence[ast.Assign], module: _Module
) -> bool:
    """Whether the sides of a branch only restore. Where it had no value before, it is deleted."""
    match body, orelse:
        case [ast.Assign([ast.Attribute() as target], _) as given], [ast.Delete([ast.Attribute() as gone])]:
            return ast.unparse(target) == ast.unparse(gone) and _restores(given, before, module)
    return all(_restores(one, before, module) for one in (*body, *orelse))


def _is_context_variable(name: str, module: _Module) -> bool:
    return any(
        isinstance(one, ast.Assign)
        and [ast.unparse(target) for target in one.targets] == [name]
        and isinstance(one.value, ast.Call)
        and ast.unparse(one.value.func).endswith("ContextVar")
        for one in module.tree.body
    )


def _catches(node: ast.With | ast.AsyncWith, module: _Module) -> str | None:
    """The context manager of a ``with`` that may swallow an exception; None where all are known not to."""
    own = {one.name for one in ast.walk(module.tree) if isinstance(one, ast.ClassDef | ast.FunctionDef)}
    for item in node.items:
        made = item.context_expr
        name = ast.unparse(made.func if isinstance(made, ast.Call) else made)
        if name.startswith(_QUIET_MANAGERS):
            continue
        if name.partition(".")[0] in own or _CATCHING_MANAGERS.search(name.lower()):
            return name
    return None


def _listens(node: ast.AST) -> bool:
    if isinstance(node, ast.ClassDef):
        bases = [ast.unparse(base) for base in node.bases]
        return any(base.startswith("logging.") or base in _LOGGING_CLASSES for base in bases)
    if isinstance(node, ast.Attribute) and node.attr in _LISTENING:
        return True
    if isinstance(node, ast.Attribute) and ast.unparse(node) == "warnings.filters":
        return True
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr in MESSAGE_METHODS:
        # A method of a logger is the user's own. A class of loggers is found by its base, so that `self.info`
        # is anything else.
        return not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    given = {one.value for one in ast.walk(node) if isinstance(one, ast.Constant)}
    if name in ("simplefilter", "filterwarnings"):
        return "error" in given
    if name == "catch_warnings":
        return any(keyword.arg == "record" for keyword in node.keywords) or True in given
    return name in ("redirect_stderr", "redirect_stdout", "addFilter")
