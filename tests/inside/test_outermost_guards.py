"""``--compile auto`` leaves Dynamo the guards that it would have without us, and torch's code its places."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
import torch._logging

from breakscope.inside.capture.outermost import OutermostCall
from breakscope.inside.capture.recode import asking_first
from breakscope.inside.torch_api.hooks import answer_module_calls

pytestmark = pytest.mark.torch


class Block(torch.nn.Module):
    """Like a layer of transformers: its own ``__call__`` has Dynamo inline the one of ``nn.Module``."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(2, 2)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(*args, **kwargs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x).relu()


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block() for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return x


@contextmanager
def answering() -> Iterator[list[str]]:
    """Every outermost call compiled as breakscope does it; gives their modules' names."""
    seen: list[str] = []
    outermost = OutermostCall(
        in_backward=lambda: False,
        wants=lambda: True,
        skips=lambda _function: False,
        compile_call=lambda function: torch.compile(function, backend="eager"),
        on_call=lambda module: seen.append(type(module).__name__),
    )
    release = answer_module_calls(outermost.answer)
    try:
        yield seen
    finally:
        release()


def guards(call: Callable[[], object]) -> list[str]:
    """What Dynamo guards, as its own log has it."""
    told: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append(record.getMessage())

    log, handler = logging.getLogger("torch._dynamo.guards.__guards"), Handler()
    torch._logging.set_logs(guards=True)
    propagates, log.propagate = log.propagate, False
    log.addHandler(handler)
    torch._dynamo.reset()
    try:
        call()
    finally:
        log.removeHandler(handler)
        log.propagate = propagates
        torch._logging.set_logs()
        torch._dynamo.reset()
    return re.sub(r"\d{5,}", "N", "\n".join(told)).splitlines()


def about_the_model(lines: list[str]) -> set[str]:
    """Lines of the model's own guards, without what first asked for each, which may be another line."""
    return {line.lstrip("| +-").partition("  #")[0] for line in lines if "L['self']" in line}


def test_guards_are_those_of_compiling_the_module() -> None:
    x = torch.ones(1, 2)
    compiled = Net()
    compiled.compile(backend="eager")
    theirs = guards(lambda: compiled(x))
    with answering() as seen:
        net = Net()
        ours = guards(lambda: net(x))
    assert seen == ["Net"]
    assert len(about_the_model(theirs)) > 30
    assert about_the_model(ours) == about_the_model(theirs)
    assert "breakscope" not in "\n".join(ours)
    # Beside them, Dynamo makes sure that is_compiling() is what it was: once, not for every module.
    assert abs(len(ours) - len(theirs)) <= 6


def test_nested_calls_between_graphs_and_compiled_modules_are_no_outermost_ones() -> None:
    with answering() as seen:
        net = Net()
        net(torch.ones(1, 2))
        net.blocks[0](torch.ones(1, 2))
        net.compile(backend="eager")
        net(torch.ones(1, 2))  # the user's own choice
    assert seen == ["Net", "Block"]
    net.blocks[0](torch.ones(1, 2))
    assert seen == ["Net", "Block"]


def test_torchs_statements_keep_their_places() -> None:
    function = torch.nn.Module._wrapped_call_impl
    before = function.__code__
    code = asking_first(function, "nobody")
    assert (code.co_filename, code.co_firstlineno) == (before.co_filename, before.co_firstlineno)
    assert code.co_qualname == before.co_qualname
    assert set(before.co_positions()) <= set(code.co_positions())
    assert function.__code__ is before


def test_a_method_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Net\.forward takes other arguments"):
        asking_first(Net.forward, "nobody")
