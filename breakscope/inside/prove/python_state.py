"""State that is no tensor: counters, flags and thresholds that a function reads from modules and globals.

The recorded run has seen a few of their values. A script that goes on reaches others: a counter reaches its
limit, a module is switched from training to evaluation.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Any

import torch

from breakscope.inside.prove import reach
from breakscope.inside.prove.attempt import Conditions
from breakscope.inside.prove.inputs import TEXT, odd_numbers, others, stretched
from breakscope.inside.prove.kinds import huge
from breakscope.inside.prove.reach import Holder
from breakscope.inside.prove.world import World

_MOST = 8
_MOST_NUMBERS = 10
_MOST_HELD = 12
_MOST_LENGTHS = 3
_MOST_PARTS = 4
_LONGEST = 1024


def states(
    world: World, names: Collection[str], constants: Collection[float], texts: Collection[str] = ()
) -> Iterator[Conditions]:
    """Other values for each number, flag and text that a function mentions, one at a time.

    Args:
        names: that the function's code mentions. constants: numbers that stand in it. texts: and texts; none:
            what is a text stays as it is.
    """
    if any(isinstance(holder.owner, torch.nn.Module) for holder, _ in world.content):
        yield Conditions("all modules switched between training and evaluation", prepare=_switch)
    found: list[tuple[Holder, str, Any]] = []
    for holder, content in world.content:
        if not isinstance(holder.owner, torch.Tensor | list):
            found += [(holder, label, value) for label, value in content if _changes(label, value, names)]
    for holder, label, value in found[:_MOST_NUMBERS]:
        told = (*texts, TEXT) if texts else ()
        given = [one for one in told if one != value] if type(value) is str else others(value, constants)
        known = [("", other) for other in given]
        large = [("", other) for other in huge(value, constants)]
        for limit, other in (*known, *large, *odd_numbers(value)):
            prepare = partial(_give, holder, label, other)
            yield Conditions(f"{label} = {other!r}", prepare=prepare, number=label, beyond=limit)


def parts(world: World, names: Collection[str]) -> Iterator[Conditions]:
    """Another number for each item of a tuple, a list or a dict of numbers that is held, one at a time."""
    held_by = [
        (holder, label, value)
        for holder, content in world.content
        for label, value in content
        if isinstance(label, str) and label in names and _holds_numbers(value)
    ]
    for holder, label, value in held_by[:_MOST_PARTS]:
        keys = list(value) if isinstance(value, dict) else range(len(value))
        for key in itertools.islice(keys, _MOST_LENGTHS):
            for other in itertools.islice(others(value[key]), 1):
                if isinstance(value, tuple):
                    made = (*value[:key], other, *value[key + 1 :])
                    prepare = partial(_give, holder, label, made)
                else:  # what is changed in place is the list itself, wherever else it is held
                    prepare = partial(_set_item, value, key, other)
                yield Conditions(f"{label}[{key!r}] = {other!r}", prepare=prepare)
        if isinstance(value, tuple):
            prepare, limit = (
                partial(_give, holder, label, (*value, value[0])),
                f"with more items in `{label}`",
            )
            yield Conditions(f"{len(value) + 1} items in {label}", prepare=prepare, beyond=limit)


def _set_item(items: Any, key: Any, other: Any, _world: World) -> None:
    items[key] = other


def _holds_numbers(value: Any) -> bool:
    items = value.values() if type(value) is dict else value if type(value) in (tuple, list) else ()
    return len(items) > 0 and all(type(one) in (int, float) for one in items)


def unnamed(world: World, names: Collection[str]) -> Iterator[Conditions]:
    """Other numbers, flags and texts, all at once, in the fields of an object that the code does not name.

    A form that makes a copy must take them along: ``replace(config, dim=8)``.
    """
    for holder, content in world.content:
        if not dataclasses.is_dataclass(holder.owner):
            continue
        changed = {
            label: TEXT if type(value) is str else next(iter(others(value)))
            for label, value in content
            if isinstance(label, str) and label not in names and type(value) in (bool, int, float, str)
        }
        if changed:
            limit = f"with other values of {', '.join(changed)}"
            prepare = partial(_give_all, holder, changed)
            yield Conditions(f"other {', '.join(changed)}", prepare=prepare, beyond=limit)


def held(world: World, names: Collection[str]) -> Iterator[Conditions]:
    """Other numbers and flags in what a library's object holds, such as an optimizer's learning rate.

    The function's code does not mention them: a form that goes without the object is right as long as they
    stay what they are, and what differs is a limit.
    """
    found = [
        (holder, label, value)
        for holder, content in world.content
        if isinstance(holder.owner, dict) or reach.foreign(type(holder.owner).__module__)
        for label, value in content
        if isinstance(label, str) and label not in names and type(value) in (bool, int, float)
        if label != "training" and not label.startswith("_")
    ]
    for holder, label, value in found[:_MOST_HELD]:
        for other in itertools.islice(others(value), 2):
            prepare = partial(_give, holder, label, other)
            limit = f"with another `{label}`" if label else "with another value of a function's variable"
            yield Conditions(f"{label or 'a variable'} = {other!r}", prepare=prepare, beyond=limit)


def lengths(world: World, names: Collection[str], constants: Collection[float]) -> Iterator[Conditions]:
    """Another number of items in a list that is held, and other sizes of a tensor: what many calls gather.

    One more, one fewer, and as many as numbers of the code say; another instance of a class has other layers.
    """
    kinds = list | torch.nn.ModuleList
    found = [
        (label, value)
        for _, content in world.content
        for label, value in content
        if isinstance(label, str) and label in names and isinstance(value, kinds) and len(value)
    ]
    # `[-100:]` keeps a hundred.
    numbers = sorted({abs(int(one)) for one in constants if 2 < abs(one) < _LONGEST and one == int(one)})
    long = [size for number in numbers[-_MOST_LENGTHS:] for size in (number, number + 1)]
    for label, value in found[:_MOST]:
        parts = value if isinstance(value, list) else value._modules
        for length in (len(value) + 1, len(value) - 1, *(long if isinstance(value, list) else ())):
            limit, prepare = f"with another number of items in `{label}`", partial(_relength, parts, length)
            yield Conditions(f"{length} items in {label}", prepare=prepare, beyond=limit)
        if isinstance(value, list) and type(value[0]) in (int, float):
            prepare, limit = partial(_set_first, value), f"with other numbers in `{label}`"
            yield Conditions(f"{label}[0] = 0", prepare=prepare, beyond=limit)
    tensors = [
        (holder, label, value)
        for holder, content in world.content
        for label, value in content
        if isinstance(label, str) and label in names and type(value) is torch.Tensor and value.numel()
    ]
    for holder, label, value in tensors[:_MOST]:
        for dimension, size in itertools.product(range(value.dim()), long):
            yield Conditions(
                f"size {size} of {label} in dimension {dimension + 1}",
                prepare=partial(_resize, holder, label, dimension, size),
                beyond=f"with `{label}` of other sizes",
            )


def _resize(holder: Holder, label: str, dimension: int, size: int, _world: World) -> None:
    tensor = dict(holder.read())[label]
    _give(holder, label, stretched(tensor.detach(), dimension, size), _world)


def _set_first(items: list[Any], _world: World) -> None:
    items[0] = type(items[0])(0)


def _relength(parts: Any, length: int, _world: World) -> None:
    """The items from the first on again, or fewer of them."""
    holder = next(reach.holders(parts))
    values = [value for _, value in holder.read()]
    items = itertools.islice(itertools.cycle(values), length)
    holder.write([(str(at) if isinstance(parts, dict) else at, item) for at, item in enumerate(items)])


def keys_of_dicts(world: World) -> Iterator[str]:
    """Texts that are keys of dicts, and names in dicts of modules."""
    named: set[int] = set()  # what every module keeps its parts in, by attribute
    for holder, content in world.content:
        if isinstance(holder.owner, torch.nn.Module) and not isinstance(holder.owner, _BY_KEY):
            named.update(id(part) for label, part in content if label in _OF_MODULES)
    for holder, content in world.content:
        if type(holder.owner) is dict and id(holder.owner) not in named:
            yield from (label for label, _ in content if isinstance(label, str) and label[:1] != "_")


_OF_MODULES = frozenset(vars(torch.nn.Module()))
_BY_KEY = torch.nn.ModuleDict | torch.nn.ParameterDict


def _changes(label: Any, value: Any, names: Collection[str]) -> bool:
    return isinstance(label, str) and label in names and type(value) in (bool, int, float, str)


def _give(holder: Holder, label: str, other: Any, world: World) -> None:
    _give_all(holder, {label: other}, world)


def _give_all(holder: Holder, changed: Mapping[str, Any], _world: World) -> None:
    content = [
        (name, changed.get(name, value) if isinstance(name, str) else value) for name, value in holder.read()
    ]
    holder.write(content)


def _switch(world: World) -> None:
    for holder, _ in world.content:
        if isinstance(holder.owner, torch.nn.Module):
            _flip(holder)


def _flip(holder: Holder) -> None:
    content = holder.read()
    if any(name == "training" and isinstance(value, bool) for name, value in content):
        holder.write([(name, not value if name == "training" else value) for name, value in content])
