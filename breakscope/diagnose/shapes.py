"""What kind of statement a site stands in: what helps depends on what the value is for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal

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
    "branch",
    "plain",
]
"""check: decides whether to raise. loop: how long a loop runs. size: a Python number is required, for a
shape, a range or a slice. layerdrop: a random number decides whether to run a part. random: numpy draws the
number. experts: which tokens go to which expert. turn: the branch leaves a loop's turn, or the loop.
change: the branch changes tensors in place.
fast path: the branch returns early or sets None.
message: the branch only
writes text. branch: any other test. plain: anything else."""

_EXPERTS = re.compile(r"\bexpert_|\bexperts?\b|router_|top_x")
_DROP = re.compile(r"[<>]=?.*(layer_?drop|drop_path)|(layer_?drop|drop_path)\w* *[<>]", re.DOTALL)
DROPS = ("layerdrop", "layer_drop", "drop_path")
_MESSAGE = re.compile(r"^print$|\blog(ger|ging)?\b|warn|\bstd(out|err)\b", re.IGNORECASE)
_RANDOM = re.compile(r"\b(?:np|numpy)\.random\b|(?<![\w.])random\.\w+\(")  # not torch.random
# Calls that need Python numbers.
_NUMBERS = re.compile(
    r"(range|zeros|ones|empty|full|rand|randn|arange|linspace|view|reshape|expand|repeat|tile|pad|narrow|split|chunk"
    r"|unflatten|new_(zeros|ones|empty|full)|topk|roll|tril|triu|eye|one_hot|interpolate|unfold)$"
)


def shape_of(sources: Sources, file: str, position: Position | None, line: int) -> Shape:
    """The shape of a site; "plain" where its source cannot be read."""
    if position is None:  # in a trace: the statement that begins on the line
        text = sources.line(file, line) or ""
        begin = len(text) - len(text.lstrip())
        position = (line, begin, line, begin)
    around = sources.around(file, position)
    statement = next((node for node in reversed(around) if isinstance(node, ast.stmt)), None)
    if isinstance(statement, ast.Assert) or _only_raises(statement):
        return "check"
    if isinstance(statement, ast.stmt) and _drops(statement, around):
        return "layerdrop"
    written = statement.body if isinstance(statement, ast.If) else [statement] if statement else []
    if written and all(map(_is_message, written)):
        return "message"
    if way_out := _way_out(statement, around):
        return way_out
    if isinstance(statement, ast.stmt) and _EXPERTS.search(ast.unparse(head_of(statement))):
        return "experts"
    if isinstance(statement, ast.While):
        return "loop"
    innermost = around[-1] if around else None
    if isinstance(innermost, ast.expr) and _RANDOM.search(ast.unparse(innermost)):
        return "random"
    if _needs_number(around):
        return "size"
    if isinstance(statement, ast.If) or _in_test(around):
        return "branch"
    name = _assigned(statement)
    function = next((node for node in reversed(around) if isinstance(node, ast.FunctionDef)), None)
    if name is not None and function is not None and any(_needs_number(way) for way in _uses(function, name)):
        return "size"
    return "plain"


def _way_out(statement: ast.stmt | None, around: Sequence[ast.AST]) -> Shape | None:
    """How a branch leaves what it is in, or changes it, where it does."""
    body = statement.body if isinstance(statement, ast.If) else []
    if any(isinstance(one, ast.Break | ast.Continue) for one in body):
        return "turn"
    empties = any(map(_leaves_or_empties, body)) or any(map(_chooses_none, around))
    if empties:
        return "fast path"
    return "change" if any(map(_changes_in_place, body)) else None


def _changes_in_place(statement: ast.stmt) -> bool:
    """Whether it calls a method such as ``copy_`` for what that does."""
    return any(
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Attribute)
        and re.fullmatch(r"[a-z]\w*[a-z]_", node.value.func.attr)
        for node in ast.walk(statement)
    )


def _is_message(node: ast.stmt) -> bool:
    """Whether a statement only writes text."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and _MESSAGE.search(ast.unparse(node.value.func)) is not None
    )


def _drops(statement: ast.stmt, around: Sequence[ast.AST]) -> bool:
    """Whether a statement decides at random if a layer runs, or asks for what decided it."""
    head = head_of(statement)
    if _DROP.search(ast.unparse(head)):
        return True
    function = next((node for node in reversed(around) if isinstance(node, ast.FunctionDef)), None)
    asked = {node.id for node in ast.walk(head) if isinstance(node, ast.Name)}
    return any(
        isinstance(node, ast.Assign) and _assigned(node) in asked and _DROP.search(ast.unparse(node.value))
        for node in (ast.walk(function) if function is not None and isinstance(statement, ast.If) else ())
    )


def _in_test(around: Sequence[ast.AST]) -> bool:
    return any(isinstance(one, ast.IfExp) and child is one.test for one, child in pairwise(around))


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


def _only_raises(node: ast.AST | None) -> bool:
    """Whether a branch does nothing but raise, with a text that it may put together first."""
    if not isinstance(node, ast.If) or node.orelse:
        return False
    *before, last = node.body
    return _raises(last) and all(isinstance(part, ast.Assign) or _is_message(part) for part in before)


def _raises(last: ast.stmt) -> bool:
    match last:
        case ast.Raise():
            return True
        case ast.Expr(
            ast.Call(func, [ast.Constant(False), *_])
        ):  # as torchvision does: torch._assert(False, …)
            return ast.unparse(func).rpartition(".")[2] == "_assert"
    return False


def _needs_number(way: Sequence[ast.AST]) -> bool:
    """Whether the innermost node of a way from the outside is a size, a bound or an index."""
    for parent, child in pairwise(way):
        if isinstance(parent, ast.Slice):
            return True
        if isinstance(parent, ast.Call) and child is not parent.func and _NUMBERS.match(_called(parent)):
            return True
    return False


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _assigned(statement: ast.stmt | None) -> str | None:
    match statement:
        case ast.Assign([ast.Name(name)], _) | ast.AnnAssign(ast.Name(name), _, _):
            return name
    return None


def _uses(function: ast.AST, name: str, way: tuple[ast.AST, ...] = ()) -> Iterator[tuple[ast.AST, ...]]:
    """The ways from a function to where it reads a name."""
    way = (*way, function)
    if isinstance(function, ast.Name) and function.id == name and isinstance(function.ctx, ast.Load):
        yield way
    for child in ast.iter_child_nodes(function):
        yield from _uses(child, name, way)
