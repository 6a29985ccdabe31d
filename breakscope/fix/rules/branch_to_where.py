"""``if`` on a tensor: both sides run and ``torch.where`` picks."""

from __future__ import annotations

import ast

from breakscope.fix.patch import Refusal, Rewrite
from breakscope.fix.predication.branch import rewrite_if, rewrite_outermost
from breakscope.fix.rule import Example, Rule, Site
from breakscope.source.dominance import enclosing_statement


class BranchToWhere(Rule):
    """``if t: x = f(x)`` -> ``x = torch.where(t, f(x), x)``."""

    name = "branch-to-where"
    codes = ("BS101", "BS102", "BS103")
    title = "torch.where instead of a branch on a tensor"
    does = (
        "`if` on a tensor: both branches run, `torch.where` picks; returns, chains, attributes and "
        "buffers included"
    )
    asks = "where a gradient changes from none to zero"
    before = ("ternary-to-where",)
    needs = (
        "Both branches only assign or return tensors of one shape, dtype and device.",
        "What the branches compute has no effect, draws no random numbers and raises for no values.",
        "Where gradients flow, a zero gradient into the branch not taken stays zero.",
    )
    hazards = (
        "Both branches are computed in every call.",
        "A tensor that only one branch uses gets a gradient of zero where it got None: with consent only.",
        "A derivative that is infinite in the branch not taken would make gradients NaN: refused.",
        "A function that handed out its own argument in one branch hands out a new tensor in both.",
    )
    rewritten = Example(
        """\
def f(x):
    if x.sum() > 0:
        x = x * 2
    return x
""",
        """\
def f(x):
    x = torch.where(x.sum() > 0, x * 2, x)
    return x
""",
    )
    left_alone = Example(
        """\
def f(x):
    if x.sum() > 0:
        x[0] = 0
    return x
""",
        why="a branch stores into `x[0]`",
    )

    def propose(self, site: Site) -> Rewrite | Refusal | None:
        """Rewrite the outermost branch on a tensor around the site that can be rewritten."""
        statement = enclosing_statement(site, site.node)
        if isinstance(statement, ast.While):
            return Refusal("how often the loop runs depends on the data")
        return rewrite_outermost(site, rewrite_if)
