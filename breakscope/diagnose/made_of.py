"""Of which arguments and lines the size of a value is made, by the source alone.

Values alone tell little: of two sizes that grew at one call either may explain a third one, and so may a
selection. What the source of a name leads to says which of them can.
"""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from breakscope.diagnose import begins, kinds, uses
from breakscope.diagnose.becomes import defined, is_mask_made, is_tensor, outside_of
from breakscope.project.sources import Sources
from breakscope.source.names import name_parts

_NO_SIZE = ("device", "dtype", "layout", "requires_grad", "ndim", "is_cuda", "training", "itemsize")
# What has the sizes that it is given as numbers, whatever it is called on.
_MAKES = re.compile(
    r"(new_(zeros|ones|empty|full|tensor)|zeros|ones|empty|full|rand|randn|randint|arange|eye)$"
)
# What gives for each element one, so that a dimension stays what it was.
_EACH = re.compile(
    r"(relu|gelu|silu|elu|tanh|sigmoid|exp|log|sqrt|rsqrt|abs|neg|float|double|half|long|int|bool|to|type|type_as"
    r"|contiguous|detach|clone|masked_fill|clamp|clip|where|dropout|softmax|log_softmax|pow|add|sub|mul|div|round"
    r"|\w+_like|copy|cpu|cuda|requires_grad_|zero_|fill_|square|sin|cos)$"
)
_LIBRARIES = ("torch", "F", "np", "numpy", "nn", "math", "functional")
_SELECTS = ("nonzero", "argwhere", "masked_select", "unique", "unique_consecutive", "flatnonzero", "bincount")
_PACKS = ("pack_padded_sequence", "pack_sequence")
_Way = Sequence[ast.AST]
Item = int | str | None
Side = tuple[str, Item, int | None]
# What is asked of a name: a side, which values it may hold there (the first and the last), whether padded.
_Asked = tuple[Side, tuple[int, ...], bool]
_DEEP = 3  # functions that call each other
_MOST = 3000  # names and calls that are looked at: what takes more is left to the values


@dataclass(frozen=True, slots=True)
class Made:
    """What the size of a value comes of.

    Attributes:
        sides: what decides it of what the outermost function is passed, as ``(parameter, item, dimension)``;
            None where any item or any dimension of it may be that.
        lines: (file, line) of what selects by data, reads a number of data, or is a call that may do so.
        kept: whether what an object keeps takes part.
        sure: those of the lines that surely give it a size of data.
    """

    sides: frozenset[Side] = frozenset()
    lines: frozenset[tuple[str, int]] = frozenset()
    kept: bool = False
    sure: frozenset[tuple[str, int]] = frozenset()

    @property
    def arguments(self) -> frozenset[str]:
        """The parameters of the outermost function."""
        return frozenset(name for name, _, _ in self.sides)

    @property
    def data(self) -> bool:
        """Whether something on the way surely has its size from data."""
        return bool(self.sure)

    def is_of(self, parameter: str, item: Item, dimension: int) -> bool:
        """Whether a dimension of an argument, or of an item of it, may decide it."""
        return any(
            name == parameter
            # An item of a tensor has other dimensions than the tensor.
            and ((at in (item, None) and of in (dimension, None)) or (item is None and at is not None))
            for name, at, of in self.sides
        )

    @property
    def is_of_arguments(self) -> bool:
        """Whether nothing but the arguments decides it."""
        return bool(self.arguments) and not (self.lines or self.kept or self.data)

    def __or__(self, other: Made) -> Made:
        return Made(
            self.sides | other.sides,
            self.lines | other.lines,
            self.kept or other.kept,
            self.sure | other.sure,
        )


_NOTHING = Made()
_EVERY = "*"  # one of the items, whichever a loop is at


class _UnknownError(Exception):
    """The source does not tell: a name of a function around, or too many ways."""


def made_of(
    sources: Sources,
    source: str,
    dimension: int | None,
    place: tuple[str, int],
    calls: Sequence[tuple[str, int, str]],
) -> Made | None:
    """What a guarded size comes of; None where the source does not tell.

    Args:
        source: what is guarded, ``h`` or ``value from line 7``; place: where its function stands at work.
        calls: (file, line, function) of the calls that lead there, the innermost first; the last one is in
            the outermost function.
    """
    file, line = place
    way = sources.around_function(file, line)
    if not way:
        return None
    temporary = re.search(r"from line (\d+)$", source)
    name = re.match(r"(?!self\b)[A-Za-z_]\w*(\[\d+\])?", source)
    reader = _Reader(file, way)
    with contextlib.suppress(_UnknownError):
        if temporary is not None:
            item = re.match(r"value\[(\d+)\]", source)
            found = reader.of_line(int(temporary[1]), dimension, None if item is None else int(item[1]))
        else:
            whole = name is not None and source == name[0]
            found = None if name is None else reader.of_name(name[0], dimension if whole else None, line=line)
        return None if found is None else _outwards(sources, found, reader, calls)
    return None


def _outwards(
    sources: Sources,
    found: Made,
    inner: _Reader,
    calls: Sequence[tuple[str, int, str]],
) -> Made | None:
    """The same in the arguments of the outermost function, through the calls that lead to a function."""
    for file, line, _ in calls:
        way = sources.around_function(file, line)
        if not way:
            return None
        reader = _Reader(file, way, work=inner.work)
        outer = replace(found, sides=frozenset())
        for name, item, dimension in found.sides:
            given = reader.given(reader.handed(name, inner.function, line), line, dimension, item)
            if given is None:
                return None
            outer |= given
        found, inner = outer, reader
    # Which of the call's arguments ``*args`` and ``**kwargs`` are, no name tells.
    gathered = {one.arg for one in (inner.function.args.vararg, inner.function.args.kwarg) if one is not None}
    return None if any(name.partition("[")[0] in gathered for name in found.arguments) else found


@dataclass
class _Work:
    """How much was looked at for one question, by all of its readers, and what they share.

    Attributes:
        steps: names and calls that were looked at; tensors: of which expressions it is known whether they
            are tensors; functions: what calls call, with its returns; inside: what functions return.
    """

    steps: int = 0
    tensors: dict[int, bool] = field(default_factory=dict)
    functions: dict[int, tuple[ast.FunctionDef | None, list[ast.Return]]] = field(default_factory=dict)
    inside: dict[tuple[int, int | None, int | None, int], Made] = field(default_factory=dict)

    def count(self) -> None:
        self.steps += 1
        if self.steps > _MOST:
            raise _UnknownError

    def is_tensor(self, node: ast.expr, way: _Way) -> bool:
        if id(node) not in self.tensors:
            self.tensors[id(node)] = is_tensor(node, way)
        return self.tensors[id(node)]

    def called(self, node: ast.Call, way: _Way) -> tuple[ast.FunctionDef | None, list[ast.Return]]:
        """The function that a call calls, where its source is there, and what it returns."""
        if id(node) not in self.functions:
            function = defined(node, way)
            returns = [one for one in ast.walk(function) if isinstance(one, ast.Return)] if function else []
            self.functions[id(node)] = function, returns
        return self.functions[id(node)]


@dataclass
class _Reader:
    """One function, of which names are asked.

    Attributes:
        asked: names that are being asked, which ends circles.
        depth: how many functions called each other; padded: above 0 where what was packed is padded again.
        known: what names were found to be; cut: names that were met while they were asked.
    """

    file: str
    way: _Way
    asked: set[_Asked] = field(default_factory=set)
    depth: int = 0
    padded: int = 0
    known: dict[_Asked, Made] = field(default_factory=dict)
    cut: set[_Asked] = field(default_factory=set)
    work: _Work = field(default_factory=_Work)

    @property
    def function(self) -> ast.FunctionDef:
        own = self.way[-1]
        assert isinstance(own, ast.FunctionDef)
        return own

    def of_line(self, line: int, dimension: int | None, item: int | None = None) -> Made | None:
        """What a value that a statement holds at a break on its line may come of; or one item of it."""
        around = [
            node
            for node in ast.walk(self.function)
            if isinstance(node, ast.stmt)
            and not isinstance(node, ast.FunctionDef)
            and node.lineno <= line <= (node.end_lineno or node.lineno)
        ]
        if not around:
            return None
        statement = max(around, key=lambda node: node.lineno)
        whole = getattr(statement, "value", None)
        if isinstance(whole, ast.Call) and item is not None:
            return self._of_call(whole, None, item)
        if isinstance(whole, ast.expr):
            return self.of(whole, dimension)
        head = getattr(statement, "iter", None) or getattr(statement, "test", None)
        return self.of(head, None) if isinstance(head, ast.expr) else None

    def of_name(
        self, name: str, dimension: int | None, item: Item = None, line: int | None = None
    ) -> Made | None:
        """What a name, or an item of it, may hold on a line; None of one that is neither given nor passed.

        One of the further arguments, ``given[1]`` of ``*given``, is a name of its own.
        """
        side = name, item, dimension
        gifts = self._given.get(name, [])
        above = _above(gifts, line)
        key = side, tuple(id(one.value) for one in (*above[:1], *above[-1:])), self.padded > 0
        if key in self.asked:
            self.cut.add(key)
            return _NOTHING
        if key in self.known:
            return self.known[key]
        self.work.count()
        whole, _, further = name.partition("[")
        if further:
            varied = self.function.args.vararg
            is_one = varied is not None and varied.arg == whole and whole not in self._given
            return Made(frozenset({side})) if is_one else self.of_name(whole, None, line=line)
        passed = name in uses.parameters(self.function)
        if not passed and name not in self._given:
            return self._of_outside(name)
        self.asked.add(key)
        # One name may hold several things, one after the other.
        passed = passed and not any(one.replaces and one.line is not None for one in above)
        found = Made(frozenset({side})) if passed else _NOTHING
        for value, own, *_ in above if passed or above else gifts:
            if own is None:
                found |= self.of_item(value, dimension, item)
            else:
                found |= self.of_item(value, None if own == _EVERY or item is not None else dimension, own)
        self.asked.discard(key)
        self.cut.discard(key)
        if not self.cut:  # else a part of it is still being asked
            self.known[key] = found
        return found

    def of_item(self, node: ast.expr, dimension: int | None, item: Item) -> Made:
        """What an item of an expression comes of; all of it where none is asked for."""
        match node:
            case _ if item is None or item == _EVERY:
                return self.of(node, dimension)
            case ast.Name(name):
                return self.of_name(name, dimension, item, node.lineno) or _NOTHING
            case ast.Tuple(parts) | ast.List(parts) if isinstance(item, int) and item < len(parts):
                return self.of(parts[item], dimension)
            case ast.Attribute(of, "shape") | ast.Call(ast.Attribute(of, "size"), []):
                return self.of(of, item if isinstance(item, int) else None)
            case ast.Call():
                return self._of_call(node, dimension, item if isinstance(item, int) else None)
        return self.of(node, None)

    def _of_outside(self, name: str) -> Made | None:
        """Of a name that the function does not set: one of a function around it is another one's matter."""
        for node in self.way[:-1]:
            if isinstance(node, ast.FunctionDef) and (
                name in uses.parameters(node) or name in _given_in(node)
            ):
                raise _UnknownError
        values = (
            uses.given(one, name) for one in getattr(self.way[0], "body", ()) if isinstance(one, ast.Assign)
        )
        is_set = any(value is not None and not isinstance(value, ast.Constant) for value in values)
        return Made(kept=True) if is_set else None

    @property
    def _given(self) -> dict[str, list[_Gift]]:
        return _given_in(self.function)

    def of(self, node: ast.expr, dimension: int | None) -> Made:
        """What the size of an expression comes of; of a number, what that is made of."""
        match node:
            case ast.Constant() | ast.JoinedStr() | ast.Lambda():
                return _NOTHING
            case ast.Name(name):
                return self.of_name(name, dimension, None, node.lineno) or _NOTHING
            case ast.Attribute(value, "shape"):
                return self.of(value, None)
            case ast.Attribute(_, attr) if attr in _NO_SIZE:
                return _NOTHING
            case ast.Attribute(ast.Name("self")):
                return Made(kept=True)
            case ast.Attribute(value):
                return self.of(value, None)
            case ast.Subscript():
                return self._of_index(node, dimension)
            case ast.Call():
                return self._of_call(node, dimension)
        parts = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
        loops = [part.iter for part in getattr(node, "generators", ())]
        is_each = isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare | ast.IfExp)
        return self._all([*parts, *loops], dimension if is_each else None)

    def _all(self, nodes: Iterable[ast.expr], dimension: int | None) -> Made:
        found = _NOTHING
        for node in nodes:
            found |= self.of(node, dimension)
        return found

    def _here(self, node: ast.expr, *, data: bool = True) -> Made:
        lines = frozenset(
            (self.file, line) for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
        )
        return Made(lines=lines, sure=lines if data else frozenset())

    def _of_index(self, node: ast.Subscript, dimension: int | None) -> Made:
        parts = uses.index_parts(node.slice)
        match node:
            case ast.Subscript(ast.Attribute(of, "shape"), ast.Constant(int(at))):
                return self.of(of, at if at >= 0 else None)
        bounds = [end for one in parts if isinstance(one, ast.Slice) for end in (one.lower, one.upper) if end]
        found = self._all(bounds, None)
        # A number takes its dimension away.
        stay = [one for one in parts if not (isinstance(one, ast.Constant) and isinstance(one.value, int))]
        chosen = [one for one in parts if not isinstance(one, ast.Slice | ast.Constant | ast.UnaryOp)]
        for part in chosen:
            if self._is_number(part):
                continue
            if self._may_select(part):
                found |= self._here(node)
                if dimension is not None and stay.index(part) == dimension:
                    return found  # which is what was selected, however large the rest is
            else:
                found |= self.of(part, None)
        match node:
            case ast.Subscript(ast.Name() as holder, ast.Constant(int() as key)):
                return found | self.of_item(holder, dimension, key)
            case ast.Subscript(ast.Name() as holder, ast.Constant(str() as key)):
                return found | self.of_item(holder, dimension, key)
        inside = (
            dimension if chosen == [] and not any(isinstance(one, ast.Constant) for one in parts) else None
        )
        return found | self.of(node.value, inside)

    def _is_number(self, part: ast.expr) -> bool:
        seen = kinds.of(part, self.way) if isinstance(part, ast.Name | ast.Attribute) else None
        values = self._given.get(part.id, ()) if isinstance(part, ast.Name) else ()
        counts = (one.value for one in values if isinstance(one.value, ast.Call))
        return seen in ("int", "str") or any(uses.called(one) in ("range", "enumerate") for one in counts)

    def _may_select(self, part: ast.expr) -> bool:
        """Whether an index selects by data: a mask, or positions of one."""
        seen = kinds.of(part, self.way) if isinstance(part, ast.Name | ast.Attribute) else None
        # A list of masks, which gets another value by the same name later on.
        later = isinstance(part, ast.Name) and len(self._given.get(part.id, ())) > 1
        if seen is not None and (seen.startswith("tensor") or not later):
            return seen.startswith(("tensor bool", "tensor uint8")) or (
                seen.startswith("tensor") and self._is_found(part)
            )
        return isinstance(part, ast.Name) or is_mask_made(part, self.way) or not self._is_ranked(part)

    def _is_found(self, part: ast.expr) -> bool:
        made = self.of(part, None)
        return made.data

    def _is_ranked(self, part: ast.expr) -> bool:
        called = {uses.called(node) for node in ast.walk(part) if isinstance(node, ast.Call)}
        return bool(called & {"argmax", "argmin", "topk", "argsort", "arange", "randperm", "sort"})

    def _into(
        self,
        function: ast.FunctionDef,
        returns: Sequence[ast.Return],
        call: ast.Call,
        dimension: int | None,
        item: int | None,
    ) -> Made:
        """The same of what a function of one's own returns, in what the call gives it."""
        key = id(function), dimension, item, self.depth
        if (found := self.work.inside.get(key)) is None:
            found = self.work.inside[key] = self._returned(function, returns, dimension, item)
        outer = replace(found, sides=frozenset())
        for name, at, of in found.sides:
            if name not in ("self", "cls"):
                part = _further(name, function, call) or begins.handed(name, [function], [call])
                outer |= _NOTHING if part is None else self.of_item(part, of, at)
        return outer | self._here(call, data=False) if found.lines else outer

    def _returned(
        self,
        function: ast.FunctionDef,
        returns: Sequence[ast.Return],
        dimension: int | None,
        item: int | None,
    ) -> Made:
        """What a function returns, in its own arguments."""
        outside = outside_of(function, self.way)
        file = getattr(outside[0], "path", self.file)
        inner = _Reader(file, (*outside, function), depth=self.depth + 1, work=self.work)
        found = _NOTHING
        for node in returns:
            match node:
                case ast.Return(ast.Tuple(parts)) if item is not None and item < len(parts):
                    found |= inner.of(parts[item], dimension)
                case ast.Return(value) if value is not None:
                    found |= inner.of(value, dimension if item is None else None)
        return found

    def _of_call(self, node: ast.Call, dimension: int | None, item: int | None = None) -> Made:
        self.work.count()
        function, returns = self.work.called(node, self.way) if self.depth < _DEEP else (None, [])
        plain = not any(isinstance(one, ast.Starred) for one in node.args)
        if function is not None and plain and any(one.value for one in returns):
            return self._into(function, returns, node, dimension, item)
        name, func = uses.called(node), node.func
        given = [*node.args, *(one.value for one in node.keywords if one.arg not in ("device", "dtype"))]
        owner = func.value if isinstance(func, ast.Attribute) else None
        of_library = owner is not None and name_parts(owner)[:1] in [[one] for one in _LIBRARIES]
        if name in ("item", "tolist") or (name in ("int", "float", "bool") and owner is None):
            asked = owner if owner is not None else next(iter(node.args), None)
            of_data = name in ("item", "tolist") or (
                asked is not None and self.work.is_tensor(asked, self.way)
            )
            return self._here(node) if of_data else self._all(given, None)
        if name == "len" and node.args:
            return self.of(node.args[0], 0)
        if name in ("size", "numel") and owner is not None and not of_library:
            at = node.args[0] if node.args else None
            which = at.value if isinstance(at, ast.Constant) and isinstance(at.value, int) else None
            return self.of(owner, which if which is not None and which >= 0 else None)
        if name == "pad_packed_sequence":  # which gives what was packed
            self.padded += 1
            found = self._all(given, None)
            self.padded -= 1
            return found
        if name in _PACKS and self.padded:
            return self._all(given, None)
        if name in (*_SELECTS, *_PACKS) or (name == "where" and len(node.args) == 1):
            return self._here(node)
        if _MAKES.match(name):
            sizes = _listed(node.args) if name.removeprefix("new_") in _BY_SIDES else []
            of_one = dimension is not None and dimension < len(sizes)
            return self._all([sizes[dimension]] if of_one else given, None)  # type: ignore[index]
        if dimension is not None and (moved := _moved(node, name, dimension, of_library)) is not None:
            return self._all(*moved)
        if name in ("randn_like", "zeros_like", "ones_like", "empty_like", "full_like", "rand_like"):
            return self.of(node.args[0], dimension) if node.args else _NOTHING
        inside = dimension if _EACH.match(name) else None
        parts = given if owner is None or of_library else [owner, *given]
        own = ast.unparse(func).startswith("self.") and isinstance(owner, ast.Name)
        found = self._all(given if own else parts, inside)
        # What a function of one's own does inside is not looked at: it may select.
        known = of_library or (owner is not None and not own and self.work.is_tensor(owner, self.way))
        return found if known else found | self._here(node, data=False)

    def _calls(self, line: int) -> list[ast.Call]:
        return [
            node
            for node in ast.walk(self.function)
            if isinstance(node, ast.Call) and node.lineno <= line <= (node.end_lineno or node.lineno)
        ]

    def handed(self, name: str, function: ast.AST, line: int) -> ast.expr | None:
        """What a call on a line gives for a parameter of a function, where one call there calls it."""
        own, calls = getattr(function, "name", ""), self._calls(line)
        named = [call for call in calls if uses.called(call) == own]
        if own == "forward" and not named:  # of a module, which is called by its own name
            methods = {node.name for node in ast.walk(self.way[0]) if isinstance(node, ast.FunctionDef)}
            named = [
                call
                for call in calls
                if ast.unparse(call.func).startswith("self.") and uses.called(call) not in methods
            ]
        if not isinstance(function, ast.FunctionDef):
            return None
        if len(named) > 1:
            called = ((call, self.work.called(call, self.way)[0]) for call in named)
            named = [call for call, own in called if own is not None and own.lineno == function.lineno]
        if len(named) != 1:
            return None
        return _further(name, function, named[0]) or begins.handed(name, [function], [named[0]])

    def given(self, part: ast.expr | None, line: int, dimension: int | None, item: Item) -> Made | None:
        """What the size of a part that is handed on comes of; of an unknown one, all that calls are given."""
        if part is not None:
            return self.of_item(part, dimension, item)
        calls = self._calls(line)
        if not calls:
            return None
        parts = [part for call in calls for part in (*call.args, *(one.value for one in call.keywords))]
        found = self._all(parts, None)
        return found | Made(kept=found == _NOTHING)


# What has one size after the other as its arguments, or as the first of them.
_BY_SIDES = ("zeros", "ones", "empty", "full", "rand", "randn")
_JOINS = ("cat", "concat", "concatenate")


def _listed(given: Sequence[ast.expr]) -> Sequence[ast.expr]:
    """Numbers that a call is given, each as an argument or all as the first of them; none if starred."""
    listed = given[0].elts if given and isinstance(given[0], ast.Tuple | ast.List) else given
    return [] if any(isinstance(one, ast.Starred) for one in listed) else listed


def _moved(
    call: ast.Call, name: str, dimension: int, of_library: bool
) -> tuple[Sequence[ast.expr], int | None] | None:
    """What a dimension of a tensor's other form comes of, and which dimension of that; None if not plain."""
    func = call.func
    owner = func.value if isinstance(func, ast.Attribute) else None
    whole = next(iter(call.args), None) if of_library else owner
    if whole is None:
        return None
    if name in _JOINS and of_library:
        return whole.elts if isinstance(whole, ast.Tuple | ast.List) else [whole], dimension
    listed = _listed(call.args[of_library:])
    if name in ("view", "reshape") and dimension < len(listed):
        side = listed[dimension]
        return None if ast.unparse(side) == "-1" else ([side], None)
    match name, [one.value if isinstance(one, ast.Constant) else None for one in listed]:
        # From behind: how many there are is not known.
        case "permute", [*order] if dimension < len(order) and isinstance(was := order[dimension], int):
            return [whole], was
        case "transpose" | "swapaxes", [int(one), int(other)]:
            return [whole], {one: other, other: one}.get(dimension, dimension)
        case "unsqueeze", [int(at)]:
            return ([], None) if at == dimension else ([whole], dimension - (dimension > at))
    return None


def _further(name: str, function: ast.FunctionDef, call: ast.Call) -> ast.expr | None:
    """What a call gives for one of the further arguments of a function: for ``given[1]`` of ``*given``."""
    found = re.fullmatch(r"\w+\[(\d+)\]", name)
    names = [arg.arg for arg in function.args.args if arg.arg not in ("self", "cls")]
    at = len(names) + int(found[1]) if found else len(call.args)
    plain = not any(isinstance(one, ast.Starred) for one in call.args)
    return call.args[at] if plain and at < len(call.args) else None


class _Gift(NamedTuple):
    """What a statement gives to a name.

    Attributes:
        item: which item of the value. line: where the statement ends; None where the name may hold that
            anywhere. replaces: whether the name surely holds this and nothing older below it.
    """

    value: ast.expr
    item: Item
    line: int | None
    replaces: bool


def _above(gifts: Sequence[_Gift], line: int | None) -> Sequence[_Gift]:
    """What a name may hold on a line: the last that it surely was given above, and all from there on."""
    if line is None or any(one.line is None for one in gifts):  # in a loop, what is below comes first too
        return gifts
    above = [one for one in gifts if one.line is not None and one.line < line]
    return above[max((at for at, one in enumerate(above) if one.replaces), default=0) :]


def _given_in(function: ast.FunctionDef) -> dict[str, list[_Gift]]:
    """What a function gives to its names, from above."""
    held: dict[str, list[_Gift]] | None = getattr(function, "given", None)
    if held is None:
        held = {}
        inner = (ast.For, ast.While, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
        again = [node for node in ast.walk(function) if isinstance(node, inner) and node is not function]
        anywhere = {id(node) for one in again for node in ast.walk(one)}
        for node in ast.walk(function):
            is_placed = isinstance(node, ast.stmt) and id(node) not in anywhere
            line = node.end_lineno if isinstance(node, ast.stmt) and is_placed else None
            replaces = isinstance(node, ast.Assign | ast.AnnAssign) and node in function.body
            for name, value, item in _gives(node):
                held.setdefault(name, []).append(_Gift(value, item, line, replaces))
        for gifts in held.values():
            gifts.sort(key=lambda one: one.line or 0)
        function.given = held  # type: ignore[attr-defined]
    return held


def _gives(node: ast.AST) -> Iterable[tuple[str, ast.expr, Item]]:
    """The names that a statement gives a value, the value, and which item of it."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                parts = target.elts if isinstance(target, ast.Tuple | ast.List) else None
                given = value.elts if isinstance(value, ast.Tuple) and parts is not None else []
                if parts is None:
                    yield from ((name, value, None) for name in _names(target))
                elif len(given) == len(parts):
                    for part, own in zip(parts, given, strict=True):
                        yield from ((name, own, None) for name in _names(part))
                else:
                    for at, part in enumerate(parts):
                        yield from ((name, value, at) for name in _names(part))
        case ast.AnnAssign(target, _, value) | ast.AugAssign(target, _, value) | ast.NamedExpr(target, value):
            if value is not None:
                yield from ((name, value, None) for name in _names(target))
        case ast.For(target, value) | ast.comprehension(target, value):
            yield from ((name, value, _EVERY) for name in _names(target))
        case ast.withitem(value, target) if target is not None:
            yield from ((name, value, None) for name in _names(target))
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(holder), method), given)) if uses.KEEPS.match(method):
            yield from ((holder, one, None) for one in given)


def _names(target: ast.expr) -> Iterable[str]:
    """The names that a target sets; what it sets in a thing, ``x[0]`` or ``x.n``, is none."""
    match target:
        case ast.Name(name):
            yield name
        case ast.Tuple(parts) | ast.List(parts):
            for part in parts:
                yield from _names(part)
        case ast.Starred(part):
            yield from _names(part)
