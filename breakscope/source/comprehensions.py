"""A comprehension as a loop: when both do the same, and what the loop is.

The language defines a comprehension as nested loops in a scope of its own. What differs is that the loop's
names and the half filled value are the function's, and that there is no frame, which a comprehension does not
have either from Python 3.12 on (PEP 709). Where nobody sees those, both forms do the same in the same order.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Iterator, Mapping

from breakscope.source.module import FunctionNode
from breakscope.source.names import parameters, reads_frame, rebound_elsewhere, root_name

Comprehension = ast.ListComp | ast.SetComp | ast.DictComp
_OWN_SCOPE = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
# What keeps names for later; what goes on after an exception.
_KEPT = (ast.Lambda, ast.GeneratorExp, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_CATCHING = (ast.Try, ast.TryStar, ast.With, ast.AsyncWith)

Parents = Mapping[ast.AST, ast.AST]


def filled_name(statement: ast.stmt, node: Comprehension) -> str:
    """``found`` of ``found = [... for ...]``; empty for another statement."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is node:
            return name
    return ""


def called_before(node: Comprehension, statement: ast.stmt, parents: Parents) -> list[str] | None:
    """The names that a statement reads before a comprehension in it, which is the first to be evaluated.

    They are the roots of what it calls: ``torch`` of ``return torch.cat([... for ...])``. None: it is not the
    first, or not certainly.
    """
    roots: list[str] = []
    below: ast.AST = node
    while (above := parents[below]) is not statement:
        match above:
            case ast.Call(func=function, args=[first, *_]) if first is below:
                root = root_name(function)
                if root is None or any(isinstance(one, ast.Subscript) for one in ast.walk(function)):
                    return None
                roots.append(root)
            case ast.Call(func=first) | ast.Attribute(value=first) | ast.BinOp(left=first):
                if first is not below:
                    return None
            case _:
                return None
        below = above
    match statement:
        case ast.Return() | ast.Expr() | ast.Assign(targets=[ast.Name()]):
            return roots
    return None


def to_rename(function: FunctionNode, node: Comprehension, parents: Parents) -> list[str]:
    """The names of a comprehension that the function uses for something else, in their order."""
    targets = [one for generator in node.generators for one in ast.walk(generator.target)]
    used = _used_elsewhere(function, parents)
    return list(dict.fromkeys(one.id for one in targets if isinstance(one, ast.Name) and one.id in used))


def _cannot_rename(node: Comprehension, names: Collection[str]) -> bool:
    """Whether a name of a comprehension means something else in a part of it, or stands in a text."""
    inner = [one for one in ast.walk(node) if one is not node]
    outside = ast.walk(node.generators[0].iter)
    return (
        any(isinstance(one, ast.Name) and one.id in names for one in outside)
        or any(isinstance(one, ast.arg) and one.arg in names for one in inner)
        or any(isinstance(one, ast.JoinedStr) and _reads(one, names) for one in inner)
        or any(isinstance(one, _OWN_SCOPE) and not _bound_by(one).isdisjoint(names) for one in inner)
    )


def why_no_loop(
    function: FunctionNode,
    statement: ast.stmt,
    node: Comprehension,
    name: str,
    parents: Parents,
    renamed: Collection[str] = (),
) -> str:
    """Why a comprehension must stay one, as a sentence; empty if it need not.

    Args:
        function: the innermost one around the statement that holds it. parents: of its nodes.
        name: the local name that the loop fills. renamed: names of the comprehension that get new ones.
    """
    if rebound_elsewhere(function, name):
        return "its value is not given to one local name"
    if reads_frame(function):
        return "the function looks at its own local variables"
    if any(isinstance(above, _CATCHING) for above in _above(statement, function, parents)):
        return "behind the `try` or `with` around it a half filled value could be seen"
    if any(one.is_async for one in node.generators):
        return "it is asynchronous"
    made = _bound_by(node)
    if any(isinstance(one, _KEPT) and _reads(one, made) for one in ast.walk(node)):
        return f"a lambda or generator in it keeps `{min(made)}`"
    other = (made & _used_elsewhere(function, parents)) - {*renamed}
    other |= {*renamed} if _cannot_rename(node, renamed) else set()
    if other:
        return f"the function uses `{min(other)}` for something else as well"
    inner = [one for one in ast.walk(function) if isinstance(one, _KEPT) and one is not function]
    if any(_reads(one, {name}) for one in (node, *inner)):
        return f"it could see `{name}` while that is filled"
    return ""


def loop_of(node: Comprehension, name: str, renamed: Mapping[str, str]) -> list[ast.stmt]:
    """The assignment of an empty value, and the loop that fills it.

    Args:
        renamed: new names of its loops, by the old ones.
    """
    node = copy.deepcopy(node)
    for one in ast.walk(node):
        if isinstance(one, ast.Name):
            one.id = renamed.get(one.id, one.id)
    method, element = filling(node)
    call = ast.Call(ast.Attribute(ast.Name(name, ast.Load()), method, ast.Load()), [element], [])
    body: ast.stmt = ast.Expr(call)
    for generator in reversed(node.generators):
        for test in reversed(generator.ifs):
            body = ast.If(test, [body], [])
        body = ast.For(generator.target, generator.iter, [body], [])
    return [ast.Assign([ast.Name(name, ast.Store())], ast.parse(empty(node), mode="eval").body), body]


def empty(node: Comprehension) -> str:
    """The value before the first turn."""
    return {ast.DictComp: "{}", ast.ListComp: "[]", ast.SetComp: "set()"}[type(node)]


def filling(node: Comprehension) -> tuple[str, ast.expr]:
    """The method that puts an element in, and its argument.

    A dict's is ``update``: of ``found[key] = value`` the value would be evaluated before the key.
    """
    if isinstance(node, ast.DictComp):
        return "update", ast.Dict([node.key], [node.value])
    return "append" if isinstance(node, ast.ListComp) else "add", node.elt


def _above(node: ast.AST, function: FunctionNode, parents: Parents) -> Iterator[ast.AST]:
    while node is not function:
        node = parents[node]
        yield node


def _bound_by(node: Comprehension | ast.GeneratorExp) -> set[str]:
    """The names that a comprehension's loops give a value to."""
    targets = [one for generator in node.generators for one in ast.walk(generator.target)]
    return {one.id for one in targets if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}


def _used_elsewhere(function: FunctionNode, parents: Parents) -> set[str]:
    """The names of a function but for those that its comprehensions have for themselves."""
    used = {*parameters(function)}
    for node in ast.walk(function):
        if isinstance(node, ast.Name):
            used |= set() if _bound_inside(node, function, parents) else {node.id}
        elif isinstance(node, ast.Global | ast.Nonlocal):
            used |= {*node.names}
        else:  # an import, `except ... as name`, a pattern of `match`, a function
            found = (getattr(node, field, None) for field in ("name", "asname", "rest"))
            used |= {one for one in found if isinstance(one, str)}
    return used


def _bound_inside(name: ast.Name, function: FunctionNode, parents: Parents) -> bool:
    """Whether a name is one of a comprehension around it, and not the function's."""
    below: ast.AST = name
    inside = [*_above(name, function, parents)]
    for number, above in enumerate(inside):
        if isinstance(above, _OWN_SCOPE) and name.id in _bound_by(above):
            first = above.generators[0]
            # What the first loop goes over is evaluated outside.
            return not (below is first and first.iter in (name, *inside[:number]))
        below = above
    return False


def _reads(node: ast.AST, names: Collection[str]) -> bool:
    return any(isinstance(one, ast.Name) and one.id in names for one in ast.walk(node))
