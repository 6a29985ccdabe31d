"""What the loop around a read does: Python's bookkeeping, cells of a table, one group after the other."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from breakscope.diagnose import uses
from breakscope.diagnose.becomes import OF_TENSORS_ALONE, End, is_tensor

_CHANGES = re.compile(
    r"(append|appendleft|extend|insert|add|update|setdefault|push|pop|popleft|remove|discard)$"
)
_Loop = ast.For | ast.While


def of_bookkeeping(around: Sequence[ast.AST], ends: Sequence[End], *, is_given: bool = False) -> _Loop | None:
    """The outermost loop that takes a value and does nothing but Python's own work; else None.

    Args:
        is_given: whether the value is made of arguments alone: then the caller can calculate a little, too.
    """
    ways = [around, *(end.way for end in ends if end.looped or end.gathered)]
    for way in ways:
        for loop in _loops(way):
            light = is_given and not _calls_modules(loop) and not _reduces(loop) and _puts(loop)
            if _keeps_books(loop) and (light or not _computes(loop, around, way)):
                return loop
    return None


def turns_left(around: Sequence[ast.AST]) -> tuple[int, ...]:
    """The lines of the loop around a place on which a turn is left where a number of things is 0."""
    return tuple(
        one.lineno
        for loop in _loops(around)[-1:]
        for one in loop.body
        if isinstance(one, ast.If)
        and [*map(type, one.body)] == [ast.Continue]
        and re.search(r"\.(numel\(\)|shape\[0\]|size\(0\)|any\(\)|sum\(\))|\blen\(", ast.unparse(one.test))
    )


def _calls_modules(loop: _Loop) -> bool:
    """Whether a loop calls what an object holds, or a function that is not Python's own."""
    calls = [node for node in ast.walk(loop) if isinstance(node, ast.Call)]
    return any(
        ast.unparse(call.func).startswith(("self.", "torch.", "F."))
        or (isinstance(call.func, ast.Name) and call.func.id not in dir(builtins))
        for call in calls
    )


def _reduces(loop: _Loop) -> bool:
    """Whether a loop calls what only tensors have, a sum of one or the like."""
    calls = [node for node in ast.walk(loop) if isinstance(node, ast.Call)]
    return any(isinstance(call.func, ast.Attribute) and call.func.attr in OF_TENSORS_ALONE for call in calls)


def _puts(loop: _Loop) -> bool:
    """Whether a loop puts something into a list or takes it out."""
    calls = [node for node in ast.walk(loop) if isinstance(node, ast.Call)]
    return any(_CHANGES.match(uses.called(call)) for call in calls if isinstance(call.func, ast.Attribute))


def _loops(way: Sequence[ast.AST]) -> list[_Loop]:
    """The loops of the innermost function of a way, the outermost first."""
    functions = [at for at, node in enumerate(way) if isinstance(node, ast.FunctionDef)]
    inside = way[functions[-1] :] if functions else way
    return [node for node in inside if isinstance(node, _Loop)]


def _keeps_books(loop: _Loop) -> bool:
    """Whether a loop changes what only Python holds: a list, a dict, a number."""
    for node in ast.walk(loop):
        match node:
            case ast.Call(ast.Attribute(attr=name)) if _CHANGES.match(name):
                return True
            case ast.Assign([ast.Subscript()]):
                return True
            case ast.AugAssign(target=ast.Name() | ast.Subscript()):
                return True
    return False


def _computes(loop: _Loop, around: Sequence[ast.AST], way: Sequence[ast.AST]) -> bool:
    """Whether a loop does any operation on tensors, but for reading single values of them."""
    read = {
        id(part)
        for node in ast.walk(loop)
        if _is_read(node)
        for part in ast.walk(node)
        if not (isinstance(part, ast.Call) and ast.unparse(part.func).startswith(("self.", "torch.", "F.")))
    }
    read |= {id(around[-1])}
    outside = [*way[: way.index(loop)], loop]
    made = [
        _of_assignment(node) if isinstance(node, ast.Assign | ast.AugAssign) else node
        for statement in loop.body
        for node in ast.walk(statement)
        if isinstance(node, ast.Call | ast.BinOp | ast.Assign | ast.AugAssign)
    ]
    # What a method of the object itself does is not read here: it may compute.
    return any(id(node) not in read and (is_tensor(node, outside) or _is_own_method(node)) for node in made)


def _is_own_method(node: ast.AST) -> bool:
    match node:
        case ast.Call(ast.Attribute(ast.Name("self"))):
            return True
    return False


def _of_assignment(node: ast.Assign | ast.AugAssign) -> ast.expr:
    """What is written to, where that is an item, so that a tensor would be changed; else what is given."""
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    return target.value if isinstance(target, ast.Subscript) else node.value


_READS = ("item", "tolist", "numpy", "int", "float", "bool")


def _is_read(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and uses.called(node) in _READS


def of_cells(around: Sequence[ast.AST]) -> str:
    """The table that the loops around a place fill cell by cell, each from others of it; else empty."""
    loops = _loops(around)
    inside = [node for loop in loops[:1] for node in ast.walk(loop) if isinstance(node, ast.For)]
    turns = {name for loop in inside for name in names(loop.target)}
    if len(inside) <= 1:
        return ""
    read = [one for one in _subscripts(loops[0]) if isinstance(one.ctx, ast.Load)]
    for node in ast.walk(loops[0]):
        match node:
            case ast.Assign([ast.Subscript(table, cell)]) | ast.AugAssign(ast.Subscript(table, cell)):
                others = [one.slice for one in read if ast.unparse(one.value) == ast.unparse(table)]
                others = [one for one in others if ast.unparse(one) != ast.unparse(cell)]
                if all(any(len(turns & set(names(at))) > 1 for at in cells) for cells in ([cell], others)):
                    return ast.unparse(table)
    return ""


_SAME_POSITIONS = ("squeeze", "flatten", "ravel", "view", "reshape")  # of a mask of one dimension


def takes_first(around: Sequence[ast.AST]) -> bool:
    """Whether one of all positions is taken: ``mask.nonzero()[0]``, ``[0, 0]``, ``.item()``.

    Of ``torch.where(mask)[0]`` only a second ``[0]`` takes one: the first one names a dimension.
    """
    call = around[-1]
    if not isinstance(call, ast.Call):
        return False
    by_dimension = uses.is_by_dimension(call)
    for child, parent in pairwise(reversed(around)):
        match parent:
            case ast.Subscript(value=value) if value is child and _is_zero(parent.slice):
                if not by_dimension:
                    return True
                by_dimension = False
            case ast.Attribute(attr="item") | ast.Call(ast.Name("int"), [_]):
                return not by_dimension
            case ast.Attribute(attr=name) if name not in _SAME_POSITIONS:
                return False
            case ast.Call(func=func) if func is not child:
                return False
            case ast.Attribute() | ast.Call():
                pass
            case _:
                return False
    return False


def takes_last(around: Sequence[ast.AST]) -> bool:
    """Whether the last of all positions is taken: ``mask.nonzero()[-1]``, ``torch.where(mask)[0][-1]``."""
    for child, parent in pairwise(reversed(around)):
        match parent:
            case ast.Subscript(value=value) if value is child:
                if ast.unparse(uses.index_parts(parent.slice)[0]) == "-1":
                    return True
            case _:
                return False
    return False


def _is_zero(chosen: ast.expr) -> bool:
    parts = uses.index_parts(chosen)
    return all(isinstance(part, ast.Constant) and part.value == 0 for part in parts)


def mask_of(call: ast.Call) -> str:
    """What a call finds the positions of: ``mask`` of ``mask.nonzero()`` and ``torch.where(mask)``."""
    match call:
        case ast.Call(ast.Attribute(attr="where" | "nonzero" | "argwhere"), [asked]):
            return ast.unparse(asked)
        case ast.Call(ast.Attribute(asked, "nonzero"), []):
            return ast.unparse(asked)
    return ""


def of_backtrace(around: Sequence[ast.AST]) -> bool:
    """Whether the function of a place follows indices back one by one, as Viterbi: ``at = back[t][at]``."""
    function = uses.function(around)
    back = [
        node
        for node in (ast.walk(function) if function is not None else ())
        if isinstance(node, ast.For) and re.search(r"\breversed\(|::-1\]|, -1\)$", ast.unparse(node.iter))
    ]
    return any(
        _is_followed(statement)
        for loop in back
        for statement in loop.body
        if isinstance(statement, ast.Assign)
    )


def _is_followed(statement: ast.Assign) -> bool:
    """Whether a name becomes what it picks, or what the last item of a list picks: ``best = back[best]``."""
    return any(
        ast.unparse(target) in map(ast.unparse, ast.walk(one.slice))
        or ast.unparse(one.slice).endswith("[-1]")
        for target in statement.targets
        for one in _subscripts(statement.value)
    )


def of_neighbours(around: Sequence[ast.AST]) -> bool:
    """Whether loops put what they count by into lists: ``pairs.append((i, j))`` of two loops."""
    loops = [loop for loop in _loops(around) if isinstance(loop, ast.For)]
    inside = [node for loop in loops[:1] for node in ast.walk(loop)]
    every = [node for node in inside if isinstance(node, ast.For)]
    turns = [set(names(loop.target)) for loop in every]
    put = {
        name
        for node in inside
        if isinstance(node, ast.Call) and uses.called(node) == "append"
        for given in node.args
        for name in ([given.id] if isinstance(given, ast.Name) else _parts(given))
    }
    picks = any(
        not isinstance(part, ast.Slice) and any(turn & set(names(part)) for turn in turns)
        for node in inside
        if isinstance(node, ast.Subscript)
        for part in uses.index_parts(node.slice)
    )
    return len(every) > 1 and picks and all(turn & put for turn in turns[:2])


def _parts(node: ast.expr) -> list[str]:
    """The names that a tuple or a list is made of."""
    parts = node.elts if isinstance(node, ast.Tuple | ast.List) else []
    return [part.id for part in parts if isinstance(part, ast.Name)]


def of_tallies(around: Sequence[ast.AST]) -> str:
    """What loops around a branch add into, cell by cell, where it holds; empty where it does more."""
    branch = next((node for node in reversed(around) if isinstance(node, ast.If)), None)
    if branch is None or branch.orelse or not _loops(around):
        return ""
    tables = [
        ast.unparse(line.target.value)
        for line in branch.body
        if isinstance(line, ast.AugAssign)
        and isinstance(line.op, ast.Add)
        and isinstance(line.target, ast.Subscript)
    ]
    return tables[0] if tables and len(tables) == len(branch.body) else ""


def of_pairs(around: Sequence[ast.AST]) -> bool:
    """Whether nested loops hold values against each other, each with each, and count: ``a[i] > a[j]``."""
    loops = [loop for loop in _loops(around) if isinstance(loop, ast.For)]
    if len(loops) > 1 and not any(isinstance(node, ast.Assign | ast.Call) for node in _body(loops[-1])):
        turns = [set(names(loop.target)) for loop in loops[-2:]]
        counted = [node.target for node in _body(loops[-1]) if isinstance(node, ast.AugAssign)]
        # What is written where the turns say is no count.
        counts = any(not set.union(*turns) & set(names(target)) for target in counted)
        return counts and any(
            all(any(turn & set(names(one.slice)) for one in _subscripts(node)) for turn in turns)
            for node in _body(loops[-1])
            if isinstance(node, ast.Compare)
        )
    if len(loops) == 1:  # what leaves the outer turn: its inner loop says what is done
        return any(
            isinstance(node, ast.For) and of_pairs([*around[: around.index(loops[0]) + 1], node])
            for node in loops[0].body
        )
    return False


def _body(loop: ast.For) -> Iterator[ast.AST]:
    return (node for statement in loop.body for node in ast.walk(statement))


def _subscripts(node: ast.AST) -> Iterator[ast.Subscript]:
    return (part for part in ast.walk(node) if isinstance(part, ast.Subscript))


def names(node: ast.AST) -> list[str]:
    """The names in an expression."""
    return [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]


@dataclass(frozen=True, slots=True)
class Groups:
    """A loop over groups: what says of each element which group it is of, and how many groups there are.

    counted: what counts groups that are not counted from 0: ``classes, index = torch.unique(labels, …)``;
    turn: the loop's variable.
    """

    of: str
    number: str
    counted: str = ""
    turn: str = ""


def of_groups(around: Sequence[ast.AST], mask: ast.expr | None) -> Groups | None:
    """The groups, where a mask picks one group in each turn of a loop: ``x[group == g]``."""
    function = uses.function(around)
    if isinstance(mask, ast.Name) and function is not None:
        made = [
            node.value
            for node in ast.walk(function)
            if isinstance(node, ast.Assign) and mask.id in uses.targets(node)
        ]
        mask = made[0] if len(made) == 1 else mask
    turns = [(one.target, one.iter) for one in _loops(around) if isinstance(one, ast.For)]
    turns += [(one.target, one.iter) for node in around for one in getattr(node, "generators", ())]
    for target, over in turns:
        match mask, target:
            case ast.Compare(left, [ast.Eq()], [right]), ast.Name(turn):
                sides = {ast.unparse(left): ast.unparse(right), ast.unparse(right): ast.unparse(left)}
                if turn in sides and (values := _different(over, function)):
                    classes = over.id if isinstance(over, ast.Name) else "classes"
                    counted = f"{classes}, index = torch.unique({values}, return_inverse=True), and "
                    return Groups("index", f"len({classes})", counted, turn)
                if turn in sides:
                    return Groups(sides[turn], _number(over), turn=turn)
    return None


def _different(over: ast.expr, function: ast.AST | None) -> str:
    """What a loop goes over the different values of: ``labels`` of ``for c in torch.unique(labels)``."""
    given: list[ast.expr] = [over]
    if isinstance(over, ast.Name) and function is not None:
        given = [
            node.value
            for node in ast.walk(function)
            if isinstance(node, ast.Assign) and over.id in uses.targets(node)
        ]
    match given:
        case [ast.Call(ast.Attribute(ast.Name("torch"), "unique"), [values], [])]:
            return ast.unparse(values)
        case [ast.Call(ast.Attribute(values, "unique"), [], [])]:
            return ast.unparse(values)
    return ""


def _number(over: ast.expr) -> str:
    match over:
        case ast.Call(ast.Name("range"), [count]):
            return ast.unparse(count)
    return "n"
