"""What torch itself decided about a size or a number: that a graph serves any, or one constant only.

Three records of Dynamo's trace tell it: ``create_symbol``, that a compile takes any value there,
``symbolic_shape_specialization``, that it made a constant of it after all, and ``guard_added_fast``, what it
asked of it; each with the line. What source can only suggest, these know.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import PurePath
from typing import Any

from breakscope.diagnose.guard_paths import of_size, parse, path_of, words
from breakscope.report.model import Guard
from breakscope.report.owners import owner_of

# A number is wanted where torch calls this; a comparison calls another one, and holds for all other sizes.
_WANTS_NUMBER = {"guard_int", "guard_float"}
_LONGEST = 400  # what is asked of many sizes at once is told to nobody
_COMPARES = {"Eq": "==", "Ne": "!="}
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "int": int,
    "float": float,
    "ceil": math.ceil,
    "floor": math.floor,
    "sqrt": math.sqrt,
    "exp": math.exp,
    "log2": math.log2,
}
_IS_FUNCTION = {
    "TruncToInt": "int",
    "ToFloat": "float",
    "CeilToInt": "ceil",
    "FloorToInt": "floor",
    "OpaqueUnaryFn_sqrt": "sqrt",
    "OpaqueUnaryFn_exp": "exp",
    "OpaqueUnaryFn_log2": "log2",
}
_CALCULATES = {
    "IntTrueDiv": "/",
    "FloatTrueDiv": "/",
    "Mod": "%",
    "PythonMod": "%",
    "FloorDiv": "//",
    "CleanDiv": "//",
}

Event = Mapping[str, Any]
DECISIONS = ("create_symbol", "symbolic_shape_specialization", "guard_added_fast")


def read(metadata: Mapping[str, Any], files: Mapping[int, str]) -> tuple[str, dict[str, Any]] | None:
    """The event of a record: its type and fields. None of a record that is none of the three.

    Args:
        files: what the numbers stand for by which Dynamo names files.
    """
    if (made := metadata.get("create_symbol")) is not None:
        value = str(made.get("val", ""))
        return "symbolic", {"sources": [str(made["source"])], "symbol": str(made["symbol"]), "value": value}
    if (fixed := metadata.get("symbolic_shape_specialization")) is not None:
        return "constant", {
            "sources": [*map(str, fixed["sources"])],
            "wanted": not _WANTS_NUMBER.isdisjoint(_called(fixed)),
            "value": str(fixed["value"]),
            "stack": _stack(fixed, files),
        }
    if (asked := metadata.get("guard_added_fast")) is not None:
        expression = str(asked["expr"])
        if len(expression) <= _LONGEST:
            wanted = not _WANTS_NUMBER.isdisjoint(_called(asked))
            return "asked", {"expression": expression, "wanted": wanted, "stack": _stack(asked, files)}
    return None


def _called(record: Mapping[str, Any]) -> set[str]:
    return {frame["name"] for frame in record.get("stack") or ()}


def _stack(record: Mapping[str, Any], files: Mapping[int, str]) -> list[tuple[str, int, str]]:
    return [
        (files[frame["filename"]], int(frame["line"]), str(frame["name"]))
        for frame in record.get("user_stack") or ()
        if frame["filename"] in files
    ]


# ``x.size(0) / 16 == 2.5``: what only one value answers, where each version asks for its own.
VERY_ONE = re.compile(r"^[^%]* == -?\d+(\.\d+)?$")


@dataclass(frozen=True, slots=True)
class Question:
    """What a compile asked of a size or number: each answer is a graph of its own.

    Attributes:
        file: empty where torch's back end asked, and the line is 0 then.
        text: in the names of the source: ``x.size(1) <= 40``.
        parts: whether the value that came before has the other answer.
        near: whether sizes like those that came can have it: half of one, or some times as much.
        alone: whether no other size or number is asked for with it.
        narrow: whether sizes that follow each other have other answers.
    """

    file: str
    line: int
    text: str
    parts: bool
    near: bool
    alone: bool
    narrow: bool = True

    @property
    def is_number(self) -> bool:
        """Whether one quotient of a size is what holds, which few have: ``x.size(0) // 2 == 24``."""
        return self.alone and self.narrow and "/" in self.text and VERY_ONE.match(self.text) is not None


@dataclass(frozen=True, slots=True)
class Decided:
    """What compiles made of one size or number, as it changed.

    Attributes:
        lines: (file, line, function of torch's that it calls, or empty) that needed it as a plain number, so
            that each value is another graph.
        is_any: whether the code serves any value: it was symbolic, and no line made a constant of it.
        asked: what the graph's code asked of it.
        is_quotient: whether it is a whole quotient of it of which the number is needed, as of ``n // 16``.
    """

    lines: tuple[tuple[str, int, str], ...] = ()
    is_any: bool = False
    asked: tuple[Question, ...] = ()
    is_quotient: bool = False


def decided(
    events: Mapping[str | None, Sequence[Event]], compiles: Iterable[str | None], guard: Guard, function: str
) -> Decided:
    """What some compiles decided about what a guard is about.

    Args:
        events: of each compile, those of :func:`read`; function: the code's name, which names temporaries.
    """
    about = guard.source, guard.dimension if of_size(guard) else None
    # Sizes of 0 and 1 are compiled apart in any case.
    least = 0 if about[1] is None and {"0", "1"} & set(guard.values) else 2
    came: list[float] = [int(value) for value in guard.values if value.isdecimal() and int(value) >= least]
    came = [float(value) for value in guard.values if is_float(value)] or came
    before: float | None = None
    if guard.expected is not None and guard.expected.isdecimal():
        before = int(guard.expected)
    elif guard.expected is not None and is_float(guard.expected):
        before = float(guard.expected)
    lines: dict[tuple[str, int, str], None] = {}
    asked: dict[Question, None] = {}
    symbolic, quotients = False, list[bool]()
    compiles = list(dict.fromkeys(compiles))
    each = _made_constant_each_time(events, compiles, about, function)
    for compiled in compiles:
        told = events.get(compiled, ())
        own = [
            one for one in told if any(named(source, function) == about for source in one.get("sources", ()))
        ]
        fixed = [
            one for one in own if one["t"] == "constant" and (one["wanted"] or _line(one["stack"]) in each)
        ]
        symbols = {one["symbol"] for one in own if one["t"] == "symbolic"} or _shared(told, own, guard)
        fixed += [one for one in told if _needs_what_is_made(one, symbols, came, least)]
        quotients += map(_is_quotient, fixed)
        symbolic |= bool(own or symbols) and not any(one["t"] == "constant" for one in own)
        lines |= dict.fromkeys(
            (*place, _function(one["stack"])) for one in fixed if (place := _line(one["stack"])) is not None
        )
        asked |= dict.fromkeys(_asked(told, symbols, function, came, before, least))
        before = None  # of the first compile alone
    is_quotient = bool(quotients) and all(quotients)
    return Decided(tuple(lines), symbolic and not lines, tuple(asked), is_quotient)


def _shared(told: Sequence[Event], own: Sequence[Event], guard: Guard) -> set[str]:
    """The symbol of another size as large, which a size that came with no symbol of its own has too."""
    if own or not of_size(guard):
        return set()
    after = guard.values[1:] if guard.expected == next(iter(guard.values), None) else guard.values
    found = {one["symbol"] for one in told if one["t"] == "symbolic" and one.get("value") in after}
    return found if len(found) == 1 else set()


def _needs_what_is_made(one: Event, symbols: set[str], came: Sequence[float], least: int) -> bool:
    """Whether the number of what is made of a size is needed, as of ``int(n / 16)`` or ``n // 16``."""
    if one["t"] != "asked" or not one.get("wanted"):
        return False
    asked, names = _spoken(one["expression"]), _names_in(one["expression"])
    if asked is None or len(names) != 1 or not names <= symbols:
        return False
    (name,) = names
    values = {*came, *_like(came, least)}
    holds = [value for value in values if _answer(asked, {name: value}) is True]
    return len(holds) == 1 or (_is_quotient(one) and not {*came} <= {*holds})


def _is_quotient(one: Event) -> bool:
    """Whether a whole quotient is asked for, which several sizes have."""
    asked = _spoken(one["expression"]) if one["t"] == "asked" else None
    return asked is not None and _QUOTIENT.match(ast.unparse(asked)) is not None


_QUOTIENT = re.compile(r"\w+ // \d+ == \d+$")


def _made_constant_each_time(
    events: Mapping[str | None, Sequence[Event]],
    compiles: Sequence[str | None],
    about: tuple[str | None, int | None],
    function: str,
) -> set[tuple[str, int] | None]:
    """The lines on which compiles of one code made each another constant of it.

    An operation of torch may ask in C++ whether a size is what it is (``fill_diagonal_``): what looks like a
    branch of one compile is a number that each of them needs.
    """
    codes = {compiled.partition("/")[0] for compiled in compiles if compiled is not None}
    made: dict[tuple[str, int] | None, set[str]] = defaultdict(set)
    for compiled, told in events.items():
        if compiled is None or compiled.partition("/")[0] not in codes:
            continue
        for one in told:
            if one["t"] == "constant" and any(named(source, function) == about for source in one["sources"]):
                made[_line(one["stack"])].add(one["value"])
    return {line for line, values in made.items() if len(values) > 1}


def _asked(
    told: Sequence[Event],
    symbols: set[str],
    function: str,
    came: Sequence[float],
    before: float | None,
    least: int,
) -> Iterable[Question]:
    """What a compile asked of some of its symbols.

    Args:
        came: the values that were seen; before: what came where it was compiled before; least: the least one
            of which the answer matters.
    """
    near, some = _like(came, least), _FLOATS_TRIED if _are_floats(came) else _TRIED
    any_size = tuple(value for value in some if value >= least or some is _FLOATS_TRIED)
    next_to = tuple(range(int(max(came)), int(max(came)) + _NEXT)) if came else near
    made = [one for one in told if one["t"] == "symbolic"]
    names = {one["symbol"]: _words(one["sources"][0], function) for one in made}
    earlier = dict.fromkeys(symbols, before) if before is not None else {}
    for one in told:
        tree = _spoken(one["expression"]) if one["t"] == "asked" and not one.get("wanted") else None
        used = _names_in(one["expression"]) if tree is not None else frozenset()
        if tree is None or not used & symbols or _always(one["expression"], any_size):
            continue
        if any("._base" in names.get(name, "") for name in used):
            continue  # what a view is of is as large whatever comes: nobody asks, and no graph is another one
        file, line = _line(one["stack"]) or ("", 0)
        text = _NAME.sub(lambda name: names.get(name[0], name[0]), ast.unparse(tree))
        parts = _answer(tree, earlier) is False  # None where other sizes decide as well
        is_near = not _always(one["expression"], near)
        is_narrow = not _always(one["expression"], next_to)
        yield Question(file, line, text, parts, is_near, alone=used <= symbols, narrow=is_narrow)


_NAME = re.compile(r"\b[A-Za-z_]\w*\b")


@lru_cache(maxsize=4_096)
def _spoken(expression: str) -> ast.expr | None:
    """What torch asked, with Python's signs: ``s77 % 2 == 0`` of ``Eq(Mod(s77, 2), 0)``."""
    tree = parse(expression)
    return None if tree is None else _Signs().visit(tree)


@lru_cache(maxsize=4_096)
def _names_in(expression: str) -> frozenset[str]:
    tree = _spoken(expression)
    nodes = ast.walk(tree) if tree is not None else ()
    return frozenset(node.id for node in nodes if isinstance(node, ast.Name)) - {"Max", "Min", *_FUNCTIONS}


def is_float(text: str) -> bool:
    """Whether a value is written as a float: ``0.5``, ``1e-05``."""
    return re.fullmatch(r"-?\d+\.\d*(e[-+]?\d+)?|-?\d+e[-+]?\d+", text) is not None


def _are_floats(came: Sequence[float]) -> bool:
    return any(isinstance(value, float) for value in came)


def _like(came: Sequence[float], least: int) -> tuple[float, ...]:
    """Sizes like those that came: around them, from half of one to eight times as much.

    Of floats between half of the least and twice the largest; of rates, which are below 1, not beyond 1.
    """
    if _are_floats(came):
        low, high = min(came), max(came)
        most = 1.0 if low >= 0 and high < 1 else math.inf
        values = (value * by for value in (low, high) for by in _TIMES)
        return tuple(sorted({*came, *(value for value in values if value < most)}))
    low, high = (int(min(came)), int(max(came))) if came else (_SMALL, _SMALL)
    sizes = {low // 2, low // 2 + 1, *range(low, low + 8), high, high + 1, 2 * high, 4 * high + 1, 8 * high}
    return tuple(sorted(size for size in sizes if size >= least))


_TRIED = (0, 1, 2, 3, 4, 5, 7, 8, 16, 100, 1_001, 1 << 20)
_FLOATS_TRIED = (-1e6, -2.0, -0.5, 1e-6, 0.1, 0.25, 0.5, 0.9, 1.5, 2.0, 100.0, 1e6)
_TIMES = (0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0)
_SMALL = 4
_NEXT = 8  # sizes that follow each other
_MOST_NAMES = 3
_OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Mod: operator.mod,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Eq: lambda one, other: math.isclose(one, other, rel_tol=1e-12),  # torch writes 15 digits
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


@lru_cache(maxsize=4_096)
def _always(expression: str, sizes: tuple[float, ...]) -> bool:
    """Whether any of some sizes give the answer yes: ``3*s77 >= 0``."""
    asked, names = _spoken(expression), sorted(_names_in(expression))
    if asked is None or len(names) > _MOST_NAMES:
        return False
    some = sizes if len(names) == 1 else sizes[:: len(names) + 1]  # of several fewer are tried
    tried = (dict(zip(names, values, strict=True)) for values in product(some, repeat=len(names)))
    return all(_answer(asked, values) is True for values in tried)


def _answer(asked: ast.expr, values: Mapping[str, float]) -> bool | None:
    """The answer for some values; None where it is more than arithmetic."""
    try:
        return bool(_value(asked, values))
    except (KeyError, ZeroDivisionError, OverflowError, ValueError):
        return None


def _value(node: ast.expr, values: Mapping[str, float]) -> Any:
    """An expression's value. Raises KeyError where it is more than arithmetic."""
    match node:
        case ast.Constant(int(number) | float(number)):
            return number
        case ast.Name(name):
            return values[name]
        case ast.UnaryOp(ast.USub(), operand):
            return -_value(operand, values)
        case ast.Call(ast.Name("Max" | "Min" as name), [one, other]):
            return (max if name == "Max" else min)(_value(one, values), _value(other, values))
        case ast.Call(ast.Name(name), [one]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](_value(one, values))
        case ast.BinOp(left, ast.BitAnd(), right):
            return _value(left, values) and _value(right, values)
        case ast.BinOp(left, sign, right) | ast.Compare(left, [sign], [right]):
            return _OPERATORS[type(sign)](_value(left, values), _value(right, values))
    raise KeyError(ast.dump(node))


class _Signs(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = ast.unparse(node.func)
        if name in _IS_FUNCTION:
            return ast.Call(ast.Name(_IS_FUNCTION[name], ast.Load()), node.args, [])
        sign = _COMPARES.get(name) or _CALCULATES.get(name)
        if sign is None or len(node.args) != 2:
            return node
        one, other = node.args
        said = parse(f"a {sign} b")
        match said:
            case ast.Compare():
                said.left, said.comparators = one, [other]
            case ast.BinOp():
                said.left, said.right = one, other
        return said or node


@lru_cache(maxsize=4_096)
def named(source: str, function: str) -> tuple[str | None, int | None]:
    """Of one of torch's sources, ``L['x'].size()[0]``, the name and dimension that a guard on it is about."""
    path = path_of(parse(source))
    if path is None:
        return None, None
    match path.geometry():
        case (tensor, "size", int(dimension)):
            return words(tensor, function), dimension
    return words(path, function), None


def _words(source: str, function: str) -> str:
    name, dimension = named(source, function)
    return f"{name or source}.size({dimension})" if dimension is not None else name or source


def _function(stack: Sequence[Sequence[Any]]) -> str:
    """Torch's own function that its innermost frame is in: ``forward of torch's pooling.py``; else empty."""
    file, _, name = stack[-1]
    return f"{name} of torch's {PurePath(file).name}" if owner_of(file, ()) == "torch" else ""


def _line(stack: Sequence[Sequence[Any]]) -> tuple[str, int] | None:
    """The innermost line that is not torch's own."""
    inner = (frame for frame in reversed(stack) if owner_of(frame[0], ()) != "torch")
    return next(((str(file), int(line)) for file, line, _ in inner), None)
