"""Checks of a tensor's values: ``assert`` and ``if bad: raise``."""

from __future__ import annotations

import ast

from breakscope.fix.catching import caught
from breakscope.fix.layout import Layout, indented
from breakscope.fix.patch import Edit, Refusal, Rewrite
from breakscope.fix.predication.condition import Condition, split
from breakscope.fix.predication.interpreter import Evaluator
from breakscope.fix.rule import Example, Rule, Site, Unsafe
from breakscope.source.dominance import enclosing_statement
from breakscope.source.names import builtin

_COMPILED = "under torch.compile a failed check raises RuntimeError, on CUDA at the next synchronisation"

_UNCAUGHT = "no compiled code catches the exception: a check in the graph raises past every `except` in it"


class GuardInGraph(Rule):
    """``assert t.max().item() <= n`` -> ``assert t.max() <= n``; ``if bad: raise``: an assert too."""

    name = "guard-in-graph"
    codes = ("BS101", "BS102", "BS103", "BS106")
    title = "a check of values that stays in the graph"
    does = (
        "`assert` and `if bad: raise` on values, checked in the graph, unless something there "
        "catches the exception"
    )
    asks = "if the exception was no RuntimeError or AssertionError, or a caller catches it"
    before = ("branch-to-where",)
    needs = (
        "The condition can be said with tensors alone.",
        "A branch that raises does nothing else, and its message is text.",
        "No `try` or `with` around it, or around a call of its function in its module, may catch it.",
    )
    hazards = (
        "Outside torch.compile nothing changes, neither the exception nor its message.",
        "Under torch.compile the exception is a RuntimeError: with consent only, if it was of another type.",
        "On CUDA it comes at the next synchronisation.",
    )
    rewritten = Example(
        """\
def f(x):
    assert x.max().item() <= 100
    return x + 1
""",
        """\
def f(x):
    assert x.max() <= 100
    return x + 1
""",
    )
    left_alone = Example(
        """\
def f(x):
    assert int(x.max()) < 100
    return x + 1
""",
        why="what `int(x.max())` gives is not what its tensor holds",
    )

    def propose(self, site: Site) -> Rewrite | Refusal | None:
        """Rewrite the assertion or the raising branch whose condition holds the site."""
        statement = enclosing_statement(site, site.node)
        raising = isinstance(statement, ast.If) and len(statement.body) == 1 and not statement.orelse
        if isinstance(statement, ast.Assert):
            _escapes(site, statement)
            return _assertion(site, statement)
        if isinstance(statement, ast.If) and raising and isinstance(statement.body[0], ast.Raise):
            _escapes(site, statement)
            return _raising(site, statement, statement.body[0])
        return None


def _escapes(site: Site, statement: ast.stmt) -> None:
    """Refuse a check whose exception something waits for.

    Raises:
        Unsafe: a check in the graph would go past it.
    """
    catches = caught(site, statement)
    if catches is not None:
        raise Unsafe(f"{catches}, and a check in the graph raises past it")


def _assertion(site: Site, node: ast.Assert) -> Rewrite:
    if node.msg is not None and not isinstance(node.msg, ast.Constant):
        raise Unsafe("the message of the assertion is computed")
    condition = split(site, Evaluator(site, node), node.test)
    start, end = Layout(site).outer(node.test)
    column = " " * node.col_offset
    if not condition.static:
        edits = (Edit(start, end, condition.text),)
    elif node.msg is None:
        edits = (Edit(start, end, f"{condition.static}\n{column}assert {condition.text}"),)
    else:
        message = ast.unparse(node.msg)
        edits = (Edit(start, end, f"{condition.static}, {message}\n{column}assert {condition.text}"),)
    return Rewrite(
        edits=edits,
        summary="the assertion is checked in the graph",
        notes=(_COMPILED,),
        assumes=(_UNCAUGHT,),
        raises=True,
        branches=(site.span(node.test),),
    )


def _raising(site: Site, node: ast.If, raised: ast.Raise) -> Rewrite:
    torch = site.torch
    if site.text(node).startswith("elif"):
        raise Unsafe("the check is one of several branches")
    kind, message = _exception(site, raised)
    layout = Layout(site)
    condition = split(site, Evaluator(site, node), node.test)
    unit = " " * layout.unit
    lines = [
        f"if {torch}.compiler.is_compiling():",
        # Not an assert: Python without assertions would drop it, where it keeps the raise.
        f"{unit}{torch}._assert_async({_negated(condition)}{message})",
        f"elif {condition.text}:",
        *(unit + comment for comment in [*layout.header_comments(node), *layout.comments(node.body, 0)]),
        *(unit + line for line in layout.lines(raised)),
    ]
    start, _ = site.offsets(node)
    if condition.static:
        text = f"if {condition.static}:\n" + indented(lines, node.col_offset + layout.unit)
    else:
        text = indented(lines, node.col_offset).lstrip(" ")
    return Rewrite(
        edits=(Edit(start, layout.end(node), text),),
        summary="the check runs in the graph while compiling",
        notes=(_COMPILED,),
        assumes=(_UNCAUGHT,),
        raises=True,
        consent=kind != "RuntimeError",
        branches=(site.span(node.test),),
    )


def _negated(condition: Condition) -> str:
    return f"~{condition.text}" if condition.atom else f"~({condition.text})"


def _exception(site: Site, raised: ast.Raise) -> tuple[str, str]:
    """Name of the exception, and the message for an assertion."""
    made = raised.exc
    if isinstance(made, ast.Call) and not made.keywords and len(made.args) <= 1:
        name = builtin(site, made.func)
        if name is not None and not made.args:
            return name, ""
        if name is not None and isinstance(made.args[0], ast.Constant):
            text = site.text(made.args[0])
            return name, ", " + (ast.unparse(made.args[0]) if "\n" in text else text)
        if name is not None:
            return name, ""  # a message that is computed would be computed in every call
    name = builtin(site, made) if made is not None else None
    if name is None:
        raise Unsafe("what the branch raises is not one of Python's own exceptions")
    return name, ""
