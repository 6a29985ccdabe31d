"""Who could change a tensor between the compiled call and the place that reads it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from breakscope.fix.alias import gives_own, unshared, written_by
from breakscope.fix.hoist.chain import Step
from breakscope.fix.rule import Site, Unsafe
from breakscope.source.dominance import enclosing_statement
from breakscope.source.names import builtin, dotted, names_in, own_nodes, root_name
from breakscope.source.syntax import shown
from breakscope.source.torch_facts import OPS


def refuse_writes(step: Step, followed: Collection[str]) -> None:
    """Refuse a function that writes into what is read, or into what may share memory with it.

    Args:
        followed: the names by which the read value was followed through the function.

    Raises:
        Unsafe: with the name that is written.
    """
    site = step.site
    held = _holding(site, followed)
    for node in ast.walk(site.function):
        if (kept := _kept_in(site, node, held)) is not None:
            raise Unsafe(f"`{kept}` keeps what is read, and may be written into")
        written = written_by(node)
        name = None if written is None else root_name(written)
        if written is None or (name is not None and name not in held and _apart(site, node, name, followed)):
            continue
        if name is None and _is_own(site, written):
            continue
        text = shown(site, enclosing_statement(site, node))
        raise Unsafe(f"`{text}` in {site.qualname} may write into what is read")


def readers(step: Step, followed: Collection[str]) -> Iterator[str]:
    """Functions that get what is read, and whose code nobody looked at: as they are called there."""
    site = step.site
    held = _holding(site, followed)
    for node in own_nodes(site.function):
        if not isinstance(node, ast.Call) or node in step.calls or builtin(site, node.func) is not None:
            continue
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        if not any(names_in([one]) & held and not gives_own(site, one) for one in given):
            continue
        seen = site.seen(node.func)
        known = str(dotted(site, node.func)).startswith("torch.")
        of_torch = seen is not None and seen.types and all(one.startswith("torch.") for one in seen.types)
        if not (known or of_torch or _is_operation(site, node)):
            yield site.text(node.func)


def _holding(site: Site, followed: Collection[str]) -> set[str]:
    """Names that may hold what some names hold, or a part of it."""
    held = set(followed)
    while True:
        more = {
            name
            for node in ast.walk(site.function)
            for value, targets in _given_by(node)
            if names_in([value]) & held and not gives_own(site, value) and not _is_number(site, value)
            for name in names_in(targets)
        } - held
        if not more:
            return held
        held |= more


def _given_by(node: ast.AST) -> Iterator[tuple[ast.expr, list[ast.expr]]]:
    """What is given to which names."""
    match node:
        case ast.Assign(targets, value):
            yield value, [one for one in targets if not isinstance(one, ast.Attribute | ast.Subscript)]
        case ast.AnnAssign(ast.Name() as target, _, ast.expr() as value) | ast.NamedExpr(target, value):
            yield value, [target]
        case ast.For(target, value) | ast.comprehension(target, value):
            yield value, [target]
        case ast.withitem(value, ast.expr() as target):
            yield value, [target]


def _kept_in(site: Site, node: ast.AST, held: set[str]) -> str | None:
    """An attribute or an item in which a tensor is kept that is read."""
    if not isinstance(node, ast.Assign) or gives_own(site, node.value) or _is_number(site, node.value):
        return None
    if isinstance(node.value, ast.Call) and not isinstance(node.value.func, ast.Attribute):
        return None  # what a function makes of it; whether that function writes is asked apart
    places = [one for one in node.targets if isinstance(one, ast.Attribute)]
    return site.text(places[0]) if places and names_in([node.value]) & held else None


def _is_number(site: Site, value: ast.expr) -> bool:
    seen = site.seen(value)
    return seen is not None and seen.only("int", "float", "bool", "str", "None")


def _is_own(site: Site, written: ast.expr) -> bool:
    return gives_own(site, written)


def _apart(site: Site, node: ast.AST, name: str, followed: Collection[str]) -> bool:
    """Whether a tensor that is written certainly shares no memory with what is read."""
    if unshared(site, name):
        return True
    at = site.seen_before(enclosing_statement(site, node))
    written = at.get(name)
    if written is None:
        return False
    if "tensor" not in written.kinds:
        return written.only("int", "float", "bool", "str", "None")
    read = [site.evidence.parameters.get(one) for one in followed]
    dtypes = {dtype for one in read if one is not None for dtype in one.dtypes}
    return bool(dtypes) and dtypes.isdisjoint(written.dtypes)


def _is_operation(site: Site, call: ast.Call) -> bool:
    """Whether a call is one of torch's own methods on a tensor."""
    return isinstance(call.func, ast.Attribute) and call.func.attr in OPS and site.is_tensor(call.func.value)
