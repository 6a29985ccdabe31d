"""A call is made again with inputs that stand in the same relations, and outputs outlive the next call."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from breakscope.inside.bench.ambient import Ambient
from breakscope.inside.bench.copies import Repeated, copied, fresh
from breakscope.inside.bench.held import Held

pytestmark = pytest.mark.torch


def memory(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def test_what_was_one_tensor_stays_one() -> None:
    x = torch.randn(4, 8)
    (first,), others = fresh(((x,), {"x": x, "n": 3, "name": "x"}))
    assert first is others["x"]
    assert torch.equal(first, x)
    assert memory(first) != memory(x)
    assert (others["n"], others["name"]) == (3, "x")


def test_what_shared_memory_shares_it() -> None:
    x = torch.randn(4, 8)
    views = {"rows": x[1:3], "turned": x.t(), "numbers": x.view(torch.int32)}
    made = fresh(views)
    assert {memory(view) for view in made.values()} == {memory(made["rows"])}
    assert memory(made["rows"]) != memory(x)
    for name, view in views.items():
        assert torch.equal(made[name], view)
        assert made[name].stride() == view.stride()
        assert made[name].dtype == view.dtype
    made["rows"].fill_(7.0)
    assert made["turned"].t()[1:3].eq(7.0).all()
    assert not x.eq(7.0).any()


def test_alignment_is_kept() -> None:
    """Kernels are chosen by it: another alignment would be another compile."""
    x = torch.randn(100)
    one, two = fresh((x[5:9], x[8:12]))
    assert [part.data_ptr() % 16 for part in (one, two)] == [
        part.data_ptr() % 16 for part in (x[5:9], x[8:12])
    ]


def test_a_huge_storage_is_not_copied_for_two_small_views() -> None:
    data = torch.randn(1000, 1000)
    one, two = fresh((data[0], data[-1]))
    assert torch.equal(one, data[0])
    assert torch.equal(two, data[-1])
    assert one.untyped_storage().nbytes() == 4000


@pytest.mark.parametrize("function", [fresh, copied])
def test_gradients_and_inference_tensors_are_what_they_were(function: type) -> None:
    wanted = torch.randn(2, requires_grad=True)
    with torch.inference_mode():
        inference = torch.randn(2)
    for _mode in ("now", "no_grad", "inference"):
        context = {"now": torch.enable_grad, "no_grad": torch.no_grad, "inference": torch.inference_mode}[
            _mode
        ]
        with context():
            made, other, empty = function((wanted, inference, torch.empty(0)))
        assert made.requires_grad
        assert made.is_leaf
        assert not made.is_inference()
        assert other.is_inference()
        assert empty.numel() == 0


@dataclass
class Result(OrderedDict):  # type: ignore[type-arg]
    """As results of transformers are: a dict and a dataclass at once."""

    out: torch.Tensor
    past: tuple[torch.Tensor, ...] | None = None

    def __post_init__(self) -> None:
        super().__setitem__("out", self.out)
        super().__setitem__("past", self.past)

    def __setitem__(self, key: str, value: object) -> None:
        super().__setitem__(key, value)
        setattr(self, key, value)


def test_outputs_are_copied_in_whatever_holds_them() -> None:
    x, y = torch.randn(3), torch.randn(3)
    with torch.no_grad():
        result = copied(Result(x, (y, y)))
        pair, mapping = copied(([x, None], {"y": y, "n": 1}))
        assert copied("text") == "text"
    assert type(result) is Result
    assert [torch.equal(result.out, x), torch.equal(result["past"][0], y)] == [True, True]
    made = [result.out, result["out"], *result["past"], *result.past, pair[0], mapping["y"]]
    assert not {memory(one) for one in made} & {memory(x), memory(y)}
    assert pair[1] is None
    assert mapping["n"] == 1


def test_modes_are_found_again() -> None:
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        modes = Ambient.now()
    with modes.entered():
        assert not torch.is_grad_enabled()
        assert torch.get_autocast_dtype("cpu") == torch.bfloat16
        assert torch.is_autocast_enabled("cpu")
    assert torch.is_grad_enabled()


@pytest.mark.parametrize(
    "value",
    [
        torch.arange(24.0).view(4, 6)[:, 0],
        torch.arange(24.0).view(2, 3, 4)[:, 1:, ::2],
        torch.arange(3.0).expand(4, 3),
        torch.arange(3.0)[:, None].expand(3, 4),
        torch.arange(6.0).view(2, 3).t(),
        torch.ones(0, 3)[:, 1:],
    ],
)
def test_a_copy_of_a_slice_has_its_strides(value: torch.Tensor) -> None:
    copy = fresh((value,))[0]
    assert copy.stride() == value.stride()
    assert torch.equal(copy, value)
    assert copy.untyped_storage().data_ptr() != value.untyped_storage().data_ptr() or not value.numel()


def test_windows_that_overlap_are_copied_by_value() -> None:
    windows = torch.arange(6.0).unfold(0, 3, 1)
    assert torch.equal(fresh((windows,))[0], windows)


def test_an_object_that_holds_tensors_is_copied_as_a_whole() -> None:
    class Cache:
        def __init__(self) -> None:
            self.layers = [{"keys": torch.ones(2)}]
            self.net = torch.nn.Linear(2, 2)

    cache, net, text = Cache(), torch.nn.Linear(2, 2), "text"
    (one, module, word), again = fresh(((cache, net, text), {"cache": cache}))
    assert one is again["cache"]
    assert one is not cache
    assert one.net is cache.net
    one.layers[0]["keys"].fill_(0.0)
    assert cache.layers[0]["keys"].eq(1.0).all()
    assert (module, word) == (net, text)


def test_an_object_that_cannot_be_copied_stays_itself() -> None:
    class Stubborn:
        def __init__(self) -> None:
            self.tensor = torch.ones(2)

        def __deepcopy__(self, _memo: Any) -> Any:
            raise RuntimeError("there is only one of me")

    one = Stubborn()
    assert fresh((one,))[0] is one


# ---- nothing is copied that nobody looks at again ----


def steps(loop: Callable[[Callable[[Any], torch.Tensor]], None]) -> Held:
    """What a loop of the script's does with outputs; the call gives a new tensor each time."""
    held = Held()

    def call(x: Any) -> torch.Tensor:
        held.calling((x,))
        result = torch.zeros(2)
        held.returned(result)
        return result

    loop(call)
    return held


def test_a_loop_lets_go_of_an_output_when_it_has_the_next() -> None:
    def loop(call: Callable[[Any], torch.Tensor]) -> None:
        for _ in range(4):
            out = call(torch.ones(2))
        assert out.sum() == 0

    assert steps(loop).let_go


def test_a_list_of_outputs_keeps_them() -> None:
    kept: list[torch.Tensor] = []
    assert not steps(lambda call: kept.extend(call(torch.ones(2)) for _ in range(4))).let_go


def test_an_output_that_is_the_next_input_is_read_again() -> None:
    def loop(call: Callable[[Any], torch.Tensor]) -> None:
        state = torch.ones(2)
        for _ in range(4):
            state = call(state)

    assert not steps(loop).let_go


def test_after_one_step_nothing_is_known() -> None:
    def loop(call: Callable[[Any], torch.Tensor]) -> None:
        call(torch.ones(2))

    assert not steps(loop).let_go


def test_the_same_inputs_are_used_again_while_the_call_leaves_them_alone() -> None:
    x = torch.ones(3)
    repeated = Repeated((x, 2), {"name": "x"})
    (first, number), options = repeated.inputs()
    assert (first is not x, number, options) == (True, 2, {"name": "x"})
    assert repeated.inputs()[0][0] is first
    first.add_(1)
    (second, _), _ = repeated.inputs()
    assert second is not first
    assert torch.equal(second, x)


class Cache:
    """Holds a tensor that a call could exchange for another."""

    def __init__(self) -> None:
        self.keys = [torch.ones(2)]


@pytest.mark.parametrize("made", [lambda: torch.ones(2, requires_grad=True), Cache])
def test_inputs_that_a_call_may_change_without_a_write_are_copied_each_time(made: Callable[[], Any]) -> None:
    repeated = Repeated((made(),), {})
    assert repeated.inputs()[0][0] is not repeated.inputs()[0][0]


def test_inputs_of_inference_mode_have_no_count_of_writes() -> None:
    with torch.inference_mode():
        repeated = Repeated((torch.ones(2),), {})
        assert repeated.inputs()[0][0] is not repeated.inputs()[0][0]
