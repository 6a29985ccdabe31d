"""``breakscope.testing.assert_clean`` in this process, on small models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from breakscope.errors import UsageError
from breakscope.testing import assert_clean

pytestmark = pytest.mark.torch


class Clean(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.dropout = torch.nn.Dropout(0.5)
        self.norm = torch.nn.BatchNorm1d(4)

    def forward(self, x: torch.Tensor, scale: float = 1.0) -> dict[str, torch.Tensor]:
        return {"y": self.norm(self.dropout(self.linear(x))) * scale}


def branches(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    if y.sum() > 0:
        y = y * 2
    return y


def allowed(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    if y.sum() > 0:  # breakscope: ignore[BS101] -- an example
        y = y * 2
    return y


def changes_its_input(x: torch.Tensor) -> torch.Tensor:
    return x.add_(1)


def failure(function: Callable[..., Any], inputs: Any, **options: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        assert_clean(function, inputs, **options)
    return str(caught.value)


def test_a_model_in_training_is_clean_and_equal_to_eager() -> None:
    """Dropout draws the same numbers in both runs, and the copy takes the change of the running mean."""
    model = Clean()
    report = assert_clean(model, torch.randn(3, 4))
    assert report.totals.steps == 3
    assert report.totals.regions == 1
    assert model.norm.num_batches_tracked == 3


def test_inputs_in_every_form() -> None:
    x = torch.randn(3, 4)
    for inputs in (x, (x,), {"x": x}, [x], [(x, 2.0), {"x": x, "scale": 2.0}]):
        assert_clean(Clean(), inputs)


def test_the_generators_are_left_where_eager_found_them() -> None:
    torch.manual_seed(3)
    assert_clean(Clean(), torch.ones(2, 4), warmup=0)
    after = torch.rand(1)
    torch.manual_seed(3)
    Clean()(torch.ones(2, 4))
    assert torch.equal(after, torch.rand(1))


def test_a_break_is_shown_with_place_source_cause_and_remedy() -> None:
    text = failure(branches, torch.ones(2))
    assert text.startswith("1 graph break in branches\n")
    line = branches.__code__.co_firstlineno + 2
    assert f"test_testing.py:{line}:8  branches" in text
    assert "       if y.sum() > 0:\n          ^^^^^^^^^^^" in text
    assert "reason   Data-dependent branching" in text
    assert "do this  Write in place of the branch `y = torch.where(y.sum() > 0" in text


def test_what_is_allowed_and_what_a_comment_leaves_out_is_no_failure() -> None:
    assert_clean(branches, torch.ones(2), allow=["BS101"])
    assert_clean(branches, torch.ones(2), allow="BS1")
    assert "BS101" in failure(branches, torch.ones(2), allow=["BS104"])
    assert_clean(allowed, torch.ones(2))
    assert "BS101" in failure(allowed, torch.ones(2), suppress=False)


def test_recompiles_count_after_the_warm_up() -> None:
    sizes = [torch.ones(rows, 4) for rows in (2, 3, 4)]
    assert_clean(Clean(), sizes)
    assert assert_clean(Clean(), sizes, warmup=2).totals.recompiles == 1
    text = failure(Clean(), sizes, warmup=1)
    assert text.startswith("Clean after 1 warm-up call: 1 recompile, at most 0 allowed")
    assert "x dim 0: 2 -> 3" in text
    assert_clean(Clean(), sizes, warmup=0, max_recompiles=1)
    assert_clean(Clean(), sizes, warmup=0, dynamic=True)


def test_something_must_have_been_compiled() -> None:
    assert failure(lambda x: x, (1,)).startswith("nothing was compiled: no graph came of ")


def test_another_result_than_that_of_eager_is_named() -> None:
    def wrong(graph: torch.fx.GraphModule, _: list[torch.Tensor]) -> Callable[..., Any]:
        return lambda *args: tuple(out + 1 for out in graph(*args))

    text = failure(Clean().eval(), torch.ones(2, 4), backend=wrong)
    assert text.startswith(
        "Clean computes something else when compiled\ncall 0: result['y']: Tensor-likes are not close!"
    )
    assert_clean(Clean().eval(), torch.ones(2, 4), backend=wrong, rtol=0, atol=2)
    assert_clean(Clean().eval(), torch.ones(2, 4), backend=wrong, compare=False)


def test_inputs_that_are_changed_in_place_are_compared_fairly() -> None:
    x = torch.zeros(2)
    assert_clean(changes_its_input, x, warmup=1)
    assert x.tolist() == [2.0, 2.0]


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # torch looks at it itself
def test_an_input_that_needs_gradients() -> None:
    x = torch.ones(2, 4, requires_grad=True) * 2  # not a leaf: deepcopy() would refuse it
    assert_clean(Clean(), x)


def test_the_models_own_errors_pass_through() -> None:
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        assert_clean(Clean(), torch.ones(2, 5))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"allow": ["BS9999"]}, "'BS9999' is no code"),
        ({"warmup": -1}, "numbers from 0"),
        ({"inputs": []}, "nothing to call with"),
    ],
)
def test_arguments_that_make_no_sense(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        assert_clean(Clean(), **{"inputs": torch.ones(2, 4), **options})


def test_what_cannot_be_copied_is_said() -> None:
    model = Clean()
    model.handle = open(__file__)  # type: ignore[assignment] # noqa: SIM115
    with pytest.raises(
        UsageError, match=r"a Clean cannot be copied, to compare with eager .*: pass compare=False"
    ):
        assert_clean(model, torch.ones(2, 4))
    assert_clean(model, torch.ones(2, 4), compare=False)
    model.handle.close()  # type: ignore[operator]
