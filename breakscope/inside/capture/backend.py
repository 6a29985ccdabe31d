"""The backend that a scan gives to Dynamo: the chosen one, with every region counted."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from breakscope.inside.capture.clock import Clock
from breakscope.inside.settings import form
from breakscope.inside.torch_api.state import compile_id

OPS = frozenset({"call_function", "call_method", "call_module"})
_COLLECTIVES = ("_c10d_functional.", "c10d.", "c10d_functional.")


def count_ops(graph_module: Any) -> int:
    """Operations in a graph: its nodes without inputs, attributes and output."""
    return sum(node.op in OPS for node in graph_module.graph.nodes)


def collectives(graph_module: Any) -> list[str]:
    """The collective operations in a graph, in order, with the sizes of what they are given.

    Waiting for one is left out: ranks must agree in what they start, and in which order.
    """
    found = []
    for node in graph_module.graph.nodes:
        name = str(node.target) if node.op == "call_function" else ""
        if name.startswith(_COLLECTIVES) and ".wait_tensor" not in name:
            given: Any = getattr(node.args[0], "meta", {}).get("example_value") if node.args else None
            sizes = ", ".join(map(str, given.shape)) if hasattr(given, "shape") else ""
            found.append(f"{name.removesuffix('.default')}({sizes})")
    return found


def copy_what_dynamo_asks_for(compiler: Any, wrapper: Any) -> None:
    """Give a wrapper what Dynamo asks a backend for, as attributes of its own.

    Not by ``__getattr__``: Dynamo's C++ asks at each call, and would compile a Python ``__getattr__``, and so
    ask again, without end. And Dynamo's own wrapper copies attributes of instances and no others.
    """
    for name in ("get_compiler_config", "reset", "compiler_name"):
        if hasattr(compiler, name):
            setattr(wrapper, name, getattr(compiler, name))


class FirstForms:
    """Compiles the first forms of each frame as ``compiler`` does; graphs of later ones run as traced.

    Args:
        most: how many forms of a frame are compiled.
    """

    def __init__(self, compiler: Callable[..., Any], most: int) -> None:
        self.compiler_fn, self._most = compiler, most  # named as torch's own wrapper names it
        copy_what_dynamo_asks_for(compiler, self)
        if hasattr(compiler, "backend_ctx_ctor"):
            self.backend_ctx_ctor = compiler.backend_ctx_ctor

    def __call__(self, graph_module: Any, example_inputs: Any, **kwargs: Any) -> Callable[..., Any]:
        """As Dynamo calls a backend."""
        if form(compile_id()) < self._most:
            return self.compiler_fn(graph_module, example_inputs, **kwargs)  # type: ignore[no-any-return]
        return graph_module.forward  # type: ignore[no-any-return]


class RegionBackend:
    """Compiles as ``compiler`` does and reports each graph to ``on_region``.

    Args:
        compiler: the backend that does the work.
        identity: what Dynamo must compare when it asks whether two backends are the same one: the
            script's own backend, so that compiling twice shares a cache exactly as without us.
        lifted: whether ``fullgraph=True`` was taken off.
        on_region: told of each compiled graph, its inputs, its number of ops and its collectives; returns
            the slot that counts its runs.
        on_call: makes a context manager for each call of the compiled function.
        on_graph: told before a graph is compiled.
        clock: times the runs, in steps that are sampled.
    """

    def __init__(
        self,
        compiler: Callable[..., Any],
        identity: Any,
        lifted: bool,
        on_region: Callable[[Any, Any, int, list[str]], int],
        on_call: Callable[[], AbstractContextManager[Any]],
        on_graph: Callable[[], None],
        clock: Clock,
    ) -> None:
        self._compiler = compiler
        self._identity = identity
        self.lifted = lifted
        self._on_region = on_region
        self._on_call = on_call
        self._on_graph = on_graph
        self._clock = clock
        self.backend_ctx_ctor = self._around_call
        copy_what_dynamo_asks_for(compiler, self)

    def __call__(self, graph_module: Any, example_inputs: Any, **kwargs: Any) -> Callable[..., Any]:
        """As Dynamo calls a backend."""
        ops = count_ops(graph_module)  # before a backend rewrites the graph
        communicates = collectives(graph_module)
        self._on_graph()
        compiled = self._compiler(graph_module, example_inputs, **kwargs)
        if compiled == graph_module.forward:
            # As the eager backend returns it. Until its code is asked for, this method stands for one that is
            # still to be generated, and calls it the long way round, by nn.Module.__call__. Dynamo would
            # exchange the two, but it sees only the region around it.
            _ = graph_module.code
            compiled = graph_module.forward
        slot = self._on_region(graph_module, example_inputs, ops, communicates)
        clock, counters = self._clock, self._clock.counters

        def region(*args: Any, **call_kwargs: Any) -> Any:
            counters.slots[slot] += 1
            if clock.marks is None:
                return compiled(*args, **call_kwargs)
            return clock.region(slot, compiled, args, call_kwargs)

        return region

    def _around_call(self) -> AbstractContextManager[Any]:
        """What Dynamo enters around each call of the compiled function: ours, and the backend's own."""
        own = getattr(self._compiler, "backend_ctx_ctor", None)
        if own is None:
            return self._on_call()
        stack = ExitStack()
        stack.enter_context(self._on_call())
        stack.enter_context(own())
        return stack

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RegionBackend) and bool(self._identity == other._identity)

    def __hash__(self) -> int:
        return hash(type(self))
