"""What a picture says of containers: most of a module's are empty, and are pictured by a way of their own."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from typing import Any

import pytest

pytestmark = pytest.mark.torch


def with_attribute() -> Any:
    made: Any = OrderedDict()
    made.hooks = 1
    return made


class Mine(dict[str, int]):
    """A container of the user's own class."""


MADE = {
    "dict": dict,
    "of the user's own class": Mine,
    "ordered": OrderedDict,
    "ordered, with an attribute": with_attribute,
    "list": list,
    "set": set,
    "tuple": tuple,
    "dict with an item": lambda: {"a": 1},
    "list with an item": lambda: [1],
}


def differ(one: Any, other: Any) -> bool:
    from breakscope.inside.prove.picture import Comparer, take

    entries = [take([("value", {"held": value})], {}).entries for value in (one, other)]
    return Comparer(0.0).difference(*entries) is not None


@pytest.mark.parametrize("name", MADE)
def test_containers_with_the_same_content_look_the_same(name: str) -> None:
    assert not differ(MADE[name](), MADE[name]())


@pytest.mark.parametrize(("one", "other"), list(itertools.permutations(MADE, 2)))
def test_containers_of_other_classes_or_with_other_content_do_not(one: str, other: str) -> None:
    assert differ(MADE[one](), MADE[other]())


def test_a_list_that_is_held_twice_is_told_from_two_lists() -> None:
    shared: list[int] = []
    assert differ([shared, shared], [[], []])
