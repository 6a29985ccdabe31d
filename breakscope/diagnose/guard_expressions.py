"""Reading the guard failures that are Python: a condition that held when the frame was compiled."""

from __future__ import annotations

import ast
import re
from typing import cast

from breakscope.diagnose.guard_context import Context, items, short
from breakscope.diagnose.guard_paths import Path, parse, path_of, paths_in
from breakscope.report.model import Guard, GuardCause

_IS_NAN = re.compile(r"__(?P<module>math|numpy)_isnan\((?P<name>.+?)\)")
_EQUALITY = re.compile(r"(?P<left>\S.*?) == (?P<right>.+)$", re.DOTALL)
_MEMBER_TESTS = frozenset({"___dict_contains", "set.__contains__", "hasattr"})
_LENGTHS = frozenset(
    {
        "len",
        "set.__len__",
        "frozenset.__len__",
        "___tuple_iterator_len",
        "___list_reverseiterator_len",
    }
)
_ITERATORS = {"___normalize_range_iter": "range", "___normalize_count_iter": "count"}
_SYMPY = frozenset({"Eq", "Ne", "Lt", "Le", "Gt", "Ge", "Mod", "PythonMod", "FloorDiv", "CleanDiv"})
_SYMBOL = re.compile(r"[suz]\d+$")


def sources(expression: str) -> tuple[Path, ...]:
    """The paths whose values a live hook should read to complete this guard."""
    if found := _IS_NAN.search(expression):
        return tuple(filter(None, (path_of(parse(found["name"])),)))
    if (node := parse(expression)) is None:
        found = _EQUALITY.match(expression)
        return tuple(filter(None, (path_of(parse(found["left"])),))) if found else ()
    if any(isinstance(part, ast.Call) and ast.unparse(part.func) in _MEMBER_TESTS for part in ast.walk(node)):
        return ()
    match node:
        case ast.Compare(left, [ast.Is() | ast.IsNot()], [right]):
            path = path_of(left) if isinstance(right, ast.Constant) else None
            return (path.then("attribute", "__class__"),) if path else ()
    return _subjects(node)


def _subjects(node: ast.expr) -> tuple[Path, ...]:
    """Both sides of a relation between sizes, else what stands left of ``==``."""
    paths = paths_in(node)
    match node:
        case ast.Compare(left, [ast.Eq() | ast.NotEq()], [_]) if not any(path.geometry() for path in paths):
            return paths_in(left)
    return paths


def read_expression(context: Context) -> Guard | None:
    """A condition on lengths, keys, values or sizes."""
    if found := _IS_NAN.search(context.expression):
        path = path_of(parse(found["name"]))
        value = float("nan") if found["module"] == "math" else complex("nan")
        return context.guard(
            context.value_cause(path, value),
            context.words(found["name"]),
            "nan",
            context.actual(path),
        )
    if (node := parse(context.expression)) is None:
        return _unreadable_equality(context)
    return _membership(node, context) or _container(node, context) or _relation(node, context)


def _unreadable_equality(context: Context) -> Guard | None:
    """``x == <repr of an object>``: the right side is not Python."""
    found = _EQUALITY.match(context.expression)
    if found is None or (path := path_of(parse(found["left"]))) is None:
        return None
    return context.guard(
        context.value_cause(path, None),
        context.words(path),
        short(found["right"]),
        context.actual(path),
    )


def _membership(node: ast.expr, context: Context) -> Guard | None:
    present, test = True, node
    match node:
        case ast.UnaryOp(ast.Not(), operand):
            present, test = False, operand
    match test:
        case ast.Call(func, [first, second]) if (name := ast.unparse(func)) in _MEMBER_TESTS:
            holder, member = (second, first) if name == "___dict_contains" else (first, second)
        case _:
            return None
    path, key = (
        path_of(holder),
        member.value if isinstance(member, ast.Constant) else None,
    )
    if (
        path
        and isinstance(key, str)
        and (name == "hasattr" or (path.steps and path.steps[-1].key == "__dict__"))
    ):
        # An attribute: what differs is whether the object itself has it.
        attribute = path.then("item" if name != "hasattr" else "attribute", key)
        cause: GuardCause = "module_attribute" if context.on_module(attribute) else "container"
        texts = ("set", "unset")
        return context.guard(cause, context.words(attribute), *(texts if present else texts[::-1]))
    texts = (f"with {ast.unparse(member)}", f"without {ast.unparse(member)}")
    return context.guard("container", context.words(holder), *(texts if present else texts[::-1]))


def _container(node: ast.expr, context: Context) -> Guard | None:
    match node:
        case ast.UnaryOp(ast.Not(), value) if path := path_of(value):
            return context.guard("container", context.words(path), items(0), context.length(path))
        # The C++ guard of a dict prints what it found wrong: len(x) != 2 means that it was 2.
        case ast.Compare(
            ast.Call(func, [value]),
            [ast.Eq() | ast.NotEq()],
            [ast.Constant(int(length))],
        ) if ast.unparse(func) in _LENGTHS:
            actual = context.length(path_of(value))
            return context.guard("container", context.words(value), items(length), actual)
        case ast.Compare(ast.Call(func, [value]), [ast.Eq()], [state]) if kind := _ITERATORS.get(
            ast.unparse(func)
        ):
            return context.guard("container", context.words(value), kind + ast.unparse(state))
        case ast.Compare(ast.Subscript(ast.Call(ast.Name("list")) as keys, index), [ast.Eq()], [key]):
            expected = f"key {ast.unparse(key)} at {ast.unparse(index)}"
        case ast.Compare(ast.Call(ast.Name("list")) as keys, [ast.Eq()], [ast.List() as names]):
            expected = f"keys {ast.unparse(names)}"
        case ast.Compare(ast.Call(ast.Name("___dict_version")) as keys, [ast.Eq()], [_]):
            expected = "unchanged"
        case _:
            return None
    holder = next(iter(paths_in(keys)), None)
    return context.guard("container", context.words(holder), short(expected), context.actual(holder))


def _relation(node: ast.expr, context: Context) -> Guard | None:
    paths = paths_in(node)
    if any(path.geometry() for path in paths):
        return _geometry(node, paths, context)
    if any(isinstance(part, ast.Call) and ast.unparse(part.func) in _SYMPY for part in ast.walk(node)):
        named = [path for path in paths if not _SYMBOL.match(path.root)]
        source = context.words(named[0]) if named else None
        return context.guard("symbolic_shape", source, context.expression, seen=())
    match node:
        case ast.Compare(left, [ast.Is() | ast.IsNot() as test], [right]) if path := path_of(left):
            return _is_test(path, test, right, context)
        case ast.Compare(ast.Call(ast.Attribute(tensor, "item"), []), [ast.Eq()], [number]) if (
            path := path_of(tensor)
        ):
            return context.guard("int_value", context.words(path), ast.unparse(number))
        case ast.Compare(left, [ast.Eq()], [right]) if path := path_of(left):
            cause = context.value_cause(path, _value(right))
            actual = context.actual(path)
            # As Dynamo wrote it: unparsing would take the brackets off (1+2j).
            written = context.expression.encode()[left.end_col_offset :].decode().partition("==")[2]
            return context.guard(cause, context.words(path), short(written), actual)
        case ast.Compare() if paths:
            return _range(node, paths[0], context)
    return None


def _is_test(path: Path, test: ast.cmpop, right: ast.expr, context: Context) -> Guard | None:
    if other := path_of(right):
        source = f"{context.words(path)} and {context.words(other)}"
        return context.guard("aliasing", source, "the same object", "different objects")
    if not (isinstance(right, ast.Constant) and right.value is None):
        return None
    cause: GuardCause = "module_attribute" if context.on_module(path) else "type"
    if isinstance(test, ast.IsNot):
        return context.guard(cause, context.words(path), "not None", "None")
    return context.guard(cause, context.words(path), "None", context.actual_type(path))


def _range(node: ast.Compare, path: Path, context: Context) -> Guard:
    """A branch on a number that was made symbolic: ``n <= 10``."""
    bounds = [_value(side) for side in (node.left, *node.comparators)]
    name, actual = context.words(path), context.actual(path)
    cause = context.value_cause(path, next((bound for bound in bounds if isinstance(bound, float)), 0))
    term = "value" if path.from_stack else name or path.root
    return context.guard(cause, name, _renamed(node, {path.raw: term}), actual, seen=(actual,))


def _geometry(node: ast.expr, paths: tuple[Path, ...], context: Context) -> Guard:
    """A relation between sizes, strides or offsets of tensors: ``2 <= x.size()[0]``."""
    terms = [path for path in paths if path.geometry()]
    base, method, dimension = cast("tuple[Path, str, int | None]", terms[0].geometry())
    names = {}
    sized = False
    for term in terms:
        owner, what, index = cast("tuple[Path, str, int | None]", term.geometry())
        sized = sized or what == "size"
        if owner == base and index != dimension:
            # A product of one tensor's sizes is about no dimension in particular.
            dimension = None
        names[term.raw] = f"{context.words(owner)}.{what}({'' if index is None else index})"
    if len(paths) == 1:
        names = {terms[0].raw: method.replace("_", " ")}
        actual = context.actual(terms[0])
        seen: tuple[str | None, ...] = (actual,)
    else:
        known = [f"{name} = {value}" for raw, name in names.items() if (value := context.actuals.get(raw))]
        actual, seen = ", ".join(known) or None, ()
    cause: GuardCause = "symbolic_shape" if sized else "stride"
    return context.guard(cause, context.words(base), _renamed(node, names), actual, dimension, seen=seen)


def _renamed(node: ast.expr, names: dict[str, str]) -> str:
    """The expression with its paths under other names."""

    class Rename(ast.NodeTransformer):
        def visit(self, part: ast.AST) -> ast.AST:
            path = path_of(part) if isinstance(part, ast.expr) else None
            if path and path.raw in names:
                return ast.Name(names[path.raw])
            return self.generic_visit(part)

    return short(ast.unparse(Rename().visit(node)))


def _value(node: ast.expr) -> object:
    if isinstance(node, ast.Name) and node.id in ("inf", "nan"):
        return float(node.id)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Name):
        return _value(node.operand)
    try:
        return cast("object", ast.literal_eval(node))
    except (ValueError, TypeError, SyntaxError):
        # set() and frozenset({...}) are calls; an enum's or a device's repr is neither.
        name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        return set() if name in ("set", "frozenset") else None
