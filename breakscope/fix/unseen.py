"""What a patch does that no comparison of calls sees: settings of libraries, files, processes, devices."""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator

from breakscope.source.names import root_name

# Packages whose attributes are nobody's state to compare.
_FOREIGN = {"torch", "numpy", *sys.stdlib_module_names}
_CALLS = re.compile(
    r"(torch\.(set_|use_deterministic|backends|save\b|cuda\.(set_|empty_cache)|_inductor|_C\b)"
    r"|torch\.(_dynamo\.(config|reset)|serialization)"
    r"|(os|subprocess|shutil|socket|threading|multiprocessing|signal|atexit|sys|ctypes|gc|importlib)\."
    r"|(open|exec|eval|setattr|delattr|__import__)$|.*\.(write_text|write_bytes|unlink|mkdir)$)"
)
_MOVES = re.compile(r"\.(cpu|cuda)\(\w*\)$")
_MADE = re.compile(
    r"torch\.(zeros|ones|empty|full|arange|linspace|eye|tensor|rand|randn|randint|randperm|tril_indices)$"
)


def effects(old: str, new: str) -> Iterator[str]:
    """Effects that one form of a module has more often than the other, as text of the code."""
    before, after = Counter(_effects(old)), Counter(_effects(new))
    yield from ((after - before) + (before - after)).keys()


def placed_by_default(old: str, new: str) -> Iterator[str]:
    """Tensors that only the new form makes on one device, wherever its inputs are."""
    yield from (Counter(_on_default_device(new)) - Counter(_on_default_device(old))).keys()


def read_no_more(old: str, new: str) -> Iterator[str]:
    """Attributes and parameters that only the old form reads: other values may tell the forms apart."""
    left = _read(new)
    yield from (f"self.{name}" for name in sorted(_read(old) - left))
    after = _parameters_read(new)
    for function, names in _parameters_read(old).items():
        yield from sorted(names - after.get(function, names))


_Function = ast.FunctionDef | ast.AsyncFunctionDef
_NARROW = re.compile(r"(int8|uint8|int16|short|half|bfloat16|float16|char|byte)$")
_STRICT, _LOOSE = (ast.Lt, ast.Gt), (ast.LtE, ast.GtE)


def limits(old: str, new: str) -> Iterator[str]:
    """Where the new code counts, compares or ends otherwise in a way that few inputs show, if it does."""
    before, after = _By(old), _By(new)
    # One that only stands elsewhere, or under another name, is still there.
    for test in before.turns - after.turns if before.turns.total() > after.turns.total() else ():
        yield f"where `while {test}` of the old code takes more turns than on what was tried"
    for part in before.whole - after.whole if before.whole.total() > after.whole.total() else ():
        yield f"where `{part}` is so large that a float is not exact, or on a step: it is computed otherwise"
    for name in after.narrow - before.narrow:
        yield f"where numbers are beyond what {name} holds, which the new code makes of them"
    was = {kind for other, kind in before.compared.items() if other not in after.compared}
    for text, is_strict in after.compared.items():
        if text not in before.compared and was and is_strict not in was:
            kind = "one with =" if is_strict else "one without ="
            yield f"where both sides of `{text}` are the same: the comparison in its place was {kind}"
    for test in before.doubles - after.doubles:
        yield f"near the limit of `{test}`, which the old code computes in double precision"
    left = _globals_read(new)
    for function, names in _globals_read(old).items():
        for name in sorted(names - left.get(function, names)):
            yield f"other values of `{name}`, which {function} does not read any more"


class _By:
    """What a module counts by and compares, as text of the code."""

    def __init__(self, source: str) -> None:
        tree = ast.parse(source)
        nodes = list(ast.walk(tree))
        self.turns = Counter(ast.unparse(one.test)[:80] for one in nodes if isinstance(one, ast.While))
        self.whole = Counter(
            ast.unparse(one)[:80]
            for one in nodes
            if isinstance(one, ast.BinOp) and isinstance(one.op, ast.FloorDiv)
        )
        self.narrow = Counter(
            one.attr for one in nodes if isinstance(one, ast.Attribute) and _NARROW.match(one.attr)
        )
        self.compared = dict(_compared(tree, negated=False))
        self.doubles = Counter(
            ast.unparse(one)[:80] for one in nodes if isinstance(one, ast.Compare) and _is_double(one)
        )


def _compared(node: ast.AST, *, negated: bool) -> Iterator[tuple[str, bool]]:
    """Comparisons of size, and whether equal sides fail them; a ``not`` around one turns that."""
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], (*_STRICT, *_LOOSE)):
        yield ast.unparse(node)[:80], isinstance(node.ops[0], _STRICT) is not negated
    turned = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert)
    for child in ast.iter_child_nodes(node):
        yield from _compared(child, negated=negated is not turned)


def _is_double(test: ast.Compare) -> bool:
    """Whether a number that was read of a tensor is calculated with before it is compared."""
    return any(isinstance(part, ast.BinOp) for part in ast.walk(test)) and any(
        isinstance(part, ast.Call) and (getattr(part.func, "attr", "") == "item" or _is_float(part))
        for part in ast.walk(test)
    )


def _is_float(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "float"


def _parameters_read(source: str) -> dict[str, set[str]]:
    """The parameters that functions read, by their names."""
    return _names_read(source, _parameters)


def _parameters(function: _Function) -> set[str]:
    return {one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)} - {"self", "cls"}


def _globals_read(source: str) -> dict[str, set[str]]:
    """The names of a module's own values that functions read, by their names."""
    kept = {
        target.id
        for one in ast.parse(source).body
        if isinstance(one, ast.Assign)
        for target in one.targets
        if isinstance(target, ast.Name)
    }
    return _names_read(source, lambda _function: kept)


def _names_read(source: str, wanted: Callable[[_Function], set[str]]) -> dict[str, set[str]]:
    """Of the names that are wanted those that functions read, by the names of these."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            read = {
                one.id
                for one in ast.walk(node)
                if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)
            }
            found[node.name] = found.get(node.name, set()) | (wanted(node) & read)
    return found


def _read(source: str) -> set[str]:
    """Attributes that are read below ``self``; the method of one that is called is no value."""
    tree = ast.parse(source)
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    called = {
        id(one) for one in calls if isinstance(one, ast.Attribute) and not isinstance(one.value, ast.Name)
    }
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Load)
        and id(node) not in called
        and root_name(node.value) == "self"
    }


def _imported(tree: ast.Module) -> set[str]:
    """The names under which a module has foreign packages, and what is in them."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            tops = {name.asname or name.name.partition(".")[0]: name.name for name in node.names}
            found |= {name for name, module in tops.items() if module.partition(".")[0] in _FOREIGN}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in _FOREIGN:
            found |= {name.asname or name.name for name in node.names}
    return found


def _effects(source: str) -> Iterator[str]:
    tree = ast.parse(source)
    imported = _imported(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
            if root_name(node) in imported:
                yield f"`{ast.unparse(node)[:80]}` is set"
        elif isinstance(node, ast.Call) and _CALLS.match(name := ast.unparse(node.func)):
            yield f"`{name[:80]}` is called"


def moved_no_more(old: str, new: str) -> Iterator[str]:
    """Moves to one device that only the old form makes."""
    before, after = (list(filter(_MOVES.search, _on_default_device(source))) for source in (old, new))
    if len(before) > len(after):
        yield from (Counter(before) - Counter(after)).keys()


def _on_default_device(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        if getattr(node.func, "attr", "") in ("cpu", "cuda"):
            yield ast.unparse(node)[:80]
        if not _MADE.match(ast.unparse(node.func)):
            continue
        if not any(keyword.arg in ("device", None) for keyword in node.keywords):
            yield ast.unparse(node)[:80]
