"""``a and b``, ``not a`` and the like of tensors, used as values: not to branch, but to compute with."""

from __future__ import annotations

import ast
from itertools import pairwise

from breakscope.fix.alias import changed_in_place, gives_own
from breakscope.fix.def_use import uses
from breakscope.fix.patch import Edit, Refusal, Rewrite
from breakscope.fix.predication import questions
from breakscope.fix.predication.condition import (
    Condition,
    as_tensor,
    combine,
    is_python,
    is_scalar_read,
    split,
)
from breakscope.fix.predication.interpreter import Evaluator
from breakscope.fix.rule import Example, Rule, Site, Unsafe
from breakscope.source.dominance import enclosing_statement
from breakscope.source.syntax import shown, stands_alone


class BooleanValue(Rule):
    """``ok = (x > 0).all() and (x < 1).all()`` -> ``ok = (x > 0).all() & (x < 1).all()``."""

    name = "boolean-value"
    codes = ("BS101", "BS102", "BS103")
    title = "&, | and ~ instead of and, or and not of tensors that are computed with"
    does = "`and`, `or`, `not`, `any`, `all`, `in`, `lo < x < hi` that are computed with: `&`, `|`, `~`"
    before = ("integer-division",)
    needs = (
        "Every operand is a bool tensor without dimensions, or a number read from a tensor.",
        "What was skipped if an earlier operand decided has no effect and raises for no values.",
        "Where Python made a bool of it (not, any, all, in, bool), it only meets tensors, in *, &, | and ^.",
    )
    hazards = (
        "All operands are computed in every call: one that kept another from an error is refused.",
        "A bool that leaves the function, decides a branch or is an index stays a bool: refused.",
    )
    rewritten = Example(
        """\
def f(x):
    ok = (x > -9).all() and (x < 9).all()  # in range
    return torch.where(ok, x, x.clamp(-9, 9))
""",
        """\
def f(x):
    ok = (x > -9).all() & (x < 9).all()  # in range
    return torch.where(ok, x, x.clamp(-9, 9))
""",
        calls=("torch.randn(3, 4)", "torch.ones(3, 4)"),
    )
    left_alone = Example(
        """\
def f(x):
    return not (x.sum() > 0)
""",
        why="leaves the function as a Python bool",
        calls=("torch.randn(3, 4)", "torch.ones(3, 4)"),
    )

    def propose(self, site: Site) -> Rewrite | Refusal | None:
        """Rewrite the whole expression of truths that the site is part of."""
        node = _whole(site)
        if node is None:
            return None
        return _rewrite(site, node)


def _whole(site: Site) -> ast.expr | None:
    """The outermost expression of truths at the site; None if there is none, or a branch tests it."""
    inside = [site.node] if isinstance(site.node, ast.expr) else _outermost(site, site.node)
    if len(inside) != 1:
        return None
    found, node = None, inside[0]
    while isinstance(node, ast.expr):
        if _is_truth(site, node):
            found = node
        parent = site.parents[node]
        if isinstance(parent, ast.If | ast.IfExp | ast.While | ast.Assert) and node is parent.test:
            return None
        if isinstance(parent, ast.comprehension | ast.Lambda):
            return None
        node = parent  # type: ignore[assignment]
    return found


def _outermost(site: Site, statement: ast.AST) -> list[ast.expr]:
    """Expressions of truths in a statement, where nobody knows the column."""
    if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.Return | ast.Expr | ast.AugAssign):
        return []
    all_of_them = [one for one in ast.walk(statement) if isinstance(one, ast.expr) and _is_truth(site, one)]
    inner = {id(below) for one in all_of_them for below in ast.walk(one) if below is not one}
    return [one for one in all_of_them if id(one) not in inner]


def _is_truth(site: Site, node: ast.expr) -> bool:
    if isinstance(node, ast.BoolOp) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
        return True
    if isinstance(node, ast.Compare) and len(node.ops) > 1:
        return True
    converted = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "bool"
    return (converted and is_scalar_read(site, node) is not None) or questions.asks(site, node)


def _rewrite(site: Site, node: ast.expr) -> Rewrite:
    site.refuse_frame_readers()
    statement = enclosing_statement(site, node)
    evaluate = Evaluator(site, statement)
    condition = _taken_apart(site, evaluate, node)
    rest = _after_prefix(site, evaluate, node)
    ends = [end for part in rest for end in _ends(part)]
    # Each of them is looked at: none may be a number.
    tensors = [_is_tensor(site, evaluate, one, first=index == 0) for index, one in enumerate(rest)]
    hands_on = all(tensors)
    unaliased = hands_on and not all(gives_own(site, end) for end in ends)
    if not hands_on:
        devices = _devices(site, node)
        for use in uses(site, node, "the bool"):
            _meets(site, use, devices)
    written = changed_in_place(site, statement) if unaliased or not hands_on else None
    if written is not None:
        raise Unsafe(f"`{written}` is changed in place elsewhere, and may be what is handed on here")
    certain = not hands_on or all(_certainly(evaluate, end) for end in ends)
    joined = " and " if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And) else " or "
    text = condition.text
    if condition.static:
        text = f"{condition.static}{joined}{text if condition.atom else f'({text})'}"
    elif not condition.atom and isinstance(node, ast.Call) and not stands_alone(site, node):
        text = f"({text})"
    return Rewrite(
        edits=(Edit(*site.offsets(node), text),),
        summary="tensor operators instead of Python's and, or and not",
        assumes=()
        if certain
        else ("what is combined stays bool tensors without dimensions, as in the recorded run",),
        unaliased=unaliased,
    )


def _taken_apart(site: Site, evaluate: Evaluator, node: ast.expr) -> Condition:
    if not (isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or)):
        return split(site, evaluate, node)
    count = _prefix(site, evaluate, node)
    if count == len(node.values):
        raise Unsafe("it is decided in Python")
    parts = [as_tensor(site, evaluate, one, ran=index == 0) for index, one in enumerate(node.values[count:])]
    static = " or ".join(
        f"({site.text(value)})"
        if isinstance(value, ast.IfExp | ast.NamedExpr | ast.Lambda)
        else site.text(value)
        for value in node.values[:count]
    )
    return Condition(static, *combine(parts, "|"))


def _prefix(site: Site, evaluate: Evaluator, node: ast.BoolOp) -> int:
    count = 0
    while count < len(node.values) and is_python(site, evaluate, node.values[count]):
        count += 1
    return count


def _after_prefix(site: Site, evaluate: Evaluator, node: ast.expr) -> list[ast.expr]:
    """What is combined as tensors."""
    return node.values[_prefix(site, evaluate, node) :] if isinstance(node, ast.BoolOp) else [node]


def _is_tensor(site: Site, evaluate: Evaluator, node: ast.expr, *, first: bool) -> bool:
    """Whether Python gives a tensor here, not a bool that it made of one.

    Raises:
        Unsafe: it is a tensor for which ``&`` and ``|`` mean something else.
    """
    if isinstance(node, ast.BoolOp):
        tensors = [
            _is_tensor(site, evaluate, one, first=first and not i) for i, one in enumerate(node.values)
        ]
        return all(tensors)
    if isinstance(node, ast.Compare) and len(node.ops) > 1:
        sides = [node.left, *node.comparators]
        tensors = [site.is_tensor(side) for side in sides]
        return all(a or b for a, b in pairwise(tensors))
    if _is_truth(site, node):
        return False
    seen = site.seen(node)
    if seen is not None and not seen.only("tensor"):
        return False
    if seen is None or not first:
        value = evaluate(node)
        if value.kind != "tensor":
            return False
        shapes, dtypes = value.shapes or frozenset(), {value.dtype}
    else:
        shapes, dtypes = seen.shapes, set(seen.dtypes)
    if shapes != {()}:
        raise Unsafe(f"`{site.text(node)}` has dimensions, or it is not known that it has none")
    if dtypes != {"bool"}:
        raise Unsafe(f"`{site.text(node)}` is no bool tensor: the operator hands on its number")
    return True


def _ends(node: ast.expr) -> list[ast.expr]:
    """The operands that ``and`` and ``or`` may hand on."""
    return [end for value in node.values for end in _ends(value)] if isinstance(node, ast.BoolOp) else [node]


def _certainly(evaluate: Evaluator, node: ast.expr) -> bool:
    """Whether the code itself says that an operand is a bool tensor without dimensions."""
    try:
        sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else [node]
        values = [evaluate(side) for side in sides]
    except Unsafe:
        return False
    bools = isinstance(node, ast.Compare) or all(value.dtype == "bool" for value in values)
    return bools and all(value.sources == frozenset() for value in values)


def _devices(site: Site, node: ast.expr) -> frozenset[str]:
    found = [site.seen(one) for one in ast.walk(node) if isinstance(one, ast.expr)]
    return frozenset().union(*(one.devices for one in found if one is not None and one.only("tensor")))


def _meets(site: Site, node: ast.expr, devices: frozenset[str]) -> None:
    """Refuse a use of a bool at which a bool tensor without dimensions does not do the same."""
    parent = site.parents[node]
    text = shown(site, node)
    if isinstance(parent, ast.BinOp) and isinstance(
        parent.op, ast.Mult | ast.BitAnd | ast.BitOr | ast.BitXor
    ):
        other = site.seen(parent.right if parent.left is node else parent.left)
        if other is None or not other.only("tensor"):
            raise Unsafe(f"`{site.text(parent)}` is computed in Python")
        if other.devices != devices or len(devices) != 1:
            raise Unsafe(f"`{site.text(parent)}` would meet a tensor on another device")
        return
    if isinstance(parent, ast.If | ast.IfExp | ast.While | ast.BoolOp | ast.Assert | ast.UnaryOp):
        raise Unsafe(f"`{text}` is a bool that decides in Python")
    if isinstance(parent, ast.Return | ast.Tuple | ast.Dict | ast.List):
        raise Unsafe(f"`{text}` leaves the function as a Python bool, and would be a tensor")
    if isinstance(parent, ast.Call | ast.keyword):
        raise Unsafe(f"`{text}` is handed to a function as a Python bool, and would be a tensor")
    raise Unsafe(f"`{text}` is used as a Python bool")
