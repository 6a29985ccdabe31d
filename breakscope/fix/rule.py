"""What a rewrite rule is: the one interface between the rules and the engine that proves what they propose.

A rule gets a :class:`Site` and answers with a ``Rewrite`` (edits of the module's text, and their claims) or a
``Refusal`` (a reason), both of :mod:`breakscope.fix.patch`, or with None: the place is not of its kind.
"""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

from breakscope.errors import UsageError
from breakscope.fix.patch import Refusal, Rewrite
from breakscope.fix.source_file import parents_of
from breakscope.inside.record.evidence import Evidence, Seen, Span

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
# Under which installed packages name rules of theirs.
ENTRY_POINT = "breakscope.rules"


@dataclass(frozen=True, slots=True)
class Example:
    """Code with what a rule makes of it. Shown in the documentation, and executed by the tests.

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
class Site:
    r"""A place where Dynamo breaks, as the rules see it.

    Attributes:
        source: text of the whole module, with ``\n`` line ends. tree: it, parsed.
        function: the innermost function around the place. qualname: its dotted path, ``Net.forward``.
        node: the smallest expression or statement at the place.
        code: ``BS101``. reason: Dynamo's own words.
    """

    source: str
    tree: ast.Module
    function: FunctionNode
    qualname: str
    node: ast.expr | ast.stmt
    code: str
    reason: str
    evidence: Evidence
    parents: Mapping[ast.AST, ast.AST]
    lines: list[str]
    starts: tuple[int, ...]

    def span(self, node: ast.expr | ast.stmt) -> Span:
        """Where a node stands."""
        return Span.of(node, self.lines)

    def seen(self, node: ast.expr) -> Seen | None:
        """What an expression evaluated to; None if it was never evaluated."""
        return self.evidence.expressions.get(self.span(node))

    def offsets(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Where a node begins and ends in ``source``, in characters."""
        span = self.span(node)
        return (
            self.starts[span.line - 1] + span.column - 1,
            self.starts[span.end_line - 1] + span.end_column - 1,
        )

    def text(self, node: ast.expr | ast.stmt) -> str:
        """The source of a node, as written, without parentheses around it."""
        start, end = self.offsets(node)
        return self.source[start:end]


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
    tree = ast.parse(source)
    lines = source.split("\n")
    parents = parents_of(tree)
    node = _smallest(tree, lines, line, column, end_line, end_column)
    if node is None:
        return None
    names: list[str] = []
    function: FunctionNode | None = None
    above: ast.AST | None = node
    while above is not None:
        if isinstance(above, FunctionNode | ast.ClassDef):
            names.append(above.name)
            if function is None and isinstance(above, FunctionNode):
                function = above
            elif function is None:
                return None
        above = parents.get(above)
    if function is None:
        return None
    starts = [0]
    for text in lines:
        starts.append(starts[-1] + len(text) + 1)
    qualname = ".".join(reversed(names))
    return Site(source, tree, function, qualname, node, code, reason, evidence, parents, lines, tuple(starts))


def _smallest(
    tree: ast.Module,
    lines: list[str],
    line: int,
    column: int | None,
    end_line: int | None,
    end_column: int | None,
) -> ast.expr | ast.stmt | None:
    best: ast.expr | ast.stmt | None = None
    size: tuple[int, int] | None = None
    for node in ast.walk(tree):
        if not isinstance(node, ast.expr | ast.stmt):
            continue
        span = Span.of(node, lines)
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


class Rule(ABC):
    """A rewrite rule: one instance for each class, without state.

    Attributes:
        name: stable short name, shown to users: ``branch-to-where``.
        codes: the findings that it answers.
        title: what it does, in a few words.
        needs: conditions, one sentence each. hazards: what it refuses or names, one sentence each.
        consent: it always changes behaviour, so it is offered only with the user's consent.
        order: smaller is asked first.
    """

    name: ClassVar[str]
    codes: ClassVar[tuple[str, ...]]
    title: ClassVar[str]
    needs: ClassVar[tuple[str, ...]]
    hazards: ClassVar[tuple[str, ...]]
    consent: ClassVar[bool] = False
    order: ClassVar[int] = 50
    rewrites: ClassVar[tuple[Example, ...]]
    leaves: ClassVar[tuple[Example, ...]]

    @abstractmethod
    def rewrite(self, site: Site) -> Rewrite | Refusal | None:
        """The answer to one site. None: not a place for this rule."""


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule in ``breakscope/fix/rules``, in the order in which they are asked."""
    package = importlib.import_module("breakscope.fix.rules")
    found: list[Rule] = []
    for module in pkgutil.iter_modules(package.__path__):
        loaded = importlib.import_module(f"{package.__name__}.{module.name}")
        found += [
            value()
            for value in vars(loaded).values()
            if isinstance(value, type) and issubclass(value, Rule) and value.__module__ == loaded.__name__
        ]
    return tuple(sorted([*found, *_of_others()], key=lambda rule: (rule.order, rule.name)))


def _of_others() -> Iterator[Rule]:
    """Rules of installed packages: what their entry points name is a rule's class, or a list of them.

    Raises:
        UsageError: one cannot be loaded, or is no rule.
    """
    for point in importlib.metadata.entry_points(group=ENTRY_POINT):
        try:
            loaded = point.load()
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise UsageError(f"the rules of {point.name} ({point.value}) cannot be loaded: {what}") from error
        for cls in loaded if isinstance(loaded, list | tuple) else (loaded,):
            if not (isinstance(cls, type) and issubclass(cls, Rule)):
                raise UsageError(f"{point.name} ({point.value}) is no class of breakscope.fix.rule.Rule")
            yield cls()


def rewrite(rule: Rule, site: Site) -> Rewrite | Refusal | None:
    """A rule's answer. One of somebody else's that fails is a refusal: it must not end the others."""
    if type(rule).__module__.startswith("breakscope."):
        return rule.rewrite(site)
    try:
        answer = rule.rewrite(site)
    except Exception as error:  # noqa: BLE001 -- another's code
        return Refusal(f"the rule {rule.name} failed: {type(error).__name__}: {error}")
    known = answer is None or isinstance(answer, Rewrite | Refusal)
    return answer if known else Refusal(f"the rule {rule.name} answered with a {type(answer).__name__}")


def propose(site: Site) -> tuple[Rule | None, Rewrite | Refusal]:
    """The first rewrite that a rule has for a site; else the first refusal, with its rule."""
    rewrites, refusals = _answers(site)
    if rewrites:
        return rewrites[0]
    if refusals:
        return refusals[0]
    return None, Refusal("no rule rewrites this kind of place")


def others(site: Site) -> list[tuple[Rule, Rewrite]]:
    """The rewrites that rules have for a site besides the first, for when that one makes things slower."""
    return [(rule, one) for rule, one in _answers(site)[0][1:] if one.edits and not one.scaffold]


def _answers(site: Site) -> tuple[list[tuple[Rule, Rewrite]], list[tuple[Rule, Refusal]]]:
    """Rewrites, best first, and refusals.

    A rewrite without need of consent goes before one that needs it, and a scaffold comes last.
    """
    # A skipped frame has a code of its own, whatever stopped Dynamo in it.
    asked = [rule for rule in all_rules() if site.code in rule.codes or site.code.startswith("BS3")]
    answers = [(rule, rewrite(rule, site)) for rule in asked]
    rewrites = [(rule, answer) for rule, answer in answers if isinstance(answer, Rewrite)]
    rewrites.sort(key=lambda pair: (bool(pair[1].scaffold), pair[1].consent))
    return rewrites, [(rule, answer) for rule, answer in answers if isinstance(answer, Refusal)]
