"""Messages inside compiled code: left out while compiling."""

from __future__ import annotations

import ast

from breakscope.fix.catching import handles_warnings
from breakscope.fix.layout import Layout
from breakscope.fix.messages import message_effect, message_kind, test_effect
from breakscope.fix.patch import Edit, Refusal, Rewrite
from breakscope.fix.rule import Example, Rule, Site, Unsafe
from breakscope.source.dominance import enclosing_statement


class QuietMessages(Rule):
    """``logger.warning_once(m)`` -> ``if not torch.compiler.is_compiling(): logger.warning_once(m)``."""

    name = "quiet-messages"
    codes = ("BS101", "BS102", "BS103", "BS104", "BS107", "BS111", "BS128")
    title = "messages only outside compiled code"
    does = "print, warnings, logging: not while compiling"
    asks = "unless it is written once by design, and nobody listens"
    after = ("known-size",)
    needs = (
        "The message is a statement of its own: print, warnings.warn, or a method of a logger.",
        "Or an `if` that holds nothing else, whose test does nothing but compute.",
        "Nothing is computed for it that may act: no iterator is used up, no property of the user's is read.",
    )
    hazards = (
        "Under torch.compile the message is not written.",
        "A message that is written each time, not once, or for some values: with consent only.",
        "Where the script itself collects messages, or makes warnings errors: with consent only.",
    )
    rewritten = Example(
        """\
def f(x):
    print("hello", x.sum())
    return x + 1
""",
        """\
def f(x):
    if not torch.compiler.is_compiling():
        print("hello", x.sum())
    return x + 1
""",
        consent=True,
    )
    left_alone = Example(
        """\
def f(x):
    print(n := x.shape[0])
    return x + n
""",
        why="computing the message may have an effect: `(n := x.shape[0])`",
    )

    def propose(self, site: Site) -> Rewrite | Refusal | None:
        """Put the message statement that holds the site, or the test before it, under a condition."""
        statement = enclosing_statement(site, site.node)
        asked = _asked_for_messages(site, statement)
        if asked is not None:
            return _unasked(site, asked)
        if site.code == "BS101":
            return None
        if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
            return None
        call = statement.value
        kind = message_kind(site, call)
        if kind is None:
            return None
        torch = site.torch
        if kind == "warning" and handles_warnings(site, statement):
            return Refusal("an `except` around the message may wait for the warning")
        effect = message_effect(site, call)
        if effect is not None:
            return Refusal(f"computing the message may have an effect: `{effect}`")
        try:
            lines = Layout(site).lines(statement)
        except Unsafe:
            return Refusal("the message is a text of several lines")
        layout = Layout(site)
        inner = " " * (statement.col_offset + layout.unit)
        body = "\n".join(inner + line if line else line for line in lines)
        text = f"if not {torch}.compiler.is_compiling():\n{body}"
        start, _ = site.offsets(statement)
        if site.source[site.starts[statement.lineno - 1] : start].strip():
            return Refusal("the message stands behind another statement on its line")
        after = site.source[layout.end(statement) :].partition("\n")[0]
        if after.strip():
            return Refusal("another statement stands behind the message on its line")
        return Rewrite(
            edits=(Edit(start, layout.end(statement), text),),
            summary="the message is left out while compiling",
            notes=(f"under torch.compile the {kind} is not written",),
            consent=kind == "message",
            silent=True,
        )


def _asked_for_messages(site: Site, statement: ast.stmt) -> ast.If | None:
    """The ``if`` that holds messages alone, of a statement that is it or one of its messages."""
    if isinstance(statement, ast.If):
        return statement if not statement.orelse and _messages(site, statement) else None
    above = site.parents.get(statement)
    if not isinstance(above, ast.If) or site.code == "BS104" or statement not in above.body:
        return None
    return above if not above.orelse and _messages(site, above) else None


def _messages(site: Site, branch: ast.If) -> list[ast.Call]:
    """The calls that are all there is in a branch; none if there is something else."""
    calls = [
        statement.value
        for statement in branch.body
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    ]
    only = len(calls) == len(branch.body) and all(message_kind(site, call) for call in calls)
    return calls if only else []


def _unasked(site: Site, branch: ast.If) -> Rewrite | Refusal:
    """``if t.item() > 9:`` -> ``if not torch.compiler.is_compiling() and t.item() > 9:``."""
    effect = test_effect(site, branch.test)
    if effect is not None:
        return Refusal(f"asking whether there is a message may have an effect: `{effect}`")
    for call in _messages(site, branch):
        effect = message_effect(site, call)
        if effect is not None:
            return Refusal(f"computing the message may have an effect: `{effect}`")
        if message_kind(site, call) == "warning" and handles_warnings(site, branch):
            return Refusal("an `except` around the message may wait for the warning")
    start, end = site.offsets(branch.test)
    text = site.source[start:end]
    if isinstance(branch.test, ast.BoolOp | ast.IfExp | ast.Lambda):
        text = f"({text})"
    return Rewrite(
        edits=(Edit(start, end, f"not {site.torch}.compiler.is_compiling() and {text}"),),
        summary="whether there is a message is not asked while compiling",
        notes=("under torch.compile the message is not written, whatever the values are",),
        consent=True,
        silent=True,
    )
