"""Messages inside compiled code: left out while compiling."""

from __future__ import annotations

import ast

from breakscope.fix.catching import handles_warnings
from breakscope.fix.layout import Layout
from breakscope.fix.messages import message_effect, message_kind
from breakscope.fix.patch import Edit, Refusal, Rewrite
from breakscope.fix.rule import Example, Rule, Site, Unsafe
from breakscope.source.dominance import enclosing_statement


class QuietMessages(Rule):
    """``logger.warning_once(m)`` -> ``if not torch.compiler.is_compiling(): logger.warning_once(m)``."""

    name = "quiet-messages"
    codes = ("BS102", "BS103", "BS104", "BS107", "BS111", "BS128")
    title = "messages only outside compiled code"
    does = "print, warnings, logging: not while compiling"
    asks = "unless it is written once by design, and nobody listens"
    after = ("known-size",)
    needs = (
        "The message is a statement of its own: print, warnings.warn, or a method of a logger.",
        "Nothing is computed for it that may act: no iterator is used up, no property of the user's is read.",
    )
    hazards = (
        "Under torch.compile the message is not written.",
        "A message that is written each time, not once, is lost each time: with consent only.",
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
        """Put the message statement that holds the site under a condition."""
        statement = enclosing_statement(site, site.node)
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
