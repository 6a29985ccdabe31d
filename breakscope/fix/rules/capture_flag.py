"""Dynamo's own settings for numbers and shapes that come from data."""

from __future__ import annotations

import ast

from breakscope.fix.messages import message_kind
from breakscope.fix.patch import Refusal, Rewrite
from breakscope.fix.predication.condition import is_scalar_read
from breakscope.fix.rule import Example, Rule, Site
from breakscope.source.dominance import enclosing_statement
from breakscope.source.names import reads_of, stored_in, stores
from breakscope.source.syntax import shown

_SCALARS = "capture_scalar_outputs"
_SHAPES = "capture_dynamic_output_shape_ops"
_AUTOGRAD = "trace_autograd_ops"
_READ_UNSEEN = ("Data dependent operator",)  # Dynamo's words where torch itself reads the number
_SIZED_UNSEEN = "Dynamic shape operator"  # and where it sees an operator, a user's own among them
_SIZED_BY_DATA = {
    "nonzero", "unique", "masked_select", "argwhere", "where", "repeat_interleave", "unique_consecutive",
    "bincount", "_unique2",
}  # fmt: skip


class CaptureFlag(Rule):
    """``x[: int(n)]`` and ``x.nonzero()`` -> a setting of ``torch._dynamo.config``."""

    name = "capture-flag"
    codes = ("BS102", "BS103", "BS105", "BS121")
    title = "a setting of Dynamo that keeps the value in the graph"
    does = "a setting of Dynamo for sizes and numbers that come from data, and for `torch.autograd.grad`"
    after = ("requires-grad",)
    needs = (
        "The number is a size, an index or a bound, not what a branch depends on.",
        "Or it is torch.autograd.grad, and this torch's Dynamo names the setting that traces it.",
        "The proof shows that the function compiles with the setting, and gives the same.",
    )
    hazards = (
        "The setting holds for everything that the program compiles; elsewhere it may cost a break or fail.",
    )
    rewritten = Example(
        """\
def f(x):
    return torch.nonzero(x > 0)
""",
        """\
def f(x):
    return torch.nonzero(x > 0)
""",
    )
    left_alone = Example(
        """\
def f(x):
    assert (x > 0).sum().item() > -1
    return x
""",
        why="`(x > 0).sum().item() > -1` depends on the value, and Python decides it",
    )

    def propose(self, site: Site) -> Rewrite | Refusal | None:
        """Name the setting that the site needs."""
        flag = _flag(site)
        statement = enclosing_statement(site, site.node)
        call = statement.value if isinstance(statement, ast.Expr) else None
        if flag is None or (isinstance(call, ast.Call) and message_kind(site, call)):
            return None  # the message itself breaks as well
        if (
            isinstance(site.node, ast.Call)
            and isinstance(site.node.func, ast.Name)
            and site.node.func.id == "bool"
        ):
            return Refusal(f"`{site.text(site.node)}` is a decision that Python takes")
        decides = _decides(site)
        if decides is not None:
            return Refusal(f"`{decides}` depends on the value, and Python decides it")
        return Rewrite(
            edits=(),
            summary=f"torch._dynamo.config.{flag} = True",
            notes=("the setting holds for everything that the program compiles",),
            config={flag: True},
        )


def _flag(site: Site) -> str | None:
    if f"torch._dynamo.config.{_AUTOGRAD}=False" in site.reason:
        return _AUTOGRAD
    node: ast.AST = site.node
    for _ in range(3):
        if is_scalar_read(site, node) is not None:
            return _SCALARS
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == "tolist":
                return _SCALARS
            if node.func.attr in _SIZED_BY_DATA:
                return _SHAPES
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            seen = site.seen(node.slice)
            if seen is not None and seen.dtypes & {"bool", "uint8"}:
                return _SHAPES
        if isinstance(node, ast.stmt):
            break
        node = site.parents[node]
    if site.reason == _SIZED_UNSEEN:
        return _SHAPES
    # A tensor that stands where Python wants a number: x[start:end], torch.arange(n).
    return _SCALARS if _SCALARS in site.reason or site.reason in _READ_UNSEEN else None


def _decides(site: Site) -> str | None:
    """The test of a branch or a loop that reads the value, directly or by the name it is given to."""
    statement = enclosing_statement(site, site.node)
    reads: list[ast.AST] = [site.node]
    if isinstance(statement, ast.Assign):
        for name in sorted(stored_in(statement.targets[0])):
            reads += reads_of(site, name)
    for read in reads:
        node = read
        while not isinstance(node, ast.stmt):
            parent = site.parents[node]
            if isinstance(parent, ast.If | ast.IfExp | ast.While | ast.Assert) and node is parent.test:
                return shown(site, parent.test)
            if isinstance(parent, ast.For) and node is parent.iter:
                return shown(site, parent.iter)
            node = parent
    return _list_of_turns(site, statement)


def _list_of_turns(site: Site, statement: ast.stmt) -> str | None:
    """The list of a tensor's values that a loop around the site runs over."""
    above: ast.AST | None = statement
    while above is not None and above is not site.function:
        if isinstance(above, ast.For):
            values = stores(site, above.iter.id) if isinstance(above.iter, ast.Name) else [above.iter]
            for value in values:
                called = value.func if isinstance(value, ast.Call) else None
                if isinstance(called, ast.Attribute) and called.attr == "tolist":
                    return shown(site, above.iter)
        above = site.parents.get(above)
    return None
