"""A capture inside the calling process, for :func:`breakscope.explain`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from breakscope.capture import compat, dynamo
from breakscope.capture.agent import Agent
from breakscope.capture.events import Counters, Event, EventList
from breakscope.capture.settings import Settings


def capture(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    backend: str | Callable[..., Any],
    fullgraph: bool,
    dynamic: bool | None,
) -> tuple[list[Event], Sequence[int]]:
    """Call a function, compiled, with every hook in place; return the events and the counting slots.

    The hooks are out again afterwards, also if the function raises, and Dynamo's caches are reset
    before and after: compiled code that counts must not stay behind.
    """
    compat.forget_everything()
    sink, counters = EventList(), Counters.in_memory()
    settings = Settings(compile="script", backend="as-script", keep_fullgraph=True, roots=(str(Path.cwd()),))
    agent = Agent(settings, sink, counters)
    agent.start_event()
    hooks = dynamo.TorchHooks(agent)
    try:
        hooks.install()
        hooks.install_dynamo()
        inner = getattr(function, "_torchdynamo_orig_callable", function)
        torch.compile(inner, backend=backend, fullgraph=fullgraph, dynamic=dynamic)(*args, **kwargs)
        hooks.finish()
    finally:
        hooks.uninstall()
        compat.forget_everything()
    return sink.events, counters.slots
