"""The calls of what is compiled: where a value is computed, and passed."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from breakscope.fix.hoist.expression import constants, leaves, put_in
from breakscope.fix.hoist.reads import Read
from breakscope.fix.patch import Edit
from breakscope.fix.remedies import calls
from breakscope.fix.rule import Unsafe
from breakscope.source.module import FunctionNode, Module
from breakscope.source.names import torch_name


def passed(read: Read, name: str, entry: calls.Site) -> Iterator[Edit]:
    """What passes the value at a call of what is compiled; nothing where the call does not show it."""
    signature = entry.signatures[0]
    values: dict[str, ast.expr] = {}
    lines: list[str] = []
    changed: list[Edit] = []
    given = {leaf: _argument(read, entry, leaf) for leaf in leaves(read.value)}
    for leaf, argument in given.items():
        if argument is None or (isinstance(argument.node, ast.Constant) and argument.node.value is None):
            return
        taken = entry.file.names_around(entry.call) | values.keys()
        wanted = (leaf, f"{leaf}_passed", *(f"{leaf}_passed_{number}" for number in range(1, 100)))
        named = entry.named(argument, next(one for one in wanted if one not in taken))
        if named is None:
            raise Unsafe(
                f"what `{signature.entry}` is called with for `{leaf}` cannot be named before the call"
            )
        text, before, uses = named
        values[leaf] = ast.parse(text, mode="eval").body
        lines += before
        changed += uses
    if lines and entry.statement is None:
        raise Unsafe("no line can be put in front of the call of what is compiled")
    maybe = tuple(
        one for one in leaves(read.value) if (a := _argument(read, entry, one)) and entry.may_be_none(a)
    )
    functions = (one for one in entry.file.parents(entry.call) if isinstance(one, FunctionNode))
    value = value_text(read, (entry.file.module, next(functions, None)), values, maybe)
    if lines and entry.statement is not None:
        yield entry.file.before(entry.statement, lines)
    yield from changed
    yield entry.file.keyword(entry.call, f"{name}={value}")
    yield from entry.file.torch_import() if "torch" in value else ()


def _argument(read: Read, entry: calls.Site, leaf: str) -> calls.Argument | None:
    """What a call passes for a parameter; None where it does not show it."""
    signature = entry.signatures[0]
    given, arguments = signature.arguments, read.entry.site.function.args
    names = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
    # A method's object is among what was recorded only where the method was compiled in its class.
    among = not signature.module and signature.parameters[:1] == tuple(names[:1])
    position = names.index(leaf) - int(read.entry.method and not among) if leaf in names else -1
    typed = any(keyword.arg == leaf for keyword in entry.call.keywords)
    shown = max(len(given["args"]), len(entry.call.args) + int(among))
    if 0 <= position < shown and not typed:
        return entry.argument(f"args[{position}]")
    return entry.argument(f"kwargs[{leaf!r}]") if typed or leaf in given["kwargs"] else None


_Where = tuple[Module, ast.AST | None]


def value_text(read: Read, where: _Where, values: dict[str, ast.expr], maybe: Iterable[str] = ()) -> str:
    """The text of the value in the names of a place: of a function, or of the module outside of functions."""
    module, function = where
    for constant in constants(read.value):
        if constant.module is not module or _is_bound_in(function, constant.id):
            raise Unsafe(f"`{constant.id}` of a module means something else, or nothing, where the call is")
    own = {one.id for one in constants(read.value)}
    used = {one.id for one in ast.walk(read.value) if isinstance(one, ast.Name)} - {*leaves(read.value), *own}
    taken = (used | ({read.cast} - {""})) & (module.bound | module.imported) - {"torch"}
    if taken:
        raise Unsafe(f"`{min(taken)}` means something else where the call is")
    names = {**values, "torch": ast.Name(torch_name(module) or "torch", ast.Load())}
    text = ast.unparse(put_in(read.value, names))
    text = f"{read.cast}({text})" if read.cast else text
    absent = dict.fromkeys([*read.absent, *maybe])
    tests = [f"{ast.unparse(values.get(one, ast.Name(one, ast.Load())))} is None" for one in absent]
    return f"None if {' or '.join(tests)} else {text}" if tests else text


def _is_bound_in(function: ast.AST | None, name: str) -> bool:
    """Whether a function gives a name a value of its own."""
    nodes = ast.walk(function) if function is not None else ()
    return any(
        (isinstance(one, ast.arg) and one.arg == name)
        or (isinstance(one, ast.Name) and one.id == name and not isinstance(one.ctx, ast.Load))
        for one in nodes
    )
