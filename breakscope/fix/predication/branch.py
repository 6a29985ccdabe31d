"""One ``if`` statement, rewritten: chooses the shortest form in which ``torch.where`` says the same."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection

from breakscope.fix.layout import Layout
from breakscope.fix.patch import Refusal, Rewrite
from breakscope.fix.predication.arms import arms_of, render_name
from breakscope.fix.predication.condition import inverted, split
from breakscope.fix.predication.returns import Returns
from breakscope.fix.predication.state import render_stores
from breakscope.fix.predication.where import Branches
from breakscope.fix.rule import Site, Unsafe


def outermost_first(site: Site) -> list[ast.If]:
    """The ``if`` statements whose condition holds the site, or whose branch does and is a tensor's too."""
    found: list[ast.If] = []
    node: ast.AST = site.node
    if isinstance(node, ast.If):  # Dynamo names the whole statement where the test begins with `not`
        node = node.test
    in_test = False
    while node is not site.function:
        parent = site.parents[node]
        if isinstance(parent, ast.If):
            in_test = in_test or node is parent.test
            seen = [site.seen(one) for one in ast.walk(parent.test) if isinstance(one, ast.expr)]
            on_tensor = any(one is not None and "tensor" in one.kinds for one in seen)
            if in_test and (node is parent.test or (on_tensor and found)):
                found.append(parent)
        node = parent
    return list(reversed(found))


def rewrite_outermost(site: Site, rewrite: Callable[[Site, ast.If], Rewrite]) -> Rewrite | Refusal | None:
    """The rewrite of the outermost branch on a tensor around the site that can be rewritten."""
    refusal: Refusal | None = None
    for branch in outermost_first(site):
        try:
            return rewrite(site, branch)
        except Unsafe as error:
            refusal = Refusal(str(error))
    return refusal


def rewrite_if(site: Site, top: ast.If, elsewhere: Collection[ast.stmt] = ()) -> Rewrite:
    """The rewrite of one ``if``.

    Args:
        elsewhere: statements of its branches that the rewrite leaves out.

    Raises:
        Unsafe: it must stay a branch.
    """
    if any(isinstance(node, ast.Return) for statement in [top] for node in ast.walk(statement)):
        return Returns(site, top).rewrite()
    is_elif = site.text(top).startswith("elif")
    column = top.col_offset + (Layout(site).unit if is_elif else 0)
    named = _Attempt(site, top, column, elsewhere, named=True)
    lines, branches, condition = named.lines, named.branches, named.condition
    if named.uses == 1:
        inline = _Attempt(site, top, column, elsewhere, named=False)
        lines, branches, condition = inline.lines, inline.branches, inline.condition
    if not branches.findings.wheres:
        raise Unsafe("the branch gives nothing that is used")
    return branches.replaced(branches.assembled(top, condition, lines))


class _Attempt:
    """One rendering, with the condition under a name of its own or inside the only ``torch.where``."""

    def __init__(
        self, site: Site, top: ast.If, column: int, elsewhere: Collection[ast.stmt], *, named: bool
    ) -> None:
        self.top = top
        self.branches = Branches(site, top)
        self.branches.elsewhere = elsewhere
        self.condition = split(site, self.branches.evaluate, top.test)
        if self.condition.static:
            column = top.body[0].col_offset
        arms = arms_of(top) if top.orelse and not self.condition.static else None
        name = next(iter(arms[0].values)) if arms is not None else ""
        if arms is not None and name.isidentifier() and not self.branches.temporary(name):
            self.uses = 0
            self.lines = render_name(self.branches, arms, self.condition, column)
            return
        mask = self.branches.layout.unique("condition") if named else self.condition.text
        self.lines = [f"{mask} = {self.condition.text}"] if named else []
        stores = render_stores(self.branches, top, mask, column) if not self.condition.static else None
        if stores is not None:
            self.lines += stores
            self.uses = self._count(mask) if named else 0
            return
        self.lines += self.branches.render(top.body, mask, column)
        if top.orelse and not self.condition.static:
            other = inverted(mask, atom=named or self.condition.atom)
            self.lines += else_comments(self.branches, top)
            self.lines += self.branches.render(top.orelse, other, column)
        elif top.orelse:
            raise Unsafe("Python decides a part of the condition, and there is an `else`")
        self.uses = self._count(mask) if named else 0

    def _count(self, mask: str) -> int:
        """How often the condition is used, by its name."""
        return len(re.findall(rf"\b{mask}\b", "\n".join(self.lines[1:])))


def else_comments(branches: Branches, top: ast.If) -> list[str]:
    """What is written on and above the ``else`` line."""
    return branches.layout.between(top.body[-1], top.orelse[0])
