"""``t.item()``, ``float(t)``, ``int(t)`` whose number only goes back into tensor arithmetic."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from breakscope.fix.alias import gives_own
from breakscope.fix.def_use import uses
from breakscope.fix.patch import Edit, Refusal, Rewrite
from breakscope.fix.predication.condition import is_scalar_read
from breakscope.fix.rule import Example, Rule, Site, Unsafe
from breakscope.inside.record.evidence import Seen
from breakscope.source.names import parameters, stores
from breakscope.source.syntax import grouped
from breakscope.source.torch_facts import FLOATING, INTEGRAL

_ARITHMETIC = ast.Add | ast.Sub | ast.Mult
_ORDER = ast.Lt | ast.LtE | ast.Gt | ast.GtE | ast.Eq | ast.NotEq


class ScalarRead(Rule):
    """``x * t.item()`` -> ``x * t.detach().clone()``."""

    name = "scalar-read"
    codes = ("BS102", "BS103")
    title = "a tensor instead of the number read from it"
    does = "`x * t.item()` keeps the tensor"
    before = ("boolean-value",)
    needs = (
        "The number is used only in +, -, *, / and comparisons with tensors.",
        "The tensor that it is read from has one element, and the dtype of what it meets (or is an integer).",
    )
    hazards = (
        "Reading a number cuts the gradient, so the tensor is detached.",
        "A number that decides a branch in Python, a shape or an index is left alone.",
        "Arithmetic of the number alone is done in float64, as Python does it.",
    )
    rewritten = Example(
        """\
def f(x):
    return x * x.max().item()
""",
        """\
def f(x):
    return x * x.max().detach()
""",
    )
    left_alone = Example(
        """\
def f(x):
    return x * int(x.max())
""",
        why="int() drops the fraction",
    )

    def propose(self, site: Site) -> Rewrite | Refusal | None:
        """Rewrite the read at the site, if all that its number meets are tensors."""
        read = _read_at(site)
        if read is None:
            return None
        return _rewrite(site, *read)


@dataclass(frozen=True, slots=True)
class _Use:
    """How a number is used: ``python`` arithmetic on its way, then an operation with tensors.

    Attributes:
        divides: it is a divisor. kept: autograd keeps it for the way back.
    """

    python: bool
    divides: bool
    kept: bool = False


def _read_at(site: Site) -> tuple[ast.Call, ast.expr] | None:
    node: ast.AST = site.node
    for _ in range(3):
        inner = is_scalar_read(site, node)
        if inner is not None and isinstance(node, ast.Call):
            return node, inner
        parent = site.parents.get(node)
        if parent is None or isinstance(node, ast.stmt):
            return None
        node = parent
    return None


def _rewrite(site: Site, call: ast.Call, inner: ast.expr) -> Rewrite:
    seen = site.seen(inner)
    if seen is None or len(seen.dtypes) != 1:
        raise Unsafe("the tensor that is read was of several dtypes")
    dtype = next(iter(seen.dtypes))
    if any(size != 1 for shape in seen.shapes for size in shape):
        raise Unsafe("the tensor that is read does not always have one element")
    kind = call.func.id if isinstance(call.func, ast.Name) else "item"
    if dtype not in FLOATING | INTEGRAL or kind == "bool":
        raise Unsafe("a bool is read, for Python to decide with: a tensor in its place would break there")
    if kind == "int" and dtype in FLOATING:
        raise Unsafe("int() drops the fraction")
    floats = dtype in FLOATING or kind == "float"
    numbers = uses(site, call, "the number")
    if not numbers:
        raise Unsafe("the number is not used")
    converted = kind == "float" and dtype in INTEGRAL
    found = [_use(site, node, dtype, floats=floats, python=converted) for node in numbers]
    text = grouped(inner, site.text(inner))
    if dtype in FLOATING:
        text += ".detach()"
    if seen.shapes - {()}:
        text += ".reshape(())"
    converts = any(use.python for use in found) and dtype != "float64"
    saved = site.evidence.grad and not converts and any(use.kept for use in found)
    kept = _kept(site, call) or saved
    if kept and not _own(site, inner):
        text += ".clone()"  # the tensor may be changed in place before its number, or the way back, needs it
    if any(use.python for use in found):
        text += ".double()"
    divides = any(use.divides for use in found)
    notes = ("on CUDA, division by a tensor may round the last bit otherwise",) if divides else ()
    on_gpu = divides and seen.devices != {"cpu"}
    start, end = site.offsets(call)
    return Rewrite(
        edits=(Edit(start, end, text),),
        summary="the tensor itself instead of its number",
        notes=notes,
        assumes=(f"`{site.text(inner)}` stays {dtype} with one element, as in the recorded run",),
        exact="reassociated" if on_gpu else "bitwise",
    )


def _kept(site: Site, call: ast.Call) -> bool:
    """Whether the number is given to a name, so that time passes before it is used."""
    return isinstance(site.parents[call], ast.Assign)


def _own(site: Site, node: ast.expr) -> bool:
    """Whether nobody can change the tensor in place: a new one, maybe under a name that only computes."""
    if gives_own(site, node):
        return True
    if not isinstance(node, ast.Name) or node.id in parameters(site.function):
        return False
    made, name = stores(site, node.id), node.id
    names = [one for one in ast.walk(site.function) if isinstance(one, ast.Name) and one.id == name]
    if sum(not isinstance(one.ctx, ast.Load) for one in names) != len(made) or not all(
        gives_own(site, one) for one in made
    ):
        return False
    return bool(made) and all(_only_read(site, one) for one in names if isinstance(one.ctx, ast.Load))


def _only_read(site: Site, node: ast.Name) -> bool:
    """Whether a read of a tensor's name neither writes into it nor hands it on."""
    parent = site.parents[node]
    if isinstance(parent, ast.Attribute):
        return parent.attr in ("item", "abs", "clone") and isinstance(site.parents[parent], ast.Call)
    return isinstance(parent, ast.BinOp | ast.Compare) or is_scalar_read(site, parent) is node


def _use(site: Site, node: ast.expr, dtype: str, *, floats: bool, python: bool) -> _Use:
    """Follow a number up to the tensor that it meets.

    Raises:
        Unsafe: it meets something else.
    """
    while True:
        parent = site.parents[node]
        if isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.USub):
            node = parent
            continue
        if isinstance(parent, ast.BinOp):
            left = parent.left is node
            other = site.seen(parent.right if left else parent.left)
            constant = parent.right if left else parent.left
            if other is not None and other.only("tensor"):
                _meets(
                    site, parent, parent.op, other, dtype, floats=floats or python, python=python, left=left
                )
                return _Use(python, isinstance(parent.op, ast.Div), isinstance(parent.op, ast.Mult | ast.Div))
            is_number = isinstance(constant, ast.Constant) or (
                other is not None and other.only("int", "float")
            )
            if not is_number or not isinstance(parent.op, _ARITHMETIC) or not floats:
                raise Unsafe(f"`{site.text(parent)}` is computed in Python")
            node, python = parent, True
            continue
        if isinstance(parent, ast.Compare) and len(parent.ops) == 1 and isinstance(parent.ops[0], _ORDER):
            other = site.seen(parent.comparators[0] if parent.left is node else parent.left)
            if other is not None and other.only("tensor"):
                _meets(site, parent, parent.ops[0], other, dtype, floats=floats, python=python, left=False)
                return _Use(python, divides=False)
        raise Unsafe(_reason(node, parent))


def _meets(
    site: Site,
    parent: ast.expr,
    op: ast.AST,
    other: Seen | None,
    dtype: str,
    *,
    floats: bool,
    python: bool,
    left: bool,
) -> None:
    """Whether a 0-dim tensor does there what the number did.

    Raises:
        Unsafe: it would promote or round otherwise.
    """
    text = site.text(parent)
    if not isinstance(op, _ARITHMETIC | _ORDER | ast.Div) or other is None:
        raise Unsafe(f"`{text}` may treat a number and a tensor differently")
    if isinstance(op, ast.Div) and left:
        raise Unsafe(f"`{text}` may treat a number and a tensor differently")
    if not other.dtypes <= FLOATING:
        raise Unsafe(f"`{text}` would promote otherwise with a tensor")
    if () in other.shapes and (python or (floats and other.dtypes != {dtype})):
        raise Unsafe(f"`{text}` would promote otherwise with a tensor")
    exact = {"float32", "float64"}
    if (python or not floats) and not other.dtypes <= exact:
        raise Unsafe(f"`{text}` would round otherwise with a tensor")
    if python and isinstance(op, _ORDER):
        raise Unsafe(f"`{text}` would compare in another precision")
    if floats and not python and other.dtypes != {dtype}:
        raise Unsafe(f"`{text}` would round otherwise with a tensor")


def _reason(node: ast.AST, parent: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())[:50]
    if isinstance(parent, ast.If | ast.IfExp | ast.While | ast.BoolOp | ast.Assert):
        return f"`{text}` decides a branch in Python"
    if isinstance(parent, ast.Subscript | ast.Slice):
        return f"`{text}` is an index or a bound of a slice"
    if isinstance(parent, ast.Call | ast.keyword):
        return f"`{text}` is handed to a function as a Python number"
    if isinstance(parent, ast.Return | ast.Tuple | ast.Dict | ast.List):
        return f"`{text}` leaves the function as a Python number"
    return f"`{text}` is used as a Python number"
