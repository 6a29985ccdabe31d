"""Loops that run as often as a tensor says: bounded ones are masked, for others the way out is named."""

from __future__ import annotations

import ast

from breakscope.fix.patch import Refusal, Rewrite
from breakscope.fix.predication.exits import is_exit, read_in, rewrite_loop
from breakscope.fix.rule import Example, Rule, Site, Unsafe
from breakscope.source.dominance import enclosing_statement

_BOUND = "`for _ in range(bound):` that leaves with `if …: break`, which fix may rewrite"
_OUTSIDE = "or keep the loop outside and compile its body"


class LoopExit(Rule):
    """``for …: x = f(x); if c: break`` -> ``x = torch.where(running, f(x), x); running = running & ~c``."""

    name = "loop-exit"
    codes = ("BS101", "BS102", "BS103")
    title = "torch.where instead of leaving a bounded loop"
    does = (
        "`for _ in range(n)` with `if t: break`: all iterations run, `torch.where` keeps the "
        "values of the exit"
    )
    asks = "where a gradient changes from none to zero"
    before = ("branch-to-where",)
    needs = (
        "The loop is over a range of Python integers, of 64 iterations at most, and has no `else`.",
        "What it carries from one iteration to the next are tensors of one shape and dtype, there before it.",
        "What it computes has no effect, draws no random numbers and raises for no values.",
    )
    hazards = (
        "All iterations are computed in every call.",
        "A derivative that is infinite in an iteration that was not taken would make gradients NaN: refused.",
        "A loop without a bound is refused, and the way out is named.",
    )
    rewritten = Example(
        """\
def f(x):
    for i in range(10):
        x = x * 1.5
        if x.abs().max() > 3:
            break
    return x
""",
        """\
def f(x):
    running = torch.ones((), dtype=torch.bool, device=x.device)
    for i in range(10):
        x = torch.where(running, x * 1.5, x)
        running = running & ~(x.abs().max() > 3)
    return x
""",
        calls=("torch.rand(4)", "torch.rand(4) * 5", "-torch.rand(4) * 0.1"),
    )
    left_alone = Example(
        """\
def f(x):
    while x.sum() < 10:
        x = x + 1
    return x
""",
        why="how often the loop runs depends on the data: if you know a bound, write `for _ in "
        "range(bound):`",
        calls=("torch.rand(4)", "torch.rand(4) * 5", "-torch.rand(4) * 0.1"),
    )

    def propose(self, site: Site) -> Rewrite | Refusal | None:
        """Rewrite the loop that the branch at the site leaves."""
        statement = enclosing_statement(site, site.node)
        if isinstance(statement, ast.While):
            return _unbounded(site, statement)
        if isinstance(statement, ast.For):
            return _counted(site, statement)
        loop = site.parents[statement]
        if not isinstance(statement, ast.If):
            return None
        if not isinstance(loop, ast.For | ast.While) or not any(one is statement for one in loop.body):
            return _around(site, statement)
        if isinstance(statement.body[-1], ast.Continue) and len(statement.body) == 1 and not statement.orelse:
            return Refusal(
                "a tensor decides whether the rest of an iteration is skipped: put the rest under "
                "`if not …:`, which fix may rewrite"
            )
        if not is_exit(statement):
            return _around(site, statement)
        if isinstance(loop, ast.While):
            return Refusal(f"a tensor ends the loop: if you know a bound, write {_BOUND}, {_OUTSIDE}")
        return rewrite_loop(site, loop)


def _around(site: Site, statement: ast.stmt) -> Rewrite | None:
    """A branch inside of a loop with exits: it goes together with them, or other rules are asked."""
    node: ast.AST = site.parents[statement]
    while isinstance(node, ast.If):
        node = site.parents[node]
    if not isinstance(node, ast.For) or not any(map(is_exit, node.body)):
        return None
    try:
        return rewrite_loop(site, node)
    except Unsafe:
        return None


def _unbounded(site: Site, loop: ast.While) -> Refusal | None:
    if read_in(site, loop.test) is None:
        return None
    return Refusal(
        f"how often the loop runs depends on the data: if you know a bound, write {_BOUND}, {_OUTSIDE}"
    )


def _counted(site: Site, loop: ast.For) -> Refusal | None:
    """``for i in range(int(t))``."""
    call = loop.iter
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id != "range":
        return None
    if read_in(site, call) is None:
        return None
    return Refusal(
        f"how often the loop runs is read from a tensor: pass it in as a Python integer (a graph for each "
        f"number), or, if you know a bound, write {_BOUND}"
    )
