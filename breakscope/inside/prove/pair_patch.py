"""The old and the new form of a module put into one, for a patch by anybody.

As :mod:`breakscope.inside.prove.pair` does it for a rewrite of ours, with what a person may do besides: new
helpers, classes and imports, other signatures. Nothing is known of the patch, so every condition of a changed
function is watched, in both forms: code behind one that no input drives was not compared.
"""

from __future__ import annotations

import ast
import copy
import difflib
import symtable
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, field, replace

from breakscope.inside.prove import pair
from breakscope.inside.prove.conditions import Condition
from breakscope.inside.prove.pair import NotPairedError

THROUGH = "__breakscope_through__"
ADDED = "__breakscope_added__"

_Function = ast.FunctionDef | ast.AsyncFunctionDef
# What makes an object: its two forms leave objects that the other forms of its methods do not fit.
_DECORATORS = (
    "staticmethod",
    "classmethod",
    "property",
    "functools.",
    "torch.no_grad",
    "torch.compile",
    "torch.inf",
)
_MAKING = ("__init__", "__new__", "__post_init__", "__init_subclass__", "__setstate__")


@dataclass(frozen=True, slots=True)
class Watched:
    """A condition of either form.

    Attributes:
        operand_of: text of the whole condition, if it is an operand of ``and`` or ``or`` in one.
        kept: its statement is the same in both forms, so that what it guards is not changed by the patch.
        computed: it is a comparison that no statement decides by.
        block: it is no condition, but a block that may not run: the body of a loop, a handler, a case.
        on: of one that is kept, the way that leads to changed code, where the other leaves the function or
            the turn of a loop.
    """

    text: str
    operand_of: str | None = None
    kept: bool = False
    block: bool = False
    computed: bool = False
    on: bool | None = None

    @property
    def condition(self) -> Condition:
        """What notes the ways that it goes."""
        return Condition(**asdict(self))


@dataclass(slots=True)
class PatchPairs:
    """Result of :func:`pair_patch`.

    Attributes:
        functions: dotted paths of the functions whose forms are compared.
        through: those that cannot stand in for each other: their callers are compared.
        conditions: of both forms, by function.
        removed: names of the module that the new form has no more. added: those that only it has.
    """

    tree: ast.Module
    functions: list[str] = field(default_factory=list)
    through: list[str] = field(default_factory=list)
    conditions: dict[str, list[Watched]] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)


def pair_patch(old: str, new: str, path: str, through: Collection[str] = ()) -> PatchPairs:
    """Put the new forms of changed functions into the old module.

    Args:
        through: functions that are to be compared through their callers, though their signatures agree.

    Raises:
        NotPairedError: what differs cannot stand side by side: only the whole script can be compared.
        SyntaxError: a form does not parse.
    """
    tree = ast.parse(old, filename=path)
    result = PatchPairs(tree)
    pairing = _Pairing(result, _globals_read(old, path), _globals_read(new, path), frozenset(through))
    tree.body = pairing.merged(tree.body, ast.parse(new, filename=path).body, "")
    ast.fix_missing_locations(tree)
    return result


def _globals_read(source: str, path: str) -> set[str]:
    """Every global or builtin name that a module's code reads."""
    found: set[str] = set()
    tables = [symtable.symtable(source, path, "exec")]
    for table in tables:
        tables += table.get_children()
        top = table.get_type() == "module"
        found |= {
            symbol.get_name()
            for symbol in table.get_symbols()
            if symbol.is_referenced() and (symbol.is_global() or top)
        }
    return found


@dataclass(slots=True)
class _Pairing:
    result: PatchPairs
    old_reads: set[str]
    new_reads: set[str]
    as_through: frozenset[str]

    def merged(
        self, old: list[ast.stmt], new: list[ast.stmt], prefix: str, *, in_function: bool = False
    ) -> list[ast.stmt]:
        """The statements of a module, a class or a function, with both forms of the functions that differ."""
        old, new = _without_docstring(old), _without_docstring(new)
        keys, others = [_key(one) for one in old], [_key(one) for one in new]
        merged: list[ast.stmt] = []
        matcher = difflib.SequenceMatcher(None, keys, others, autojunk=False)
        for tag, a, b, c, d in matcher.get_opcodes():
            if tag == "equal":
                for before, after in zip(old[a:b], new[c:d], strict=True):
                    merged += self._pair(before, after, prefix)
                continue
            if in_function:
                raise NotPairedError(f"it changes {prefix.rstrip('.')} itself")
            merged += [self._removed(one, prefix) for one in old[a:b]]
            merged += [self._added(one, prefix) for one in new[c:d]]
        return merged

    def _removed(self, statement: ast.stmt, prefix: str) -> ast.stmt:
        names = _bound(statement)
        if prefix or names is None:
            raise NotPairedError(f"it changes line {statement.lineno}, which is in no function")
        if still := [name for name in names if name in self.new_reads]:
            raise NotPairedError(f"it binds `{still[0]}` in another way")
        self.result.removed += names
        return statement

    def _added(self, statement: ast.stmt, prefix: str) -> ast.stmt:
        names = _bound(statement)
        if isinstance(statement, ast.Assign | ast.AnnAssign) and not prefix:
            again = [name for name in names or () if name in self.result.removed]
            if again:
                raise NotPairedError(f"it binds `{again[0]}` in another way: who imports it can tell")
        if names is None or (prefix and not isinstance(statement, ast.FunctionDef)):
            where = f"in the class {prefix.rstrip('.')}" if prefix else "outside of functions"
            raise NotPairedError(f"it adds code {where} at line {statement.lineno}")
        if not prefix and (taken := [name for name in names if name in self.old_reads]):
            raise NotPairedError(f"it binds `{taken[0]}`, which the old code reads as something else")
        if prefix:
            assert isinstance(statement, ast.FunctionDef)
            if statement.name.startswith("__"):
                raise NotPairedError(f"it adds {prefix}{statement.name}, which Python calls by itself")
            # Whether a base class has one of this name is known when the class is made.
            asking = pair._decorator(ADDED, prefix.rstrip("."), statement.name)
            statement.decorator_list.insert(0, ast.copy_location(asking, statement))
        self.result.added += [prefix + name for name in names]
        return statement

    def _pair(self, old: ast.stmt, new: ast.stmt, prefix: str) -> list[ast.stmt]:
        if ast.dump(old) == ast.dump(new):
            return [old]
        assert isinstance(old, _Function | ast.ClassDef)
        assert isinstance(new, _Function | ast.ClassDef)
        name = prefix + old.name
        if isinstance(old, ast.ClassDef):
            if pair._without_body(old) != pair._without_body(new):
                raise NotPairedError(f"it changes the bases or the decorators of the class {name}")
            assert isinstance(new, ast.ClassDef)
            old.body = self.merged(old.body, new.body, f"{name}.")
            if not old.body:
                old.body = [ast.Pass()]
            return [old]
        assert isinstance(new, _Function)
        if old.name in _MAKING and prefix:
            raise NotPairedError(f"it changes how objects of {prefix.rstrip('.')} are made")
        if name in self.result.conditions:
            raise NotPairedError(f"{name} stands there twice")
        return self._in_it(old, new, name) or self._forms(old, new, name)

    def _in_it(
        self, old: ast.FunctionDef | ast.AsyncFunctionDef, new: ast.stmt, name: str
    ) -> list[ast.stmt] | None:
        """The change may be in a function inside a function: then that is what is compared."""
        assert isinstance(new, _Function)
        if pair._without_body(old) != pair._without_body(new):
            return None
        result = PatchPairs(self.result.tree)
        inner = replace(self, result=result)
        try:
            body = inner.merged(
                copy.deepcopy(old.body), copy.deepcopy(new.body), f"{name}.", in_function=True
            )
        except NotPairedError:
            return None
        self.result.functions += result.functions
        self.result.through += result.through
        self.result.conditions.update(result.conditions)
        old.body = body
        return [old]

    def _forms(self, old: ast.FunctionDef | ast.AsyncFunctionDef, new: ast.stmt, name: str) -> list[ast.stmt]:
        assert isinstance(new, _Function)
        modes, new_modes = _modes(old), _modes(new)
        others, new_others = _others(old), _others(new)
        if [*map(ast.dump, others)] != [*map(ast.dump, new_others)]:
            raise NotPairedError(f"it changes the decorators of {name}")
        same_modes = [*map(ast.dump, modes)] == [*map(ast.dump, new_modes)]
        if not same_modes and others:
            raise NotPairedError(f"it changes the decorators of {name}")
        if (changed := _default_that_changes(old, new)) is not None:
            raise NotPairedError(
                f"it changes the default of `{changed}` in {name}: who leaves it out can tell"
            )
        awaits = isinstance(old, ast.AsyncFunctionDef) or isinstance(new, ast.AsyncFunctionDef)
        lazy = awaits or pair._is_generator(old) or pair._is_generator(new)
        through = name in self.as_through or _signature(old) != _signature(new) or lazy
        (self.result.through if through else self.result.functions).append(name)
        watched, new_watched = copy.deepcopy(old), copy.deepcopy(new)
        found = watch(watched, new, name, 0, in_new=False)
        found += watch(new_watched, old, name, len(found), in_new=True)
        self.result.conditions[name] = found
        forms = (
            (new, "new", new_modes),
            (new_watched, "new_watched", new_modes),
            (watched, "watched", modes),
        )
        for form, word, own in forms:
            form.decorator_list = [pair._decorator(pair.FORM, name, word), *copy.deepcopy(own)]
        check = pair._decorator(THROUGH if through else pair.CHECK, name)
        if same_modes:
            old.decorator_list.append(check)
        else:
            # Outside of what switches gradients, which is a part of the form then.
            old.decorator_list.insert(0, check)
        for one in (new, new_watched, watched, old):
            for decorator in one.decorator_list:
                ast.copy_location(decorator, one) if not hasattr(decorator, "lineno") else None
        return [new, new_watched, watched, old]


def _key(statement: ast.stmt) -> tuple[str, ...]:
    if isinstance(statement, _Function | ast.ClassDef):
        decorators = [ast.dump(other) for other in _others(statement)]
        return (
            type(statement).__name__,
            statement.name,
            *(decorator for decorator in decorators if "'setter'" in decorator),
        )
    return (ast.dump(statement),)


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0] if body else None
    text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return body[1:] if text and isinstance(first.value.value, str) else body  # type: ignore[union-attr]


def _bound(statement: ast.stmt) -> list[str] | None:
    """The names that are all that a statement leaves; None where it may do more."""
    if isinstance(statement, _Function):
        return [statement.name] if _only_defines(statement) else None
    if isinstance(statement, ast.ClassDef):
        plain = not statement.keywords and all(
            map(_only_names, [*statement.bases, *statement.decorator_list])
        )
        inside = all(_in_a_class(one) for one in _without_docstring(statement.body))
        return [statement.name] if plain and inside else None
    if isinstance(statement, ast.Import | ast.ImportFrom):
        future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        names = [name.asname or name.name.partition(".")[0] for name in statement.names]
        return None if future or "*" in names else names
    if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        calls = any(isinstance(one, ast.Call | ast.Await | ast.NamedExpr) for one in ast.walk(statement))
        if not calls and all(isinstance(target, ast.Name) for target in targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
    return None


def _only_defines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether nothing else runs when it is defined: no call in a default, no decorator of anybody's."""
    defaults = [
        *function.args.defaults,
        *(kw_default for kw_default in function.args.kw_defaults if kw_default is not None),
    ]
    calls = any(isinstance(node, ast.Call) for default in defaults for node in ast.walk(default))
    own = [ast.unparse(one) for one in function.decorator_list]
    return not calls and all(one.startswith(_DECORATORS) for one in own)


def _only_names(node: ast.expr) -> bool:
    return not any(isinstance(one, ast.Call) for one in ast.walk(node)) or ast.unparse(node).startswith(
        "dataclass("
    )


def _in_a_class(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Pass):
        return True
    return not isinstance(statement, ast.Import | ast.ImportFrom) and _bound(statement) is not None


def _modes(node: ast.stmt) -> list[ast.expr]:
    return [one for one in node.decorator_list if pair.switches_gradients(one)]  # type: ignore[attr-defined]


def _others(node: ast.stmt) -> list[ast.expr]:
    return [one for one in node.decorator_list if not pair.switches_gradients(one)]  # type: ignore[attr-defined]


def _signature(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """The parameters with their defaults; what annotations say of them changes nothing."""
    bare = copy.deepcopy(function.args)
    for one in ast.walk(bare):
        if isinstance(one, ast.arg):
            one.annotation = None
    return ast.dump(bare)


def _default_that_changes(
    old: ast.FunctionDef | ast.AsyncFunctionDef, new: ast.FunctionDef | ast.AsyncFunctionDef
) -> str | None:
    """A parameter that may be left out of calls of either form, which then get another value."""
    before, after = _defaults(old), _defaults(new)
    return next((name for name in before if name in after and before[name] != after[name]), None)


def _defaults(function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, str]:
    given, args = function.args, [*function.args.posonlyargs, *function.args.args]
    pairs = [
        *zip(args[len(args) - len(given.defaults) :], given.defaults, strict=True),
        *zip(given.kwonlyargs, given.kw_defaults, strict=True),
    ]
    return {parameter.arg: ast.dump(default) for parameter, default in pairs if default is not None}


# ---- conditions ----

_Runs = ast.For | ast.AsyncFor | ast.ExceptHandler | ast.match_case


def _inside(function: ast.AST) -> Iterator[ast.AST]:
    """Nodes of a function and of those inside it: what they do is compared as a part of it."""
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, ast.ClassDef):
            yield child
            yield from _inside(child)


def _owners(function: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Each condition, and each block that may not run, with the statement or expression that it stands in."""
    inside: set[int] = set()
    for node in _inside(function):
        if isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert):
            inside.update(map(id, ast.walk(node.test)))
            yield node, node.test
        elif isinstance(node, ast.comprehension):
            yield from ((node, one) for one in node.ifs)
        elif isinstance(node, ast.For | ast.AsyncFor):
            yield node, node
        elif isinstance(node, ast.Try | ast.TryStar):
            yield from ((node, handler) for handler in node.handlers)
        elif isinstance(node, ast.Match):
            yield from ((node, case) for case in node.cases)
        if isinstance(node, ast.BoolOp):
            yield from ((node, value) for value in node.values)
        if id(node) not in inside and isinstance(node, ast.expr) and pair._is_truth(node):
            inside.update(map(id, ast.walk(node)))
            yield node, node
        elif id(node) not in inside and isinstance(node, ast.Compare):
            yield node, node


def watch(function: ast.stmt, other: ast.stmt, name: str, first: int, *, in_new: bool) -> list[Watched]:
    """Watch every condition of a form; those are ``kept`` whose statement the other form has as well."""
    # What the new form does only where nothing is compiled is gone where it matters.
    eager = set() if in_new else pair.only_eager(other)
    there = Counter(ast.dump(owner) for owner, _ in _owners(function))
    kept = Counter(
        ast.dump(owner) for owner, _ in _owners(other) if eager is not None and id(owner) not in eager
    )
    wholes, ways_on = pair._wholes(function), _ways_on(function, other)
    conditions: dict[int, Watched] = {}
    for owner, node in _owners(function):
        if isinstance(node, ast.expr) and "is_compiling" in ast.unparse(node):
            continue  # it goes the other way in the compiled form, which is compared too
        same = there[ast.dump(owner)] <= kept[ast.dump(owner)]
        if same and in_new:
            continue  # watched in the old form
        # One node may stand in two: the one that is not kept counts.
        if id(node) not in conditions or not same:
            text = _shown(node) + (" (in the new code)" if in_new else "")
            computed = isinstance(owner, ast.Compare)
            block, on = isinstance(node, _Runs), ways_on.get(id(node)) if same else None
            conditions[id(node)] = Watched(text, wholes.get(id(node)), same, block, computed, on)
    found: list[Watched] = []

    def noted(watched: Watched, node: ast.AST, value: ast.expr) -> ast.expr:
        found.append(watched)
        words = [ast.Constant(name), ast.Constant(first + len(found) - 1), value]
        call = ast.Call(ast.Name(pair.CONDITION, ast.Load()), words, [])
        return ast.copy_location(call, node) if hasattr(node, "lineno") else call

    class Watch(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            watched = conditions.get(id(node))
            self.generic_visit(node)
            if watched is None:
                return node
            if isinstance(node, ast.expr):
                return noted(watched, node, node)
            assert isinstance(node, _Runs)
            node.body.insert(0, ast.Expr(noted(watched, node.body[0], ast.Constant(True))))
            ast.copy_location(node.body[0], node.body[1])
            return node

    Watch().visit(function)
    return found


def _ways_on(function: ast.stmt, other: ast.stmt) -> dict[int, bool]:
    """The way of an early exit's condition that leads on to changed code, by the condition's id."""
    known = {ast.dump(node) for node in ast.walk(other) if isinstance(node, ast.stmt)}
    found: dict[int, bool] = {}

    def follow(block: list[ast.stmt], in_turn: bool, in_function: bool) -> None:
        """``in_turn``, ``in_function``: changed code follows in the turn of a loop, in the function."""
        for statement in reversed(block):
            if isinstance(statement, ast.If):
                leaving, going = _leaves(statement.body), _leaves(statement.orelse)
                changed = in_turn if _EXITS[1] in (leaving, going) else in_function
                if changed and (leaving is None) != (going is None):
                    found[id(statement.test)] = leaving is None
            repeats = isinstance(statement, ast.For | ast.AsyncFor | ast.While)
            for inner in _blocks(statement):
                follow(inner, in_turn and not repeats, in_function)
            new = ast.dump(statement) not in known
            in_turn, in_function = in_turn or new, in_function or new

    follow(function.body, False, False)  # type: ignore[attr-defined]
    return found


_EXITS = ((ast.Return, ast.Raise), (ast.Break, ast.Continue))


def _leaves(block: list[ast.stmt]) -> tuple[type[ast.stmt], ...] | None:
    """What kind of exit a block ends with."""
    return next((kind for kind in _EXITS if block and isinstance(block[-1], kind)), None)


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    if isinstance(statement, ast.ClassDef | _Function):
        return
    for part in (statement, *getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        for name in ("body", "orelse", "finalbody"):
            yield getattr(part, name, [])


def _shown(node: ast.AST) -> str:
    text = ast.unparse(node).splitlines()[0] if not isinstance(node, ast.ExceptHandler) else ""
    if isinstance(node, ast.ExceptHandler):
        return f"except {ast.unparse(node.type) if node.type else ''}".strip() + ": is reached"
    return text if isinstance(node, ast.expr) else f"{text} runs"
