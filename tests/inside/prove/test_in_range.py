"""What would end all computation on a GPU raises before it gets there; tried with what the CPU refuses as well."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")
from torch.nn import functional as F  # noqa: E402, N812

from breakscope.inside.prove.in_range import InRange, OutOfRangeError, stops  # noqa: E402

pytestmark = pytest.mark.torch

ROWS = torch.arange(12.0).reshape(4, 3) / 12
FAR, BELOW = torch.tensor([0, 4]), torch.tensor([-5])
MASK = torch.tensor([[True, False, True], [False, True, False]])

OUT: dict[str, Callable[[], object]] = {
    "embedding": lambda: F.embedding(FAR, ROWS),
    "embedding, negative": lambda: F.embedding(torch.tensor([-1]), ROWS),
    "embedding_bag": lambda: F.embedding_bag(FAR, ROWS, torch.tensor([0])),
    "index": lambda: ROWS[FAR],
    "index, second dimension": lambda: ROWS[:, torch.tensor([3])],
    "index, below": lambda: ROWS[BELOW],
    "index behind a mask": lambda: torch.zeros(2, 3, 4)[MASK, torch.tensor([1, 2, 5])],
    "index_put_": lambda: ROWS.clone().__setitem__(FAR, 0.0),
    "index_select": lambda: ROWS.index_select(0, FAR),
    "index_add": lambda: ROWS.index_add(0, FAR, torch.ones(2, 3)),
    "index_fill": lambda: ROWS.index_fill(0, FAR, 1.0),
    "gather": lambda: ROWS.gather(0, FAR[:, None]),
    "scatter": lambda: ROWS.scatter(0, FAR[:, None], 0.0),
    "scatter_add": lambda: ROWS.scatter_add(0, FAR[:, None], torch.ones(2, 1)),
    "take": lambda: ROWS.take(torch.tensor([12])),
    "cross_entropy": lambda: F.cross_entropy(ROWS, torch.tensor([0, 1, 2, 3])),
    "cross_entropy of pictures": lambda: F.cross_entropy(torch.ones(1, 3, 2, 2), torch.full((1, 2, 2), 7)),
    "multinomial": lambda: torch.multinomial(ROWS - 1, 1),
    "multinomial of zeros": lambda: torch.multinomial(torch.zeros(3), 1),
    "bernoulli": lambda: torch.bernoulli(ROWS + 1),
    "bernoulli_": lambda: torch.zeros(4, 3).bernoulli_(ROWS + 1),
    "binary_cross_entropy": lambda: F.binary_cross_entropy(ROWS + 1, ROWS),
    "_assert_async": lambda: torch._assert_async(torch.tensor(False)),
}
WITHIN: dict[str, Callable[[], object]] = {
    "embedding": lambda: F.embedding(torch.tensor([0, 3]), ROWS),
    "index from the end": lambda: ROWS[torch.tensor([-1])],
    "mask": lambda: ROWS[ROWS > 0.5],
    "index behind a mask": lambda: torch.zeros(2, 3, 4)[MASK, torch.tensor([1, 2, 3])],
    "scatter into a number": lambda: torch.zeros(()).scatter(0, torch.tensor(0), 2.0),
    "cross_entropy with what it ignores": lambda: F.cross_entropy(ROWS, torch.tensor([0, -100, 2, 1])),
    "cross_entropy of one": lambda: F.cross_entropy(ROWS[0], torch.tensor(2)),
    "multinomial": lambda: torch.multinomial(ROWS + 1, 2),
    "bernoulli_ over what is no share": lambda: torch.full((4,), 7.0).bernoulli_(0.5),
    "binary_cross_entropy": lambda: F.binary_cross_entropy(ROWS, ROWS),
    "dropout": lambda: F.dropout(ROWS, 0.5),
    "one_hot": lambda: F.one_hot(torch.tensor([0, 1]), 3),
}


@pytest.mark.parametrize("name", OUT)
def test_what_a_kernel_asserts_is_asked_before(name: str) -> None:
    with pytest.raises(OutOfRangeError) as raised, InRange("cpu"):
        OUT[name]()
    assert stops(f"{type(raised.value).__name__}: {raised.value}")


@pytest.mark.parametrize("name", WITHIN)
def test_what_is_within_its_range_computes_as_ever(name: str) -> None:
    torch.manual_seed(0)
    plain = WITHIN[name]()
    torch.manual_seed(0)
    with InRange("cpu"):
        checked = WITHIN[name]()
    assert torch.equal(plain, checked)


def test_an_operator_of_that_name_that_is_not_of_torch_is_left_alone() -> None:
    @torch.library.custom_op("test_in_range::gather", mutates_args=())
    def gather(index: torch.Tensor) -> torch.Tensor:
        return index + 1

    with InRange("cpu"):
        assert gather(FAR).tolist() == [1, 5]


def test_other_devices_are_left_alone() -> None:
    with pytest.raises(IndexError, match="index out of range in self"), InRange("cuda"):
        OUT["embedding"]()
