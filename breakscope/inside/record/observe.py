"""Makes :class:`.Evidence`: a function whose expressions pass through a recorder.

Knows the standard library only; torch is looked up among the loaded modules, so that it runs inside a
user's script before torch is there. Nothing of the values is kept but what Evidence says.
"""

from __future__ import annotations

import ast
import inspect
import sys
import types
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, cast

from breakscope.inside.record.evidence import Evidence, Kind, Scalar, Seen, TensorSeen
from breakscope.source.names import name_parts
from breakscope.source.span import Span

SEE = "__breakscope_see__"
ENTER = "__breakscope_enter__"
LOOK = "__breakscope_look__"
_KEPT_VALUES = 8
_KEPT_TENSORS = 32
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(slots=True)
class _Tally:
    kinds: set[Kind] = field(default_factory=set)
    types: dict[str, None] = field(default_factory=dict)
    tensors: dict[TensorSeen, None] = field(default_factory=dict)
    values: dict[str, Scalar] = field(default_factory=dict)
    more_values: bool = False
    count: int = 0

    def seen(self) -> Seen:
        return Seen(
            frozenset(self.kinds),
            tuple(self.types),
            tuple(self.tensors),
            tuple(self.values.values()),
            self.more_values,
            self.count,
        )


class Recorder:
    """Collects what instrumented functions see. One for a whole process."""

    def __init__(self) -> None:
        self._spans: list[tuple[str, Span]] = []
        self._tallies: dict[int, _Tally] = {}
        self._parameters: dict[str, dict[str, _Tally]] = {}
        self._calls: dict[str, int] = {}
        self._statements: list[tuple[str, Span, tuple[str, ...]]] = []
        self._looks: dict[int, dict[str, _Tally]] = {}
        self._grad: dict[str, bool] = {}
        self._autocast: dict[str, bool] = {}

    def names(self) -> dict[str, Any]:
        """What instrumented code needs among its globals (or in ``builtins``)."""
        return {SEE: self.see, ENTER: self.enter, LOOK: self.look}

    def slot(self, function: str, span: Span) -> int:
        """Reserve a number for an expression."""
        self._spans.append((function, span))
        return len(self._spans) - 1

    def statement(self, function: str, span: Span, paths: tuple[str, ...]) -> int:
        """Reserve a number for a statement that mentions names and attributes."""
        self._statements.append((function, span, paths))
        return len(self._statements) - 1

    def look(self, slot: int, local: dict[str, Any], outer: dict[str, Any]) -> None:
        """Note what a statement's names are as it begins."""
        tallies = self._looks.setdefault(slot, {})
        for path in self._statements[slot][2]:
            found = _find(path, local, outer)
            if found is not _ABSENT:
                _note(tallies.setdefault(path, _Tally()), found)

    def see(self, slot: int, value: Any) -> Any:
        """Note a value and hand it back."""
        _note(self._tallies.setdefault(slot, _Tally()), value)
        return value

    def enter(self, function: str, arguments: dict[str, Any]) -> None:
        """Note a call of a function."""
        self._calls[function] = self._calls.get(function, 0) + 1
        torch = sys.modules.get("torch")
        if torch is not None:
            self._grad[function] = self._grad.get(function, False) or torch.is_grad_enabled()
            self._autocast[function] = self._autocast.get(function, False) or _autocast(torch)
        tallies = self._parameters.setdefault(function, {})
        for name, value in arguments.items():
            _note(tallies.setdefault(name, _Tally()), value)

    def evidence(self, function: str) -> Evidence:
        """What was seen in a function, by the name under which it was instrumented."""
        calls = self._calls.get(function, 0)
        return Evidence(
            calls=calls,
            expressions={
                span: self._tallies[slot].seen()
                for slot, (owner, span) in enumerate(self._spans)
                if owner == function and slot in self._tallies
            },
            parameters={name: tally.seen() for name, tally in self._parameters.get(function, {}).items()},
            entry={
                span: {path: tally.seen() for path, tally in self._looks[slot].items()}
                for slot, (owner, span, _) in enumerate(self._statements)
                if owner == function and slot in self._looks
            },
            grad=self._grad.get(function, True),
            autocast=self._autocast.get(function, False),
        )


def instrument(tree: ast.Module, source: str, functions: Iterable[str], recorder: Recorder) -> set[str]:
    """Change functions of a module so that they report to ``recorder``.

    Args:
        tree: the module as parsed from ``source``; changed in place.
        functions: dotted paths as in :func:`breakscope.inside.capture.targets.functions`: ``Net.forward``.

    Returns:
        The functions that were found. Line numbers and the values of all expressions stay as they were.
    """
    wanted = set(functions)
    lines = source.split("\n")  # as rule.locate does: a form feed ends no line of Python
    found: set[str] = set()

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            name = prefix + child.name if isinstance(child, _Function | ast.ClassDef) else prefix
            inner = f"{name}." if isinstance(child, _Function | ast.ClassDef) else prefix
            visit(child, inner)
            if isinstance(child, _Function) and name in wanted:
                found.add(name)
                _instrument(child, name, lines, recorder)

    visit(tree, "")
    ast.fix_missing_locations(tree)
    return found


def _instrument(function: _Function, name: str, lines: list[str], recorder: Recorder) -> None:
    wrapper = _Wrap(name, lines, recorder)
    _look_before(function.body, name, lines, recorder)
    body = [wrapper.visit(statement) for statement in function.body]
    arguments = function.args
    names = [
        argument.arg
        for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        if isinstance(argument, ast.arg)
    ]
    entry = ast.Expr(
        ast.Call(
            ast.Name(ENTER, ast.Load()),
            [
                ast.Constant(name),
                ast.Dict([ast.Constant(one) for one in names], [ast.Name(one, ast.Load()) for one in names]),
            ],
            [],
        )
    )
    ast.copy_location(entry, function.body[0])
    place = 1 if ast.get_docstring(function, clean=False) is not None else 0
    function.body = [*body[:place], entry, *body[place:]]


_LOOKED_AT = (
    ast.If, ast.While, ast.For, ast.Assert, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr,
)  # fmt: skip


def _look_before(block: list[ast.stmt], function: str, lines: list[str], recorder: Recorder) -> None:
    """Put a call of ``look`` in front of every statement of a block and of the blocks in it."""
    result: list[ast.stmt] = []
    for index, statement in enumerate(block):
        if isinstance(statement, _Function | ast.ClassDef):
            result.append(statement)
            continue
        is_docstring = (
            index == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        )
        if isinstance(statement, _LOOKED_AT) and not is_docstring:
            slot = recorder.statement(function, Span.of(statement, lines), _paths(statement))
            text = f"{LOOK}({slot}, locals(), globals())"
            call = ast.parse(text).body[0]
            for node in ast.walk(call):
                ast.copy_location(node, statement)
            result.append(call)
        for inner in _blocks(statement):
            _look_before(inner, function, lines, recorder)
        result.append(statement)
    block[:] = result


def _blocks(statement: ast.stmt) -> list[list[ast.stmt]]:
    found = [getattr(statement, name, None) for name in ("body", "orelse", "finalbody")]
    found += [handler.body for handler in getattr(statement, "handlers", [])]
    found += [case.body for case in getattr(statement, "cases", [])]
    return [block for block in found if isinstance(block, list) and block]


def _paths(statement: ast.stmt) -> tuple[str, ...]:
    """``x`` and ``self.scale`` for every name and every chain of attributes in a statement."""
    found: dict[str, None] = {}
    for node in ast.walk(statement):
        if isinstance(node, ast.Name):
            found[node.id] = None
        elif isinstance(node, ast.Attribute):
            if parts := name_parts(node):
                found[".".join(parts)] = None
        elif isinstance(node, ast.Call) and (buffer := _named_buffer(node)) is not None:
            found[buffer] = None
    return tuple(found)


def _named_buffer(call: ast.Call) -> str | None:
    """``self.x`` of ``self.register_buffer("x", ...)``."""
    function, name = call.func, call.args[0] if call.args else None
    if not isinstance(function, ast.Attribute) or function.attr != "register_buffer":
        return None
    if not isinstance(function.value, ast.Name) or not isinstance(name, ast.Constant):
        return None
    return f"{function.value.id}.{name.value!s}"


_ABSENT = object()


def _find(path: str, local: dict[str, Any], outer: dict[str, Any]) -> Any:
    """The object at a path, without running a property, ``__getattr__`` or a descriptor."""
    first, *rest = path.split(".")
    found = local.get(first, outer.get(first, _ABSENT))
    for name in rest:
        if found is _ABSENT or isinstance(found, type | types.ModuleType) or _kind(found) == "tensor":
            return _ABSENT
        found = _stored_attribute(found, name)
    return found


def _stored_attribute(owner: Any, name: str) -> Any:
    own = getattr(owner, "__dict__", None)
    if type(own) is not dict or _own_lookup(type(owner)):
        return _ABSENT
    of_class = inspect.getattr_static(type(owner), name, _ABSENT)
    if of_class is not _ABSENT and hasattr(type(of_class), "__set__"):
        return _ABSENT
    if name in own:
        return own[name]
    if _kind(owner) == "module":
        for table in ("_parameters", "_buffers", "_modules"):
            if name in own.get(table, {}):
                return own[table][name]
    plain = of_class is None or isinstance(of_class, int | float | bool | str)
    return of_class if plain else _ABSENT


def _own_lookup(cls: type) -> bool:
    """Whether a class answers for its attributes in its own way."""
    return inspect.getattr_static(cls, "__getattribute__") is not vars(object)["__getattribute__"]


class _Wrap(ast.NodeTransformer):
    """Wraps what a function's own code evaluates: not its nested functions' and not annotations."""

    def __init__(self, function: str, lines: list[str], recorder: Recorder) -> None:
        self.function, self.lines, self.recorder = function, lines, recorder

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, _Function | ast.ClassDef | ast.Lambda | ast.match_case):
            return node
        if isinstance(node, ast.Expr) and _is_look(node):
            return node
        if isinstance(node, ast.AnnAssign):
            node.value = self.visit(node.value) if node.value else None
            return node
        if isinstance(node, ast.FormattedValue):  # a format_spec must stay a JoinedStr
            node.value = self.visit(node.value)
            return node
        whole = isinstance(node, ast.expr) and _wrappable(node)
        span = Span.of(cast("ast.expr", node), self.lines) if whole else None
        self.generic_visit(node)
        if span is None:
            return node
        slot = self.recorder.slot(self.function, span)
        call = ast.Call(ast.Name(SEE, ast.Load()), [ast.Constant(slot), cast("ast.expr", node)], [])
        return ast.copy_location(call, node)


def _is_look(node: ast.Expr) -> bool:
    call = node.value
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == LOOK


def _wrappable(node: ast.expr) -> bool:
    if isinstance(node, ast.Starred | ast.Slice | ast.Constant | ast.JoinedStr):
        return False
    return isinstance(getattr(node, "ctx", ast.Load()), ast.Load)


def _note(tally: _Tally, value: Any) -> None:
    tally.count += 1
    kind = _kind(value)
    tally.kinds.add(kind)
    if kind == "tensor":
        if len(tally.tensors) < _KEPT_TENSORS:
            tally.tensors[_tensor(value)] = None
    elif kind in ("int", "float", "bool", "str", "None"):
        if kind != "str" or len(value) <= 80:
            key = repr(value)
            if key not in tally.values and len(tally.values) >= _KEPT_VALUES:
                tally.more_values = True
            else:
                tally.values[key] = value
    elif len(tally.types) < _KEPT_VALUES:
        tally.types[_callable_name(value) if kind == "callable" else _qualified(type(value))] = None


def _kind(value: Any) -> Kind:
    exact: dict[type, Kind] = {int: "int", float: "float", bool: "bool", str: "str", type(None): "None"}
    found = exact.get(type(value))
    if found is not None:
        return found
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "nn"):
        plain = (torch.Tensor, torch.nn.Parameter, getattr(torch.nn, "Buffer", torch.nn.Parameter))
        if type(value) in plain:
            return "tensor"
        if isinstance(value, torch.nn.Module):
            return "module"
    functions = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, type)
    return "callable" if isinstance(value, functions) else "other"


def _tensor(value: Any) -> TensorSeen:
    return TensorSeen(
        str(value.dtype).removeprefix("torch."),
        tuple(int(size) for size in value.shape),
        value.device.type,
        bool(value.requires_grad),
    )


def _qualified(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _callable_name(value: Any) -> str:
    module = getattr(value, "__module__", None) or "?"
    return f"{module}.{getattr(value, '__qualname__', type(value).__qualname__)}"


def _autocast(torch: Any) -> bool:
    return bool(torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda"))
