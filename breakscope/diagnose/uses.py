"""What becomes of a value: the way from the function to where it stands, read from the outside in."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

_MESSAGE = re.compile(
    r"^p?print$|^(?!.*\.(append|extend|add)$).*(\blog(ger|ging)?\b|warn|\bstd(out|err)\b)|\btqdm\.write$"
    r"|\.(add_scalars?|add_histogram|writerow|set_postfix(_str)?|set_description|log_(dict|metrics?|scalar))$",
    re.IGNORECASE,
)
_KEEPS = re.compile(r"(append|appendleft|extend|insert|add|update|setdefault|put|record|push)$")
_ORDERS = re.compile(r"(heap\w+|bisect\w*|insort\w*|sorted|sort|nlargest|nsmallest)$")
_REDUCES = re.compile(r"(sum|mean|var|std|max|min|amax|amin|prod|any|all|norm|logsumexp|numel|size|len)$")
READS = re.compile(r"\.(item|tolist|numpy)\(|\b(int|float|bool)\(")
# Calls that give as many values as data has.
FINDS = ("unique", "unique_consecutive", "nonzero", "argwhere")
# Calls that need Python numbers.
NUMBERS = re.compile(
    r"(range|zeros|ones|empty|full|rand|randn|arange|linspace|view|reshape|expand|repeat|tile|pad|narrow|split|chunk"
    r"|unflatten|new_(zeros|ones|empty|full)|topk|roll|tril|triu|eye|one_hot|interpolate|unfold)$"
)


def is_message(node: ast.stmt) -> bool:
    """Whether a statement only writes text."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and _MESSAGE.search(ast.unparse(node.value.func)) is not None
    )


def only_writes(statements: Sequence[ast.stmt]) -> bool:
    """Whether statements write text and do nothing else, but note that they did."""

    def notes(node: ast.stmt) -> bool:
        match node:
            case ast.Assign(_, ast.Constant()) | ast.AugAssign(_, _, ast.Constant()):
                return True
        return isinstance(node, ast.If) and not node.orelse and only_writes(node.body)

    return any(map(is_message, statements)) and all(is_message(one) or notes(one) for one in statements)


def in_test(around: Sequence[ast.AST]) -> bool:
    """Whether a value decides a conditional expression."""
    return any(isinstance(one, ast.IfExp) and child is one.test for one, child in pairwise(around))


def in_if_test(way: Sequence[ast.AST]) -> bool:
    """Whether a value decides an ``if``."""
    return any(isinstance(one, ast.If) and child is one.test for one, child in pairwise(way))


def is_counted(way: Sequence[ast.AST]) -> bool:
    """Whether a value is asked for every so many steps: ``step % n``."""
    return any(isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) for node in way)


def in_loop_test(way: Sequence[ast.AST]) -> bool:
    """Whether a value decides how long a ``while`` runs; how many there are of a list is no value."""
    is_counted = any(isinstance(one, ast.Call) and called(one) == "len" for one in way)
    return not is_counted and any(
        isinstance(one, ast.While) and child is one.test for one, child in pairwise(way)
    )


def counts_turns(way: Sequence[ast.AST]) -> bool:
    """Whether a value decides how many turns a ``for`` makes: ``range(int(n))``, ``labels.unique()``."""
    return any(
        isinstance(loop, ast.For)
        and child is loop.iter
        and isinstance(child, ast.Call)
        and called(child) in ("range", *FINDS)
        for loop, child in pairwise(way)
    )


def is_iterated(way: Sequence[ast.AST]) -> bool:
    """Whether a value is what a ``for`` or a comprehension runs over."""
    return any(
        isinstance(loop, ast.For | ast.comprehension) and child is loop.iter and child is way[-1]
        for loop, child in pairwise(way)
    )


def in_message(way: Sequence[ast.AST]) -> bool:
    """Whether a value is only written, or only decides whether something is."""
    statement = next((node for node in reversed(way) if isinstance(node, ast.stmt)), None)
    if isinstance(statement, ast.If):
        return only_writes(statement.body) and not statement.orelse
    return statement is not None and is_message(statement)


def is_kept(way: Sequence[ast.AST]) -> bool:
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


def is_asked_later(way: Sequence[ast.AST]) -> bool:
    """Whether a test asks for the attribute that a value is put into: ``self.x = …; if self.x > 9:``."""
    function = next((node for node in reversed(way) if isinstance(node, ast.FunctionDef)), None)
    for node in way:
        match node:
            case ast.Assign([ast.Attribute() as target]) if function is not None:
                kept = ast.unparse(target)
                tests = [
                    one.test for one in ast.walk(function) if isinstance(one, ast.If | ast.IfExp | ast.While)
                ]
                return any(ast.unparse(part) == kept for test in tests for part in ast.walk(test))
    return False


def is_listed(way: Sequence[ast.AST]) -> bool:
    """Whether a value is a part of a dict or a list that a statement makes."""
    match way[-2:]:
        case [ast.Dict(), ast.expr()]:
            return isinstance(way[-3], ast.Assign) if len(way) > 2 else False
    return False


def is_returned(way: Sequence[ast.AST]) -> bool:
    """Whether a value is what a function returns, or a part of the tuple, list or dict that it returns."""
    match [node for node in way if not isinstance(node, ast.Tuple | ast.List | ast.Dict)][-2:]:
        case [ast.Return(), ast.expr()]:
            return True
    return False


def is_given(way: Sequence[ast.AST]) -> bool:
    """Whether a value is an argument of a statement that is a call, and no operation on a tensor."""
    for at, node in enumerate(way):
        match node:
            case ast.Expr(ast.Call() as call):
                inner = way[at + 1 :]
                return len(inner) == 2 and inner[1] in call.args and not changes_in_place(node)
    return False


def picks(way: Sequence[ast.AST]) -> bool:
    """Whether a number is the whole of an index: ``names[i.item()]``."""
    return any(isinstance(parent, ast.Subscript) and child is parent.slice for parent, child in pairwise(way))


def is_index(way: Sequence[ast.AST]) -> bool:
    """Whether a name, or an item of it, is an index: ``x[chosen]``, ``x[:, chosen]``, ``x[chosen[-1]]``."""
    match way[-3:]:
        case [ast.Subscript() as item, ast.Subscript() as chosen, _] if chosen is item.slice:
            return True
        case [ast.Subscript() as item, ast.Tuple() as several, _]:
            return several is item.slice
        case [_, ast.Subscript() as item, name]:
            return name is item.slice
    return False


def is_ordered(way: Sequence[ast.AST]) -> bool:
    """Whether Python compares a value with others: in a heap, a search or a sort."""
    return any(
        isinstance(parent, ast.Call) and child is not parent.func and _ORDERS.match(called(parent))
        for parent, child in pairwise(way)
    )


def is_bounded(way: Sequence[ast.AST]) -> bool:
    """Whether Python's ``min`` or ``max`` compares a value with a number: ``min(0.01, 1 / v.item())``."""
    return any(
        isinstance(parent, ast.Call)
        and isinstance(parent.func, ast.Name)
        and parent.func.id in ("min", "max")
        and child in parent.args
        and len(parent.args) > 1
        and any(isinstance(one, ast.Constant) for one in parent.args)
        for parent, child in pairwise(way)
    )


def is_reduced(way: Sequence[ast.AST]) -> bool:
    """Whether what is selected is summed up at once: ``x[mask].mean()``, ``torch.sum(x[mask])``."""
    while len(way) > 1 and isinstance(way[-2], ast.BinOp):
        way = way[:-1]  # the mean of a quotient is reduced as the mean of one
    if len(way) < 2:
        return False
    match way[-2]:
        case ast.Attribute(attr=name):
            return _REDUCES.match(name) is not None or name == "shape"
        case ast.Call() as call:
            return way[-1] in call.args and _REDUCES.match(called(call)) is not None
    return False


def targets(statement: ast.stmt | None) -> list[str]:
    """The names that an assignment sets."""
    match statement:
        case ast.Assign([ast.Name(name)], _) | ast.AnnAssign(ast.Name(name), _, _):
            return [name]
        case ast.Assign([ast.Tuple(parts)], _):
            return [part.id for part in parts if isinstance(part, ast.Name)]
        case ast.Assign([ast.Attribute() as attribute], _):
            return [ast.unparse(attribute)]
    return []


def assigned(statement: ast.stmt | None) -> str | None:
    """The one name that an assignment sets."""
    match statement:
        case ast.Assign([ast.Name(name)], _) | ast.AnnAssign(ast.Name(name), _, _):
            return name
    return None


def needs_number(way: Sequence[ast.AST]) -> bool:
    """Whether the innermost node of a way from the outside is a size, a bound or an index."""
    for parent, child in pairwise(way):
        if isinstance(parent, ast.Slice):
            return True
        if isinstance(parent, ast.Call) and child is not parent.func and NUMBERS.match(called(parent)):
            return True
    return False


def called(call: ast.Call) -> str:
    """The last part of what a call calls: ``append`` of ``self.seen.append(x)``."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def uses(function: ast.AST, name: str, way: tuple[ast.AST, ...] = ()) -> Iterator[tuple[ast.AST, ...]]:
    """The ways from a function to where it reads a name."""
    way = (*way, function)
    is_read = isinstance(function, ast.Name | ast.Attribute) and isinstance(function.ctx, ast.Load)
    if is_read and ast.unparse(function) == name:
        yield way
    for child in ast.iter_child_nodes(function):
        yield from uses(child, name, way)


def changes_in_place(statement: ast.stmt) -> bool:
    """Whether it calls a method such as ``copy_`` for what that does."""
    return any(
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Attribute)
        and re.fullmatch(r"[a-z]\w*[a-z]_", node.value.func.attr)
        for node in ast.walk(statement)
    )
