"""What compiled code does with the value that a guard holds: by def-use in the functions at work."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import PurePath
from typing import Literal

from breakscope.diagnose import becomes, uses
from breakscope.diagnose.becomes import End, Kind
from breakscope.diagnose.decided import Decided, Question
from breakscope.diagnose.guard_advice import TENSORS
from breakscope.diagnose.guard_paths import of_size
from breakscope.diagnose.statements import only_raises
from breakscope.project.sources import Sources
from breakscope.report.model import Guard

_TURNS: tuple[Kind, ...] = ("turns", "loop test")
# What needs a Python number, and what the sentence calls it.
_NEEDS: dict[Kind, str] = {
    "test": "a branch",
    "step": "a branch",
    "turns": "a loop",
    "loop test": "a loop",
    "size": "a size",
    "slice": "a slice",
    "pick": "an index",
    "part": "a choice of what is called",
    "key": "a key",
    "order": "a sort",
    "math": "a function of math",
    "number": "an operation",
    "asked": "an operation",
}
_FIXES: tuple[Kind, ...] = (*_TURNS, "pick", "part", "key", "order", "math", "number")
# Of what torch decided about a size the source need not be asked.
_ENDS_OF_NUMBERS: tuple[Kind, ...] = (*_FIXES, "test", "step")
_CALCULATES: tuple[Kind, ...] = ("arithmetic", "bound", "math")


_OF_TORCH = re.compile(r"(F|torch|nn\.functional)\.")
_IS_OF_MODULES = re.compile(r"\b(ModuleList|ModuleDict|Sequential)\(")
# Operations whose schema takes an ``int``, and no ``SymInt``: each number is another graph.
PLAIN = (
    *("rot90", "unfold", "triu_indices", "tril_indices", "matrix_power", "diag", "diagonal", "diag_embed"),
    *("one_hot", "polygamma", "chunk", "split", "tensor_split", "group_norm", "pixel_shuffle", "linspace"),
    *("hann_window", "histc", "diff", "stft", "avg_pool1d", "avg_pool2d", "max_pool1d", "max_pool2d"),
    *("adaptive_avg_pool1d", "adaptive_max_pool1d"),
)


@dataclass(frozen=True, slots=True)
class Taken:
    """Where a guarded value ends.

    Attributes:
        of_module: False where its object is surely no nn.Module.
        fills: whether something is put into it, where it is a container; loops: whether a loop runs over it.
        grows: whether more is put behind what it holds, so that it is longer at each call.
        is_varied: whether it is the function's own ``*args``. is_named: whether it is its ``**kwargs``.
        caches: whether something is put into it only where it is not there yet.
        is_backward: whether the function is the ``backward`` of an ``autograd.Function``.
        set_by: the class whose ``__init__`` alone sets it; empty where it is set elsewhere too.
        made: the first line on which the function itself makes it, where a break hands it on.
        sets_itself: ``line 9``: where a function at work gives a flag or a text what it had at the later
            call; else empty.
        emptied: ``reset (line 9)``: where a method sets it to None again, or to an empty dict; else empty.
        counted: ``line 9 of ema.py``: where a function at work adds to a number that an object keeps.
        remakes: the line on which a function at work makes a tensor anew that it keeps; else 0.
        recurs: whether the function calls itself with a part of it.
        tensored: the line on which a function at work makes a tensor of it, where it is a container; else 0.
        picks: the items that it reads of a list that it does nothing else with but ask how many it holds.
        turns: another attribute that a loop in a function at work is unrolled over, and the line; else None.
        is_any: whether torch made a graph that serves any value of it; is_one: whether it needed a number.
        is_quotient: whether that is a whole quotient of it.
        parts: what the code asks, to which the first two values that came have different answers.
        closed: the function around the compiled one whose variable it is, as a decorator's; empty if none.
    """

    ends: tuple[End, ...] = ()
    of_module: bool = True
    fills: bool = True
    loops: bool = False
    grows: bool = True
    is_varied: bool = False
    is_named: bool = False
    caches: bool = False
    is_backward: bool = False
    set_by: str = ""
    made: int = 0
    sets_itself: str = ""
    emptied: str = ""
    counted: str = ""
    remakes: int = 0
    recurs: bool = False
    tensored: int = 0
    picks: tuple[str, ...] = ()
    turns: tuple[str, int] | None = None
    is_any: bool = False
    is_one: bool = False
    is_quotient: bool = False
    parts: str = ""
    closed: str = ""

    def known(self, said: Decided, sources: Sources, file: str) -> Taken:
        """The same with what torch decided about it in place of what the source suggests.

        Args:
            file: of the compiled function.
        """

        def named(other: str) -> str:
            return "" if other == file else PurePath(other).name

        if said.is_any:
            kept = [one for one in self.ends if one.kind not in _ENDS_OF_NUMBERS and not _takes_number(one)]
            asked = [(one, _asked_at(sources, one, named(one.file))) for one in said.asked]
            # ``n // 2 == 24`` of an operation: it needs that number, and the next version another one.
            very = [
                replace(end, kind="number") for one, end in asked if end.kind == "asked" and one.is_number
            ]
            asked = [
                (one, end)
                for one, end in asked
                if end.kind == "test" or (not one.is_number and _may_ask(one))
            ]
            parts = Taken(tuple(end for one, end in asked if one.parts)).needed(("test", "asked"))
            every = (*very, *(end for _, end in asked), *kept)
            return replace(self, ends=every, is_any=not very, is_one=bool(very), parts=parts)
        told = {_place(end) for end in self.ends if end.kind in _FIXES or _takes_number(end)}
        ends = [
            _end_at(sources, at, line, named(at), called)
            for at, line, called in said.lines
            if (named(at), line) not in told
        ]
        return replace(self, ends=(*ends, *self.ends), is_one=bool(said.lines), is_quotient=said.is_quotient)

    @property
    def is_range(self) -> bool:
        """Whether it is how often a loop runs."""
        return any(end.kind in _TURNS for end in self.ends)

    @property
    def unrolled(self) -> str:
        """``a loop (line 20)``: the loops whose turns it is; else empty."""
        return self.needed(_TURNS)

    @property
    def is_calculated(self) -> bool:
        """Whether it only goes into operations on tensors, or into numbers that do."""
        kinds = {end.kind for end in self.ends}
        return "arithmetic" in kinds and kinds <= set(_CALCULATES)

    @property
    def needs(self) -> str:
        """``a branch (line 13), a loop (line 20)``: what needs a Python number; else empty."""
        return self.needed(tuple(_NEEDS))

    @property
    def fixes(self) -> str:
        """The same of what makes a constant of a size: no branch, and nothing that takes a symbol."""
        return self.needed(_FIXES) or self.as_number

    @property
    def compared(self) -> str:
        """``line 13``: where Python's min or max compares it; else empty."""
        line = next((getattr(end.taker, "lineno", 0) for end in self.ends if end.kind == "bound"), 0)
        return f"line {line}" if line else ""

    @property
    def given(self) -> str:
        """``an argument of F.dropout (line 7)``: the call of torch's that takes it; else empty."""
        for end in self.ends:
            match end.way[-2:], end.taker:
                case [ast.Call(), ast.keyword()], ast.Call(func=ast.Attribute() as called) as call:
                    if _OF_TORCH.match(ast.unparse(called)):
                        return f"an argument of {ast.unparse(called)} (line {call.lineno})"
        return ""

    @property
    def plain(self) -> str:
        """``torch.rot90 (line 7)``: the operation that takes it as a plain number; else empty."""
        calls = [end.taker for end in self.ends if isinstance(end.taker, ast.Call)]
        return next(
            (f"{ast.unparse(one.func)} (line {one.lineno})" for one in calls if uses.called(one) in PLAIN), ""
        )

    @property
    def listed(self) -> str:
        """``range (line 7)``: where a range of it is an index or a list, and no loop; else empty."""
        calls = [end.taker for end in self.ends if end.kind not in _TURNS and isinstance(end.taker, ast.Call)]
        return next((f"range (line {one.lineno})" for one in calls if uses.called(one) == "range"), "")

    @property
    def repeated(self) -> str:
        """``a list of as many items (line 7)``: of ``[None] * n``; else empty."""
        for end in self.ends:
            match end.taker:
                case ast.BinOp(ast.List() | ast.Tuple(), ast.Mult(), _) | ast.BinOp(
                    _, ast.Mult(), ast.List() | ast.Tuple()
                ):
                    return f"a list of as many items (line {end.taker.lineno})"
        return ""

    @property
    def divided(self) -> str:
        """```n / 16` (line 6)``: what makes a float of it; else empty."""
        takers = (end.taker for end in self.ends)
        return next(
            (
                f"`{ast.unparse(one)}` (line {one.lineno})"
                for one in takers
                if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Div)
            ),
            "",
        )

    @property
    def is_unsure(self) -> bool:
        """Whether all that makes a constant of it stands in branches that ask for something else."""
        takes = [end for end in self.ends if end.kind in _FIXES]
        return bool(takes) and not (self.as_number or self.is_one) and all(map(_is_in_branch, takes))

    @property
    def as_number(self) -> str:
        """What takes it as Python's number where a symbol would do for most; else empty."""
        return self.plain or self.listed or self.repeated

    @property
    def read_too(self) -> str:
        """``lines 7, 9``: where it is read for something else than a test; else empty."""
        ends = [end for end in self.ends if end.kind not in ("test", "step")]
        lines = sorted({getattr(end.taker, "lineno", 0) for end in ends} - {0})[:3]
        return f"line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))}" if lines else ""

    @property
    def by_numpy(self) -> str:
        """``np.exp (line 7)``: the function of numpy's that takes it; else empty."""
        calls = [end.taker for end in self.ends if end.kind == "numpy" and isinstance(end.taker, ast.Call)]
        return f"{ast.unparse(calls[0].func)} (line {calls[0].lineno})" if calls else ""

    @property
    def picked(self) -> str:
        """``self.nets (line 7)``: the list of Python's from which it picks; else empty."""
        for end in self.ends:
            match end.taker:
                case ast.Subscript(_, ast.Tuple()):
                    continue  # which no list takes
                case ast.Subscript(value=of) if becomes.is_list(of, end.way):
                    return f"{ast.unparse(of)} (line {end.taker.lineno})"
        return ""

    @property
    def picks_module(self) -> bool:
        """Whether that is a list of modules."""
        name = self.picked.partition(" ")[0]
        values = (value for end in self.ends for value in becomes.values_of(name, end.way))
        return any(_IS_OF_MODULES.search(ast.unparse(value)) is not None for value in values)

    def needed(self, kinds: Sequence[Kind]) -> str:
        """The same of some kinds of needs; of what torch told also what was asked: ``line 13: n <= 40``."""
        lines: dict[str, list[str]] = {}
        told: dict[tuple[str, str], list[str]] = {}
        for end in self.ends:
            line = f"{getattr(end.taker, 'lineno', 0)}{f' of {end.file}' * bool(end.file)}"
            raises = only_raises(statement := uses.statement(end.way)) or isinstance(statement, ast.Assert)
            unsure = end.kind == "test" and (end.unsure or raises)
            if end.kind in kinds and not unsure and isinstance(end.taker, ast.Pass) and end.name:
                said = told.setdefault((_NEEDS[end.kind], line), [])
                said += [end.name] * (end.name not in said)
            elif end.kind in kinds and not unsure and line not in lines.setdefault(_NEEDS[end.kind], []):
                lines[_NEEDS[end.kind]].append(line)
        asked = [f"{what} (line {at}: {_first_of(texts)})" for (what, at), texts in told.items()]
        return ", ".join(
            [
                *asked[:3],
                *(f"{what} (line{'s' * (len(at) > 1)} {', '.join(at[:3])})" for what, at in lines.items()),
            ]
        )


def _first_of(said: Sequence[str]) -> str:
    """What was asked on one line, the first of many."""
    more = len(said) - _SHOWN
    return " and ".join(said[:_SHOWN]) + f" and {more} more" * (more > 0)


_SHOWN = 2


def _takes_number(end: End) -> bool:
    return bool(Taken((end,)).as_number)


def _place(end: End) -> tuple[str, int]:
    return end.file, getattr(end.taker, "lineno", 0)


def _end_at(sources: Sources, file: str, line: int, named: str, called: str) -> End:
    """Where a number is needed, of which torch tells only the line, and the function of its own."""
    way = tuple(sources.around_line(file, line))
    inside = [] if called else [*way, *_statement(way)]
    if any(_turns_on(node, line) for node in inside):
        operation = _plain_in_turn(inside, line)
        kind: Kind = "number" if operation else "turns"
        return End(kind, way, operation, ast.Pass(lineno=line), file=named)
    return End("number", way, called or _only_call(way, line), ast.Pass(lineno=line), file=named)


def _turns_on(node: ast.AST, line: int) -> bool:
    """Whether a loop's turns, or whether it goes on, are decided on a line."""
    match node:
        case ast.For(iter=said) | ast.comprehension(iter=said) | ast.While(test=said):
            return said.lineno <= line <= (said.end_lineno or line)
    return False


def _plain_in_turn(inside: Sequence[ast.AST], line: int) -> str:
    """What a turn of a comprehension calls that takes a plain number, as ``torch.linspace``; else empty."""
    heads = {
        id(part)
        for node in inside
        if isinstance(node, ast.For | ast.comprehension)
        for part in ast.walk(node.iter)
    }
    counted = any(isinstance(node, ast.Call) and id(node) in heads for node in inside)
    calls = (node for node in inside if isinstance(node, ast.Call) and id(node) not in heads)
    plain = (node for node in calls if uses.called(node) in PLAIN and node.lineno <= line)
    return "" if counted else next((ast.unparse(node.func) for node in plain), "")


def _only_call(way: Sequence[ast.AST], line: int) -> str:
    """The one method or function of a module that a line calls: ``x.fill_diagonal_``; else empty.

    Empty too where it has an index, which may be what needs the number.
    """
    inside = [*_statement(way)]
    plain = [node for node in inside if isinstance(node, ast.Call) and uses.called(node) in PLAIN]
    if len(plain) == 1:
        return ast.unparse(plain[0].func)
    if any(isinstance(node, ast.Subscript) for node in inside):
        return ""
    calls = [
        node.func
        for node in inside
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.lineno == line
    ]
    text = ast.unparse(calls[0]) if len(calls) == 1 else ""
    return text if len(text) <= _LONG else ""


_LONG = 60


def _may_ask(asked: Question) -> bool:
    """Whether what an operation asks is worth a word: sizes like those that came may answer otherwise."""
    return asked.parts or (asked.near and asked.alone and len(asked.text) <= _LONG)


def _asked_at(sources: Sources, asked: Question, named: str) -> End:
    """Where something was asked of it, in which words."""
    way = tuple(sources.around_line(asked.file, asked.line)) if asked.line else ()
    branches = any(isinstance(node, ast.If | ast.While | ast.IfExp | ast.BoolOp) for node in _statement(way))
    text = asked.text if len(asked.text) <= _LONG else ""
    return End("test" if branches else "asked", way, text, ast.Pass(lineno=asked.line), file=named)


def _statement(way: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """What stands in the statement of a line, without the lines that belong to it."""
    statement = uses.statement(way)
    held = getattr(statement, "test", getattr(statement, "iter", statement))
    if statement is not None and isinstance(held, ast.AST):
        yield from (statement, *ast.walk(held))


def _is_in_branch(end: End) -> bool:
    """Whether a branch, which may not be taken, is around where a value ends."""
    function = uses.function(end.way)
    inside = end.way[end.way.index(function) :] if function in end.way else end.way
    return any(isinstance(one, ast.If) and one.test is not after for one, after in pairwise(inside))


def taken(
    sources: Sources,
    guard: Guard,
    at_work: Sequence[tuple[str, int]],
    eager: Collection[tuple[str, str]] = (),
) -> Taken:
    """What the functions at work do with a guarded value.

    Args:
        at_work: (file, line) of the compiled function first, then of those that were inlined in it.
        eager: (file, name) of the functions that Dynamo gave up: what they do, no graph does.
    """
    worked = [(file, way) for file, line in at_work if (way := sources.around_function(file, line))]
    ways = [way for _, way in worked]
    found = [
        end if file == at_work[0][0] or end.file else replace(end, file=PurePath(file).name)
        for at, (file, way) in enumerate(worked)
        for end in _ends(guard, way, inlined=at > 0)
        if not _is_eager(end, way[-1], file, eager)
    ]
    if (guard.source or "").startswith("self."):
        found += [
            end for way in ways[:1] for called in _called(way) for end in _ends(guard, called, inlined=False)
        ]
    every = [*ways, *_others(ways, guard)]
    emptied = _emptied(ways, guard.source or "")
    fills = not ways or any(_fills(way, guard.source or "") for way in every)
    return Taken(
        tuple(found),
        of_module=not any(map(_is_plain_class, ways[:1])),
        fills=fills,
        loops=any(_is_looped(way[-1], guard.source or "") for way in ways),
        grows=not ways or any(_grows(way[-1], guard.source or "") for way in every),
        caches=any(_caches(way[-1], guard.source or "") for way in every),
        is_varied=any(_gathers(way[-1], "vararg", guard.source) for way in ways[:1]),
        is_named=any(_gathers(way[-1], "kwarg", guard.source) for way in ways[:1]),
        is_backward=any(getattr(way[-1], "name", "") == "backward" for way in ways[:1]),
        set_by=_set_by(ways, guard.source or ""),
        made=_made(ways[0], guard.source or "") if ways and guard.resumed else 0,
        sets_itself=""
        if emptied
        else next(
            filter(
                None,
                (_sets_flag(way[-1], guard, "" if file == at_work[0][0] else file) for file, way in worked),
            ),
            "",
        ),
        emptied=emptied,
        counted=next(
            filter(
                None, (_counts(way[-1], guard, "" if file == at_work[0][0] else file) for file, way in worked)
            ),
            "",
        ),
        remakes=next(filter(None, (_remakes(way[-1], guard.source or "") for way in ways)), 0),
        recurs=any(_recurs(way[-1], guard.source or "") for way in ways[:1]),
        tensored=next(filter(None, (_tensored(way[-1], guard.source or "") for way in ways)), 0),
        picks=_picks(ways[0][-1], guard.source or "") if len({id(way[-1]) for way in ways}) == 1 else (),
        turns=next(filter(None, (_turns_over(way, guard.source or "") for way in ways)), None),
        closed=_closed(ways[0], guard.source or "") if ways else "",
    )


def _closed(way: Sequence[ast.AST], name: str) -> str:
    """The function around the innermost one whose variable a name is; empty where it is none."""
    *around, own = [node for node in way if isinstance(node, ast.FunctionDef)]
    name = name.partition(".__closure__")[0]  # a function in it may be one that another decorator made
    if not around or not name.isidentifier() or name in _names(own):
        return ""
    return next((node.name for node in reversed(around) if name in _names(node)), "")


def _names(function: ast.FunctionDef) -> set[str]:
    """What a function is given or sets."""
    names = (node for node in ast.walk(function) if isinstance(node, ast.Name))
    return uses.parameters(function) | {name.id for name in names if isinstance(name.ctx, ast.Store)}


def _sets_flag(function: ast.AST, guard: Guard, file: str) -> str:
    """The lines on which a function gives an attribute what a later call had, where it was none; else empty.

    That is a flag or a text, or what was made there in place of None.
    """
    _, dot, attribute = (guard.source or "").rpartition(".")
    lines = []
    for node in ast.walk(function) if dot else ():
        match node:
            case ast.Assign([ast.Attribute(attr=attr)], ast.Constant(bool() | str() as value)):
                if attr == attribute and guard.actual in (repr(value), type(value).__name__, "set"):
                    lines.append(str(node.lineno))
            case ast.Assign([ast.Attribute(attr=attr)], value) if not isinstance(value, ast.Constant):
                if attr == attribute and guard.expected == "None" and guard.actual in TENSORS:
                    lines.append(str(node.lineno))
    of = f" of {PurePath(file).name}" * bool(file)
    return f"line{'s' * (len(lines) > 1)} {' or '.join(lines)}{of}" if lines else ""


def _emptied(ways: Sequence[Sequence[ast.AST]], name: str) -> str:
    """Where a method other than ``__init__`` empties an attribute: ``reset (line 9)``; else empty.

    An argument that is None where it is not given is one too.
    """
    _, dot, attribute = name.rpartition(".")
    owners = [node for node in ways[0] if isinstance(node, ast.ClassDef | ast.Module)] if ways else []
    functions = ast.walk(owners[-1]) if dot and owners else ()
    for function in (node for node in functions if isinstance(node, ast.FunctionDef)):
        optional = uses.optional(function)
        for node in ast.walk(function) if function.name != "__init__" else ():
            match node:
                case ast.Assign([ast.Attribute(attr=attr)], value) if attr == attribute:
                    if _is_empty(value) or (isinstance(value, ast.Name) and value.id in optional):
                        return f"{function.name} (line {node.lineno})"
    return ""


def _is_empty(value: ast.expr) -> bool:
    return uses.is_none(value) or ast.unparse(value) in ("{}", "[]", "dict()", "list()")


def _picks(function: ast.AST, name: str) -> tuple[str, ...]:
    """The items that a function reads of an argument; none where it does more with it than ask how many."""
    found: dict[str, None] = {}
    for use in uses.uses(function, name) if name.isidentifier() else ():
        match use[-2]:
            case ast.Subscript(slice=ast.Constant(int()) | ast.UnaryOp(ast.USub(), ast.Constant(int()))):
                found[ast.unparse(use[-2])] = None
            case ast.Call(ast.Name("len")) if isinstance(
                use[-3], ast.Compare | ast.BoolOp | ast.If | ast.IfExp
            ):
                pass
            case ast.Compare(_, [ast.Is() | ast.IsNot()]) | ast.BoolOp():
                pass
            case ast.If() | ast.IfExp() as choice if use[-1] is choice.test:
                pass
            case _:
                return ()
    return tuple(found)


def _counts(function: ast.AST, guard: Guard, file: str) -> str:
    """The line on which a function adds to a number that an object keeps, with its file if given."""
    _, dot, attribute = (guard.source or "").rpartition(".")
    for node in ast.walk(function) if dot else ():
        match node:
            case ast.AugAssign(ast.Attribute(attr=attr)) if attr == attribute:
                return f"line {node.lineno}{f' of {PurePath(file).name}' * bool(file)}"
    return ""


def _remakes(function: ast.AST, name: str) -> int:
    """The line on which a function makes what an object keeps anew where that is too short; else 0."""
    if not name.startswith("self."):
        return 0
    for branch in (node for node in ast.walk(function) if isinstance(node, ast.If)):
        # Where it is None it is made for the first time, or was taken away in between.
        held = [
            one
            for one in ast.walk(branch.test)
            if isinstance(one, ast.Compare) and not isinstance(one.ops[0], ast.Is | ast.IsNot)
        ]
        if not any(name in map(ast.unparse, ast.walk(one)) for one in held):
            continue
        for node in (part for line in branch.body for part in ast.walk(line)):
            if isinstance(node, ast.Assign) and name in uses.targets(node):
                return node.lineno
    return 0


def _turns_over(way: Sequence[ast.AST], name: str) -> tuple[str, int] | None:
    """The attribute that says how often a loop of a function runs, where that is not what is asked for.

    One that ``__init__`` alone sets changes only with the object.
    """
    owner = next((node for node in reversed(way) if isinstance(node, ast.ClassDef)), None)
    methods = [node for node in getattr(owner, "body", ()) if isinstance(node, ast.FunctionDef)]
    sets = [
        (method.name, ast.unparse(node))
        for method in methods
        for node in ast.walk(method)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    ]
    for loop in (node for node in ast.walk(way[-1]) if isinstance(node, ast.For)):
        match loop.iter:
            case ast.Call(ast.Name("range"), [ast.Attribute(ast.Name("self")) as over]):
                by = {method for method, text in sets if text == ast.unparse(over)}
                if ast.unparse(over) != name and (by != {"__init__"} or name.startswith("self.")):
                    return ast.unparse(over), loop.lineno
    return None


_MAKES_TENSOR = re.compile(r"(as_tensor|tensor|asarray|(Long|Float)?Tensor)$")


def _tensored(function: ast.AST, name: str) -> int:
    """The line on which a function makes a tensor of a list, or of a list that holds it; else 0."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and node.args and _MAKES_TENSOR.match(uses.called(node)):
            given = node.args[0]
            if name in map(ast.unparse, (given, *getattr(given, "elts", ()))):
                return node.lineno
    return 0


def _recurs(function: ast.AST, name: str) -> bool:
    """Whether a function calls itself with a part of what an argument holds: ``self(tree[0])``."""
    own = getattr(function, "name", "")
    of = re.match(r"\w+", name)
    called = {own, f"self.{own}"} | ({"self"} if own == "forward" else set())
    return of is not None and any(
        isinstance(node, ast.Call)
        and ast.unparse(node.func) in called
        and any(re.match(rf"{of[0]}[.\[]", ast.unparse(given)) for given in node.args)
        for node in ast.walk(function)
    )


def _is_eager(end: End, own: ast.AST, file: str, eager: Collection[tuple[str, str]]) -> bool:
    """Whether a value ends in a function that is given up, and not in the one that is compiled."""
    function = uses.function(end.way)
    return function is not None and function is not own and (file, function.name) in eager


def _called(way: Sequence[ast.AST], depth: int = 0) -> Iterator[tuple[ast.AST, ...]]:
    """The methods of its own class that a method calls, with what is around them."""
    *around, function = way
    owner = next((node for node in reversed(around) if isinstance(node, ast.ClassDef)), None)
    names = {
        node.func.attr
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_self(node.func.value)
    }
    for method in owner.body if owner is not None else ():
        if isinstance(method, ast.FunctionDef) and method.name in names and method is not function:
            yield (*around, method)
            if depth < _DEEP:
                yield from _called((*around, method), depth + 1)


def _properties(way: Sequence[ast.AST], name: str) -> Iterator[str]:
    """The properties of its own class that only give an attribute: ``self.step`` of ``self._step``."""
    owner = next((node for node in reversed(way[:-1]) if isinstance(node, ast.ClassDef)), None)
    for method in owner.body if owner is not None else ():
        match method:
            case ast.FunctionDef(body=[*_, ast.Return(value)]) if "property" in map(
                ast.unparse, method.decorator_list
            ):
                if value is not None and ast.unparse(value) == name:
                    yield f"self.{method.name}"


def _is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _others(ways: Sequence[Sequence[ast.AST]], guard: Guard) -> list[tuple[ast.AST, ...]]:
    """The other functions of the first one's file, which a container in a global is for as well."""
    if not ways or "G['" not in guard.expression:
        return []
    functions = (node for node in ast.walk(ways[0][0]) if isinstance(node, ast.FunctionDef))
    return [(ways[0][0], node) for node in functions if all(node is not way[-1] for way in ways)]


def _caches(function: ast.AST, name: str) -> bool:
    """Whether a function puts something into a container where it asked that it is not in there."""
    for test in (node for node in ast.walk(function) if isinstance(node, ast.If)):
        asks = re.search(rf"\bnot in {re.escape(name)}(?![\w.\[])", ast.unparse(test.test))
        inside = (use for body in test.body for use in uses.uses(body, name))
        if asks and any(isinstance(use[-2], ast.Subscript) and _is_stored(use[-2]) for use in inside):
            return True
    return False


def _is_stored(place: ast.Subscript) -> bool:
    return isinstance(place.ctx, ast.Store)


def _made(way: Sequence[ast.AST], name: str) -> int:
    """The first line on which a function gives a value to a name that is none of its arguments; else 0."""
    function, name = way[-1], re.split(r"[.\[]", name)[0]
    if not isinstance(function, ast.FunctionDef):
        return 0
    given = uses.parameters(function)
    if name in given or any(_unpacks(node, name, given) for node in ast.walk(function)):
        return 0
    lines = [
        node.lineno
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
    ]
    return min(lines, default=0)


def _unpacks(node: ast.AST, name: str, given: set[str]) -> bool:
    """Whether a name is an argument under another one: ``self, *_ = args``."""
    match node:
        case ast.Assign([target], ast.Name(of)) if of in given:
            return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(target))
    return False


def _gathers(function: ast.AST, by: Literal["vararg", "kwarg"], name: str | None) -> bool:
    """Whether a name is what a function takes its further arguments by: ``*args`` or ``**kwargs``."""
    taken = getattr(function.args, by) if isinstance(function, ast.FunctionDef) else None
    return taken is not None and taken.arg == name


def _grows(function: ast.AST, name: str) -> bool:
    """Whether a function appends to a container, or hands it on to what may do so."""
    for use in _uses_before(function, name):
        match use[-3:]:
            case [ast.Call(), ast.Attribute(attr=attr), _] if uses.KEEPS.match(attr):
                return True
            case [_, ast.Call() as call, given] if given in call.args and not _ASKS.match(uses.called(call)):
                return True
            case [_, ast.AugAssign(), _]:
                return True
    return _adds_to_item(function, name)


def _adds_to_item(function: ast.AST, name: str) -> bool:
    """Whether more is put behind an item, under whatever key: ``times.setdefault(name, []).append(t)``."""
    item = re.compile(rf"{re.escape(name.partition('[')[0])}(\[|\.setdefault\()")
    return "[" in name and any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("append", "extend")
        and item.match(ast.unparse(node.func.value)) is not None
        for node in ast.walk(function)
    )


def _set_by(ways: Sequence[Sequence[ast.AST]], name: str) -> str:
    """The class that gives an attribute its value in ``__init__``, and nowhere else in the files at work."""
    first = ways[0] if ways else ()
    owner = next((node for node in reversed(first) if isinstance(node, ast.ClassDef)), None)
    attribute = re.fullmatch(r"self\.(\w+)", name)
    if owner is None or attribute is None:
        return ""
    modules = {id(way[0]): way[0] for way in ways}.values()
    inside, others = (
        {id(node) for one in begins for node in ast.walk(one)} for begins in _begins(modules, owner)
    )
    sets = [
        node
        for module in modules
        for node in ast.walk(module)
        if isinstance(node, ast.Attribute) and node.attr == attribute[1] and isinstance(node.ctx, ast.Store)
    ]
    # What another class calls self is another object.
    own = [node for node in sets if id(node) not in others or ast.unparse(node.value) != "self"]
    return owner.name if own and all(id(node) in inside for node in own) else ""


def _begins(modules: Iterable[ast.AST], owner: ast.ClassDef) -> tuple[list[ast.AST], list[ast.AST]]:
    """The ``__init__`` of a class, and those of the other classes that are not its bases."""
    bases = {ast.unparse(base) for base in owner.bases}
    own: list[ast.AST] = []
    others: list[ast.AST] = []
    for one in (node for module in modules for node in ast.walk(module) if isinstance(node, ast.ClassDef)):
        begins = [part for part in one.body if isinstance(part, ast.FunctionDef) and part.name == "__init__"]
        if one is owner:
            own += begins
        elif one.name not in bases:
            others += begins
    return own, others


def _is_looped(function: ast.AST, name: str) -> bool:
    """Whether a loop runs over a container, by enumerate, zip or reversed, or by how many it holds."""
    counts = {name, f"len({name})"}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and ast.unparse(node.value) == f"len({name})":
            counts.update(uses.targets(node))
    over = [node.iter for node in ast.walk(function) if isinstance(node, ast.For | ast.comprehension)]
    for _ in range(_WRAPPED):  # reversed(range(len(r) - 1))
        over += [
            part
            for one in over
            for part in (*getattr(one, "args", ()), getattr(one, "left", None))
            if isinstance(part, ast.expr) and part not in over
        ]
    return any(ast.unparse(part) in counts for part in over)


# What makes something of a container, and leaves it as it is.
_ASKS = re.compile(
    r"(len|enumerate|zip|range|sum|sorted|set|list|tuple|min|max|any|all"
    r"|tensor|as_tensor|asarray|array|(Long|Float)Tensor|stack|cat|concat|hstack|vstack)$"
)
_WRAPPED = 3  # calls around what a loop runs over
_DEEP = 3  # functions that a container is handed through


def _fills(way: Sequence[ast.AST], name: str, depth: int = 0) -> bool:
    """Whether a function puts something into a container, or hands it on to what may do so."""
    for use in _uses_before(way[-1], name):
        match use[-3:]:
            case [ast.Call(func=method), ast.Attribute(attr=attr) as asked, _] if method is asked:
                if uses.KEEPS.match(attr):
                    return True
            case [_, ast.Call() as call, given] | [ast.Call() as call, ast.keyword() as given, _]:
                if not _ASKS.match(uses.called(call)) and _may_fill(call, given, way, depth):
                    return True
            case [_, ast.Subscript(slice=place, ctx=ast.Store()), _]:
                if not _is_there(place, way[-1], name):
                    return True
    return _adds_to_item(way[-1], name)


def _is_there(place: ast.AST, function: ast.AST, name: str) -> bool:
    """Whether an item is written that a loop over the list counts: it has no more for that."""
    loops = [node for node in ast.walk(function) if isinstance(node, ast.For)]
    counted = {f"range(len({name}))", f"enumerate({name})"}
    turns = {
        ast.unparse(getattr(loop.target, "elts", [loop.target])[0])
        for loop in loops
        if ast.unparse(loop.iter) in counted
    }
    return ast.unparse(place) in turns


def _uses_before(function: ast.AST, name: str) -> Iterator[tuple[ast.AST, ...]]:
    """Where a function reads a name, up to where it gives another value to it."""
    again = (one for one in getattr(function, "body", ()) if isinstance(one, ast.Assign))
    ends = next((one for one in again if name in map(ast.unparse, one.targets)), None)
    last = getattr(ends, "end_lineno", None)
    for use in uses.uses(function, name):
        if last is None or getattr(use[-1], "lineno", 0) <= last:
            yield use


def _may_fill(call: ast.Call, given: ast.AST, way: Sequence[ast.AST], depth: int) -> bool:
    handed = becomes.handed_on(call, given, way)
    if handed is None or depth == _DEEP:
        return True
    function, name = handed
    return _fills((way[0], function), name, depth + 1)


def _ends(guard: Guard, way: Sequence[ast.AST], *, inlined: bool) -> Iterator[End]:
    function = way[-1]
    if not isinstance(function, ast.FunctionDef) or guard.source is None:
        return
    if of_size(guard) and guard.dimension is not None:
        names = [arg.arg for arg in function.args.args] if inlined else [_named(guard.source, function)]
        for name in names:
            yield from _ends_of_size(way, name, guard.dimension)
        return
    last = re.search(r"(\w+)$", guard.source)
    attribute = {f"self.{last[1]}", last[1]} if last and inlined else set()
    for name in sorted({guard.source, *_properties(way, guard.source)} | attribute):
        yield from becomes.ends_of(way, name)


def _named(source: str, function: ast.FunctionDef) -> str:
    """The name that a line gives a temporary: ``h`` of ``value[0] from line 7``, for ``h, _ = rnn(x)``."""
    found = re.fullmatch(r"value(?:\[(\d+)\])? from line (\d+)", source)
    for node in ast.walk(function) if found else ():
        if found and isinstance(node, ast.Assign) and node.lineno == int(found[2]):
            targets = uses.targets(node)
            at = int(found[1] or 0)
            return targets[at] if at < len(targets) and (found[1] or len(targets) == 1) else source
    return source


def _ends_of_size(way: Sequence[ast.AST], name: str, dimension: int, depth: int = 0) -> Iterator[End]:
    """Where a size of a tensor ends: of ``x.shape``, ``x.size(1)``, ``len(x)``, here or in what gets it."""
    turned = _turned(way[-1], name)
    if all(getattr(use[-1], "lineno", 0) <= turned for use in uses.uses(way[-1], f"{name}.shape")):
        yield from becomes.ends_of(way, f"{name}.shape", slot=dimension)
    for use in uses.uses(way[-1], name):
        if getattr(use[-1], "lineno", 0) > turned:
            continue
        match use[-3:]:
            case [
                ast.Call(ast.Attribute(attr="size"), [ast.Constant(at)]) as call,
                ast.Attribute(),
                ast.Name(),
            ]:
                if at == dimension:
                    yield from becomes.ends([*way[:-1], *use[: use.index(call) + 1]])
            case [ast.Call(ast.Attribute(attr="size"), []) as call, ast.Attribute(), ast.Name()]:
                yield from becomes.ends([*way[:-1], *use[: use.index(call) + 1]], slot=dimension)
            case [_, ast.Call(ast.Name("len")) as call, ast.Name()] if dimension == 0:
                yield from becomes.ends([*way[:-1], *use[: use.index(call) + 1]])
            case [_, ast.Call() as call, ast.Name() as given] if depth < _DEEP:
                handed = becomes.handed_on(call, given, [*way[:-1], *use[: use.index(call) + 1]])
                if handed is not None and handed[0] is not way[-1]:
                    inner = [*becomes.outside_of(handed[0], way), handed[0]]
                    file = "" if inner[0] is way[0] else getattr(inner[0], "file", "")
                    for end in _ends_of_size(inner, handed[1], dimension, depth + 1):
                        yield end if end.file or not file else replace(end, file=file)
        if (dimension == 0 and _is_run_over(use)) or _is_run_over_in_parts(use, dimension):
            yield End("turns", tuple(use), name, use[-1])


_TURNS_ROUND = re.compile(r"(transpose|permute|movedim|moveaxis|swapaxes|swapdims|t|adjoint)_?$")


def _turned(function: ast.AST, name: str) -> float:
    """The line on which a name becomes itself with its dimensions in another order; else infinite."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and name in uses.targets(node):
            parts = [*ast.walk(node.value)]
            methods = [
                part.func.attr
                for part in parts
                if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute)
            ]
            if any(map(_TURNS_ROUND.match, methods)) and name in map(ast.unparse, parts):
                return node.lineno
    return float("inf")


def _is_run_over(use: Sequence[ast.AST]) -> bool:
    """Whether a loop runs over a tensor itself, alone or in ``zip`` and ``enumerate``: a turn for a row."""
    *outside, child = use
    while outside and isinstance(outside[-1], ast.Call) and uses.called(outside[-1]) in _RUNS_OVER:
        child = outside.pop()
    return bool(outside) and getattr(outside[-1], "iter", None) is child


_RUNS_OVER = ("zip", "enumerate", "reversed")


def _is_run_over_in_parts(use: Sequence[ast.AST], dimension: int) -> bool:
    """Whether a loop runs over what ``x.unbind(1)`` or ``x.split(1, dim=1)`` makes of a dimension."""
    match use[-3:]:
        case [ast.Call(ast.Attribute(attr="unbind" | "split" as method), args) as call, ast.Attribute(), _]:
            place = 0 if method == "unbind" else 1
            said = [one.value for one in call.keywords if one.arg == "dim"] or args[place : place + 1]
            along = ast.unparse(said[0]) if said else "0"
            return along == str(dimension) and _is_run_over(use[:-2])
    return False


def _is_plain_class(way: Sequence[ast.AST]) -> bool:
    """Whether the class of a method is no nn.Module: it has no bases, or none that is called like one.

    A class of a library may take its bases from other files. One that has no ``forward`` and is made of
    mixins is a scheduler, a tokenizer, a configuration.
    """
    owner = next((node for node in reversed(way) if isinstance(node, ast.ClassDef)), None)
    if owner is None:
        return False
    has_forward = any(isinstance(one, ast.FunctionDef) and one.name == "forward" for one in owner.body)
    return not has_forward and all(_is_plain_base(base, way, _DEEP) for base in owner.bases)


def _is_plain_base(base: ast.expr, way: Sequence[ast.AST], depth: int) -> bool:
    """Whether a class that another one is made of is surely no module: by its name, or by its own bases."""
    name = ast.unparse(base)
    if name in ("object", "ABC", "abc.ABC") or name.endswith("Mixin"):
        return True
    own = [
        node for node in getattr(way[0], "body", ()) if isinstance(node, ast.ClassDef) and node.name == name
    ]
    return depth > 0 and any(all(_is_plain_base(of, way, depth - 1) for of in one.bases) for one in own)
