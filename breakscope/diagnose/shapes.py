"""What kind of statement a site stands in: what helps depends on what the value is for."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal

from breakscope.diagnose import uses
from breakscope.project.sources import Position, Sources

Shape = Literal[
    "check",
    "loop",
    "size",
    "layerdrop",
    "random",
    "experts",
    "turn",
    "change",
    "fast path",
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
    "spared",
    "skip",
    "with",
    "count",
    "choice",
    "flag",
    "reduced",
    "plain",
]
"""What a statement shows:

Of a test: check: decides whether to raise. loop: how long a loop runs. layerdrop: a random number decides
whether to run a part. turn: it leaves a loop's turn, or the loop. search: the same, where a loop of
unknown length is in it. change: it changes tensors in place. skip: it leaves out changes of state. fast
path: it returns early or sets None. verdict: it only decides which plain values are returned last.
python: it does what is no operation on tensors. spared: it only saves work on what a mask selects.
choice: it selects texts or flags. flag: it asks a tensor that an object keeps. message: it only writes
text. told: it sets tensors, and writes text. count: it asks for a number of steps. branch: any other test.

Of a value: size: a Python number is required, for a shape, a range or a slice. order: Python sorts or
searches by it. bound: Python's min or max compares it with a number. list: Python needs all of them.
index: a tensor picks an element. pick: a number that was read does. tested pick: it decides a branch as
well. kept: it is only stored. returned: it is only returned. given: it goes to a call that is made for its
effect. reduced: what a mask selects is only summed up.

Others: random: numpy draws the number. experts: which tokens go to which expert. with: a context manager
is entered. plain: anything else.
"""

_EXPERTS = re.compile(r"\bexpert_|\bexperts?\b|router_|top_x")
_DROP = re.compile(r"[<>]=?.*(layer_?drop|drop_path)|(layer_?drop|drop_path)\w* *[<>]", re.DOTALL)
DROPS = ("layerdrop", "layer_drop", "drop_path")
_OF_PYTHON = re.compile(r"(deepcopy|item|tolist|dumps?|open)$")
_RANDOM = re.compile(r"\b(?:np|numpy)\.random\b|(?<![\w.])random\.\w+\(")  # not torch.random


def shape_of(sources: Sources, file: str, position: Position | None, line: int) -> Shape:
    """The shape of a site; "plain" where its source cannot be read."""
    if position is None:  # in a trace: the statement that begins on the line
        text = sources.line(file, line) or ""
        begin = len(text) - len(text.lstrip())
        position = (line, begin, line, begin)
    around = sources.around(file, position)
    return _of_statement(around) or _of_place(around) or "plain"


def _of_statement(around: Sequence[ast.AST]) -> Shape | None:
    """What the statement as a whole is for."""
    statement = _statement(around)
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


def _of_place(around: Sequence[ast.AST]) -> Shape | None:
    """What the place in the statement says, and what becomes of the names that it sets."""
    statement = _statement(around)
    innermost = around[-1] if around else None
    if isinstance(innermost, ast.expr) and _RANDOM.search(ast.unparse(innermost)):
        return "random"
    if uses.counts_turns(around):
        return "loop"
    if uses.needs_number(around):
        return "size"
    if uses.is_bounded(around):
        return "bound"
    if uses.is_ordered(around):
        return "order"
    if any(map(_chooses_text, around)):
        return "choice"
    if isinstance(statement, ast.If) or uses.in_test(around):
        return "index" if _is_index(innermost) else "branch"
    if isinstance(innermost, ast.expr) and (found := _of_expression(innermost, around)):
        return found
    return _of_names(statement, around)


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
    if not isinstance(innermost, ast.Subscript) or isinstance(innermost.slice, ast.Slice):
        return False
    return not uses.READS.search(ast.unparse(innermost))


def _statement(around: Sequence[ast.AST]) -> ast.stmt | None:
    return next((node for node in reversed(around) if isinstance(node, ast.stmt)), None)


def _of_expression(innermost: ast.expr, around: Sequence[ast.AST]) -> Shape | None:
    """What the expression itself says, and what stands right around it."""
    text = ast.unparse(innermost)
    if text.endswith(".tolist()"):
        return "list"
    if isinstance(innermost, ast.Slice):
        return "size"
    if isinstance(innermost, ast.Subscript):
        if uses.is_reduced(around):
            return "reduced"
        slices = [node for node in ast.walk(innermost.slice) if isinstance(node, ast.Slice)]
        bounds = [node for node in slices if node.lower or node.upper]
        if bounds and not uses.READS.search(ast.unparse(innermost.slice)):
            return "size"
        statement = _statement(around)
        if uses.READS.search(ast.unparse(innermost.slice)) or _of_names(statement, around) == "reduced":
            return None
        return "index"
    if "masked_select" in text and uses.is_reduced(around):
        return "reduced"
    if (
        isinstance(innermost, ast.Call)
        and uses.NUMBERS.match(uses.called(innermost))
        and not uses.READS.search(text)
    ):
        return "size"
    if uses.picks(around):
        return "pick"
    if uses.is_returned(around):
        return "returned"
    if uses.is_kept(around) or uses.is_listed(around):
        return _of_kept(around)
    return "given" if uses.is_given(around) else None


def _of_kept(around: Sequence[ast.AST]) -> Shape:
    """What a value is for that is put into a container or an attribute."""
    if uses.is_asked_later(around):
        return "branch"
    return "pick" if _picks_later(around) else "kept"


def _of_names(statement: ast.stmt | None, around: Sequence[ast.AST]) -> Shape | None:
    """What becomes of the names that a statement sets, as far as its function shows it."""
    names = uses.targets(statement)
    function = next((node for node in reversed(around) if isinstance(node, ast.FunctionDef)), None)
    if not names or function is None:
        return None
    ways = [way for name in names for way in uses.uses(function, name)]
    decided: tuple[tuple[Shape, Callable[[Sequence[ast.AST]], bool]], ...] = (
        ("loop", uses.in_loop_test),
        ("loop", uses.is_iterated if _finds(statement) else uses.in_loop_test),
        ("size", uses.needs_number),
        ("order", uses.is_ordered),
        ("pick", uses.picks),
    )
    tests = [way for way in ways if uses.in_test(way) or uses.in_if_test(way)]
    for shape, decides in decided:
        if any(map(decides, ways)):
            return "tested pick" if shape == "pick" and tests else shape
    if ways and all(map(uses.in_message, ways)):
        return "message"
    if ways and _selects(statement) and all(map(uses.is_reduced, ways)):
        return "reduced"
    if tests:
        return "count" if any(map(uses.is_counted, tests)) else "branch"
    if ways and all(uses.is_kept(way) or uses.in_message(way) for way in ways):
        return "kept"
    return "returned" if ways and all(map(uses.is_returned, ways)) else None


def _picks_later(around: Sequence[ast.AST]) -> bool:
    """Whether the list that a number is put into is an index: ``chosen.append(i.item())``, ``x[chosen]``."""
    function = next((node for node in reversed(around) if isinstance(node, ast.FunctionDef)), None)
    match _statement(around):
        case ast.Expr(ast.Call(ast.Attribute(value=ast.Name(name)))) if function is not None:
            return any(map(uses.is_index, uses.uses(function, name)))
    return False


def _finds(statement: ast.stmt | None) -> bool:
    """Whether a statement takes what is there of the values or positions of a tensor."""
    value = getattr(statement, "value", None)
    return isinstance(value, ast.Call) and uses.called(value) in uses.FINDS


def _selects(statement: ast.stmt | None) -> bool:
    """Whether a statement takes what a mask selects."""
    value = getattr(statement, "value", None)
    return isinstance(value, ast.Subscript) or (
        isinstance(value, ast.Call) and uses.called(value) == "masked_select"
    )


def _of_experts(statement: ast.stmt, around: Sequence[ast.AST]) -> bool:
    """Whether it picks the tokens of an expert: by its own words, or by those of the loop around it."""
    if _EXPERTS.search(ast.unparse(head_of(statement))):
        return True
    loops = [node for node in around if isinstance(node, ast.For) and node is not statement]
    return isinstance(statement, ast.Assign) and any(
        _EXPERTS.search(f"{ast.unparse(loop.target)} {ast.unparse(loop.iter)}") for loop in loops
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
        return "spared"
    empties = any(map(_leaves_or_empties, body)) or any(map(_chooses_none, around))
    if empties:
        return "fast path"
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
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and not uses.is_message(node))
        or (
            isinstance(node, ast.AugAssign)
            and isinstance(node.target, ast.Attribute)
            and _is_count(node.value)
        )
        or (
            isinstance(node, ast.Call)
            and re.search(r"(deepcopy|item|tolist|dumps?|open)$", uses.called(node))
        )
        for node in ast.walk(statement)
    )


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
