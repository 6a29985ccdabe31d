"""What ``torch._dynamo.optimize`` returns, and makes of a function: the same for scans and benchmarks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


class OptimizeContext:
    """Stands for the context that ``torch._dynamo.optimize`` returned.

    It is applied to a function or a module (``torch.compile``), or entered.

    Args:
        real: the context itself.
        compile_: is asked instead of it to compile something.
    """

    def __init__(self, real: Any, compile_: Callable[[Any], Any]) -> None:
        self._real = real
        self._compile = compile_

    def __call__(self, function: Any) -> Any:
        return self._compile(function)

    def __enter__(self) -> Any:
        return self._real.__enter__()

    def __exit__(self, *error: object) -> Any:
        return self._real.__exit__(*error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def module_of(function: Any) -> torch.nn.Module | None:
    """The module that is compiled: itself, or that of a bound method."""
    for owner in (function, getattr(function, "__self__", None)):
        if isinstance(owner, torch.nn.Module):
            return owner
    return None


def with_calls_wrapped(function: Any, compiled: Any, wrap: Callable[[Any], Any]) -> Any:
    """The compiled form of a function, or a module whose calls go through ``wrap``."""
    if not isinstance(compiled, torch.nn.Module):
        return wrap(compiled) if callable(compiled) else compiled
    # OptimizedModule calls its own forward; a module that was not compiled is called through the class.
    name = "forward" if compiled is not function else "_call_impl"
    object.__setattr__(compiled, name, wrap(getattr(compiled, name)))
    return compiled
