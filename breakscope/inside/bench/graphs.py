"""Dynamo's graphs as text, kept while an arm compiles: for kernels' source lines, and for export."""

from __future__ import annotations

import re
import types
from dataclasses import dataclass, field
from typing import Any

from breakscope.inside.bench.specs import Spec, spec

_PLACE = re.compile(r'File "([^"]+)", line (\d+)')
_GRAPHS: list[RecordedGraph] = []


@dataclass(slots=True)
class RecordedGraph:
    """One graph, before the backend has changed it.

    Attributes:
        code: source of its ``forward``; inputs: (name, Spec or plain value) of each input.
        imports: lines that its code needs above it.
        sources: node name -> the innermost lines of the user's that it comes from, as ``file:line``.
        state: names that it takes from its module: constants and submodules.
    """

    number: int
    code: str
    inputs: list[tuple[str, Any]]
    sources: dict[str, tuple[str, ...]]
    state: list[str] = field(default_factory=list)
    imports: list[str] = field(default_factory=list)
    training: bool = False


def recorded_graphs() -> list[RecordedGraph]:
    """Those of this process."""
    return _GRAPHS


class RecordingBackend:
    """Compiles as ``compiler`` does, and keeps each graph's text. Nothing of it is in the path of a call."""

    def __init__(self, compiler: Any) -> None:
        self._compiler = compiler
        # Copied, because Dynamo asks a backend for them and looks no further.
        for name in ("get_compiler_config", "reset", "compiler_name", "backend_ctx_ctor"):
            if hasattr(compiler, name):
                setattr(self, name, getattr(compiler, name))

    def __call__(self, graph_module: Any, example_inputs: Any, **kwargs: Any) -> Any:
        """As Dynamo calls a backend."""
        _GRAPHS.append(_recorded(graph_module, example_inputs))
        return self._compiler(graph_module, example_inputs, **kwargs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RecordingBackend) and bool(self._compiler == other._compiler)

    def __hash__(self) -> int:
        return hash(type(self))


def _recorded(graph_module: Any, example_inputs: Any) -> RecordedGraph:
    import torch

    names = [node.name for node in graph_module.graph.nodes if node.op == "placeholder"]
    sources = {}
    for node in graph_module.graph.nodes:
        places = _PLACE.findall(node.meta.get("stack_trace") or "")
        if places:
            sources[node.name] = tuple(f"{file}:{line}" for file, line in places[-1:])
    return RecordedGraph(
        number=len(_GRAPHS),
        code=graph_module.code,
        inputs=list(zip(names, map(_input, example_inputs), strict=False)),
        sources=sources,
        state=[
            str(node.target) for node in graph_module.graph.nodes if node.op in ("get_attr", "call_module")
        ],
        training=torch.is_grad_enabled(),
        imports=_imports(graph_module.graph.python_code("self").globals),
    )


def _imports(names: dict[str, Any]) -> list[str]:
    """Import lines for the globals of a graph's code."""
    lines = []
    for name, value in names.items():
        if value is type(None):
            lines.append(f"{name} = type(None)")
            continue
        module = getattr(value, "__module__", None)
        if isinstance(value, types.ModuleType):
            lines.append(f"import {value.__name__} as {name}" if name != value.__name__ else f"import {name}")
        elif module is not None and hasattr(value, "__qualname__"):
            lines.append(f"from {module} import {value.__qualname__.partition('.')[0]} as {name}")
        elif isinstance(value, float):
            lines.append(f'{name} = float("{value}")')
    return lines


def _input(value: Any) -> Any:
    """Without values: at compile time they are fake."""
    import torch

    if isinstance(value, torch.Tensor) and value.layout is torch.strided:
        try:
            return Spec(
                value.dtype,
                tuple(int(size) for size in value.shape),
                tuple(int(step) for step in value.stride()),
                value.device,
                value.requires_grad,
            )
        except Exception:  # noqa: BLE001 -- an unbacked size: it has no number
            return None
    return spec(value) if not isinstance(value, torch.SymInt) else int(value)
