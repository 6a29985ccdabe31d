"""Who may catch what a statement raises: a check in the graph raises past every ``except`` there."""

from __future__ import annotations

import ast

from breakscope.fix.rule import Site
from breakscope.source.names import dotted

_Try = ast.Try | ast.TryStar


def caught(site: Site, statement: ast.stmt) -> str | None:
    """What in a module may catch an exception of a statement, or do something because of it; None: nothing.

    Seen are ``try`` and ``with`` around the statement, and ``try`` around a call of its function by name.
    """
    for tried in _around(site, statement):
        return "the exception is caught in the function" if tried.handlers else "a `finally` runs after it"
    node: ast.AST = statement
    while node is not site.function:
        node = site.parents[node]
        if isinstance(node, ast.With):
            for item in node.items:
                made = item.context_expr
                name = dotted(site, made.func if isinstance(made, ast.Call) else made)
                if name is None or not name.startswith("torch."):
                    return f"`with {ast.unparse(made)}` may catch the exception"
    for tried in (one for one in ast.walk(site.tree) if isinstance(one, _Try) and one.handlers):
        for call in (one for part in tried.body for one in ast.walk(part) if isinstance(one, ast.Call)):
            name = getattr(call.func, "attr", getattr(call.func, "id", None))
            if name == site.function.name:
                return f"`{name}` is called where exceptions are caught"
    return None


def catches(site: Site, statement: ast.stmt) -> bool:
    """Whether an ``except`` of the function stands around a statement."""
    return any(tried.handlers for tried in _around(site, statement))


def handles_warnings(site: Site, statement: ast.stmt) -> bool:
    """Whether an ``except`` around a statement takes warnings, which a filter can turn into exceptions."""
    kinds = [handler.type for tried in _around(site, statement) for handler in tried.handlers]
    names = [ast.unparse(kind) if kind is not None else "Exception" for kind in kinds]
    return any("Warning" in name or "Exception" in name for name in names)


def _around(site: Site, statement: ast.AST) -> list[ast.Try | ast.TryStar]:
    """The ``try`` statements that hold a statement in their first part."""
    found: list[ast.Try | ast.TryStar] = []
    node = statement
    while node is not site.function:
        parent = site.parents[node]
        if isinstance(parent, _Try) and node in parent.body:
            found.append(parent)
        node = parent
    return found
