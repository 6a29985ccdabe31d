"""What a function's names mean, where they get values and where they are read: no guess.

Conservative throughout: a name counts as read later if it is read anywhere that cannot be ruled out.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from typing import Literal

from breakscope.source.module import FunctionNode, Module, Scope

_NEW_SCOPE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_FRAME_READERS = {"locals", "eval", "exec", "vars", "globals", "dir"}


def name_parts(node: ast.expr) -> list[str]:
    """``["self", "net", "scale"]`` of ``self.net.scale``; empty for what is no name with attributes."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return [node.id, *reversed(parts)] if isinstance(node, ast.Name) else []


def root_name(node: ast.expr) -> str | None:
    """``x`` of ``x.weights[0].data``: the name that a chain of attributes and items begins with."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def dotted(scope: Scope, node: ast.expr) -> str | None:
    """Full name of something reached from an import: ``torch.nn.functional.relu``; None for all else."""
    parts = name_parts(node)
    root = scope.module.imports.get(parts[0]) if parts else None
    if root is None:
        return None
    name = ".".join([root, *parts[1:]])
    return name.replace("torch.functional.", "torch.") if name.startswith("torch.functional.") else name


def torch_name(module: Module) -> str | None:
    """The name under which a module has ``torch``; None if it does not import it."""
    names = [bound for bound, target in module.imports.items() if target == "torch"]
    return "torch" if "torch" in names else next(iter(names), None)


def builtin(scope: Scope, node: ast.expr) -> str | None:
    """The name of a builtin such as ``float``, unless the module binds that name itself."""
    if not isinstance(node, ast.Name) or node.id in scope.module.bound | scope.module.imported:
        return None
    return node.id if hasattr(builtins, node.id) else None


def own_nodes(function: FunctionNode) -> Iterator[ast.AST]:
    """Nodes of a function's body that run in its own frame, in source order."""
    stack: list[ast.AST] = list(reversed(function.body))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, _NEW_SCOPE):
            stack.extend(reversed(list(ast.iter_child_nodes(node))))


def loads(nodes: Iterable[ast.AST], name: str) -> list[ast.Name]:
    """Every read of a name in some subtrees, nested functions included."""
    return [
        one
        for node in nodes
        for one in ast.walk(node)
        if isinstance(one, ast.Name) and one.id == name and not isinstance(one.ctx, ast.Store)
    ]


def reads_of(scope: Scope, name: str) -> list[ast.Name]:
    """Every read of a name in a function, and in functions inside of it."""
    return loads([scope.function], name)


def reads_outside(scope: Scope, nodes: Iterable[ast.AST], name: str) -> list[ast.Name]:
    """The reads of a name in a function that stand in none of some subtrees."""
    inside = {id(read) for read in loads(nodes, name)}
    return [read for read in reads_of(scope, name) if id(read) not in inside]


def stores(scope: Scope, name: str) -> list[ast.expr]:
    """Every expression that a function gives to a name by a plain assignment."""
    return [
        node.value
        for node in own_nodes(scope.function)
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
    ]


def first_use(block: Iterable[ast.stmt], name: str) -> Literal["read", "given", "other", ""]:
    """What a block does first with a name: read it, give it a value in any case, something else, nothing."""
    otherwise: Literal["other", ""] = ""
    for statement in block:
        if isinstance(statement, ast.If) and not loads([statement.test], name):
            ways = {first_use(statement.body, name), first_use(statement.orelse, name)}
            if "read" in ways:
                return "read"
            if ways == {"given"}:
                return otherwise or "given"
            otherwise = "other" if ways != {""} else otherwise
        elif loads([statement], name):
            return "read"
        elif isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if any(name in stored_in(target) for target in targets):
                return otherwise or "given"
        elif name in names_in([statement]):
            return "read"
    return otherwise


def stored_in(target: ast.expr) -> set[str]:
    """Names that an assignment to a target gives values to."""
    return {
        node.id for node in ast.walk(target) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def names_in(nodes: Iterable[ast.AST]) -> set[str]:
    """Every identifier in some subtrees."""
    return {one.id for node in nodes for one in ast.walk(node) if isinstance(one, ast.Name)}


def parameters(function: FunctionNode) -> tuple[str, ...]:
    """Names of a function's parameters."""
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    rest = [one for one in (arguments.vararg, arguments.kwarg) if one is not None]
    return tuple(one.arg for one in [*plain, *rest])


def defaults(arguments: ast.arguments) -> dict[str, ast.expr]:
    """The defaults of parameters, by name."""
    plain = [*arguments.posonlyargs, *arguments.args]
    behind = plain[len(plain) - len(arguments.defaults) :]
    pairs = [
        *zip(behind, arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    return {argument.arg: default for argument, default in pairs if default is not None}


def new_name(scope: Scope, wish: str) -> str:
    """A name that the module does not use yet."""
    candidates = [wish, *(f"{wish}_{number}" for number in range(1, 1000))]
    return next(name for name in candidates if name not in scope.module.names)


def reads_frame(function: FunctionNode) -> bool:
    """Whether the function can see its local variables by other means than their names."""
    return any(
        (isinstance(node, ast.Name) and node.id in _FRAME_READERS)
        or (isinstance(node, ast.Attribute) and node.attr in ("_getframe", "currentframe"))
        for node in ast.walk(function)
    )


def rebound_elsewhere(function: FunctionNode, name: str) -> bool:
    """Whether a name is declared ``global`` or ``nonlocal``, or a nested function may rebind it."""
    return any(
        isinstance(node, ast.Global | ast.Nonlocal) and name in node.names for node in ast.walk(function)
    )
