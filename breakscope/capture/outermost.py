"""``--compile auto``: compiling every outermost ``nn.Module`` call of a script that compiles nothing.

``nn.Module`` asks itself for ``_compiled_call_impl`` at every call; ``nn.Module.compile()`` sets it
on one instance. The descriptor below answers for all instances, from the class: with the compiled
call where the call is an outermost one, and with None otherwise. So no module is changed, and Dynamo,
which reads the attribute while it traces, sees what it would see without us.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import torch.compiler


class OutermostCall:
    """Stands at ``nn.Module._compiled_call_impl``.

    Args:
        in_backward: whether autograd is running: a module called there is one that activation
            checkpointing calls again.
        wants: whether breakscope compiles at all at this moment (the script may compile by itself).
        compile_call: gives the compiled form of a ``_call_impl`` function.
        on_call: told of each outermost call before it happens.
        caller: the code of ``nn.Module._wrapped_call_impl``, the only one that is answered.
    """

    def __init__(
        self,
        in_backward: Callable[[], bool],
        wants: Callable[[], bool],
        compile_call: Callable[[Any], Callable[..., Any]],
        on_call: Callable[[Any], None],
        caller: Any,
    ) -> None:
        self._in_backward = in_backward
        self._wants = wants
        self._compile_call = compile_call
        self._on_call = on_call
        self._caller = caller
        self._inside = threading.local()
        self._compiled: dict[Any, Callable[..., Any]] = {}

    def __get__(self, module: Any, owner: type | None = None) -> Callable[..., Any] | None:
        # Dynamo folds is_compiling() into a constant: the rest disappears from what it traces.
        if module is None or torch.compiler.is_compiling() or getattr(self._inside, "yes", False):
            return None
        if sys._getframe(1).f_code is not self._caller:
            return None
        if not self._wants() or not _holds_something(module) or self._in_backward():
            return None
        return _Call(self, module)

    def run(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call ``module``, compiled, with everything inside it left to Dynamo."""
        self._on_call(module)
        function = type(module)._call_impl
        compiled = self._compiled.get(function)
        if compiled is None:
            compiled = self._compiled[function] = self._compile_call(function)
        self._inside.yes = True
        try:
            return compiled(module, *args, **kwargs)
        finally:
            self._inside.yes = False


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
