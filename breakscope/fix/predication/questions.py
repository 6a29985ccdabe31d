"""Questions that Python asks of tensors by other means than an operator: ``any([a, b])``, ``3 in ids``.

Each has a tensor that says the same. What is not listed is not known, and stays as it is.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from breakscope.fix.precision import exact_in
from breakscope.fix.predication.values import Value
from breakscope.fix.rule import Site, Unsafe
from breakscope.inside.record.evidence import Seen
from breakscope.source.names import builtin, dotted
from breakscope.source.syntax import on_one_line, operand
from breakscope.source.torch_facts import FLOATING

# Source of a 0-dim bool tensor, and whether it needs no parentheses.
Said = tuple[str, bool]

_CHECKS = ("isnan", "isinf", "isfinite")
_ORDER = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
# What only moves an array's tensor to where numpy can see it.
_TO_NUMPY = ("numpy", "detach", "cpu")


def operands(site: Site, node: ast.AST) -> tuple[str, list[ast.expr]] | None:
    """``|`` and the operands of ``any([a, b])``; ``&`` and those of ``all((a, b))``."""
    call = _any_or_all(site, node)
    if call is None or not isinstance(call.args[0], ast.List | ast.Tuple):
        return None
    parts = call.args[0].elts
    if not any(site.is_tensor(part) for part in parts) or any(isinstance(p, ast.Starred) for p in parts):
        return None
    is_any = isinstance(call.func, ast.Name) and call.func.id == "any"
    return "|" if is_any else "&", parts


def asks(site: Site, node: ast.AST) -> bool:
    """Whether Python is told something about a tensor's values here, going by what was seen."""
    if operands(site, node) is not None:
        return True
    if (call := _any_or_all(site, node)) is not None:
        return site.is_tensor(call.args[0])
    if (pair := _membership(node)) is not None:
        return site.is_tensor(pair[1])
    if isinstance(node, ast.Call) and (checked := _checked(site, node)) is not None:
        inner = read(checked) or checked
        return site.is_tensor(inner)
    return _of_array(site, node)


def said(site: Site, node: ast.expr, value: Callable[[ast.expr], Value]) -> Said | None:
    """The tensor that says the same as a question; None if it is none of these.

    Args:
        value: what is known of an operand; raises Unsafe if it must not be evaluated.

    Raises:
        Unsafe: it is one, but no tensor is known to say the same.
    """
    if (call := _any_or_all(site, node)) is not None and site.is_tensor(call.args[0]):
        return _any_of_rows(site, call, value)
    if (pair := _membership(node)) is not None and site.is_tensor(pair[1]):
        return _contains(site, node, *pair, value)
    if isinstance(node, ast.Call) and (checked := _checked(site, node)) is not None:
        inner = read(checked) or checked
        return _check(site, node, inner, value) if _one_element(site.seen(inner)) else None
    if _of_array(site, node):
        return _elementwise(site, node, value), True
    return None


def read(node: ast.expr) -> ast.expr | None:
    """``t`` of ``t.item()`` and ``float(t)``."""
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    if isinstance(node.func, ast.Attribute) and node.func.attr == "item" and not node.args:
        return node.func.value
    if isinstance(node.func, ast.Name) and node.func.id == "float" and len(node.args) == 1:
        return node.args[0]
    return None


def _any_or_all(site: Site, node: ast.AST) -> ast.Call | None:
    if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
        return None
    return node if builtin(site, node.func) in ("any", "all") else None


def _any_of_rows(site: Site, call: ast.Call, value: Callable[[ast.expr], Value]) -> Said:
    """``any(t)`` goes through the rows of ``t``: what it says of numbers, ``t.any()`` says too."""
    rows = call.args[0]
    known = value(rows)
    assert isinstance(call.func, ast.Name)
    if known.shapes is None or any(len(shape) != 1 for shape in known.shapes):
        raise Unsafe(f"`{site.text(rows)}` is not known to be a vector")
    text = f"{operand(site, rows)}.{call.func.id}()"
    return (f"({text} != 0)", True) if known.dtype in ("uint8", None) else (text, True)


def _membership(node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """``a`` and ``b`` of ``a in b`` and ``a not in b``."""
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return None
    return (node.left, node.comparators[0]) if isinstance(node.ops[0], ast.In | ast.NotIn) else None


def _contains(
    site: Site, node: ast.expr, item: ast.expr, tensor: ast.expr, value: Callable[[ast.expr], Value]
) -> Said:
    """``3 in ids``: a tensor compares itself with the item, and asks whether any element is equal."""
    assert isinstance(node, ast.Compare)
    known, searched = value(item), value(tensor)
    if known.kind != "scalar" and not (known.kind == "tensor" and known.zero_dim):
        raise Unsafe(f"`{site.text(item)}` is not known to be a single number")
    if searched.kind != "tensor":
        raise Unsafe(f"`{site.text(tensor)}` is not known to be a tensor")
    text = f"({operand(site, tensor)} == {operand(site, item)}).any()"
    return f"~{text}" if isinstance(node.ops[0], ast.NotIn) else text, True


def _checked(site: Site, call: ast.Call) -> ast.expr | None:
    """What ``math.isnan`` and its like, or numpy's, are asked about."""
    head, _, name = (dotted(site, call.func) or "").rpartition(".")
    if head not in ("math", "numpy") or name not in _CHECKS or len(call.args) != 1 or call.keywords:
        return None
    return call.args[0]


def _check(site: Site, call: ast.Call, inner: ast.expr, value: Callable[[ast.expr], Value]) -> Said:
    """``math.isnan(t)``: for every dtype the same as ``torch.isnan`` of the one element."""
    known = value(inner)
    if known.kind != "tensor" or known.dtype is None or known.dtype.startswith("complex"):
        raise Unsafe(f"the dtype of `{site.text(inner)}` is not known")
    name = (dotted(site, call.func) or "").rpartition(".")[2]
    text = f"{site.torch}.{name}({on_one_line(site, inner)})"
    if not known.zero_dim:
        text = f"{text}.reshape(())"
    return text, True


# -- questions to arrays -------------------------------------------------------------------------------------


def _of_array(site: Site, node: ast.AST) -> bool:
    """Whether it is ``any`` or ``all`` of an array whose values are a tensor's."""
    reduced = _reduced(site, node)
    return reduced is not None and _is_elementwise(site, reduced[1])


def _reduced(site: Site, node: ast.AST) -> tuple[str, ast.expr] | None:
    """``any`` and ``a`` of ``a.any()`` and ``np.any(a)``."""
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    head, _, name = (dotted(site, node.func) or "").rpartition(".")
    if head == "numpy" and name in ("any", "all") and len(node.args) == 1:
        return name, node.args[0]
    if head or node.args or not isinstance(node.func, ast.Attribute) or node.func.attr not in ("any", "all"):
        return None
    return node.func.attr, node.func.value


def _is_elementwise(site: Site, node: ast.expr) -> bool:
    """Whether the array is a test of the elements of arrays that are tensors, and numpy makes it."""
    return any(_array(site, one) is not None for one in ast.walk(node) if isinstance(one, ast.expr)) and (
        any(isinstance(one, ast.Call) and _is_numpys(site, one) for one in ast.walk(node))
    )


def _is_numpys(site: Site, call: ast.Call) -> bool:
    to_numpy = isinstance(call.func, ast.Attribute) and call.func.attr == "numpy" and not call.args
    return to_numpy or (dotted(site, call.func) or "").startswith("numpy.")


def _array(site: Site, node: ast.expr) -> ast.expr | None:
    """The tensor of ``t.numpy()`` and ``t.detach().cpu().numpy()``, or one that numpy is given itself."""
    inner = node
    while (
        isinstance(inner, ast.Call)
        and isinstance(inner.func, ast.Attribute)
        and inner.func.attr in _TO_NUMPY
        and not inner.args
        and not inner.keywords
    ):
        inner = inner.func.value
    return inner if site.is_tensor(inner) else None


def _elementwise(site: Site, node: ast.expr, value: Callable[[ast.expr], Value]) -> str:
    reduced = _reduced(site, node)
    assert reduced is not None
    return f"{_test(site, reduced[1], value)}.{reduced[0]}()"


def _test(site: Site, node: ast.expr, value: Callable[[ast.expr], Value]) -> str:
    """An array of truths as a bool tensor, in a form that a method can be called on."""
    if isinstance(node, ast.Call) and (checked := _checked(site, node)) is not None:
        tensor = _array(site, checked)
        if tensor is not None:
            name = (dotted(site, node.func) or "").rpartition(".")[2]
            _known_dtype(site, value(tensor), tensor)
            return f"{site.torch}.{name}({on_one_line(site, tensor)})"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        return f"(~{_test(site, node.operand, value)})"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr):
        symbol = "&" if isinstance(node.op, ast.BitAnd) else "|"
        return f"({_test(site, node.left, value)} {symbol} {_test(site, node.right, value)})"
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _ORDER:
        tensor, number = _array(site, node.left), node.comparators[0]
        if tensor is not None and _held(_known_dtype(site, value(tensor), tensor), number):
            symbol = _ORDER[type(node.ops[0])]
            return f"({operand(site, tensor)} {symbol} {on_one_line(site, number)})"
    raise Unsafe(f"what `{on_one_line(site, node)[:60]}` does in numpy is not known")


def _known_dtype(site: Site, value: Value, node: ast.expr) -> str:
    if value.kind != "tensor" or value.dtype is None:
        raise Unsafe(f"the dtype of `{site.text(node)}` is not known")
    return value.dtype


def _held(dtype: str, node: ast.expr) -> bool:
    """Whether a dtype holds a written number exactly, so that nobody rounds it before comparing."""
    sign = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    bare = node.operand if isinstance(node, ast.UnaryOp) and sign else node
    number = bare.value if isinstance(bare, ast.Constant) else None
    if type(number) not in (int, float) or not isinstance(number, int | float):
        return False
    if dtype in FLOATING:
        return exact_in(dtype, float(number))
    return dtype in ("int32", "int64") and isinstance(number, int) and number < 2**31


# -- text and evidence ---------------------------------------------------------------------------------------


def _one_element(seen: Seen | None) -> bool:
    return (
        seen is not None and seen.only("tensor") and all(size == 1 for shape in seen.shapes for size in shape)
    )
