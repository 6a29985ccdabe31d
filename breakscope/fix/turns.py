"""Loops over the rows of ``nonzero``: each row is a tensor of one element, the number of its turn."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from breakscope.fix.patch import Edit
from breakscope.fix.rule import Site, Unsafe
from breakscope.source.names import builtin


@dataclass(frozen=True, slots=True)
class Turn:
    """What a loop's body calls the number of a turn.

    Attributes:
        name: what the loop calls it. number: what the body calls it, from its first statement on.
        naming: that statement, which takes the number out of the row; None: the body has one name for both.
        rows: whether ``name`` is a row, a tensor of one element, and not a number.
    """

    name: str
    number: str
    naming: ast.stmt | None = None
    rows: bool = False

    @property
    def names(self) -> frozenset[str]:
        return frozenset((self.name, self.number))

    def is_row(self, name: str) -> bool:
        """Whether a name is that of a row, all through the body."""
        return self.rows and self.naming is None and name == self.name

    def is_number(self, site: Site, node: ast.expr) -> bool:
        """Whether an expression is the number of the turn, in any spelling."""
        if isinstance(node, ast.Name):
            return node.id == self.number and (not self.rows or self.naming is not None)
        return self.rows and is_number_of(site, node, self.name)


def row_turn(site: Site, loop: ast.For, name: str) -> Turn:
    """The names of a turn of a loop over rows."""
    first = loop.body[0]
    if isinstance(first, ast.Assign) and is_number_of(site, first.value, name):
        match first.targets:
            case [ast.Name(id=number)]:
                return Turn(name, number, first, rows=True)
    return Turn(name, name, rows=True)


def is_number_of(site: Site, node: ast.expr, row: str) -> bool:
    """Whether an expression takes the number out of a row: ``row[0]``, ``row.item()``, ``int(row[0])``."""
    match node:
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=0)):
            return name == row
        case ast.Call(func=ast.Attribute(value=of, attr="item"), args=[], keywords=[]):
            pass
        case ast.Call(func=ast.Name() as function, args=[of], keywords=[]) if (
            builtin(site, function) == "int"
        ):
            pass
        case _:
            return False
    return (isinstance(of, ast.Name) and of.id == row) or is_number_of(site, of, row)


def number_edits(site: Site, loop: ast.For, turn: Turn) -> list[Edit]:
    """Edits of a loop's body that let the turn be a Python number; ``naming`` is left to the caller.

    Raises:
        Unsafe: a row, or the tensor that its element is, is used for more than to select with it.
    """
    edits: list[Edit] = []
    for name in _loads(loop, turn):
        node, parent = _whole(site, name, turn)
        if parent is turn.naming:
            continue
        if node is name and turn.is_row(name.id):
            edits += _selected_row(site, node, parent)
            continue
        if isinstance(node, ast.Name) and name.id != turn.number:
            raise _is_used(parent)
        told = _value_of(turn.naming) if turn.naming is not None and node is name else node
        if not isinstance(told, ast.Call) and not _takes_either(site, node, parent):
            raise _is_used(parent)
        if node is not name:
            start, end = site.offsets(node)
            if site.source[start:end] != ast.unparse(node):  # texts before Python 3.12 know no places
                raise _is_used(parent)
            edits.append(Edit(start, end, turn.number))
    return edits


def _loads(loop: ast.For, turn: Turn) -> Iterator[ast.Name]:
    for statement in loop.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and node.id in turn.names and isinstance(node.ctx, ast.Load):
                yield node


def _whole(site: Site, name: ast.Name, turn: Turn) -> tuple[ast.expr, ast.AST]:
    """The largest expression around a name that is the number of the turn, and what stands around it."""
    node: ast.expr = name
    behind_naming = (
        turn.naming is not None and name.id == turn.number and not _within(site, name, turn.naming)
    )
    for above in () if behind_naming else _above(site, name):
        if isinstance(above, ast.expr) and is_number_of(site, above, name.id):
            node = above
    return node, site.parents[node]


def _above(site: Site, node: ast.AST) -> Iterator[ast.AST]:
    while isinstance(node, ast.expr):
        node = site.parents[node]
        yield node


def _within(site: Site, node: ast.AST, statement: ast.stmt) -> bool:
    return any(one is statement for one in _above(site, node))


def _value_of(statement: ast.stmt) -> ast.expr:
    assert isinstance(statement, ast.Assign)
    return statement.value


def _selected_row(site: Site, row: ast.expr, parent: ast.AST) -> list[Edit]:
    """``mask[row].squeeze(0)`` -> ``mask[row]``; ``modules[row]`` stays. What else takes a row is refused."""
    if isinstance(parent, ast.Subscript) and parent.slice is row:
        if squeeze := squeezed(site, parent):
            return [Edit(site.offsets(parent)[1], site.offsets(squeeze)[1], "")]
        seen = site.seen(parent)
        if seen is not None and seen.only("module"):
            return []
    raise _is_used(parent)


def squeezed(site: Site, selected: ast.Subscript) -> ast.Call | None:
    """The call ``selected.squeeze(0)`` around a selection."""
    call = site.parents[site.parents[selected]]
    match call:
        case ast.Call(
            func=ast.Attribute(value=of, attr="squeeze"), args=[ast.Constant(value=0)], keywords=[]
        ):
            return call if of is selected else None
    return None


def _takes_either(site: Site, number: ast.expr, parent: ast.AST) -> bool:
    """Whether a number and a tensor of one number give the same here: an index, a text, a comparison."""
    match parent:
        case ast.Subscript(slice=index):
            return index is number
        case ast.FormattedValue(conversion=-1, format_spec=None):
            return True
        case ast.Compare(left=left, comparators=others):
            asked = isinstance(site.parents[parent], ast.If | ast.BoolOp)
            return asked and all(one is number or site.is_integer(one) for one in (left, *others))
    return False


def _is_used(node: ast.AST) -> Unsafe:
    text = ast.unparse(node).partition("\n")[0]
    return Unsafe(f"a turn's row of one number is used as a tensor: `{text}`")
