"""The ways out that the catalog names exist in the installed torch, and do what it says of them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from breakscope import catalog
from breakscope.catalog.ways import WAYS

pytestmark = pytest.mark.torch
TORCH = tuple(map(int, torch.__version__.split(".")[:2]))
logger = logging.getLogger("ways")


def version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def is_whole(function: Callable[..., Any]) -> bool:
    """Whether it compiles as one graph. Not by fullgraph=True, which turns on settings that remove breaks."""
    graphs = 0

    def count(graph: Any, _: Any) -> Any:
        nonlocal graphs
        graphs += 1
        return graph.forward

    def with_work(x: torch.Tensor) -> torch.Tensor:
        return function(x + 1) + 1  # before and behind, so that a break makes two graphs

    torch.compile(with_work, backend=count)(torch.ones(3))
    torch._dynamo.reset()
    return graphs == 1


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_a_way_out_has_its_name_since_the_version_that_is_named(way: Any) -> None:
    found: Any = torch
    for part in way.name.partition("(")[0].split(".")[1:]:
        found = getattr(found, part, None)
    assert (found is not None) == (version(way.since) <= TORCH)


def test_a_way_out_is_shown_for_codes_that_exist() -> None:
    assert {code for way in WAYS for code in way.codes} <= {entry.code for entry in catalog.codes()}
    assert "torch._dynamo.nonstrict_trace (torch 2.9 and newer)" in catalog.explain("BS107")


def prints(x: torch.Tensor) -> torch.Tensor:
    print("seen")
    return x * 2


def logs(x: torch.Tensor) -> torch.Tensor:
    logger.warning("seen")
    return x * 2


def reads(x: torch.Tensor) -> torch.Tensor:
    return x * x.sum().item()


def asks_the_clock(x: torch.Tensor) -> torch.Tensor:
    return x * (time.time() > 0)


def test_text_is_written_after_the_graph_or_left_out() -> None:
    with torch._dynamo.config.patch(reorderable_logging_functions=set()):
        assert not is_whole(prints)
    with torch._dynamo.config.patch(reorderable_logging_functions={print}):
        assert is_whole(prints)
    name = "ignore_logging_functions" if version("2.11") <= TORCH else "ignore_logger_methods"
    assert not is_whole(logs)
    with torch._dynamo.config.patch(**{name: {logging.Logger.warning}}):
        assert is_whole(logs)


@pytest.mark.skipif(TORCH < (2, 10), reason="torch 2.10 has it")
def test_text_is_written_inside_of_the_graph(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        torch._higher_order_ops.print("sum {}", x.sum())
        return x * 2

    assert is_whole(f)
    assert "sum" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:Dynamo does not know how to trace")
def test_a_call_that_is_traced_without_dynamo_goes_into_the_graph() -> None:
    traced = torch._dynamo.nonstrict_trace(asks_the_clock)
    assert not is_whole(asks_the_clock)
    assert is_whole(traced)


@pytest.mark.skipif(TORCH < (2, 11), reason="torch 2.11 has it")
@pytest.mark.filterwarnings("ignore:Dynamo does not know how to trace")
@pytest.mark.parametrize("function", [prints, reads, asks_the_clock])
def test_a_leaf_is_one_operation(function: Any) -> None:
    from torch._dynamo.decorators import leaf_function

    @leaf_function
    def leaf(x: torch.Tensor) -> tuple[torch.Tensor]:
        return (function(x),)

    @leaf.register_fake
    def shape(x: torch.Tensor) -> tuple[torch.Tensor]:
        return (torch.empty_like(x),)

    assert not is_whole(function)
    assert is_whole(lambda x: leaf(x)[0])


@pytest.mark.parametrize(("setting", "recompiles"), [({}, 3), ({"force_parameter_static_shapes": False}, 1)])
def test_sizes_of_parameters_may_become_dynamic(setting: dict[str, bool], recompiles: int) -> None:
    weights = [torch.nn.Parameter(torch.ones(size)) for size in (3, 4, 5, 6)]
    compiles = 0

    def count(graph: Any, _: Any) -> Any:
        nonlocal compiles
        compiles += 1
        return graph.forward

    with torch._dynamo.config.patch(**setting):
        compiled = torch.compile(lambda weight: weight * 2, backend=count)
        for weight in weights:
            compiled(weight)
    assert compiles - 1 == recompiles


def test_nothing_new_is_compiled_where_the_stance_says_so() -> None:
    compiled = torch.compile(lambda x: x * 2, backend="eager", dynamic=False)
    compiled(torch.ones(3))
    before = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    with torch.compiler.set_stance("eager_on_recompile"):
        assert compiled(torch.ones(4)).shape == (4,)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == before
