"""Messages inside compiled code: left out while compiling."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from breakscope.fix.catching import catches, handles_warnings
from breakscope.fix.layout import Layout
from breakscope.fix.messages import message_effect, message_kind, test_effect
from breakscope.fix.patch import Edit, Refusal, Rewrite
from breakscope.fix.predication.condition import is_scalar_read
from breakscope.fix.rule import Example, Rule, Site, Unsafe
from breakscope.source.dominance import bound_before, enclosing_statement
from breakscope.source.names import dotted

_COMPREHENSION = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_NEVER_FAILS = "computing the text of the message raises nothing, as in the recorded run"
# Of any tensor: neither they nor `any` and `all` of what they give can raise.
_ELEMENTWISE = {"isnan", "isinf", "isfinite"}


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
        "Nothing is computed for it that may act: no iterator is used up, no property of the user's is read.",
        "A condition that a tensor's value decides guards messages only, and evaluating it acts on nothing.",
    )
    hazards = (
        "Under torch.compile the message is not written.",
        "A message that is written each time, not once, is lost each time: with consent only.",
        "A condition that may raise, as `t.item()` of several elements does, is lost too: with consent only.",
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
        if isinstance(statement, ast.If):
            return _guarded(site, statement)
        if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
            return None
        above = site.parents[statement]
        if isinstance(above, ast.If) and asks_a_tensor(site, above.test):
            whole = _guarded(site, above)  # one rewrite for the question and for what is written
            if isinstance(whole, Rewrite):
                return whole
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
            assumes=(_NEVER_FAILS,) if _computes(call) else (),
            consent=kind == "message",
            silent=True,
        )


def _guarded(site: Site, top: ast.If) -> Rewrite | Refusal | None:
    """Messages under a condition on a tensor's value: the condition is not asked while compiling."""
    messages = list(_messages(top))
    kinds = {message_kind(with_entry(site, top), call) if call is not None else None for call in messages}
    if not messages or None in kinds:
        return None
    if top.orelse and not all(isinstance(statement, ast.Pass) for statement in top.orelse):
        return Refusal("the `else` writes messages too, and would write them while compiling")
    tests = [node.test for node in ast.walk(top) if isinstance(node, ast.If)]
    asked = condition_of_messages(site, top, tests, [call for call in messages if call is not None])
    if isinstance(asked, Refusal):
        return asked
    layout = Layout(site)
    text, note = asked
    # The text goes in as a whole statement, so that the messages in it are known to be left out.
    _, end = layout.outer(top.test)
    text += site.source[end : layout.end(top)]
    start = site.offsets(top)[0]
    return Rewrite(
        edits=(Edit(start, layout.end(top), f"{'el' * site.source.startswith('elif', start)}{text}"),),
        summary="the message and its condition are left out while compiling",
        notes=(note,),
        consent=True,  # also for a warning: what it says of the data, nobody else does
        silent=True,
    )


def condition_of_messages(
    site: Site, top: ast.If, tests: Sequence[ast.expr], messages: Sequence[ast.Call]
) -> tuple[str, str] | Refusal:
    """``if not torch.compiler.is_compiling() and TEST`` for messages below an ``if``, and what it changes.

    Args:
        tests: all conditions that the messages are under, that of ``top`` among them.
    """
    site = with_entry(site, top)
    for test in tests:
        effect = test_effect(site, test)
        if effect is not None:
            return Refusal(f"the condition of the message may have an effect: `{effect}`")
    for call in messages:
        effect = message_effect(site, call)
        if effect is not None:
            return Refusal(f"computing the message may have an effect: `{effect}`")
    raises = not all(_never_raises(site, top, test) for test in tests) or any(map(_computes, messages))
    if raises and catches(site, top):
        return Refusal("an `except` around the message may wait for what its condition raises")
    kinds = {message_kind(site, call) for call in messages}
    if "warning" in kinds and handles_warnings(site, top):
        return Refusal("an `except` around the message may wait for the warning")
    start, end = Layout(site).outer(top.test)
    asked = site.source[start:end]
    is_or = isinstance(top.test, ast.BoolOp) and isinstance(top.test.op, ast.Or)
    if (is_or or isinstance(top.test, ast.IfExp)) and (start, end) == site.offsets(top.test):
        asked = f"({asked})"
    noun = "warning" if kinds == {"warning"} else "message"
    note = f"under torch.compile the {noun} is not written, and its condition not asked"
    return (
        f"if not {site.torch}.compiler.is_compiling() and {asked}",
        f"{note}, so that no error of theirs is raised" if raises else note,
    )


def asks_a_tensor(site: Site, test: ast.expr) -> bool:
    """Whether a tensor's value decides a condition, and Dynamo stops at it."""
    operands = test.values if isinstance(test, ast.BoolOp) else [test]
    return any(
        site.is_tensor(node) if node in operands else is_scalar_read(site, node) is not None
        for node in ast.walk(test)
        if isinstance(node, ast.expr)
    )


def _messages(top: ast.If) -> Iterator[ast.Call | None]:
    """The calls that are all that an ``if`` does, those of its inner ones included; None: something else."""
    for statement in (*top.body, *top.orelse):
        match statement:
            case ast.Expr(ast.Call() as call):
                yield call
            case ast.If():
                yield from _messages(statement)
            case ast.Pass():
                pass
            case _:
                yield None


def _computes(call: ast.Call) -> bool:
    """Whether a message's text may fail: it may never have been written, so no run shows that it does not."""
    return any(
        isinstance(node, ast.Call | ast.Subscript | ast.BinOp | ast.Compare | ast.Starred)
        or (isinstance(node, ast.FormattedValue) and node.format_spec is not None)
        for node in ast.walk(call)
        if node is not call
    )


def with_entry(site: Site, top: ast.If) -> Site:
    """The site with names that no call came to, in branches never taken, as they were when the ``if`` began.

    Nothing in it binds a name or acts (which is looked at all the same), so that they are the same there.
    """
    entry = site.seen_before(top)
    inner = {
        id(node)
        for part in ast.walk(top)
        if isinstance(part, _COMPREHENSION)
        for node in ast.walk(part)
        if node is not part
    }
    expressions, entries = dict(site.evidence.expressions), dict(site.evidence.entry)
    for node in ast.walk(top):
        if isinstance(node, ast.Name | ast.Attribute) and id(node) not in inner:
            seen = entry.get(ast.unparse(node))
            if seen is not None:
                expressions.setdefault(site.span(node), seen)
        elif isinstance(node, ast.stmt):
            entries.setdefault(site.span(node), entry)
    return replace(site, evidence=replace(site.evidence, expressions=expressions, entry=entries))


def _never_raises(site: Site, top: ast.If, test: ast.expr) -> bool:
    """Whether a condition is, whatever the tensors in it are: ``torch.isnan(t).any()`` and the like."""
    match test:
        case ast.UnaryOp(ast.Not(), operand):
            return _never_raises(site, top, operand)
        case ast.BoolOp(_, values):
            return all(_never_raises(site, top, value) for value in values)
        case ast.Call(ast.Attribute(ast.Call() as of, "any" | "all"), [], []):
            return _elementwise(site, top, of)
        case ast.Call(function, [ast.Call() as of], []) if dotted(site, function) in (
            "torch.any",
            "torch.all",
        ):
            return _elementwise(site, top, of)
    return False


def _elementwise(site: Site, top: ast.If, call: ast.Call) -> bool:
    match call:
        case ast.Call(ast.Attribute(ast.Name() as tensor, name), [], []) if name in _ELEMENTWISE:
            pass
        case ast.Call(function, [ast.Name() as tensor], []):
            if (dotted(site, function) or "").removeprefix("torch.") not in _ELEMENTWISE:
                return False
        case _:
            return False
    return site.is_tensor(tensor) and bound_before(site, top, tensor.id)
