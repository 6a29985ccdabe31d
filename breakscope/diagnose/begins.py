"""Where a value comes from: of arguments alone, which the caller has as well, or of Python's own numbers."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Sequence

from breakscope.diagnose import loops, uses
from breakscope.diagnose.becomes import is_tensor
from breakscope.source.names import root_name

_OF_PYTHON = (
    "int",
    "float",
    "bool",
    "len",
    "list",
    "tuple",
    "enumerate",
    "zip",
    "sorted",
    "max",
    "min",
    "sum",
    "range",
)
# What is made of its parts and of nothing else.
_MADE_OF_PARTS = (
    *(ast.Attribute, ast.Subscript, ast.Slice, ast.Compare, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.List),
    *(ast.ListComp, ast.SetComp, ast.comprehension, ast.BoolOp),
)
_SIGNS = (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)
_LIBRARIES = ("torch", "np", "numpy", "F")  # their functions compute with what they are given
# What gives other numbers where the caller computes it once more.
DRAWS = re.compile(
    r"(rand\w*|normal\w*|multinomial|bernoulli|r?sample|dropout\d?d?|shuffle|choices?|uniform\w*)$"
)
_MOST = 6  # operations: a caller that computes more than these a second time had better read the result
_MAKES = re.compile(r"(as_tensor|tensor|(Int|Long|Float)Tensor)$")
_Way = Sequence[ast.AST]


def arguments(around: _Way, callers: Sequence[_Way] = ()) -> tuple[str, ...]:
    """The arguments of the compiled function of which alone the innermost expression is made; else empty.

    Args:
        around: the nodes around the expression, outermost first.
        callers: the same of the calls in compiled code that lead there, the nearest first.
    """
    asked: set[str] = set()
    made_of = _made_of(around[-1], around, asked) if around and not _is_returned(around) else None
    if sum(":" in one for one in asked) > _MOST:
        return ()
    if not made_of or not callers:
        return tuple(sorted(made_of or ()))
    given = [handed(name, around, callers[0]) for name in sorted(made_of)]
    led = [arguments((*callers[0], one), callers[1:]) if one is not None else () for one in given]
    return tuple(dict.fromkeys(name for names in led for name in names)) if all(led) else ()


def read_in(loop: ast.For | ast.While, around: _Way) -> tuple[str, ...]:
    """The arguments of which alone a loop is made, with all that it reads; empty where it reads more."""
    bound = {
        node.id for node in ast.walk(loop) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    names = [node for node in ast.walk(loop) if isinstance(node, ast.Name) and node.id not in bound]
    names = [node for node in names if node.id not in dir(builtins)]
    before = [_values(name, function) or [] for name in bound if (function := uses.function(around))]
    inside = {id(node) for node in ast.walk(loop)}
    first = [
        value
        for values in before
        for value in values
        if id(value) not in inside and value.lineno <= loop.lineno
    ]
    return tuple(sorted(_joined([*names, *first], around, set()) or ()))


def holds_more(message: str, name: str, around: _Way) -> bool:
    """Whether a message holds more than one name's value and what is made of arguments alone.

    Args:
        message: its call, as source; empty where the innermost statement is it.
    """
    call = ast.parse(message, mode="eval").body if message else getattr(uses.statement(around), "value", None)
    if not isinstance(call, ast.Call):
        return True
    told = [node for part in (*call.args, *call.keywords) for node in ast.walk(part)]
    others = [node for node in told if isinstance(node, ast.Name) and node.id != name]
    if any(_is_returned((*around, one)) for one in others):
        return True
    return _joined([one for one in others if one.id not in dir(builtins)], around, set()) is None


def number(around: _Way, callers: Sequence[_Way] = ()) -> tuple[str, int, str] | None:
    """The Python numbers that the innermost expression reads back out of a tensor, and what made it.

    That is a line, and the name of its file where it is a caller's in another one.

    ``half = torch.IntTensor([n])[0]``, then ``x[:, : int(half)]``: what is read is ``n``.

    Args:
        around, callers: as of :func:`arguments`.
    """
    match around[-1] if around else None:
        case ast.Call(ast.Name("int" | "float" | "bool"), [read]) | ast.Call(
            ast.Attribute(read, "item" | "tolist"), []
        ):
            reads = [read]
        case ast.Subscript(slice=chosen) | (ast.Slice() as chosen):
            reads = _bounds(chosen)
        case ast.Call(args=args):
            reads = _run_over(args, around)
        case _:
            return None
    found = next(filter(None, (_numbers(read, around, callers, set()) for read in reads)), None)
    if found is None:
        return None
    trees = (way[0] for way in (around, *callers))
    tree = next((tree for tree in trees if any(node is found[0] for node in ast.walk(tree))), around[0])
    file = "" if tree is around[0] else getattr(tree, "file", "")
    return ", ".join(map(ast.unparse, found)), found[0].lineno, file


def _run_over(args: Sequence[ast.expr], around: _Way) -> list[ast.expr]:
    """The tensors of whose rows a call is given numbers: ``shapes`` of ``for h, w in shapes``."""
    reads = [loop.iter for one in args if isinstance(one, ast.ListComp) for loop in one.generators]
    names = {name for one in args for name in loops.names(one)}
    for loop in around:
        if isinstance(loop, ast.For) and not names.isdisjoint(loops.names(loop.target)):
            reads += loop.iter.args if isinstance(loop.iter, ast.Call) else [loop.iter]
    return [one for one in reads if isinstance(one, ast.Name)]


def _is_list_of(name: str, way: _Way) -> bool:
    """Whether a function fills a list, and with nothing that is a tensor: ``shapes.append((h, w))``."""
    function = uses.function(way)
    items = [
        node.args[0]
        for node in (ast.walk(function) if function is not None else ())
        if isinstance(node, ast.Call) and node.args and ast.unparse(node.func) == f"{name}.append"
    ]
    parts = [part for item in items for part in (item.elts if isinstance(item, ast.Tuple) else [item])]
    return bool(parts) and not any(is_tensor(part, way) for part in parts)


def _bounds(chosen: ast.expr) -> list[ast.expr]:
    """Where the slices of an index begin and end, by name."""
    slices = uses.index_parts(chosen)
    ends = [(one.lower, one.upper) for one in slices if isinstance(one, ast.Slice)]
    return [end for pair in ends for end in pair if isinstance(end, ast.Name | ast.Subscript)]


def _numbers(
    node: ast.expr | None, way: _Way, callers: Sequence[_Way], asked: set[str]
) -> list[ast.expr] | None:
    """The numbers that a tensor is made of, followed through names to the one place that makes it.

    Args:
        asked: names of the function that were asked already: ``n = n[0]`` leads nowhere else.
    """
    match node:
        case ast.Call(func, [ast.List(made) | ast.Tuple(made)]) if _MAKES.search(ast.unparse(func)):
            # Of a bare argument nobody can tell here; what is said of it says so.
            tensors = any(is_tensor(one, way) for one in made if not isinstance(one, ast.Name))
            return None if tensors else made
        case ast.Call(func, [ast.Name(of_list) as whole, *_]) if _MAKES.search(ast.unparse(func)):
            return [whole] if _is_list_of(of_list, way) else None
        case ast.Subscript(of, ast.Constant(int(at))):
            found = _numbers(of, way, callers, asked) or []
            return [found[at]] if -len(found) <= at < len(found) else None
        case ast.Name(name) if name not in asked and (function := uses.function(way)) is not None:
            asked.add(name)
            values = _values(name, function)
            # A list that gets its tensor's name: ``shapes = torch.as_tensor(shapes)``.
            values = [one for one in values or () if not isinstance(one, ast.List)] or values
            if values:
                return _numbers(values[0], way, callers, asked) if len(values) == 1 else None
            held = handed(name, way, callers[0]) if values is not None and callers else None
            return _numbers(held, callers[0], callers[1:], set()) if held is not None else None
    return None


def _is_returned(around: _Way) -> bool:
    """Whether it is read of what the function computes and returns: then its caller has that anyway."""
    function = uses.function(around)
    if function is None:
        return False
    parameters = {arg.arg for arg in (*function.args.args, *function.args.kwonlyargs)}
    returned = {
        name.id
        for node in ast.walk(function)
        if isinstance(node, ast.Return) and node.value is not None
        for name in (node.value.elts if isinstance(node.value, ast.Tuple) else [node.value])
        if isinstance(name, ast.Name)
    }
    read = {node.id for node in ast.walk(around[-1]) if isinstance(node, ast.Name)}
    return bool(read & returned - parameters)


def _made_of(node: ast.AST | None, way: _Way, asked: set[str]) -> set[str] | None:
    """The arguments that an expression is made of; None where anything but their methods takes part.

    Args:
        asked: the names and, by their places, the operations that it led to; others are added.
    """
    if isinstance(node, ast.Call | ast.BinOp):
        asked.add(f"{node.lineno}:{node.col_offset}:{node.end_col_offset}")
    match node:
        case ast.Call() if DRAWS.match(uses.called(node)):
            return None
        case ast.Constant() | None:
            return set()
        case ast.Name(name):
            return _of_name(name, way, asked)
        case ast.Call(ast.Name(name)) if name not in _OF_PYTHON:
            return None
        case ast.Call(func, args):
            given = [*args, *(one.value for one in node.keywords)]
            return _joined([*given, *([func] if isinstance(func, ast.Attribute) else [])], way, asked)
        case _ if isinstance(node, _MADE_OF_PARTS):
            parts = [part for part in ast.iter_child_nodes(node) if not isinstance(part, _SIGNS)]
            return _joined(parts, way, asked)
    return None


def _joined(nodes: Sequence[ast.AST | None], way: _Way, asked: set[str]) -> set[str] | None:
    found = [_made_of(node, way, asked) for node in nodes]
    return None if None in found else {name for one in found if one is not None for name in one}


def _of_name(name: str, way: _Way, asked: set[str]) -> set[str] | None:
    function = uses.function(way)
    if function is None or name in asked:
        return set() if name in asked else None
    asked.add(name)
    values = _values(name, function)
    if values is None:
        return None
    values = [value for value in values if _may_be_before(value, way)]
    parameters = [arg.arg for arg in (*function.args.args, *function.args.kwonlyargs)]
    if values:
        made_of = None if _is_changed(name, function, way) else _joined(values, way, asked)
        own = {name} & set(parameters) - {"self", "cls"}  # cost = cost.clone() has the argument in it
        return None if made_of is None else made_of | own
    if name in parameters:
        return {name} if name not in ("self", "cls") and not _is_changed(name, function, way) else None
    return set() if name in _LIBRARIES or _is_constant(name, way[0]) else None


def _is_changed(name: str, function: ast.FunctionDef, way: _Way) -> bool:
    """Whether a function sets something in what a name holds, before a place."""
    line = getattr(way[-1], "lineno", 0)
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=targets):
                pass
            case ast.AugAssign(target=target):
                targets = [target]
            case ast.Expr(ast.Call(ast.Attribute() as method)):  # which may set what it likes
                targets = [method]
            case _:
                continue
        if node.lineno < line and any(
            isinstance(one, ast.Attribute | ast.Subscript) and root_name(one) == name for one in targets
        ):
            return True
    return False


def _is_constant(name: str, module: ast.AST) -> bool:
    """Whether a module gives a name its value, once and for all: ``SHIFT, REDUCE = 0, 1``."""
    return isinstance(module, ast.Module) and any(name in uses.targets(one) for one in module.body)


def _values(name: str, function: ast.FunctionDef) -> list[ast.expr] | None:
    """What a name is given in its function; None where it is changed in another way."""
    values: list[ast.expr] = []
    for node in ast.walk(function):
        match node:
            case ast.AugAssign(target=ast.Name(changed)) if changed == name:
                return None
            case ast.Assign() | ast.AnnAssign():
                values += filter(None, [uses.given(node, name)])
            case ast.For(target=target, iter=given) | ast.comprehension(target=target, iter=given):
                values += [given] * (name in loops.names(target))
            case ast.NamedExpr(target=ast.Name(named)) if named == name:
                values.append(node.value)
    return values


def _may_be_before(value: ast.expr, way: _Way) -> bool:
    """Whether something stands before a place in its function, or in a loop around it."""
    line = getattr(way[-1], "lineno", 0)
    loops = [node for node in way if isinstance(node, ast.For | ast.While)]
    return value.lineno <= line or any(node is value for loop in loops for node in ast.walk(loop))


def handed(name: str, around: _Way, caller: _Way) -> ast.expr | None:
    """What a call gives for a parameter of the function around a place."""
    function = uses.function(around)
    call = caller[-1] if caller else None
    if function is None or not isinstance(call, ast.Call):
        return None
    names = [arg.arg for arg in function.args.args if arg.arg not in ("self", "cls")]
    by_name = {one.arg: one.value for one in call.keywords}
    by_place = dict(zip(names, call.args, strict=False))
    return by_name.get(name) or by_place.get(name)
