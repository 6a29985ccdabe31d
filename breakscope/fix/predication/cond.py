"""Turns a branch on a tensor into ``torch.cond``, for compiled code only: one side runs, the graph goes on.

``torch.cond`` by itself is no replacement for ``if``: called outside of compiled code it compiles both sides
again at every call, 50 to 300 ms on torch 2.9 to 2.15. So the branch stays for whoever runs eagerly, and
``torch.compiler.is_compiling()`` chooses. What a side may do is torch.cond's own affair: Dynamo refuses side
effects, writing into operands and handing them on, and the proof compiles both sides.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from breakscope.fix.alias import changed_in_place, gives_own
from breakscope.fix.layout import Layout, indented
from breakscope.fix.patch import NO_GRADIENT, Edit, Rewrite
from breakscope.fix.predication.condition import split
from breakscope.fix.predication.interpreter import Evaluator
from breakscope.fix.rule import Site, Unsafe
from breakscope.inside.record.evidence import Seen
from breakscope.source.dominance import block_of, bound_before
from breakscope.source.names import (
    dotted,
    own_nodes,
    parameters,
    reads_outside,
    rebound_elsewhere,
)
from breakscope.source.syntax import grouped
from breakscope.source.torch_facts import is_in_place

_PLAIN = (ast.Assign, ast.AnnAssign, ast.Pass)
_LEAVES = (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of the branch: what runs, and the expressions that it hands on (None: the name as it was)."""

    block: list[ast.stmt]
    gives: dict[str, ast.expr | None]

    @property
    def nodes(self) -> list[ast.AST]:
        """Its statements, and the expressions that it hands on."""
        return [*self.block, *(give for give in self.gives.values() if give is not None)]


def rewrite_with_cond(site: Site, top: ast.If) -> Rewrite:
    """The rewrite of one ``if``.

    Raises:
        Unsafe: it must stay a branch.
    """
    torch = site.torch
    site.refuse_frame_readers()
    if site.text(top).startswith("elif"):
        raise Unsafe("torch.cond takes the place of a whole branch, not of an `elif`")
    evaluate, layout = Evaluator(site, top), Layout(site)
    condition = split(site, evaluate, top.test)
    if condition.static:
        raise Unsafe("Python decides a part of the condition")
    returns = _returns(top)
    sides = _returning(site, top) if returns else _assigning(site, top)
    outputs = list(sides[0].gives)
    operands = _operands(site, evaluate, sides, outputs)
    _alike(site, evaluate, sides, outputs)
    written = changed_in_place(site, top)
    if written is not None:
        raise Unsafe(f"`{written}` is changed in place elsewhere, and may be what is handed on here")
    consent, notes, assumes = _gradients(site, top, sides)

    name = layout.unique("condition")
    functions = [layout.unique("taken"), layout.unique("otherwise")]
    inside: list[str] = []
    for function, side in zip(functions, sides, strict=True):
        inside += ["", f"def {function}({', '.join(operands)}):"]
        inside.append(indented(_body(layout, side), layout.unit))
    operand_text = f"({', '.join(operands)}{',' if len(operands) == 1 else ''})"
    call = layout.call(f"{torch}.cond", [name, *functions, operand_text], top.col_offset + 2 * layout.unit)
    inside += ["", f"return {call}" if returns else f"{', '.join(outputs)} = {call}"]
    word = "if" if returns else "elif"
    lines = [
        f"{name} = {condition.text}",
        f"if {torch}.compiler.is_compiling():",
        indented(inside, layout.unit),
        f"{word} {name}",
    ]
    start, _ = site.offsets(top)
    _, end = layout.outer(top.test)
    return Rewrite(
        edits=(Edit(start, end, indented(lines, top.col_offset).lstrip(" ")),),
        summary="torch.cond instead of the branch, where it is compiled",
        notes=("compiled code waits for the condition's value on a GPU, as the branch did", *notes),
        assumes=assumes,
        consent=consent,
        differs=consent,
        branches=(site.span(top.test),),
        unaliased=True,
        compiled_only=True,
    )


def _returns(top: ast.If) -> bool:
    has = any(isinstance(node, ast.Return) for node in ast.walk(top))
    if has and (top.orelse or not isinstance(top.body[-1], ast.Return)):
        raise Unsafe("a branch returns in some cases only")
    return has


def _returning(site: Site, top: ast.If) -> tuple[_Side, _Side]:
    """``if t: ...; return a`` and what follows, up to ``return b``."""
    block, index = block_of(site, top)
    rest = block[index + 1 :]
    if not rest or not isinstance(rest[-1], ast.Return):
        raise Unsafe("a branch returns in the middle of other code")
    sides = []
    for statements in (top.body, rest):
        last = statements[-1]
        assert isinstance(last, ast.Return)
        if last.value is None or isinstance(last.value, ast.Tuple | ast.Constant):
            raise Unsafe("a branch returns more or less than one tensor")
        _check(site, statements[:-1])
        sides.append(_Side(statements[:-1], {"": last.value}))
    return sides[0], sides[1]


def _assigning(site: Site, top: ast.If) -> tuple[_Side, _Side]:
    """Both sides give the names that are read afterwards."""
    for block in (top.body, top.orelse):
        _check(site, block)
    last = [_assigned(block) for block in (top.body, top.orelse)]
    names = [
        name
        for name in dict.fromkeys([*last[0], *last[1]])
        if reads_outside(site, [top], name) or _in_loop(site, top)
    ]
    if not names:
        raise Unsafe("the branch gives nothing that is used")
    for name in names:
        if rebound_elsewhere(site.function, name):
            raise Unsafe(f"`{name}` belongs to another scope")
        if not (name in last[0] and name in last[1]) and not bound_before(site, top, name):
            raise Unsafe(f"`{name}` may have no value here")
    gives = [{name: one.get(name) for name in names} for one in last]
    return _Side(top.body, gives[0]), _Side(top.orelse, gives[1])


def _in_loop(site: Site, node: ast.AST) -> bool:
    while node is not site.function:
        node = site.parents[node]
        if isinstance(node, ast.For | ast.While | ast.AsyncFor):
            return True
    return False


def _assigned(block: list[ast.stmt]) -> dict[str, ast.expr]:
    """The last expression that each name is given in a block of plain assignments."""
    found: dict[str, ast.expr] = {}
    for statement in block:
        if isinstance(statement, ast.Assign):
            target, value = statement.targets[0], statement.value
            assert isinstance(target, ast.Name)
            found[target.id] = value
        elif (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and statement.value
        ):
            found[statement.target.id] = statement.value
    return found


def _check(site: Site, block: list[ast.stmt]) -> None:
    """Raises Unsafe for statements that a side may not hold, or that mean something else in a function."""
    for statement in block:
        if not isinstance(statement, _PLAIN):
            text = " ".join(ast.unparse(statement).split())[:60]
            raise Unsafe(f"torch.cond takes sides that only assign tensors: `{text}`")
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        if len(targets) > 1 or not all(isinstance(target, ast.Name) for target in targets):
            raise Unsafe(f"a branch stores into `{ast.unparse(statement)[:60]}`")
        for node in ast.walk(statement):
            if isinstance(node, _LEAVES) or (
                isinstance(node, ast.Name) and node.id in ("super", "__class__")
            ):
                raise Unsafe("a branch holds what cannot stand in a function of its own")
            method = (
                node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
            )
            if is_in_place(method):
                raise Unsafe(
                    f"torch.cond takes no side that writes into a tensor: `{site.text(statement)[:60]}`"
                )


def _operands(site: Site, evaluate: Evaluator, sides: tuple[_Side, _Side], outputs: list[str]) -> list[str]:
    """Local tensors that a side reads, or that it hands on as they were."""
    own = {*parameters(site.function)}
    own |= {
        own_node.id
        for own_node in own_nodes(site.function)
        if isinstance(own_node, ast.Name) and not isinstance(own_node.ctx, ast.Load)
    }
    found: dict[str, None] = {}
    for side in sides:
        names = [
            one.id
            for top in side.nodes
            for one in ast.walk(top)
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)
        ]
        names += [name for name in outputs if name and side.gives[name] is None]
        for name in names:
            if name not in own or name in found:
                continue
            seen = evaluate.seen_at_entry(name)
            if seen is not None and "tensor" in seen.kinds:
                if not seen.only("tensor"):
                    raise Unsafe(f"`{name}` was a tensor in some calls and not in others")
                found[name] = None
    if not found:
        raise Unsafe("its sides read no tensor of the function")
    return sorted(found)


def _alike(site: Site, evaluate: Evaluator, sides: tuple[_Side, _Side], outputs: list[str]) -> None:
    """Raises Unsafe if the sides are known to give different types, or nothing is known."""
    for name in outputs:
        _refuse_longer(site, evaluate, sides, name)
        given = [seen for side in sides if (seen := _given(site, evaluate, side, name)) is not None]
        shown = f"`{name}`" if name else "the result"
        if not given:
            raise Unsafe(f"neither side of the branch was seen to give {shown}")
        if any(len(one.dtypes) != 1 for one in given):
            raise Unsafe(f"{shown} was of several dtypes")
        if len({one.dtypes for one in given}) != 1:
            raise Unsafe(f"the sides give {shown} in different dtypes")
        ranks = {frozenset(len(shape) for shape in one.shapes) for one in given}
        if len(ranks) != 1 or not frozenset.intersection(*(one.shapes for one in given)):
            raise Unsafe(f"the sides give {shown} in different shapes")


def _refuse_longer(site: Site, evaluate: Evaluator, sides: tuple[_Side, _Side], name: str) -> None:
    """Refuse a side that joins something to what the other side hands on: also one that never ran.

    Raises:
        Unsafe: their shapes differ, whatever the values are.
    """
    for one, other in (sides, sides[::-1]):
        joined, plain = one.gives[name], other.gives[name]
        match joined:
            case ast.Call(func=function, args=[ast.Tuple(elts=parts) | ast.List(elts=parts), *_]) if dotted(
                site, function
            ) in ("torch.cat", "torch.concat", "torch.concatenate"):
                pass
            case _:
                continue
        same = name if plain is None else plain.id if isinstance(plain, ast.Name) else ""
        named = [part.id for part in parts if isinstance(part, ast.Name)]
        rest = [evaluate.seen_at_entry(part) for part in named if part != same]
        if same in named and any(seen is not None and _never_empty(seen) for seen in rest):
            shown = f"`{name}`" if name else "the result"
            raise Unsafe(
                f"{shown} is longer on one side than on the other: by hand, make it as long in any case "
                "and mask what the other side leaves out"
            )


def _never_empty(seen: Seen) -> bool:
    return seen.only("tensor") and bool(seen.shapes) and all(0 not in shape for shape in seen.shapes)


def _given(site: Site, evaluate: Evaluator, side: _Side, name: str) -> Seen | None:
    expression = side.gives[name]
    seen = site.seen(expression) if expression is not None else evaluate.seen_at_entry(name)
    if isinstance(expression, ast.Name) and seen is None:
        seen = evaluate.seen_at_entry(expression.id)
    if seen is not None and not seen.only("tensor"):
        raise Unsafe("torch.cond takes sides that give tensors only")
    return seen


def _gradients(
    site: Site, top: ast.If, sides: tuple[_Side, _Side]
) -> tuple[bool, tuple[str, ...], tuple[str, ...]]:
    """Consent, notes and assumptions: a tensor that one side does not use gets a zero for its gradient."""
    if not _flow(site, top, sides):
        return False, (), (NO_GRADIENT,)
    if _paths(site, sides[0]) == _paths(site, sides[1]):
        return False, (), ()
    return True, ("a tensor that only one branch uses gets a gradient of zero where it got None",), ()


def _flow(site: Site, top: ast.If, sides: tuple[_Side, _Side]) -> bool:
    nodes = [
        node for side in sides for top in side.nodes for node in ast.walk(top) if isinstance(node, ast.expr)
    ]
    if not site.evidence.grad:
        return False
    entry = site.seen_before(top)
    seen = [site.seen(node) or entry.get(ast.unparse(node)) for node in nodes]
    # Of a side that was never run only what it reads is known, and that may be a parameter.
    reads = ast.Call | ast.Name | ast.Attribute
    never = any(
        one is None and isinstance(node, reads) and dotted(site, node) is None
        for node, one in zip(nodes, seen, strict=True)
    )
    return never or any(one is not None and (one.requires_grad or "module" in one.kinds) for one in seen)


def _paths(site: Site, side: _Side) -> frozenset[str]:
    """The longest names and attributes that a side reads."""
    found = {name for name, one in side.gives.items() if one is None}
    own = set(_assigned(side.block))
    for top in side.nodes:
        inner: set[int] = set()
        for node in ast.walk(top):
            if isinstance(node, ast.Attribute):
                inner.add(id(node.value))
            if not isinstance(node, ast.Name | ast.Attribute) or id(node) in inner:
                continue
            if dotted(site, node) is None and not isinstance(node.ctx, ast.Store):
                found.add(ast.unparse(_without_method(site, node)))
    before = {name for name in own if side.block and bound_before(site, side.block[0], name)}
    return frozenset(found - (own - before))


def _without_method(site: Site, node: ast.Name | ast.Attribute) -> ast.expr:
    """``x`` of ``x.sum``: what a method belongs to."""
    called = isinstance(parent := site.parents[node], ast.Call) and parent.func is node
    if not called or not isinstance(node, ast.Attribute):
        return node
    seen = site.seen(node.value)
    return node.value if seen is not None and seen.only("tensor") else node


def _body(layout: Layout, side: _Side) -> list[str]:
    lines: list[str] = []
    for index, statement in enumerate(side.block):
        lines += layout.comments(side.block, index)
        lines += [] if isinstance(statement, ast.Pass) else layout.lines(statement)
    results = []
    for name, expression in side.gives.items():
        # Neither an operand itself nor a view of it may be handed on.
        own = expression is not None and gives_own(layout.site, expression)
        if not name and expression is not None:
            text = layout.value(expression, expression.col_offset)
            name = text if own else grouped(expression, text)
        results.append(name if own else f"{name}.clone()")
    return [*lines, f"return {', '.join(results)}"]
