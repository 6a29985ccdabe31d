"""Sizes that torch divides: ``torch.div`` of two Python integers is ``//``."""

from __future__ import annotations

import ast

from breakscope.fix.def_use import uses
from breakscope.fix.patch import Edit, Refusal, Rewrite
from breakscope.fix.rule import Example, Rule, Site, Unsafe
from breakscope.source.dominance import enclosing_statement
from breakscope.source.names import dotted, names_in, stores
from breakscope.source.syntax import on_one_line, operand

_METHODS = {
    "view", "reshape", "expand", "repeat", "new_zeros", "new_ones", "new_empty", "new_full", "unflatten",
    "as_strided", "narrow", "split", "chunk",
}  # fmt: skip
_FUNCTIONS = {"torch.zeros", "torch.ones", "torch.empty", "torch.full", "torch.reshape"}
_COUNTS = ast.Add | ast.Sub | ast.Mult | ast.FloorDiv


class IntegerDivision(Rule):
    """``x.view(torch.div(n, 2, rounding_mode="trunc"), -1)`` -> ``x.view(n // 2, -1)``."""

    name = "integer-division"
    codes = ("BS102",)
    title = "a division by Python where torch divides two sizes"
    does = "`torch.div` of two Python integers that is used as a size becomes `//`"
    before = ("numpy-size",)
    needs = (
        "Both operands of torch.div are Python integers, and it rounds.",
        "The quotient is used as a size only, by itself or after integer arithmetic.",
    )
    hazards = ("`//` rounds down and `trunc` towards zero: they differ for negative numbers.",)
    rewritten = Example(
        """\

def f(x):
    return x.view(torch.div(x.size(0), 4, rounding_mode="trunc"), 4, x.size(1))
""",
        """\

def f(x):
    return x.view(x.size(0) // 4, 4, x.size(1))
""",
        calls=("torch.randn(8, 4)", "torch.randn(12, 4)", "torch.randn(20, 4)"),
        site='x.view(torch.div(x.size(0), 4, rounding_mode="trunc"), 4, x.size(1))',
        code="BS102",
    )
    left_alone = Example(
        """\

def f(x):
    half = torch.div(x.size(0), 2, rounding_mode="trunc")
    return x.new_full((2, 2), half)
""",
        why="what the tensor is filled with",
        calls=("torch.randn(8, 4)", "torch.randn(12, 4)", "torch.randn(20, 4)"),
        site="x.new_full((2, 2), half)",
        code="BS102",
    )

    def propose(self, site: Site) -> Rewrite | Refusal | None:
        """Rewrite the divisions behind the sizes at the site."""
        statement = enclosing_statement(site, site.node)
        if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.Return | ast.Expr | ast.AugAssign):
            return None
        return _rewrite(site, statement)


def _rewrite(site: Site, statement: ast.stmt) -> Rewrite | None:
    divisions = _divisions(site, statement)
    if not divisions:
        return None
    edits: list[Edit] = []
    assumes: list[str] = []
    for call in divisions:
        rounds = next(keyword.value for keyword in call.keywords)
        assert isinstance(rounds, ast.Constant)
        only_sizes(site, call, set())
        left, right = (_not_negative(site, arg) for arg in call.args)
        if rounds.value == "trunc":
            negative = [text for node, text in zip(call.args, (left, right), strict=True) if not _count(node)]
            assumes += [f"`{text}` is never negative, as in the recorded run" for text in negative]
        start, end = site.offsets(call)
        text = f"{left} // {right}"
        parent = site.parents[call]
        edits.append(Edit(start, end, f"({text})" if isinstance(parent, ast.BinOp) else text))
    return Rewrite(
        edits=tuple(edits),
        summary="the sizes are divided by Python",
        assumes=tuple(dict.fromkeys(assumes)),
    )


def _divisions(site: Site, statement: ast.stmt) -> list[ast.Call]:
    """Divisions of integers in a statement, and behind the names that it reads."""
    found: dict[int, ast.Call] = {}
    behind: list[ast.AST] = [statement]
    followed: set[str] = set()
    while behind:
        node = behind.pop(0)
        for one in ast.walk(node):
            if isinstance(one, ast.Call) and _is_division(site, one):
                found[id(one)] = one
        for name in sorted(names_in([node]) - followed):
            followed.add(name)
            values = stores(site, name)
            behind += values if len(values) == 1 else []
    return list(found.values())


def _is_division(site: Site, node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or dotted(site, node.func) not in ("torch.div", "torch.divide"):
        return False
    rounds = [keyword.value for keyword in node.keywords if keyword.arg == "rounding_mode"]
    if len(node.args) != 2 or len(node.keywords) != 1 or len(rounds) != 1:
        return False
    if not isinstance(rounds[0], ast.Constant) or rounds[0].value not in ("trunc", "floor"):
        return False
    return all(site.is_integer(arg) for arg in node.args)


def _not_negative(site: Site, node: ast.expr) -> str:
    seen = site.seen(node)
    if seen is not None and any(isinstance(value, int) and value < 0 for value in seen.values):
        raise Unsafe(f"`{on_one_line(site, node)}` is negative")
    return operand(site, node)


def _count(node: ast.expr) -> bool:
    """Whether an integer cannot be negative: a size, a length, a number that stands there."""
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add | ast.Mult) and _count(node.left) and _count(node.right)
    called = node.func if isinstance(node, ast.Call) else None
    return (isinstance(called, ast.Name) and called.id == "len") or (
        isinstance(called, ast.Attribute) and called.attr in ("size", "numel", "dim")
    )


def only_sizes(site: Site, node: ast.expr, followed: set[str]) -> None:
    """Follow a quotient to where it is used.

    Raises:
        Unsafe: it is used as a tensor there, or that is not known.
    """
    parent = site.parents[node]
    if isinstance(parent, ast.BinOp) and isinstance(parent.op, _COUNTS):
        other = parent.right if parent.left is node else parent.left
        if not site.is_integer(other):
            raise Unsafe(f"`{site.text(parent)}` is arithmetic with a tensor")
        return only_sizes(site, parent, followed)
    if isinstance(parent, ast.Tuple | ast.List):
        return only_sizes(site, parent, followed)
    if isinstance(parent, ast.keyword):
        return _sizes_of(site, site.parents[parent], parent)
    if isinstance(parent, ast.Call):
        return _sizes_of(site, parent, node)
    if isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Name):
        name = parent.targets[0].id
        for read in uses(site, node, "the number") if name not in followed else []:
            only_sizes(site, read, followed | {name})
        return None
    raise Unsafe(f"the number may be used as a tensor: `{' '.join(ast.unparse(parent).split())[:60]}`")


def _sizes_of(site: Site, call: ast.AST, argument: ast.AST) -> None:
    """Whether a call takes its arguments as sizes."""
    assert isinstance(call, ast.Call)
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    seen = site.seen(call.func.value) if isinstance(call.func, ast.Attribute) else None
    of_tensor = name in _METHODS and seen is not None and seen.only("tensor")
    named = isinstance(argument, ast.keyword) and argument.arg in ("size", "stride")
    full = dotted(site, call.func)
    if argument is call.func or not (
        of_tensor or full in _FUNCTIONS or (named and full == "torch.as_strided")
    ):
        raise Unsafe(f"the number is handed to `{site.text(call.func)}`, which may use it as a tensor")
    if name in ("new_full", "full") and argument in call.args[1:]:
        raise Unsafe("the number is what the tensor is filled with")
