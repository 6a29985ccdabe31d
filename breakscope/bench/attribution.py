"""Who launches what in one step: every ATen op and every kernel of Inductor's gets a numbered marker.

Entered for one step that is not timed. Markers show in the profiler's trace around the launches; beside
each number stands what is needed to do the same thing again: the op or the kernel, and its arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from torch.profiler import record_function
from torch.utils._python_dispatch import TorchDispatchMode

from breakscope.bench import arm_compat
from breakscope.bench.specs import Spec, spec
from breakscope.bench.trace import MARK

MOST_OPS = 50_000


@dataclass(slots=True)
class Done:
    """One operation of the step.

    Attributes:
        call: does it again with given arguments.
        arguments: (args, kwargs) with a Spec for each tensor.
        kernel: Inductor's own object for a Triton kernel.
    """

    kind: Literal["op", "triton", "cpp"]
    name: str
    call: Callable[..., Any]
    arguments: tuple[Any, Any]
    kernel: Any = None
    outputs: list[Spec] = field(default_factory=list)


class Attribution:
    """Numbers the operations of a step that run in compiled graphs."""

    def __init__(self, on_gpu: bool) -> None:
        self.done: list[Done] = []
        self.on_gpu = on_gpu
        self._undo: list[Callable[[], None]] = []

    def __enter__(self) -> Attribution:
        around = arm_compat.around_triton(self._triton) if self.on_gpu else arm_compat.around_cpp(self._cpp)
        # Around each graph and not around the step: under a dispatch mode Dynamo runs nothing compiled.
        self._undo = [around, arm_compat.around_graphs(lambda: _Ops(self))]
        return self

    def __exit__(self, *error: object) -> None:
        while self._undo:
            self._undo.pop()()

    def op(self, func: Any, args: Any, kwargs: Any) -> Any:
        """One ATen op inside a graph."""
        if len(self.done) >= MOST_OPS:
            return func(*args, **kwargs)
        number = len(self.done)
        done = Done("op", str(func), func, arm_compat.tree_map(spec, (args, kwargs)))
        self.done.append(done)
        with record_function(f"{MARK}{number}"):
            result = func(*args, **kwargs)
        done.outputs = [one for one in _leaves(arm_compat.tree_map(spec, result)) if isinstance(one, Spec)]
        return result

    def _triton(self, real: Callable[..., Any], kernel: Any, args: Any, kwargs: Any) -> Any:
        """Around ``CachingAutotuner.run``."""
        number = len(self.done)
        with arm_compat.without_dispatch():  # our own copies are not the step's
            arguments = arm_compat.tree_map(spec, (args, kwargs))
        name = str(arm_compat.triton_facts(kernel)["name"])
        self.done.append(Done("triton", name, _bound(real, kernel), arguments, kernel))
        with record_function(f"{MARK}{number}"):
            return real(kernel, *args, **kwargs)

    def _cpp(self, name: str, real: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Around a C++ kernel of Inductor's."""
        number = len(self.done)
        with arm_compat.without_dispatch():
            arguments = arm_compat.tree_map(spec, (args, kwargs))
        self.done.append(Done("cpp", name, real, arguments))
        with record_function(f"{MARK}{number}"):
            return real(*args, **kwargs)


def _bound(real: Callable[..., Any], kernel: Any) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return real(kernel, *args, **kwargs)

    return call


def _leaves(value: Any) -> list[Any]:
    found: list[Any] = []
    arm_compat.tree_map(found.append, value)
    return found


class _Ops(TorchDispatchMode):  # type: ignore[misc]
    def __init__(self, attribution: Attribution) -> None:
        super().__init__()
        self._attribution = attribution

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self._attribution.op(func, args, kwargs or {})
