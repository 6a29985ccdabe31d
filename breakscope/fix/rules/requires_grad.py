"""``requires_grad`` set in compiled code: what changes nothing goes through the method; the rest is refused.

Dynamo breaks at every ``t.requires_grad = …``, but at ``t.requires_grad_(…)`` only where it changes the flag.
"""

from __future__ import annotations

import ast

from breakscope.fix.patch import Edit, Refusal, Rewrite
from breakscope.fix.rule import Example, Rule, Site
from breakscope.inside.record.evidence import Seen
from breakscope.source.dominance import enclosing_statement
from breakscope.source.names import own_nodes, parameters, root_name
from breakscope.source.syntax import shown


class RequiresGrad(Rule):
    """``p.requires_grad = False`` -> ``p.requires_grad_(False)``."""

    name = "requires-grad"
    codes = ("BS115",)
    title = "requires_grad_() instead of an assignment that changes nothing; a sum without a flag"
    does = (
        "`p.requires_grad = False`, where it is so already, becomes `p.requires_grad_(False)`, "
        "which does not break; `loss = torch.tensor(0.0, requires_grad=True)`, to which losses are added, "
        "goes without the flag"
    )
    after = ("known-size",)
    needs = (
        "A constant is assigned to requires_grad of a tensor.",
        "In every recorded call the tensor's flag had that value before.",
        "Or a sum begins with a tensor made with the flag, and what is added was seen to take gradients.",
    )
    hazards = (
        "A call that does change the flag still breaks.",
        "A flag that is changed in compiled code is refused: the change belongs in front of the call.",
        "A sum to which nothing is added takes no gradients any more: said as an assumption.",
    )
    rewritten = Example(
        """\
def f(x):
    target = x.detach() * 2
    target.requires_grad = False
    return (x - target).abs()
""",
        """\
def f(x):
    target = x.detach() * 2
    target.requires_grad_(False)
    return (x - target).abs()
""",
    )
    left_alone = Example(
        """\
def f(x):
    y = x * 2
    x.requires_grad = True
    return (x * y).sum()
""",
        why="whoever passed `x` sees that it begins to take gradients: set it before the compiled call",
    )

    def propose(self, site: Site) -> Rewrite | Refusal | None:
        """Rewrite the assignment at the site, or say where the change of the flag belongs."""
        statement = enclosing_statement(site, site.node)
        assigned = _assigned(statement)
        if assigned is not None:
            target, value = assigned
            seen = site.seen(target.value)
            if not _already(seen, value=value):
                return Refusal(_elsewhere(site, target.value, seen, value=value, assigns=True))
            tensor = site.text(target.value)
            assumes: tuple[str, ...] = ()
            if value:
                assumes = (f"`{tensor}` stays a leaf of a floating dtype: an assignment raises for others",)
            return Rewrite(
                edits=(Edit(*site.offsets(statement), f"{tensor}.requires_grad_({value})"),),
                summary="requires_grad_(), at which Dynamo breaks only if it changes the flag",
                notes=(
                    f"the flag of `{tensor}` was {value} already in the recorded run; to change it breaks",
                ),
                assumes=assumes,
            )
        call = _call(site)
        if call is None:
            return _created(site)
        assert isinstance(call.func, ast.Attribute)
        argument = call.args[0] if call.args else next((keyword.value for keyword in call.keywords), None)
        known = argument is None or isinstance(argument, ast.Constant)
        value = argument.value is not False if isinstance(argument, ast.Constant) else True
        if not known:
            return None
        tensor_seen = site.seen(call.func.value)
        return Refusal(_elsewhere(site, call.func.value, tensor_seen, value=value, assigns=False))


def _assigned(statement: ast.stmt) -> tuple[ast.Attribute, bool] | None:
    """The target and the constant of ``t.requires_grad = True``."""
    match statement:
        case ast.Assign(
            targets=[ast.Attribute(attr="requires_grad") as target], value=ast.Constant(value=bool(value))
        ):
            return target, value
    return None


def _already(seen: Seen | None, *, value: bool) -> bool:
    if seen is None or not seen.only("tensor") or not seen.tensors:
        return False
    return all(tensor.requires_grad is value for tensor in seen.tensors)


def _call(site: Site) -> ast.Call | None:
    """The call of ``requires_grad_`` at the site, or below it."""
    near: list[ast.AST] = [site.node]
    parent = site.parents.get(site.node)
    while parent is not None and isinstance(parent, ast.expr):
        near.append(parent)
        parent = site.parents.get(parent)
    for node in [*near, *ast.walk(enclosing_statement(site, site.node))]:
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "requires_grad_"
            and len(node.args) + len(node.keywords) <= 1
        ):
            return node
    return None


def _created(site: Site) -> Rewrite | Refusal | None:
    """``torch.zeros(…, requires_grad=True)``: a leaf that compiled code makes."""
    statement = enclosing_statement(site, site.node)
    for node in ast.walk(statement):
        if not isinstance(node, ast.Call):
            continue
        flag = next((keyword for keyword in node.keywords if keyword.arg == "requires_grad"), None)
        if flag is None or (isinstance(flag.value, ast.Constant) and flag.value.value is not True):
            continue
        name = _started(statement, node)
        if name is not None and _is_sum(site, name, statement):
            return _without_flag(site, node, flag, name)
        if isinstance(flag.value, ast.Constant):
            return Refusal(
                f"`{shown(site, node)}` makes a leaf that takes gradients, which Dynamo cannot trace: make "
                "it in `__init__`, as a parameter, or hand it in"
            )
    return None


def _started(statement: ast.stmt, made: ast.Call) -> str | None:
    """The name that a statement gives to what a call makes."""
    match statement:
        case ast.Assign([ast.Name(name)], value) if value is made:
            return name
    return None


def _is_sum(site: Site, name: str, start: ast.stmt) -> bool:
    """Whether a name is only a sum that begins with a statement, and what is added takes gradients."""
    given = [
        site.parents[node]
        for node in own_nodes(site.function)
        if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)
    ]
    added = [_added(name, statement) for statement in given if statement is not start]
    seen = [site.seen(one) if one is not None else None for one in added]
    takes = (tensor.requires_grad for one in seen if one is not None for tensor in one.tensors)
    return None not in added and any(takes)


def _added(name: str, statement: ast.AST) -> ast.expr | None:
    """What ``name = name + …`` adds, in either order; None where a statement is no such sum."""
    match statement:
        case ast.Assign([ast.Name()], ast.BinOp(ast.Name(first), ast.Add(), other)) if first == name:
            return other
        case ast.Assign([ast.Name()], ast.BinOp(other, ast.Add(), ast.Name(second))) if second == name:
            return other
    return None


def _without_flag(site: Site, made: ast.Call, flag: ast.keyword, name: str) -> Rewrite:
    kept = [site.text(argument) for argument in made.args]
    for keyword in made.keywords:
        if keyword is not flag:
            start = f"{keyword.arg}=" if keyword.arg else "**"
            kept.append(start + site.text(keyword.value))
    text = f"{site.text(made.func)}({', '.join(kept)})"
    return Rewrite(
        edits=(Edit(*site.offsets(made), text),),
        summary="a sum that takes its gradients from what is added",
        assumes=(f"something that takes gradients is added to `{name}`, as in the recorded run",),
        sums=True,
    )


def _elsewhere(site: Site, tensor: ast.expr, seen: Seen | None, *, value: bool, assigns: bool) -> str:
    """Why a change of the flag stays, and where it belongs."""
    text = shown(site, tensor)
    if seen is None or not (seen.only("tensor") and seen.tensors):
        return f"what `{text}` is was not seen in the recorded run"
    state = "begins to take" if value else "stops to take"
    flags = {one.requires_grad for one in seen.tensors}
    # Called on what is so already it does nothing, and Dynamo passes over it; an assignment breaks always.
    rest = f"then `{text}.requires_grad_({value})` does nothing here, and does not break"
    if not assigns:
        rest = "then this line does nothing, and does not break"
    held = root_name(tensor) in parameters(site.function)
    if held and not isinstance(tensor, ast.Name):
        when = "once, in `__init__` or after the model is made"
        first = " at its first call, and nothing later" if flags == {True, False} else ""
        return f"it changes the module{first}: `{text}` {state} gradients; do that {when}, {rest}"
    if held and not _rebound(site, text):
        return (
            f"whoever passed `{text}` sees that it {state} gradients: set it before the compiled call, {rest}"
        )
    if not value:
        return f"`{text}` {state} gradients for good: set it before the compiled call, {rest}"
    return (
        f"`{text}` {state} gradients in the middle of compiled code, which Dynamo cannot trace: for "
        "gradients with respect to it use torch.func.grad, or make it before the compiled call"
    )


def _rebound(site: Site, name: str) -> bool:
    """Whether a parameter's name is given another value."""
    return any(
        isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)
        for node in own_nodes(site.function)
    )
