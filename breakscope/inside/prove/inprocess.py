"""Two functions compared in the calling process, for :func:`breakscope.prove` and the pytest fixture."""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
import types
from collections.abc import Callable, Sequence
from typing import Any

import torch

from breakscope.inside.prove import pair, pair_patch
from breakscope.inside.prove.attempt import Call
from breakscope.inside.prove.budget import Budget
from breakscope.inside.prove.claims import Claims
from breakscope.inside.prove.session import Session
from breakscope.inside.prove.tally import Tally

_FACTORY = "__breakscope_factory__"


class SourceError(ValueError):
    """The source of a function cannot be read, so that its conditions cannot be watched."""


def compared(
    old: Callable[..., Any],
    new: Callable[..., Any],
    calls: Sequence[Call],
    claims: Claims,
    budget_s: float,
) -> dict[str, Any]:
    """What :meth:`breakscope.inside.prove.tally.Tally.result` says of two functions on some calls.

    Raises:
        SourceError: one of them is no plain Python function with a source.
    """
    old_node, new_node = _node(old), _node(new)
    watched, new_watched = _node(old), _node(new)
    found = pair_patch.watch(watched, new_node, old.__name__, 0, in_new=False)
    found += pair_patch.watch(new_watched, old_node, old.__name__, len(found), in_new=True)
    conditions = [watched.condition for watched in found]
    tally = Tally(old.__name__, conditions, claims, anybody=True)
    session = Session(tally, Budget(budget_s), save=lambda: None)
    forms = {
        "old": old,
        "new": new,
        "watched": _made(watched, old),
        "new_watched": _made(new_watched, new),
    }
    before = vars(builtins).get(pair.CONDITION)
    vars(builtins)[pair.CONDITION] = lambda _name, index, value: tally.condition(index, value)
    stance = torch.compiler.set_stance("force_eager")
    try:
        with stance:
            for args, kwargs in calls:
                session.examine(forms, args, kwargs)
    finally:
        if before is None:
            del vars(builtins)[pair.CONDITION]
        else:
            vars(builtins)[pair.CONDITION] = before
        torch.compiler.reset()
    return tally.result()


def _node(function: Callable[..., Any]) -> ast.FunctionDef:
    if not isinstance(function, types.FunctionType):
        raise SourceError(f"{function!r} is no plain Python function")
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError) as error:
        raise SourceError(f"the source of {function.__qualname__} cannot be read: {error}") from None
    node = tree.body[0]
    if not isinstance(node, ast.FunctionDef) or function.__name__ != node.name:
        raise SourceError(f"{function.__qualname__} is no plain Python function")
    others = [one for one in node.decorator_list if not pair.switches_gradients(one)]
    if others or hasattr(function, "__wrapped__"):
        raise SourceError(f"{function.__qualname__} is decorated: hand in the function itself")
    return node


def _made(node: ast.FunctionDef, like: Callable[..., Any]) -> Callable[..., Any]:
    """A function of another body, with the globals, the closure and the defaults of one that is there."""
    assert isinstance(like, types.FunctionType)
    names = like.__code__.co_freevars
    cells = dict(zip(names, like.__closure__ or (), strict=True))
    node.decorator_list = []
    parameters = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
    factory = ast.FunctionDef(_FACTORY, parameters, [node], [], None, None)
    factory.type_params = []  # type: ignore[attr-defined]
    module = ast.fix_missing_locations(ast.Module([factory], []))
    code = compile(module, like.__code__.co_filename, "exec", dont_inherit=True)
    outer = next(constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    inner = next(
        constant
        for constant in outer.co_consts
        if isinstance(constant, types.CodeType) and constant.co_name == node.name
    )
    closure = tuple(cells[name] for name in inner.co_freevars)
    made = types.FunctionType(inner, like.__globals__, like.__name__, like.__defaults__, closure)
    made.__kwdefaults__ = like.__kwdefaults__
    made.__module__, made.__qualname__ = like.__module__, like.__qualname__
    return made
