"""Who launches what in one step: every ATen op and every kernel of Inductor's gets a numbered marker.

Entered for one step that is not timed. Markers show in the profiler's trace around the launches; beside
each number stands what is needed to do the same thing again: the op or the kernel, and its arguments.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from torch.profiler import record_function
from torch.utils._python_dispatch import TorchDispatchMode

from breakscope.inside.bench import arm_compat
from breakscope.inside.bench.specs import Spec, spec, spec_with_values
from breakscope.inside.bench.trace import MARK

MOST_OPS = 50_000
# Ops that refuse values out of a range, on a GPU with an assertion that ends the process's context.
_PARTICULAR = ("multinomial", "bernoulli", "binary_cross_entropy")
# What Inductor writes where a kernel looks something up by an index that it has computed.
_CHECKED = ("tl.device_assert(", "index out of bounds")


@dataclass(slots=True)
class Done:
    """One operation of the step.

    Attributes:
        call: does it again with given arguments.
        arguments: (args, kwargs) with a Spec for each tensor.
        kernel: Inductor's own object for a Triton kernel.
        particular: whether it asserts something of its inputs' values.
        graph: which run of a compiled graph in the step it belongs to, from 1; backward: whether that is a
            backward; None where it is not known.
    """

    kind: Literal["op", "triton", "cpp"]
    name: str
    call: Callable[..., Any]
    arguments: tuple[Any, Any]
    kernel: Any = None
    particular: bool = False
    graph: int = 0
    backward: bool | None = None
    outputs: list[Spec] = field(default_factory=list)


class Attribution:
    """Numbers the operations of a step that run in compiled graphs."""

    def __init__(self, on_gpu: bool) -> None:
        self.done: list[Done] = []
        self.on_gpu = on_gpu
        self._graph = 0
        self._backward: bool | None = None
        self._undo: list[Callable[[], None]] = []
        self._kept: set[str] = set()

    def __enter__(self) -> Attribution:
        around = arm_compat.around_triton(self._triton) if self.on_gpu else arm_compat.around_cpp(self._cpp)
        # Around each graph and not around the step: under a dispatch mode Dynamo runs nothing compiled.
        self._undo = [around, arm_compat.around_graphs(self._entered)]
        return self

    def _entered(self, backward: bool | None) -> _Ops:
        """A compiled graph is about to run."""
        self._graph += 1
        self._backward = backward
        return _Ops(self)

    def __exit__(self, *error: object) -> None:
        while self._undo:
            self._undo.pop()()

    def op(self, func: Any, args: Any, kwargs: Any) -> Any:
        """One ATen op inside a graph."""
        if len(self.done) >= MOST_OPS:
            return func(*args, **kwargs)
        number = len(self.done)
        name = str(func)
        particular = name.split(".")[1] in _PARTICULAR
        arguments = self._arguments(name, args, kwargs, particular)
        done = Done("op", name, func, arguments, particular=particular, graph=self._graph)
        self.done.append(done)
        with record_function(f"{MARK}{number}"):
            result = func(*args, **kwargs)
        done.outputs = [leaf for leaf in leaves(arm_compat.tree_map(spec, result)) if isinstance(leaf, Spec)]
        return result

    def _arguments(self, name: str, args: Any, kwargs: Any, particular: bool) -> tuple[Any, Any]:
        """Specs of arguments. Only the first launch of each kind will be run again, and keeps values."""
        with arm_compat.without_dispatch():  # our own copies are not the step's
            plain: tuple[Any, Any] = arm_compat.tree_map(spec, (args, kwargs))
            kind = f"{name} {[str(leaf) for leaf in leaves(plain)]}"
            if kind in self._kept:
                return plain
            self._kept.add(kind)
            keep = functools.partial(spec_with_values, floats=particular)
            kept: tuple[Any, Any] = arm_compat.tree_map(keep, (args, kwargs))
            return kept

    def _triton(self, real: Callable[..., Any], kernel: Any, args: Any, kwargs: Any) -> Any:
        """Around ``CachingAutotuner.run``."""
        facts = arm_compat.triton_facts(kernel)
        name, particular = str(facts["name"]), _checks(text_of(facts.get("file")))
        arguments = self._arguments(name, args, kwargs, particular)
        return self._launch(
            Done("triton", name, _bound(real, kernel), arguments, kernel, particular), args, kwargs
        )

    def _cpp(self, name: str, real: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Around a C++ kernel of Inductor's."""
        particular = _checks(arm_compat.cpp_definition(name) or "")
        arguments = self._arguments(name, args, kwargs, particular)
        return self._launch(Done("cpp", name, real, arguments, particular=particular), args, kwargs)

    def _launch(self, done: Done, args: Any, kwargs: Any) -> Any:
        number = len(self.done)
        done.graph, done.backward = self._graph, self._backward
        self.done.append(done)
        with record_function(f"{MARK}{number}"):
            return done.call(*args, **kwargs)


def _checks(source: str) -> bool:
    return any(words in source for words in _CHECKED)


@functools.cache
def text_of(file: str | None) -> str:
    """A source file's text; empty where it cannot be read."""
    try:
        return Path(file).read_text("utf-8", "replace") if file else ""
    except OSError:
        return ""


def _bound(real: Callable[..., Any], kernel: Any) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return real(kernel, *args, **kwargs)

    return call


def leaves(value: Any) -> list[Any]:
    """The leaves of nested arguments."""
    found: list[Any] = []
    arm_compat.tree_map(found.append, value)
    return found


class _Ops(TorchDispatchMode):  # type: ignore[misc]
    def __init__(self, attribution: Attribution) -> None:
        super().__init__()
        self._attribution = attribution

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self._attribution.op(func, args, kwargs or {})
