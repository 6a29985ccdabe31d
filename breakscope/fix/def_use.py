"""Where a value is used: as it stands, or through the one name that it is given to."""

from __future__ import annotations

import ast

from breakscope.fix.rule import Site, Unsafe
from breakscope.source.names import reads_of, rebound_elsewhere


def is_only_value(site: Site, name: str) -> bool:
    """Whether a function gives a name one value, and nothing else binds or deletes it."""
    bound = [
        node
        for node in ast.walk(site.function)
        if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)
    ]
    return len(bound) == 1 and not rebound_elsewhere(site.function, name)


def uses(site: Site, node: ast.expr, what: str) -> list[ast.expr]:
    """Every expression that is a value: the node itself, or the reads of the name that it is given to.

    Args:
        what: what the value is called in a reason: "the number".

    Raises:
        Unsafe: it is stored elsewhere, or the name has other values too.
    """
    statement = site.parents[node]
    if not isinstance(statement, ast.Assign) or statement.value is not node:
        return [node]
    target = statement.targets[0]
    if len(statement.targets) != 1 or not isinstance(target, ast.Name):
        raise Unsafe(f"{what} is stored where others may read it")
    if not is_only_value(site, target.id):
        raise Unsafe(f"`{target.id}` is given other values too")
    return list(reads_of(site, target.id))
