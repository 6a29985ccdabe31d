"""What the statement around a site is for, by its form alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from itertools import pairwise

from breakscope.diagnose import kinds, loops, uses
from breakscope.diagnose.becomes import is_list, is_tensor, values_of
from breakscope.diagnose.site_use import Shape

_EXPERTS = re.compile(r"\bexpert_|\bexperts?\b|router_|top_x")
_DROP = re.compile(r"[<>]=?.*(layer_?drop|drop_path)|(layer_?drop|drop_path)\w* *[<>]", re.DOTALL)


def of_statement(around: Sequence[ast.AST]) -> Shape | None:
    """What the statement as a whole is for."""
    statement = uses.statement(around)
    if isinstance(statement, ast.Assert) or only_raises(statement):
        return "check"
    if isinstance(statement, ast.stmt) and leaves_out_layers(statement, around):
        return "layerdrop"
    if isinstance(statement, ast.With) and any(isinstance(node, ast.withitem) for node in around):
        return "with"
    written = statement.body if isinstance(statement, ast.If) else [statement] if statement else []
    if uses.only_writes(written):
        return "message"
    if isinstance(statement, ast.If) and _asks_container(statement.test):
        return "key"
    if _is_read_in_test(statement, around) and not _leaves_while(statement, around):
        return "index"
    if way_out := _way_out(statement, around):
        return way_out
    counts = isinstance(around[-1], ast.Call) and uses.called(around[-1]) == "bincount" if around else False
    if isinstance(statement, ast.stmt) and not counts and _of_experts(statement, around):
        return "experts"
    return "loop" if isinstance(statement, ast.While) else None


def _is_read_in_test(statement: ast.stmt | None, around: Sequence[ast.AST]) -> bool:
    """Whether a test computes with ``x[i]`` of a tensor ``i``: ``if x[i] < 0.3:`` breaks there."""
    return (
        isinstance(statement, ast.If)
        and len(around) > 1
        and isinstance(around[-2], ast.Compare | ast.BinOp)
        and is_index(around[-1])
        and not isinstance(getattr(around[-1], "slice", None), ast.Constant)
    )


def _asks_container(test: ast.expr) -> bool:
    """Whether a number that is read of a tensor is looked for in a container: ``if int(i) in seen:``."""
    match test:
        case ast.Compare(number, [ast.In() | ast.NotIn()], [_]):
            return uses.READS.search(ast.unparse(number)) is not None
    return False


def _leaves_while(statement: ast.stmt | None, around: Sequence[ast.AST]) -> bool:
    """Whether a branch ends the ``while`` around it."""
    loops = _loops(around)
    body = statement.body if isinstance(statement, ast.If) else []
    return (
        bool(loops) and isinstance(loops[-1], ast.While) and any(isinstance(one, ast.Break) for one in body)
    )


def is_index(innermost: ast.AST | None) -> bool:
    """Whether what broke is ``x[i]`` with a tensor ``i``: its value is read to take an element."""
    if not isinstance(innermost, ast.Subscript) or isinstance(innermost.slice, ast.Constant):
        return False
    return not uses.READS.search(ast.unparse(innermost.slice))


def is_read(around: Sequence[ast.AST]) -> bool:
    """Whether a number is read of what an index picks: ``int(lengths[i])``, ``lengths[i].item()``."""
    call = next((node for node in reversed(around[-3:-1]) if isinstance(node, ast.Call)), None)
    return call is not None and bool(re.match(r"(int|float|bool|item)$", uses.called(call)))


def of_index(around: Sequence[ast.AST]) -> Shape:
    """Of ``x[i]``: whether it is read, or written as in ``counts[i] += 1``."""
    statement = uses.statement(around)
    written = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    if around[-1] not in written:
        return "index"
    return "all picked" if _is_one_by_one(around) else "placed"


def _is_one_by_one(around: Sequence[ast.AST]) -> bool:
    """Whether each turn of a loop writes where one of several numbers says: ``mask[i, at[i]] = True``."""
    turns = {
        name for loop in _loops(around) if isinstance(loop, ast.For) for name in loops.names(loop.target)
    }
    chosen = getattr(around[-1], "slice", ast.Pass())
    picked = {
        name
        for part in ast.walk(chosen)
        if isinstance(part, ast.Subscript)
        for name in loops.names(part.slice)
    }
    return bool(turns & picked)


def has_bounds(innermost: ast.AST | None) -> bool:
    """Whether an index has a slice with a bound: ``x[:, :n]``."""
    slices = [node for node in ast.walk(innermost or ast.Pass()) if isinstance(node, ast.Slice)]
    return any(node.lower or node.upper for node in slices)


def _of_experts(statement: ast.stmt, around: Sequence[ast.AST]) -> bool:
    """Whether it picks the tokens of an expert: by its own words, or by those of the loop around it."""
    if _EXPERTS.search(ast.unparse(head_of(statement))):
        return True
    if isinstance(statement, ast.For):  # ``for e, end in enumerate(ends.tolist()):``
        return _runs_one_each(statement)
    loops = [node for node in around if isinstance(node, ast.For)]
    return isinstance(statement, ast.Assign) and any(
        _EXPERTS.search(f"{ast.unparse(loop.target)} {ast.unparse(loop.iter)}") or _runs_one_each(loop)
        for loop in loops
    )


def _runs_one_each(loop: ast.For) -> bool:
    """Whether each turn runs another module on what an index picks: ``out[i] = ffn[e](x[i])``."""
    turn = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Subscript | ast.Name)
        and ast.unparse(getattr(node.func, "slice", node.func)) in turn
        and any(isinstance(arg, ast.Subscript) for arg in node.args)
        for node in ast.walk(loop)
    )


def _keeps_extreme(statement: ast.If) -> bool:
    """``if y.max() > self.peak: self.peak = y.max()``, and nothing else."""
    match statement.test, statement.body, statement.orelse:
        case (
            ast.Compare(left, [ast.Gt() | ast.GtE() | ast.Lt() | ast.LtE()], [right]),
            [ast.Assign([ast.Attribute() as kept], value)],
            [],
        ):
            sides = [ast.unparse(left), ast.unparse(right)]
            return sorted(sides) == sorted([ast.unparse(kept), ast.unparse(value)])
    return False


def _of_kept(statement: ast.If, around: Sequence[ast.AST]) -> Shape | None:
    """What a test asks of what an object keeps, where that is all."""
    if _is_flag(statement.test) and not _is_counted(statement, around):
        return "flag"
    return "extreme" if _keeps_extreme(statement) else None


def _way_out(statement: ast.stmt | None, around: Sequence[ast.AST]) -> Shape | None:
    """How a branch leaves what it is in, or changes it, where it does."""
    if isinstance(statement, ast.If) and (kept := _of_kept(statement, around)):
        return kept
    if _ends_loop(statement, around):
        return "loop"
    body = statement.body if isinstance(statement, ast.If) else []
    if left := _leaves_loop(body, around):
        return left
    if isinstance(statement, ast.If) and (last := _last_returns(statement, around)):
        return _of_last(last, body)
    if isinstance(statement, ast.If) and (left_out := _leaves_out(statement, around)):
        return left_out
    if isinstance(statement, ast.If) and (spared := _spares_any(statement, around)):
        return spared
    # A side of a choice is no test of it.
    asked = [one for one, after in pairwise(around) if getattr(one, "test", None) is after]
    empties = any(map(_leaves_or_empties, body)) or any(map(_chooses_none, asked))
    if empties:
        return "early" if any(map(_returns_value, body)) else "fast path"
    if changed := _changes(body, around):
        return changed
    if any(map(_joins_more, body)):
        return "grown"
    if isinstance(statement, ast.If) and _keeps_best(statement, around):
        return "best"
    if isinstance(statement, ast.If) and _drops_masked(statement):
        return "dropped"
    return _of_sides(statement, around)


def _of_last(returned: Sequence[ast.expr], body: Sequence[ast.stmt]) -> Shape:
    """What a branch is for that decides what its function returns last."""
    if any(map(_holds_constant, returned)):
        return "verdict"
    if any(isinstance(one, ast.Tuple) for one in returned):
        return "early"
    return "told" if any(map(uses.is_message, body)) else "branch"


def _changes(body: Sequence[ast.stmt], around: Sequence[ast.AST]) -> Shape | None:
    """How a branch changes tensors in place, where it does; a loop in it may be a search."""
    if in_loop(around) and any(map(_searches, body)):
        return "search"
    others = [one for one in body if not uses.changes_in_place(one)]
    if len(others) == len(body):
        return None
    of_python = any(_is_of_python(one) or _steps_a_number(one, around) for one in others)
    return "counted too" if of_python else "change"


def _searches(statement: ast.stmt) -> bool:
    """Whether it is a loop that goes on until a value says so."""
    return isinstance(statement, ast.For | ast.While) and any(
        isinstance(node, ast.Break) for node in ast.walk(statement)
    )


def _makes_optional(statement: ast.If, around: Sequence[ast.AST]) -> bool:
    """Whether all that a branch does is to make what is None without it: ``if pad.any(): mask = ~pad``."""
    function = uses.function(around)
    if function is None or statement.orelse or not all(isinstance(one, ast.Assign) for one in statement.body):
        return False
    empty = uses.optional(function)
    before = [
        node for node in ast.walk(function) if isinstance(node, ast.Assign) and node.lineno < statement.lineno
    ]
    for node in sorted(before, key=lambda one: one.lineno):
        names = set(uses.targets(node))
        empty = empty | names if uses.is_none(node.value) else empty - names
    made = {name for one in statement.body for name in uses.targets(one)}
    read = {name for one in statement.body for name in loops.names(getattr(one, "value", one))}
    return bool(made & empty - read)  # what is made of itself was there


def _spares_any(statement: ast.If, around: Sequence[ast.AST]) -> Shape | None:
    if _keeps_all(statement, around):
        return "whole"
    return _spared(statement, statement.body) if _spares(statement) else None


def _spared(statement: ast.If, body: Sequence[ast.stmt]) -> Shape:
    """What a test spares: work on nothing, a mean of nothing, or a step of an average that goes on."""
    mask, _ = asked_mask(statement.test) or ("", True)
    if not any(_is_mean_of(node, mask) for one in body for node in ast.walk(one)):
        return "spared"
    # Without the test an average would take in the 0 of an empty mask.
    keeps = any(uses.changes_in_place(one) or _sets_attribute(one) for one in body)
    return "change" if keeps else "spared mean"


def _is_mean_of(node: ast.AST, mask: str) -> bool:
    """Whether it takes the mean of what a mask selects, or of what is computed of that."""
    return (
        isinstance(node, ast.Call)
        and re.fullmatch(_MEANS, uses.called(node)) is not None
        and any(
            isinstance(part, ast.Subscript) and mask in map(ast.unparse, uses.index_parts(part.slice))
            for part in ast.walk(node)
        )
    )


def _writes_item(statement: ast.stmt) -> bool:
    """Whether it writes ``table[c]``, and of no dict by its name."""
    match statement:
        case ast.Assign([ast.Subscript(slice=ast.Name() | ast.Tuple() | ast.Subscript() | ast.Compare())]):
            return True
        case ast.Assign(
            [ast.Subscript(slice=ast.UnaryOp(ast.Invert()) | ast.BinOp(op=ast.BitAnd() | ast.BitOr()))]
        ):
            return True
        case ast.AugAssign(ast.Subscript(slice=ast.Name() | ast.Tuple() | ast.Compare()), _, value):
            return not _is_count(value)
        case ast.Assign([ast.Subscript(slice=ast.Call() as place)]):
            return not uses.READS.search(ast.unparse(place))
    return False


def _keeps_best(statement: ast.If, around: Sequence[ast.AST]) -> bool:
    """Whether each turn is held against the best so far: ``if best is None or s < best: best = s``."""
    loop = next((node for node in reversed(around) if isinstance(node, ast.For | ast.While)), None)
    kept = {name for one in statement.body for name in uses.targets(one)}
    compared = {
        name
        for node in ast.walk(statement.test)
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE)
        for name in loops.names(node)
    }
    if loop is None or statement.orelse or not kept & compared:
        return False
    # What is kept is what it was held against: ``x = x / 2`` keeps nothing.
    taken = {name for one in statement.body for name in loops.names(getattr(one, "value", one))}
    if not (compared - kept) & taken:
        return False
    if not all(isinstance(one, ast.Assign) and uses.targets(one) for one in statement.body):
        return False
    reads = [use for name in kept for use in uses.uses(loop, name)]
    return all(statement in use for use in reads)  # a step that is accepted goes on with what it sets


def _drops_masked(statement: ast.If) -> bool:
    """Whether ``if not keep.all():`` stands before what takes out the rest: ``x = x[keep]``."""
    asked = {node.id for node in ast.walk(statement.test) if isinstance(node, ast.Name)}
    mask = asked_mask(statement.test)
    if mask is not None and mask[1]:  # where nothing is selected, all is gone on with
        parts = [
            node.slice for one in statement.body for node in ast.walk(one) if isinstance(node, ast.Subscript)
        ]
        if mask[0] in map(ast.unparse, parts):
            return False
    return not statement.orelse and all(
        isinstance(one, ast.Assign)
        and (names := uses.targets(one))
        and all(_is_selected_anew(uses.given(one, name), name, asked) for name in names)
        for one in statement.body
    )


def _is_selected_anew(value: ast.expr | None, name: str, masks: set[str]) -> bool:
    match value:
        case ast.IfExp(_, ast.Constant(None), selected) | ast.IfExp(_, selected, ast.Constant(None)):
            return _is_selected_anew(selected, name, masks)
        case ast.Subscript(ast.Name(of), chosen) if not isinstance(chosen, ast.Slice):
            return of == name and bool(masks & set(loops.names(chosen)))
    return False


def _joins_more(statement: ast.stmt) -> bool:
    """Whether a tensor gets longer: ``sim = torch.cat([sim, more])``."""
    match statement:
        case ast.Assign([ast.Name(name)], ast.Call(args=[ast.List(parts) | ast.Tuple(parts), *_]) as call):
            is_joined = uses.called(call) in ("cat", "concat", "concatenate", "hstack", "vstack")
            return is_joined and any(isinstance(part, ast.Name) and part.id == name for part in parts)
    return False


def grown_in_loop(around: Sequence[ast.AST]) -> str:
    """The tensor that gets longer with each turn of the loop around a place; else empty."""
    body = [one for loop in _loops(around)[-1:] for one in loop.body]
    return next((uses.targets(one)[0] for one in body if _joins_more(one)), "")


def listed_in_loop(around: Sequence[ast.AST]) -> str:
    """The list to which each turn of the loop around a place appends; else empty."""
    for one in (one for loop in _loops(around)[-1:] for one in loop.body):
        match one:
            case ast.Expr(ast.Call(ast.Attribute(ast.Name(name), "append"))):
                return name
    return ""


def listed_on_both_sides(around: Sequence[ast.AST]) -> tuple[str, str] | None:
    """The list to which each side of a branch in a loop appends once, and the count that one side adds to.

    Else no side does any work of Python's own: ``if bad: bad_ones += 1; out.append(a); continue``.
    """
    branch, loop = uses.statement(around), next(iter(_loops(around)[-1:]), None)
    if not isinstance(branch, ast.If) or loop is None or branch not in loop.body:
        return None
    behind = loop.body[loop.body.index(branch) + 1 :]
    if leaves := isinstance(branch.body[-1], ast.Continue):
        sides = [branch.body[:-1], [*branch.orelse, *behind]]
    else:
        sides = [branch.body, branch.orelse]
    kept = [_kept_by(side) for side in sides]
    found = set(kept) if None not in kept else set()
    later = () if leaves else (node for one in behind for node in ast.walk(one))
    if len(found) != 1 or any(isinstance(node, ast.Break | ast.Return) for node in later):
        return None
    counted = [
        one.target.id
        for one in (*sides[0], *sides[1])
        if isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Name)
    ]
    return str(found.pop()), next(iter(counted), "")


def _kept_by(side: Sequence[ast.stmt]) -> str | None:
    """The one list to which a side appends, once, where it else sets names and counts; else None."""
    lists = []
    for one in side:
        match one:
            case ast.Expr(ast.Call(ast.Attribute(ast.Name(name), "append"), [_], [])):
                lists.append(name)
            case ast.Assign(targets) if all(isinstance(target, ast.Name) for target in targets):
                pass
            case ast.AugAssign(ast.Name(), ast.Add(), ast.Constant()):
                pass
            case _:
                return None
    return lists[0] if len(lists) == 1 else None


def _leaves_loop(body: Sequence[ast.stmt], around: Sequence[ast.AST]) -> Shape | None:
    """How a branch leaves the loop around it, or its turn."""
    around_it = _loops(around)
    statement = uses.statement(around)
    if isinstance(statement, ast.If) and around_it and _spares_turn(statement, around_it[-1]):
        return _spared(statement, around_it[-1].body)
    returns = in_loop(around) and any(isinstance(one, ast.Return) for one in body)
    if any(isinstance(one, ast.Break | ast.Continue) for one in body):
        if any(_is_of_python(one) and not _counts_one(one) for one in body):
            return "python"
        if _is_search(around):
            return "search"
    elif not returns:
        return None
    if around_it and isinstance(around_it[-1], ast.While):
        return "loop"
    if returns and isinstance(last := body[-1], ast.Return) and isinstance(last.value, ast.Constant):
        return "found"
    if _leaves_out_item(body, around_it):
        return "left out"
    if not any(isinstance(one, ast.Continue) for one in body):
        return "stop"
    # Made whole, each turn would come to what leaves the loop behind it.
    return "search" if around_it and _may_end(around_it[-1], statement) else "turn"


def _counts_one(statement: ast.stmt) -> bool:
    """Whether it adds a constant to what an object counts, which a tensor can do as well."""
    return isinstance(statement, ast.AugAssign) and _is_count(statement.value)


def _may_end(loop: ast.For | ast.While, branch: ast.stmt | None) -> bool:
    """Whether a loop is left behind a branch in its body, or has an ``else``."""
    behind = loop.body[loop.body.index(branch) + 1 :] if branch in loop.body else []
    leaves = (node for one in behind for node in ast.walk(one))
    return bool(loop.orelse) or any(isinstance(node, ast.Break | ast.Return) for node in leaves)


def _of_sides(statement: ast.stmt | None, around: Sequence[ast.AST]) -> Shape | None:
    """What the sides of a branch do that is no operation on tensors."""
    if isinstance(statement, ast.If) and _makes_optional(statement, around):
        return "optional"
    sides = [*statement.body, *statement.orelse] if isinstance(statement, ast.If) else []
    silent = [side for side in sides if not uses.is_message(side)]
    if silent and all(map(_sets_flag, silent)) and not any(_overrules(one, around) for one in silent):
        return "choice"
    of_python = any(
        _is_of_python(side)
        or _keeps_a_number(side, silent)
        or _steps_a_number(side, around)
        or _counts_for_tests(side, around)
        for side in silent
    )
    if _filters(around):
        return "filter"
    if of_python and any(_sets_tensor(one, around) for one in silent) and not in_loop(around):
        return "counted too"
    if of_python:
        return "python"
    if any(map(_writes_item, silent)):
        return "change"
    return "told" if len(silent) < len(sides) else None


def _keeps_a_number(side: ast.stmt, sides: Sequence[ast.stmt]) -> bool:
    """Whether an object keeps a number that the branch reads of a tensor: ``self.over = x.sum().item()``."""
    match side:
        case ast.Assign([ast.Attribute(ast.Name("self"))], value):
            given = {
                name: one
                for part in sides
                if isinstance(part, ast.Assign)
                for name in uses.targets(part)
                if (one := uses.given(part, name))
            }
            made = given.get(value.id, value) if isinstance(value, ast.Name) else value
            return uses.READS.search(ast.unparse(made)) is not None
    return False


def _sets_tensor(side: ast.stmt, around: Sequence[ast.AST]) -> bool:
    """Whether it gives a name what a method, torch or arithmetic makes of itself: ``u = u.clamp(-1, 1)``."""
    match side:
        case ast.Assign([ast.Name(name)], ast.Call(ast.Attribute(ast.Name(of)))) if name == of:
            return True
        case ast.Assign([ast.Name()], ast.Name() as new):
            return is_tensor(new, around)
        case ast.Assign([ast.Name(name)], ast.Call() | ast.BinOp() as value):
            read = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
            return name in read and bool({"torch", "F"} & read)
    return False


def _steps_a_number(side: ast.stmt, around: Sequence[ast.AST]) -> bool:
    """Whether a statement changes what its object keeps of Python's own: ``self.beta *= 1.5``."""
    match side:
        case ast.AugAssign(ast.Attribute(ast.Name("self")) as kept, _, ast.Constant()):
            return _is_of_numbers(kept, around)
        case ast.Assign([ast.Attribute(ast.Name("self")) as kept], value) if isinstance(
            value, ast.Name
        ) or not is_tensor(value, around):
            return _is_of_numbers(kept, around)
        case ast.AugAssign(ast.Subscript(ast.Name() as kept), _, ast.Constant()):
            return is_list(kept, around)
        case ast.Assign([ast.Subscript(ast.Attribute(ast.Name("self")) as kept)]):
            made = values_of(ast.unparse(kept), around)
            return any(isinstance(value, ast.List | ast.Dict) for value in made)
    return False


def _is_of_numbers(kept: ast.expr, around: Sequence[ast.AST]) -> bool:
    """Whether an attribute was a number of Python's, or is given one where nothing was seen of it."""
    seen = kinds.of(kept, around)
    if seen is not None:
        return seen in ("int", "float", "bool")
    return any(map(_is_plain, values_of(ast.unparse(kept), around)))


def _is_plain(value: ast.expr) -> bool:
    """Whether a value is a number or None: ``0``, ``float("inf")``, ``math.inf``."""
    match value:
        case ast.Constant(int() | float() | None):
            return True
    return re.fullmatch(r"-?(math\.inf|float\('-?inf'\))", ast.unparse(value)) is not None


def _counts_for_tests(side: ast.stmt, around: Sequence[ast.AST]) -> bool:
    """Whether a loop counts what a test in it asks for: ``run += 1`` beside ``if run <= limit:``."""
    loop = next((node for node in reversed(around) if isinstance(node, ast.For | ast.While)), ast.Pass())
    tests = [node.test for node in ast.walk(loop) if isinstance(node, ast.If | ast.While | ast.IfExp)]
    match side:
        case ast.AugAssign(ast.Name(name), _, value) if _is_count(value):
            return any(name in loops.names(test) for test in tests)
    return False


def _loops(around: Sequence[ast.AST]) -> list[ast.For | ast.While]:
    return [node for node in around if isinstance(node, ast.For | ast.While)]


def _leaves_out_item(body: Sequence[ast.stmt], loops: Sequence[ast.AST]) -> bool:
    """Whether a turn that is left puts nothing into a list, as all others do."""
    puts = any(
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and uses.called(node.value) == "append"
        for node in ast.walk(loops[-1] if loops else ast.Pass())
    )
    return puts and any(isinstance(one, ast.Continue) for one in body)


def _ends_loop(statement: ast.stmt | None, around: Sequence[ast.AST]) -> bool:
    """Whether a branch sets what the ``while`` around it asks for: how often that runs depends on it."""
    loops = _loops(around)
    if not loops or not isinstance(loops[-1], ast.While) or not isinstance(statement, ast.If):
        return False
    asked = {node.id for node in ast.walk(loops[-1].test) if isinstance(node, ast.Name)}
    return any(asked & set(uses.targets(one)) for one in (*statement.body, *statement.orelse))


def _is_flag(test: ast.expr) -> bool:
    """``if self.ready:``, ``if not self.ready:``, ``if self.training and self.ready.item() == 0:``."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        *settings, test = test.values
        if not all(map(_is_attribute_of_self, settings)):
            return False
    asked = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test
    match asked:
        case ast.Compare(asked, [ast.Eq() | ast.NotEq()], [ast.Constant(0 | 1)]):
            pass
    match asked:
        case ast.Call(ast.Attribute(asked, "item" | "bool"), []) | ast.Call(ast.Name("bool"), [asked]):
            pass
    return _is_attribute_of_self(asked)


def _is_attribute_of_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _is_counted(branch: ast.If, around: Sequence[ast.AST]) -> bool:
    """Whether what a test asks for is added to in its class: ``self.n`` of ``self.n += 1``.

    In the branch itself, as ``if not self.ready: self.ready += 1``, that is how a flag is set.
    """
    owner = next((node for node in reversed(around) if isinstance(node, ast.ClassDef)), ast.Pass())
    own = {id(node) for line in branch.body for node in ast.walk(line)}
    adds = [node for node in ast.walk(owner) if isinstance(node, ast.AugAssign) and id(node) not in own]
    added = {ast.unparse(node.target) for node in adds}
    return any(
        ast.unparse(node) in added for node in ast.walk(branch.test) if isinstance(node, ast.Attribute)
    )


def _filters(around: Sequence[ast.AST]) -> bool:
    """Whether a comprehension asks a value for what to keep."""
    return any(
        isinstance(parent, ast.comprehension) and child in parent.ifs for parent, child in pairwise(around)
    )


def _leaves_out(statement: ast.If, around: Sequence[ast.AST]) -> Shape | None:
    """What a ``return`` skips that more is done by than computing."""
    if _leaves_out_changes(statement, around):
        return "skip"
    return "undone" if _leaves_out_calls(statement, around) else None


def _leaves_out_changes(statement: ast.If, around: Sequence[ast.AST]) -> bool:
    """Whether a ``return`` skips what changes state: tensors in place, or attributes."""
    function = uses.function(around)
    match statement.body, function:
        case [ast.Return()], ast.FunctionDef(body=body) if statement in body:
            after = body[body.index(statement) + 1 :]
            return any(uses.changes_in_place(one) or _sets_attribute(one) for one in after)
    return False


# A call for what it does and not for what it gives: ``loss.backward()``, ``optimizer.step()``.
_DOES = re.compile(r"(backward|step|zero_grad|update|write|save|pop|clear|remove)$")


def _leaves_out_calls(statement: ast.If, around: Sequence[ast.AST]) -> bool:
    """Whether a ``return`` in front of it skips calls that do something, as a step of an optimizer."""
    function = uses.function(around)
    if function is None or not isinstance(statement.body[-1], ast.Return) or statement.orelse:
        return False
    after = (node for node in ast.walk(function) if isinstance(node, ast.Expr))
    return any(
        isinstance(node.value, ast.Call)
        and (_DOES.match(uses.called(node.value)) or uses.KEEPS.match(uses.called(node.value)))
        and not uses.is_message(node)
        for node in after
        if node.lineno > (statement.end_lineno or statement.lineno)
    )


def _sets_attribute(statement: ast.stmt) -> bool:
    match statement:
        case ast.Assign([ast.Attribute()], _) | ast.AugAssign(ast.Attribute(), _, _):
            return True
        case ast.Assign([ast.Subscript(kept)], _) | ast.AugAssign(ast.Subscript(kept), _, _):
            return ast.unparse(kept).startswith("self.")
    return False


def _sets_flag(statement: ast.stmt) -> bool:
    """``stop = True``, ``level = "high"``, ``self.phase = Phase.LIFT``: what is selected is no tensor."""
    match statement:
        case ast.Assign([ast.Name() | ast.Attribute()], ast.Constant(bool() | str())):
            return True
        case ast.Assign([ast.Name() | ast.Attribute()], value):
            return _is_member(value)
    return False


def _overrules(statement: ast.stmt, around: Sequence[ast.AST]) -> bool:
    """Whether it sets a constant in the place of a tensor, which torch.where can do: ``ok = False``."""
    return any(
        is_tensor(value, around) for name in uses.targets(statement) for value in values_of(name, around)
    )


def _is_member(value: ast.expr) -> bool:
    """Whether it is a member of an enum, by how it is written: ``Phase.LIFT``."""
    match value:
        case ast.Attribute(ast.Name(of), name):
            return name.isupper() and of[:1].isupper() and not of.isupper()
    return False


def asked_mask(test: ast.expr) -> tuple[str, bool] | None:
    """The mask of which a test asks if anything is set, and False where it asks if nothing is.

    ``m.any()``, ``m.sum() > 0`` and ``x is not None and m.any()``; ``not m.any()`` and ``m.sum() == 0``.
    """
    match test:
        case ast.BoolOp(
            ast.And(), [ast.Compare(ops=[ast.IsNot()]) | ast.Compare(comparators=[ast.Constant(str())]), last]
        ):
            return asked_mask(last)
        case ast.UnaryOp(ast.Not(), ast.Call(ast.Attribute(ast.Name(mask), "all"), [])):
            return f"~{mask}", True
        case ast.UnaryOp(ast.Not(), asked):
            found = asked_mask(asked)
            return None if found is None else (found[0], not found[1])
    match _without_read(test):
        case ast.Call(ast.Attribute(ast.Name("torch"), "any"), [of]) | ast.Call(ast.Attribute(of, "any"), []):
            return ast.unparse(of), True
        case ast.Compare(ast.Call(ast.Attribute(of, "sum"), []), [ast.Gt() | ast.NotEq()], [ast.Constant(0)]):
            return ast.unparse(of), True
        case ast.Compare(ast.Call(ast.Attribute(of, "sum"), []), [ast.Eq()], [ast.Constant(0)]) | ast.Compare(
            ast.Call(ast.Attribute(of, "sum"), []), [ast.Lt()], [ast.Constant(1)]
        ):
            return ast.unparse(of), False
    return None


def _keeps_all(statement: ast.If, around: Sequence[ast.AST]) -> bool:
    """Whether ``if m.all(): return x`` only spares ``x[m]``, which the function returns behind it."""
    match _without_read(statement.test), statement.body, statement.orelse:
        case (ast.Call(ast.Attribute(of, "all"), []), [ast.Return(early)], []) if early is not None:
            mask = ast.unparse(of)
        case _:
            return False
    blocks = [block for one in around if isinstance(block := getattr(one, "body", None), list)]
    after = next((block[block.index(statement) + 1 :] for block in blocks if statement in block), [])
    left = {ast.unparse(early)}
    for one in after:
        match one:
            case ast.Assign([ast.Name(name)], value) if name in left and _is_by_mask(value, name, mask):
                continue
            case ast.Return(value) if value is not None:
                return ast.unparse(value) in left or any(_is_by_mask(value, name, mask) for name in left)
            case _:
                return False
    return False


def _is_by_mask(value: ast.expr, name: str, mask: str) -> bool:
    """Whether it is what a mask selects of a name, and nothing else: ``x[m]``, ``x[:, m]``."""
    match value:
        case ast.Subscript(ast.Name(of), chosen):
            parts = uses.index_parts(chosen)
            others = [one for one in parts if ast.unparse(one) != mask]
            return (
                of == name
                and len(others) == len(parts) - 1
                and all(ast.unparse(one) == ":" for one in others)
            )
    return False


def _spares(statement: ast.If) -> bool:
    """Whether ``if mask.any():`` stands before what is done where the mask is set, and only there."""
    match asked_mask(statement.test):
        case name, True:
            found = [
                node for one in statement.body for node in ast.walk(one) if isinstance(node, ast.Subscript)
            ]
            # That a mask was set may be noted as well.
            counts = any(_sets_attribute(one) and _stores_elsewhere(one, name) for one in statement.body)
            counts |= any(_sets_attribute(one) and not _stores(one) for one in statement.body)
            # What is done with nothing is something where Python keeps it: a mean in a list.
            counts |= any(map(_keeps_in_python, statement.body))
            masked = any(name in map(ast.unparse, uses.index_parts(node.slice)) for node in found)
            masked = masked or all(_is_under_mask(one, name) for one in statement.body)
            masked = masked and not any(_stores_elsewhere(one, name) for one in statement.body)
            # ``loss = loss[valid]``: without a selection all of it is gone on with.
            masked = masked and not any(_selects_itself(one) for one in statement.body)
            return masked and not counts and not statement.orelse
    return False


def _keeps_in_python(statement: ast.stmt) -> bool:
    """Whether it hands something to Python's own code that keeps it: ``seen.append(x.mean().item())``."""
    match statement:
        case ast.Expr(ast.Call() as call):
            return not uses.changes_in_place(statement) and uses.KEEPS.match(uses.called(call)) is not None
    return False


def _selects_itself(statement: ast.stmt) -> bool:
    match statement:
        case ast.Assign([ast.Name(name)], ast.Subscript(ast.Name(of))):
            return name == of
    return False


def _spares_turn(statement: ast.If, loop: ast.For | ast.While) -> bool:
    """Whether ``if not mask.any(): continue`` stands before what is done with what the mask selects alone."""
    asked = asked_mask(statement.test)
    is_left = [*map(type, statement.body)] == [ast.Continue] and statement in loop.body
    if asked is None or asked[1] or not is_left:
        return False
    made = {asked[0]}
    for one in loop.body[loop.body.index(statement) + 1 :]:
        names = {ast.unparse(node) for node in ast.walk(one) if isinstance(node, ast.expr)}
        match one:
            case ast.Assign() if made & names and not _sets_attribute(one):
                made |= {name for target in one.targets for name in loops.names(target)}
            case ast.AugAssign() if made & names and not _is_count(one.value):
                pass
            case ast.Expr(ast.Call()) if made & names and uses.changes_in_place(one):
                pass
            case _:
                return False
    return True


def _without_read(test: ast.expr) -> ast.expr:
    """A test without the ``.item()`` in it: what it asks for as tensors."""
    match test:
        case ast.Call(ast.Attribute(asked, "item"), []):
            return asked
        case ast.Compare(ast.Call(ast.Attribute(asked, "item"), []), [operator], [constant]):
            return ast.Compare(asked, [operator], [constant])
    return test


def _stores(statement: ast.stmt) -> bool:
    match statement:
        case ast.Assign([ast.Subscript()]) | ast.AugAssign(ast.Subscript()):
            return True
    return False


def _stores_elsewhere(statement: ast.stmt, mask: str) -> bool:
    """Whether it writes into what the mask does not select: ``table[c] = x[mask].sum()``."""
    match statement:
        case ast.Assign([ast.Subscript(slice=place)]) | ast.AugAssign(ast.Subscript(slice=place)):
            return mask not in {ast.unparse(part) for part in ast.walk(place)}
    return False


def _is_under_mask(statement: ast.stmt, mask: str) -> bool:
    """Whether it only sets what a mask selects, as ``torch.where(mask, 0, x)`` and ``masked_fill`` do."""
    match statement:
        case ast.Assign([ast.Name(name)], value) if _is_filled(value, name, mask):
            return True
        case ast.Assign(value=ast.Call(args=[first, *_]) as call):
            by = re.sub(r"\[\.\.\., None\]$", "", ast.unparse(first))
            left = len(call.args) > 1 and ast.unparse(call.args[1]) in uses.targets(statement)
            return uses.called(call) in ("where", "masked_fill") and (
                by == mask or (left and mask == f"~{by}")
            )
    return False


_CONVERTS = ("masked_fill", "float", "half", "to", "type_as", "double", "bfloat16", "contiguous")


def _is_filled(value: ast.expr, name: str, mask: str) -> bool:
    """Whether a name is filled where a mask is set and converted: ``x.float().masked_fill(m[None], 0)``."""
    filled = False
    while isinstance(value, ast.Call) and uses.called(value) in _CONVERTS:
        if uses.called(value) == "masked_fill":
            filled = bool(value.args) and re.sub(r"\[[^\]]*\]$", "", ast.unparse(value.args[0])) == mask
        value = getattr(value.func, "value", value.func)
    return filled and ast.unparse(value) == name


def in_loop(around: Sequence[ast.AST]) -> bool:
    """Whether a loop of its own function runs a place."""
    return bool(own_loops(around))


def own_loops(around: Sequence[ast.AST]) -> list[ast.For | ast.While]:
    """The loops of its own function that run a place, outermost first."""
    functions = [at for at, node in enumerate(around) if isinstance(node, ast.FunctionDef)]
    return _loops(around[functions[-1] :] if functions else around)


def _is_search(around: Sequence[ast.AST]) -> bool:
    """Whether the loop around a branch has a ``while`` in it: a search that values steer all over."""
    loop = next((node for node in around if isinstance(node, ast.For | ast.While)), None)
    return loop is not None and any(
        isinstance(node, ast.While) and node is not loop for node in ast.walk(loop)
    )


def _last_returns(statement: ast.If, around: Sequence[ast.AST]) -> list[ast.expr]:
    """What is returned with and without a branch that is its function's last but a ``return``."""
    function = uses.function(around)
    if function is None or statement not in function.body:
        return []
    after = [*statement.orelse, *function.body[function.body.index(statement) + 1 :]]
    match statement.body[-1], after:
        case ast.Return(ast.expr() as one), [ast.Return(ast.expr() as other)]:
            before = statement.body[:-1]
            is_plain = all(isinstance(part, ast.Assign) or uses.is_message(part) for part in before)
            return [one, other] if is_plain else []
    return []


def _holds_constant(value: ast.expr) -> bool:
    """Whether a flag, a text or None is returned, which torch.where cannot select: ``x, State(y, True)``."""
    match value:
        case ast.Constant(constant):
            return constant is None or isinstance(constant, bool | str)
        case ast.Tuple(parts):
            return any(map(_holds_constant, parts))
        case ast.Call(called, parts, keywords) if ast.unparse(called).rpartition(".")[2][:1].isupper():
            return any(map(_holds_constant, (*parts, *(one.value for one in keywords))))
    return False


def _is_of_python(statement: ast.stmt) -> bool:
    """Whether a statement is more than operations on tensors: it calls for an effect, reads or copies."""
    return any(
        isinstance(node, ast.Return)
        or _sets_item(node)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and not uses.is_message(node))
        or (
            isinstance(node, ast.AugAssign)
            and isinstance(node.target, ast.Attribute)
            and _is_count(node.value)
        )
        or (
            isinstance(node, ast.Call)
            and re.search(r"(deepcopy|tolist|dumps?|open|reset)$", uses.called(node))
        )
        for node in ast.walk(statement)
    )


def _sets_item(node: ast.AST) -> bool:
    """Whether it sets an item of a dict, by its name or a number that is read: ``group["lr"] = …``."""
    match node:
        case ast.Assign([ast.Subscript(slice=ast.Call(ast.Attribute(attr="item"), []))]):
            return True
        case ast.Assign([ast.Subscript(slice=key)]):
            return _is_text(key)
    return False


def _is_text(node: ast.expr) -> bool:
    match node:
        case ast.Constant(str()) | ast.JoinedStr() | ast.Call(ast.Attribute(ast.Constant(str()), "format")):
            return True
        case ast.BinOp(left, ast.Add() | ast.Mod(), right):
            return _is_text(left) or _is_text(right)
    return False


def _is_count(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, int)


def leaves_out_layers(statement: ast.stmt, around: Sequence[ast.AST]) -> bool:
    """Whether a statement decides at random if a layer runs, or asks for what decided it."""
    head = head_of(statement)
    if _DROP.search(ast.unparse(head)):
        return True
    function = uses.function(around)
    asked = {node.id for node in ast.walk(head) if isinstance(node, ast.Name)}
    return any(
        isinstance(node, ast.Assign)
        and uses.assigned(node) in asked
        and _DROP.search(ast.unparse(node.value))
        for node in (ast.walk(function) if function is not None and isinstance(statement, ast.If) else ())
    )


def head_of(statement: ast.stmt) -> ast.AST:
    """What a statement evaluates itself, without its body."""
    return getattr(statement, "iter", None) or getattr(statement, "test", None) or statement


def _leaves_or_empties(statement: ast.stmt) -> bool:
    match statement:
        case ast.Return() | ast.Assign(_, ast.Constant(None)):
            return True
    return False


_MEANS = "(mean|median|max|min|amax|amin|std|var)"


def _returns_value(statement: ast.stmt) -> bool:
    """Whether it returns more than None or texts and flags, which torch.where cannot select."""
    match statement:
        case ast.Return(ast.Attribute(ast.Name(owner))) if owner[:1].isupper():
            return False  # of an enum
        case ast.Return(ast.Tuple(parts)):
            plain = [part.value for part in parts if isinstance(part, ast.Constant)]
            return len(plain) < len(parts) and not any(one is None or isinstance(one, str) for one in plain)
        case ast.Return(ast.expr() as value):
            return not _holds_constant(value)
    return False


def _chooses_none(node: ast.AST) -> bool:
    """Whether it is ``None if … else …``: there is nothing to select from."""
    match node:
        case ast.IfExp(_, ast.Constant(None), _) | ast.IfExp(_, _, ast.Constant(None)):
            return True
    return False


def chooses_text(node: ast.AST) -> bool:
    """Whether it is ``"ok" if … else …``: what is selected is no tensor."""
    match node:
        case ast.IfExp(_, ast.Constant(str() | bool()), _) | ast.IfExp(_, _, ast.Constant(str() | bool())):
            return True
        case ast.IfExp(_, ast.Attribute(ast.Name(one), side), ast.Attribute(ast.Name(other))) if (
            side.isupper()
        ):
            return one == other and one[:1].isupper()  # members of an enum
        case ast.IfExp(_, one, other):
            return _is_listed(one) or _is_listed(other)
    return False


def _is_listed(side: ast.expr) -> bool:
    """Whether a side is a list or a dict of Python's, or a list with more items: ``[0] + runs``."""
    match side:
        case ast.BinOp(left, ast.Add(), right):
            return isinstance(left, ast.List) or isinstance(right, ast.List)
    return isinstance(side, ast.List | ast.Dict | ast.ListComp | ast.DictComp)


def only_raises(node: ast.AST | None) -> bool:
    """Whether a branch does nothing but raise, with a text that it may put together first."""
    if not isinstance(node, ast.If) or node.orelse:
        return False
    *before, last = node.body
    return _raises(last) and all(
        isinstance(part, ast.Assign | ast.AnnAssign) or uses.is_message(part) for part in before
    )


def _raises(last: ast.stmt) -> bool:
    match last:
        case ast.Raise():
            return True
        case ast.Expr(
            ast.Call(func, [ast.Constant(False), *_])
        ):  # as torchvision does: torch._assert(False, …)
            return ast.unparse(func).rpartition(".")[2] == "_assert"
        case ast.Expr(ast.Call(func)):
            return ast.unparse(func) in ("sys.exit", "exit", "quit", "os._exit", "os.abort")
    return False
