"""Turns a branch on a tensor into code without a branch: both sides run, ``torch.where`` picks.

A name that a branch assigns is wrapped where it is assigned: ``x = E`` becomes ``x = torch.where(c, E, x)``.
Done one statement after the other this is right for any number of names and branches, because a side that
is not taken leaves every name as it was. Names that only the branch itself reads need no wrapping.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from breakscope.fix.alias import changed_in_place, lexically_off, unshared, written_by
from breakscope.fix.layout import Layout, indented
from breakscope.fix.patch import NO_GRADIENT, Edit, Rewrite
from breakscope.fix.precision import exact_in
from breakscope.fix.predication.condition import Condition, split
from breakscope.fix.predication.interpreter import Evaluator
from breakscope.fix.predication.transfer import binary
from breakscope.fix.predication.values import Value, assumed, merged, same_type
from breakscope.fix.rule import Site, Unsafe
from breakscope.source.dominance import bound_before
from breakscope.source.names import (
    first_use,
    loads,
    names_in,
    reads_of,
    reads_outside,
    rebound_elsewhere,
)
from breakscope.source.torch_facts import DOMAIN, FLOATING, STEADY

_SUMMARY = "torch.where instead of the branch"


@dataclass(slots=True)
class Findings:
    """What a reader must know about a rewrite, collected on the way."""

    notes: dict[str, None] = field(default_factory=dict)
    assumes: dict[str, None] = field(default_factory=dict)
    consent: bool = False
    unaliased: bool = False
    early: set[str] = field(default_factory=set)
    wheres: int = 0


class Branches:
    """Renders the branches of one ``if`` as straight code.

    Attributes:
        findings: filled while rendering.
        made: attributes that the rendered code makes before anything reads them.
        elsewhere: statements of the branches that somebody else writes.
    """

    def __init__(self, site: Site, top: ast.stmt) -> None:
        torch = site.torch
        site.refuse_frame_readers()
        self.torch, self.site, self.top = torch, site, top
        self.innermost = top
        self.evaluate = Evaluator(site, top)
        self.layout = Layout(site)
        self.findings = Findings()
        self.bound: set[str] = set()
        self.made: set[str] = set()
        self.elsewhere: Collection[ast.stmt] = ()

    def where(self, condition: str, new: str, old: str, indent: int) -> str:
        """Source of ``torch.where``."""
        self.findings.wheres += 1
        return self.layout.call(f"{self.torch}.where", [condition, new, old], indent)

    def choose(self, new: Value, old: Value) -> Value:
        """What ``torch.where`` of two values gives.

        Raises:
            Unsafe: they are not of one type, or gradients would be wrong.
        """
        reason = same_type(new, old)
        if reason is not None:
            raise Unsafe(reason)
        relied_on = assumed(new, old)
        if relied_on is not None:
            self.findings.assumes[relied_on] = None
        if not new.fresh or not old.fresh:
            self.findings.unaliased = True
            self._passes_through(new, old)
            written = changed_in_place(self.site, self.top)
            if written is not None:
                raise Unsafe(f"`{written}` is changed in place elsewhere, and may be what is handed on here")
        self._gradients(new, old)
        return merged(new, old)

    def assembled(self, top: ast.If, condition: Condition, lines: list[str]) -> str:
        """Lines in the place of an ``if``, under what Python decides, as text that begins at its column."""
        column, is_elif = top.col_offset, self.site.text(top).startswith("elif")
        lines = [*self.layout.header_comments(top), *lines]
        if condition.static:
            apart = top.body[0].lineno > top.lineno
            inner = top.body[0].col_offset if apart else column + self.layout.unit
            return f"{'elif' if is_elif else 'if'} {condition.static}:\n{indented(lines, inner)}"
        if is_elif:
            return "else:\n" + indented(lines, column + self.layout.unit)
        return indented(lines, column).lstrip(" ")

    def pick(self, place: str, new: Value, old: Value) -> Value:
        """What a place holds after :meth:`where` of two values, tensors or Python numbers."""
        if new.kind == old.kind == "scalar":
            return scalar_choice(self.site, self.top, place, new, old)
        return self.choose(new, old)

    def store(self, path: str, text: str, value: Value) -> str:
        """The line that stores into an attribute what was picked."""
        self.evaluate.names[path] = value
        self.findings.notes[f"`{path}` is stored in every call, as a tensor of its own"] = None
        return f"{path} = {text}"

    def refuse_unwritable(self, path: str) -> None:
        """Refuse an attribute into which a tensor of one's own is not as good as the one that others hold.

        Raises:
            Unsafe: somebody could tell.
        """
        seen = self.site.seen_before(self.top)
        owner, attribute = path.split(".")
        if path not in seen or not seen[path].only("tensor"):
            raise Unsafe(f"`{path}` was not seen as a plain tensor when the branch began")
        if seen[path].requires_grad:
            raise Unsafe(f"gradients flow to `{path}`, which may be a parameter")
        if owner not in seen or not seen[owner].only("module"):
            raise Unsafe(f"`{owner}` is not a module, so what a store into it does is not known")
        for held in filter(None, map(written_by, ast.walk(self.site.tree))):
            named = any(isinstance(one, ast.Attribute) and one.attr == attribute for one in ast.walk(held))
            if named and not self._while_it_is_made(held, attribute):
                raise Unsafe(f"`{path}` is changed in place elsewhere, so others may rely on holding it")

    def _while_it_is_made(self, node: ast.AST, attribute: str) -> bool:
        """Whether a constructor writes into what it made for its own object: nobody else holds that yet."""
        above = self.site.parents.get(node)
        while above is not None and not isinstance(above, ast.FunctionDef | ast.Lambda):
            above = self.site.parents.get(above)
        if not isinstance(above, ast.FunctionDef) or above.name != "__init__" or not above.args.args:
            return False
        own = f"{above.args.args[0].arg}.{attribute}"
        places = [one for one in ast.walk(node) if isinstance(one, ast.Attribute) and one.attr == attribute]
        return all(ast.unparse(place) == own for place in places) and _made_in(above, own)

    def _passes_through(self, new: Value, old: Value) -> None:
        """Where gradients are not recorded, a tensor handed on as it is keeps them; a new one has none."""
        off = lexically_off(self.site, self.top)
        if any(value.carries and not value.fresh for value in (new, old)) and (
            off or not self.site.evidence.grad
        ):
            raise Unsafe("gradients are not recorded here, and a tensor that carries some is handed on")
        if off:
            self.findings.assumes[NO_GRADIENT] = None

    def _gradients(self, new: Value, old: Value) -> None:
        slope = max(new.slope, old.slope)
        if slope == STEADY and new.deps == old.deps:
            return
        if not (new.grad or old.grad):
            self.findings.assumes[NO_GRADIENT] = None
            return
        if slope >= DOMAIN:
            raise Unsafe(
                "gradients flow here: where a derivative of the branch not taken is infinite they are NaN"
            )
        self.findings.consent = True
        if slope > STEADY:
            self.findings.notes["gradients become NaN if the branch not taken meets inf or NaN"] = None
        if new.deps != old.deps:
            self.findings.notes[
                "a tensor that only one branch uses gets a gradient of zero where it got None"
            ] = None

    def rewrite(self, edit: Edit, tests: Iterable[ast.expr], summary: str) -> Rewrite:
        """The rewrite, with all that a reader must know about it; ``tests`` are to be driven both ways."""
        found = self.findings
        return Rewrite(
            edits=(edit,),
            summary=summary,
            notes=tuple(found.notes),
            assumes=tuple(found.assumes),
            consent=found.consent,
            differs=found.consent,
            branches=tuple(self.site.span(test) for test in tests),
            unaliased=found.unaliased,
            early=tuple(sorted(found.early)),
        )

    def replaced(self, text: str, end: ast.stmt | None = None, summary: str = _SUMMARY) -> Rewrite:
        """The rewrite that puts text in the place of the statement, or of several up to ``end``."""
        start, _ = self.site.offsets(self.top)
        tests = [node.test for node in ast.walk(self.top) if isinstance(node, ast.If | ast.IfExp)]
        return self.rewrite(Edit(start, self.layout.end(end or self.top), text), tests, summary)

    def render(self, block: list[ast.stmt], mask: str, indent: int) -> list[str]:
        """Lines of a block whose statements take effect where ``mask`` is true.

        Args:
            indent: columns that the lines will stand at, for their width.
        """
        lines: list[str] = []
        for index, statement in enumerate(block):
            lines += self.layout.comments(block, index)
            lines += self.statement(statement, mask, indent)
        return lines

    def statement(self, statement: ast.stmt, mask: str, indent: int) -> list[str]:
        """Lines for one statement of a branch."""
        if isinstance(statement, ast.Pass) or statement in self.elsewhere:
            return []
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            return self.layout.lines(statement)
        if isinstance(statement, ast.If):
            return self._nested(statement, mask, indent)
        if isinstance(statement, ast.AugAssign):
            return self._augmented(statement, mask, indent)
        if isinstance(statement, ast.AnnAssign) and statement.value is not None:
            return self._assign(statement, statement.target, statement.value, mask, indent)
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target, value = statement.targets[0], statement.value
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                return self._parallel(statement, target, value, mask, indent)
            return self._assign(statement, target, value, mask, indent)
        raise Unsafe(_effect(statement))

    def _assign(
        self, statement: ast.stmt, target: ast.expr, value: ast.expr, mask: str, indent: int
    ) -> list[str]:
        name = self._target(target)
        new = self.evaluate(value)
        if self.temporary(name):
            self.evaluate.names[name] = new
            return self.layout.lines(statement)
        old = self.current(name)
        if old is None:
            self._first(name, new)
            return self.layout.lines(statement)
        self.evaluate.names[name] = self.pick(name, new, old)
        written = self.layout.value(value, statement.col_offset)
        text = self.where(mask, written, name, indent + len(name) + 3)
        return self.layout.lines(statement, (value, text))

    def _parallel(
        self, statement: ast.stmt, target: ast.Tuple, value: ast.Tuple, mask: str, indent: int
    ) -> list[str]:
        names = [self._target(elt) for elt in target.elts]
        if len(names) != len(value.elts) or any(isinstance(elt, ast.Starred) for elt in value.elts):
            raise Unsafe("a branch unpacks a value")
        news = [self.evaluate(elt) for elt in value.elts]
        changes: list[tuple[ast.expr, str]] = []
        for name, new, one in zip(names, news, value.elts, strict=True):
            old = None if self.temporary(name) else self.current(name)
            if old is None:
                self._first(name, new)
                continue
            self.evaluate.names[name] = self.choose(new, old)
            written = self.layout.value(one, statement.col_offset)
            changes.append((one, self.where(mask, written, name, indent)))
        return self.layout.lines(statement, *changes)

    def _augmented(self, statement: ast.AugAssign, mask: str, indent: int) -> list[str]:
        name = self._target(statement.target)
        old = self.current(name)
        if old is None:
            raise Unsafe(f"`{name}` may have no value here")
        right = self.evaluate(statement.value)
        if old.kind != "tensor":
            raise Unsafe(f"a branch counts in Python: `{name}`")
        if not unshared(self.site, name):
            raise Unsafe(f"`{self.site.text(statement)}` changes a tensor in place that others may hold")
        text = ast.unparse(ast.BinOp(ast.Name(name, ast.Load()), statement.op, statement.value))
        new = binary(statement.op, old, right, text)
        merged_value = self.choose(new, old)
        self.evaluate.names[name] = merged_value
        if self.temporary(name):
            return self.layout.lines(statement)
        return [f"{name} = {self.where(mask, text, name, indent)}{self.layout.trailing(statement)}"]

    def _nested(self, statement: ast.If, mask: str, indent: int) -> list[str]:
        condition = split(self.site, self.evaluate, statement.test, ran=False)
        inner = self.layout.unique("inner")
        lines = self.layout.header_comments(statement)
        test = condition.text if condition.atom else f"({condition.text})"
        if statement.orelse:
            # Under a name, because the first branch may change what the test reads.
            test = self.layout.unique("nested")
            lines.append(f"{test} = {condition.text}")
        mask = mask if mask.isidentifier() else f"({mask})"
        lines.append(f"{inner} = {mask} & {test}")
        around, self.innermost = self.innermost, statement
        lines += self.render(statement.body, inner, indent)
        if statement.orelse:
            other = self.layout.unique("otherwise")
            lines.append(f"{other} = {mask} & ~{test}")
            lines += self.render(statement.orelse, other, indent)
        self.innermost = around
        return lines

    def _target(self, target: ast.expr) -> str:
        if not isinstance(target, ast.Name):
            raise Unsafe(f"a branch stores into `{self.site.text(target)}`")
        if rebound_elsewhere(self.site.function, target.id):
            raise Unsafe(f"`{target.id}` belongs to another scope")
        return target.id

    def _first(self, name: str, new: Value) -> None:
        """A name that gets its first value in this branch."""
        self.evaluate.names[name] = new
        self.bound.add(name)

    def current(self, name: str) -> Value | None:
        if name in self.evaluate.names:
            return self.evaluate.names[name]
        if not bound_before(self.site, self.top, name):
            return None
        value = self.evaluate(ast.Name(name, ast.Load()))
        return replace(value, fresh=True) if unshared(self.site, name) else value

    def temporary(self, name: str) -> bool:
        """Whether only the innermost ``if`` reads a name, and each of its branches after assigning it.

        A name that the branch around it reads as well is not: where the inner branch is not taken, it
        must keep its value.
        """
        if not isinstance(self.innermost, ast.If) or loads([self.innermost.test], name):
            return False
        if reads_outside(self.site, [self.innermost], name):
            return False
        return all(first_use(block, name) in ("given", "") for block in _branches(self.innermost))


def _made_in(constructor: ast.FunctionDef, own: str) -> bool:
    """Whether a constructor gives an attribute only what it makes: no tensor of somebody else."""
    owner, attribute = own.split(".")
    given: list[ast.expr | None] = []
    for node in ast.walk(constructor):
        match node:
            case ast.Assign(targets=targets, value=value) if own in map(ast.unparse, targets):
                given.append(value)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="register_buffer"), args=args):
                match args:
                    case [ast.Constant(value=known), value, *_] if name == owner and known == attribute:
                        given.append(value)
    return bool(given) and all(isinstance(value, ast.Call) for value in given)


def scalar_choice(site: Site, top: ast.stmt, name: str, new: Value, old: Value) -> Value:
    """A Python number that a branch changes, as a 0-dim tensor: only where no reader can tell.

    Raises:
        Unsafe: somebody could.
    """
    stores = [
        node
        for node in ast.walk(site.function)
        if isinstance(node, ast.Assign) and any(name in names_in([target]) for target in node.targets)
    ]
    written = all(isinstance(node.value, ast.Constant) for node in stores) and old.known and new.written
    if new.dtype != "float" or old.dtype != "float" or not written:
        raise Unsafe(f"a branch changes the Python number `{name}`")
    inside = {id(node) for node in ast.walk(top)}
    for read in reads_of(site, name):
        parent = site.parents[read]
        if id(read) in inside or not isinstance(parent, ast.BinOp):
            raise Unsafe(f"`{name}` is a Python number that more than arithmetic with tensors reads")
        other = site.seen(parent.right if parent.left is read else parent.left)
        if other is None or not other.only("tensor") or () in other.shapes or not other.dtypes <= FLOATING:
            raise Unsafe(f"`{name}` is a Python number, and a tensor in its place would promote differently")
        if not isinstance(parent.op, ast.Add | ast.Sub | ast.Mult):
            raise Unsafe(f"`{name}` is a Python number, and rounding may differ for a tensor in its place")
        for value in (new, old):
            if not all(exact_in(dtype, float(value.literal or 0.0)) for dtype in (*other.dtypes, "float32")):
                raise Unsafe(f"`{name}` is a Python number that {'/'.join(sorted(other.dtypes))} cannot hold")
    return Value("tensor", "float32", frozenset(), frozenset({()}))


def _branches(top: ast.If) -> list[list[ast.stmt]]:
    found = [top.body, top.orelse]
    if len(top.orelse) == 1 and isinstance(top.orelse[0], ast.If):
        found = [top.body, *_branches(top.orelse[0])]
    return found


def _effect(statement: ast.stmt) -> str:
    if isinstance(statement, ast.Raise | ast.Assert):
        return "a branch raises"
    if isinstance(statement, ast.Return):
        return "a branch returns in the middle of other code"
    if isinstance(statement, ast.For | ast.While | ast.Break | ast.Continue):
        return "a branch holds a loop or leaves one"
    if isinstance(statement, ast.Expr):
        return f"a branch has an effect: `{' '.join(ast.unparse(statement).split())[:60]}`"
    if isinstance(statement, ast.Assign):
        return "a branch assigns several targets at once"
    return f"a branch holds a statement that may have an effect: `{type(statement).__name__.lower()}`"
