"""What a check says as an assert on tensors, which Dynamo traces: ``assert ~(x.min() < 0), '…'``."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from breakscope.diagnose import becomes, kinds, uses
from breakscope.source.syntax import grouped

_READS = ("item", "bool")
_NUMBERS = ("float", "int", "bool")
# Of Python's and numpy's functions those that torch has under the same name.
_OF_TORCH = re.compile(r"(math|np|numpy)\.(?P<name>isnan|isinf|isfinite|isclose|any|all)$")
_BOOLS = re.compile(
    r"(any|all|allclose|isnan|isinf|isfinite|isclose|is_nonzero|equal|logical_\w+|lt|gt|le|ge|eq|ne)$"
)
_LONG = 120
# A text that is made of the values.
UNTOLD = "'…'"


def asserted(around: Sequence[ast.AST]) -> str:
    """What an assert can ask for in the place of a check; empty where that cannot be told from its text.

    Args:
        around: the nodes that contain the site, outermost first.
    """
    check = next((node for node in reversed(around) if isinstance(node, ast.If | ast.Assert)), None)
    if check is None:
        return ""
    text = of_tensors(check.test) if isinstance(check, ast.Assert) else _opposite(check.test)
    text = text or _of_flags(check, around) or _of_settings(check, around)
    return ", ".join(filter(None, (text, _told(check)))) if text is not None and len(text) <= _LONG else ""


def _of_flags(check: ast.If | ast.Assert, around: Sequence[ast.AST]) -> str | None:
    """``a | b`` of ``if not a and not b: raise``, of names of bools, some of which may be Python's."""
    match check:
        case ast.If(ast.BoolOp(operator, parts)) if all(map(_negated, parts)):
            names = [_negated(part) for part in parts]
        case _:
            return None
    if not all(_is_flag(name, around) for name in names if name is not None):
        return None
    return (" | " if isinstance(operator, ast.And) else " & ").join(filter(None, names))


def _of_settings(check: ast.If | ast.Assert, around: Sequence[ast.AST]) -> str | None:
    """``not eta or t`` of ``if eta and not t: raise``, where eta was a number or a flag of Python's.

    Python's stay with ``and``, ``or`` and ``not``, in front: Dynamo knows them while it traces.
    """
    match check:
        case ast.If(ast.BoolOp(operator, parts)):
            plain = [part for part in parts if _is_pythons(part, around)]
            others = [part for part in parts if part not in plain]
        case _:
            return None
    text = _opposite(others[0] if len(others) == 1 else ast.BoolOp(operator, others)) if others else None
    if not plain or text is None:
        return None
    turned = [part.operand if _negated(part) else ast.UnaryOp(ast.Not(), part) for part in plain]  # type: ignore[attr-defined]
    sign = " or " if isinstance(operator, ast.And) else " and "
    return sign.join([*(ast.unparse(part) for part in turned), text])


def _is_pythons(part: ast.expr, around: Sequence[ast.AST]) -> bool:
    """Whether all names of a test were numbers, flags or texts of Python's when it broke."""
    names = [node for node in ast.walk(part) if isinstance(node, ast.Name | ast.Attribute)]
    return bool(names) and all(kinds.of(node, around) in ("int", "float", "bool", "str") for node in names)


def _negated(part: ast.expr) -> str | None:
    match part:
        case ast.UnaryOp(ast.Not(), ast.Name(name)):
            return name
    return None


def gives_bool(test: ast.expr, around: Sequence[ast.AST]) -> bool:
    """Whether a test is surely a bool or a tensor of bools, which torch.where takes, and no number."""
    seen = kinds.of(test, around) if isinstance(test, ast.Name | ast.Attribute) else None
    if seen is not None:
        return seen == "bool" or seen.startswith("tensor bool")
    match test:
        case ast.Name() | ast.Attribute():
            values = becomes.values_of(ast.unparse(test), around)
            return bool(values) and all(gives_bool(value, around) for value in values if value is not test)
        case ast.UnaryOp(ast.Not()) | ast.Call(ast.Attribute(attr="bool"), []):
            return True
        case ast.Call(keywords=named) if any(ast.unparse(one) == "dtype=torch.bool" for one in named):
            return True
        case ast.UnaryOp(ast.Invert(), of) | ast.Subscript(value=of):
            return gives_bool(of, around)
        case ast.BinOp(left, ast.BitAnd() | ast.BitOr(), right):
            return gives_bool(left, around) and gives_bool(right, around)
    return isinstance(test, ast.BoolOp) or _is_bool(test)


def _is_flag(name: str, around: Sequence[ast.AST]) -> bool:
    """Whether all that a name is given in its function is a bool, or a tensor of one."""
    values = becomes.values_of(name, around)
    return bool(values) and all(_gives_bool(value, around) for value in values)


def _gives_bool(value: ast.expr, around: Sequence[ast.AST]) -> bool:
    match value:
        case ast.BoolOp(values=parts):
            return all(_gives_bool(part, around) for part in parts)
        case ast.UnaryOp(ast.Not()):
            return True
        case ast.Attribute(ast.Name("self")):
            values = becomes.values_of(ast.unparse(value), around)
            return bool(values) and all(_is_setting(one, around) for one in values)
    return _is_bool(value)


def _is_setting(value: ast.expr, around: Sequence[ast.AST]) -> bool:
    """Whether an attribute is given True or False, or an argument with such a default."""
    match value:
        case ast.Constant(bool()):
            return True
        case ast.Name(name):
            made = next((node for node in reversed(around) if isinstance(node, ast.ClassDef)), ast.Pass())
            given = [node.args for node in ast.walk(made) if isinstance(node, ast.FunctionDef)]
            defaults = {
                one.arg: default
                for arguments in given
                for one, default in zip(arguments.args[::-1], arguments.defaults[::-1], strict=False)
            }
            return isinstance(defaults.get(name), ast.Constant) and isinstance(defaults[name].value, bool)  # type: ignore[attr-defined]
    return False


def _told(check: ast.If | ast.Assert) -> str:
    """What the check says where it fails, if that is a constant; empty where it says nothing."""
    said: ast.AST | None = check.msg if isinstance(check, ast.Assert) else check.body[-1]
    match said:
        case None | ast.Raise(ast.Name() | ast.Attribute() | ast.Call(_, [], [])):
            return ""
        case ast.Raise(ast.Call(_, [ast.Constant(str(text))])) | ast.Constant(str(text)):
            return repr(text) if len(text) <= _LONG else UNTOLD
    return UNTOLD


def _opposite(test: ast.expr) -> str | None:
    """The test that holds where this one does not: exactly so also for nan, which a turned sign is not."""
    match test:
        case ast.UnaryOp(ast.Not(), asked):
            return of_tensors(asked)
        case ast.Name() | ast.Attribute():
            return f"{ast.unparse(test)} == 0"
        case ast.Call() if not _is_bool(test):
            return None
    text = of_tensors(test)
    return None if text is None else f"~{_in_brackets(text)}"


def of_tensors(test: ast.expr) -> str | None:
    """A test with signs for tensors, and without the reads of values; None where that is not all of it."""
    match test:
        case ast.BoolOp(operator, parts):
            found = [_part(one) for one in parts]
            sign = " & " if isinstance(operator, ast.And) else " | "
            return None if None in found else sign.join(filter(None, found))
        case ast.UnaryOp(ast.Not(), asked):
            return _opposite(asked)
        case ast.Compare(_, [ast.Is() | ast.IsNot() | ast.In() | ast.NotIn()]):
            return None
        case ast.Compare(left, [_, _, *_] as signs, others):  # 0 <= x < n asks `and`, which tensors have not
            pairs = zip([left, *others[:-1]], signs, others, strict=True)
            return of_tensors(
                ast.BoolOp(ast.And(), [ast.Compare(one, [sign], [other]) for one, sign, other in pairs])
            )
    return _without_reads(test)


def _part(test: ast.expr) -> str | None:
    """One side of an ``and`` or ``or``: what is no bool has another meaning under ``&``."""
    if isinstance(test, ast.Compare | ast.BoolOp):
        text = of_tensors(test)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        text = _opposite(test.operand) if _is_bool(test.operand) else None
    else:
        text = of_tensors(test) if _is_bool(test) else None
    return None if text is None else _in_brackets(text)


def _in_brackets(text: str) -> str:
    """A side of ``&``, or what ``~`` is put before: both bind closer than a comparison."""
    whole = ast.parse(text, mode="eval").body
    turned = isinstance(whole, ast.UnaryOp) and isinstance(whole.op, ast.Invert)
    return text if turned else grouped(whole, text)


def _is_bool(test: ast.expr) -> bool:
    """Whether an expression is known to give a bool, or a tensor of bools."""
    if isinstance(test, ast.Call) and (_is_read(test) or uses.called(test) in _NUMBERS):
        return _is_bool(_read(test))
    return isinstance(test, ast.Compare) or (
        isinstance(test, ast.Call) and _BOOLS.match(uses.called(test)) is not None
    )


def _is_read(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in _READS and not call.args


def _read(call: ast.Call) -> ast.expr:
    """What ``x.item()`` or ``float(x)`` reads."""
    match call:
        case ast.Call(ast.Attribute(of), []):
            return of
        case ast.Call(_, [of]):
            return of
    return ast.Constant(None)


def _without_reads(test: ast.expr) -> str | None:
    tree = _Unread().visit(ast.parse(ast.unparse(test), mode="eval")).body
    if any(isinstance(one, ast.Call) and ast.unparse(one.func) in ("any", "all") for one in ast.walk(tree)):
        return None  # of a tensor after the other, and what they give is Python's own
    text = ast.unparse(tree)
    # What is left of Python's own functions takes numbers and no tensors.
    return None if re.search(r"\b(math|np|numpy)\.|\.(tolist|numpy|item)\(", text) else text


class _Unread(ast.NodeTransformer):
    """Takes the reads of single values out of an expression."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """``float(x)`` and ``x.item()`` as x, ``math.isnan`` as ``torch.isnan``."""
        self.generic_visit(node)
        if _is_read(node):
            return _read(node)
        match node:
            case ast.Call(ast.Name(name), [of], []) if name in _NUMBERS:
                return of
        match node:  # which give a bool of Python's
            case ast.Call(func, [left, right], near) if ast.unparse(func) in (
                "torch.equal",
                "torch.allclose",
            ):
                by = ast.parse("torch.isclose", mode="eval").body
                is_equal = uses.called(node) == "equal"
                each = (
                    ast.Compare(left, [ast.Eq()], [right]) if is_equal else ast.Call(by, [left, right], near)
                )
                return ast.Call(ast.Attribute(each, "all"), [], [])
        if found := _OF_TORCH.match(ast.unparse(node.func)):
            node.func = ast.Attribute(ast.Name("torch"), found["name"])
        return node
