"""``a if t else b`` on a tensor."""

from __future__ import annotations

import ast

from breakscope.fix.patch import Edit, Refusal, Rewrite
from breakscope.fix.predication.condition import split
from breakscope.fix.predication.where import Branches
from breakscope.fix.rule import Example, Rule, Site
from breakscope.source.dominance import enclosing_statement


class TernaryToWhere(Rule):
    """``f(x) if t else x`` -> ``torch.where(t, f(x), x)``."""

    name = "ternary-to-where"
    codes = ("BS101", "BS102", "BS103")
    title = "torch.where instead of a conditional expression on a tensor"
    does = "the same for `a if t else b`"
    asks = "where a gradient changes from none to zero"
    before = ("scalar-read",)
    needs = (
        "Both sides are tensors of one shape, dtype and device.",
        "Both sides have no effect, draw no random numbers and raise for no values.",
        "Where gradients flow, a zero gradient into the side not taken stays zero.",
    )
    hazards = (
        "Both sides are computed in every call.",
        "A tensor that only one side uses gets a gradient of zero where it got None: with consent only.",
    )
    rewritten = Example(
        """\
def f(x):
    return x * 2 if x.sum() > 0 else x
""",
        """\
def f(x):
    return torch.where(x.sum() > 0, x * 2, x)
""",
    )
    left_alone = Example(
        """\
def f(x):
    return x.half() if x.sum() > 0 else x
""",
        why="one branch gives float16 and the other float32",
    )

    def propose(self, site: Site) -> Rewrite | Refusal | None:
        """Rewrite the conditional expression whose condition holds the site."""
        node: ast.AST = site.node
        if isinstance(node, ast.IfExp):  # Dynamo names the whole expression where the test begins with `not`
            node = node.test
        while not isinstance(node, ast.stmt):
            parent = site.parents[node]
            if isinstance(parent, ast.IfExp) and node is parent.test:
                return _rewrite(site, parent)
            node = parent
        return None


def _rewrite(site: Site, node: ast.IfExp) -> Rewrite:
    statement = enclosing_statement(site, node)
    branches = Branches(site, statement)
    condition = split(site, branches.evaluate, node.test)
    branches.choose(branches.evaluate(node.body), branches.evaluate(node.orelse))
    layout, column = branches.layout, statement.col_offset
    body, other = layout.value(node.body, column), layout.value(node.orelse, column)
    start, end = site.offsets(node)
    before = start - site.starts[node.lineno - 1]
    text = branches.where(condition.text, body, other, before)
    if condition.static:
        text = f"{text} if {condition.static} else {other}"
    else:
        start, end = layout.outer(node)
    text = text.replace("\n", "\n" + " " * column)
    summary = "torch.where instead of the conditional expression"
    return branches.rewrite(Edit(start, end, text), [node.test], summary)
