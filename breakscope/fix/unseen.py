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


# What only the old code has, by the attribute of _By that counts it, and what that says. The first two are
# still there where they only stand elsewhere, or under another name.
_MOVED = (
    ("turns", "where `while {}` of the old code takes more turns than on what was tried"),
    ("whole", "where `{}` is so large that a float is not exact, or on a step: it is computed otherwise"),
)
_GONE = (
    ("doubles", "near the limit of `{}`, which the old code computes in double precision"),
    ("stepped", "on the steps of `{}`, which the old code computes in double precision"),
    ("told_apart", "where `{}` of the old code tells two calls apart: the new code does not ask"),
    ("own_class", "for subclasses: the new code names a class in the place of `{}`"),
    ("nested", "where values are nested: `{}` of the old code goes into them"),
)


def limits(old: str, new: str) -> Iterator[str]:
    """Where the new code counts, compares or ends otherwise in a way that few inputs show, if it does."""
    before, after = _By(old), _By(new)
    for counted, said in (*_MOVED, *_GONE):
        had, has = getattr(before, counted), getattr(after, counted)
        if (counted, said) in _GONE or had.total() > has.total():
            yield from map(said.format, had - has)
    if after.counted - before.counted:
        loops = before.loops - after.loops
        yield from (
            f"where `{loop}` of the old code takes more turns than on what was tried" for loop in loops
        )
    for name in after.narrow - before.narrow:
        yield f"where numbers are beyond what {name} holds, which the new code makes of them"
    for name in after.cached - before.cached:
        yield f"where `{name}`, which keeps what it gave, is first called in inference mode"
    yield from _compared_otherwise(before, after)
    for key, asked in before.asked.items():
        if key not in after.texts:
            yield f"where {asked} is there: the new code does not ask for it"
    left = _globals_read(new)
    for function, names in _globals_read(old).items():
        for name in sorted(names - left.get(function, names)):
            yield f"other values of `{name}`, which {function} does not read any more"


def _compared_otherwise(before: _By, after: _By) -> Iterator[str]:
    was = {kind for other, kind in before.compared.items() if other not in after.compared}
    for text, is_strict in after.compared.items():
        if text not in before.compared and was and is_strict not in was:
            kind = "one with =" if is_strict else "one without ="
            yield f"where both sides of `{text}` are the same: the comparison in its place was {kind}"


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
        self.cached = {
            one.name
            for one in nodes
            if isinstance(one, _Function)
            and any(_CACHES.search(ast.unparse(by)) for by in one.decorator_list)
        }
        self.compared = dict(_compared(tree, negated=False))
        self.doubles = Counter(
            ast.unparse(one)[:80] for one in nodes if isinstance(one, ast.Compare) and _is_double(one)
        )
        calls = [one for one in nodes if isinstance(one, ast.Call)]
        self.stepped = Counter(ast.unparse(one)[:80] for one in calls if _is_stepped(one))
        self.nested = Counter(ast.unparse(one)[:80] for one in calls if _NESTED.search(ast.unparse(one.func)))
        self.own_class = Counter(map(ast.unparse, filter(_is_own_class, nodes)))
        loops = [one for one in nodes if isinstance(one, ast.For)]
        self.loops = Counter(
            f"for {ast.unparse(one.target)} in {ast.unparse(one.iter)}"[:80] for one in loops
        )
        self.counted = Counter(ast.unparse(one.iter) for one in loops if _is_counted(one.iter))
        self.texts = {one.value for one in nodes if isinstance(one, ast.Constant) and type(one.value) is str}
        self.asked = dict(filter(None, map(_asked, calls)))
        self.told_apart = Counter(
            ast.unparse(one)[:80] for one in nodes if isinstance(one, ast.Compare) and _asks_kind(one)
        )


_CACHES = re.compile(r"\b(lru_cache|cache|cached_property)\b")
_STEPPED = re.compile(r"(int|round|math\.(floor|ceil|trunc))$")
_EXACT = re.compile(r"math\.(isqrt|comb|perm|gcd|lcm|factorial|log2|fmod|remainder)$")
_NESTED = re.compile(r"\btree_(map|map_only|flatten|leaves)$")


def _is_stepped(call: ast.Call) -> bool:
    """Whether a number of Python's is rounded that was calculated, or an exact one is made of it."""
    name = ast.unparse(call.func)
    calculated = any(isinstance(part, ast.BinOp) for one in call.args for part in ast.walk(one))
    digits = name == "round" and len(call.args) > 1
    return _EXACT.match(name) is not None or (_STEPPED.match(name) is not None and (calculated or digits))


def _is_own_class(node: ast.AST) -> bool:
    """``type(self)`` and ``self.__class__``."""
    match node:
        case ast.Call(ast.Name("type"), [ast.Name("self")]) | ast.Attribute(ast.Name("self"), "__class__"):
            return True
    return False


def _is_counted(over: ast.expr) -> bool:
    """``range(8)``: a loop with a number of turns that is written out."""
    match over:
        case ast.Call(ast.Name("range"), [*given]):
            return all(isinstance(one, ast.Constant) for one in given)
    return False


def _asked(call: ast.Call) -> tuple[str, str] | None:
    """What is asked for with a value for where it is not there: ``cfg.get("scale", 1.0)``, ``getattr``."""
    match call:
        case ast.Call(ast.Attribute(of, "get"), [ast.Constant(str(key)), _]):
            return key, f"`{ast.unparse(of)[:40]}[{key!r}]`"
        case ast.Call(ast.Name("getattr"), [of, ast.Constant(str(key)), _]):
            return key, f"`{ast.unparse(of)[:40]}.{key}`"
    return None


def _asks_kind(test: ast.Compare) -> bool:
    """Whether a comparison asks of which kind a tensor is that is kept from one call to the next."""
    parts = [one for one in ast.walk(test) if isinstance(one, ast.Attribute)]
    return any(one.attr in ("dtype", "device", "shape") for one in parts) and any(
        root_name(one) == "self" for one in parts
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
