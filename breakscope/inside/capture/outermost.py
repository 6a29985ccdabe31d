"""``--compile auto``: compiling every outermost ``nn.Module`` call of a script that compiles nothing.

``nn.Module`` asks itself for ``_compiled_call_impl`` at every call; ``nn.Module.compile()`` sets it
on one instance. Where a module has none, its call asks us (:func:`compat.answer_module_calls`), and gets
the compiled call where it is an outermost one. No module and no class is changed: an attribute of ours on
``nn.Module`` would be in Dynamo's guards, and takes from them what lets them skip whole modules.
"""

from __future__ import annotations

import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch.compiler
import torch.jit
from torch.nn.utils.parametrize import ParametrizationList

from breakscope.report.owners import owner_of


class OutermostCall:
    """Knows which calls of modules are outermost ones.

    Args:
        in_backward: whether autograd is running: a module called there is one that activation
            checkpointing calls again.
        wants: whether breakscope compiles at all at this moment (the script may compile by itself).
        skips: whether Dynamo refuses to compile a function as a frame of its own: torch's own
            modules, such as a whole network that is one ``nn.Sequential``.
        compile_call: gives the compiled form of a ``_call_impl`` function.
        on_call: told of each outermost call before it happens; on_return: told when it is over.
        on_left: told of each outermost call of a module that is left alone, for it holds nothing.
    """

    def __init__(
        self,
        in_backward: Callable[[], bool],
        wants: Callable[[], bool],
        skips: Callable[[Any], bool],
        compile_call: Callable[[Any], Callable[..., Any]],
        on_call: Callable[[Any], None],
        on_left: Callable[[Any], None] = lambda _module: None,
        on_return: Callable[[], None] = lambda: None,
    ) -> None:
        self._in_backward = in_backward
        self._wants = wants
        self._skips = skips
        self._compile_call = compile_call
        self._on_call = on_call
        self._on_left = on_left
        self._on_return = on_return
        self._inside = threading.local()
        self._compiled: dict[Any, Callable[..., Any]] = {}
        self._skipped: dict[type, bool] = {}  # asking Dynamo's rules takes 0.1 ms
        self._wrapped: weakref.WeakKeyDictionary[Any, Callable[..., Any]] = weakref.WeakKeyDictionary()

    def answer(self, module: Any) -> Callable[..., Any] | None:
        """What ``module`` is to call instead of its ``_call_impl``; None if that is right."""
        if getattr(self._inside, "yes", False) or module._compiled_call_impl is not None:
            return None
        # TorchScript has compiled its modules already, and keeps no Python behind their calls.
        if isinstance(module, torch.jit.ScriptModule):
            return None
        # Reading a weight that is parametrized calls one: an initializer's reads are no steps of a model.
        if isinstance(module, ParametrizationList):
            return None
        if not self._wants() or self._in_backward() or _is_traced():
            return None
        if not _holds_something(module):
            self._on_left(module)
            return None
        return _Call(self, module)

    def run(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call ``module``, compiled, with everything inside it left to Dynamo."""
        self._on_call(module)
        compiled = self._compiled_for(module)
        self._inside.yes = True
        try:
            return compiled(module, *args, **kwargs)
        finally:
            self._inside.yes = False
            self._on_return()

    @property
    def under_way(self) -> bool:
        """Whether this thread is in an outermost call."""
        return bool(getattr(self._inside, "yes", False))

    @contextmanager
    def inside(self) -> Iterator[None]:
        """As in an outermost call: for who makes the compiled call again, and not by way of its module."""
        self._inside.yes = True
        try:
            yield
        finally:
            self._inside.yes = False

    def pin(self, modules: Iterable[Any]) -> None:
        """Answer from these modules, as ``nn.Module.compile()`` does.

        Nobody need ask us any more: a call of each nested module is cheaper by half a microsecond.
        """
        for module in modules:
            module._compiled_call_impl = self._pinned(module)
        self._on_call = lambda _module: None  # all that can still come are known

    def _pinned(self, module: Any) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if getattr(self._inside, "yes", False) or self._in_backward() or _is_traced():
                return module._call_impl(*args, **kwargs)
            return self.run(module, args, kwargs)

        return call

    def _compiled_for(self, module: Any) -> Callable[..., Any]:
        kind = type(module)
        skipped = self._skipped.get(kind)
        if skipped is None:
            skipped = self._skipped[kind] = self._skips(kind.forward)
        if skipped:
            # As torch.compile does for these, the call is wrapped in a function that Dynamo takes.
            # One for each module: several share their class's code, and would share its cache.
            if module not in self._wrapped:
                self._wrapped[module] = self._compile_call(_wrapper_at_call_site(type(module).__name__))
            return self._wrapped[module]
        function = kind._call_impl
        if function not in self._compiled:
            self._compiled[function] = self._compile_call(function)
        return self._compiled[function]


def _call(self: Any, *args: Any, **kwargs: Any) -> Any:
    return self._call_impl(*args, **kwargs)


def _wrapper_at_call_site(name: str) -> Callable[..., Any]:
    """A function that calls a module, with the name and the place of the script's call of it.

    Dynamo shows this place in its records; it is what the user would look for.
    """
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and (
        frame.f_code.co_filename == __file__ or owner_of(frame.f_code.co_filename, ()) == "torch"
    ):
        frame = frame.f_back
    if frame is None:
        return _call
    code = _call.__code__.replace(
        co_filename=frame.f_code.co_filename,
        co_firstlineno=frame.f_lineno,
        co_name=name,
        co_qualname=name,
        co_linetable=_all_at(frame, len(_call.__code__.co_code) // 2),
    )
    return types.FunctionType(code, frame.f_globals)


def _all_at(frame: types.FrameType, units: int) -> bytes:
    """A line table for code of so many instructions, all at the expression that a frame is at."""
    # Kinds 14 (lines and columns) and 13 (a line alone) of CPython's Objects/locations.md.
    kind, where = 13, [0]
    match list(frame.f_code.co_positions())[frame.f_lasti // 2]:
        case (int(line), int(end_line), int(column), int(end_column)) if line == frame.f_lineno:
            kind = 14
            where += [*_number(end_line - line), *_number(column + 1), *_number(end_column + 1)]
    lengths = [8] * (units // 8) + [units % 8] * (units % 8 > 0)
    return b"".join(bytes([0x80 | kind << 3 | length - 1, *where]) for length in lengths)


def _number(value: int) -> Iterator[int]:
    """A whole number in pieces of six bits, the lowest first. 0 is the same with a sign and without."""
    while value > 63:
        yield 64 | value & 63
        value >>= 6
    yield value


def _is_traced() -> bool:
    """Whether somebody else is reading what the call does: torch.jit.trace, torch.export or torch.fx.

    Compiled code is none of theirs: ``torch.jit.trace`` raises where it meets some, and TensorBoard's
    ``add_graph`` with it.
    """
    return bool(torch.jit.is_tracing()) or torch.compiler.is_exporting()


class _Call:
    """One outermost call about to happen."""

    __slots__ = ("_module", "_outermost")

    def __init__(self, outermost: OutermostCall, module: Any) -> None:
        self._outermost = outermost
        self._module = module

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._outermost.run(self._module, args, kwargs)


def _holds_something(module: Any) -> bool:
    # A loss or an activation is not what anybody means by "the model".
    return bool(module._modules) or any(parameter is not None for parameter in module._parameters.values())
