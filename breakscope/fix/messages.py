"""Calls that write a message: print, warnings.warn, a logger's methods; what computing its text may do."""

from __future__ import annotations

import ast

from breakscope.fix.rule import Site
from breakscope.inside.record.evidence import Seen
from breakscope.source.dominance import enclosing_statement
from breakscope.source.names import builtin, dotted

_METHODS = {"debug", "info", "warning", "warn", "error", "critical", "exception", "log"}
_ONCE = {"warning_once", "info_once", "warning_advice"}
MESSAGE_METHODS = frozenset(_METHODS | _ONCE)
_PURE_CALLS = {
    "str",
    "repr",
    "len",
    "type",
    "float",
    "int",
    "bool",
    "format",
    "round",
    "list",
    "tuple",
    "sorted",
}
_PURE_METHODS = {
    "tensor": {
        "item",
        "tolist",
        "size",
        "dim",
        "numel",
        "sum",
        "mean",
        "max",
        "min",
        "any",
        "all",
        "abs",
        "norm",
        "isnan",
        "isinf",
        "isfinite",
        "detach",
    },
    "str": {"format", "join", "upper", "lower", "strip"},
    "dict": {"get", "keys", "values", "items"},
}
_PURE_FUNCTIONS = {
    *(f"torch.{name}" for name in ("isnan", "isinf", "isfinite", "any", "all", "sum", "mean", "max", "min")),
    *(f"torch.{name}" for name in ("abs", "norm", "equal", "allclose", "is_tensor", "numel")),
    "math.isnan", "math.isinf", "math.isfinite",
}  # fmt: skip
# Their text, length and items are Python's or torch's own, and asking for them uses nothing up.
_PLAIN = {
    "builtins.list", "builtins.tuple", "builtins.dict", "builtins.set", "builtins.range", "builtins.slice",
    "torch.Size", "torch.dtype", "torch.device", "torch.layout", "builtins.ellipsis", "builtins.bytes",
}  # fmt: skip


def message_kind(site: Site, call: ast.Call) -> str | None:
    """What a call writes: "warning" (once by design) or "message" (each time); None: something else."""
    if builtin(site, call.func) == "print":
        return "message"
    full = dotted(site, call.func)
    if full == "warnings.warn":
        return "warning"
    if full in ("sys.stdout.write", "sys.stderr.write"):
        return "message"
    if full is not None and full.startswith("logging.") and full.removeprefix("logging.") in _METHODS:
        return "message"
    if isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS | _ONCE:
        seen = site.seen(call.func.value)
        if seen is not None and seen.types and all(_is_logger(name) for name in seen.types):
            return "warning" if call.func.attr in _ONCE else "message"
    return None


def _is_logger(type_name: str) -> bool:
    return type_name in ("logging.Logger", "logging.RootLogger", "logging.LoggerAdapter")


def message_effect(site: Site, call: ast.Call) -> str | None:
    """The first part of a message whose evaluation may do more than compute; None if there is none.

    A text may be asked of an object whose class does something then, an iterator may be used up, a property
    may count: what the recorded run saw there must be of a kind that does nothing of the sort.
    """
    for node in ast.walk(call):
        if node is not call and isinstance(node, ast.expr) and _may_act(site, call, node):
            return " ".join(ast.unparse(node).split())
    return None


def test_effect(site: Site, test: ast.expr) -> str | None:
    """The first part of a condition whose evaluation may do more than compute; None if there is none."""
    for node in ast.walk(test):
        if isinstance(node, ast.expr) and _may_act(site, test, node):
            return " ".join(ast.unparse(node).split())
    # Python asks for its truth value. Operands of a comparison are plain, as was looked at.
    is_plain = isinstance(test, ast.Compare) or _is_plain(site, test)
    return None if is_plain else " ".join(ast.unparse(test).split())


def _may_act(site: Site, call: ast.expr, node: ast.expr) -> bool:
    if isinstance(node, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom | ast.Lambda):
        return True
    if isinstance(node, ast.Call):
        return not _is_pure(site, node)
    above = site.parents[node]
    if isinstance(above, ast.FormattedValue | ast.Starred | ast.comprehension) or above is call:
        # Its text is asked for, or it is run through.
        is_callee = isinstance(above, ast.Call) and above.func is node
        target = isinstance(above, ast.comprehension) and above.target is node
        return not (is_callee or target or _shown_safely(site, node))
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        return _computed_on_access(site, call, node)
    if isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare | ast.Subscript | ast.BoolOp | ast.IfExp):
        return not all(_is_plain(site, operand) for operand in _operands(node))
    return False


def _shown_safely(site: Site, node: ast.expr) -> bool:
    if isinstance(node, ast.Starred):
        return _is_plain(site, node.value)
    if isinstance(node, ast.Attribute) and dotted(site, node) is not None:
        return True
    return _is_plain(site, node)


def _operands(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp):
        return [node.left, *(node.right.elts if isinstance(node.right, ast.Tuple) else [node.right])]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.BoolOp):
        return node.values[:-1]
    if isinstance(node, ast.IfExp):
        return [node.test]
    return [node.value] if isinstance(node, ast.Subscript) else []


def _is_pure(site: Site, call: ast.Call) -> bool:
    if builtin(site, call.func) in _PURE_CALLS:
        return builtin(site, call.func) == "type" or all(_is_plain(site, arg) for arg in call.args)
    if dotted(site, call.func) in _PURE_FUNCTIONS:
        into = any(keyword.arg in (None, "out") for keyword in call.keywords)
        return not into and all(_is_plain(site, arg) for arg in call.args)
    if not isinstance(call.func, ast.Attribute):
        return False
    receiver = call.func.value
    seen = site.seen(receiver)
    if isinstance(receiver, ast.Constant | ast.JoinedStr):
        kind = "str"
    elif _is_tensor(site, receiver):
        kind = "tensor"
    elif seen is not None and seen.only("str"):
        kind = "str"
    else:
        kind = "dict" if seen is not None and set(seen.types) == {"builtins.dict"} else ""
    return call.func.attr in _PURE_METHODS.get(kind, ()) and all(_is_plain(site, arg) for arg in call.args)


def _is_plain(site: Site, node: ast.expr) -> bool:
    """Whether the text, the length and the items of a value can be asked for without any effect."""
    if isinstance(node, ast.Constant | ast.JoinedStr | ast.Slice):
        return True
    if isinstance(node, ast.Starred):
        return _is_plain(site, node.value)
    if isinstance(node, ast.Tuple | ast.List):
        return all(_is_plain(site, elt) for elt in node.elts)
    if isinstance(node, ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp):
        return True  # its parts are looked at by themselves
    seen: Seen | None = site.seen(node)
    if seen is None:
        return isinstance(node, ast.Call) and _is_tensor(site, node)
    return seen.only("tensor", "int", "float", "bool", "None", "str", "callable", "other") and all(
        name in _PLAIN for name in seen.types if "other" in seen.kinds
    )


def _is_tensor(site: Site, node: ast.expr) -> bool:
    """Whether it was a tensor, or is what a tensor's method gives, in a message that was never written."""
    seen = site.seen(node)
    if seen is None and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _is_tensor(site, node.func.value) and _is_pure(site, node)
    return seen is not None and seen.only("tensor")


def _computed_on_access(site: Site, call: ast.expr, node: ast.Attribute) -> bool:
    """Whether an attribute may be a property: it was read, and is not among what could be looked up."""
    seen = site.seen(node.value)
    plain = seen is not None and seen.only("tensor", "callable", "str")
    if plain or dotted(site, node) is not None or _is_tensor(site, node.value):
        return False
    statement = enclosing_statement(site, call)
    entry = site.seen_before(statement)
    return ast.unparse(node) not in entry and not node.attr.startswith("__")
