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
from breakscope.inside.prove.inputs import TEXT, odd_numbers, others
from breakscope.inside.prove.reach import Holder
from breakscope.inside.prove.world import World

_MOST = 8
_MOST_HELD = 12


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
    for holder, label, value in found[:_MOST]:
        told = (*texts, TEXT) if texts else ()
        given = [one for one in told if one != value] if type(value) is str else others(value, constants)
        known = [("", other) for other in given]
        for limit, other in (*known, *odd_numbers(value)):
            prepare = partial(_give, holder, label, other)
            yield Conditions(f"{label} = {other!r}", prepare=prepare, number=label, beyond=limit)


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
            yield Conditions(f"{label} = {other!r}", prepare=prepare, beyond=f"with another `{label}`")


def lengths(world: World, names: Collection[str]) -> Iterator[Conditions]:
    """One item more or fewer in a list that is held: another instance of the class has other layers."""
    kinds = list | torch.nn.ModuleList
    found = [
        (label, value)
        for _, content in world.content
        for label, value in content
        if isinstance(label, str) and label in names and isinstance(value, kinds) and len(value)
    ]
    for label, value in found[:_MOST]:
        parts = value if isinstance(value, list) else value._modules
        for word, more in (("more", True), ("fewer", False)):
            yield Conditions(
                f"one item {word} in {label}",
                prepare=partial(_relength, parts, more),
                beyond=f"with another number of items in `{label}`",
            )


def _relength(parts: Any, more: bool, _world: World) -> None:
    """The last item once more, or left out."""
    holder = next(reach.holders(parts))
    *others, (_, last) = content = holder.read()
    if more and isinstance(parts, dict):
        holder.write([*content, (str(len(content)), last)])
    else:
        holder.write([*content, (len(content), last)] if more else others)


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
