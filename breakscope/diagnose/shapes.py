"""What kind of statement a site stands in: what helps depends on what the value is for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from breakscope.diagnose import becomes, uses
from breakscope.diagnose.becomes import End, Kind
from breakscope.project.sources import Position, Sources

Shape = Literal[
    "check",
    "loop",
    "size",
    "slice",
    "layerdrop",
    "random",
    "experts",
    "turn",
    "change",
    "fast path",
    "early",
    "message",
    "told",
    "branch",
    "verdict",
    "python",
    "search",
    "order",
    "bound",
    "list",
    "index",
    "kept",
    "returned",
    "given",
    "pick",
    "tested pick",
    "placed",
    "all picked",
    "part",
    "key",
    "seed",
    "arithmetic",
    "stacked",
    "numpy",
    "math",
    "spared",
    "spared mean",
    "skip",
    "with",
    "count",
    "choice",
    "flag",
    "reduced",
    "positions",
    "loss",
    "labels",
    "packed",
    "stored",
    "scattered",
    "selected",
    "ranked",
    "suppressed",
    "paired",
    "joined",
    "counted",
    "plain",
]
"""What a statement shows:

Of a test: check: decides whether to raise. loop: how long a loop runs. layerdrop: a random number decides
whether to run a part. turn: it leaves a loop's turn, or the loop. search: the same, where a loop of
unknown length is in it. change: it changes tensors in place. skip: it leaves out changes of state. fast
path: it returns None or sets it. early: it returns what the rest would compute. verdict: it only decides
which plain values are returned last. python: it does what is no operation on tensors. spared: it only saves
work on what a mask selects; spared mean: and takes its mean. choice: it selects texts or flags. flag: it asks
a tensor that an object keeps. message: it only writes text. told: it sets tensors, and writes text. count: it
asks for a number of steps. branch: any other test.

Of a value: where it ends (:mod:`breakscope.diagnose.becomes`), by the table below. list: Python needs all of
its values. index: a tensor picks an element. tested pick: a number picks an element and decides a branch.
all picked: a loop picks with each of a list. selected: what a mask selects goes anywhere else.

Others: random: numpy draws the number. experts: which tokens go to which expert. with: a context manager
is entered. plain: anything else.
"""
# The first row counts whose kind is among the ends of a number.
_OF_NUMBER: dict[Kind, Shape] = {
    "turns": "loop",
    "loop test": "loop",
    "turns of values": "loop",
    "seed": "seed",
    "size": "size",
    "slice": "slice",
    "order": "order",
    "part": "part",
    "key": "key",
    "pick": "pick",
    "placed": "placed",
    "filter": "python",
}
# The same below what only tests, writes, keeps or returns it.
_OF_REST: dict[Kind, Shape] = {
    "bound": "bound",
    "numpy": "numpy",
    "given": "given",
    "math": "math",
    "stacked": "stacked",
    "arithmetic": "arithmetic",
}
_OF_SELECTION: dict[Kind, Shape] = {
    "turns of values": "loop",
    "turns": "loop",
    "suppressed": "suppressed",
    "paired": "paired",
    "joined": "joined",
    "ranked": "ranked",
    "scattered": "scattered",
}
# The same where all of them keep to the mask.
_OF_MASKED: dict[Kind, Shape] = {"loss": "loss", "stored": "stored", "reduced": "reduced"}


@dataclass(frozen=True, slots=True)
class Use:
    """What a value is for.

    Attributes:
        value: the source of what is read; name: of the variable that holds it where it ends; both may be
            empty.
        taker: the source of what takes it, line: where that is; empty and 0 where it ends where it is read.
        gathered: whether it is one of a list.
        mask: what selects, and of: what it selects from, where the value says that.
    """

    shape: Shape
    value: str = ""
    name: str = ""
    taker: str = ""
    line: int = 0
    gathered: bool = False
    mask: str = ""
    of: str = ""


_BRANCHES = ("turn", "change", "fast path", "early", "told", "verdict", "python", "skip", "choice")
_EXPERTS = re.compile(r"\bexpert_|\bexperts?\b|router_|top_x")
_DROP = re.compile(r"[<>]=?.*(layer_?drop|drop_path)|(layer_?drop|drop_path)\w* *[<>]", re.DOTALL)
DROPS = ("layerdrop", "layer_drop", "drop_path")
_RANDOM = re.compile(r"\b(?:np|numpy)\.random\b|(?<![\w.])random\.\w+\(")  # not torch.random


def use_of(
    sources: Sources,
    file: str,
    position: Position | None,
    line: int,
    *,
    code: str = "",
    callers: Sequence[Sequence[ast.AST]] = (),
) -> Use:
    """What the value of a site is for; "plain" where its source cannot be read.

    Args:
        code: of what broke: in ``x[i]`` it tells a number that picks from a mask that selects.
        callers: the nodes around the calls in compiled code that lead to the site, the nearest first.
    """
    if position is None:  # in a trace: the statement that begins on the line
        text = sources.line(file, line) or ""
        begin = len(text) - len(text.lstrip())
        position = (line, begin, line, begin)
    around = sources.around(file, position)
    if around and isinstance(around[-1], ast.IfExp):
        around = [*around, around[-1].test]  # what it asks for is what broke
    shape = _of_statement(around)
    if shape and not (code == "BS105" and shape in _BRANCHES):
        return Use(shape, _short(around[-1] if around else None))
    return _of_place(around, code, callers)


def shape_of(sources: Sources, file: str, position: Position | None, line: int) -> Shape:
    """The shape alone."""
    return use_of(sources, file, position, line).shape


def _of_statement(around: Sequence[ast.AST]) -> Shape | None:
    """What the statement as a whole is for."""
    statement = uses.statement(around)
    if isinstance(statement, ast.Assert) or _only_raises(statement):
        return "check"
    if isinstance(statement, ast.stmt) and _drops(statement, around):
        return "layerdrop"
    if isinstance(statement, ast.With) and any(isinstance(node, ast.withitem) for node in around):
        return "with"
    written = statement.body if isinstance(statement, ast.If) else [statement] if statement else []
    if uses.only_writes(written):
        return "message"
    if _is_read_in_test(statement, around):
        return "index"
    if way_out := _way_out(statement, around):
        return way_out
    if isinstance(statement, ast.stmt) and _of_experts(statement, around):
        return "experts"
    return "loop" if isinstance(statement, ast.While) else None


def _of_place(around: Sequence[ast.AST], code: str, callers: Sequence[Sequence[ast.AST]]) -> Use:
    """What the place in the statement says, and where the value ends."""
    innermost = around[-1] if around else None
    value = _short(innermost)
    if isinstance(innermost, ast.expr) and _RANDOM.search(ast.unparse(innermost)):
        decided = [uses.statement(end.way) for end in becomes.ends(around) if end.kind == "test"]
        drops = any(one is not None and _drops(one, around) for one in decided)
        return Use("layerdrop" if drops else "random", value)
    if isinstance(innermost, ast.Slice):
        return Use("slice", value)
    if any(map(_chooses_text, around)):
        return Use("choice", value)
    if (taking := _of_number_in_call(innermost)) is not None:
        return Use(taking, value, taker=value)
    if _in_shrinking_loop(around):
        return Use("search", value)
    ends = becomes.ends(around, callers, is_number=code not in ("", "BS105"))
    if becomes.selects(innermost) and code in ("", "BS105"):
        use = _of_selection(ends, innermost, value)
        if code and _of_index(around) == "placed":
            return replace(use, shape="stored")
        return Use("index", value) if use.shape == "selected" and not code and _is_index(innermost) else use
    shape, end = _of_ends(ends)
    if code != "BS101" and _is_index(innermost) and not (shape == "part" or _is_read(around)):
        shape = "slice" if _has_bounds(innermost) else _of_index(around)
        return Use(shape, "" if shape == "placed" else value)
    if code == "BS105" and shape not in ("loop", "message"):
        return Use("plain", value)  # unique, repeat_interleave: no mask selects
    if shape == "plain" and value.endswith(".tolist()"):
        shape = "list"
    return _ended(shape, end, innermost, value)


def _ended(shape: Shape, end: End | None, innermost: ast.AST | None, value: str) -> Use:
    """What a value is for, with the names of where it ends."""
    if end is None:
        return Use(shape, value)
    line = getattr(end.taker, "lineno", 0)
    is_here = line == getattr(innermost, "lineno", 0)
    return Use(shape, value, end.name, _short(end.taker), 0 if is_here else line, end.gathered)


def _in_shrinking_loop(around: Sequence[ast.AST]) -> bool:
    """Whether a ``while`` around it runs until no selection is left: ``order = order[keep]``, as in NMS."""
    for loop in around:
        if not isinstance(loop, ast.While):
            continue
        asked = {node.id for node in ast.walk(loop.test) if isinstance(node, ast.Name)}
        for node in ast.walk(loop):
            if (
                isinstance(node, ast.Assign)
                and asked & set(uses.targets(node))
                and becomes.selects(node.value)
            ):
                return True
    return False


def _of_number_in_call(innermost: ast.AST | None) -> Shape | None:
    """Of a call that takes a tensor where it needs a number: ``x.new_zeros(2, longest)``."""
    if not isinstance(innermost, ast.Call) or uses.READS.search(ast.unparse(innermost)):
        return None
    if ast.unparse(innermost.func).startswith("math."):
        return "math"
    return "size" if uses.NUMBERS.match(uses.called(innermost)) else None


def _of_ends(ends: Sequence[End]) -> tuple[Shape, End | None]:
    """The shape of a number, with the end that decides it."""
    tests = [end for end in ends if end.kind in ("test", "step")]
    if end := _first(ends, _OF_NUMBER):
        shape = _OF_NUMBER[end.kind]
        if shape in ("pick", "placed") and end.looped:
            by_python = any(other.gathered or other.kind == "test" for other in ends)
            return ("list" if by_python else "all picked"), end
        return ("tested pick" if shape == "pick" and tests else shape), end
    if ends and all(end.kind in ("message", "raised") or _only_tells(end) for end in ends):
        return "message", ends[0]
    for end in tests:
        shape = _of_tested(end)
        if shape == "check" and any(other.kind not in ("test", "message", "raised") for other in ends):
            continue
        return shape, end
    if tests:
        return "branch", tests[0]
    if end := _first(ends, _OF_REST):
        return _OF_REST[end.kind], end
    if end := _first(ends, ("returned",)):
        return ("returned" if _all(ends, ("returned", "kept", "message")) else "plain"), end
    is_kept = ends and _all(ends, ("kept", "message"))
    return ("kept" if is_kept else "plain"), next(iter(ends), None)


def _of_selection(ends: Sequence[End], innermost: ast.AST | None, value: str) -> Use:
    """What is done with what a mask selects."""
    shape, end = _shape_of_selection(ends)
    of = mask = ""
    match innermost:
        case ast.Subscript(base, ast.Tuple()):
            pass
        case ast.Subscript(base, chosen) if len(value) > 0:
            of, mask = ast.unparse(base), ast.unparse(chosen)
        case _ if shape in ("selected", "reduced"):
            shape = "positions" if shape == "reduced" else "plain"
    if shape == "reduced" and not _takes(end, innermost):
        of = ""  # what is reduced was made of it
    return replace(_ended(shape, end, innermost, value), mask=mask, of=of)


def _takes(end: End | None, innermost: ast.AST | None) -> bool:
    """Whether a value ends right where it is read."""
    parts = () if end is None or end.taker is None else ast.iter_child_nodes(end.taker)
    return any(part is innermost for part in parts)


def _shape_of_selection(ends: Sequence[End]) -> tuple[Shape, End | None]:
    if end := _first(ends, _OF_SELECTION):
        return _OF_SELECTION[end.kind], end
    told: tuple[Kind, ...] = ("reduced", "test", "message", "raised")
    if ends and _all(ends, ("message", "raised")):
        return "message", ends[0]
    if (end := _first(ends, _OF_MASKED)) and _all(ends, (*told, *_OF_MASKED)):
        taker = uses.called(end.taker) if isinstance(end.taker, ast.Call) else ""
        if "ctc" in taker:
            return "packed", end
        labels = end.kind == "loss" and re.search(r"(?<!binary_)cross_entropy|nll", taker)
        return "labels" if labels else _OF_MASKED[end.kind], end
    if end := _first(ends, ("test", "loop test", "filter")):
        return "counted", end
    if (end := _first(ends, ("returned", "kept"))) and _all(ends, ("returned", "kept", "message")):
        return "returned", end
    return "selected", next(iter(ends), None)


def _first(ends: Sequence[End], kinds: Iterable[Kind]) -> End | None:
    """The first end of the first kind that is among them."""
    return next((end for kind in kinds for end in ends if end.kind == kind), None)


def _all(ends: Sequence[End], kinds: Sequence[Kind]) -> bool:
    return all(end.kind in kinds for end in ends)


def _of_tested(end: End) -> Shape:
    """What a test is for that a value is held against further on."""
    if end.kind == "step":
        return "count"
    if any(map(_chooses_text, end.way)):
        return "choice"
    shape = _of_statement(end.way) or "branch"
    return "python" if end.looped and shape == "branch" else shape


def _only_tells(end: End) -> bool:
    """Whether a test only decides if something is written."""
    return end.kind == "test" and _of_tested(end) == "message"


_LONG = 60


def _short(node: ast.AST | None) -> str:
    """The source of an expression, or of what a statement evaluates itself; empty where it is long."""
    if node is None or not isinstance(node, ast.expr | ast.stmt | ast.keyword):
        return ""
    if isinstance(node, ast.For):
        text = f"for {ast.unparse(node.target)} in {ast.unparse(node.iter)}"
    elif isinstance(node, ast.If | ast.While):
        text = f"{'if' if isinstance(node, ast.If) else 'while'} {ast.unparse(node.test)}"
    else:
        text = ast.unparse(node)
    return "" if len(text) > _LONG or "\n" in text else text


def _is_read_in_test(statement: ast.stmt | None, around: Sequence[ast.AST]) -> bool:
    """Whether a test computes with ``x[i]`` of a tensor ``i``: ``if x[i] < 0.3:`` breaks there."""
    return (
        isinstance(statement, ast.If)
        and len(around) > 1
        and isinstance(around[-2], ast.Compare | ast.BinOp)
        and _is_index(around[-1])
        and not isinstance(getattr(around[-1], "slice", None), ast.Constant)
    )


def _is_index(innermost: ast.AST | None) -> bool:
    """Whether what broke is ``x[i]`` with a tensor ``i``: its value is read to take an element."""
    if not isinstance(innermost, ast.Subscript) or isinstance(innermost.slice, ast.Constant):
        return False
    return not uses.READS.search(ast.unparse(innermost.slice))


def _is_read(around: Sequence[ast.AST]) -> bool:
    """Whether a number is read of what an index picks: ``int(lengths[i])``, ``lengths[i].item()``."""
    call = next((node for node in reversed(around[-3:-1]) if isinstance(node, ast.Call)), None)
    return call is not None and bool(re.match(r"(int|float|bool|item)$", uses.called(call)))


def _of_index(around: Sequence[ast.AST]) -> Shape:
    """Of ``x[i]``: whether it is read, or written as in ``counts[i] += 1``."""
    statement = uses.statement(around)
    written = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return "placed" if around[-1] in written else "index"


def _has_bounds(innermost: ast.AST | None) -> bool:
    """Whether an index has a slice with a bound: ``x[:, :n]``."""
    slices = [node for node in ast.walk(innermost or ast.Pass()) if isinstance(node, ast.Slice)]
    return any(node.lower or node.upper for node in slices)


def _of_experts(statement: ast.stmt, around: Sequence[ast.AST]) -> bool:
    """Whether it picks the tokens of an expert: by its own words, or by those of the loop around it."""
    if _EXPERTS.search(ast.unparse(head_of(statement))):
        return True
    loops = [node for node in around if isinstance(node, ast.For) and node is not statement]
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


def is_drawn(sources: Sources, file: str, position: Position | None) -> bool:
    """Whether a place draws a number with numpy or Python, or computes with one that was drawn."""
    around = [] if position is None else sources.around(file, position)
    if not around or not isinstance(around[-1], ast.expr):
        return False
    if _RANDOM.search(ast.unparse(around[-1])):
        return True
    function = next((node for node in reversed(around) if isinstance(node, ast.FunctionDef)), None)
    used = {node.id for node in ast.walk(around[-1]) if isinstance(node, ast.Name)}
    return isinstance(around[-1], ast.BinOp) and any(
        isinstance(node, ast.Assign)
        and used & set(uses.targets(node))
        and _RANDOM.match(ast.unparse(node.value))
        for node in (ast.walk(function) if function is not None else ())
    )


def _way_out(statement: ast.stmt | None, around: Sequence[ast.AST]) -> Shape | None:
    """How a branch leaves what it is in, or changes it, where it does."""
    if isinstance(statement, ast.If) and _is_flag(statement.test):
        return "flag"
    if _ends_loop(statement, around):
        return "loop"
    body = statement.body if isinstance(statement, ast.If) else []
    if any(isinstance(one, ast.Break | ast.Continue) for one in body):
        if any(map(_is_of_python, body)):
            return "python"
        loops = _loops(around)
        if _is_search(around):
            return "search"
        return "loop" if loops and isinstance(loops[-1], ast.While) else "turn"
    if body and _in_loop(around) and any(isinstance(one, ast.Return) for one in body):
        loops = _loops(around)
        return "loop" if isinstance(loops[-1], ast.While) else "turn"
    if isinstance(statement, ast.If) and (last := _last_returns(statement, around)):
        return "verdict" if any(map(_holds_constant, last)) else "branch"
    if isinstance(statement, ast.If) and _leaves_out_changes(statement, around):
        return "skip"
    if isinstance(statement, ast.If) and _spares(statement):
        return "spared mean" if _MEANS.search(ast.unparse(statement)) else "spared"
    empties = any(map(_leaves_or_empties, body)) or any(map(_chooses_none, around))
    if empties:
        return "early" if any(map(_returns_value, body)) else "fast path"
    if any(map(uses.changes_in_place, body)):
        return "change"
    return _of_sides(statement, around)


def _of_sides(statement: ast.stmt | None, around: Sequence[ast.AST]) -> Shape | None:
    """What the sides of a branch do that is no operation on tensors."""
    sides = [*statement.body, *statement.orelse] if isinstance(statement, ast.If) else []
    silent = [side for side in sides if not uses.is_message(side)]
    if silent and all(map(_sets_flag, silent)):
        return "choice"
    of_python = any(_is_of_python(side) or _steps_a_number(side, around) for side in silent)
    if of_python or _filters(around):
        return "python"
    return "told" if len(silent) < len(sides) else None


def _steps_a_number(side: ast.stmt, around: Sequence[ast.AST]) -> bool:
    """Whether a statement changes a Python number that its object keeps: ``self.beta *= 1.5``."""
    match side:
        case ast.AugAssign(ast.Attribute(ast.Name("self"), name), _, ast.Constant()):
            made = [node for one in around if isinstance(one, ast.ClassDef) for node in ast.walk(one)]
            return any(_begins_with_a_number(node, name) for node in made)
    return False


def _begins_with_a_number(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Assign([ast.Attribute(ast.Name("self"), attribute)], ast.Constant(int() | float())):
            return attribute == name
    return False


def _loops(around: Sequence[ast.AST]) -> list[ast.For | ast.While]:
    return [node for node in around if isinstance(node, ast.For | ast.While)]


def _ends_loop(statement: ast.stmt | None, around: Sequence[ast.AST]) -> bool:
    """Whether a branch sets what the ``while`` around it asks for: how often that runs depends on it."""
    loops = _loops(around)
    if not loops or not isinstance(loops[-1], ast.While) or not isinstance(statement, ast.If):
        return False
    asked = {node.id for node in ast.walk(loops[-1].test) if isinstance(node, ast.Name)}
    return any(asked & set(uses.targets(one)) for one in (*statement.body, *statement.orelse))


def _is_flag(test: ast.expr) -> bool:
    """``if self.ready:``, ``if not self.ready:``."""
    asked = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test
    return isinstance(asked, ast.Attribute) and isinstance(asked.value, ast.Name) and asked.value.id == "self"


def _filters(around: Sequence[ast.AST]) -> bool:
    """Whether a comprehension asks a value for what to keep."""
    return any(
        isinstance(parent, ast.comprehension) and child in parent.ifs for parent, child in pairwise(around)
    )


def _leaves_out_changes(statement: ast.If, around: Sequence[ast.AST]) -> bool:
    """Whether a bare ``return`` skips what changes state: tensors in place, or attributes."""
    function = next((node for node in reversed(around) if isinstance(node, ast.FunctionDef)), None)
    match statement.body, function:
        case [ast.Return(None)], ast.FunctionDef(body=body) if statement in body:
            after = body[body.index(statement) + 1 :]
            return any(uses.changes_in_place(one) or _sets_attribute(one) for one in after)
    return False


def _sets_attribute(statement: ast.stmt) -> bool:
    match statement:
        case ast.Assign([ast.Attribute()], _) | ast.AugAssign(ast.Attribute(), _, _):
            return True
    return False


def _sets_flag(statement: ast.stmt) -> bool:
    """``stop = True``, ``level = "high"``: what is selected is no tensor."""
    match statement:
        case ast.Assign([ast.Name()], ast.Constant(bool() | str())):
            return True
    return False


def _spares(statement: ast.If) -> bool:
    """Whether ``if mask.any():`` stands before what is done where the mask is set, and only there."""
    match statement.test:
        case ast.Call(ast.Attribute(mask, "any"), []) | ast.Call(ast.Attribute(_, "any"), [mask]):
            name = ast.unparse(mask)
            found = [
                node for one in statement.body for node in ast.walk(one) if isinstance(node, ast.Subscript)
            ]
            counts = any(map(_sets_attribute, statement.body))  # that a mask was set is noted as well
            masked = any(ast.unparse(node.slice) == name for node in found)
            return masked and not counts and not statement.orelse
    return False


def _in_loop(around: Sequence[ast.AST]) -> bool:
    """Whether a loop of its own function runs a place."""
    functions = [at for at, node in enumerate(around) if isinstance(node, ast.FunctionDef)]
    inside = around[functions[-1] :] if functions else around
    return any(isinstance(node, ast.For | ast.While) for node in inside)


def _is_search(around: Sequence[ast.AST]) -> bool:
    """Whether the loop around a branch has a ``while`` in it: a search that values steer all over."""
    loop = next((node for node in around if isinstance(node, ast.For | ast.While)), None)
    return loop is not None and any(
        isinstance(node, ast.While) and node is not loop for node in ast.walk(loop)
    )


def _last_returns(statement: ast.If, around: Sequence[ast.AST]) -> list[ast.expr]:
    """What is returned with and without a branch that is its function's last but a ``return``."""
    function = next((node for node in reversed(around) if isinstance(node, ast.FunctionDef)), None)
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
    """Whether a flag, a text or None is returned, which torch.where cannot select."""
    return any(
        isinstance(part, ast.Constant) and (part.value is None or isinstance(part.value, bool | str))
        for part in (value.elts if isinstance(value, ast.Tuple) else [value])
    )


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
        or (isinstance(node, ast.Call) and re.search(r"(deepcopy|tolist|dumps?|open)$", uses.called(node)))
        for node in ast.walk(statement)
    )


def _sets_item(node: ast.AST) -> bool:
    """Whether it sets an item of a dict, by its name: ``group["lr"] = …``."""
    match node:
        case ast.Assign([ast.Subscript(slice=ast.Constant(str()))]):
            return True
    return False


def _is_count(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, int)


def _drops(statement: ast.stmt, around: Sequence[ast.AST]) -> bool:
    """Whether a statement decides at random if a layer runs, or asks for what decided it."""
    head = head_of(statement)
    if _DROP.search(ast.unparse(head)):
        return True
    function = next((node for node in reversed(around) if isinstance(node, ast.FunctionDef)), None)
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


_MEANS = re.compile(
    r"\]\.(mean|median|max|min|amax|amin|std|var)\(|\b(mean|median|max|min|std|var)\([\w.]+\["
)


def _returns_value(statement: ast.stmt) -> bool:
    """Whether it returns more than None or texts and flags, which torch.where cannot select."""
    match statement:
        case ast.Return(ast.expr() as value):
            return not _holds_constant(value)
    return False


def _chooses_none(node: ast.AST) -> bool:
    """Whether it is ``None if … else …``: there is nothing to select from."""
    match node:
        case ast.IfExp(_, ast.Constant(None), _) | ast.IfExp(_, _, ast.Constant(None)):
            return True
    return False


def _chooses_text(node: ast.AST) -> bool:
    """Whether it is ``"ok" if … else …``: what is selected is no tensor."""
    match node:
        case ast.IfExp(_, ast.Constant(str() | bool()), _) | ast.IfExp(_, _, ast.Constant(str() | bool())):
            return True
    return False


def _only_raises(node: ast.AST | None) -> bool:
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
