"""An eager arm's hook leaves the class before steps are timed, and still finds every outermost call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from breakscope.inside.capture.outermost import OutermostCall
from breakscope.inside.torch_api.hooks import answer_module_calls

pytestmark = pytest.mark.torch


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)


def test_a_pinned_module_is_found_when_it_is_outermost_and_only_then() -> None:
    seen: list[str] = []
    asked: list[Any] = []

    def told(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(module: Any, *args: Any, **kwargs: Any) -> Any:
            seen.append(type(module).__name__)
            return function(module, *args, **kwargs)

        return call

    outermost = OutermostCall(
        in_backward=lambda: False,
        wants=lambda: True,
        skips=lambda function: asked.append(function) is not None,
        compile_call=told,
        on_call=lambda _module: None,
    )
    before = torch.nn.Module._wrapped_call_impl.__code__
    release = answer_module_calls(outermost.answer)
    try:
        x, net, late = torch.ones(1, 2), Net(), Net()
        net(x)
        net.inner(x)
        assert seen == ["Net", "Linear"]
        outermost.pin([net, net.inner])
    finally:
        release()
    assert torch.nn.Module._wrapped_call_impl.__code__ is before
    net(x)  # its inner one, which is pinned as well, is not outermost now
    net.inner(x)
    late(x)  # was never called before
    assert seen == ["Net", "Linear", "Net", "Linear"]
    assert asked == [Net.forward, torch.nn.Linear.forward]  # once for each class: Dynamo's rules take long


def test_a_call_that_is_made_again_has_no_other_inside_it() -> None:
    found: list[Any] = []
    outermost = OutermostCall(
        in_backward=lambda: False,
        wants=lambda: True,
        skips=lambda _function: False,
        compile_call=lambda function: function,
        on_call=found.append,
    )
    release = answer_module_calls(outermost.answer)
    try:
        net = Net()
        with outermost.inside():
            net._call_impl(torch.ones(1, 2))
        assert found == []
        net._call_impl(torch.ones(1, 2))
        assert [type(module).__name__ for module in found] == ["Linear"]
    finally:
        release()
