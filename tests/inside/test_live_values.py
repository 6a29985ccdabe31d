"""What is written down of the values that guards check: short, and without running code of the user's."""

from __future__ import annotations

import collections
import types

import pytest

from breakscope.inside.capture.live_values import describe


class Loud:
    """Anything that it is asked runs the user's code."""

    def __repr__(self):
        raise AssertionError("asked for its text")

    __str__ = __repr__

    def __getattr__(self, name):
        raise AssertionError(f"asked for {name}")


class Level(int):
    def __repr__(self):
        raise AssertionError("asked for its text")


Point = collections.namedtuple("Point", "x y")  # noqa: PYI024 - as users write it


@pytest.mark.parametrize(
    ("value", "text"),
    [  # some are made in the test: pytest asks what stands here for its text
        (3, "3"),
        (True, "True"),
        (None, "None"),
        ("a", "'a'"),
        (lambda: Level(3), "3"),
        ([1, 2.5], "[1, 2.5]"),
        (Point(1, 2), "(1, 2)"),
        (lambda: [Loud()], "list of 1"),
        (lambda: [Level(3)], "list of 1"),
        (list(range(9)), "list of 9"),
        (lambda: {"a": 1, Loud(): 2}, "dict with 2 keys: a, Loud object"),
        (Level, f"{__name__}.Level"),
        ("x" * 100, "'" + "x" * 78 + "…"),
    ],
)
def test_a_value_in_a_few_words(value: object, text: str) -> None:
    assert describe(value() if isinstance(value, types.LambdaType) else value) == text


def test_an_object_is_not_asked_what_it_is() -> None:
    assert describe(Loud()) == "Loud object"


@pytest.mark.torch
def test_tensors_by_what_they_are() -> None:
    torch = pytest.importorskip("torch")
    assert describe(torch.ones(2, 3)) == "Tensor((2, 3), torch.float32, cpu)"
    assert describe(torch.float16) == "torch.float16"
    assert describe(torch.Tensor) == "torch.Tensor"
    assert describe(torch.device("cpu")) == "cpu"
    assert describe(torch.nn.Linear(1, 1)) == "Linear object"
