"""A capture inside the calling process, for :func:`breakscope.explain` and :mod:`breakscope.testing`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from breakscope.inside import torch_api
from breakscope.inside.capture import dynamo
from breakscope.inside.capture.agent import Agent
from breakscope.inside.events import Counters, Event, EventList
from breakscope.inside.settings import Settings
from breakscope.inside.torch_api.hooks import forget_everything


def capture(
    function: Callable[..., Any],
    drive: Callable[[Callable[..., Any]], object],
    *,
    backend: str | Callable[..., Any],
    fullgraph: bool,
    dynamic: bool | None,
) -> tuple[list[Event], Sequence[int]]:
    """Compile a function and have it called with every hook in place; return the events and counting slots.

    The hooks are out again afterwards, also if the function raises, and Dynamo's caches are reset
    before and after: compiled code that counts must not stay behind.

    Args:
        drive: gets the compiled function and calls it as often as it likes.
    """
    forget_everything()
    sink, counters = EventList(), Counters.in_memory()
    settings = Settings(compile="script", backend="as-script", keep_fullgraph=True, roots=(str(Path.cwd()),))
    agent = Agent(settings, sink, counters)
    agent.start_event()
    hooks = dynamo.TorchHooks(agent)
    try:
        with _unheard():
            hooks.install()
            hooks.install_dynamo()
            inner = getattr(function, "_torchdynamo_orig_callable", function)
            drive(torch.compile(inner, backend=backend, fullgraph=fullgraph, dynamic=dynamic))
            hooks.finish()
            agent.clock.finish()
    finally:
        hooks.uninstall()
        forget_everything()
    return sink.events, counters.slots


@contextmanager
def _unheard() -> Iterator[None]:
    """Keep the trace records, which only our hooks want, from handlers that the process has on their logger.

    pytest puts its own on every logger that does not propagate, and would show hundreds of records with each
    test that fails.
    """
    log: Any = torch_api.get("trace_log")
    if log is torch_api.MISSING:
        yield
        return
    name = log.name

    def is_another(record: logging.LogRecord) -> bool:
        return bool(record.name != name)

    others = [one for one in log.handlers if not type(one).__module__.startswith("torch.")]
    for handler in others:
        handler.addFilter(is_another)
    try:
        yield
    finally:
        for handler in others:
            handler.removeFilter(is_another)
