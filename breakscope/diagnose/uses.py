"""What becomes of a value: the way from the function to where it stands, read from the outside in."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

_MESSAGE = re.compile(
    r"^p?print$|^(?!.*\.(append|extend|add)$).*(\blog(ger|ging)?\b|warn|\bstd(out|err)\b)|\btqdm\.write$"
    r"|\.(add_scalars?|add_histogram|writerow|set_postfix(_str)?|set_description|log_(dict|metrics?|scalar))$",
    re.IGNORECASE,
)
KEEPS = re.compile(r"(append|appendleft|extend|insert|add|update|setdefault|put|record|push)$")
ORDERS = re.compile(r"(heap\w+|bisect\w*|insort\w*|sorted|sort|nlargest|nsmallest)$")
REDUCES = re.compile(
    r"(sum|mean|var|std|max|min|amax|amin|prod|any|all|norm|logsumexp|numel|size|len|(nan)?(median|quantile)|cov)$"
)
READS = re.compile(r"\.(item|tolist|numpy)\(|(?<!\.)\b(int|float|bool)\(")
RANDOM = re.compile(r"\b(?:np|numpy)\.random\b|(?<![\w.])random\.\w+\(")  # not torch.random
# Calls that give as many values as data has.
FINDS = ("unique", "unique_consecutive", "nonzero", "argwhere")
# Calls that need Python numbers.
NUMBERS = re.compile(
    r"(range|zeros|ones|empty|full|rand|randn|randint|randperm|arange|linspace|view|reshape|expand|repeat|tile|pad|narrow|(tensor_)?split|split_with_sizes|chunk"
    r"|unflatten|new_(zeros|ones|empty|full)|topk|roll|(tril|triu)(_indices)?|eye|one_hot|interpolate|unfold)$"
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


def statement(way: Sequence[ast.AST]) -> ast.stmt | None:
    """The innermost statement of a way from the outside."""
    return next((node for node in reversed(way) if isinstance(node, ast.stmt)), None)


def function(way: Sequence[ast.AST]) -> ast.FunctionDef | None:
    """The innermost function of a way from the outside."""
    return next((node for node in reversed(way) if isinstance(node, ast.FunctionDef)), None)


def is_none(node: ast.AST | None) -> bool:
    """Whether it is the constant None."""
    return isinstance(node, ast.Constant) and node.value is None


def optional(function: ast.FunctionDef) -> set[str]:
    """The arguments that are None where they are not given."""
    given = function.args
    return {
        argument.arg
        for arguments, defaults in (
            ([*given.posonlyargs, *given.args][::-1], given.defaults[::-1]),
            (given.kwonlyargs, given.kw_defaults),
        )
        for argument, default in zip(arguments, defaults, strict=False)
        if is_none(default)
    }


def parameters(function: ast.FunctionDef) -> set[str]:
    """The names of a function's arguments, ``*args`` and ``**kwargs`` among them."""
    own = function.args
    plain = [*own.posonlyargs, *own.args, *own.kwonlyargs]
    return {arg.arg for arg in (*plain, own.vararg, own.kwarg) if arg is not None}


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


def given(statement: ast.Assign | ast.AnnAssign, name: str) -> ast.expr | None:
    """What an assignment gives to a name: of ``a, b = x, y`` the part that is its own."""
    match statement:
        case ast.Assign([ast.Tuple(names)], ast.Tuple(parts)) if len(names) == len(parts):
            same = (part for target, part in zip(names, parts, strict=True) if ast.unparse(target) == name)
            return next(same, None)
    return statement.value if name in targets(statement) else None


def assigned(statement: ast.stmt | None) -> str | None:
    """The one name that an assignment sets."""
    match statement:
        case ast.Assign([ast.Name(name)], _) | ast.AnnAssign(ast.Name(name), _, _):
            return name
    return None


def called(call: ast.Call) -> str:
    """The last part of what a call calls: ``append`` of ``self.seen.append(x)``."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def index_parts(chosen: ast.expr) -> list[ast.expr]:
    """What an index has for each dimension that it names."""
    return chosen.elts if isinstance(chosen, ast.Tuple) else [chosen]


def is_by_dimension(call: ast.AST) -> bool:
    """Whether it gives the positions of a mask as a tuple, one tensor for each dimension."""
    return isinstance(call, ast.Call) and (
        called(call) == "where" or any(one.arg == "as_tuple" for one in call.keywords)
    )


def uses(function: ast.AST, name: str, way: tuple[ast.AST, ...] = ()) -> Iterator[tuple[ast.AST, ...]]:
    """The ways from a function to where it reads a name."""
    way = (*way, function)
    kinds = (ast.Name, ast.Attribute, *([ast.Subscript] if name.endswith("]") else []))
    is_read = isinstance(function, kinds) and isinstance(function.ctx, ast.Load)  # type: ignore[attr-defined]
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
