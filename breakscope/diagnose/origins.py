"""What differed in the outermost calls of two compiles of one function: where a recompile comes from."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from breakscope.diagnose.collect import Collected, Event
from breakscope.diagnose.places import Places
from breakscope.report.model import Guard


@dataclass(frozen=True, slots=True)
class Size:
    """A size of an outermost argument that differed.

    Attributes:
        argument: the argument as the call spells it, or its parameter's name: ``batch['ids']``.
    """

    argument: str
    dimension: int
    old: int
    new: int


@dataclass(frozen=True, slots=True)
class Origin:
    """Two outermost calls, of which two compiles of one function came.

    Attributes:
        direct: what is guarded is an argument of the outermost call itself: it can be marked there.
        same_call: they are one call: the function runs more than once in it, on different things.
        sizes: sizes of arguments that differed, those first that changed as the guard's value did.
        values: (argument, old, new) of Python values that differed.
        modes: grad mode, training and the like, where they differed.
        where: ``train.py:27``, the line of the call.
    """

    direct: bool
    same_call: bool
    sizes: tuple[Size, ...]
    values: tuple[tuple[str, str, str], ...]
    modes: tuple[str, ...]
    where: str
    entry: str


def origin(found: Collected, old: str | None, new: str | None, guard: Guard, places: Places) -> Origin | None:
    """What differed; None where the calls are not known, as in a trace."""
    first, second = (_signature(found, cid) for cid in (old, new))
    if first is None or second is None:
        return None
    names = _Names(second, places)
    before, after = dict(_leaves(first)), dict(_leaves(second))
    sizes: list[Size] = []
    values: list[tuple[str, str, str]] = []
    for path, held in after.items():
        was = before.get(path)
        if was is None or held == was:
            continue
        if "tensor" in held and "tensor" in was:
            shapes = was["tensor"]["shape"], held["tensor"]["shape"]
            if len(shapes[0]) == len(shapes[1]):
                pairs = enumerate(zip(*shapes, strict=True))
                found_sizes = [Size(names.of(path), d, a, b) for d, (a, b) in pairs if a != b]
                # What is guarded may be an argument itself.
                own = second["origins"].get(guard.source) == path
                sizes = [*found_sizes, *sizes] if own else [*sizes, *found_sizes]
        elif not ({"tensor", "object", "same"} & {*held, *was}):
            values.append((names.of(path), str(next(iter(was.values()))), str(next(iter(held.values())))))
    sizes.sort(key=lambda size: _likeness(size, guard), reverse=True)
    caller = second.get("caller") or {}
    where = f"{caller['file'].replace(chr(92), '/').rpartition('/')[2]}:{caller['line']}" if caller else ""
    return Origin(
        direct=guard.source in second["origins"],
        same_call=first["call"] == second["call"] and first.get("step") == second.get("step"),
        sizes=tuple(sizes),
        values=tuple(values),
        modes=tuple(_modes(first, second)),
        where=where,
        entry=second["entry"]["name"],
    )


def _likeness(size: Size, guard: Guard) -> tuple[int, bool]:
    """How well a size that differed explains the guard's: a padded one has one of its two values."""
    same = (str(size.old) == guard.expected) + (str(size.new) == guard.actual)
    return same, size.dimension == guard.dimension


def _signature(found: Collected, cid: str | None) -> Event | None:
    return next((one for one in reversed(found.signatures) if one["cid"] == cid and one.get("entry")), None)


def _modes(first: Event, second: Event) -> Iterator[str]:
    for name, shown in (("grad", "grad mode"), ("inference", "inference mode"), ("autocast", "autocast")):
        if first["modes"].get(name) != second["modes"].get(name):
            yield shown
    if first["entry"]["training"] != second["entry"]["training"]:
        yield "train() and eval()"


class _Names:
    """Names of a call's arguments: as the call spells them where it does, else by parameter."""

    def __init__(self, signature: Event, places: Places) -> None:
        self._parameters = signature["entry"]["parameters"]
        self._call = _parsed_call(signature.get("caller"), places)

    def of(self, path: str) -> str:
        kind, _, rest = path.partition("[")
        key, _, rest = rest.partition("]")
        if kind == "kwargs":
            return self._keyword(ast.literal_eval(key)) + rest
        number = int(key)
        given = [] if self._call is None else self._call.args
        plain = number < len(given) and not any(isinstance(one, ast.Starred) for one in given)
        # An expression makes another tensor each time: what is marked must be a variable.
        if plain and isinstance(given[number], ast.Name | ast.Attribute | ast.Subscript):
            return ast.unparse(given[number]) + rest
        return (self._parameters[number] if number < len(self._parameters) else path) + rest

    def _keyword(self, name: str) -> str:
        if self._call is not None:
            for keyword in self._call.keywords:
                if keyword.arg == name and isinstance(
                    keyword.value, ast.Name | ast.Attribute | ast.Subscript
                ):
                    return ast.unparse(keyword.value)
        return name


def _parsed_call(caller: Event | None, places: Places) -> ast.Call | None:
    if caller is None or None in (caller["end_line"], caller["column"], caller["end_column"]):
        return None
    position = (caller["line"], caller["column"], caller["end_line"], caller["end_column"])
    around = places.sources.around(caller["file"], position)
    return next((node for node in reversed(around) if isinstance(node, ast.Call)), None)


def _leaves(signature: Event) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, value in enumerate(signature["args"]):
        yield from _walk(value, f"args[{number}]")
    for name, value in signature["kwargs"].items():
        yield from _walk(value, f"kwargs[{name!r}]")


def _walk(value: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for kind, held in value.items():
        if kind in ("list", "tuple"):
            for number, item in enumerate(held):
                yield from _walk(item, f"{path}[{number}]")
        elif kind == "dict":
            for key, item in held.items():
                yield from _walk(item, f"{path}[{key!r}]")
        else:
            yield path, value
