"""Sizes that numpy computes from sizes, which Dynamo takes for tensors: Python computes them too."""

from __future__ import annotations

import ast

from breakscope.fix.patch import Edit, Refusal, Rewrite
from breakscope.fix.rule import Example, Rule, Site, Unsafe
from breakscope.fix.rules.integer_division import only_sizes
from breakscope.fix.rules.numpy_number import math_module
from breakscope.source.dominance import enclosing_statement
from breakscope.source.names import builtin, dotted

# Of integers, each gives the same whole number.
_OF_MATH = {"numpy.prod": "prod", "numpy.lcm": "lcm", "numpy.gcd": "gcd"}
_OF_PYTHON = {
    "numpy.max": "max", "numpy.amax": "max", "numpy.min": "min", "numpy.amin": "min", "numpy.sum": "sum",
}  # fmt: skip
_PAIRS = ("numpy.lcm", "numpy.gcd")
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
        calls = [one for one in ast.walk(enclosing_statement(site, site.node)) if _computes_number(site, one)]
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
