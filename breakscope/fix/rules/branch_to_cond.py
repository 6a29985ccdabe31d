"""``if`` on a tensor whose sides must not both run: ``torch.cond`` in compiled code."""

from __future__ import annotations

import ast

from breakscope.fix.patch import Refusal, Rewrite
from breakscope.fix.predication.branch import rewrite_outermost
from breakscope.fix.predication.cond import rewrite_with_cond
from breakscope.fix.rule import Example, Rule, Site
from breakscope.source.dominance import enclosing_statement


class BranchToCond(Rule):
    """``if t: x = self.mlp(x)`` -> ``torch.cond(t, ...)`` while compiling."""

    name = "branch-to-cond"
    codes = ("BS101", "BS102", "BS103")
    title = "torch.cond instead of a branch on a tensor, while compiling"
    does = (
        "`if` on a tensor that `torch.where` cannot take: `torch.cond` while compiling, the branch "
        "as it is elsewhere"
    )
    asks = "where a gradient changes from none to zero"
    after = ("branch-to-where", "mask-to-where")
    needs = (
        "torch.where cannot take its place, or it was measured to make the script slower.",
        "Both sides only assign names, or return, one tensor each of the same dtype and shape.",
        "The sides have no side effects and write into no tensor: Dynamo itself refuses those, in the proof.",
    )
    hazards = (
        "The branch stays for code that is not compiled: torch.cond would compile at every call there.",
        "On a GPU the condition is read back in every call, as it was for the branch.",
        "A tensor that only one side uses gets a gradient of zero where it got None: with consent only.",
    )
    rewritten = Example(
        """\
def f(x):
    if (x > 0).all():
        return torch.sqrt(x)
    return x * 0
""",
        """\
def f(x):
    condition = (x > 0).all()
    if torch.compiler.is_compiling():

        def taken(x):
            return torch.sqrt(x)

        def otherwise(x):
            return x * 0

        return torch.cond(condition, taken, otherwise, (x,))
    if condition:
        return torch.sqrt(x)
    return x * 0
""",
        calls=("torch.rand(3, 4).requires_grad_()", "-torch.rand(3, 4).requires_grad_()"),
    )
    left_alone = Example(
        """\
def f(x):
    y = x * 1
    if x.sum() > 0:
        y += 1
    return y
""",
        why="torch.cond takes sides that only assign tensors",
        calls=("torch.rand(3, 4)", "-torch.rand(3, 4)"),
    )

    def propose(self, site: Site) -> Rewrite | Refusal | None:
        """Rewrite the outermost branch on a tensor around the site that can be rewritten."""
        if isinstance(enclosing_statement(site, site.node), ast.While):
            return None
        return rewrite_outermost(site, rewrite_with_cond)
