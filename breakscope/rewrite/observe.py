"""Makes :class:`~breakscope.rewrite.evidence.Evidence`: a function whose expressions pass through a recorder.

Knows the standard library only; torch is looked up among the loaded modules, so that it runs inside a
user's script before torch is there. Nothing of the values is kept but what Evidence says.
"""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, cast

from breakscope.rewrite.evidence import Evidence, Kind, Scalar, Seen, Span, TensorSeen

SEE = "__breakscope_see__"
ENTER = "__breakscope_enter__"
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
        self._grad: dict[str, bool] = {}
        self._autocast: dict[str, bool] = {}

    def names(self) -> dict[str, Any]:
        """What instrumented code needs among its globals (or in ``builtins``)."""
        return {SEE: self.see, ENTER: self.enter}

    def slot(self, function: str, span: Span) -> int:
        """Reserve a number for an expression."""
        self._spans.append((function, span))
        return len(self._spans) - 1

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
            grad=self._grad.get(function, True),
            autocast=self._autocast.get(function, False),
        )


def instrument(tree: ast.Module, source: str, functions: Iterable[str], recorder: Recorder) -> set[str]:
    """Change functions of a module so that they report to ``recorder``.

    Args:
        tree: the module as parsed from ``source``; changed in place.
        functions: dotted paths as in :func:`breakscope.capture.targets.functions`: ``Net.forward``.

    Returns:
        The functions that were found. Line numbers and the values of all expressions stay as they were.
    """
    wanted = set(functions)
    lines = source.splitlines() or [""]
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


class _Wrap(ast.NodeTransformer):
    """Wraps what a function's own code evaluates: not its nested functions' and not annotations."""

    def __init__(self, function: str, lines: list[str], recorder: Recorder) -> None:
        self.function, self.lines, self.recorder = function, lines, recorder

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, _Function | ast.ClassDef | ast.Lambda | ast.match_case):
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
