"""What kind of statement a site stands in: what helps depends on what the value is for."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
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
    "verdict",
    "python",
    "search",
    "order",
    "list",
    "index",
    "kept",
    "given",
    "pick",
    "spared",
    "skip",
    "with",
    "count",
    "choice",
    "reduced",
    "plain",
]
"""check: decides whether to raise. loop: how long a loop runs. size: a Python number is required, for a
shape, a range or a slice. layerdrop: a random number decides whether to run a part. random: numpy draws the
number. experts: which tokens go to which expert. turn: the branch leaves a loop's turn, or the loop.
change: the branch changes tensors in place.
fast path: the branch returns early or sets None.
message: the branch only
writes text. branch: any other test. verdict: the branch only decides which plain values are returned last.
python: the branch does what is no operation on tensors. search: it steers a loop with a loop of unknown
length in it. order: Python sorts or searches by the number.
list: Python needs a list of the values. index: a tensor without .item() picks an element. kept: the number
is only stored. given: it goes to a call that is made for its effect. pick: it picks an element. spared: the branch
only saves work on what a mask selects. skip: the branch leaves out changes of state. with: a context manager is
entered. count: a whole number of
steps decides. choice: it selects texts or flags. reduced: what a mask selects is only summed up. plain: anything else."""

_EXPERTS = re.compile(r"\bexpert_|\bexperts?\b|router_|top_x")
_DROP = re.compile(r"[<>]=?.*(layer_?drop|drop_path)|(layer_?drop|drop_path)\w* *[<>]", re.DOTALL)
DROPS = ("layerdrop", "layer_drop", "drop_path")
_MESSAGE = re.compile(
    r"^p?print$|^(?!.*\.(append|extend|add)$).*(\blog(ger|ging)?\b|warn|\bstd(out|err)\b)|\btqdm\.write$|\.(add_scalars?"
    r"|add_histogram|writerow|set_postfix(_str)?|set_description|log_(dict|metrics?|scalar))$",
    re.IGNORECASE,
)
_KEEPS = re.compile(r"(append|appendleft|extend|insert|add|update|setdefault|put|record|push)$")
_ORDERS = re.compile(r"(heap\w+|bisect\w*|insort\w*|sorted|sort|nlargest|nsmallest)$")
_REDUCES = re.compile(r"(sum|mean|var|std|max|min|amax|amin|prod|any|all|norm|logsumexp|numel|size|len)$")
_READS = re.compile(r"\.(item|tolist|numpy)\(|\b(int|float|bool)\(")
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
    if isinstance(statement, ast.With) and any(isinstance(node, ast.withitem) for node in around):
        return "with"
    written = statement.body if isinstance(statement, ast.If) else [statement] if statement else []
    if _only_writes(written):
        return "message"
    if way_out := _way_out(statement, around):
        return way_out
    if isinstance(statement, ast.stmt) and _of_experts(statement, around):
        return "experts"
    if isinstance(statement, ast.While):
        return "loop"
    innermost = around[-1] if around else None
    if isinstance(innermost, ast.expr) and _RANDOM.search(ast.unparse(innermost)):
        return "random"
    if _needs_number(around):
        return "size"
    if _is_ordered(around):
        return "order"
    if any(map(_chooses_text, around)):
        return "choice"
    if isinstance(statement, ast.If) or _in_test(around):
        return "branch"
    if isinstance(innermost, ast.expr) and (found := _of_expression(innermost, around)):
        return found
    return _of_names(statement, around) or "plain"


def _of_expression(innermost: ast.expr, around: Sequence[ast.AST]) -> Shape | None:
    """What the expression itself says, and what stands right around it."""
    text = ast.unparse(innermost)
    if text.endswith(".tolist()"):
        return "list"
    if isinstance(innermost, ast.Slice):
        return "size"
    if isinstance(innermost, ast.Subscript):
        if _is_reduced(around):
            return "reduced"
        slices = [node for node in ast.walk(innermost.slice) if isinstance(node, ast.Slice)]
        bounds = [node for node in slices if node.lower or node.upper]
        if bounds and not _READS.search(ast.unparse(innermost.slice)):
            return "size"
        statement = next((node for node in reversed(around) if isinstance(node, ast.stmt)), None)
        if _READS.search(ast.unparse(innermost.slice)) or _of_names(statement, around) == "reduced":
            return None
        return "index"
    if "masked_select" in text and _is_reduced(around):
        return "reduced"
    if isinstance(innermost, ast.Call) and _NUMBERS.match(_called(innermost)) and not _READS.search(text):
        return "size"
    if _picks(around):
        return "pick"
    if _is_kept(around) or _is_listed(around):
        return "kept"
    return "given" if _is_given(around) else None


def _of_names(statement: ast.stmt | None, around: Sequence[ast.AST]) -> Shape | None:
    """What becomes of the names that a statement sets, as far as its function shows it."""
    names = _targets(statement)
    function = next((node for node in reversed(around) if isinstance(node, ast.FunctionDef)), None)
    if not names or function is None:
        return None
    ways = [way for name in names for way in _uses(function, name)]
    decided: tuple[tuple[Shape, Callable[[Sequence[ast.AST]], bool]], ...] = (
        ("loop", _in_loop_test),
        ("size", _needs_number),
        ("order", _is_ordered),
        ("pick", _picks),
    )
    for shape, decides in decided:
        if any(map(decides, ways)):
            return shape
    if ways and all(map(_in_message, ways)):
        return "message"
    if ways and _selects(statement) and all(map(_is_reduced, ways)):
        return "reduced"
    tests = [way for way in ways if _in_test(way) or _in_if_test(way)]
    if tests:
        return "count" if any(map(_is_counted, tests)) else "branch"
    if ways and all(_is_kept(way) or _in_message(way) for way in ways):
        return "kept"
    return None


def _selects(statement: ast.stmt | None) -> bool:
    """Whether a statement takes what a mask selects."""
    value = getattr(statement, "value", None)
    return isinstance(value, ast.Subscript) or (
        isinstance(value, ast.Call) and _called(value) == "masked_select"
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
    """Whether the expression at a place draws a number with numpy or Python, or computes with one drawn before."""
    around = [] if position is None else sources.around(file, position)
    if not around or not isinstance(around[-1], ast.expr):
        return False
    if _RANDOM.search(ast.unparse(around[-1])):
        return True
    function = next((node for node in reversed(around) if isinstance(node, ast.FunctionDef)), None)
    used = {node.id for node in ast.walk(around[-1]) if isinstance(node, ast.Name)}
    return isinstance(around[-1], ast.BinOp) and any(
        isinstance(node, ast.Assign) and used & set(_targets(node)) and _RANDOM.match(ast.unparse(node.value))
        for node in (ast.walk(function) if function is not None else ())
    )


def _way_out(statement: ast.stmt | None, around: Sequence[ast.AST]) -> Shape | None:
    """How a branch leaves what it is in, or changes it, where it does."""
    body = statement.body if isinstance(statement, ast.If) else []
    if any(isinstance(one, ast.Break | ast.Continue) for one in body):
        loops = [node for node in around if isinstance(node, ast.For | ast.While)]
        if _is_search(around):
            return "search"
        return "loop" if loops and isinstance(loops[-1], ast.While) else "turn"
    if body and _in_loop(around) and any(isinstance(one, ast.Return) for one in body):
        return "turn"
    if isinstance(statement, ast.If) and (last := _last_returns(statement, around)):
        return "verdict" if any(map(_holds_constant, last)) else "branch"
    if isinstance(statement, ast.If) and _leaves_out_changes(statement, around):
        return "skip"
    if isinstance(statement, ast.If) and _spares(statement):
        return "spared"
    empties = any(map(_leaves_or_empties, body)) or any(map(_chooses_none, around))
    if empties:
        return "fast path"
    if any(map(_changes_in_place, body)):
        return "change"
    return "python" if any(map(_is_of_python, body)) else None


def _leaves_out_changes(statement: ast.If, around: Sequence[ast.AST]) -> bool:
    """Whether a bare ``return`` skips what changes state: tensors in place, or attributes."""
    function = next((node for node in reversed(around) if isinstance(node, ast.FunctionDef)), None)
    match statement.body, function:
        case [ast.Return(None)], ast.FunctionDef(body=body) if statement in body:
            after = body[body.index(statement) + 1 :]
            return any(_changes_in_place(one) or _sets_attribute(one) for one in after)
    return False


def _sets_attribute(statement: ast.stmt) -> bool:
    match statement:
        case ast.Assign([ast.Attribute()], _) | ast.AugAssign(ast.Attribute(), _, _):
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
            return not statement.orelse and any(ast.unparse(node.slice) == name for node in found)
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
            is_plain = all(isinstance(part, ast.Assign) or _is_message(part) for part in before)
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
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and not _is_message(node))
        or (
            isinstance(node, ast.AugAssign)
            and isinstance(node.target, ast.Attribute)
            and _is_count(node.value)
        )
        or (isinstance(node, ast.Call) and re.search(r"(deepcopy|item|tolist|dumps?|open)$", _called(node)))
        for node in ast.walk(statement)
    )


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


def _is_count(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, int)


def _only_writes(statements: Sequence[ast.stmt]) -> bool:
    """Whether statements write text and do nothing else, but note that they did."""

    def notes(node: ast.stmt) -> bool:
        match node:
            case ast.Assign(_, ast.Constant()) | ast.AugAssign(_, _, ast.Constant()):
                return True
        return isinstance(node, ast.If) and not node.orelse and _only_writes(node.body)

    return any(map(_is_message, statements)) and all(_is_message(one) or notes(one) for one in statements)


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


def _in_if_test(way: Sequence[ast.AST]) -> bool:
    return any(isinstance(one, ast.If) and child is one.test for one, child in pairwise(way))


def _is_counted(way: Sequence[ast.AST]) -> bool:
    """Whether a value is asked for every so many steps: ``step % n``."""
    return any(isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) for node in way)


def _in_loop_test(way: Sequence[ast.AST]) -> bool:
    return any(isinstance(one, ast.While) and child is one.test for one, child in pairwise(way))


def _in_message(way: Sequence[ast.AST]) -> bool:
    """Whether a value is only written, or only decides whether something is."""
    statement = next((node for node in reversed(way) if isinstance(node, ast.stmt)), None)
    if isinstance(statement, ast.If):
        return _only_writes(statement.body) and not statement.orelse
    return statement is not None and _is_message(statement)


def _is_kept(way: Sequence[ast.AST]) -> bool:
    """Whether a value is put into a container, or into an attribute, as it is."""
    for at, node in enumerate(way):
        inner = way[at + 1 :]
        match node:
            case ast.Assign([ast.Attribute() | ast.Subscript()], value) if inner and inner[0] is value:
                return inner[-1] is value
            case ast.Expr(ast.Call(ast.Attribute(attr=name)) as call) if _KEEPS.match(name):
                held = [keyword.value for keyword in call.keywords]
                return (len(inner) == 2 and inner[1] in call.args) or inner[-1] in held
    return False


def _is_listed(way: Sequence[ast.AST]) -> bool:
    """Whether a value is a part of a dict or a list that a statement makes."""
    match way[-2:]:
        case [ast.Dict(), ast.expr()]:
            return isinstance(way[-3], ast.Assign) if len(way) > 2 else False
    return False


def _is_given(way: Sequence[ast.AST]) -> bool:
    """Whether a value is an argument of a call that is a statement of its own, and no operation on a tensor."""
    for at, node in enumerate(way):
        match node:
            case ast.Expr(ast.Call() as call):
                inner = way[at + 1 :]
                return len(inner) == 2 and inner[1] in call.args and not _changes_in_place(node)
    return False


def _picks(way: Sequence[ast.AST]) -> bool:
    """Whether a number is the whole of an index: ``names[i.item()]``."""
    return any(isinstance(parent, ast.Subscript) and child is parent.slice for parent, child in pairwise(way))


def _is_ordered(way: Sequence[ast.AST]) -> bool:
    """Whether Python compares a value with others: in a heap, a search or a sort."""
    return any(
        isinstance(parent, ast.Call) and child is not parent.func and _ORDERS.match(_called(parent))
        for parent, child in pairwise(way)
    )


def _is_reduced(way: Sequence[ast.AST]) -> bool:
    """Whether what is selected is summed up at once: ``x[mask].mean()``, ``torch.sum(x[mask])``."""
    if len(way) < 2:
        return False
    match way[-2]:
        case ast.Attribute(attr=name):
            return _REDUCES.match(name) is not None or name == "shape"
        case ast.Call() as call:
            return way[-1] in call.args and _REDUCES.match(_called(call)) is not None
    return False


def _targets(statement: ast.stmt | None) -> list[str]:
    """The names that an assignment sets."""
    match statement:
        case ast.Assign([ast.Name(name)], _) | ast.AnnAssign(ast.Name(name), _, _):
            return [name]
        case ast.Assign([ast.Tuple(parts)], _):
            return [part.id for part in parts if isinstance(part, ast.Name)]
        case ast.Assign([ast.Attribute() as attribute], _):
            return [ast.unparse(attribute)]
    return []


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
    return _raises(last) and all(isinstance(part, ast.Assign) or _is_message(part) for part in before)


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
    if isinstance(function, ast.Name | ast.Attribute) and isinstance(function.ctx, ast.Load):
        if ast.unparse(function) == name:
            yield way
    for child in ast.iter_child_nodes(function):
        yield from _uses(child, name, way)
