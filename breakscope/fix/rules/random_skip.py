"""Layer drop: code that a random draw skips runs in any case, and ``torch.where`` keeps the old value."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from breakscope.fix.layout import Layout, indented
from breakscope.fix.patch import Edit, Refusal, Rewrite
from breakscope.fix.predication import skips
from breakscope.fix.predication.condition import split
from breakscope.fix.predication.interpreter import Evaluator
from breakscope.fix.predication.skips import Skip
from breakscope.fix.rule import Example, Rule, Site, Unsafe
from breakscope.inside.record.evidence import Seen
from breakscope.source.dominance import bound_before, enclosing_statement
from breakscope.source.names import (
    first_use,
    loads,
    names_in,
    reads_of,
    reads_outside,
    rebound_elsewhere,
)
from breakscope.source.syntax import grouped, shown

_NOTES = (
    "what is skipped runs all the same and draws its random numbers: those drawn after it differ",
    "every step takes as long as one that skips nothing",
    "parameters that only skipped code uses get a gradient of zero where they got none",
    "gradients become NaN if what is skipped meets inf or NaN",
)
_OBJECT = "`{name}` is given its new object though what gives it was skipped"
_LAYERS = """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.layerdrop = 0.5

    def forward(self, x, attentions=False):
        for layer in self.layers:
"""
_CALLS = ("torch.randn(2, 4)",) * 3


class RandomSkip(Rule):
    """``if torch.rand([]) < p: continue`` -> the layer runs, and ``torch.where`` drops what it gives."""

    name = "random-skip"
    codes = ("BS101",)
    title = "torch.where instead of skipping code by a random draw (layer drop)"
    does = "layer drop: what a draw skips runs in any case, and `torch.where` drops what it gives"
    asks = "always: later random numbers differ"
    consent = True
    before = ("guard-in-graph", "loop-exit")
    needs = (
        "A number that torch draws in the same function decides alone, or after what Python decides.",
        "What is skipped only gives values to names.",
        "Those that are read later are tensors, and keep their shape and dtype.",
    )
    hazards = (
        "The skipped code runs in every step: random numbers after it differ, and it costs its time.",
        "What a skipped call does besides giving a value (hooks, counters, caches) is done all the same.",
        "Where nothing is drawn, as in eval mode, nothing changes.",
    )
    rewritten = Example(
        _LAYERS
        + """\
            if torch.rand(()) < 0.5:
                continue
            y = layer(x)
            x = x + y
        return x""",
        _LAYERS
        + """\
            dropped = torch.rand(()) < 0.5
            x_kept = x.clone()
            y = layer(x)
            x = x + y
            x = torch.where(dropped, x_kept, x)
        return x""",
        calls=_CALLS,
        consent=True,
    )
    left_alone = Example(
        _LAYERS
        + """\
            if torch.rand([]) < 0.5:
                continue
            self.last = layer(x)
        return x""",
        why="does more than give values to names: `self.last",
        calls=_CALLS,
    )

    def propose(self, site: Site) -> Rewrite | Refusal | None:
        """Rewrite the skip that the branch at the site decides."""
        statement = enclosing_statement(site, site.node)
        if isinstance(statement, ast.Assign):
            branch = skips.branch_of_flag(site, statement)
            if branch is None:
                return None
            statement = branch
        if not isinstance(statement, ast.If):
            return None
        skip = skips.find(site, statement)
        return None if skip is None else _rewrite(site, skip)


@dataclass(slots=True)
class _Skipped:
    """What the skipped statements do, going by the recorded run.

    Attributes:
        stored: names that they give values to. never: tests that were never true, so that what they guard is
            not known.
        calls: functions that are called.
    """

    stored: dict[str, None] = field(default_factory=dict)
    never: dict[str, None] = field(default_factory=dict)
    calls: bool = False


def _rewrite(site: Site, skip: Skip) -> Rewrite:
    torch = site.torch
    site.refuse_frame_readers()
    skipped = _Skipped()
    _walk(site, skip.block, skipped)
    behind = _Skipped(never=skipped.never)
    _walk(site, list(skip.rest), behind)
    outlasting = [name for name in {**skipped.stored, **behind.stored} if not _temporary(site, skip, name)]
    objects = [name for name in outlasting if _is_object(site, skip, name)]
    kept = [name for name in outlasting if name not in objects]
    if not kept:
        raise Unsafe("what is skipped gives nothing that is used")
    for name in kept:
        if name in behind.stored:
            raise Unsafe(f"`{name}` is given a value behind the `continue`")
    unread = _constants_unread(site, skip)
    optional = {name for name in kept if _one_type(site, skip, name)}
    layout = Layout(site)
    flag = skip.flag or layout.unique("dropped")
    olds = {name: layout.unique(f"{name}_kept") for name in kept}
    # A copy, because what is skipped may write into it.
    before = [
        f"{old} = {f'None if {name} is None else ' if name in optional else ''}{name}.clone()"
        for name, old in olds.items()
    ]
    after = [f"{name} = {torch}.where({flag}, {old}, {name})" for name, old in olds.items()]
    setting, always = _setting(site, skip, layout, flag)
    chosen = skips.chosen_flag(site, skip)
    if always and optional:
        raise Unsafe(f"`{min(optional)}` is None where code may be skipped")
    if not always:
        unless = f" and not {grouped(skip.unless, site.text(skip.unless))}" if skip.unless is not None else ""
        after = [f"if {flag} is not False{unless}:", *(" " * layout.unit + line for line in after)]
    edits = _edits(site, skip, layout, flag, setting, before, after)
    if chosen is not None:
        edits.append(Edit(*site.offsets(chosen), _flag_without_choice(site, chosen)))
    never = tuple(
        f"`{test}` never held in the recorded run; what it guards would be done for skipped code too"
        for test in skipped.never
    )
    return Rewrite(
        edits=tuple(edits),
        summary="what a random draw skips runs in any case, and torch.where drops what it gives",
        notes=(*_NOTES, *never, *(_OBJECT.format(name=name) for name in objects)),
        assumes=(
            *(f"`{name}` keeps its shape and dtype in what is skipped" for name in kept),
            *(f"`{name}` is not read after code that was skipped, as in the recorded run" for name in unread),
        ),
        consent=True,
        differs=True,
        unaliased=True,
    )


def _setting(site: Site, skip: Skip, layout: Layout, flag: str) -> tuple[list[str], bool]:
    """The line that says whether the code is skipped; and whether that is a tensor in every call."""
    chosen = skips.chosen_flag(site, skip)
    if chosen is not None:
        return [], not split(site, Evaluator(site, enclosing_statement(site, chosen)), chosen.test).static
    if skip.test is None:
        seen = [site.seen(one) for one in reads_of(site, flag)]
        if any(one is not None and not _tensor_or_false(one) for one in seen):
            raise Unsafe(f"`{flag}` is not a tensor, or False")
        return [], False
    condition = split(site, Evaluator(site, skip.statement), skip.test)
    value = f"{condition.static} and {condition.text}" if condition.static else condition.text
    comments = layout.header_comments(skip.statement)
    return [*comments, f"{flag} = {value}"], not (condition.static or skip.around)


def _flag_without_choice(site: Site, chosen: ast.IfExp) -> str:
    """``self.training and drawn < p``, for ``True if self.training and drawn < p else False``."""
    condition = split(site, Evaluator(site, enclosing_statement(site, chosen)), chosen.test)
    if not condition.static:
        return condition.text
    first = chosen.test.values[0] if isinstance(chosen.test, ast.BoolOp) else chosen.test
    seen = site.seen(first)
    if seen is None or not seen.only("bool"):
        raise Unsafe(f"`{site.text(first)}` is not always True or False")
    return f"{condition.static} and {condition.text}"


def _is_object(site: Site, skip: Skip, name: str) -> bool:
    """Whether the skipped code gives a name nothing but an object (a cache) that is not looked into there."""
    nodes = [node for one in skip.skipped for node in ast.walk(one)]
    given = [
        one
        for one in nodes
        if isinstance(one, ast.Name) and one.id == name and not isinstance(one.ctx, ast.Load)
    ]
    values = [
        one.value
        for one in nodes
        if isinstance(one, ast.Assign) and len(one.targets) == 1 and one.targets[0] in given
    ]
    seen = [one for one in map(site.seen, values) if one is not None]
    if not seen or len(values) != len(given) or loads(skip.skipped, name):
        return False
    return all(
        one.only("other") and not any(kind.startswith("builtins.") for kind in one.types) for one in seen
    )


def _tensor_or_false(seen: Seen) -> bool:
    return seen.only("tensor", "bool") and seen.dtypes <= {"bool"} and set(seen.values) <= {False}


def _edits(
    site: Site, skip: Skip, layout: Layout, flag: str, setting: list[str], before: list[str], after: list[str]
) -> list[Edit]:
    edits: list[Edit] = []
    if skip.flag is None and skip.around:
        first = skip.around[0]
        start, _ = site.offsets(first)
        edits.append(Edit(start, start, f"{flag} = False\n{' ' * first.col_offset}"))
    if skip.guard is not skip.statement:
        edits.append(_replaced(site, layout, skip.statement, [*setting, *before]))
        setting, before = [], []
    if skip.guard is None:
        end = layout.end(skip.block[-1])
        column = (skip.around[0] if skip.around else skip.statement).col_offset
        return [*edits, Edit(end, end, "\n" + indented(after, column))]
    body: list[str] = []
    for index, statement in enumerate(skip.block):
        body += [*layout.comments(skip.block, index), *layout.lines(statement)]
    comments = layout.header_comments(skip.guard) if not setting else []
    edits.append(_replaced(site, layout, skip.guard, [*setting, *before, *comments, *body, *after]))
    return edits + [_removed(site, layout, constant) for constant in skip.constants]


def _replaced(site: Site, layout: Layout, statement: ast.stmt, lines: list[str]) -> Edit:
    start, _ = site.offsets(statement)
    return Edit(start, layout.end(statement), indented(lines, statement.col_offset).lstrip(" "))


def _removed(site: Site, layout: Layout, statement: ast.stmt) -> Edit:
    """Take a statement away, with its line."""
    start = site.starts[statement.lineno - 1]
    end = layout.end(statement)
    block = getattr(site.parents[statement], "body", [])
    if len(block) == 1:
        return _replaced(site, layout, statement, ["pass"])
    return Edit(start, end + 1, "")


def _ran(site: Site, statement: ast.stmt) -> bool:
    return site.span(statement) in site.evidence.entry


def _walk(site: Site, block: list[ast.stmt], skipped: _Skipped) -> None:
    """Note what statements do.

    Raises:
        Unsafe: one has an effect that cannot be taken back.
    """
    for statement in block:
        if isinstance(statement, ast.Pass) or (
            isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        ):
            continue
        if isinstance(statement, ast.If):
            _branch(site, statement, skipped)
            continue
        if not _ran(site, statement):
            raise Unsafe(f"`{_first_line(site, statement)}` did not run in the recorded run")
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            skipped.stored[statement.target.id] = None
        elif isinstance(statement, ast.Assign) and all(map(_only_names, statement.targets)):
            skipped.stored.update(dict.fromkeys(sorted(names_in(statement.targets))))
        else:
            raise Unsafe(
                f"what is skipped does more than give values to names: `{_first_line(site, statement)}`"
            )
        for node in ast.walk(statement):
            if isinstance(node, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom):
                raise Unsafe(f"what is skipped does more than give values to names: `{site.text(node)}`")


def _branch(site: Site, statement: ast.If, skipped: _Skipped) -> None:
    seen = site.seen(statement.test)
    if seen is None or "tensor" in seen.kinds:
        raise Unsafe(f"what is skipped holds a branch on a tensor: `{site.text(statement.test)}`")
    for block, opposite in ((statement.body, False), (statement.orelse, True)):
        real = [one for one in block if not isinstance(one, ast.Pass)]
        if not real:
            continue
        if _ran(site, real[0]) or isinstance(real[0], ast.If):
            _walk(site, block, skipped)
            continue
        text = shown(site, statement.test, None)
        skipped.never[f"not ({text})" if opposite else text] = None


def _only_names(target: ast.expr) -> bool:
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    return all(isinstance(part, ast.Name) for part in parts)


def _first_line(site: Site, statement: ast.stmt) -> str:
    return site.text(statement).partition("\n")[0][:60]


def _temporary(site: Site, skip: Skip, name: str) -> bool:
    """Whether a value is read in the skipped code only, after it was given there."""
    if any(not _never_read(site, read, name, skip) for read in reads_outside(site, skip.skipped, name)):
        return False
    return first_use(skip.skipped, name) != "read"


def _constants_unread(site: Site, skip: Skip) -> list[str]:
    """Names of constants that say what was skipped, and that code reads which never ran: they are taken away.

    Raises:
        Unsafe: the skipped code would give the name another value.
    """
    found: dict[str, None] = {}
    for name in sorted(skip.reset):
        for read in reads_outside(site, skip.skipped, name):
            if not _never_read(site, read, name, skip):
                raise Unsafe(f"`{name}` is a constant where code is skipped, and is read afterwards")
            found[name] = None
    return list(found)


def _never_read(site: Site, read: ast.Name, name: str, skip: Skip) -> bool:
    """Whether a read outside of the skipped code cannot matter: it never ran, or is of a constant's name."""
    statement = enclosing_statement(site, read)
    return name in skip.reset and not _ran(site, statement) and site.seen(read) is None


def _seen_before(site: Site, skip: Skip, name: str, reads: list[ast.Name]) -> list[Seen]:
    """What a name was where the skipped code first reads it, if it gives it no value before that."""
    first = min((read for read in reads if site.seen(read)), key=site.offsets, default=None)
    if first is None:
        return []
    stored = [
        site.offsets(enclosing_statement(site, node))
        for one in skip.block
        for node in ast.walk(one)
        if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)
    ]
    before = site.offsets(enclosing_statement(site, first)) <= min(stored, default=(0, 0))
    seen = site.seen(first)
    return [seen] if before and seen is not None else []


def _one_type(site: Site, skip: Skip, name: str) -> bool:
    """Make sure that a name is a tensor of one shape and dtype, before and after.

    Returns:
        Whether it was None as well: before a first turn that is never skipped.

    Raises:
        Unsafe: it is not, or that is not known.
    """
    if rebound_elsewhere(site.function, name):
        raise Unsafe(f"`{name}` belongs to another scope")
    top = skip.around[0] if skip.around else skip.statement
    if not bound_before(site, top, name):
        raise Unsafe(f"`{name}` may have no value where nothing is skipped before it")
    reads = loads(skip.block, name)
    seen = [one for one in map(site.seen, reads) if one is not None]
    for statement in skip.block:
        for node in ast.walk(statement):
            if isinstance(node, ast.Assign) and any(
                isinstance(target, ast.Name) and target.id == name for target in node.targets
            ):
                seen += [one for one in [site.seen(node.value)] if one is not None]
    entered = site.seen_before(skip.block[0]).get(name)
    olds = [entered] if entered is not None else _seen_before(site, skip, name, reads)
    grows = [
        node
        for one in skip.block
        for node in ast.walk(one)
        if isinstance(node, ast.AugAssign) and name in names_in([node.target])
    ]
    if any(isinstance(node.value, ast.Tuple | ast.List) for node in grows):
        raise Unsafe(f"`{name}` is not a tensor, so torch.where cannot keep it")
    if not olds or not seen:
        raise Unsafe(f"`{name}` was not seen before and after what is skipped")
    kinds = {kind for one in [*olds, *seen] for kind in one.kinds}
    if not {"tensor"} <= kinds <= {"tensor", "None"}:
        raise Unsafe(f"`{name}` is not a tensor, so torch.where cannot keep it")
    first = olds[0]
    if len(first.dtypes) != 1 or any(
        one.dtypes != first.dtypes or one.shapes != first.shapes for one in seen
    ):
        raise Unsafe(f"`{name}` changes its shape or dtype in what is skipped")
    return "None" in kinds
