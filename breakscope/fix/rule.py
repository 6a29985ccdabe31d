"""What a rewrite rule is: the one interface between the rules and the engine that proves what they propose.

A rule gets a :class:`Site` and answers with a :class:`Rewrite` (text edits of the module), with a
:class:`Refusal` (a reason), or with None: the place is not of its kind. Edits are pieces of text, so that
comments and formatting survive, and two rewrites of one file can be applied together.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from breakscope.fix.patch import Refusal, Rewrite
from breakscope.inside.record.evidence import Evidence, Seen
from breakscope.source.module import FunctionNode, Module, Scope, parsed
from breakscope.source.names import reads_frame, torch_name
from breakscope.source.span import Span


@dataclass(frozen=True, slots=True)
class Example:
    """Code with what a rule makes of it. Shown in the documentation, and executed by the tests.

    A rule carries two; all others are in ``tests/fix/rules``, a table for each rule.

    Attributes:
        before: a module in which Dynamo breaks once, in the function ``f``; ``torch``, ``nn`` and ``F``
            are there (``f`` may also be an ``nn.Module``).
        after: the module after the rewrite; empty in a leave-alone example.
        why: part of the refusal's reason, in a leave-alone example; empty where the rule has no say.
        calls: arguments of ``f`` as Python text, one a call: what the evidence is recorded from.
        consent: the rewrite changes behaviour, so the tests compare only what it leaves alone.
        site: text of the expression that breaks, for code where Dynamo itself would not break; code: what
            is found there.
    """

    before: str
    after: str = ""
    why: str = ""
    calls: tuple[str, ...] = ("torch.randn(3, 4)",)
    consent: bool = False
    site: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True)
class Site(Scope):
    """A place where Dynamo breaks, as the rules see it: in ``function``, the innermost one around it.

    Attributes:
        qualname: the function's dotted path, ``Net.forward``.
        node: the smallest expression or statement at the place.
        code: ``BS101``. reason: Dynamo's own words.
    """

    qualname: str
    node: ast.expr | ast.stmt
    code: str
    reason: str
    evidence: Evidence

    def seen(self, node: ast.expr) -> Seen | None:
        """What an expression evaluated to; None if it was never evaluated."""
        return self.evidence.expressions.get(self.span(node))

    def around(self) -> Iterator[ast.expr]:
        """The expressions around the place, the smallest first; none where only the statement is known."""
        node: ast.AST = self.node
        while isinstance(node, ast.expr):
            yield node
            node = self.parents[node]

    def seen_before(self, statement: ast.stmt) -> Mapping[str, Seen]:
        """What names and attributes were when a statement began, by path; empty if it never ran."""
        return self.evidence.entry.get(self.span(statement), {})

    @property
    def torch(self) -> str:
        """The name under which the module has ``torch``.

        Raises:
            Unsafe: it does not import it.
        """
        name = torch_name(self.module)
        if name is None:
            raise Unsafe("the module does not import torch")
        return name

    def is_tensor(self, node: ast.expr) -> bool:
        """Whether an expression was evaluated, and gave a tensor each time."""
        seen = self.seen(node)
        return seen is not None and seen.only("tensor")

    def may_be_tensor(self, node: ast.expr) -> bool:
        """Whether an expression was seen to give a tensor."""
        seen = self.seen(node)
        return seen is not None and "tensor" in seen.kinds

    def refuse_frame_readers(self) -> None:
        """Refuse a function that sees its own names.

        Raises:
            Unsafe: new names in it, or names that are gone, would be seen.
        """
        if reads_frame(self.function):
            raise Unsafe("the function looks at its own local variables")

    def is_integer(self, node: ast.expr) -> bool:
        """Whether an expression is an integer that is written there, or gave one each time."""
        if isinstance(node, ast.Constant):
            return type(node.value) is int
        seen = self.seen(node)
        return seen is not None and seen.only("int")


def locate(
    source: str,
    line: int,
    column: int | None,
    end_line: int | None,
    end_column: int | None,
    code: str,
    reason: str,
    evidence: Evidence,
) -> Site | None:
    """The site at a finding's place (:class:`breakscope.report.model.Location`). None: it is in no function.

    Without columns (torch 2.9 has none for some breaks) it is the statement that begins on the line.

    Raises:
        SyntaxError: ``source`` does not parse.
    """
    module = parsed(source)
    node = _smallest(module, line, column, end_line, end_column)
    names: list[str] = []
    function: FunctionNode | None = None
    above: ast.AST | None = node
    while above is not None:
        if isinstance(above, FunctionNode | ast.ClassDef):
            names.append(above.name)
            if function is None and isinstance(above, ast.ClassDef):
                return None
            function = function or (above if isinstance(above, FunctionNode) else None)
        above = module.parents.get(above)
    if node is None or function is None:
        return None
    return Site(module, function, ".".join(reversed(names)), node, code, reason, evidence)


def _smallest(
    module: Module, line: int, column: int | None, end_line: int | None, end_column: int | None
) -> ast.expr | ast.stmt | None:
    best: ast.expr | ast.stmt | None = None
    size: tuple[int, int] | None = None
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.expr | ast.stmt):
            continue
        span = Span.of(node, module.lines)
        if column is None or end_column is None:
            fits = isinstance(node, ast.stmt) and span.line <= line <= span.end_line
        else:
            last = (end_line or line, end_column)
            fits = (span.line, span.column) <= (line, column) and last <= (span.end_line, span.end_column)
        here = (span.end_line - span.line, span.end_column - span.column)
        # Of nodes with one span the outer one comes first in the walk, and is the one that is meant.
        if fits and (size is None or here < size):
            best, size = node, here
    return best


class Unsafe(Exception):  # noqa: N818 - it is an answer, not a failure
    """Why code must stay as it is, as a sentence without a full stop: raised where a rule finds it out."""


class Rule(ABC):
    """A rewrite rule: one instance for each class, without state.

    Attributes:
        name: stable short name, shown to users: ``branch-to-where``.
        codes: the findings that it answers.
        title: what it does, in a few words. does: the same as a row of the table in docs/fix.md.
        asks: when it needs the user's consent, for that table; empty: never.
        needs: conditions, one sentence each. hazards: what it refuses or names, one sentence each.
        consent: it always changes behaviour, so it is offered only with the user's consent.
        before, after: names of rules that are asked after this one, and before it: where both may answer.
        nearer: names of rules that come nearer to such a place: where both refuse, their reason is told.
        rewritten, left_alone: the two examples that say most of what it does, and of what it does not.
    """

    name: ClassVar[str]
    codes: ClassVar[tuple[str, ...]]
    title: ClassVar[str]
    does: ClassVar[str]
    asks: ClassVar[str] = ""
    needs: ClassVar[tuple[str, ...]]
    hazards: ClassVar[tuple[str, ...]]
    consent: ClassVar[bool] = False
    before: ClassVar[tuple[str, ...]] = ()
    after: ClassVar[tuple[str, ...]] = ()
    nearer: ClassVar[tuple[str, ...]] = ()
    rewritten: ClassVar[Example]
    left_alone: ClassVar[Example]

    @abstractmethod
    def propose(self, site: Site) -> Rewrite | Refusal | None:
        """What the rule makes of one site. None: not a place for it.

        Raises:
            Unsafe: it is, and must stay as it is.
        """

    def rewrite(self, site: Site) -> Rewrite | Refusal | None:
        """The answer to one site. None: not a place for this rule."""
        try:
            return self.propose(site)
        except Unsafe as error:
            return Refusal(str(error))
