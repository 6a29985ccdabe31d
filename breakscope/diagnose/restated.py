"""Statements said again without what breaks in them, in the names of the source: code to paste."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Sequence
from itertools import pairwise

from breakscope.diagnose import becomes, checks, loops, uses
from breakscope.diagnose.becomes import is_tensor
from breakscope.source.syntax import grouped

_Way = Sequence[ast.AST]
# What gives for each element what it gives for that element alone.
_ELEMENTWISE = re.compile(
    r"(abs|exp|log(2|10|1p)?|sqrt|rsqrt|sin|cos|tan|tanh|sigmoid|relu|gelu|silu|softplus|square|pow|neg|sign|clamp(_min|_max)?"
    r"|clip|floor|ceil|round|float|long|int|double|half|bfloat16|bool|to|type_as|detach|logical_(not|and|or|xor)|maximum|minimum"
    r"|lerp|masked_fill|add|sub|mul|div|nan_to_num|isnan|isfinite|isinf|where|tensor|full_like|zeros_like|ones_like|rand_like|randn_like)$"
)
_LONG = 140
_CASTS = ("float", "double")


def branch(around: _Way) -> str:
    """A branch that only sets tensors, as ``x = torch.where(test, new, x)``; empty where it does more."""
    for parent, child in pairwise(reversed(around)):
        match child:
            case ast.If() as node if parent is node.test:
                return _short(_of_if(node, around))
            case ast.IfExp() as node if parent is node.test:
                return _short(_of_choice(node, around))
    return ""


def _short(text: str | None) -> str:
    return text if text is not None and len(text) <= _LONG else ""


def _of_choice(node: ast.IfExp, around: _Way) -> str | None:
    """``y = a if test else b``; of a choice in an expression the choice alone."""
    test = _of_test(node.test, around)
    statement = uses.statement(around)
    if test is None or not all(_may_be_selected(side, around) for side in (node.body, node.orelse)):
        return None
    is_whole = isinstance(statement, ast.Assign) and statement.value is node
    if not is_whole and all(
        isinstance(one, ast.Constant) and isinstance(one.value, int) for one in (node.body, node.orelse)
    ):
        return None  # such a number mostly goes to Python: how many, which one
    selected = f"torch.where({test}, {ast.unparse(node.body)}, {ast.unparse(node.orelse)})"
    return f"{ast.unparse(statement.targets[0])} = {selected}" if is_whole else selected  # type: ignore[union-attr]


def _of_if(node: ast.If, around: _Way) -> str | None:
    """A branch whose sides give values to the same names; what is Python's own in its test stays a branch."""
    match node:
        case ast.If(ast.BoolOp(ast.And(), parts), body, []):
            first = next((at for at, part in enumerate(parts) if part in around), 0)
            if first:
                rest = ast.BoolOp(ast.And(), parts[first:]) if parts[first + 1 :] else parts[first]
                text = _of_if(ast.If(rest, body, []), around)
                guard = ast.unparse(ast.BoolOp(ast.And(), parts[:first]) if first > 1 else parts[0])
                return text and f"if {guard}: {text}"
    test = _of_test(node.test, around)
    if test is not None and not node.orelse and (each := _of_each(node.body, test)):
        return each
    sides = [_given(side, around) for side in (node.body, node.orelse)]
    if test is None or None in sides:
        return None
    new, old = (side or {} for side in sides)
    names = dict.fromkeys((*new, *old))
    asked = set(loops.names(node.test))
    if len(names) != 1 and any(asked & {name} for name in names):
        return None  # the first line would change what the second asks for
    return "; ".join(
        f"{name} = torch.where({test}, {new.get(name, name)}, {old.get(name, name)})" for name in names
    )


def _of_each(side: Sequence[ast.stmt], test: str) -> str | None:
    """``gs = [g / n for g in gs]``: what a branch makes of each tensor of a list."""
    match side:
        case [
            ast.Assign(
                [ast.Name(name)],
                ast.ListComp(new, [ast.comprehension(ast.Name(one), ast.Name(of), ifs=[]) as turns]),
            )
        ] if name == of and is_elementwise(_without_items(new)):
            return f"{name} = [torch.where({test}, {ast.unparse(new)}, {one}){ast.unparse(turns)}]"
    return None


def _of_test(test: ast.expr, around: _Way) -> str | None:
    """A test as tensors write it; None where a part guards another: ``len(x) > 0 and x.max() > 3``."""
    parts = test.values if isinstance(test, ast.BoolOp) else []
    text = checks.of_tensors(test) if all(is_tensor(part, around) for part in parts) else None
    if text is None or checks.gives_bool(test, around):
        return text
    return f"{grouped(ast.parse(text, mode='eval').body, text)} != 0"


def _given(side: Sequence[ast.stmt], around: _Way) -> dict[str, str] | None:
    """What a side of a branch gives to each name; None where it does more, or computes with what it gave."""
    found: dict[str, str] = {}
    for statement in side:
        match statement:
            case ast.Assign([ast.Name(name)], value):
                pass
            case ast.AugAssign(ast.Name(name) as target, operator, value):
                value = ast.BinOp(ast.Name(target.id), operator, value)
            case _:
                return None
        whole = _Parts(name).visit(copy.deepcopy(value))
        if set(loops.names(value)) & set(found) or not _may_be_selected(whole, around):
            return None
        if name not in loops.names(value) and not _is_number(value) and not is_tensor(value, around):
            return None
        found[name] = ast.unparse(value)
    return found


class _Parts(ast.NodeTransformer):
    """Takes a part of another tensor as it is: a branch that makes a part of its own has two shapes."""

    def __init__(self, name: str) -> None:
        self._name = name

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        return node if self._name in loops.names(node) else self.visit(node.value)


def _may_be_selected(value: ast.expr, around: _Way) -> bool:
    """Whether torch.where takes a side: a number, or a tensor that is computed element by element."""
    return _is_number(value) or (is_elementwise(value) and is_tensor(value, around))


def _is_number(value: ast.expr) -> bool:
    match value:
        case ast.Constant(float()) | ast.Constant(int()):
            return not isinstance(value.value, bool)
        case ast.UnaryOp(ast.USub(), operand):
            return _is_number(operand)
    return False


def is_elementwise(node: ast.expr) -> bool:
    """Whether an expression computes each element of its own element alone, as far as its text says."""
    match node:
        case ast.Constant(value):
            return isinstance(value, int | float)
        case ast.Name():
            return True
        case ast.Attribute(value=of):
            return is_elementwise(of)
        case ast.BinOp(left, operator, right):
            return not isinstance(operator, ast.MatMult) and is_elementwise(left) and is_elementwise(right)
        case ast.UnaryOp(operator, operand):
            return not isinstance(operator, ast.Not) and is_elementwise(operand)
        case ast.Compare(left, [_], [right]):
            return is_elementwise(left) and is_elementwise(right)
        case ast.Call(func, args, named) if _ELEMENTWISE.match(uses.called(node)):
            given = [*args, *(one.value for one in named)]
            given += [func.value] if isinstance(func, ast.Attribute) else []
            return all(map(is_elementwise, given))
    return False


def piece(around: _Way, name: str) -> str:
    """``x[:, p : p + n] = y`` where p is a tensor, by index_copy_; empty of other places.

    Args:
        name: of the variable that holds the number.
    """
    function = uses.function(around) or ast.Pass()
    for statement in ast.walk(function):
        match statement:
            case ast.Assign([ast.Subscript(ast.Name() | ast.Attribute() as of, at)], value):
                parts = uses.index_parts(at)
            case _:
                continue
        pieces = [place for place, part in enumerate(parts) if _begins_at(part, name)]
        rest = [part for place, part in enumerate(parts) if place not in pieces]
        if len(pieces) == 1 and all(ast.unparse(part) == ":" for part in rest):
            length = ast.unparse(parts[pieces[0]].upper.right)  # type: ignore[attr-defined]
            index = f"{name} + torch.arange({length})"
            # One number for all of the piece is no tensor of its shape.
            writes = "index_fill_" if _is_number(value) or _reduces_all(value) else "index_copy_"
            return _short(f"{ast.unparse(of)}.{writes}({pieces[0]}, {index}, {ast.unparse(value)})")
    return ""


def _reduces_all(value: ast.expr) -> bool:
    """Whether it is one number of a whole tensor: ``x.mean()``."""
    return (
        isinstance(value, ast.Call) and not value.args and uses.called(value) in ("mean", "sum", "max", "min")
    )


def _begins_at(part: ast.expr, name: str) -> bool:
    """``p : p + n``."""
    match part:
        case ast.Slice(ast.Name(low), ast.BinOp(ast.Name(also), ast.Add(), _), None):
            return low == also == name
    return False


def store(around: _Way) -> str:
    """``y[mask] = f(x[mask])`` for all elements: ``y = torch.where(mask, f(x), y)``; empty if it is more."""
    statement = uses.statement(around)
    match statement:
        case ast.Assign([ast.Subscript(of, mask)], value):
            pass
        case ast.AugAssign(ast.Subscript(of, mask), operator, value):
            value = ast.BinOp(ast.Subscript(of, mask), operator, value)
        case _:
            return ""
    match mask:
        case ast.Tuple(
            [ast.Name() as rows, ast.Constant() as column]
        ):  # one column of the rows that it selects
            of = ast.Subscript(of, ast.Tuple([ast.Slice(), column]))
            mask = rows
    is_place = isinstance(of, ast.Name | ast.Attribute | ast.Subscript)
    if not is_place or isinstance(mask, ast.Tuple | ast.Slice | ast.Constant):
        return ""
    whole = _Unselected(ast.unparse(mask)).visit(copy.deepcopy(value))
    names = loops.names(whole)
    if not is_elementwise(_without_items(whole)) or any(_is_selected(name, around) for name in names):
        return ""
    target = ast.unparse(of)
    return _short(f"{target} = torch.where({ast.unparse(mask)}, {ast.unparse(whole)}, {target})")


class _Unselected(ast.NodeTransformer):
    """Takes a mask out of an expression: ``x[mask] + 1`` as ``x + 1``."""

    def __init__(self, mask: str) -> None:
        self._mask = mask

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        return node.value if ast.unparse(node.slice) == self._mask else node


def _without_items(node: ast.expr) -> ast.expr:
    """An expression with what it takes out of dicts and by index tensors as if it were a name."""
    return _Named().visit(copy.deepcopy(node))  # type: ignore[no-any-return]


class _Named(ast.NodeTransformer):
    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        is_taken = isinstance(node.slice, ast.Constant | ast.Name | ast.Attribute | ast.Subscript)
        return ast.Name("item") if is_taken else node


def _is_selected(name: str, around: _Way) -> bool:
    """Whether a name holds what is made of a selection, which may not have as many elements as the rest."""
    values = becomes.values_of(name, around)
    return any(becomes.selects(node) for value in values for node in ast.walk(value))


def reduced(selection: ast.AST, name: str, taker: ast.AST | None) -> str:
    """What is reduced, of all elements: ``p * p.log()`` of ``part = p[mask]; (part * part.log()).sum()``.

    Args:
        selection: ``p[mask]``; name: of the variable that holds it; taker: the reduction.
    """
    match taker, selection:
        case ast.Call(ast.Attribute(of)), ast.Subscript(base, chosen):
            pass
        case ast.Attribute(of), ast.Subscript(base, chosen):
            pass
        case _:
            return ""
    if isinstance(chosen, ast.Tuple):
        return ""
    if any(part is selection for part in ast.walk(of)):  # it is reduced where it is selected
        whole = _Whole(selection, base).visit(copy.deepcopy(of, {id(selection): selection}))
        is_by_element = isinstance(whole, ast.expr) and is_elementwise(whole)
        return _short(ast.unparse(whole)) if is_by_element else ""
    if not name or not is_elementwise(of) or name not in loops.names(of):
        return ""
    return _short(ast.unparse(_Renamed(name, base).visit(copy.deepcopy(of))))


def taken(taker: ast.AST | None) -> str:
    """What a reduction reduces: ``net(x)`` of ``net(x).mean``, ``hit`` of ``hit.float().mean()``."""
    match taker:
        case ast.Attribute(of) | ast.Call(_, [of, *_]):
            pass
        case _:
            return ""
    while isinstance(of, ast.Call) and isinstance(of.func, ast.Attribute) and of.func.attr in _CASTS:
        of = of.func.value
    return _short(ast.unparse(of))


class _Whole(ast.NodeTransformer):
    """Puts what is selected from in the place of a selection, which a copy of the rest has kept as it is."""

    def __init__(self, selection: ast.AST, base: ast.expr) -> None:
        self._selection, self._base = selection, base

    def visit(self, node: ast.AST) -> ast.AST:
        return self._base if node is self._selection else super().visit(node)


class _Renamed(ast.NodeTransformer):
    def __init__(self, name: str, new: ast.expr) -> None:
        self._name, self._new = name, new

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self._new if node.id == self._name else node


def tally(around: _Way) -> str:
    """``for i in …: counts[index[i]] += value[i]`` at once, line by line; empty where the loops do more."""
    around_it = [node for node in around if isinstance(node, ast.For)]
    statement = uses.statement(around)
    if not around_it or statement not in around_it[-1].body:
        return ""
    told = [_at_once(line, around_it) for line in around_it[-1].body]
    return _short("; ".join(told)) if all(told) else ""


def _at_once(statement: ast.stmt, around_it: Sequence[ast.For]) -> str:
    """``counts[index[i]] += value[i]`` of all turns of the loops around it."""
    match statement:
        case ast.AugAssign(ast.Subscript(ast.Name() | ast.Attribute() as table, at), ast.Add(), value):
            pass
        case _:
            return ""
    name, cells, loop = ast.unparse(table), uses.index_parts(at), around_it[-1]
    counted = [one for one in around_it[-_BOTH:] if _counts(one)]
    turns = [ast.unparse(one.target) for one in counted]
    if (items := _zipped(loop)) is not None:
        whole = _Items(items)
    elif counted[-1:] != [loop]:
        return ""
    elif len(turns) == _BOTH and ast.unparse(cells[0]) == turns[0] and counted[0].body == [loop]:
        whole, cells = _Items({}, turns), cells[1:]
    else:
        whole = _Items({}, turns[-1:])
    index = [whole.visit(copy.deepcopy(cell)) for cell in cells]
    added = whole.visit(copy.deepcopy(value))
    left = {name for part in (*index, added) for name in loops.names(part)}
    if whole.kept or not whole.found or left & {*turns[-len(whole.turns) :], *_set_in(loop)}:
        return ""
    listed = ", ".join(map(ast.unparse, index))
    if len(whole.turns) == _BOTH:  # of a number there is not one for each cell
        one_each = len(index) == 1 and not _is_number(added)
        return f"{name}.scatter_add_(1, {listed}, {ast.unparse(added)})" if one_each else ""
    text = f"{name}.new_full((), {ast.unparse(added)})" if _is_number(added) else ast.unparse(added)
    return f"{name}.index_put_(({listed}{',' * (len(index) == 1)}), {text}, accumulate=True)"


_BOTH = 2  # loops, over rows and columns


def _set_in(loop: ast.For) -> set[str]:
    """The names that hold another value in each turn."""
    set_there = {name for statement in loop.body for node in ast.walk(statement) for name in _targets(node)}
    return set_there | set(loops.names(loop.target))


def _targets(node: ast.AST) -> list[str]:
    return uses.targets(node) if isinstance(node, ast.stmt) else []


def _counts(loop: ast.For) -> bool:
    """``for i in range(n)``: from 0 and by 1, so that the turns are the items."""
    return isinstance(loop.iter, ast.Call) and uses.called(loop.iter) == "range" and len(loop.iter.args) == 1


def _zipped(loop: ast.For) -> dict[str, ast.expr] | None:
    """What a loop takes its names from, one by one: ``for a, b in zip(x, y)``."""
    match loop.target, loop.iter:
        case ast.Tuple(names), ast.Call(ast.Name("zip"), over) if len(names) == len(over):
            if all(isinstance(name, ast.Name) for name in names):
                return {ast.unparse(name): one for name, one in zip(names, over, strict=True)}
    return None


class _Items(ast.NodeTransformer):
    """Puts what loops take one by one back in the place of their items: ``x`` for ``x[i, j]``."""

    def __init__(self, items: dict[str, ast.expr], turns: Sequence[str] = ()) -> None:
        self._items, self.turns = items, list(turns)
        self.found = self.kept = False

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if self.turns and [ast.unparse(part) for part in uses.index_parts(node.slice)] == self.turns:
            self.found = True
            return node.value
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self._items:
            self.found = True
            return self._items[node.id]
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """``x[i].item()`` as ``x``, ``int(x[i])`` as ``x.long()``; other calls may not take all at once."""
        match node:
            case ast.Call(ast.Attribute(of, "item"), []):
                return self.visit(of)  # type: ignore[no-any-return]
            case ast.Call(ast.Name("int"), [of]):
                return ast.Call(ast.Attribute(self.visit(of), "long"), [], [])
        self.generic_visit(node)
        self.kept |= not is_elementwise(node)
        return node
