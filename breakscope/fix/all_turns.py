"""What rules have in common that make all turns of a loop, also those that have nothing to do."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence

from breakscope.fix.layout import Layout
from breakscope.fix.patch import UNWANTED, Edit, Rewrite
from breakscope.fix.rule import Site, Unsafe
from breakscope.source.dominance import enclosing_statement
from breakscope.source.names import dotted, names_in

ALL_MADE = "turns that select nothing are made as well"
COUNTED = "there is as much to take for the turns as `{name}` says, as in the recorded run"
LOST = "parameters that only turns left out use get a gradient of zero where they got none"
EMPTY = "what a turn calls takes a tensor of no rows, and changes nothing of its own"
SHAPES = "capture_dynamic_output_shape_ops"
SCOPES = ast.NamedExpr | ast.Yield | ast.YieldFrom | ast.Await | ast.Lambda | ast.comprehension
HAZARDS = (
    "All turns are made in every call: work where there are many and few are hit.",
    "What a turn calls must take a tensor of no rows; the rewrite says so.",
    "Parameters of a turn left out get a gradient of zero where they got none, if autograd is on.",
)


def all_turns_made(
    site: Site,
    edits: Sequence[Edit],
    where: str,
    counts: tuple[str, ...],
    notes: Sequence[str] = (),
    never: Sequence[ast.expr] = (),
    *,
    consent: bool = False,
) -> Rewrite:
    """The rewrite that makes all turns.

    Args:
        where: what turns do that select nothing, as the summary has it.
        counts: names that say how many turns there are.
        consent: whether it needs consent for more than the gradients that autograd gives.
    """
    wanted = site.evidence.grad or switches_autograd(site)
    return Rewrite(
        edits=tuple(edits),
        summary=f"all turns of the loop are made, {where} where nothing is selected",
        notes=(ALL_MADE, *([LOST] if wanted else []), *notes),
        assumes=(EMPTY, *([] if wanted else [UNWANTED]), *(COUNTED.format(name=name) for name in counts)),
        consent=wanted or consent,
        differs=True,
        zeros=True,
        config={SHAPES: True},
        numbers=counts,
        never=tuple(map(ast.unparse, never)),
    )


def loop_around(site: Site) -> ast.For | None:
    """The loop that the site stands in."""
    above: ast.AST | None = enclosing_statement(site, site.node)
    while above is not None and above is not site.function:
        if isinstance(above, ast.For):
            return above
        above = site.parents.get(above)
    return None


def found_by_nonzero(site: Site, listed: ast.expr) -> ast.expr | None:
    """``t`` of ``t.nonzero(as_tuple=True)[0].tolist()`` and of ``torch.nonzero(t, …)[0].tolist()``."""
    match listed:
        case ast.Call(
            func=ast.Attribute(
                value=ast.Subscript(
                    value=ast.Call(
                        func=ast.Attribute(attr="nonzero") as found,
                        args=given,
                        keywords=[ast.keyword(arg="as_tuple", value=ast.Constant(value=True))],
                    ),
                    slice=ast.Constant(value=0),
                ),
            )
        ):
            return given[0] if dotted(site, found) == "torch.nonzero" and len(given) == 1 else found.value
    return None


def sums_all_but(kept: int, dims: ast.expr, shapes: Collection[Sequence[int]]) -> bool:
    """Whether a sum over ``dims`` of such tensors leaves one dimension: the first (0) or the last (-1)."""
    try:
        summed = ast.literal_eval(dims)
    except ValueError:
        return False
    summed = summed if isinstance(summed, tuple | list) else (summed,)
    counts = {len(shape) for shape in shapes}
    return len(counts) == 1 and all(
        sorted(number % count for number in summed) == [n for n in range(count) if n != kept % count]
        for count in counts
        if count
    )


def switches_autograd(site: Site) -> bool:
    """Whether the function itself switches autograd, so that it may be on where a call begins without."""
    modes = {"enable_grad", "set_grad_enabled", "inference_mode"}
    named = {node.attr for node in ast.walk(site.function) if isinstance(node, ast.Attribute)}
    return bool(modes & (named | names_in([site.function])))


def removed_lines(site: Site, layout: Layout, statement: ast.stmt) -> Edit:
    """Take a statement away with its lines, and the empty line before it if another is behind it."""
    start, end = site.starts[statement.lineno - 1], layout.end(statement) + 1
    if site.source[start : site.offsets(statement)[0]].strip() or site.source[end - 1 : end].strip():
        raise Unsafe("another statement stands on its line")
    before = site.source[:start].rstrip(" ")
    if before.endswith("\n\n") and site.source[end:].lstrip(" ").startswith("\n"):
        end = end + site.source[end:].index("\n") + 1
    return Edit(start, end, "")
