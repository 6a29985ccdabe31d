"""What a function's names mean and where they are used: plain facts from the source, no guess.

Conservative throughout: a name counts as read later if it is read anywhere that cannot be ruled out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from breakscope.fix.rule import FunctionNode, Site

_NEW_SCOPE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_FRAME_READERS = {"locals", "eval", "exec", "vars", "globals", "dir"}


def imports(site: Site) -> dict[str, str]:
    """Imported names that are not bound to anything else: ``F`` -> ``torch.nn.functional``."""
    found: dict[str, str] = {}
    clashing: set[str] = set()
    for node in ast.walk(site.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.asname or alias.name.partition(".")[0]
                target = alias.name if alias.asname else bound
                if found.setdefault(bound, target) != target:
                    clashing.add(bound)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                bound, target = alias.asname or alias.name, f"{node.module}.{alias.name}"
                if found.setdefault(bound, target) != target:
                    clashing.add(bound)
        elif isinstance(node, ast.ImportFrom):
            clashing.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            clashing.add(node.id)
        elif isinstance(node, ast.arg):
            clashing.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            clashing.add(node.name)
    return {bound: target for bound, target in found.items() if bound not in clashing}


def dotted(site: Site, node: ast.expr) -> str | None:
    """Full name of something reached from an import: ``torch.nn.functional.relu``; None for all else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    root = imports(site).get(node.id)
    if root is None:
        return None
    name = ".".join([root, *reversed(parts)])
    return name.replace("torch.functional.", "torch.") if name.startswith("torch.functional.") else name


def torch_name(site: Site) -> str | None:
    """The name under which the module has ``torch``; None if it does not import it."""
    names = [bound for bound, target in imports(site).items() if target == "torch"]
    return "torch" if "torch" in names else next(iter(names), None)


def builtin(site: Site, node: ast.expr) -> str | None:
    """The name of a builtin such as ``float``, unless the module binds that name itself."""
    if not isinstance(node, ast.Name):
        return None
    for other in ast.walk(site.tree):
        if isinstance(other, ast.Name) and other.id == node.id and not isinstance(other.ctx, ast.Load):
            return None
        if isinstance(other, ast.arg) and other.arg == node.id:
            return None
        if isinstance(other, ast.FunctionDef | ast.ClassDef) and other.name == node.id:
            return None
        if isinstance(other, ast.alias) and (other.asname or other.name) == node.id:
            return None
    import builtins

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


def names_in(nodes: Iterable[ast.AST]) -> set[str]:
    """Every identifier in some subtrees."""
    return {one.id for node in nodes for one in ast.walk(node) if isinstance(one, ast.Name)}


def parameters(function: FunctionNode) -> tuple[str, ...]:
    """Names of a function's parameters."""
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    rest = [one for one in (arguments.vararg, arguments.kwarg) if one is not None]
    return tuple(one.arg for one in [*plain, *rest])


def new_name(site: Site, *wishes: str) -> str:
    """A name that the module does not use yet."""
    used = names_in([site.tree]) | {one.arg for one in ast.walk(site.tree) if isinstance(one, ast.arg)}
    used |= {one.name for one in ast.walk(site.tree) if isinstance(one, _NEW_SCOPE[:3])}
    candidates = [*wishes, *(f"{wish}_{number}" for number in range(1, 1000) for wish in wishes)]
    return next(name for name in candidates if name not in used)


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


def block_of(site: Site, statement: ast.stmt) -> tuple[list[ast.stmt], int]:
    """The list of statements that holds a statement, and its index there."""
    parent = site.parents[statement]
    for field in ("body", "orelse", "finalbody", "handlers"):
        block = getattr(parent, field, None)
        if isinstance(block, list) and any(one is statement for one in block):
            return block, next(index for index, one in enumerate(block) if one is statement)
    raise LookupError(statement)


def enclosing_statement(site: Site, node: ast.AST) -> ast.stmt:
    """The statement that a node belongs to (itself, if it is one)."""
    while not isinstance(node, ast.stmt):
        node = site.parents[node]
    return node


def bound_before(site: Site, statement: ast.stmt, name: str) -> bool:
    """Whether a name certainly has a value when a statement begins."""
    if name in parameters(site.function):
        return not _deleted(site.function, name)
    current: ast.AST = statement
    while current is not site.function:
        if isinstance(current, ast.stmt):
            block, index = block_of(site, current)
            if any(_certainly_binds(one, name) for one in block[:index]):
                return not _deleted(site.function, name)
        parent = site.parents[current]
        if isinstance(parent, ast.For) and current in parent.body and name in names_in([parent.target]):
            return not _deleted(site.function, name)
        current = parent
    return False


def _certainly_binds(statement: ast.stmt, name: str) -> bool:
    if isinstance(statement, ast.Assign):
        return any(name in _stored(target) for target in statement.targets)
    if isinstance(statement, ast.AugAssign | ast.AnnAssign):
        has_value = statement.value is not None
        return has_value and isinstance(statement.target, ast.Name) and statement.target.id == name
    if isinstance(statement, ast.If):
        return any(_certainly_binds(one, name) for one in statement.body) and any(
            _certainly_binds(one, name) for one in statement.orelse
        )
    if isinstance(statement, ast.With):
        return any(_certainly_binds(one, name) for one in statement.body)
    return False


def _stored(target: ast.expr) -> set[str]:
    return {
        node.id for node in ast.walk(target) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _deleted(function: FunctionNode, name: str) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Del)
        for node in ast.walk(function)
    )
