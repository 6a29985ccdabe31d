"""A bounded loop that a tensor leaves early, as one that runs to its end: what follows the exit is masked.

``if c: break`` becomes ``running = running & ~c``, and every value that the loop carries is given by
``torch.where(running, new, old)``. A value that only one iteration uses needs no mask.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from breakscope.fix.layout import indented
from breakscope.fix.patch import Rewrite
from breakscope.fix.predication.condition import split
from breakscope.fix.predication.values import Value, merged, same_type
from breakscope.fix.predication.where import Branches
from breakscope.fix.rule import Site, Unsafe
from breakscope.inside.record.evidence import Seen
from breakscope.source.names import builtin, first_use, reads_outside

# Iterations that are worth computing in every call, each a copy of the body in the graph.
MOST = 64


def is_exit(statement: ast.stmt) -> bool:
    """Whether a statement is an ``if`` whose body ends in ``break``."""
    return isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Break)


def rewrite_loop(site: Site, loop: ast.For) -> Rewrite:
    """The loop without its exits.

    Raises:
        Unsafe: it must stay as it is.
    """
    if loop.orelse:
        raise Unsafe("the loop has an `else`")
    if loop.body[0].lineno == loop.lineno:
        raise Unsafe("the loop stands on one line")
    if not isinstance(loop.target, ast.Name):
        raise Unsafe("the loop gives its items to several names")
    most = _most(site, loop)
    if most > MOST:
        raise Unsafe(f"the loop may run {most} times, and all of them would be computed in every call")
    return _Exits(site, loop, loop.target.id, most).masked()


def _most(site: Site, loop: ast.For) -> int:
    """How often a loop over ``range`` ran at most, had nothing left it."""
    call = loop.iter
    if not isinstance(call, ast.Call) or builtin(site, call.func) != "range" or call.keywords:
        raise Unsafe("the loop is not over a range, so how often it runs is not known")
    ends: list[list[int]] = []
    for arg in call.args:
        try:
            # `-1` and `3` are no expressions that were recorded.
            values: list[object] = [ast.literal_eval(arg)]
        except ValueError:
            seen = site.seen(arg)
            if seen is None or not seen.only("int") or seen.more_values:
                raise Unsafe(f"`{site.text(arg)}` is no Python integer of few values") from None
            values = list(seen.values)
        if not all(type(value) is int for value in values):
            raise Unsafe(f"`{site.text(arg)}` is no integer")
        ends.append([value for value in values if isinstance(value, int)])
    if len(ends) == 1:
        return max(*ends[0], 0)
    step = min((abs(end) for end in ends[2]), default=1) if len(ends) > 2 else 1
    return max(abs(last - first) for first in ends[0] for last in ends[1]) // max(step, 1) + 1


class _Exits(Branches):
    """Renders the body of a loop, masked from its first exit on."""

    def __init__(self, site: Site, loop: ast.For, target: str, most: int) -> None:
        super().__init__(site, loop)
        self.loop, self.target, self.most = loop, target, most
        self.running = self.layout.unique("running")
        self.certain = True
        self.carried: dict[str, None] = {}

    def masked(self) -> Rewrite:
        """The loop without its exits."""
        if reads_outside(self.site, [self.loop], self.target):
            raise Unsafe(f"`{self.target}` is read after the loop")
        stored = [one for statement in self.loop.body for one in ast.walk(statement)]
        if any(isinstance(one, ast.Name) and one.id == self.target and not isinstance(one.ctx, ast.Load)
               for one in stored):  # fmt: skip
            raise Unsafe(f"`{self.target}` is given other values in the loop")
        self.evaluate.names[self.target] = Value("scalar", "int", frozenset(), frozenset({()}))
        column = self.loop.body[0].col_offset
        # Twice: the first iteration begins with what came before the loop, all others with what one leaves.
        self._body(column)
        self.certain, taken = False, set(self.layout.taken)
        self.layout.taken = {self.running}
        lines = self._body(column)
        self.layout.taken |= taken
        if not self.carried:
            raise Unsafe("the loop gives nothing that is used")
        first = next(iter(self.carried))
        start, _ = self.site.offsets(self.loop)
        head = self.site.source[start : self._header_end()]
        begin = f"{self.torch}.ones((), dtype={self.torch}.bool, device={first}.device)"
        text = "\n".join(
            [f"{self.running} = {begin}", " " * self.loop.col_offset + head, indented(lines, column)]
        )
        every = f"all iterations are computed in every call, up to {self.most} in the recorded run"
        self.findings.notes[every] = None
        return self.replaced(text, summary="torch.where instead of leaving the loop")

    def _header_end(self) -> int:
        """Offset behind the line with the loop's colon, its comment included."""
        number = self.site.span(self.loop.iter).end_line
        while not self.site.lines[number - 1].partition("#")[0].rstrip().endswith(":"):
            number += 1
            if number >= self.loop.body[0].lineno:
                raise Unsafe("where the loop's header ends cannot be told")
        return self.site.starts[number] - 1

    def _body(self, column: int) -> list[str]:
        lines: list[str] = []
        block = self.loop.body
        for index, statement in enumerate(block):
            lines += self.layout.comments(block, index)
            if isinstance(statement, ast.If) and is_exit(statement):
                lines += self._exit(statement, column)
            else:
                lines += self.statement(statement, self.running, column)
        return lines

    def _exit(self, statement: ast.If, column: int) -> list[str]:
        if statement.orelse:
            raise Unsafe("the branch that leaves the loop has an `else`")
        condition = split(self.site, self.evaluate, statement.test, ran=False)
        lines = self.layout.header_comments(statement)
        trailing = self.layout.trailing(statement.body[-1]).strip()
        lines += [trailing] if trailing else []
        text = condition.text if condition.atom else f"({condition.text})"
        self.certain = False
        if len(statement.body) == 1:
            return [*lines, f"{self.running} = {self.running} & ~{text}"]
        leaves = self.layout.unique("leaves")
        lines.append(f"{leaves} = {self.running} & {text}")
        self.innermost = statement
        lines += self.render(statement.body[:-1], leaves, column)
        self.innermost = self.loop
        return [*lines, f"{self.running} = {self.running} & ~{leaves}"]

    def choose(self, new: Value, old: Value) -> Value:
        """In the first iteration, up to the first exit, every statement runs: gradients arrive all the same.

        All but those of an old value that the statement does not read: where() lets a zero through to it.
        """
        if not self.certain or not old.deps <= new.deps:
            return super().choose(new, old)
        reason = same_type(new, old)
        if reason is not None:
            raise Unsafe(reason)
        return merged(new, replace(old, deps=new.deps))

    def current(self, name: str) -> Value | None:
        """A value that the loop carries: it must have one before."""
        value = super().current(name)
        if value is None:
            raise Unsafe(f"`{name}` may have no value before the loop, and outlives an iteration")
        if value.kind != "tensor":
            raise Unsafe(f"the loop carries a Python value: `{name}`")
        if not self._of_one_iteration(name):
            self.carried[name] = None
        return value

    def temporary(self, name: str) -> bool:
        """Whether one iteration alone uses a name, after giving it a value."""
        return super().temporary(name) if self.innermost is not self.loop else self._of_one_iteration(name)

    def _of_one_iteration(self, name: str) -> bool:
        if reads_outside(self.site, [self.loop], name):
            return False
        return first_use(self.loop.body, name) == "given"


def read_in(site: Site, node: ast.expr) -> Seen | None:
    """A tensor that a loop's ``range`` is read from; None if there is none."""
    for one in ast.walk(node):
        if isinstance(one, ast.expr) and (seen := site.seen(one)) is not None and "tensor" in seen.kinds:
            return seen
    return None
