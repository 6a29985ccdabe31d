"""The leaves of a result, and what of them can be held against another run's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from breakscope.inside.capture.compare_outputs import compare
from breakscope.inside.tensors import flatten

pytestmark = pytest.mark.torch


class Wrapper(torch.Tensor):
    """Computes with a tensor that it holds, without ``__tensor_flatten__``."""

    @staticmethod
    def __new__(cls, inner: torch.Tensor, **_: Any) -> Wrapper:
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner: torch.Tensor, *, hidden: bool = False) -> None:
        self.inner: Any = [inner] if hidden else inner

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError


def compared(folder: Path, one: Any, other: Any) -> dict[str, Any]:
    for name, value in (("before", one), ("after", other)):
        (folder / name).mkdir()
        torch.save(list(flatten(value)), folder / name / "0.pt")
    return compare(folder / "before", folder / "after")


def test_a_wrapper_is_compared_by_what_it_holds(tmp_path: Path) -> None:
    same = compared(tmp_path, Wrapper(torch.ones(2)), Wrapper(torch.ones(2)))
    assert same["bitwise"]
    assert same["tensors"] == 1
    (tmp_path / "second").mkdir()
    other = compared(tmp_path / "second", Wrapper(torch.ones(2)), Wrapper(torch.tensor([1.0, 2.0])))
    assert other["max_abs"] == 1.0


def test_a_wrapper_that_hides_its_values_is_equal_to_none(tmp_path: Path) -> None:
    found = compared(tmp_path, Wrapper(torch.ones(2), hidden=True), Wrapper(torch.ones(2), hidden=True))
    assert not found["bitwise"]
    assert found["differences"] == ["call 0, result: Wrapper (2,), whose values cannot be seen"]


def test_what_a_tensor_wraps_is_kept_for_the_comparison_and_can_be_loaded(tmp_path: Path) -> None:
    two_tensor = pytest.importorskip("torch.testing._internal.two_tensor")
    leaves = list(flatten([two_tensor.TwoTensor(torch.ones(2), torch.zeros(2))]))
    torch.save(leaves, tmp_path / "kept.pt")
    loaded = torch.load(tmp_path / "kept.pt", weights_only=True)
    assert [path for path, _ in loaded] == ["[0]", "[0].a", "[0].b"]
    assert loaded[0][1] == "TwoTensor (2,)"
    assert torch.equal(loaded[1][1], torch.ones(2))
    assert torch.equal(loaded[2][1], torch.zeros(2))
