"""Turns of a loop over what a mask has somewhere: all are made, and write nowhere where it has nothing.

``out[mask[:, :, e]] = expert(x[mask[:, :, e]])`` for each expert that got a token: which did only data says.
Where none did, no element is read, and none is written.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from breakscope.fix.all_turns import (
    HAZARDS,
    SCOPES,
    all_turns_made,
    found_by_nonzero,
    loop_around,
    removed_lines,
    sums_all_but,
)
from breakscope.fix.layout import Layout
from breakscope.fix.patch import Edit, Refusal, Rewrite
from breakscope.fix.rule import Example, Rule, Site, Unsafe
from breakscope.source.dominance import block_of, enclosing_statement
from breakscope.source.names import dotted, names_in, own_nodes, reads_outside, rebound_elsewhere
from breakscope.source.syntax import shown

_EXPERTS = """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.gate = nn.Linear(4, 3)

    def forward(self, x):
        out = torch.zeros(x.shape, dtype=x.dtype, device=x.device)
        mask = F.one_hot(self.gate(x).argmax(-1), num_classes=3).bool()
{loop}
            out[mask[:, e]] = self.experts[e](x[mask[:, e]])
        return out"""
_HIT = """\
        hit = torch.nonzero(mask.sum(dim=0), as_tuple=True)[0].tolist()
        for e in hit:"""
_ALL = "        for e in range(mask.shape[-1]):"
_CALLS = ("torch.randn(3, 4)", "torch.randn(5, 4)", "torch.randn(2, 4)")


@dataclass(frozen=True, slots=True)
class _Turn:
    """``out[mask[:, e]] = value``: all that a turn of a loop does, with the mask by its name."""

    mask: ast.Name
    where: str
    target: ast.Name
    value: ast.expr


class MaskedTurn(Rule):
    """``for e in hit.tolist(): out[mask[:, e]] = f(x[mask[:, e]])`` -> the same over ``range(n)``."""

    name = "masked-turn"
    codes = ("BS101", "BS102", "BS103", "BS105", "BS115", "BS301")
    title = "all turns of a loop, writing nowhere where a mask holds nothing"
    does = "`for e in hit.tolist(): out[mask[:, e]] = f(x[mask[:, e]])`: all turns are made"
    asks = "where autograd is on: a gradient changes from none to zero"
    before = ("capture-flag", "custom-op", "branch-to-where", "mask-to-where")
    needs = (
        "A turn does nothing but to write at the places of a mask of bools, its last index the turn's.",
        "The list of turns is `torch.nonzero(mask.sum(…), as_tuple=True)[0].tolist()`, made before the loop.",
        "What is written is computed with operators of tensors, and modules called at those places.",
    )
    hazards = HAZARDS
    rewritten = Example(_EXPERTS.format(loop=_HIT), _EXPERTS.format(loop=_ALL), calls=_CALLS, consent=True)
    left_alone = Example(
        _EXPERTS.format(loop=_HIT.replace("mask.sum(dim=0)", "mask.sum(dim=0) > 1")),
        why="is not certainly the list of turns that have something",
        calls=_CALLS,
    )

    def propose(self, site: Site) -> Rewrite | Refusal | None:
        """Make all turns of the loop at the site, or of the loop over the list that the site makes."""
        loop = _loop_of(site)
        turn = None if loop is None else _turn(site, loop)
        if loop is None or turn is None:
            return None
        made = _made_before(site, loop)
        if made is None:
            return None
        _refuse_other_effects(site, loop, turn, made)
        listed = made[-1].value if made else loop.iter
        if not _lists_hits(site, listed, made, turn.mask):
            text = shown(site, listed, None)
            raise Unsafe(f"`{text}` is not certainly the list of turns that have something to write")
        layout = Layout(site)
        start, end = site.offsets(loop.iter)
        edits = [removed_lines(site, layout, statement) for statement in made]
        edits.append(Edit(start, end, f"range({turn.mask.id}.shape[-1])"))
        return all_turns_made(site, edits, "and write nowhere", _counts(site, turn.mask))


def _loop_of(site: Site) -> ast.For | None:
    """The loop around the site, or the one behind it in its block that it may be made for."""
    if around := loop_around(site):
        return around
    block, index = block_of(site, enclosing_statement(site, site.node))
    return next((one for one in block[index + 1 : index + 3] if isinstance(one, ast.For)), None)


def _turn(site: Site, loop: ast.For) -> _Turn | None:
    """What a turn does, if it is one statement that writes at a mask's places."""
    if not isinstance(loop.target, ast.Name) or len(loop.body) != 1:
        return None
    match loop.body[0]:
        case ast.Assign(targets=[ast.Subscript(value=ast.Name() as target, slice=where)], value=value):
            mask = _mask_of(site, where, loop.target.id)
            return None if mask is None else _Turn(mask, ast.unparse(where), target, value)
    return None


def _mask_of(site: Site, where: ast.expr, turn: str) -> ast.Name | None:
    """``mask`` of ``mask[:, :, e]``, a tensor of bools whose last index is the turn's."""
    match where:
        case ast.Subscript(value=ast.Name() as mask, slice=ast.Tuple(elts=[*wholes, ast.Name(id=last)])):
            seen = site.seen(mask)
            whole = all(isinstance(one, ast.Slice) and ast.unparse(one) == ":" for one in wholes)
            if last != turn or not whole or seen is None or not seen.only("tensor"):
                return None
            counts = {len(shape) for shape in seen.shapes}
            return mask if seen.dtypes == {"bool"} and counts == {len(wholes) + 1} else None
    return None


def _made_before(site: Site, loop: ast.For) -> list[ast.Assign] | None:
    """The one or two statements directly before a loop that make the list it runs over; None: others do."""
    if not isinstance(loop.iter, ast.Name):
        return []
    block, index = block_of(site, loop)
    name = loop.iter.id
    made: list[ast.Assign] = []
    for statement in reversed(block[max(0, index - 2) : index]):
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            break
        target = statement.targets[0]
        if not isinstance(target, ast.Name) or target.id != name:
            break
        made.insert(0, statement)
        reads = [one for one in names_in([statement.value]) if one == name]
        if not reads:
            return made
    return None


def _lists_hits(site: Site, listed: ast.expr, made: list[ast.Assign], mask: ast.Name) -> bool:
    """Whether an expression is ``nonzero(mask.sum(…), as_tuple=True)[0].tolist()``, as it is or by steps."""
    match listed:
        case ast.Call(func=ast.Attribute(attr="tolist"), args=[], keywords=[]):
            of = found_by_nonzero(site, listed)
        case _:
            return False
    if of is None:
        return False
    if isinstance(of, ast.Name) and len(made) == 2:
        of = made[0].value
    match of:
        case ast.Compare(left=left, ops=[ast.Gt()], comparators=[ast.Constant(value=0)]):
            of = left
    return _sums_all_but_last(site, of, mask)


def _sums_all_but_last(site: Site, total: ast.expr, mask: ast.Name) -> bool:
    """Whether a sum of bools, or ``any``, is over all dimensions of a mask but its last."""
    match total:
        case ast.Call(func=ast.Attribute(value=of, attr="sum" | "any"), args=given, keywords=named):
            given = [*given, *(one.value for one in named if one.arg in ("dim", "axis"))]
            if len(given) != 1 or len(named) > 1:
                return False
        case _:
            return False
    summed = site.seen(of)
    match of:
        case ast.Call(func=ast.Attribute(value=before, attr="reshape" | "view")):
            of = before
    whole = site.seen(of)
    if not isinstance(of, ast.Name) or of.id != mask.id or summed is None or whole is None:
        return False
    if len({shape[-1] for shape in (*summed.shapes, *whole.shapes) if shape}) != 1:
        return False
    return sums_all_but(-1, given[0], summed.shapes)


def _counts(site: Site, mask: ast.Name) -> tuple[str, ...]:
    """Names under which a count of turns is known: what a turn takes was made for as many.

    The mask may come from another module, whose own attribute says how long its last dimension is.
    """
    seen = site.seen(mask)
    lasts = set() if seen is None else {shape[-1] for shape in seen.shapes}
    named = [node for node in own_nodes(site.function) if isinstance(node, ast.Attribute | ast.Name)]
    found: dict[str, None] = {}
    for node in named:
        value = site.seen(node)
        if value is not None and site.is_integer(node) and set(value.values) <= lasts and value.values:
            found[node.attr if isinstance(node, ast.Attribute) else node.id] = None
    return tuple(found)


def _refuse_other_effects(site: Site, loop: ast.For, turn: _Turn, made: list[ast.Assign]) -> None:
    """Let a turn that has nothing to write pass only if nothing comes of it.

    Raises:
        Unsafe: something may.
    """
    assert isinstance(loop.target, ast.Name)
    if loop.orelse or loop.type_comment:
        raise Unsafe("the loop has an `else`")
    if turn.target.id == turn.mask.id:
        raise Unsafe(f"`{turn.mask.id}` is changed in the loop")
    for name in (loop.target.id, *([loop.iter.id] if isinstance(loop.iter, ast.Name) else [])):
        if reads_outside(site, [loop, *made], name) or rebound_elsewhere(site.function, name):
            raise Unsafe(f"`{name}` is read outside of the loop")
    for node in ast.walk(turn.value):
        if isinstance(node, SCOPES):
            raise Unsafe(f"`{shown(site, turn.value, None)}` may do something where nothing is selected")
        if isinstance(node, ast.Call) and not _is_pure_call(site, node, turn.where):
            raise Unsafe(f"`{shown(site, node, None)}` may do something where nothing is selected")


def _is_pure_call(site: Site, call: ast.Call, selected: str) -> bool:
    """Whether a call changes nothing: an operator, a name looked up, or a module at the mask's places."""
    name = dotted(site, call.func)
    if name is not None and name.startswith("torch."):
        return not name.endswith("_")
    if isinstance(call.func, ast.Name) and call.func.id in ("getattr", "str"):
        return True
    if isinstance(call.func, ast.Attribute):
        owner = call.func.value
        if isinstance(owner, ast.Constant) and isinstance(owner.value, str):
            return call.func.attr == "format"
        if site.is_tensor(owner):
            return not call.func.attr.endswith("_")
    seen = site.seen(call.func)
    given = [*call.args, *(one.value for one in call.keywords)]
    no_rows = any(
        isinstance(node, ast.Subscript) and ast.unparse(node.slice) == selected
        for one in given
        for node in ast.walk(one)
    )
    return seen is not None and seen.only("module") and no_rows
