"""Library code that torch.compile cannot look into: an operator of its own, for somebody to finish."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from breakscope.fix.patch import Edit, Refusal, Rewrite
from breakscope.fix.rule import Example, Rule, Site, Unsafe
from breakscope.inside.record.evidence import Seen
from breakscope.source.names import dotted, name_parts, new_name, own_nodes, parameters
from breakscope.source.torch_facts import FLOATING

_LIBRARIES = ("numpy", "scipy", "cv2", "PIL", "skimage", "sklearn", "pandas", "numba")
_NO_OPERATOR = (
    ast.Lambda, ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await, ast.ListComp, ast.SetComp, ast.DictComp,
    ast.GeneratorExp,
)  # fmt: skip
_TYPES = {"int": "int", "float": "float", "bool": "bool", "str": "str"}


class CustomOp(Rule):
    """``torch.from_numpy(np.interp(x.numpy(), a, b))`` -> an operator whose body is that expression."""

    name = "custom-op"
    codes = ("BS102", "BS103", "BS105", "BS107", "BS110", "BS111")
    title = "a custom operator around library code (a scaffold, never proved)"
    does = "a library call as an operator of its own: a scaffold, shown as unproved and never accepted"
    after = ("capture-flag",)
    needs = (
        "The expression gives one tensor, and calls a library that computes outside of torch.",
        "What it reads of the function is tensors and numbers, and no gradient flows through it.",
        "The shape of what it gave was that of one of these tensors, or the same in all recorded calls.",
    )
    hazards = (
        "Never written or applied: what it gives for other shapes is guessed from the recorded calls.",
        "A custom operator may not hand on its inputs or views of them, and has no gradient.",
    )
    rewritten = Example(
        """\
import numpy as np
import torch
from torch import nn


def f(x):
    y = torch.from_numpy(np.interp(x.detach().numpy(), [0.0, 1.0], [0.0, 2.0]))
    return y + 1
""",
        """\
import numpy as np
import torch
from torch import nn


@torch.library.custom_op("custom_ops::f_interp", mutates_args=())
def f_interp(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(np.interp(x.detach().numpy(), [0.0, 1.0], [0.0, 2.0]))


@f_interp.register_fake
def _f_interp_fake(x: torch.Tensor) -> torch.Tensor:
    return x.new_empty(x.shape, dtype=torch.float64)


def f(x):
    y = f_interp(x.detach())
    return y + 1
""",
        calls=("torch.randn(3, 4)", "torch.randn(2, 4)"),
    )
    left_alone = Example(
        """\
import numpy as np
import torch
from torch import nn


def f(x):
    return torch.from_numpy(np.convolve(x.numpy(), [1.0, 2.0]))
""",
        why="the shape of what it gives does not follow",
        calls=("torch.randn(3)", "torch.randn(4)"),
        site="np.convolve(x.numpy(), [1.0, 2.0])",
        code="BS110",
    )

    def propose(self, site: Site) -> Rewrite | Refusal | None:
        """Suggest an operator for the smallest expression around the site that gives a tensor."""
        node = _expression(site)
        if node is None:
            return None
        return _scaffold(site, node)


@dataclass(frozen=True, slots=True)
class _Input:
    """What the expression reads of the function: ``x``, or ``self.table``."""

    path: str
    name: str
    annotation: str
    seen: Seen


def _expression(site: Site) -> ast.expr | None:
    """The smallest expression around the site that gave tensors only, and that calls a library."""
    return next((one for one in site.around() if site.is_tensor(one) and _calls_library(site, one)), None)


def _calls_library(site: Site, node: ast.expr) -> bool:
    names = [dotted(site, one.func) for one in ast.walk(node) if isinstance(one, ast.Call)]
    return any(name is not None and name.partition(".")[0] in _LIBRARIES for name in names)


def _scaffold(site: Site, node: ast.expr) -> Rewrite:
    torch = site.torch
    if any(isinstance(one, _NO_OPERATOR) for one in ast.walk(node)):
        raise Unsafe("the expression has names of its own, so it cannot be moved as it is")
    given = site.seen(node)
    assert given is not None
    if given.requires_grad:
        raise Unsafe("gradients flow through it: a custom operator needs a formula for them")
    if len(given.dtypes) != 1 or len(given.devices) != 1:
        raise Unsafe("what it gave was of several dtypes, or on several devices")
    inputs = _inputs(site, node)
    names = {one.path: one.name for one in inputs}
    tensors = [one for one in inputs if one.annotation.endswith("Tensor")]
    if not tensors:
        raise Unsafe("it reads no tensor: compute it outside of the compiled function")
    operator = new_name(site, _operator_name(site, node))
    signature = ", ".join(f"{one.name}: {one.annotation}" for one in inputs).replace("torch.", f"{torch}.")
    shape, guess = _shape(tensors, given)
    dtype = next(iter(given.dtypes))
    definition = (
        f'@{torch}.library.custom_op("custom_ops::{operator}", mutates_args=())\n'
        f"def {operator}({signature}) -> {torch}.Tensor:\n"
        f"    return {_moved(node, names)}\n\n\n"
        f"@{operator}.register_fake\n"
        f"def _{operator}_fake({signature}) -> {torch}.Tensor:\n"
        f"    return {tensors[0].name}.new_empty({shape}, dtype={torch}.{dtype})\n\n\n"
    )
    # What it gives has no gradient, and the operator has no formula for one.
    call = ", ".join(f"{one.path}.detach()" if one.seen.dtypes & FLOATING else one.path for one in inputs)
    top = _top(site)
    start = site.starts[min([top.lineno, *(one.lineno for one in top.decorator_list)]) - 1]
    return Rewrite(
        edits=(Edit(start, start, definition), Edit(*site.offsets(node), f"{operator}({call})")),
        summary="a custom operator around the library call",
        notes=("the operator has no gradient, and graphs do not fuse across it",),
        assumes=(f"{guess}, and it stays {dtype}, as in the recorded run",),
        scaffold=f"{guess} in the recorded run, and nobody knows what else it may be",
    )


def _inputs(site: Site, node: ast.expr) -> list[_Input]:
    """Tensors and numbers that the expression takes from the function.

    Raises:
        Unsafe: it takes something else.
    """
    own = set(parameters(site.function))
    for part in own_nodes(site.function):
        if isinstance(part, ast.Import | ast.ImportFrom):
            raise Unsafe("the function imports by itself, and its operator would stand outside of it")
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            own.add(part.id)
    found: dict[str, _Input] = {}
    for read in _reads(site, node):
        root = next(part for part in ast.walk(read) if isinstance(part, ast.Name))
        if root.id not in own:
            continue
        path = ast.unparse(read)
        seen = site.seen(read)
        if seen is None or len(seen.kinds) != 1 or not seen.kinds <= {"tensor", *_TYPES}:
            raise Unsafe(f"it reads `{path}`, which is neither a tensor nor a number")
        kind = "torch.Tensor" if seen.only("tensor") else _TYPES[next(iter(seen.kinds))]
        name = re.sub(r"\W+", "_", path.removeprefix("self."))
        found.setdefault(path, _Input(path, name, kind, seen))
    if len({one.name for one in found.values()}) != len(found):
        raise Unsafe("two of its inputs would get one name")
    return list(found.values())


def _reads(site: Site, node: ast.expr) -> list[ast.expr]:
    """The longest paths (``x``, ``self.scale``) that are a tensor or a number, in source order."""
    found: list[ast.expr] = []

    def visit(one: ast.AST) -> None:
        if isinstance(one, ast.expr) and name_parts(one):
            seen = site.seen(one)
            plain = seen is not None and seen.only("tensor", "int", "float", "bool", "str")
            if isinstance(one, ast.Name) or plain:
                found.append(one)
                return
        for child in ast.iter_child_nodes(one):
            visit(child)

    visit(node)
    return [one for one in found if isinstance(getattr(one, "ctx", None), ast.Load)]


def _moved(node: ast.expr, names: dict[str, str]) -> str:
    """The expression with the operator's own names for what it reads."""

    class Rename(ast.NodeTransformer):
        def visit(self, one: ast.AST) -> ast.AST:
            if isinstance(one, ast.Name | ast.Attribute) and (name := names.get(ast.unparse(one))):
                return ast.Name(name, ast.Load())
            return self.generic_visit(one)

    copied = ast.parse(ast.unparse(node), mode="eval").body
    return ast.unparse(Rename().visit(copied))


def _shape(tensors: list[_Input], given: Seen) -> tuple[str, str]:
    """Source of the result's shape, and how it is known."""
    for tensor in tensors:
        if tensor.seen.shapes == given.shapes:
            return f"{tensor.name}.shape", f"what it gave had the shape of `{tensor.path}`"
    if len(given.shapes) == 1:
        shape = next(iter(given.shapes))
        return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})", f"its shape was {shape}"
    raise Unsafe("the shape of what it gives does not follow from the shapes of its inputs")


def _operator_name(site: Site, node: ast.expr) -> str:
    called = next(
        name.rpartition(".")[2]
        for one in ast.walk(node)
        if isinstance(one, ast.Call) and (name := dotted(site, one.func))
        and name.partition(".")[0] in _LIBRARIES
    )  # fmt: skip
    return f"{site.function.name.strip('_')}_{called}".lower()


def _top(site: Site) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef:
    """The definition at the module's top that holds the site."""
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef = site.function
    while site.parents[node] is not site.tree:
        above = site.parents[node]
        if not isinstance(above, ast.ClassDef):
            raise Unsafe("the function is defined inside another one, or inside a branch")
        node = above
    return node
