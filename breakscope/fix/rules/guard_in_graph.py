"""Checks of a tensor's values: ``assert`` and ``if bad: raise``."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from breakscope.fix.catching import caught
from breakscope.fix.layout import Layout, indented
from breakscope.fix.patch import Edit, Refusal, Rewrite
from breakscope.fix.predication.condition import inverted, split
from breakscope.fix.predication.interpreter import Evaluator
from breakscope.fix.rule import Example, Rule, Site, Unsafe
from breakscope.source.dominance import enclosing_statement
from breakscope.source.names import builtin, dotted
from breakscope.source.syntax import shown

_COMPILED = "under torch.compile a failed check raises RuntimeError, on CUDA at the next synchronisation"

_UNCAUGHT = "no compiled code catches the exception: a check in the graph raises past every `except` in it"


_MORE = "before it raises, the branch does more than read tensors"

# What a message may be computed with: none of them writes, draws numbers or asks anything but tensors.
_SELECTED = {"any", "all", "nonzero", "where", "argmax", "argmin", "max", "min", "sum", "isnan", "isfinite"}
_TOLD = {"item", "tolist", "numel", "size", "dim"}


@dataclass(frozen=True, slots=True)
class _Failure:
    """How a branch fails.

    Attributes:
        raised: the name of the exception; None for an assertion, which is one in the graph as well.
        message: for an assertion in the graph, as text of a further argument.
    """

    raised: str | None
    message: str


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
        "A branch that raises does nothing else but compute its message from tensors.",
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
        if isinstance(statement, ast.Assert):
            _escapes(site, statement)
            return _assertion(site, statement)
        if isinstance(statement, ast.If) and not statement.orelse and _fails(site, statement.body[-1]):
            _escapes(site, statement)
            return _raising(site, statement)
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


def _fails(site: Site, last: ast.stmt) -> bool:
    return isinstance(last, ast.Raise) or _never_holds(site, last) is not None


def _never_holds(site: Site, statement: ast.stmt) -> list[ast.expr] | None:
    """The message of ``assert False`` or ``torch._assert(False, message)``; None: it is neither."""
    match statement:
        case ast.Assert(ast.Constant(False), message):
            return [] if message is None else [message]
        case ast.Expr(ast.Call(function, [ast.Constant(False), *message], [])):
            return message if dotted(site, function) == "torch._assert" else None
    return None


def _failure(site: Site, last: ast.stmt) -> _Failure:
    if isinstance(last, ast.Raise):
        return _Failure(*_exception(site, last))
    message = _never_holds(site, last)
    is_text = message and isinstance(message[0], ast.Constant)
    return _Failure(None, f", {ast.unparse(message[0])}" if message and is_text else "")


def _refuse_effects(site: Site, branch: ast.If) -> None:
    """Refuse a branch that does more, before it raises, than read tensors for its message.

    Raises:
        Unsafe: what it does would be left out while compiling.
    """
    made: set[str] = set()
    outer = any(isinstance(one, ast.Global | ast.Nonlocal) for one in ast.walk(site.function))
    for statement in branch.body[:-1]:
        match statement:
            case ast.Assign([ast.Name(name)], value) | ast.AnnAssign(ast.Name(name), _, ast.expr() as value):
                pass
            case _:
                raise Unsafe(f"{_MORE}: `{shown(site, statement, None)}`")
        read = value
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and not value.args:
            read = value.func.value if value.func.attr in _TOLD and not value.keywords else value
        if outer or not _is_selected(site, branch, read, made):
            raise Unsafe(f"{_MORE}: `{shown(site, statement, None)}`")
        (made.add if read is value else made.discard)(name)


def _is_selected(site: Site, branch: ast.If, node: ast.expr, made: set[str]) -> bool:
    """Whether an expression gives a tensor, of tensors and written numbers, and does no more."""

    def all_selected(*parts: ast.expr | None) -> bool:
        return all(
            part is None or isinstance(part, ast.Constant) or _is_selected(site, branch, part, made)
            for part in parts
        )

    match node:
        case ast.Name() | ast.Attribute():
            seen = site.seen_before(branch).get(ast.unparse(node))
            return ast.unparse(node) in made or (seen is not None and seen.only("tensor"))
        case ast.Subscript(value, index):
            parts = index.elts if isinstance(index, ast.Tuple) else [index]
            slices = [part for part in parts if isinstance(part, ast.Slice)]
            bounds = [bound for part in slices for bound in (part.lower, part.upper, part.step)]
            others = [part for part in parts if part not in slices]
            return _is_selected(site, branch, value, made) and all_selected(*bounds, *others)
        case ast.Compare(left, _, others):
            return all_selected(left, *others)
        case ast.BinOp(left, _, right):
            return all_selected(left, right)
        case ast.UnaryOp(ast.Invert() | ast.USub(), operand):
            return all_selected(operand)
        case ast.Call(function, arguments, keywords):
            if any(keyword.arg in (None, "out") for keyword in keywords):
                return False
            full = dotted(site, function) or ""
            if full.startswith("torch."):
                known = full.removeprefix("torch.") in _SELECTED
                return known and all_selected(*arguments, *(one.value for one in keywords))
            method = isinstance(function, ast.Attribute) and function.attr in _SELECTED
            of = function.value if isinstance(function, ast.Attribute) else None
            return method and all_selected(of, *arguments, *(one.value for one in keywords))
    return False


def _raising(site: Site, node: ast.If) -> Rewrite:
    torch = site.torch
    if site.text(node).startswith("elif"):
        raise Unsafe("the check is one of several branches")
    _refuse_effects(site, node)
    failure = _failure(site, node.body[-1])
    layout = Layout(site)
    condition = split(site, Evaluator(site, node), node.test)
    unit = " " * layout.unit
    lines = [
        f"if {torch}.compiler.is_compiling():",
        # Not an assert: Python without assertions would drop it, where it keeps the raise.
        f"{unit}{torch}._assert_async({inverted(condition.text, atom=condition.atom)}{failure.message})",
        f"elif {condition.text}:",
        *(unit + comment for comment in layout.header_comments(node)),
        *(
            unit + line if line else line
            for index, one in enumerate(node.body)
            for line in [*layout.comments(node.body, index), *layout.lines(one)]
        ),
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
        consent=failure.raised not in (None, "RuntimeError"),
        branches=(site.span(node.test),),
    )


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
