"""Conditions of branches: the part that Python decides, and a tensor that says the same as the rest."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from breakscope.fix.precision import wider
from breakscope.fix.predication import questions
from breakscope.fix.predication.interpreter import Evaluator
from breakscope.fix.predication.values import Value
from breakscope.fix.rule import Site, Unsafe
from breakscope.source.syntax import is_atom, on_one_line
from breakscope.source.torch_facts import FLOATING


@dataclass(frozen=True, slots=True)
class Condition:
    """A test, taken apart.

    Attributes:
        static: the part before the first tensor that Python decides, as source; "" if there is none.
        text: a 0-dim bool tensor. atom: ``text`` needs no parentheses beside ``&``.
    """

    static: str
    text: str
    atom: bool


def split(site: Site, evaluate: Evaluator, test: ast.expr, *, ran: bool = True) -> Condition:
    """Take the test of a branch apart.

    Args:
        ran: the test is evaluated where the branch stands; False if it will be evaluated although it was
            not before, so that even its first operand must be safe.

    Raises:
        Unsafe: it cannot be said with tensors alone.
    """
    operands = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    count = 0
    while count < len(operands) and is_python(site, evaluate, operands[count]):
        count += 1
    if count == len(operands):
        seen = [site.seen(one) for one in ast.walk(test) if isinstance(one, ast.expr)]
        numpy = any(name.startswith("numpy.") for one in seen if one is not None for name in one.types)
        raise Unsafe(f"the condition is decided in Python{', by numpy' if numpy else ''}")
    if count and not ran:
        raise Unsafe("the condition has a part that Python decides")
    static = _joined(site, operands[:count])
    for operand in operands[:count]:
        _narrow(evaluate, operand)
    texts = [
        as_tensor(site, evaluate, one, ran=ran and index == 0) for index, one in enumerate(operands[count:])
    ]
    text, atom = combine(texts, "&")
    return Condition(static, text, atom)


def _narrow(evaluate: Evaluator, node: ast.expr) -> None:
    """Learn from ``m is not None``."""
    if (
        isinstance(node, ast.Compare)
        and len(node.ops) == 1
        and isinstance(node.ops[0], ast.IsNot)
        and isinstance(node.comparators[0], ast.Constant)
        and node.comparators[0].value is None
    ):
        evaluate.not_none.add(ast.unparse(node.left))


def _joined(site: Site, operands: list[ast.expr]) -> str:
    parts = [enclosed(site, operand) for operand in operands]
    weak = (ast.BoolOp, ast.IfExp, ast.NamedExpr, ast.Lambda)
    if len(operands) > 1:
        parts = [
            f"({part})" if isinstance(one, weak) and not part.startswith("(") else part
            for one, part in zip(operands, parts, strict=True)
        ]
    return " and ".join(parts)


def enclosed(site: Site, node: ast.expr) -> str:
    """Source of an expression that may stand on its own: in parentheses if it runs over several lines."""
    text = site.text(node)
    if "\n" not in text:
        return text
    return " ".join(ast.unparse(node).split()) if len(ast.unparse(node)) < 60 else f"({text})"


def is_python(site: Site, evaluate: Evaluator, node: ast.expr) -> bool:
    """Whether Python decides an operand, and no tensor is asked.

    Raises:
        Unsafe: it was both, or that is not known.
    """
    seen = site.seen(node)
    if seen is not None:
        if "tensor" not in seen.kinds:
            return not _reads_scalar(site, node)
        if not seen.only("tensor") and not isinstance(node, ast.BoolOp):
            raise Unsafe(f"`{site.text(node)}` was a tensor in some calls and not in others")
        return False
    try:
        return evaluate(node).kind != "tensor"
    except Unsafe:
        if isinstance(node, ast.BoolOp | ast.UnaryOp | ast.Compare):
            return False
        raise


def _reads_scalar(site: Site, node: ast.expr) -> bool:
    """Whether a Python value comes straight from a tensor: ``x.max().item() > 3``, ``not t``."""
    for one in ast.walk(node):
        if is_scalar_read(site, one) is not None:
            return True
        operand = one.operand if isinstance(one, ast.UnaryOp) and isinstance(one.op, ast.Not) else None
        if operand is not None and site.may_be_tensor(operand):
            return True
        if isinstance(one, ast.BoolOp) and any(map(site.may_be_tensor, one.values)):
            return True
        if (
            isinstance(one, ast.Compare)
            and len(one.ops) > 1
            and any(map(site.may_be_tensor, [one.left, *one.comparators]))
        ):
            return True
        if questions.asks(site, one):
            return True
    return False


def is_scalar_read(site: Site, node: ast.AST) -> ast.expr | None:
    """The tensor expression of ``t.item()``, ``float(t)``, ``int(t)`` or ``bool(t)``."""
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    if isinstance(node.func, ast.Attribute) and node.func.attr == "item" and not node.args:
        return node.func.value if site.may_be_tensor(node.func.value) else None
    if isinstance(node.func, ast.Name) and node.func.id in ("float", "int", "bool") and len(node.args) == 1:
        return node.args[0] if site.may_be_tensor(node.args[0]) else None
    return None


def combine(texts: list[tuple[str, bool]], operator: str) -> tuple[str, bool]:
    """Sources joined by ``&`` or ``|``; and whether that needs no parentheses."""
    if len(texts) == 1:
        return texts[0]
    return f" {operator} ".join(text if atom else f"({text})" for text, atom in texts), False


def as_tensor(site: Site, evaluate: Evaluator, node: ast.expr, *, ran: bool) -> tuple[str, bool]:
    """Source of a 0-dim bool tensor that is true when the expression is; and whether it is an atom."""
    if isinstance(node, ast.BoolOp):
        operator = "&" if isinstance(node.op, ast.And) else "|"
        parts = [
            as_tensor(site, evaluate, one, ran=ran and index == 0) for index, one in enumerate(node.values)
        ]
        return combine(parts, operator)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        if _python_bool(evaluate, node.operand):
            return f"(not {on_one_line(site, node.operand)})", True  # `~` of a Python bool is a number
        text, atom = as_tensor(site, evaluate, node.operand, ran=ran)
        return inverted(text, atom=atom), True
    if isinstance(node, ast.Compare) and len(node.ops) > 1:
        return _chain(site, evaluate, node, ran=ran)
    every = questions.operands(site, node)
    if every is not None:
        return combine([as_tensor(site, evaluate, one, ran=ran) for one in every[1]], every[0])
    told = questions.said(site, node, lambda one: _value(site, evaluate, one, ran=ran))
    if told is not None:
        return told
    exact = _scalar_read(site, evaluate, node, ran=ran)
    if exact is not None:
        return exact
    value = _value(site, evaluate, node, ran=ran)
    if value.kind != "tensor":
        if value.kind == "scalar" and value.dtype == "bool":
            # A Python bool beside tensors: `&` and `|` take it as it is.
            return on_one_line(site, node), is_atom(node)
        raise Unsafe(f"`{site.text(node)}` is decided in Python after a tensor")
    return _as_bool(on_one_line(site, node), is_atom(node), value)


def _python_bool(evaluate: Evaluator, node: ast.expr) -> bool:
    if not isinstance(node, ast.Name | ast.Attribute):
        return False
    try:
        value = evaluate(node)
    except Unsafe:
        return False
    return value.kind == "scalar" and value.dtype == "bool"


def _value(site: Site, evaluate: Evaluator, node: ast.expr, *, ran: bool) -> Value:
    """What an operand is: as seen if it is evaluated anyway, else as it must be for it to be safe."""
    seen = site.seen(node)
    if ran and seen is not None and seen.only("tensor") and len(seen.dtypes) == 1:
        return Value("tensor", next(iter(seen.dtypes)), None, seen.shapes)
    return evaluate(node)


def inverted(text: str, *, atom: bool) -> str:
    """Source of the opposite of a bool tensor."""
    if atom and text.startswith("~"):
        return text[1:]
    return f"~{text}" if atom else f"~({text})"


def _as_bool(text: str, atom: bool, value: Value) -> tuple[str, bool]:
    if value.dtype is None:
        raise Unsafe(f"the dtype of `{text}` is not known")
    if not value.zero_dim:
        if value.shapes is None or not all(_elements(shape) == 1 for shape in value.shapes):
            raise Unsafe(f"`{text}` is not known to have one element")
        text, atom = f"{text if atom else f'({text})'}.reshape(())", True
    if value.dtype == "bool":
        return text, atom
    return f"{text if atom else f'({text})'} != 0", False


def _elements(shape: tuple[int, ...]) -> int:
    result = 1
    for size in shape:
        result *= size
    return result


def _chain(site: Site, evaluate: Evaluator, node: ast.Compare, *, ran: bool) -> tuple[str, bool]:
    operands = [node.left, *node.comparators]
    parts: list[tuple[str, bool]] = []
    for left, op, right in zip(operands, node.ops, operands[1:], strict=False):
        pair = ast.Compare(left, [op], [right])
        ast.copy_location(pair, node)
        exact = _scalar_read(site, evaluate, pair, ran=ran and not parts)
        if exact is not None:
            parts.append(exact)
            continue
        value = evaluate(pair)
        if value.kind != "tensor":
            raise Unsafe(f"`{site.text(node)}` is decided in Python")
        if type(op).__name__ not in _SYMBOLS:
            raise Unsafe(f"what `{site.text(node)}` does is not known")
        text = f"{on_one_line(site, left)} {_SYMBOLS[type(op).__name__]} {on_one_line(site, right)}"
        parts.append(_as_bool(text, False, value))
    return combine(parts, "&")


_SYMBOLS = {"Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">=", "Eq": "==", "NotEq": "!="}


def _scalar_read(site: Site, evaluate: Evaluator, node: ast.expr, *, ran: bool) -> tuple[str, bool] | None:
    """``t.item()`` and ``t.item() > 3``, without leaving the graph."""
    inner = is_scalar_read(site, node)
    if inner is not None:
        value = _value(site, evaluate, inner, ran=ran)
        if _converter(node) == "int" and value.dtype in FLOATING:
            raise Unsafe(f"`{site.text(node)}` drops the fraction, which may change what is true")
        return _as_bool(on_one_line(site, inner), is_atom(inner), value)
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return None
    sides = [(whole, is_scalar_read(site, whole)) for whole in (node.left, node.comparators[0])]
    if all(read is None for _, read in sides):
        return None
    symbol = _SYMBOLS.get(type(node.ops[0]).__name__)
    if symbol is None:
        raise Unsafe(f"what `{site.text(node)}` does is not known")
    values = [
        evaluate(whole) if read is None else _value(site, evaluate, read, ran=ran) for whole, read in sides
    ]
    texts = [
        _side(site, node, whole, read, own, other)
        for (whole, read), own, other in zip(sides, values, reversed(values), strict=True)
    ]
    return f"{texts[0]} {symbol} {texts[1]}", False


def _side(
    site: Site, node: ast.expr, whole: ast.expr, read: ast.expr | None, own: Value, other: Value
) -> str:
    """One side of a comparison: the tensor that its number was read from, or the number that it is."""
    text, atom = on_one_line(site, read or whole), is_atom(read or whole)
    if read is None:
        if own.kind == "tensor":
            raise Unsafe(f"`{site.text(node)}` compares a number with a tensor")
        return text if atom else f"({text})"
    converter = _converter(whole)
    if converter == "bool" or (converter == "int" and own.dtype in FLOATING):
        raise Unsafe(f"what `{site.text(whole)}` gives is not what its tensor holds")
    if not own.zero_dim:
        if own.shapes is None or any(_elements(shape) != 1 for shape in own.shapes):
            raise Unsafe(f"`{text}` is not known to have one element")
        text, atom = f"{text if atom else f'({text})'}.reshape(())", True
    to = wider(site, node, own, other)
    if to:
        text, atom = f"{text if atom else f'({text})'}.{to}()", True
    return text if atom else f"({text})"


def _converter(node: ast.expr) -> str | None:
    """``int`` of ``int(t)``; None for ``t.item()``."""
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else None
