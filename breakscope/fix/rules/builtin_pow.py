"""``pow(t, n)``, which Dynamo does not take of every tensor, as the operator that it calls."""

from __future__ import annotations

import ast

from breakscope.fix.patch import Edit, Rewrite
from breakscope.fix.rule import Example, Rule, Site
from breakscope.source.names import builtin
from breakscope.source.syntax import operand, stands_alone


class BuiltinPow(Rule):
    """``pow(x, 2)`` -> ``x ** 2``."""

    name = "builtin-pow"
    codes = ("BS111",)
    title = "the operator ** instead of the builtin pow"
    does = "`pow(t, n)` becomes `t ** n`"
    before = ("mask-to-where",)
    needs = ("It is Python's own pow, with two arguments, and one of them is a tensor.",)
    hazards = ("None: Python's pow with two arguments is the operator.",)
    rewritten = Example(
        """\
def f(x):
    return pow(x, 2)
""",
        """\
def f(x):
    return x ** 2
""",
        calls=("torch.rand(3, 4) + 0.1",),
    )
    left_alone = Example(
        """\
def f(x, n):
    return pow(2, n) * x
""",
        calls=("torch.rand(3, 4), 3",),
        site="pow(2, n) * x",
        code="BS111",
    )

    def propose(self, site: Site) -> Rewrite | None:
        """Rewrite the call of ``pow`` at the site."""
        node: ast.AST = site.node
        while not isinstance(node, ast.stmt) and not _is_pow(site, node):
            node = site.parents[node]
        if isinstance(node, ast.stmt):
            calls = [one for one in ast.walk(node) if _is_pow(site, one)]
            if len(calls) != 1:
                return None
            node = calls[0]
        assert isinstance(node, ast.Call)
        text = " ** ".join(operand(site, arg) for arg in node.args)
        if not stands_alone(site, node):
            text = f"({text})"
        return Rewrite(
            edits=(Edit(*site.offsets(node), text),), summary="the operator instead of the builtin function"
        )


def _is_pow(site: Site, node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or builtin(site, node.func) != "pow":
        return False
    if len(node.args) != 2 or node.keywords or any(isinstance(arg, ast.Starred) for arg in node.args):
        return False
    return any(map(site.is_tensor, node.args))
