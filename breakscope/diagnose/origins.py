"""What differed in the outermost calls of two compiles of one function: where a recompile comes from."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from breakscope.diagnose import made_of
from breakscope.diagnose.arguments import leaves
from breakscope.diagnose.collect import Collected, Event, FrameRef
from breakscope.diagnose.guard_paths import of_size
from breakscope.diagnose.places import Places
from breakscope.diagnose.records import RawFrame, unresumed
from breakscope.diagnose.uses import statement, uses
from breakscope.report.model import Guard, Location
from breakscope.report.owners import owner_of

_TOKENS = re.compile(r"(?i)\bids\b|_ids|tok|(?<!pixel_)mask|text|prompt|sentence")

# What keeps torch from making a size dynamic that changed: for all, or for what is compiled there.
_STATIC = re.compile(r"mark_static|automatic_dynamic_shapes|assume_static_by_default")
_LOADS = re.compile(r"(?i)loader|drop_last")
_NOT_DYNAMIC = re.compile(r"dynamic\s*=\s*False")


@dataclass(frozen=True, slots=True)
class Size:
    """A size of an outermost argument that differed.

    Attributes:
        argument: the argument as the call spells it, or its parameter's name: ``batch['ids']``.
        named: whether that is what the caller calls it, so that it can be marked there.
        tokens: whether it holds whole numbers under a name for text: indices are not padded.
        path: where it stands in the call: ``args[0]['ids']``.
        parameter: the name of the argument in the function that is called.
        no_batch: whether it is surely none's: another item of its list changed in another way, or what else
            the call passes has other sizes in that dimension.
    """

    argument: str
    dimension: int
    old: int
    new: int
    named: bool = True
    tokens: bool = False
    path: str = ""
    parameter: str = ""
    no_batch: bool = False

    @property
    def item(self) -> made_of.Item:
        """The index or the key of what a tuple, a list or a dict that is passed holds."""
        found = re.match(r"\w+\[[^]]*\]\[([^]]*)\]", self.path)
        return None if found is None else ast.literal_eval(found[1])


@dataclass(frozen=True, slots=True)
class Origin:
    """Two outermost calls, of which two compiles of one function came.

    Attributes:
        direct: what is guarded is an argument of the outermost call itself: it can be marked there.
        same_call: they are one call: the function runs more than once in it, on different things.
        sizes: sizes of arguments that differed, those first that changed as the guard's value did.
        values: (argument, old, new) of Python values that differed.
        modes: grad mode, training and the like, where they differed.
        where: ``train.py:27``, the line of the project from which the call comes; earlier: that of the other
            call, where it is another one.
        within: (file, line, function) at work between that call and the function, innermost first; empty
            for the function that was called itself.
        by: the library's function that made the outermost call, where the project did not: ``generate``.
        generates: whether that is the ``generate`` of transformers.
        caller: the frame of the project that ``where`` is in. spelled: the names that its line passes
            arguments by.
        kept_static: whether the script says, where it calls or defines, that sizes are to stay static.
        opaque: arguments that are objects: what they hold is not compared.
        entry: what was called; other: what was called for the earlier compile.
        equal: sizes that were as large as the first of ``sizes`` at the first call, and did not go with it.
        rivals: sizes that the guard's value can come of as well as of the first of ``sizes``.
        used: names that the scope of the call uses.
        unrelated: arguments among ``values`` of which the guarded size is not made, as its source tells.
        made: of what the guarded size is made by its source; None where that does not tell.
        one_each: whether the recompiles came in modes of their own, one for training and one for evaluation.
        named: the arguments that only one of the two calls passes by name, those of the later one first.
        by_before: as ``by``, of the earlier call.
        empty: arguments that were tensors without an element in one of the two calls.
        alike: (name in the function, dimension) of arguments that changed as the first of ``sizes`` did.
        called: the file and the line of the function that is called, where torch's wrappers are left away.
        parameters: the names that this function gives its arguments.
        loads: whether a DataLoader may have made what the call passes: its file speaks of one, or a library
            makes the call.
        mixed: sizes that differed, none of which decides the guarded one: it is now of this, now of that.
        lines: of all the calls that had it compiled again, and of the one before, by the project's line.
    """

    direct: bool
    same_call: bool
    sizes: tuple[Size, ...]
    values: tuple[tuple[str, str, str], ...]
    modes: tuple[str, ...]
    where: str
    entry: str
    within: tuple[tuple[str, int, str], ...] = ()
    by: str | None = None
    generates: bool = False
    caller: RawFrame | None = None
    spelled: frozenset[str] = frozenset()
    kept_static: bool = False
    opaque: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()
    named: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    by_before: str | None = None
    other: str = ""
    equal: tuple[str, ...] = ()
    rivals: tuple[Size, ...] = ()
    used: frozenset[str] = frozenset()
    alike: tuple[tuple[str, int], ...] = ()
    earlier: str = ""
    unrelated: frozenset[str] = frozenset()
    made: made_of.Made | None = None
    one_each: bool = False
    called: tuple[str, int] | None = None
    parameters: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    mixed: tuple[Size, ...] = ()
    loads: bool = True

    @property
    def numbers(self) -> tuple[tuple[str, str, str], ...]:
        """Those of ``values`` of which the guarded size may be made."""
        return tuple(one for one in self.values if one[0] not in self.unrelated)


def origin(
    found: Collected,
    old: str | None,
    new: str | None,
    guard: Guard,
    places: Places,
    frame: FrameRef | None = None,
) -> Origin | None:
    """What differed; None where the calls are not known, as in a trace.

    Args:
        frame: the function whose guard it is.
    """
    first, second = (_signature(found, cid) for cid in (old, new))
    if first is None or second is None:
        return None
    names = _Names(second, places)
    before, after = map(_compared, (first, second))
    guarded = _path_of(guard.source or "", second["origins"], after)
    sizes: list[Size] = []
    values: list[tuple[str, str, str]] = []
    passed: list[str] = []
    for path, (kind, held) in after.items():
        was = before.get(path)
        if was is None or was == (kind, held):
            continue
        if kind == was[0] == "tensor":
            shapes = was[1]["shape"], held["shape"]
            if len(shapes[0]) == len(shapes[1]):
                argument, named = names.of(path)
                tokens = held["dtype"] in ("int64", "int32") and _TOKENS.search(argument) is not None
                pairs = (
                    enumerate(zip(*shapes, strict=True)) if _is_read(path, second["entry"], places) else ()
                )
                own_name = names.parameter(path)
                found_sizes = [
                    Size(argument, d, a, b, named, tokens, path, own_name) for d, (a, b) in pairs if a != b
                ]
                # What is guarded may be an argument itself.
                own = guarded == path
                sizes = [*found_sizes, *sizes] if own else [*sizes, *found_sizes]
        elif not {"tensor", "object", "same"} & {kind, was[0]}:
            values.append((names.of(path)[0], str(was[1]), str(held)))
            passed.append(names.parameter(path))
    within = tuple((one["file"], one["line"], one["name"]) for one in second.get("within", ()))
    made = None if guarded is not None or frame is None else _made(guard, frame, within, places)
    unrelated: list[str] = []
    if made is not None:
        arguments = zip(values, passed, strict=True)
        unrelated = [one for (one, *_), argument in arguments if argument not in made.arguments]
        left = [size for size in sizes if size.parameter in made.arguments]
        left = [size for size in left if made.is_of(size.parameter, size.item, size.dimension)] or left
        # Of what is flattened the source tells one factor.
        left = left or [size for size in sizes if in_proportion(guard, [size])]
        explains = left or made.kept or made.lines or len(unrelated) < len(values)
        sizes = left if explains else sizes
    batch = _batch(second)
    sizes = [
        replace(
            size,
            no_batch=size.dimension != batch or any(_is_other_item(size, one) for one in sizes),
        )
        for size in sizes
    ]
    sizes.sort(key=lambda size: _likeness(size, guard), reverse=True)
    where, by, caller = _line_of_project(second, places)
    before_it, by_before, caller_before = _line_of_project(first, places)
    by_name = first["kwargs"], second["kwargs"]
    return Origin(
        direct=guarded is not None,
        same_call=first["call"] == second["call"] and first.get("step") == second.get("step"),
        sizes=tuple(sizes),
        values=tuple(values),
        modes=tuple(_modes(found, first, second)),
        where=where,
        earlier=before_it if before_it != where else "",
        entry=second["entry"]["name"],
        other=first["entry"]["name"],
        equal=tuple(_equal(sizes[0], _compared(_first(found, second)), after, names)) if sizes else (),
        rivals=tuple(_rivals(sizes, guard)) if guarded is None else (),
        used=_used(second.get("caller"), places),
        alike=tuple(_alike(sizes, second["origins"])),
        within=within,
        unrelated=frozenset(unrelated),
        made=made,
        by=by,
        loads=by is not None or caller is None or places.sources.mentions(caller.file, _LOADS),
        generates=by == "generate" and _is_in_generation(second),
        caller=caller,
        spelled=_spelled(caller, places) | _spelled(caller_before, places),
        called=(second["entry"]["file"], second["entry"]["line"] or 1) if second["entry"]["file"] else None,
        parameters=tuple(second["entry"]["parameters"]),
        kept_static=any(
            _keeps_static(file, second["entry"]["name"], places)
            for file in {second["entry"]["file"], caller.file if caller else None}
            if file
        ),
        empty=tuple(
            names.of(path)[0]
            for path, (kind, held) in after.items()
            if kind == "tensor" == before.get(path, ("", None))[0]
            and (0 in held["shape"]) != (0 in before[path][1]["shape"])
        ),
        named=(
            tuple(name for name in by_name[1] if name not in by_name[0]),
            tuple(name for name in by_name[0] if name not in by_name[1]),
        ),
        by_before=by_before,
        opaque=tuple(
            dict.fromkeys(names.of(path)[0] for path, (kind, _) in after.items() if kind == "object")
        ),
    )


_SIZED = ("size", "symbolic_shape", "stride", "int_value")


def calling(
    within: Sequence[tuple[str, int, str]], frame: FrameRef | None = None
) -> list[tuple[str, int, str]]:
    """The frames at work, innermost first; where one goes on behind its break, not the line that broke."""
    own = f"torch_dynamo_resume_in_{frame.name}_at_" if frame is not None and frame.resumed else ""
    inner = (own, *(name for _, _, name in within))
    return [
        one
        for one, before in zip(within, inner, strict=False)
        if not before.startswith(f"torch_dynamo_resume_in_{unresumed(one[2])}_at_")
    ]


def _made(
    guard: Guard, frame: FrameRef, within: Sequence[tuple[str, int, str]], places: Places
) -> made_of.Made | None:
    if guard.cause not in _SIZED or guard.source is None:
        return None
    dimension = guard.dimension if of_size(guard) else None
    place = frame.file, frame.since or frame.line
    return made_of.made_of(places.sources, guard.source, dimension, place, calling(within, frame))


_HELD_BY = re.compile(r"(?:args\[(?P<at>\d+)\]|kwargs\['(?P<name>\w+)'\])\.(?P<attribute>\w+)")
_DECORATED = 4  # lines from a function's first decorator on, in which its ``def`` is looked for


def _is_read(path: str, entry: Event, places: Places) -> bool:
    """False of what an argument's object holds where the function surely reads other attributes alone."""
    held = _HELD_BY.match(path)
    if held is None or entry["file"] is None or entry["line"] is None:
        return True
    known = int(held["at"] or 0) < len(entry["parameters"])
    parameter = held["name"] or (entry["parameters"][int(held["at"])] if known else "")
    lines = range(entry["line"], entry["line"] + _DECORATED)
    around = (node for line in lines for node in reversed(places.sources.around_line(entry["file"], line)))
    function = next((node for node in around if isinstance(node, ast.FunctionDef)), None)
    if function is None or not parameter:
        return True
    ways = list(uses(function, parameter))
    taken = {way[-2].attr if isinstance(way[-2], ast.Attribute) else None for way in ways}
    return not ways or None in taken or held["attribute"] in taken


def _alike(sizes: Sequence[Size], origins: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    for size in sizes:
        if (size.old, size.new) == (sizes[0].old, sizes[0].new):
            yield from ((name, size.dimension) for name, path in origins.items() if path == size.path)


def together(seen: Origin) -> list[Size]:
    """What changes together is one thing: a batch's ids, its mask and its labels have one length."""
    size = seen.sizes[0]
    same = [other for other in seen.sizes if (other.old, other.new) == (size.old, size.new)]
    return sorted(same, key=lambda other: (not other.tokens, other.path, other.dimension))


def _batch(signature: Event) -> int | None:
    """The dimension in which all tensors that a call passes are as large; None where there is none."""
    passed = leaves(signature["args"], signature["kwargs"])
    shapes = [held["shape"] for _, kind, held in passed if kind == "tensor"]
    shapes = [shape for shape in shapes if shape and (*shape,) != (1,)]
    for dimension in (0, 1):
        if len({shape[dimension] if dimension < len(shape) else None for shape in shapes}) <= 1:
            return dimension
    return None


_OF_LIST = re.compile(r"(?P<list>.*\])\[\d+\]")


def _is_other_item(size: Size, other: Size) -> bool:
    """Whether another item of the same list changed in the same dimension, and not as this one did."""
    own, its = (_OF_LIST.fullmatch(one.path) for one in (size, other))
    if own is None or its is None or (own["list"], size.dimension) != (its["list"], other.dimension):
        return False
    return (size.old, size.new) != (other.old, other.new)


def _path_of(source: str, origins: Mapping[str, str], known: Mapping[str, object]) -> str | None:
    """The argument that a guard's source is, or is held by: ``args[0].ids`` of ``batch.ids``."""
    if source in origins:
        return origins[source]
    name = re.match(r"\w+", source)
    path = origins.get(name[0], "") + source[name.end() :] if name else ""
    return path if path in known else None


def _keeps_static(file: str, entry: str, places: Places) -> bool:
    """Whether a file keeps sizes static, for all or for what a call runs."""
    if places.sources.mentions(file, _STATIC):
        return True
    # The function's own decorator, or the call that compiles it by its name, says it for this one.
    name = re.escape(entry.rpartition(".")[2])
    called = re.compile(rf"\bcompile\(\s*([\w.]+\.)?{name}\b(?!.*dynamic)")
    decorator = re.compile(r"^\s*@.*\bcompile\b(?!.*dynamic)")
    defined = re.compile(rf"^\s*def {name}\b")
    is_plain = places.sources.mentions(file, called) or any(
        defined.match(line) and decorator.match(before)
        for before, line in pairwise(places.sources.lines(file))
    )
    return places.sources.mentions(file, _NOT_DYNAMIC) and not is_plain


def _likeness(size: Size, guard: Guard) -> tuple[int, int, float, bool, bool]:
    """How well a size that differed explains the guard's: a padded one has one of its two values.

    What an object holds may be of another call: what is passed itself comes first.
    """
    same = (str(size.old) == guard.expected) + (str(size.new) == guard.actual)
    explains = _how_plainly(guard, [size])
    apart = 0.0 if explains else -_apart(size, guard)
    return same, explains, apart, size.dimension == guard.dimension, "." not in size.path


def _apart(size: Size, guard: Guard) -> float:
    """How far a guard's value grew otherwise than a size, or than an area of two such sizes."""
    values = (guard.expected or "", guard.actual or "")
    if not all(value.isdecimal() and int(value) for value in values) or not size.old * size.new:
        return 0.0
    grew, by = math.log(int(values[1]) / int(values[0])), math.log(size.new / size.old)
    return round(min(abs(grew - by), abs(grew - 2 * by)), 2)


# Of a convolution or of several; those of audio and images come to more.
_STRIDES = (*range(2, 64), 64, 80, 96, 100, 128, 160, 200, 240, 256, 320, 400, 480, 512, 640)


_PADDED_TO = (2, 4, 8, 16, 32, 64, 128, 256, 512)  # of which a length is made a multiple


def may_come_of(guard: Guard, sizes: Sequence[Size]) -> bool:
    """Whether a guarded size is made of sizes, multiplied: as much more, in proportion, a stride, padded."""
    return _how_plainly(guard, sizes) > 0


def in_proportion(guard: Guard, sizes: Sequence[Size]) -> bool:
    """Whether a guarded size is the sizes of the call, multiplied, or a multiple or a part of that."""
    if not f"{guard.expected}{guard.actual}".isdecimal():
        return False
    old, new = math.prod(size.old for size in sizes), math.prod(size.new for size in sizes)
    return int(guard.expected or 0) * new == int(guard.actual or 0) * old


def _how_plainly(guard: Guard, sizes: Sequence[Size]) -> int:
    """How a guarded size changed as sizes do: 3 by as much, 2 in proportion, 1 by a stride, padded; or 0."""
    if guard.expected is None or guard.actual is None or not (guard.expected + guard.actual).isdecimal():
        return 0
    before, after = int(guard.expected), int(guard.actual)
    old, new = math.prod(size.old for size in sizes), math.prod(size.new for size in sizes)
    if after - before == new - old:
        return 3
    if in_proportion(guard, sizes):
        return 2
    for small, large in (((before, after), (old, new)), ((old, new), (before, after))):
        for stride in _STRIDES:
            near = [abs(whole - part * stride) < 2 * stride for part, whole in zip(small, large, strict=True)]
            moved = (large[1] - large[0]) - stride * (small[1] - small[0])
            if all(near) and abs(moved) < stride:
                return 1
    padded = any(before == -(-old // to) * to and after == -(-new // to) * to for to in _PADDED_TO)
    return int(padded and before != after)


def _rivals(sizes: Sequence[Size], guard: Guard) -> Iterator[Size]:
    """Of sizes that changed in another way than the first one those that explain the guard's as plainly."""
    if not sizes or (str(sizes[0].old), str(sizes[0].new)) == (guard.expected, guard.actual):
        return  # the very values: what only fits by a factor or a stride is chance
    plainly = _how_plainly(guard, sizes[:1])
    for size in sizes[1:]:
        is_other = (size.old, size.new) != (sizes[0].old, sizes[0].new)
        if is_other and 0 < plainly <= _how_plainly(guard, [size]):
            yield size


def _equal(
    size: Size, first: Mapping[str, tuple[str, Any]], after: Mapping[str, tuple[str, Any]], names: _Names
) -> Iterator[str]:
    """Sizes that a first graph takes for the same as another one, as they are equal where it is made."""
    kind, own = first.get(size.path, ("", None))
    if kind != "tensor" or len(own["shape"]) <= size.dimension or own["shape"][size.dimension] in (0, 1):
        return
    for path, (kind, held) in first.items():
        now_kind, now = after.get(path, ("", None))
        if not kind == now_kind == "tensor" or len(held["shape"]) != len(now["shape"]):
            continue
        for dimension, (old, new) in enumerate(zip(held["shape"], now["shape"], strict=True)):
            if old == own["shape"][size.dimension] and new != size.new:
                yield f"dimension {dimension} of {names.of(path)[0]}"


def where_defined(
    found: Collected, frame: FrameRef, compiles: Iterable[str | None], places: Places
) -> Location:
    """Where the function of a frame begins; of torch's wrapper (``torch.no_grad()``) what that calls.

    Args:
        compiles: those of the frame. Where they are of several functions, the wrapper's own place is given.
    """
    if is_wrapper(frame.file):
        asked = set(compiles)
        calls = [one for one in found.signatures if one["cid"] in asked and one.get("entry")]
        entries = {tuple(one["entry"][key] for key in ("file", "line", "name", "module")) for one in calls}
        if len(entries) == 1 and not any(one.get("within") for one in calls):
            file, line, name, is_module = entries.pop()
            if file is not None:
                name = f"{name}.forward" if is_module else name
                return places.definition(file, line or 1, name.rpartition(".")[2], name)
    return places.definition(frame.file, frame.line, frame.name, frame.qualname)


def is_wrapper(file: str) -> bool:
    """Whether a file holds torch's ``def inner(*args, **kwargs)`` around what is compiled."""
    return file.endswith("external_utils.py")


def decides(found: Collected, size: Size, came: Sequence[tuple[str | None, str | None]]) -> bool:
    """Whether one size of the call came with one value each time, and so may be what it follows.

    Args:
        came: for each compile the value of the inner size.
    """
    values: dict[int, str | None] = {}
    for compiled, value in came:
        call = _signature(found, compiled)
        kind, held = ("", {}) if call is None else _compared(call).get(size.path, ("", {}))
        shape = held["shape"] if kind == "tensor" else ()
        if len(shape) > size.dimension and values.setdefault(shape[size.dimension], value) != value:
            return False
    return True


def lines_of(found: Collected, compiles: Iterable[str | None], places: Places) -> tuple[str, ...]:
    """The project's lines from which the outermost calls of some compiles came, each once, in order."""
    calls = (_signature(found, compiled) for compiled in compiles)
    return tuple(dict.fromkeys(_line_of_project(call, places)[0] for call in calls if call is not None))


def _spelled(caller: RawFrame | None, places: Places) -> frozenset[str]:
    line = None if caller is None else statement(places.sources.around_line(caller.file, caller.line))
    inside = ast.walk(line) if line is not None else ()
    return frozenset(node.arg for node in inside if isinstance(node, ast.keyword) and node.arg)


def _first(found: Collected, call: Event) -> Event:
    """The earliest call of the same function that had anything compiled."""
    entry = tuple(call["entry"][key] for key in ("file", "name"))
    return next(
        one
        for one in found.signatures
        if one.get("entry") and tuple(one["entry"][key] for key in ("file", "name")) == entry
    )


def _used(caller: Event | None, places: Places) -> frozenset[str]:
    """The names in the function, or at the top of the script, that makes a call."""
    around = _around(caller, places)
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    scope = next((node for node in reversed(around) if isinstance(node, functions)), None)
    left: list[ast.AST] = [scope or around[0]] if around else []
    found = set()
    while left:
        node = left.pop()
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        if node is scope or not isinstance(node, functions):
            left += ast.iter_child_nodes(node)
    return frozenset(found)


def called(found: Collected, cid: str | None) -> tuple[object, ...] | None:
    """What an outermost call was of, for which a compile was made at once; None of one within a call."""
    made = _signature(found, cid)
    if made is None or made.get("within"):
        return None
    return tuple(made["entry"][key] for key in ("file", "line", "name", "module"))


def _signature(found: Collected, cid: str | None) -> Event | None:
    return next(
        (
            signature
            for signature in reversed(found.signatures)
            if signature["cid"] == cid and signature.get("entry")
        ),
        None,
    )


def _line_of_project(signature: Event, places: Places) -> tuple[str, str | None, RawFrame | None]:
    """The project's line that leads to a call, the library's function that it called, and its frame."""
    caller = signature.get("caller")
    if caller is None:
        return "", None, None
    by = None
    for frame in signature.get("callers", ()):
        if owner_of(frame["file"], places.roots) == "project":
            found = RawFrame(frame["file"], frame["line"], frame["function"], None)
            return places.short(found.file, found.line), by, found
        by = by if by is not None and _WRAPS.fullmatch(frame["function"]) else frame["function"]
    return places.short(caller["file"], caller["line"]), None, None


def _is_in_generation(signature: Event) -> bool:
    """Whether transformers' loop over tokens makes the call, and not what a model prepares in front of it."""
    callers = signature.get("callers", ())
    if not any(_TRANSFORMERS.search(frame["file"]) for frame in callers):
        return False
    return (
        callers[0]["function"] in ("forward", "wrapper") or _GENERATES.search(callers[0]["file"]) is not None
    )


# What decorators call the functions that they make.
_WRAPS = re.compile(r"_?(wrapper|wrapped\w*|inner|decorated?|decorate_context|_fn)")
_TRANSFORMERS = re.compile(r"[/\\]transformers[/\\]")
_GENERATES = re.compile(r"[/\\]transformers[/\\](generation[/\\]|models[/\\]\w+[/\\]generation_)")


def mode_of(found: Collected, cid: str | None) -> tuple[object, ...] | None:
    """The mode of the call that a compile came of: gradients, autocast, training."""
    call = _signature(found, cid)
    if call is None:
        return None
    modes = (str(call["modes"].get(name)) for name in ("grad", "inference", "autocast"))
    return *modes, call["entry"]["training"]


def _modes(found: Collected, first: Event, second: Event) -> Iterator[str]:
    """The modes in which two calls differ; not those that the code changes itself below calls that do not."""
    one, other = (_at_entry(found, call) for call in (first, second))
    for name, shown in (("grad", "grad mode"), ("inference", "inference mode"), ("autocast", "autocast")):
        within = one is not None and other is not None and one.get(name) == other.get(name)
        if first["modes"].get(name) != second["modes"].get(name) and not within:
            yield shown
    if first["entry"]["training"] != second["entry"]["training"]:
        yield "train() and eval()"


def _at_entry(found: Collected, signature: Event) -> Mapping[str, Any] | None:
    """The modes of the outermost call, in which its function is compiled; None where that is not known."""

    def named(one: Event) -> tuple[object, ...]:
        return tuple(one["entry"][key] for key in ("name", "file", "line"))

    known = [
        one
        for one in found.signatures
        if one.get("entry") and not one.get("within") and one["call"] <= signature["call"]
        if named(one) == named(signature)
    ]
    own = [one for one in known if one["call"] == signature["call"]] or known
    modes = [one["modes"] for one in own]
    return modes[-1] if modes and all(one == modes[0] for one in modes) else None


class _Names:
    """Names of a call's arguments: as the call spells them where it does, else by parameter."""

    def __init__(self, signature: Event, places: Places) -> None:
        self._parameters = signature["entry"]["parameters"]
        self._call = _parsed_call(signature.get("caller"), places)

    def of(self, path: str) -> tuple[str, bool]:
        """The name, and whether it is the caller's: a variable that it can mark."""
        kind, _, rest = path.partition("[")
        key, _, rest = rest.partition("]")
        parameter, given = self._keyword(key) if kind == "kwargs" else self._positional(int(key))
        # An expression makes another tensor each time: what is marked must be a variable.
        if given is not None and _is_variable(given):
            return ast.unparse(given) + rest, True
        return parameter + rest, False

    def parameter(self, path: str) -> str:
        """The name of the argument that a path begins with, in the function that is called."""
        kind, _, rest = path.partition("[")
        key = rest.partition("]")[0]
        if kind == "kwargs":
            return str(ast.literal_eval(key))
        number = int(key)
        return self._parameters[number] if number < len(self._parameters) else f"argument {number + 1}"

    def _positional(self, number: int) -> tuple[str, ast.expr | None]:
        given = [] if self._call is None else self._call.args
        if self._is_bound():
            given = [self._call.func.value, *given]  # type: ignore[union-attr]
        plain = number < len(given) and not any(isinstance(one, ast.Starred) for one in given)
        known = number < len(self._parameters)
        parameter = self._parameters[number] if known else f"argument {number + 1}"
        return parameter, given[number] if plain else None

    def _is_bound(self) -> bool:
        """Whether the call is one of a method that was compiled in its class: the object comes first."""
        called = None if self._call is None else self._call.func
        if not isinstance(called, ast.Attribute) or self._parameters[:1] != ["self"]:
            return False
        return not (isinstance(called.value, ast.Name) and called.value.id[:1].isupper())

    def _keyword(self, key: str) -> tuple[str, ast.expr | None]:
        name = ast.literal_eval(key)
        keywords = [] if self._call is None else self._call.keywords
        given = next((keyword.value for keyword in keywords if keyword.arg == name), None)
        spread = [keyword.value for keyword in keywords if keyword.arg is None]
        if given is None and len(spread) == 1:
            given = ast.Subscript(spread[0], ast.Constant(name), ast.Load())  # **batch
        return name, given


def _is_variable(given: ast.expr) -> bool:
    """Whether an expression gives the same object at every look."""
    while isinstance(given, ast.Attribute | ast.Subscript):
        if isinstance(given, ast.Attribute) and given.attr in _VIEWS:
            return False
        if isinstance(given, ast.Subscript) and not _is_key(given.slice):
            return False
        given = given.value
    return isinstance(given, ast.Name)


# Attributes of a tensor that are another tensor at every look.
_VIEWS = ("T", "mT", "H", "mH", "data", "real", "imag")


def _is_key(item: ast.expr) -> bool:
    """Whether a subscript is a dict's: what a tensor gives for a number or a slice is new each time."""
    return isinstance(item, ast.Constant) and isinstance(item.value, str)


def _parsed_call(caller: Event | None, places: Places) -> ast.Call | None:
    return next((node for node in reversed(_around(caller, places)) if isinstance(node, ast.Call)), None)


def _around(caller: Event | None, places: Places) -> Sequence[ast.AST]:
    """The nodes around a call, from the outside; none where its place is not known."""
    if caller is None or None in (caller["end_line"], caller["column"], caller["end_column"]):
        return ()
    position = (caller["line"], caller["column"], caller["end_line"], caller["end_column"])
    return places.sources.around(caller["file"], position)


def _compared(signature: Event) -> dict[str, tuple[str, Any]]:
    """What is passed, and what objects that are passed hold, by the path that leads to it."""
    held = {path: ("tensor", tensor) for path, tensor in signature.get("held", {}).items()}
    passed = leaves(signature["args"], signature["kwargs"])
    return {**held, **{path: (kind, value) for path, kind, value in passed}}
