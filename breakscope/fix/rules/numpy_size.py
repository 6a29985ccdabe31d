"""Sizes that numpy computes from sizes, which Dynamo takes for tensors: Python computes them too."""

from __future__ import annotations

import ast

from breakscope.fix.patch import Edit, Refusal, Rewrite
from breakscope.fix.rule import Example, Rule, Site, Unsafe
from breakscope.fix.rules.integer_division import only_sizes
from breakscope.fix.rules.numpy_number import math_module
from breakscope.inside.record.evidence import Kind
from breakscope.source.dominance import enclosing_statement
from breakscope.source.names import builtin, dotted

# Of integers, each gives the same whole number.
_OF_MATH = {"numpy.prod": "prod", "numpy.lcm": "lcm", "numpy.gcd": "gcd"}
_OF_PYTHON = {
    "numpy.max": "max", "numpy.amax": "max", "numpy.min": "min", "numpy.amin": "min", "numpy.sum": "sum",
}  # fmt: skip
_PAIRS = ("numpy.lcm", "numpy.gcd")
# Rounded to an integer, each gives what numpy gives of a Python number: sqrt is exact in both, and no size is
# as near to an e**k - 1 as log1p of either is to the right value.
_ROUNDED = {
    "numpy.ceil": "ceil", "numpy.floor": "floor", "numpy.trunc": "trunc", "numpy.sqrt": "sqrt",
    "numpy.log1p": "log1p",
}  # fmt: skip
_REAL = ("numpy.sqrt", "numpy.log1p")
_INTEGER_TYPES = ("int", "int64", "numpy.int64")
_NUMBER = ("numpy.int64",)


class NumpySize(Rule):
    """``x.reshape(-1, np.prod(x.shape[1:]))`` -> ``x.reshape(-1, math.prod(x.shape[1:]))``."""

    name = "numpy-size"
    codes = ("BS102", "BS103", "BS107", "BS110", "BS111")
    title = "Python's math instead of numpy for a size"
    does = "sizes that numpy computes from sizes: `math.prod`, `max`, …"
    before = ("numpy-number",)
    needs = (
        "What numpy gave was always a single numpy.int64, made of Python integers or of sizes.",
        "It goes into int(), or into a call that takes it as a size.",
        "Or an int made of np.ceil, floor, trunc, sqrt and log1p of Python's numbers.",
    )
    hazards = ("A number that is used for more than a size keeps its type: refused.",)
    rewritten = Example(
        """\
import numpy as np
import torch


def f(x):
    return x.reshape(np.prod(x.shape))
""",
        """\
import math
import numpy as np
import torch


def f(x):
    return x.reshape(math.prod(x.shape))
""",
        calls=("torch.randn(6, 4)", "torch.randn(2, 4)"),
    )
    left_alone = Example(
        """\
import numpy as np
import torch


def f(x):
    return x * np.prod(x.shape)
""",
        why="is arithmetic with a tensor",
        calls=("torch.randn(6, 4)", "torch.randn(2, 4)"),
        site="np.prod(x.shape)",
        code="BS102",
    )

    def propose(self, site: Site) -> Rewrite | Refusal | None:
        """Rewrite the call of numpy at the site, or in its statement."""
        statement = enclosing_statement(site, site.node)
        rounded = [found for node in ast.walk(statement) if (found := _rounded(site, node)) is not None]
        if rounded:
            return _in_python(site, rounded)
        calls = [one for one in ast.walk(statement) if _computes_number(site, one)]
        inner = {id(below) for call in calls for below in ast.walk(call) if below is not call}
        outermost = [one for one in calls if isinstance(one, ast.Call) and id(one) not in inner]
        if not outermost:
            return None
        return _rewrite(site, outermost)


def _computes_number(site: Site, node: ast.AST) -> bool:
    """Whether it is a call of one of the functions, with integers only, that gave a single number."""
    if not isinstance(node, ast.Call) or node.keywords:
        return False
    name = dotted(site, node.func) or ""
    if name not in _OF_MATH and name not in _OF_PYTHON:
        return False
    seen = site.seen(node)
    if seen is None or not seen.only("other") or seen.types != _NUMBER:
        return False
    if name in _PAIRS:
        return len(node.args) == 2 and all(site.is_integer(arg) for arg in node.args)
    return len(node.args) == 1 and _holds_integers(site, node.args[0])


def _rounded(site: Site, node: ast.AST) -> tuple[ast.expr, list[ast.Call]] | None:
    """Where numpy rounds what it computed of Python numbers to an int, and its calls in there.

    ``np.ceil(np.log1p(n)).astype("int").item()``. Dynamo itself knows ``int(np.ceil(n / 2))``.
    """
    if not isinstance(node, ast.Call) or not _calls_method(node, "item") or not site.is_integer(node):
        return None
    inner = _taken_out(site, node)
    calls: list[ast.Call] = []
    while isinstance(inner, ast.Call) and dotted(site, inner.func) in _ROUNDED and not inner.keywords:
        calls.append(inner)
        if len(inner.args) != 1:
            return None
        inner = inner.args[0]
    if not calls:
        return None
    # Of an integer numpy's ceil is a float, which loses digits; nobody writes that for a size.
    kinds: tuple[Kind, ...] = ("int", "float") if dotted(site, calls[-1].func) in _REAL else ("float",)
    seen = site.seen(inner)
    return (node, calls) if seen is not None and seen.only(*kinds) else None


def _taken_out(site: Site, node: ast.expr) -> ast.expr:
    """What ``.item()`` and ``.astype(int)`` are asked of."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        cast = node.func.attr == "astype" and len(node.args) == 1 and _is_integer_type(site, node.args[0])
        if not cast and not _calls_method(node, "item"):
            break
        node = node.func.value
    return node


def _calls_method(node: ast.Call, name: str) -> bool:
    return isinstance(node.func, ast.Attribute) and node.func.attr == name and not node.args


def _is_integer_type(site: Site, node: ast.expr) -> bool:
    name = node.value if isinstance(node, ast.Constant) else builtin(site, node) or dotted(site, node)
    return name in _INTEGER_TYPES


def _in_python(site: Site, rounded: list[tuple[ast.expr, list[ast.Call]]]) -> Rewrite:
    """Every rounded number of the statement by ``math``."""
    math = math_module(site)
    if math is None:
        raise Unsafe("the module has another use for the name `math`")
    edits: list[Edit] = []
    for whole, calls in rounded:
        names = "(".join(f"{math[0]}.{_ROUNDED[dotted(site, call.func) or '']}" for call in calls)
        number = f"{names}({site.text(calls[-1].args[0])}{')' * len(calls)}"
        edits.append(Edit(*site.offsets(whole), f"int({number})"))
    edits += [one for one in math[1] if one not in edits]
    return Rewrite(edits=tuple(edits), summary="Python's math computes the size instead of numpy")


def _holds_integers(site: Site, node: ast.expr) -> bool:
    """Whether it is a size, or a list of integers that is written there."""
    if isinstance(node, ast.List | ast.Tuple):
        return bool(node.elts) and all(site.is_integer(elt) for elt in node.elts)
    seen = site.seen(node)
    return seen is not None and seen.only("other") and seen.types == ("torch.Size",)


def _rewrite(site: Site, calls: list[ast.Call]) -> Rewrite:
    edits: list[Edit] = []
    for call in calls:
        if not _is_converted(site, call):
            only_sizes(site, call, set())
        name = dotted(site, call.func) or ""
        if name in _OF_PYTHON:
            if builtin(site, ast.Name(_OF_PYTHON[name], ast.Load())) is None:
                raise Unsafe(f"the module has a `{_OF_PYTHON[name]}` of its own")
            edits.append(Edit(*site.offsets(call.func), _OF_PYTHON[name]))
            continue
        math = math_module(site)
        if math is None:
            raise Unsafe("the module has another use for the name `math`")
        edits.append(Edit(*site.offsets(call.func), f"{math[0]}.{_OF_MATH[name]}"))
        edits += [one for one in math[1] if one not in edits]
    return Rewrite(edits=tuple(edits), summary="Python's math computes the size instead of numpy")


def _is_converted(site: Site, call: ast.Call) -> bool:
    """``int(np.prod(sizes))``: an int either way."""
    parent = site.parents[call]
    return isinstance(parent, ast.Call) and builtin(site, parent.func) == "int" and parent.args == [call]
