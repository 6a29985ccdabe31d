"""A function's code with a question in front of it: who it asks may answer the call in its place."""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Callable
from typing import Any

_QUESTION = """
if not torch.compiler.is_compiling():
    {answer} = {ask}(self)
    if {answer} is not None:
        return {answer}(*args, **kwargs)
"""


def asking_first(method: Callable[..., Any], ask: str) -> types.CodeType:
    """The code of ``method(self, *args, **kwargs)``, which first asks the global ``ask`` of its module.

    While Dynamo traces it, nothing is asked: ``is_compiling()`` is a constant then. Every statement of the
    method's own keeps its place, which Dynamo shows in its guards.

    Raises:
        OSError: its source is not there.
        ValueError: it is another kind of method.
    """
    lines, first = inspect.getsourcelines(method)
    # In a class of its own: the source is indented, and columns stay what they are.
    tree = ast.parse("class _:\n" + "".join(lines))
    ast.increment_lineno(tree, first - 2)
    function = tree.body[0].body[0]  # type: ignore[attr-defined]
    code: types.CodeType = method.__code__
    if not isinstance(function, ast.FunctionDef) or (code.co_varnames[:3] != ("self", "args", "kwargs")):
        raise ValueError(f"{method.__qualname__} takes other arguments than self, *args and **kwargs")
    question = ast.parse(_QUESTION.format(ask=ask, answer=f"{ask}answer")).body
    for part in question:
        for node in ast.walk(part):
            ast.copy_location(node, function.body[0])
    function.body[:0] = question
    found = _inner(compile(tree, code.co_filename, "exec"), code.co_name)
    return found.replace(co_qualname=code.co_qualname)


def _inner(code: types.CodeType, name: str) -> types.CodeType:
    """The code of that name somewhere inside ``code``."""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            return constant if constant.co_name == name else _inner(constant, name)
    raise ValueError(f"{code.co_filename} has no {name}")
