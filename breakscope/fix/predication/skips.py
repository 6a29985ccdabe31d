"""Code that a random draw skips (layer drop), taken apart: what decides, and what would not run.

Four forms: ``if drawn < p: continue``; a flag that is set, and read by ``if not flag:``, or by
``if flag: <constants> else: ...``; ``if drawn < p: <constants> else: ...``; and ``if not skip: ...`` with a
``skip`` of its own, that may be False before.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from breakscope.fix.rule import Site, Unsafe
from breakscope.source.dominance import block_of
from breakscope.source.names import dotted, reads_of, stores

_DRAWS = {"torch.rand", "torch.rand_like", "torch.randn", "torch.randint", "torch.bernoulli"}
_DRAWING_METHODS = {"uniform_", "bernoulli_", "random_", "normal_"}


@dataclass(frozen=True, slots=True)
class Skip:
    """A place where a draw skips code.

    Attributes:
        statement: the branch that draws decide. test: its condition; None if it is in ``flag`` already.
        block: what is skipped.
        guard: the branch around ``block``, to be taken away; None if nothing is around it.
        around: branches that Python decides and that hold ``statement``, outermost first.
        flag: the name that the code itself has for "skipped", if it has one.
        unless: the part of the condition under which nothing is skipped after all: ``synced``.
        constants: statements that only say, with constants, that something was skipped; they are taken away.
        reset: names that they give a value.
        rest: what a ``continue`` behind ``block`` skips as well; it stays where it is.
    """

    statement: ast.If
    test: ast.expr | None
    block: list[ast.stmt]
    guard: ast.If | None = None
    around: tuple[ast.If, ...] = ()
    flag: str | None = None
    unless: ast.expr | None = None
    constants: tuple[ast.stmt, ...] = ()
    reset: frozenset[str] = frozenset()
    rest: tuple[ast.stmt, ...] = ()

    @property
    def skipped(self) -> list[ast.stmt]:
        """All that does not run where the draw says so."""
        return [*self.block, *self.rest]


def find(site: Site, statement: ast.If) -> Skip | None:
    """The skip that an ``if`` decides; None if no draw decides it, or it is of none of the forms.

    Raises:
        Unsafe: a draw decides it, but what it skips cannot be told.
    """
    if not _drawn(site, statement.test, set()):
        return None
    if site.text(statement).startswith("elif"):
        raise Unsafe("a random number decides one of several branches")
    if len(statement.body) == 1 and not statement.orelse:
        only = statement.body[0]
        if isinstance(only, ast.Continue):
            return _continue(site, statement)
        if isinstance(only, ast.Assign) and _is_constant(only.value, value=True):
            return _flag(site, statement, only)
    constants = _constants(statement.body)
    if statement.orelse and constants is not None:
        return Skip(statement, statement.test, statement.orelse, guard=statement, reset=constants)
    return _unless(site, statement)


def branch_of_flag(site: Site, statement: ast.Assign) -> ast.If | None:
    """The ``if not skip`` behind ``skip = True if drawn < p else False``; None for other statements."""
    target = statement.targets[0]
    if not isinstance(target, ast.Name) or not _is_choice(statement.value):
        return None
    for read in reads_of(site, target.id):
        above = site.parents[read]
        if isinstance(above, ast.UnaryOp) and isinstance(above.op, ast.Not):
            node: ast.AST = above
            while isinstance(site.parents[node], ast.BoolOp):
                node = site.parents[node]
            branch = site.parents[node]
            if isinstance(branch, ast.If) and branch.test is node:
                return branch
    return None


def chosen_flag(site: Site, skip: Skip) -> ast.IfExp | None:
    """The ``True if drawn < p else False`` that gives a skip's flag its value."""
    values = stores(site, skip.flag) if skip.flag is not None and skip.test is None else []
    return next((value for value in values if isinstance(value, ast.IfExp) and _is_choice(value)), None)


def _is_choice(value: ast.expr) -> bool:
    return (
        isinstance(value, ast.IfExp)
        and _is_constant(value.body, value=True)
        and _is_constant(value.orelse, value=False)
    )


def _drawn(site: Site, node: ast.expr, seen: set[str]) -> bool:
    """Whether a condition compares what was drawn, itself or under names."""
    if isinstance(node, ast.BoolOp):
        return any(_drawn(site, one, seen) for one in node.values)
    if isinstance(node, ast.UnaryOp):
        return _drawn(site, node.operand, seen)
    if isinstance(node, ast.Compare):
        return any(_drawn(site, one, seen) for one in [node.left, *node.comparators])
    if isinstance(node, ast.IfExp):
        return _drawn(site, node.test, seen)
    if isinstance(node, ast.Call):
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        return dotted(site, node.func) in _DRAWS or method in _DRAWING_METHODS
    if not isinstance(node, ast.Name) or node.id in seen:
        return False
    seen.add(node.id)
    return any(_drawn(site, value, seen) for value in stores(site, node.id))


def _is_constant(node: ast.expr, *, value: bool) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def _constants(block: list[ast.stmt]) -> frozenset[str] | None:
    """Names that a block gives constants to; None if it does anything else."""
    names: set[str] = set()
    for statement in block:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return None
        target, value = statement.targets[0], statement.value
        parts = value.elts if isinstance(value, ast.Tuple) else [value]
        if not isinstance(target, ast.Name) or not all(isinstance(part, ast.Constant) for part in parts):
            return None
        names.add(target.id)
    return frozenset(names)


def _around(site: Site, statement: ast.stmt) -> tuple[ast.If, ...]:
    """The branches that hold a statement as their last one and have no ``else``, outermost first."""
    found: list[ast.If] = []
    parent = site.parents[statement]
    while (
        isinstance(parent, ast.If)
        and parent.body[-1] is (found[0] if found else statement)
        and not parent.orelse
        and not site.text(parent).startswith("elif")
    ):
        found.insert(0, parent)
        parent = site.parents[parent]
    return tuple(found)


def _continue(site: Site, statement: ast.If) -> Skip:
    around = _around(site, statement)
    first = around[0] if around else statement
    if not isinstance(site.parents[first], ast.For):
        raise Unsafe("a random number decides whether the rest of the loop runs, from deep inside it")
    block, index = block_of(site, first)
    if not block[index + 1 :]:
        raise Unsafe("nothing follows that could be skipped")
    return Skip(statement, statement.test, block[index + 1 :], around=around)


def _flag(site: Site, statement: ast.If, only: ast.Assign) -> Skip:
    target = only.targets[0]
    if len(only.targets) != 1 or not isinstance(target, ast.Name):
        raise Unsafe("a random number decides more than a flag")
    name, around = target.id, _around(site, statement)
    block, index = block_of(site, around[0] if around else statement)
    values = stores(site, name)
    before = index > 0 and any(value in values for value in _assigned(block[index - 1], name))
    if len(values) != 2 or not before or not any(_is_constant(value, value=False) for value in values):
        raise Unsafe(f"`{name}` is given other values too")
    reads = reads_of(site, name)
    guard = block[index + 1] if index + 1 < len(block) else None
    if len(reads) == 1 and isinstance(guard, ast.If) and guard.test is reads[0] and guard.orelse:
        constants = _constants(guard.body)
        if constants is not None:  # only says that something was skipped; the rest is what is
            return Skip(
                statement, statement.test, guard.orelse, guard=guard, around=around, flag=name,
                reset=constants,
            )  # fmt: skip
    if not isinstance(guard, ast.If) or guard.orelse or not _negates(guard.test, name) or len(reads) != 1:
        raise Unsafe(f"`{name}` decides more than the branch that follows")
    return Skip(statement, statement.test, guard.body, guard=guard, around=around, flag=name)


def _assigned(statement: ast.stmt, name: str) -> list[ast.expr]:
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    matches = any(isinstance(target, ast.Name) and target.id == name for target in targets)
    return [statement.value] if isinstance(statement, ast.Assign) and matches else []


def _negates(test: ast.expr, name: str) -> bool:
    return (
        isinstance(test, ast.UnaryOp)
        and isinstance(test.op, ast.Not)
        and isinstance(test.operand, ast.Name)
        and test.operand.id == name
    )


def _unless(site: Site, statement: ast.If) -> Skip | None:
    """``if not skip [or synced]: block``, and what says elsewhere that it was skipped."""
    operands = statement.test.values if isinstance(statement.test, ast.BoolOp) else [statement.test]
    either = isinstance(statement.test, ast.BoolOp) and isinstance(statement.test.op, ast.Or)
    first = operands[0]
    if (len(operands) > 1 and not either) or len(operands) > 2 or not isinstance(first, ast.UnaryOp):
        raise Unsafe("a random number decides which of two computations is done")
    if not isinstance(first.op, ast.Not) or not isinstance(first.operand, ast.Name) or statement.orelse:
        raise Unsafe("a random number decides which of two computations is done")
    name = first.operand.id
    if len(stores(site, name)) != 1 and not _drawn_or_false(site, statement, name):
        raise Unsafe(f"`{name}` is given other values too")
    constants: list[ast.stmt] = []
    reset: set[str] = set()
    rest: list[ast.stmt] = []
    for read in reads_of(site, name):
        if read is first.operand:
            continue
        branch = site.parents[read]
        if (behind := _continued(site, statement, branch, read)) is not None:
            constants.append(branch)  # type: ignore[arg-type]
            rest = behind
            continue
        names = _constants(branch.body) if isinstance(branch, ast.If) and read is branch.test else None
        if names is None or not isinstance(branch, ast.If) or branch.orelse:
            raise Unsafe(f"`{name}` decides more than one branch")
        constants.append(branch)
        reset |= names
    unless = operands[1] if len(operands) == 2 else None
    return Skip(
        statement, None, statement.body, guard=statement, flag=name, unless=unless,
        constants=tuple(constants), reset=frozenset(reset), rest=tuple(rest),
    )  # fmt: skip


def _drawn_or_false(site: Site, guard: ast.If, name: str) -> bool:
    """Whether a flag is False in front of a branch, or what was drawn then under conditions of Python's."""
    block, index = block_of(site, guard)
    if len(stores(site, name)) != 2 or any(read.lineno < guard.lineno for read in reads_of(site, name)):
        return False
    resets = [
        place
        for place, one in enumerate(block[:index])
        if any(_is_constant(value, value=False) for value in _assigned(one, name))
    ]
    draws = [
        place
        for place, one in enumerate(block[:index])
        if isinstance(one, ast.If) and not one.orelse and _last(one, name)
    ]
    return len(resets) == 1 and len(draws) == 1 and resets[0] < draws[0]


def _last(branch: ast.If, name: str) -> bool:
    """Whether the last statement of a branch, or of the branch that is its last, gives a name its value."""
    last = branch.body[-1]
    if isinstance(last, ast.If):
        return not last.orelse and _last(last, name)
    return bool(_assigned(last, name))


def _continued(site: Site, statement: ast.If, branch: ast.AST, read: ast.expr) -> list[ast.stmt] | None:
    """What ``if skip: continue`` skips, where it stands behind ``if not skip``; None if it is none."""
    block, index = block_of(site, statement)
    follows = isinstance(site.parents[statement], ast.For) and branch in block[index + 1 : index + 2]
    if not follows or not isinstance(branch, ast.If) or branch.test is not read or branch.orelse:
        return None
    only = len(branch.body) == 1 and isinstance(branch.body[0], ast.Continue)
    return block[index + 2 :] if only else None
