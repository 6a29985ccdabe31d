"""The layers of a module that are built alike: one compile of one of them could serve them all."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from typing import Any

from torch import nn

LEAST = 3
_MOST_PLACES = 4


def alike_layers(module: nn.Module) -> list[dict[str, Any]]:
    """The containers of a module that hold nothing but layers alike, the outermost of each branch.

    Alike are layers of one class whose parameters, inner modules and numbers are the same but for values. A
    layer without modules of its own is too small to be compiled by itself.
    """
    return [
        {
            "path": path,
            "name": type(layers[0]).__qualname__,
            "count": len(layers),
            "function": _forward(layers[0]),
        }
        for path, layers in list(_places(module, ""))[:_MOST_PLACES]
    ]


def _places(module: nn.Module, path: str) -> Iterator[tuple[str, list[nn.Module]]]:
    layers = list(module.children())
    if path and isinstance(module, nn.ModuleList | nn.Sequential | nn.ModuleDict) and _alike(layers):
        yield f"{path}.values()" if isinstance(module, nn.ModuleDict) else path, layers
        return
    for name, child in module.named_children():
        if name.isdigit():
            yield from _places(child, f"{path}[{name}]")
        elif name.isidentifier() and not isinstance(module, nn.ModuleDict):
            yield from _places(child, f"{path}.{name}".lstrip("."))


def _alike(layers: list[nn.Module]) -> bool:
    if len(set(map(id, layers))) < LEAST or not list(layers[0].children()):
        return False
    if isinstance(layers[0], nn.ModuleList | nn.ModuleDict):  # which nobody calls
        return False
    same = len({_structure(layer) for layer in layers}) == 1
    return same and not _calls_an_argument(type(layers[0]).forward)


@cache
def _calls_an_argument(forward: Any) -> bool:
    """Whether a layer runs what it is given, as ``forward(self, x, sublayer)`` does: each is a version."""
    try:
        (function,) = ast.parse(textwrap.dedent(inspect.getsource(forward))).body
    except (OSError, TypeError, ValueError, SyntaxError):
        return False
    given = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
    called = (node.func for node in ast.walk(function) if isinstance(node, ast.Call))
    return any(isinstance(name, ast.Name) and name.id in given for name in called)


def _structure(layer: nn.Module) -> tuple[Any, ...]:
    parameters = ((name, tuple(value.shape), value.dtype) for name, value in layer.named_parameters())
    modules = tuple((name, type(one), _numbers(one)) for name, one in layer.named_modules())
    return type(layer), tuple(parameters), modules


def _numbers(module: nn.Module) -> tuple[tuple[str, Any], ...]:
    """What a module keeps of Python's numbers and texts, which compiled code that reads them is made for.

    Where a layer stands is kept for a cache, and read by few.
    """
    return tuple(
        (name, value)
        for name, value in vars(module).items()
        if type(value) in (bool, int, float, str) and not _PLACE.search(name)
    )


_PLACE = re.compile(r"(^|_)(idx|index|id|name|number)$")


def _forward(layer: nn.Module) -> str:
    return function_of(type(layer).forward)


def function_of(function: Any) -> str:
    """A function as ``--compile`` takes it; empty where it has no file."""
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{function.__qualname__}" if code is not None else ""
