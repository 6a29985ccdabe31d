"""What a ConstraintViolationError says of sizes that were marked as dynamic, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Callable

from breakscope.diagnose import guard_paths

NAME = "ConstraintViolationError"
Explained = tuple[str, str]

_SIZE = r"[LG]\[[^\n()]+\]\.size\(\)\[\d+\]"
_SIZES = re.compile(_SIZE)
_RANGE = re.compile(r"^(?:(\d+) <= )?\S+(?: <= (\d+))?$")
_BOUNDS = re.compile(r"^(\d+) <= (?P<size>\S+) and (?P=size) <= (\d+)$")
_MOST_GUARDS = 3


def explain(said: str) -> Explained | None:
    """What is wrong, and what to do, by the first violation of an error's text; None if it is not known."""
    for pattern, words in _FORMS:
        found = pattern.search(said)
        explained = words(found, said) if found is not None else None
        if explained is not None:
            return explained
    return None


def _named(size: str) -> tuple[str, str, int] | None:
    """A size in words, its tensor, and its dimension: ("dimension 1 of x", "x", 1)."""
    path = guard_paths.path_of(guard_paths.parse(size))
    geometry = path.geometry() if path else None
    if geometry is None or geometry[2] is None:
        return None
    tensor = guard_paths.words(geometry[0], "")
    return f"dimension {geometry[2]} of {tensor}", tensor, geometry[2]


def _readable(text: str) -> str:
    """A guard with sizes as code says them: ``x.shape[0]``."""

    def shape(found: re.Match[str]) -> str:
        named = _named(found[0])
        return found[0] if named is None else f"{named[1]}.shape[{named[2]}]"

    return _SIZES.sub(shape, text)


def _fixed(found: re.Match[str], _said: str) -> Explained | None:
    named = _named(found["size"])
    if named is None:
        return None
    size, tensor, dimension = named
    why = f"{size} is marked as dynamic, and the code fixes it to {found['value']}"
    what_to_do = (
        f"Take the mark off {size} (mark_dynamic, or Dim.DYNAMIC in torch.export), or use"
        f" torch._dynamo.maybe_mark_dynamic({tensor}, {dimension}), which lets torch fix the size; to keep it"
        f" dynamic, let nothing in this line need the size to be {found['value']}."
    )
    return why, what_to_do


def _outside(found: re.Match[str], _said: str) -> Explained:
    size, least, most = found["size"], found["least"], found["most"]
    why = f"a dimension of an argument has size {size}, and is marked as dynamic from {least} to {most}"
    what_to_do = (
        f"Give the mark_dynamic of that dimension a range that holds {size} (min and max), or leave min and"
        " max out."
    )
    return why, what_to_do


def _one_size(found: re.Match[str], _said: str) -> Explained | None:
    named = _named(found["size"])
    if named is None:
        return None
    size, tensor, dimension = named
    only, given = found["only"], found["given"]
    why = f"{size} is marked with min and max of {only}, and has {given}"
    what_to_do = (
        f"Mark {size} with a range that holds {given}: mark_dynamic({tensor}, {dimension}), with min and max"
        " that differ or without them."
    )
    return why, what_to_do


def _narrower(found: re.Match[str], said: str) -> Explained | None:
    named = _named(found["size"])
    if named is None:
        return None
    size, tensor, dimension = named
    guards = [one["guard"] for one in _NARROWER.finditer(said) if one["size"] == found["size"]]
    needed = " and ".join(_readable(guard) for guard in guards[:_MOST_GUARDS])
    marked = _range(found["range"].strip())
    why = f"{size} is marked as dynamic for {marked}, and this graph is right only where {needed}"
    bounds = next((at for guard in guards if (at := _BOUNDS.match(guard)) is not None), None)
    mark = f"mark_dynamic({tensor}, {dimension}"
    range_ = f"{mark}, min={bounds[1]}, max={bounds[3]})" if bounds is not None else f"{mark}, min=…, max=…)"
    what_to_do = (
        f"Leave min and max out, {mark}): torch compiles once more where that does not hold. Or give a range"
        f" in which it always holds, {range_}; or let the code not depend on {tensor}.shape[{dimension}]."
    )
    return why, what_to_do


def _range(text: str) -> str:
    bounds = _RANGE.match(text)
    least, most = bounds.groups() if bounds is not None else (None, None)
    if least and most:
        return f"sizes from {least} to {most}"
    return f"sizes up to {most}" if most else f"sizes from {least} on" if least else "every size"


def _equal(found: re.Match[str], _said: str) -> Explained | None:
    one, other = _named(found["one"]), _named(found["other"])
    if one is None or other is None:
        return None
    why = f"{one[0]} and {other[0]} must always be equal in this code, and are marked as sizes of their own"
    what_to_do = (
        f"Give both the same Dim in dynamic_shapes ({found['name']} = {found['as']}), or Dim.AUTO, which lets"
        " torch find that they are equal."
    )
    return why, what_to_do


def _related(found: re.Match[str], _said: str) -> Explained | None:
    one, other = _named(found["one"]), _named(found["other"])
    if one is None or other is None:
        return None
    why = (
        f"{one[0]} follows from {other[0]} in this code ({found['how']}), and is marked as a size of its own"
    )
    what_to_do = f"Write it so in dynamic_shapes ({found['how']}), or use Dim.AUTO: torch finds the relation."
    return why, what_to_do


def _unequal(found: re.Match[str], _said: str) -> Explained | None:
    one, other = _named(found["one"]), _named(found["other"])
    if one is None or other is None:
        return None
    why = f"{one[0]} is {found['has']} and {other[0]} is {found['had']}, and both have the same Dim"
    return why, "Give them Dims of their own in dynamic_shapes, or example inputs in which both are equal."


_NARROWER = re.compile(
    rf"Not all values of .+? = (?P<size>{_SIZE}) in the specified range(?P<range>.*?) "
    r"satisfy the generated guard (?P<guard>.+?)\.?$",
    re.MULTILINE,
)
_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], str], Explained | None]], ...] = (
    (
        re.compile(
            r"You marked (?P<size>.+?) as dynamic but your code "
            r"specialized it to be a constant \((?P<value>\d+)\)"
        ),
        _fixed,
    ),
    (re.compile(rf"(?P<size>{_SIZE}) was inferred to be equal to (?P<value>\d+)\."), _fixed),
    (_NARROWER, _narrower),
    (
        re.compile(
            rf"The values of (?P<name>\S+) = (?P<one>{_SIZE}) and "
            rf"(?P<as>\S+) = (?P<other>{_SIZE}) must always be equal"
        ),
        _equal,
    ),
    (
        re.compile(
            rf"The values of \S+ = (?P<one>{_SIZE}) must always be related to the values of \S+ = "
            rf"(?P<other>{_SIZE}) by (?P<how>.+?)\.?$",
            re.MULTILINE,
        ),
        _related,
    ),
    (
        re.compile(rf"(?P<one>{_SIZE}) = (?P<has>\d+) is not equal to (?P<other>{_SIZE}) = (?P<had>\d+)"),
        _unequal,
    ),
    (
        re.compile(
            r"Static shape constraint of (?P<only>\d+) does not match input size of (?P<given>\d+), "
            rf"for (?P<size>{_SIZE})"
        ),
        _one_size,
    ),
    (
        re.compile(r"^(?P<size>\d+) not in range \[(?P<least>\d+), (?P<most>\w+)\]", re.MULTILINE),
        _outside,
    ),
)
