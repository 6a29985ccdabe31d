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

_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


class MaskToWhere(Rule):
    """``x[m].sum()`` -> ``torch.where(m, x, 0).sum()``, and ``o[m] = y[m]`` or ``o[m] += v`` likewise."""

    name = "mask-to-where"
    codes = ("BS103", "BS105")
    title = "torch.where instead of indexing with a mask"
    does = "`x[m].sum()`, `o[m] = f(x[m])`, `o[m] += v` over the whole tensor"
    needs = (
        "The mask is a bool tensor of the shape of what it selects from, or, for `o[m] += v`, begins it.",
        "The selected elements are summed or averaged as a whole, or each is worked on by itself.",
        "What changes selected elements by + - * / is the same for all of them.",
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
        torch = site.torch
        statement = enclosing_statement(site, site.node)
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Subscript):
            return _added(site, statement, statement.target, torch)
        selection = _selection(site)
        if selection is None:
            return None
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


def _added(site: Site, statement: ast.AugAssign, target: ast.Subscript, torch: str) -> Rewrite | None:
    """``o[m] += v``: computed for all elements, and kept where the mask is set."""
    seen, by = site.seen(target.value), site.seen(target.slice)
    if seen is None or by is None or not by.only("tensor") or by.dtypes != {"bool"}:
        return None
    sign = _SIGNS.get(type(statement.op))
    if sign is None:
        raise Unsafe("what is done to the selected elements is none of + - * /")
    if not seen.only("tensor") or len(seen.dtypes) != 1 or not isinstance(target.value, ast.Name):
        raise Unsafe("what the mask selects from is not a name that always holds a tensor of one dtype")
    dtype = next(iter(seen.dtypes))
    ranks = {(len(shape), len(mask)) for shape in seen.shapes for mask in by.shapes}
    rank, first = next(iter(ranks))
    if len(ranks) != 1 or not first or {shape[:first] for shape in seen.shapes} != by.shapes:
        raise Unsafe("the mask has not the shape of the first dimensions of what it selects from")
    rest = rank - first
    _same_for_all(site, statement.value, seen, rest)
    added = site.seen(statement.value)
    summed = added is not None and added.requires_grad
    exact = not (seen.requires_grad or summed)
    if sign in "*/" and not (exact or isinstance(statement.value, ast.Constant)):
        # Its gradient needs what it multiplied, which is overwritten, and is NaN where that is infinite.
        raise Unsafe("gradients flow through what the selected elements are multiplied with")
    if sign == "/" and dtype not in FLOATING:
        raise Unsafe("whole numbers are divided in place, which raises")
    name, value, mask = (site.text(one) for one in (target.value, statement.value, target.slice))
    if rest:
        mask = f"{grouped(target.slice, mask)}[{', '.join(['...', *['None'] * rest])}]"
    text = f"{name}.copy_({torch}.where({mask}, {name} {sign} {grouped(statement.value, value)}, {name}))"
    start, end = site.offsets(statement)
    return Rewrite(
        edits=(Edit(start, end, text),),
        summary="torch.where instead of a change of selected elements",
        notes=("the gradient of what is added is summed in another order",) if summed else (),
        assumes=("the mask keeps having the first dimensions of the tensor, as in the recorded run",),
        exact="bitwise" if exact else "reassociated",
    )


def _same_for_all(site: Site, value: ast.expr, seen: Seen, rest: int) -> None:
    """Refuse a value that differs among selected elements of ``rest`` dimensions, or is of another dtype."""
    (dtype,), added = seen.dtypes, site.seen(value)
    if isinstance(value, ast.Constant):
        alike = type(value.value) is int or (type(value.value) is float and dtype in FLOATING)
    elif added is None:
        alike = False
    elif added.only("tensor"):
        fits = all(len(one) <= rest or (len(one) == rest + 1 and one[0] == 1) for one in added.shapes)
        alike = fits and added.dtypes == seen.dtypes
    else:
        alike = added.only("int", "float") if dtype in FLOATING else added.only("int")
    if not alike:
        raise Unsafe("what changes the selected elements differs among them, or is of another dtype")


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
