"""Numbers that numpy computes from Python's, which Dynamo takes for tensors: ``math`` computes them too."""

from __future__ import annotations

import ast

from breakscope.fix.patch import Edit, Rewrite
from breakscope.fix.rule import Example, Rule, Site
from breakscope.source.dominance import enclosing_statement
from breakscope.source.names import dotted, names_in, stores

_SAME = {"numpy.lcm": ("lcm", 2), "numpy.gcd": ("gcd", 2), "numpy.prod": ("prod", 1)}
_NUMBER = ("numpy.int64",)


class NumpyNumber(Rule):
    """``np.lcm(a, b)`` -> ``math.lcm(a, b)``."""

    name = "numpy-number"
    codes = ("BS101", "BS102", "BS103")
    title = "Python's math instead of numpy for a whole number"
    does = "`np.lcm` and the like of Python integers: `math.lcm`"
    asks = "always: an int instead of a numpy.int64"
    consent = True
    before = ("builtin-pow",)
    needs = (
        "What numpy gave was always a single numpy.int64.",
        "It is computed in the function itself, or in a function of the same module that it calls.",
    )
    hazards = ("The number is an int afterwards: it never overflows, and has no methods of numpy's.",)
    rewritten = Example(
        """\
import numpy as np
import torch


def f(x, a=4, b=6):
    common = np.lcm(a, b)
    if x.shape[0] % common != 0:
        x = x + 1
    return x
""",
        """\
import math
import numpy as np
import torch


def f(x, a=4, b=6):
    common = math.lcm(a, b)
    if x.shape[0] % common != 0:
        x = x + 1
    return x
""",
        calls=("torch.randn(8, 4)", "torch.randn(12, 4)"),
        consent=True,
    )
    left_alone = Example(
        """\
import numpy as np
import torch


def f(x):
    size = np.lcm(np.array([2, 4]), 3)
    if x.shape[0] > size.sum():
        x = x + 1
    return x
""",
        calls=("torch.randn(8, 4)", "torch.randn(12, 4)"),
    )

    def propose(self, site: Site) -> Rewrite | None:
        """Rewrite the calls of numpy behind the numbers at the site."""
        calls = _calls(site)
        if not calls:
            return None
        math = math_module(site)
        if math is None:
            return None
        module, imported = math
        edits = [Edit(*site.offsets(call.func), f"{module}.{_SAME[_name(site, call)][0]}") for call in calls]
        return Rewrite(
            edits=(*edits, *imported),
            summary="Python's math computes the number instead of numpy",
            notes=("the number is an int instead of a numpy.int64, also for others who call this",),
            consent=True,
            differs=True,
        )


def math_module(site: Site) -> tuple[str, tuple[Edit, ...]] | None:
    """The name under which the module has ``math``, and what imports it; None if it has other uses for it."""
    module = next((name for name, target in site.module.imports.items() if target == "math"), "")
    at_top = {
        alias.asname or alias.name
        for one in site.tree.body
        if isinstance(one, ast.Import)
        for alias in one.names
    }
    if module:
        return (module, ()) if module in at_top else None
    numpy = next((one for one in site.tree.body if _imports_numpy(one)), None)
    if numpy is None or "math" in site.module.names | site.module.imported:
        return None
    start, _ = site.offsets(numpy)
    return "math", (Edit(start, start, "import math\n"),)


def _imports_numpy(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import) and any(name.name == "numpy" for name in node.names)


def _name(site: Site, call: ast.Call) -> str:
    return dotted(site, call.func) or ""


def _calls(site: Site) -> list[ast.Call]:
    """Calls of numpy behind the names that the statement at the site reads."""
    statement = enclosing_statement(site, site.node)
    if not any(_imports_numpy(one) for one in site.tree.body):
        return []
    tested: ast.AST = statement.test if isinstance(statement, ast.If | ast.While | ast.Assert) else statement
    behind, followed, found = [tested], set[str](), list[ast.Call]()
    while behind:
        node = behind.pop(0)
        for one in ast.walk(node):
            if isinstance(one, ast.Call) and _is_number(site, one):
                found += [call for call in _numpy_in(site, one) if call not in found]
        for name in sorted(names_in([node]) - followed):
            followed.add(name)
            behind += stores(site, name)
    return found


def _is_number(site: Site, node: ast.expr) -> bool:
    seen = site.seen(node)
    return seen is not None and seen.only("other") and seen.types == _NUMBER


def _numpy_in(site: Site, call: ast.Call) -> list[ast.Call]:
    """A call of numpy itself, or those that the called function of this module returns."""
    if _replaceable(site, call):
        return [call]
    if not isinstance(call.func, ast.Name):
        return []
    name = call.func.id
    functions = [one for one in site.tree.body if isinstance(one, ast.FunctionDef) and one.name == name]
    if len(functions) != 1 or functions[0].decorator_list:
        return []
    returned = [node.value for node in ast.walk(functions[0]) if isinstance(node, ast.Return)]
    return [value for value in returned if isinstance(value, ast.Call) and _replaceable(site, value)]


def _replaceable(site: Site, call: ast.Call) -> bool:
    known = _SAME.get(_name(site, call))
    starred = any(isinstance(arg, ast.Starred) for arg in call.args)
    return known is not None and len(call.args) == known[1] and not call.keywords and not starred
