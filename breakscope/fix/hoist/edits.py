"""The patch that hands a value down from the caller, as it is written, compared and checked.

Each function on the way gets a parameter that is None by default, and whoever does not pass it has what was
there before: the function that reads computes the value then. *Compared* is the same with the value computed
at the beginning of what is compiled, which both forms can be called with. *Checked* raises where what is
passed is not what would have been read.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from typing import Literal

from breakscope.fix.hoist.caller import passed, value_text
from breakscope.fix.hoist.chain import Step
from breakscope.fix.hoist.reads import Read
from breakscope.fix.patch import Edit
from breakscope.fix.remedies.source import File, Files
from breakscope.fix.rule import Unsafe

Form = Literal["written", "compared", "checked"]

# Not an exception that a script catches.
_CHECK = (
    "({text} if {name} is None else (lambda given, read: given if (type(given), given) == (type(read), read) "
    'else (_ for _ in ()).throw(SystemExit("another value was passed")))({name}, {text}))'
)


def edits(read: Read, name: str, files: Files, form: Form) -> Iterator[Edit]:
    """The changes of source for one place.

    Raises:
        Unsafe: a place cannot be changed, as it is written.
    """
    first, *others = read.chain.steps
    for step in others if form == "compared" else read.chain.steps:
        yield _parameter(_file(step, files), step, name)
    for step in read.chain.steps[:-1]:
        file = _file(step, files)
        yield from (file.keyword(call, f"{name}={name}") for call in step.calls)
    yield from _reading(read, name, files, form)
    if form == "compared":
        value = value_text(read, (first.site.module, first.site.function), {})
        yield _at_the_top(_file(first, files), first, f"{name} = {value}")
    else:
        changed = [edit for entry in read.chain.entries for edit in passed(read, name, entry)]
        if not changed:
            raise Unsafe("no call of what is compiled shows what the value is made of")
        yield from changed


def _file(step: Step, files: Files) -> File:
    file = files.open(step.file)
    assert file is not None
    return file


def _parameter(file: File, step: Step, name: str) -> Edit:
    """One more parameter, the last that has a name."""
    function = step.site.function
    start, end = file.span(function)
    arguments = function.args
    tokens = list(_header(file.text[start:end]))
    last = None
    for at, token in enumerate(tokens):
        rest = arguments.kwarg if token.string == "**" else None
        if rest is not None and tokens[at + 1].string == rest.arg:
            place = _offset(file, start, token.start)
            return Edit(place, place, f"{name}=None, ", file.path)
        last = token if token.string != "," or tokens[at + 1 :] else last
    if last is None:
        raise Unsafe(f"{step.site.qualname} has no parameters")
    place = _offset(file, start, last.end)
    return Edit(place, place, f", {name}=None", file.path)


def _header(text: str) -> Iterator[tokenize.TokenInfo]:
    """The tokens between the parentheses behind a function's name."""
    depth = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        bracket = token.string if token.type == tokenize.OP else ""
        depth -= bracket in (")", "]", "}")
        if depth and token.type not in _BLANK:
            yield token
        depth += bracket in ("(", "[", "{")
        if bracket == ")" and not depth:
            return


_BLANK = (tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT)


def _offset(file: File, start: int, at: tuple[int, int]) -> int:
    """Where a token of a text stands in its file."""
    line, column = at
    for _ in range(line - 1):
        start = file.text.index("\n", start) + 1
    return start + column


def _at_the_top(file: File, step: Step, line: str) -> Edit:
    """A line in front of all that a function does."""
    body = step.site.function.body
    first = body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and len(body) > 1:
        first = body[1]
    start, _ = file.span(first)
    if not file.begins_line(start):
        raise Unsafe(f"{step.site.qualname} stands in one line")
    return Edit(start, start, f"{line}\n{file.indent_of(start)}", file.path)


def _reading(read: Read, name: str, files: Files, form: Form) -> Iterator[Edit]:
    """The place that reads: the value that was passed, or what it read before."""
    step = read.chain.steps[-1]
    file = _file(step, files)
    text = file.source(read.node)
    text = f"{read.cast}({text})" if read.cast else f"({text})" if "\n" in text else text
    statement = _statement(file, step, read.node)
    if form == "compared" and len(read.chain.steps) == 1:
        yield file.replace(read.node, name)
    elif form == "checked":
        yield file.replace(read.node, _CHECK.format(name=name, text=text))
    elif statement is None:
        yield file.replace(read.node, f"({text} if {name} is None else {name})")
    else:
        yield file.before(statement, [f"if {name} is None:", f"    {name} = {text}"])
        yield file.replace(read.node, name)


def _statement(file: File, step: Step, node: ast.expr) -> ast.stmt | None:
    """The statement in front of which the value may be computed; None where that would be too early."""
    around = list(file.parents(node))
    own = around[: next((i for i, one in enumerate(around) if one is step.site.function), 0)]
    if any(isinstance(one, ast.For | ast.AsyncFor | ast.While | ast.Try | ast.With) for one in own):
        return None
    return file.statement(node)
