"""Boolean masks that make shapes depend on data: the same over the whole tensor."""

from __future__ import annotations

import ast
import copy

from breakscope.fix.patch import Edit, Refusal, Rewrite, apply
from breakscope.fix.predication.interpreter import Evaluator
from breakscope.fix.rule import Example, Rule, Site, Unsafe
from breakscope.inside.record.evidence import Seen
from breakscope.source.dominance import enclosing_statement
from breakscope.source.names import dotted
from breakscope.source.syntax import grouped
from breakscope.source.torch_facts import FLOATING, OPS, STEADY


class MaskToWhere(Rule):
    """``x[m].sum()`` -> ``torch.where(m, x, 0).sum()``, and ``o[m] = y[m]`` likewise."""

    name = "mask-to-where"
    codes = ("BS103", "BS105")
    title = "torch.where instead of indexing with a mask"
    does = "`x[m].sum()`, `o[m] = f(x[m])` over the whole tensor"
    needs = (
        "The mask is a bool tensor of the shape of what it selects from.",
        "The selected elements are summed or averaged as a whole, or each is worked on by itself.",
    )
    hazards = (
        "Sums are taken in another order: equal within rounding, not bitwise.",
        "What is computed is computed for the elements that the mask leaves out as well.",
    )
    rewritten = Example(
        """\
def f(x):
    return x[x > 0].sum()
""",
        """\
def f(x):
    return torch.where(x > 0, x, 0).sum()
""",
    )
    left_alone = Example(
        """\
def f(x):
    return x[x > 0].max()
""",
        why="`max` of the selected elements has no exact form over all of them",
    )

    def propose(self, site: Site) -> Rewrite | Refusal | None:
        """Rewrite the reduction or the assignment that holds the masked selection."""
        selection = _selection(site)
        if selection is None:
            return None
        torch = site.torch
        statement = enclosing_statement(site, selection[0])
        if isinstance(statement, ast.Assign) and _is_store(statement):
            return _assignment(site, statement, torch)
        return _reduction(site, *selection, torch)


def _selection(site: Site) -> tuple[ast.expr, ast.expr, ast.expr] | None:
    """The expression ``x[m]`` or ``masked_select`` at the site, with ``x`` and ``m``."""
    statement = enclosing_statement(site, site.node)
    nodes = [site.node, *ast.walk(site.node), site.parents[site.node], *ast.walk(statement)]
    for node in nodes:
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and _is_mask(site, node.slice):
            return node, node.value, node.slice
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.keywords:
            if node.func.attr != "masked_select":
                continue
            if dotted(site, node.func) == "torch.masked_select" and len(node.args) == 2:
                return node, node.args[0], node.args[1]
            if len(node.args) == 1 and site.is_tensor(node.func.value):
                return node, node.func.value, node.args[0]
    return None


def _is_mask(site: Site, node: ast.expr) -> bool:
    seen = site.seen(node)
    return seen is not None and seen.only("tensor") and seen.dtypes == {"bool"}


def _fits(site: Site, value: ast.expr, mask: ast.expr) -> Seen:
    seen, by = site.seen(value), site.seen(mask)
    if seen is None or by is None or not seen.only("tensor") or len(seen.dtypes) != 1:
        raise Unsafe("what the mask selects from was not always a tensor of one dtype")
    if seen.shapes != by.shapes or () in seen.shapes:
        raise Unsafe("the mask has not the shape of what it selects from")
    return seen


def _reduction(site: Site, selected: ast.expr, value: ast.expr, mask: ast.expr, torch: str) -> Rewrite:
    attribute = site.parents[selected]
    call = site.parents.get(attribute)
    if (
        not isinstance(attribute, ast.Attribute)
        or not isinstance(call, ast.Call)
        or call.func is not attribute
        or call.args
        or call.keywords
    ):
        raise Unsafe("the selected elements are used as a tensor whose shape depends on the data")
    seen = _fits(site, value, mask)
    dtype = next(iter(seen.dtypes))
    x, m = site.text(value), site.text(mask)
    if attribute.attr == "sum" and dtype != "bool":
        text = f"{torch}.where({m}, {x}, 0).sum()"
    elif attribute.attr == "mean" and dtype in FLOATING:
        if dtype not in ("float32", "float64"):
            raise Unsafe(f"the mean of {dtype} is rounded otherwise when it is taken of a sum")
        count = grouped(mask, m)
        text = f"({torch}.where({m}, {x}, 0).sum() / {count}.sum())"
    elif attribute.attr == "any" and dtype == "bool":
        text = f"{torch}.where({m}, {x}, False).any()"
    elif attribute.attr == "all" and dtype == "bool":
        text = f"{torch}.where({m}, {x}, True).all()"
    else:
        raise Unsafe(f"`{attribute.attr}` of the selected elements has no exact form over all of them")
    if attribute.attr == "mean" and not isinstance(site.parents[call], ast.BinOp | ast.Attribute):
        text = text[1:-1]
    start, end = site.offsets(call)
    exact = dtype not in FLOATING
    return Rewrite(
        edits=(Edit(start, end, text),),
        summary="a masked reduction instead of a selection",
        notes=() if exact else ("the sum is taken in another order",),
        assumes=("the mask keeps having the shape of the tensor, as in the recorded run",),
        exact="bitwise" if exact else "reassociated",
    )


def _is_store(statement: ast.Assign) -> bool:
    return len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Subscript)


def _assignment(site: Site, statement: ast.Assign, torch: str) -> Rewrite:
    target = statement.targets[0]
    if not isinstance(target, ast.Subscript):
        raise Unsafe("the selected elements are used as a tensor whose shape depends on the data")
    mask = ast.dump(target.slice)
    seen = _fits(site, target.value, target.slice)
    evaluate = Evaluator(site, statement)
    edits: list[Edit] = []
    base, _ = site.offsets(statement.value)
    replaced = _Unmasked(mask)
    value = evaluate(
        ast.fix_missing_locations(
            ast.copy_location(replaced.visit(copy.deepcopy(statement.value)), statement.value)
        )
    )
    if replaced.others or not replaced.found:
        raise Unsafe("the value that is stored is not made of elements that the same mask selects")
    _each_by_itself(site, statement.value)
    if value.dtype not in seen.dtypes or value.shapes != seen.shapes:
        raise Unsafe("the value that is stored has not the shape and dtype of the tensor it goes into")
    assumes = ["the mask keeps having the shape of the tensor, as in the recorded run"]
    if value.slope > STEADY and (value.grad or seen.requires_grad):
        raise Unsafe("gradients flow here, and they may be NaN for elements that the mask leaves out")
    if value.slope > STEADY:
        assumes.append("no gradient flows through the assignment (none did in the recorded run)")
    source = site.source[base : site.offsets(statement.value)[1]]
    for node in ast.walk(statement.value):
        if isinstance(node, ast.Subscript) and ast.dump(node.slice) == mask:
            start, end = site.offsets(node)
            edits.append(Edit(start - base, end - base, site.text(node.value)))
    name, by = site.text(target.value), site.text(target.slice)
    text = f"{name}.copy_({torch}.where({by}, {apply(source, edits)}, {name}))"
    start, end = site.offsets(statement)
    return Rewrite(
        edits=(Edit(start, end, text),),
        summary="torch.where instead of an assignment to selected elements",
        assumes=tuple(assumes),
    )


class _Unmasked(ast.NodeTransformer):
    """``y[m]`` -> ``y`` for one mask."""

    def __init__(self, mask: str) -> None:
        self.mask, self.found, self.others = mask, 0, False

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Take the selection away."""
        if ast.dump(node.slice) != self.mask:
            self.others = True
            return node
        self.found += 1
        return node.value


def _each_by_itself(site: Site, value: ast.expr) -> None:
    for node in ast.walk(value):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        op = OPS.get(name)
        if (
            op is None
            or op.shape not in ("broadcast", "first")
            or name in ("softmax", "log_softmax", "flip", "roll", "tril", "triu")
        ):
            raise Unsafe(f"`{site.text(node)}` does not work on each element by itself")
