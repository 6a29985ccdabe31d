"""``if`` on a tensor that writes into tensors: they are written in every call, and keep what they held."""

from __future__ import annotations

import ast
import copy
from dataclasses import replace

from breakscope.fix.patch import Refusal, Rewrite
from breakscope.fix.predication.branch import rewrite_outermost
from breakscope.fix.predication.condition import split
from breakscope.fix.predication.values import Value, from_seen
from breakscope.fix.predication.where import Branches
from breakscope.fix.rule import Example, Rule, Site, Unsafe
from breakscope.source.dominance import enclosing_statement
from breakscope.source.names import reads_outside, stores
from breakscope.source.syntax import grouped
from breakscope.source.torch_facts import FLOATING, OPS, is_in_place

_EXPANDED = "for an expanded tensor the write raises in every call, and not only where the branch is taken"
_SEQUENCES = ("list", "tuple")


class BranchInPlace(Rule):
    """``if t: x.mul_(2)`` -> ``x.copy_(torch.where(t, x.mul(2), x))``."""

    name = "branch-in-place"
    codes = ("BS101", "BS102", "BS103")
    title = "a write in every call instead of a branch that writes"
    does = "`if t: x.mul_(2)` and `if t: x[m] = 0`, also over a list of tensors: written in every call"
    asks = "where autograd is on: a backward pass that needs what the tensor held before raises"
    after = ("branch-to-where",)
    needs = (
        "The branch does nothing but write into tensors: `x.op_(…)` element by element, `x[mask] = number`.",
        "What is written has the dtype and shape of the tensor, and may be computed in every call.",
    )
    hazards = (
        "The tensor is written in calls in which it was only read, with what it held.",
        "A tensor through which gradients flow is refused; for an expanded one every call raises.",
    )
    rewritten = Example(
        """\
def f(x):
    y = x * 2
    if y.sum() > 0:
        y.clamp_(max=1)
    return y + 1
""",
        """\
def f(x):
    y = x * 2
    y.copy_(torch.where(y.sum() > 0, y.clamp(max=1), y))
    return y + 1
""",
        consent=True,
    )
    left_alone = Example(
        """\
def f(x):
    y = x * 2
    if y.sum() > 0:
        y.resize_(2, 3)
    return y + 1
""",
        why="what `y.resize_(2, 3)` writes is not known",
    )

    def propose(self, site: Site) -> Rewrite | Refusal | None:
        """Rewrite the outermost branch on a tensor around the site that only writes into tensors."""
        if isinstance(enclosing_statement(site, site.node), ast.While):
            return None
        return rewrite_outermost(site, _rewrite)


def _rewrite(site: Site, top: ast.If) -> Rewrite:
    written = [one for one in top.body if not isinstance(one, ast.Pass)]
    if not written or not all(map(_may_write, written)):
        raise Unsafe("the branch does more than write into tensors")
    if top.orelse:
        raise Unsafe("the branch writes into tensors and has another side")
    branches = Branches(site, top)
    condition = split(site, branches.evaluate, top.test)
    several = len(written) > 1 or isinstance(written[0], ast.For)
    mask = branches.layout.unique("condition") if several else condition.text
    column = top.body[0].col_offset if condition.static else top.col_offset
    atom = several or condition.atom
    lines = [f"{mask} = {condition.text}"] if several else []
    writes = _Writes(branches, mask, atom=atom)
    for index, statement in enumerate(top.body):
        lines += branches.layout.comments(top.body, index)
        lines += writes.of(statement, column)
    rewrite = branches.replaced(
        branches.assembled(top, condition, lines), summary="a write in every call instead of the branch"
    )
    rewrite = replace(rewrite, notes=(*rewrite.notes, _EXPANDED))
    if not site.evidence.grad:
        return rewrite
    note = "a backward pass that needs what the tensor held before raises in every call"
    return replace(rewrite, consent=True, notes=(*rewrite.notes, note))


def _may_write(statement: ast.stmt) -> bool:
    match statement:
        case ast.For(body=body, orelse=[]):
            return all(isinstance(one, ast.Expr) and _may_write(one) for one in body)
        case ast.Expr(ast.Call(func=ast.Attribute(attr=method))):
            return is_in_place(method)
        case ast.Assign(targets=[ast.Subscript()]):
            return True
    return False


class _Writes:
    """Renders the statements of a branch that write.

    Args:
        mask: source of the condition. atom: it needs no parentheses beside ``&``.
    """

    def __init__(self, branches: Branches, mask: str, *, atom: bool) -> None:
        self.branches, self.mask, self.atom = branches, mask, atom
        self.site, self.layout = branches.site, branches.layout

    def of(self, statement: ast.stmt, column: int) -> list[str]:
        match statement:
            case ast.For(target=ast.Name(id=name), iter=iterated):
                return self._loop(statement, name, iterated, column)
            case ast.Expr(ast.Call(func=ast.Attribute()) as call):
                return self._method(statement, call, column)
            case ast.Assign(targets=[ast.Subscript() as target], value=value):
                return self._store(statement, target, value)
            case ast.Pass():
                return []
        raise Unsafe("the branch does more than write into tensors")

    def _loop(self, loop: ast.For, name: str, iterated: ast.expr, column: int) -> list[str]:
        """A loop over tensors, made in every call."""
        seen = self.branches.evaluate.seen_at_entry(ast.unparse(iterated))
        if seen is None or not seen.only("other") or not {*_short(seen.types)} <= {*_SEQUENCES}:
            raise Unsafe(f"`{self.site.text(iterated)}` was not seen to be a list or tuple")
        elements = self.site.seen_before(loop.body[0]).get(name)
        if reads_outside(self.site, [loop], name) or len(stores(self.site, name)) > 1:
            raise Unsafe(f"`{name}` is used outside of the loop as well")
        value = from_seen(elements, name, self.site.evidence.grad) if elements is not None else None
        if value is None:
            raise Unsafe(f"`{name}` was not always of one kind in the recorded run")
        self.branches.evaluate.names[name] = value
        lines = [f"for {name} in {self.site.text(iterated)}:"]
        unit = " " * self.layout.unit
        for index, statement in enumerate(loop.body):
            rendered = [*self.layout.comments(loop.body, index), *self.of(statement, column + len(unit))]
            lines += [f"{unit}{line}" for text in rendered for line in text.split("\n")]
        return lines

    def _method(self, statement: ast.stmt, call: ast.Call, column: int) -> list[str]:
        """``x.op_(…)``: what it gives, or what ``x`` held, is copied into ``x``."""
        assert isinstance(call.func, ast.Attribute)
        tensor = self._tensor(call.func.value)
        method = call.func.attr.removesuffix("_")
        op = OPS.get(method)
        if op is None or op.view or op.shape not in ("broadcast", "first") or method in ("flip", "roll"):
            raise Unsafe(f"what `{self.site.text(call)}` writes is not known")
        plain = copy.deepcopy(call)
        assert isinstance(plain.func, ast.Attribute)
        plain.func.attr = method
        value = self.branches.evaluate(plain)
        if value.dtype != tensor.dtype or value.shapes != tensor.shapes or value.grad or value.carries:
            raise Unsafe(f"what `{self.site.text(call)}` writes has not the dtype and shape of the tensor")
        name = self.site.text(call.func.value)
        start, end = self.site.offsets(call.func)[1], self.site.offsets(call)[1]
        arguments = self.site.source[start:end]
        if "\n" in arguments:
            raise Unsafe("a write goes over several lines")
        text = self.branches.where(self.mask, f"{name}.{method}{arguments}", name, column + len(name) + 7)
        return [f"{name}.copy_({text}){self.layout.trailing(statement)}"]

    def _store(self, statement: ast.stmt, target: ast.Subscript, value: ast.expr) -> list[str]:
        """``x[m] = number``: the mask selects nothing where the branch is not taken."""
        self._tensor(target.value)
        by, number = self.branches.evaluate(target.slice), self.branches.evaluate(value)
        if by.kind != "tensor" or by.dtype != "bool":
            raise Unsafe(f"`{self.site.text(target)}` is not selected by a mask")
        if number.kind != "scalar":
            raise Unsafe(f"what is stored into `{self.site.text(target)}` is no number")
        mask = self.mask if self.atom else f"({self.mask})"
        selected = grouped(target.slice, self.site.text(target.slice))
        self.branches.findings.wheres += 1
        return self.layout.lines(statement, (target.slice, f"{selected} & {mask}"))

    def _tensor(self, node: ast.expr) -> Value:
        """The tensor that is written.

        Raises:
            Unsafe: it is none, or gradients flow to it.
        """
        value = self.branches.evaluate(node)
        if not isinstance(node, ast.Name) or value.kind != "tensor" or value.dtype is None:
            raise Unsafe(f"`{self.site.text(node)}` was not seen as a plain tensor when the branch began")
        if value.grad or value.carries:
            raise Unsafe(f"gradients flow to `{self.site.text(node)}`, which the branch writes")
        if value.dtype in FLOATING and value.shapes is None:
            raise Unsafe(f"the shape of `{self.site.text(node)}` is not known")
        return value


def _short(types: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.removeprefix("builtins.") for name in types)
