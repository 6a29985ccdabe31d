"""What a message looks like that a patch leaves out while compiling: only its lines are not compared."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from breakscope.fix.messages import MESSAGE_METHODS
from breakscope.fix.patch import Patch
from breakscope.fix.source_file import Source
from breakscope.run.words import Silenced

RULE = "quiet-messages"
# A line of which fewer letters and digits are known may be any line.
_FEWEST = 4
_PERCENT = re.compile(r"%(?:\(\w+\))?[-#0 +]*(?:\*|\d+)?(?:\.(?:\*|\d+))?[hlL]?[a-zA-Z]")
_BRACES = re.compile(r"\{[^{}]*\}")

# A text whose parts are known, or, being None, may be anything.
Parts = list[str | None]


def silenced(patches: Sequence[Patch], sources: Mapping[str, Source]) -> tuple[Silenced, ...]:
    """The messages that patches leave out, but for those that cannot be recognised: these are compared."""
    found = []
    for patch in patches:
        if patch.rule != RULE:
            continue
        for edit in patch.edits:
            text = sources[edit.file].text
            first = text.rfind("\n", 0, edit.start) + 1
            found += messages(" " * (edit.start - first) + text[edit.start : edit.end])
    return tuple(found)


def messages(statement: str) -> list[Silenced]:
    """The lines of each message in a statement: of itself, or of all that an ``if`` guards."""
    text = textwrap.dedent(statement).strip()
    try:
        tree = ast.parse(text.removeprefix("el") if text.startswith("elif") else text)
    except SyntaxError:
        return []
    calls = [
        node for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    ]
    return [one for one in (message(ast.unparse(call)) for call in calls) if one is not None]


def message(statement: str) -> Silenced | None:
    """The lines that a statement writes; None if they have no constant text to recognise them by."""
    try:
        tree = ast.parse(textwrap.dedent(statement).strip())
    except SyntaxError:
        return None
    match tree.body:
        case [ast.Expr(ast.Call() as call)]:
            return _written(call)
    return None


def _written(call: ast.Call) -> Silenced | None:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)
    if name == "print":
        parts = _printed(call)
        return None if parts is None else _pattern(parts, "")
    if not call.args and name == "warn":
        return None
    if ast.unparse(call.func) in ("warnings.warn", "warn"):
        return _pattern(_parts(call.args[0]), r".*:\d+: \w+: ", warning=True)
    if name == "write":
        return _pattern(_parts(call.args[0]), "") if call.args else None
    if name in MESSAGE_METHODS:
        args = call.args[1:] if name == "log" else call.args
        if args:
            return _pattern(_formatted(args[0], filled=len(args) > 1), ".*")
    return None


def _printed(call: ast.Call) -> Parts | None:
    options = {keyword.arg: keyword.value for keyword in call.keywords}
    end, separator = options.get("end", ast.Constant("\n")), options.get("sep", ast.Constant(" "))
    if not (
        isinstance(end, ast.Constant) and end.value in ("\n", None) and isinstance(separator, ast.Constant)
    ):
        return None
    between = " " if separator.value is None else str(separator.value)
    parts: Parts = []
    for index, argument in enumerate(call.args):
        parts += [between] if index else []
        parts += _parts(argument)
    return parts


def _parts(node: ast.expr) -> Parts:
    match node:
        case ast.Constant(value):
            return [str(value)]
        case ast.JoinedStr(values):
            return [part for value in values for part in _parts(value)]
        case ast.BinOp(left, ast.Add(), right):
            return [*_parts(left), *_parts(right)]
        case ast.BinOp(left, ast.Mod(), _):
            return _formatted(left, filled=True)
        case ast.Call(ast.Attribute(ast.Constant(str(text)), "format")):
            return _split(_BRACES, text)
    return [None]


def _formatted(node: ast.expr, *, filled: bool) -> Parts:
    """A text with ``%s`` in it, whose places are filled in if there is something to fill them with."""
    parts = _parts(node)
    if not filled:
        return parts
    return [piece for part in parts for piece in ([None] if part is None else _split(_PERCENT, part))]


def _split(places: re.Pattern[str], text: str) -> Parts:
    pieces: Parts = []
    for index, piece in enumerate(places.split(text)):
        pieces += [None, piece] if index else [piece]
    return pieces


def _pattern(parts: Parts, head: str, *, warning: bool = False) -> Silenced | None:
    lines = [line for line in _lines(parts) if any(part is None or part.strip() for part in line)]
    if not lines or any(_known(line) < _FEWEST for line in lines):
        return None
    patterns = []
    for index, line in enumerate(lines):
        # Lines are compared without the spaces that they end with.
        text = "".join(".*" if part is None else re.escape(part) for part in _stripped(line))
        patterns.append(re.compile(f"{head}{text}" if index == 0 else text))
    return Silenced(tuple(patterns), warning)


def _lines(parts: Parts) -> Iterator[Parts]:
    line: Parts = []
    for part in parts:
        if part is None:
            line.append(None)
            continue
        first, *rest = part.split("\n")
        line.append(first)
        for one in rest:
            yield line
            line = [one]
    yield line


def _stripped(line: Parts) -> Parts:
    *front, last = line
    return [*front, last if last is None else last.rstrip()]


def _known(line: Parts) -> int:
    return sum(character.isalnum() for part in line if part is not None for character in part)
