"""A branch on a tensor that sets tensors and writes a message: the two are parted."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from breakscope.fix.layout import Layout, indented
from breakscope.fix.messages import message_kind
from breakscope.fix.patch import Edit, Refusal, Rewrite
from breakscope.fix.predication.branch import rewrite_if
from breakscope.fix.rule import Example, Rule, Site
from breakscope.fix.rules.quiet_messages import asks_a_tensor, condition_of_messages, with_entry
from breakscope.source.dominance import enclosing_statement


class MessageAndBranch(Rule):
    """``if t: print(m); x = f(x)`` -> the message not while compiling, ``x = torch.where(t, f(x), x)``."""

    name = "message-and-branch"
    codes = ("BS101", "BS102", "BS103", "BS104", "BS107", "BS111", "BS128")
    title = "torch.where for what the branch sets, its message only outside compiled code"
    does = (
        "`if` on a tensor that writes a message and sets tensors: no message while compiling, `torch.where`"
    )
    asks = "always: the message is not written while compiling"
    before = ("quiet-messages", "branch-to-where")
    needs = (
        "The branch has no `else`, and its messages are statements that ask for nothing that it sets.",
        "Without its messages the branch is one that branch-to-where rewrites.",
        "Evaluating the condition acts on nothing.",
    )
    hazards = (
        "Under torch.compile the message is not written.",
        "Outside compiled code the condition is computed twice.",
        "All hazards of branch-to-where and of quiet-messages.",
    )
    rewritten = Example(
        """\
def f(x):
    if x.sum() > 0:
        print("large", x.max().item())
        x = x / 2
    return x
""",
        """\
def f(x):
    if not torch.compiler.is_compiling() and x.sum() > 0:
        print("large", x.max().item())
    x = torch.where(x.sum() > 0, x / 2, x)
    return x
""",
        consent=True,
    )
    left_alone = Example(
        """\
def f(x):
    if x.sum() > 0:
        x = x / 2
        print("now", x)
    return x
""",
        why="the message tells what the branch sets: `x`",
    )

    def propose(self, site: Site) -> Rewrite | Refusal | None:
        """Part the messages of the branch around the site from what it sets."""
        statement = enclosing_statement(site, site.node)
        top = statement if isinstance(statement, ast.If) else site.parents.get(statement)
        if not isinstance(top, ast.If) or not asks_a_tensor(site, top.test):
            return None
        entered = with_entry(site, top)
        messages = {
            one: one.value
            for one in top.body
            if isinstance(one, ast.Expr)
            and isinstance(one.value, ast.Call)
            and message_kind(entered, one.value) is not None
        }
        if not messages or len(messages) == len(top.body):
            return None
        if top.orelse or site.text(top).startswith("elif"):
            return Refusal("the branch writes a message and has another side")
        told = _told(top.body, list(messages))
        if told is not None:
            return Refusal(f"the message tells what the branch sets: `{told}`")
        asked = condition_of_messages(site, top, [top.test], list(messages.values()))
        if isinstance(asked, Refusal):
            return asked
        text, note = asked
        rewrite = rewrite_if(site, top, list(messages))
        (edit,) = rewrite.edits
        layout = Layout(site)
        lines = [line for one in messages for line in layout.lines(one)]
        column = top.col_offset
        text = f"{text}:\n{indented(lines, column + layout.unit)}\n{' ' * column}{edit.text}"
        return replace(
            rewrite,
            edits=(Edit(edit.start, edit.end, text),),
            summary="torch.where for what the branch sets; its message is left out while compiling",
            notes=(note, *rewrite.notes),
            consent=True,
            silent=True,
        )


def _told(body: Sequence[ast.stmt], messages: Sequence[ast.stmt]) -> str | None:
    """What a message asks for that the branch has set by then."""
    made: set[str] = set()
    for statement in body:
        if statement in messages:
            asked = {ast.unparse(node) for node in ast.walk(statement) if isinstance(node, ast.expr)}
            if made & asked:
                return min(made & asked)
        else:
            made |= {
                ast.unparse(node)
                for node in ast.walk(statement)
                if isinstance(getattr(node, "ctx", None), ast.Store) and isinstance(node, ast.expr)
            }
    return None
