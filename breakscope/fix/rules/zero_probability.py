"""A draw that decides nothing: ``torch.rand([]) < p`` cannot hold where ``p`` is 0."""

from __future__ import annotations

import ast

from breakscope.fix.patch import Edit, Refusal, Rewrite
from breakscope.fix.rule import Example, Rule, Site, Unsafe
from breakscope.source.dominance import enclosing_statement
from breakscope.source.names import (
    dotted,
    loads,
    name_parts,
    names_in,
    parameters,
    reads_of,
    rebound_elsewhere,
    stores,
)

_LAYERS = """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.layerdrop = {probability}

    def forward(self, x):
        for layer in self.layers:
            drawn = torch.rand([])
            if {test}:
                continue
            x = layer(x)
        return x"""


class ZeroProbability(Rule):
    """``if drawn < p`` -> ``if p > 0 and drawn < p``."""

    name = "zero-probability"
    codes = ("BS101",)
    title = "the probability is asked before what was drawn"
    does = "`if drawn < p` where `p` is 0: `if p > 0 and drawn < p`; the draw stays"
    before = ("random-skip", "branch-to-where", "branch-to-cond", "boolean-value", "ternary-to-where")
    nearer = ("random-skip",)
    needs = (
        "A name that only torch.rand gives its values, of one element, is compared with `<`, and no more.",
        "The other side is a name or an attribute, and was a Python number, 0 or less, in every call.",
        "Only whether it holds is asked, there or by the branches that read the name it is given to.",
    )
    hazards = ("With a probability above 0 the branch breaks as before.",)
    rewritten = Example(
        _LAYERS.format(probability="0.0", test="self.training and drawn < self.layerdrop"),
        _LAYERS.format(
            probability="0.0", test="self.training and self.layerdrop > 0 and drawn < self.layerdrop"
        ),
        calls=("torch.randn(2, 4)", "torch.randn(3, 4)", "torch.randn(2, 4)"),
    )
    left_alone = Example(
        _LAYERS.format(probability="0.5", test="drawn < self.layerdrop"),
        why="is above 0",
        calls=("torch.randn(2, 4)", "torch.randn(3, 4)", "torch.randn(2, 4)"),
    )

    def propose(self, site: Site) -> Rewrite | Refusal | None:
        """Rewrite the comparisons with a draw in the condition at the site."""
        condition = _condition(enclosing_statement(site, site.node))
        named = [value for name in sorted(names_in([condition])) for value in stores(site, name)]
        compared = {one: None for part in (condition, *named) for one in ast.walk(part)}
        drawn = [one for one in compared if isinstance(one, ast.Compare) and _of_a_draw(site, one)]
        edits = [Edit(*site.offsets(one), _asked_first(site, one)) for one in drawn]
        if not edits:
            return None
        return Rewrite(edits=tuple(edits), summary="the probability is asked before what was drawn")


def _condition(statement: ast.stmt) -> ast.AST:
    if isinstance(statement, ast.If | ast.While):
        return statement.test
    return statement.value if isinstance(statement, ast.Assign) else ast.Pass()


def _of_a_draw(site: Site, compare: ast.Compare) -> bool:
    """Whether ``name < p`` or ``p > name`` is asked of a name that draws gave all its values."""
    if len(compare.ops) != 1 or not isinstance(compare.ops[0], ast.Lt | ast.Gt):
        return False
    drawn, _ = _sides(compare)
    if not isinstance(drawn, ast.Name) or drawn.id in parameters(site.function):
        return False
    values = stores(site, drawn.id)
    return bool(values) and all(_is_draw(site, value) for value in values)


def _sides(compare: ast.Compare) -> tuple[ast.expr, ast.expr]:
    """What must be smaller, and than what."""
    sides = (compare.left, compare.comparators[0])
    return sides if isinstance(compare.ops[0], ast.Lt) else (sides[1], sides[0])


def _is_draw(site: Site, value: ast.expr) -> bool:
    """Whether an expression draws one number of [0, 1)."""
    if not isinstance(value, ast.Call) or dotted(site, value.func) != "torch.rand" or len(value.args) != 1:
        return False
    size = value.args[0]
    parts = size.elts if isinstance(size, ast.List | ast.Tuple) else [size]
    return all(isinstance(part, ast.Constant) and part.value == 1 for part in parts) and all(
        keyword.arg in ("device", "generator") for keyword in value.keywords
    )


def _asked_first(site: Site, compare: ast.Compare) -> str:
    """The comparison behind a question that Python can answer.

    Raises:
        Unsafe: the answer may be another one, or more than the answer is used.
    """
    drawn, probability = _sides(compare)
    assert isinstance(drawn, ast.Name)
    _only_compared(site, drawn.id)
    text = site.text(probability)
    if not name_parts(probability):
        raise Unsafe(f"`{text}` would be evaluated twice")
    seen = site.seen(probability)
    if seen is None or not seen.only("int", "float", "bool"):
        raise Unsafe(f"`{text}` is not always a Python number")
    if seen.more_values or not all(isinstance(value, int | float) and value <= 0 for value in seen.values):
        raise Unsafe(f"`{text}` is above 0, so that what is drawn decides")
    _only_asked(site, compare)
    asked = f"{text} > 0 and {site.text(compare)}"
    return asked if _stands_alone(site, compare) else f"({asked})"


def _only_compared(site: Site, name: str) -> None:
    """Whether nothing can change what was drawn.

    Raises:
        Unsafe: something may.
    """
    given = [
        node
        for node in ast.walk(site.function)
        if (isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load))
        or (
            isinstance(node, ast.FunctionDef | ast.ClassDef | ast.alias)
            and name in (node.name, getattr(node, "asname", None))
        )
        or (isinstance(node, ast.ExceptHandler) and node.name == name)
    ]
    if len(given) != len(stores(site, name)) or rebound_elsewhere(site.function, name):
        raise Unsafe(f"`{name}` is given other values too")
    if not all(isinstance(site.parents[read], ast.Compare) for read in reads_of(site, name)):
        raise Unsafe(f"`{name}` is used by more than comparisons")


def _only_asked(site: Site, node: ast.expr) -> None:
    """Follow a condition to where it decides.

    Raises:
        Unsafe: its value is used for more.
    """
    above = site.parents[node]
    while isinstance(above, ast.BoolOp | ast.UnaryOp) and not (
        isinstance(above, ast.UnaryOp) and not isinstance(above.op, ast.Not)
    ):
        if isinstance(above, ast.UnaryOp):
            return  # `not` gives a bool of Python in any case
        node, above = above, site.parents[above]
    if isinstance(above, ast.If | ast.While | ast.IfExp) and above.test is node:
        return
    if (
        not isinstance(above, ast.Assign)
        or len(above.targets) != 1
        or not isinstance(above.targets[0], ast.Name)
    ):
        raise Unsafe(f"more is done with `{' '.join(site.text(node).split())}` than to ask whether it holds")
    name = above.targets[0].id
    if rebound_elsewhere(site.function, name):
        raise Unsafe(f"`{name}` belongs to another scope")
    for read in loads([site.function], name):
        parent = site.parents[read]
        if isinstance(parent, ast.Assign):
            raise Unsafe(f"`{name}` is handed on")
        _only_asked(site, read)


def _stands_alone(site: Site, compare: ast.Compare) -> bool:
    """Whether an ``and`` needs no parentheses of its own there."""
    above = site.parents[compare]
    if isinstance(above, ast.If | ast.While) or (
        isinstance(above, ast.BoolOp) and isinstance(above.op, ast.And)
    ):
        return True
    start, end = site.offsets(compare)
    return site.source[:start].rstrip().endswith("(") and site.source[end:].lstrip().startswith(")")
