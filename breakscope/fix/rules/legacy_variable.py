"""``Variable(x)``, which Dynamo does not trace, as what it has meant since torch 0.4: ``x.detach()``."""

from __future__ import annotations

import ast

from breakscope.fix.patch import Edit, Rewrite
from breakscope.fix.rule import Example, Rule, Site, Unsafe
from breakscope.source.names import dotted
from breakscope.source.syntax import grouped

_NAMES = ("torch.autograd.Variable", "torch.autograd.variable.Variable")


class LegacyVariable(Rule):
    """``Variable(x)`` -> ``x.detach()``."""

    name = "legacy-variable"
    codes = ("BS107",)
    title = "detach() instead of Variable"
    does = "`Variable(x)` of old code becomes `x.detach()`, which it has meant since torch 0.4"
    needs = ("It is torch's own `Variable`, and what it gets is a tensor.",)
    hazards = (
        "None: both give a new tensor that shares the old one's memory, and no gradient flows back.",
        "`requires_grad=True` is refused: a tensor that begins to take gradients in compiled code.",
    )
    rewritten = Example(
        """\
def f(x):
    return torch.autograd.Variable(x * 2) + 1
""",
        """\
def f(x):
    return (x * 2).detach() + 1
""",
    )
    left_alone = Example(
        """\
def f(x):
    return torch.autograd.Variable(x, requires_grad=True) * 2
""",
        why="begins to take gradients",
    )

    def propose(self, site: Site) -> Rewrite | None:
        """Rewrite the call at the site."""
        call = next((node for node in site.around() if _is_variable(site, node)), None)
        if not isinstance(call, ast.Call):
            return None
        if len(call.args) != 1 or isinstance(call.args[0], ast.Starred) or call.keywords:
            _refuse_what_is_given(site, call)
        argument = call.args[0]
        if not site.is_tensor(argument):
            raise Unsafe(f"`{site.text(argument)}` is not always a tensor")
        tensor = grouped(argument, site.text(argument))
        if not _is_whole(tensor):
            tensor = f"({tensor})"
        return Rewrite(
            edits=(Edit(*site.offsets(call), f"{tensor}.detach()"),), summary="detach() instead of Variable"
        )


def _is_variable(site: Site, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and dotted(site, node.func) in _NAMES


def _refuse_what_is_given(site: Site, call: ast.Call) -> None:
    """Refuse what is given besides the tensor, but for ``requires_grad=False``."""
    given = [*call.args[1:], *(one.value for one in call.keywords if one.arg == "requires_grad")]
    known = len(call.args) >= 1 and len(given) == len(call.args) - 1 + len(call.keywords)
    if not known or isinstance(call.args[0], ast.Starred) or len(given) != 1:
        raise Unsafe(f"what `{site.text(call.func)}` is given besides a tensor is not known")
    if not (isinstance(given[0], ast.Constant) and given[0].value is False):
        raise Unsafe("the tensor begins to take gradients in compiled code")


def _is_whole(text: str) -> bool:
    """Whether an expression needs no parentheses to go over its lines."""
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True
