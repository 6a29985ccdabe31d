"""Branches that store into an object: ``self.x = E`` and ``self.register_buffer("x", E)`` in both branches.

The store is done once, of what ``torch.where`` picks: a tensor of its own each time, so that nothing that
held the old one changes. Two idioms may stand before the stores and run in any case: a value made once,
``if not hasattr(self, "x"): self.x = make(...)``, and a move to a device, ``self.x = self.x.to(device)``.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from breakscope.fix.predication.arms import Choice, arms_of, render_attributes, select
from breakscope.fix.predication.values import Value
from breakscope.fix.predication.where import Branches
from breakscope.fix.rule import Unsafe


@dataclass(frozen=True, slots=True)
class Store:
    """The last statement of a branch.

    Attributes:
        path: ``self.inv_freq``. value: what is stored there. shell: all of the call but the value.
    """

    path: str
    value: ast.expr
    shell: str


def store_of(statement: ast.stmt) -> Store | None:
    """What a statement stores into an object; None if it is another kind of statement."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            return Store(ast.unparse(target), statement.value, "")
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and len(call.args) == 2:
        name = call.args[0]
        if (
            call.func.attr == "register_buffer"
            and isinstance(call.func.value, ast.Name)
            and isinstance(name, ast.Constant)
            and isinstance(name.value, str)
            and all(isinstance(keyword.value, ast.Constant) for keyword in call.keywords)
        ):
            shell = ast.unparse(ast.Call(call.func, [name], call.keywords))
            return Store(f"{call.func.value.id}.{name.value}", call.args[1], shell)
    return None


def render_stores(branches: Branches, top: ast.If, mask: str, indent: int) -> list[str] | None:
    """Lines for an ``if`` whose branches end in a store to one place; None for any other ``if``.

    Raises:
        Unsafe: it has that form, and must stay a branch.
    """
    arms = arms_of(top)
    chained = len(top.orelse) == 1 and isinstance(top.orelse[0], ast.If)
    places = list(arms[0].values) if arms is not None else []
    if arms is not None and "." in places[0] and (chained or len(places) > 1):
        return render_attributes(branches, arms, mask, indent)
    store = store_of(top.body[-1])
    if store is None:
        return None
    other = store_of(top.orelse[-1]) if top.orelse else None
    if top.orelse and (other is None or other.path != store.path or other.shell != store.shell):
        raise Unsafe(f"only one branch stores into `{store.path}`, or each in its own way")
    if top.orelse and not store.shell and isinstance(top.orelse[0], ast.If):
        raise Unsafe(f"more than two branches store into `{store.path}`")
    branches.refuse_unwritable(store.path)
    lines: list[str] = []
    for block in (top.body, top.orelse):
        for index, statement in enumerate(block[:-1]):
            lines += branches.layout.comments(block, index)
            lines += _before(branches, statement, mask, indent)
        if block:
            lines += branches.layout.comments(block, len(block) - 1)
            lines += [one for one in [branches.layout.trailing(block[-1]).strip()] if one]
    old = branches.evaluate(ast.parse(store.path, mode="eval").body)
    new = _stored(branches, store.value, old)
    rest = _stored(branches, other.value, old) if other is not None else old
    written = branches.layout.value(store.value, top.body[-1].col_offset)
    otherwise = store.path if other is None else branches.layout.value(other.value, top.orelse[-1].col_offset)
    choice = Choice(mask, written, new)
    chosen, value = select(branches, store.path, [choice], (otherwise, rest), indent + len(store.path) + 3)
    line = branches.store(store.path, chosen, value)
    if not store.shell:
        return [*lines, line]
    head, _, tail = store.shell.partition(f"{store.path.rpartition('.')[2]!r}")
    name = f'"{store.path.rpartition(".")[2]}"'
    arguments = [name, chosen, *([tail.lstrip(", ")[:-1]] if tail.startswith(",") else [])]
    return [*lines, branches.layout.call(head.removesuffix("("), arguments, indent)]


def _stored(branches: Branches, value: ast.expr, like: Value) -> Value:
    try:
        return branches.evaluate(value)
    except Unsafe:
        path = ast.unparse(value)
        if path in branches.made:
            branches.findings.assumes[f"`{path}` has the shape and dtype of what it takes the place of"] = (
                None
            )
            return replace(like, fresh=False)
        raise


def _before(branches: Branches, statement: ast.stmt, mask: str, indent: int) -> list[str]:
    if isinstance(statement, ast.If):
        path = _made_once(statement)
        if path is not None:
            branches.made.add(path)
            call = next(node for node in ast.walk(statement.body[0]) if isinstance(node, ast.Call))
            _same_whenever(branches, call)
            branches.findings.assumes[
                f"`{ast.unparse(call.func)}` has no effect: it is called whichever branch is taken"
            ] = None
            branches.findings.notes[f"`{path}` is made at the first call, whichever branch is taken"] = None
            branches.findings.early.add(path)
            return branches.layout.lines(statement)
    moved = store_of(statement)
    if moved is not None and not moved.shell and _is_move(branches, moved):
        branches.findings.notes[f"`{moved.path}` is moved to the device whichever branch is taken"] = None
        return branches.layout.lines(statement)
    return branches.statement(statement, mask, indent)


def _made_once(statement: ast.If) -> str | None:
    """``self.x`` of ``if not hasattr(self, "x"): self.x[, _] = make(...)``."""
    test = statement.test
    if (
        not isinstance(test, ast.UnaryOp)
        or not isinstance(test.op, ast.Not)
        or not isinstance(test.operand, ast.Call)
        or not isinstance(test.operand.func, ast.Name)
        or test.operand.func.id != "hasattr"
        or len(test.operand.args) != 2
        or statement.orelse
        or len(statement.body) != 1
    ):
        return None
    owner, name = test.operand.args
    made = statement.body[0]
    if not isinstance(name, ast.Constant) or not isinstance(made, ast.Assign) or len(made.targets) != 1:
        return None
    target = made.targets[0]
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    rest = [part for part in parts[1:] if not (isinstance(part, ast.Name) and part.id == "_")]
    path = f"{ast.unparse(owner)}.{name.value!s}"
    if rest or ast.unparse(parts[0]) != path or not isinstance(made.value, ast.Call):
        return None
    return path


def _same_whenever(branches: Branches, call: ast.Call) -> None:
    """Refuse a call whose result depends on when it is made: on a tensor, or on a number that changes."""
    for argument in [*call.args, *(keyword.value for keyword in call.keywords)]:
        branches.evaluate(argument)
        for node in ast.walk(argument):
            inside = isinstance(branches.site.parents.get(node), ast.Attribute)
            if inside or not isinstance(node, ast.Name | ast.Attribute):
                continue
            value = branches.evaluate(node)
            if value.kind == "tensor" or (value.kind == "scalar" and not value.known):
                raise Unsafe(f"`{ast.unparse(node)}` decides what is made, and changes from call to call")


def _is_move(branches: Branches, moved: Store) -> bool:
    """``self.x = self.x.to(device)``: the same value, and nothing at all if it is there already."""
    value = moved.value
    if not (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr == "to"
        and ast.unparse(value.func.value) == moved.path
        and len(value.args) == 1
        and not value.keywords
    ):
        return False
    argument = value.args[0]
    seen = branches.site.seen_before(branches.top).get(ast.unparse(argument))
    if seen is not None:
        return seen.types == ("torch.device",)
    return isinstance(argument, ast.Attribute) and argument.attr == "device"
