"""Turns of a loop that are left out where nothing was selected for them: they are made, on no rows.

The loop over experts is of this kind. Which of them got a token only data says; what a tensor has no rows for
adds nothing, so that every turn can be made, and the sizes stay in the graph as numbers that come from data.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from breakscope.fix.all_turns import (
    HAZARDS,
    SCOPES,
    all_turns_made,
    found_by_nonzero,
    loop_around,
    removed_lines,
    sums_all_but,
)
from breakscope.fix.layout import Layout
from breakscope.fix.patch import Edit, Refusal, Rewrite
from breakscope.fix.rule import Example, Rule, Site, Unsafe
from breakscope.fix.turns import Turn, number_edits, row_turn, squeezed
from breakscope.source.dominance import enclosing_statement
from breakscope.source.names import (
    dotted,
    first_use,
    names_in,
    own_nodes,
    parameters,
    reads_of,
    reads_outside,
    rebound_elsewhere,
    stored_in,
    stores,
)
from breakscope.source.syntax import shown

_EXPERTS = """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        out = torch.zeros_like(x)
        mask = F.one_hot(x.argmax(-1), num_classes=4)[:, :3].T
{loop}
            rows = torch.where(mask[number])[0]
{skip}            out.index_add_(0, rows, self.experts[number](x[rows]))
        return out"""
_HIT = """\
        hit = (mask.sum(dim=-1) > 0).nonzero(as_tuple=True)[0].tolist()
        for number in {}:"""
_SKIP = """\
            if rows.shape[0] == 0:
                continue
"""
_RANGE = "        for number in range({}):"
_CALLS = ("torch.randn(3, 4)", "torch.randn(5, 4)", "torch.randn(2, 4)")
NEGATIVE = "where the mask holds negative numbers, turns that its sum leaves out are made"
ONE_HOT = "one-hot"
_MOVED = {"permute", "transpose", "t", "T", "mT", "long", "int", "bool", "contiguous"}


class EmptyTurn(Rule):
    """``for e in hit.tolist()`` -> ``for e in range(n)``; ``if rows.shape[0] == 0: continue`` -> nothing."""

    name = "empty-turn"
    codes = ("BS101", "BS102", "BS103", "BS105", "BS301")
    title = "all turns of a loop, on no rows where nothing is selected"
    does = (
        "`for e in hit.tolist()` and `if rows.shape[0] == 0: continue` around `rows = torch.where(mask[e])`: "
        "all turns are made"
    )
    asks = "where autograd is on (a gradient changes from none to zero), or a caller gives the mask"
    before = ("capture-flag", "custom-op", "branch-to-where")
    needs = (
        "A turn selects with `torch.where(mask[e])`, or with `torch.where(chosen == e)` and a skip.",
        "It adds to a tensor at those rows: `out.index_add_`.",
        "The turns are `(mask.sum(…) > 0).nonzero()`, its rows or their list, of bools or one-hot.",
        "A turn takes a row's number to select with it.",
        "All else that a turn does is to give values to names that only that turn reads.",
    )
    hazards = HAZARDS
    rewritten = Example(
        _EXPERTS.format(loop=_RANGE.format("3"), skip=_SKIP),
        _EXPERTS.format(loop=_RANGE.format("3"), skip=""),
        calls=_CALLS,
        consent=True,
    )
    left_alone = Example(
        _EXPERTS.format(loop=_RANGE.format("3"), skip=_SKIP + "            out = out + 1\n"),
        why="`out` is read outside of the turn that gives it its value",
        calls=_CALLS,
    )

    def propose(self, site: Site) -> Rewrite | Refusal | None:
        """Make all turns of the loop at the site, or of the loop over the list that the site makes."""
        loop = _loop_of(site)
        turn = None if loop is None else _turn(site, loop)
        if loop is None or turn is None:
            return None
        selection = _selection(site, loop, turn)
        if selection is None:
            return None
        skip = _skip(site, loop, selection)
        listed = _list_of_turns(site, loop)
        if skip is None and listed is None:
            return None
        _refuse_other_effects(site, loop, turn, selection, skip)
        layout = Layout(site)
        edits = [] if skip is None else [removed_lines(site, layout, skip)]
        negative = False
        if listed is not None:
            edits += _all_turns(site, layout, loop, listed, selection)
            negative = _may_be_negative(site, selection.mask)
        if turn.rows:
            edits += number_edits(site, loop, turn)
        if turn.naming is not None:
            edits.append(removed_lines(site, layout, turn.naming))
            edits.append(Edit(*site.offsets(loop.target), turn.number))
        # A turn that is hit has rows: nothing makes its skip true.
        never = () if skip is None or listed is None or not _stands_once(site, skip.test) else (skip.test,)
        counts = _counts(site, loop, selection.mask)
        notes = (*([NEGATIVE] if negative else []), *map(_unreached, never))
        return all_turns_made(site, edits, "on no rows", counts, notes, never, consent=negative)


@dataclass(frozen=True, slots=True)
class _Selection:
    """``names = torch.where(mask[e])``: where a row of a mask holds; or ``where(mask == e)``, not by rows."""

    statement: ast.stmt
    mask: ast.Name
    names: frozenset[str]
    by_rows: bool


def _counts(site: Site, loop: ast.For, mask: ast.Name) -> tuple[str, ...]:
    """Attributes that say how many turns there are, or which differ: what a turn takes was made for as many.

    With a larger number the old code passes over the turns that have nothing to take, and the new one raises.
    """
    tests = [node.test for node in ast.walk(loop) if isinstance(node, ast.If)]
    of = [loop.iter, *stores(site, mask.id), *tests]
    attributes = [node for one in of for node in ast.walk(one) if isinstance(node, ast.Attribute)]
    return tuple(dict.fromkeys(node.attr for node in attributes if site.is_integer(node)))


def _unreached(test: ast.expr) -> str:
    return f"`{ast.unparse(test)}` was true for no turn of the old loop, because those that are hit have rows"


def _stands_once(site: Site, test: ast.expr) -> bool:
    """Whether a function has a condition in one place only."""
    return [ast.dump(node) for node in ast.walk(site.function)].count(ast.dump(test)) == 1


def _loop_of(site: Site) -> ast.For | None:
    """The loop around the site, or the one loop over the name that the site's statement gives a value."""
    if around := loop_around(site):
        return around
    statement = enclosing_statement(site, site.node)
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return None
    name = statement.targets[0].id
    over = [
        node
        for node in own_nodes(site.function)
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Name) and node.iter.id == name
    ]
    return over[0] if len(over) == 1 else None


def _turn(site: Site, loop: ast.For) -> Turn | None:
    name = _number_of_turn(loop)
    if name is None:
        return None
    listed = _list_of_turns(site, loop)
    return row_turn(site, loop, name) if listed is not None and not _is_tolist(listed) else Turn(name, name)


def _selection(site: Site, loop: ast.For, turn: Turn) -> _Selection | None:
    """The statement of a loop's body that selects by the turn's row of a mask."""
    for statement in _plain_body(site, loop.body):
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            continue
        selected = _selected_mask(site, statement.value, turn)
        if selected is not None:
            return _Selection(statement, selected[0], frozenset(stored_in(statement.targets[0])), selected[1])
    return None


def _number_of_turn(loop: ast.For) -> str | None:
    """``e`` of ``for e in …`` and of ``for e, expert in enumerate(…)``."""
    match loop.target, loop.iter:
        case ast.Name(id=name), _:
            return name
        case ast.Tuple(elts=[ast.Name(id=name), ast.Name()]), ast.Call(
            func=ast.Name(id="enumerate"), args=[_]
        ):
            return name
    return None


def _selected_mask(site: Site, value: ast.expr, turn: Turn) -> tuple[ast.Name, bool] | None:
    """``m`` of ``torch.where(m[turn])`` or ``torch.where(m == turn)``, and whether it is the first."""
    if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant):
        value = value.value
    if not isinstance(value, ast.Call) or dotted(site, value.func) != "torch.where":
        return None
    if len(value.args) != 1 or value.keywords:
        return None
    chosen = value.args[0]
    if isinstance(chosen, ast.Call) and isinstance(chosen.func, ast.Attribute) and turn.rows:
        of = chosen.func.value
        chosen = of if isinstance(of, ast.Subscript) and squeezed(site, of) is chosen else chosen
    match chosen:
        case ast.Subscript(value=ast.Name() as mask, slice=index) if turn.is_number(site, index):
            by_rows = True
        case ast.Subscript(value=ast.Name() as mask, slice=ast.Name(id=row)) if turn.is_row(row):
            if chosen is value.args[0]:  # a row selects with a dimension of its own
                return None
            by_rows = True
        case ast.Compare(left=ast.Name() as mask, ops=[ast.Eq()], comparators=[ast.Name(id=name)]) if (
            name == turn.name and not turn.rows
        ):
            by_rows = False
        case _:
            return None
    return (mask, by_rows) if site.is_tensor(mask) else None


def _plain_body(site: Site, block: list[ast.stmt]) -> list[ast.stmt]:
    """The statements of a block, those under ``torch.no_grad()`` among them."""
    found: list[ast.stmt] = []
    for statement in block:
        under = _under_no_grad(site, statement)
        found += [statement] if under is None else under
    return found


def _under_no_grad(site: Site, statement: ast.AST) -> list[ast.stmt] | None:
    match statement:
        case ast.With(items=[ast.withitem(ast.Call(func=function, args=[], keywords=[]), None)], body=body):
            return body if dotted(site, function) == "torch.no_grad" else None
    return None


def _skip(site: Site, loop: ast.For, selection: _Selection) -> ast.If | None:
    """``if rows.shape[0] == 0: continue``, directly behind the selection."""
    body = _plain_body(site, loop.body)
    behind = body[body.index(selection.statement) + 1 :]
    if not behind or not isinstance(behind[0], ast.If) or behind[0].orelse:
        return None
    skip = behind[0]
    if len(skip.body) != 1 or not isinstance(skip.body[0], ast.Continue):
        return None
    return skip if _counted(skip.test) in selection.names else None


def _counted(test: ast.expr) -> str | None:
    """The name whose rows are counted: ``rows.shape[0] == 0``, ``rows.numel() == 0``, ``len(rows) == 0``."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return None
    if not isinstance(test.comparators[0], ast.Constant) or test.comparators[0].value != 0:
        return None
    count = ast.unparse(test.left)
    names = names_in([test.left])
    spellings = ("{}.shape[0]", "{}.size(0)", "{}.numel()", "len({})")
    return next((name for name in names if any(count == text.format(name) for text in spellings)), None)


def _list_of_turns(site: Site, loop: ast.For) -> ast.Call | None:
    """The call that gives what the loop runs over: of ``tolist``, or of ``nonzero`` for its rows."""
    listed: ast.expr = loop.iter
    if isinstance(listed, ast.Name):
        values = stores(site, listed.id)
        if len(values) != 1 or listed.id in parameters(site.function):
            return None
        listed = values[0]
    if not isinstance(listed, ast.Call) or not isinstance(listed.func, ast.Attribute):
        return None
    return listed if _is_tolist(listed) or _found_rows(site, listed) is not None else None


def _is_tolist(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "tolist" and not call.args


def _found_rows(site: Site, call: ast.Call) -> ast.expr | None:
    """``t`` of ``t.nonzero()``."""
    if any(one.arg != "as_tuple" or not _is(one.value, False) for one in call.keywords):
        return None
    if dotted(site, call.func) == "torch.nonzero" and len(call.args) == 1:
        return call.args[0]
    is_method = isinstance(call.func, ast.Attribute) and call.func.attr == "nonzero" and not call.args
    return call.func.value if is_method and isinstance(call.func, ast.Attribute) else None


def _is(node: ast.expr, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def _hit_mask(site: Site, listed: ast.expr) -> tuple[str, ast.Call] | None:
    """``m`` and ``m.sum(…)`` of ``(m.sum(…) > 0).nonzero(as_tuple=True)[0].tolist()``."""
    of = found_by_nonzero(site, listed)
    match of or (_found_rows(site, listed) if isinstance(listed, ast.Call) else None):
        case ast.Compare(left=total, ops=[ast.Gt()], comparators=[ast.Constant(value=0)]):
            pass
        case ast.Call(func=function, args=[total, ast.Constant(value=0)], keywords=[]) if dotted(
            site, function
        ) in ("torch.greater", "torch.gt"):
            pass
        case _:
            return None
    match total:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=mask), attr="sum")):
            return mask, total
    return None


def _all_turns(
    site: Site, layout: Layout, loop: ast.For, listed: ast.expr, selection: _Selection
) -> list[Edit]:
    """Edits that put a range in the place of the list.

    Raises:
        Unsafe: the list may be another one than that of the turns that select something.
    """
    hit = _hit_mask(site, listed)
    mask = selection.mask.id
    if not selection.by_rows or hit is None or hit[0] != mask or not _sums_rows(site, hit[1], selection.mask):
        text = shown(site, listed, None)
        raise Unsafe(f"`{text}` is not certainly the list of turns that select something")
    made_behind = any(value.lineno >= listed.lineno for value in stores(site, mask))
    if made_behind or len(_reads_beside_making(site, mask)) != 2 or rebound_elsewhere(site.function, mask):
        raise Unsafe(f"`{mask}` may be changed between its sum and the loop: it is used elsewhere too")
    start, end = site.offsets(loop.iter)
    edits = [Edit(start, end, f"range({mask}.shape[0])")]
    if not isinstance(loop.iter, ast.Name):
        return edits
    statement = enclosing_statement(site, listed)
    if site.parents[_outside_no_grad(site, statement)] is not site.parents[loop]:
        raise Unsafe(f"`{loop.iter.id}` is made in another block than the loop's")
    if len(reads_of(site, loop.iter.id)) != 1 or rebound_elsewhere(site.function, loop.iter.id):
        raise Unsafe(f"`{loop.iter.id}` is read elsewhere too")
    return [removed_lines(site, layout, statement), *edits]


def _reads_beside_making(site: Site, mask: str) -> list[ast.Name]:
    """Reads of a mask, but for those that make it: ``mask = mask.permute(2, 1, 0)``."""
    making = {id(node) for value in stores(site, mask) for node in ast.walk(value)}
    return [node for node in reads_of(site, mask) if id(node) not in making]


def _outside_no_grad(site: Site, statement: ast.stmt) -> ast.stmt:
    """The ``with torch.no_grad()`` around a statement that is not alone in it, or the statement itself."""
    above = site.parents[statement]
    alone = len(_under_no_grad(site, above) or [statement]) == 1
    return statement if alone or not isinstance(above, ast.With) else above


def _sums_rows(site: Site, total: ast.Call, mask: ast.expr) -> bool:
    """Whether a sum is over all dimensions but the first."""
    seen = site.seen(mask)
    given = [*total.args, *(one.value for one in total.keywords if one.arg in ("dim", "axis"))]
    if seen is None or len(given) != 1 or len(total.args) + len(total.keywords) != 1:
        return False
    return sums_all_but(0, given[0], seen.shapes)


def _may_be_negative(site: Site, mask: ast.Name) -> bool:
    """Whether a mask may hold negative numbers: a caller gave it, and they are not bools.

    Raises:
        Unsafe: it is neither given, nor of bool, nor one-hot and only moved about since.
    """
    seen = site.seen(mask)
    if seen is not None and seen.dtypes == {"bool"}:
        return False
    given = parameters(site.function)
    values = stores(site, mask.id)
    writes = [
        node
        for node in ast.walk(site.function)
        if isinstance(node, ast.Name) and node.id == mask.id and not isinstance(node.ctx, ast.Load)
    ]
    bases = {_moved_from(site, value) for value in values} - ({mask.id} if values else set())
    bases |= {mask.id} & set(given)
    if len(values) == len(writes) and bases and bases <= {ONE_HOT, *given}:
        return bases != {ONE_HOT}
    raise Unsafe(f"`{mask.id}` may hold negative numbers, so that its sum says nothing")


def _moved_from(site: Site, value: ast.expr) -> str | None:
    """What a value was before its dimensions were moved about: one-hot, or what has a name."""
    while True:
        if isinstance(value, ast.Name):
            return value.id
        if isinstance(value, ast.Subscript) or (isinstance(value, ast.Attribute) and value.attr in _MOVED):
            value = value.value
        elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            if dotted(site, value.func) in ("torch.nn.functional.one_hot", "torch._C._nn.one_hot"):
                return ONE_HOT
            if value.func.attr not in _MOVED:
                return None
            value = value.func.value
        else:
            return None


def _refuse_other_effects(
    site: Site, loop: ast.For, turn: Turn, selection: _Selection, skip: ast.If | None
) -> None:
    """Let a turn that selects nothing pass only if nothing comes of it.

    Raises:
        Unsafe: something may.
    """
    if loop.orelse or loop.type_comment:
        raise Unsafe("the loop has an `else`")
    _refuse_reads_elsewhere(site, loop, stored_in(loop.target))
    if turn.naming is not None:
        _refuse_reads_elsewhere(site, loop, turn.names - stored_in(loop.target))
    kept = [one for one in _plain_body(site, loop.body) if one is not skip and one is not turn.naming]
    _Turns(site, loop, selection, turn).pass_over(kept, set(selection.names))


@dataclass(frozen=True, slots=True)
class _Turns:
    """What is looked at in the body of a loop."""

    site: Site
    loop: ast.For
    selection: _Selection
    turn: Turn

    def pass_over(self, block: list[ast.stmt], empty: set[str]) -> set[str]:
        """What has no rows behind a block, in a turn that selects nothing.

        Raises:
            Unsafe: the block does more than to give names values, and to add at the rows.
        """
        site = self.site
        for statement in _plain_body(site, block):
            if _adds_at(site, statement, self.selection.names) or self._ends_turn(statement):
                continue
            if isinstance(statement, ast.If) and self._is_plain_test(statement.test):
                ways = [self.pass_over(part, set(empty)) for part in (statement.body, statement.orelse)]
                empty = ways[0] & ways[1]
                continue
            if not isinstance(statement, ast.Assign) or not _gives_names(site, statement, empty):
                raise Unsafe(f"`{shown(site, statement, None)}` may do something where nothing is selected")
            names = {name for target in statement.targets for name in stored_in(target)}
            if given := sorted((stored_in(self.loop.target) | self.turn.names) & names):
                raise Unsafe(f"`{given[0]}` is given another value in the loop")
            self._refuse_reads_elsewhere(block, names)
            if names_in([statement.value]) & empty:
                empty |= names
            elif names & empty and statement is not self.selection.statement:
                raise Unsafe(f"`{shown(site, statement, None)}` gives another value to what was selected")
        return empty

    def _refuse_reads_elsewhere(self, block: list[ast.stmt], names: set[str]) -> None:
        within = {
            name
            for name in names
            if block is not self.loop.body
            and first_use(block, name) == "given"
            and not reads_outside(self.site, block, name)
        }
        _refuse_reads_elsewhere(self.site, self.loop, names - within)

    def _ends_turn(self, statement: ast.stmt) -> bool:
        """Whether it is ``if number == n: continue``."""
        match statement:
            case ast.If(test=test, body=[ast.Continue()], orelse=[]):
                return self._is_plain_test(test)
        return False

    def _is_plain_test(self, test: ast.expr) -> bool:
        """Whether a condition asks for numbers of Python's, or for None, alone."""
        match test:
            case ast.BoolOp(values=values):
                return all(map(self._is_plain_test, values))
            case ast.Compare(left=ast.Name() | ast.Attribute(), ops=[ast.Is() | ast.IsNot()]):
                return True
            case ast.Compare(left=left, comparators=others):
                return all(
                    self.site.is_integer(one) or self.turn.is_number(self.site, one)
                    for one in (left, *others)
                )
        return False


def _refuse_reads_elsewhere(site: Site, loop: ast.For, names: Iterable[str]) -> None:
    for name in sorted(names):
        of_the_turn = name in stored_in(loop.target)
        before = not of_the_turn and first_use(loop.body, name) != "given"
        if before or reads_outside(site, [loop], name) or rebound_elsewhere(site.function, name):
            raise Unsafe(f"`{name}` is read outside of the turn that gives it its value")


def _gives_names(site: Site, statement: ast.Assign, empty: set[str]) -> bool:
    """Whether all that a statement does is to give values to names."""
    parts = [
        part
        for target in statement.targets
        for part in (target.elts if isinstance(target, ast.Tuple | ast.List) else [target])
    ]
    return all(isinstance(part, ast.Name) for part in parts) and _pure_parts(site, statement.value, empty)


def _adds_at(site: Site, statement: ast.stmt, rows: frozenset[str]) -> bool:
    """Whether a statement is ``out.index_add_(dim, rows, value)``, its value made without an effect."""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    call = statement.value
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "index_add_" or len(call.args) != 3:
        return False
    index = call.args[1]
    whole = isinstance(index, ast.Name) and index.id in rows and site.is_tensor(call.func.value)
    parts = [call.func.value, *call.args, *(one.value for one in call.keywords)]
    return whole and all(_pure_parts(site, part, None) for part in parts)


def _pure_parts(site: Site, value: ast.expr, empty: set[str] | None) -> bool:
    """Whether making a value changes nothing: operators of tensors, and modules called with no rows."""
    for node in ast.walk(value):
        if isinstance(node, SCOPES):
            return False
        if isinstance(node, ast.Call) and not _is_pure_call(site, node, empty):
            return False
    return True


def _is_pure_call(site: Site, call: ast.Call, empty: set[str] | None) -> bool:
    name = dotted(site, call.func)
    if name is not None and name.startswith("torch."):
        return not name.endswith("_")
    if isinstance(call.func, ast.Attribute) and site.is_tensor(call.func.value):
        return not call.func.attr.endswith("_")
    seen = site.seen(call.func)
    given = [*call.args, *(one.value for one in call.keywords)]
    no_rows = empty is None or bool(names_in(given) & empty)
    return seen is not None and seen.only("module") and no_rows
