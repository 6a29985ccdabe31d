"""Functions that run themselves as an operator: compiled code then comes to all that eager code comes to."""

from __future__ import annotations

import ast
from collections.abc import Mapping


def self_run(tree: ast.Module) -> Mapping[str, str]:
    """Functions that hand their arguments to an operator which runs a function of the module: its name.

    They look like this, and no way else::

        @torch.library.custom_op(...)
        def operator(order, a, b):
            return torch.from_numpy(f(tuple(a), b))

        def compiled(a, b, order=...):
            return operator(order, a, b).numpy()
    """
    functions = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef)}
    found: dict[str, str] = {}
    for name, function in functions.items():
        match _returned(function):
            case ast.Call(ast.Attribute(ast.Call(ast.Name(called), given, []), "numpy"), [], []):
                names, operator = _names(given), functions.get(called)
            case _:
                continue
        if operator is None or names is None or _parameters(function) != [*names[1:], *names[:1]]:
            continue
        run = _run_by(operator, names)
        if run in functions and _parameters(functions[run]) == names[1:]:
            found[name] = run
    return found


def hands_on(block: list[ast.stmt], function: ast.AST, runs: Mapping[str, str]) -> bool:
    """Whether a block is ``return compiled(a, b)`` in the function that ``compiled`` runs."""
    if not isinstance(function, ast.FunctionDef):
        return False
    match block:
        case [ast.Return(ast.Call(ast.Name(called), given, []))]:
            return runs.get(called) == function.name and _names(given) == _parameters(function)
    return False


def _run_by(operator: ast.FunctionDef, names: list[str]) -> str | None:
    match operator.decorator_list, _returned(operator):
        case [ast.Call(ast.Attribute(attr="custom_op"))], ast.Call(
            ast.Attribute(attr="from_numpy"), [ast.Call(ast.Name(run), given, [])], []
        ):
            same = _parameters(operator) == names and _names(given) == names[1:]
            return run if same else None
    return None


def _returned(function: ast.FunctionDef) -> ast.expr | None:
    body = function.body
    return body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None


def _parameters(function: ast.FunctionDef) -> list[str]:
    return [arg.arg for arg in function.args.args]


def _names(given: list[ast.expr]) -> list[str] | None:
    """``a`` and ``tuple(a)`` alike; None if there is anything else."""
    found = []
    for one in given:
        match one:
            case ast.Name(name) | ast.Call(ast.Name("tuple"), [ast.Name(name)], []):
                found.append(name)
            case _:
                return None
    return found
