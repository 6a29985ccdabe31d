"""The old and the new form of a module put into one: each changed function stands there in both forms.

A changed function becomes three definitions, one after the other, so that all of them see the same class,
closure and globals: the new form, the old form with its conditions watched, and the old form, which stays
under its name with a decorator that knows the other two.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from breakscope.inside.prove.operators import hands_on, self_run

FORM = "__breakscope_form__"
CHECK = "__breakscope_check__"
CONDITION = "__breakscope_condition__"

_Function = ast.FunctionDef | ast.AsyncFunctionDef


class NotPairedError(Exception):
    """The rewrite changes what cannot stand in two forms side by side; the message says what."""


@dataclass(slots=True)
class Pairs:
    """Result of :func:`pair`.

    Attributes:
        functions: dotted paths of the changed functions.
        conditions: each watched condition, by function.
        texts: the old and the new form of each, as they stand in the source.
        runs: functions that run another one as an operator.
    """

    tree: ast.Module
    functions: list[str] = field(default_factory=list)
    conditions: dict[str, list[Watched]] = field(default_factory=dict)
    texts: dict[str, tuple[ast.stmt, ast.stmt]] = field(default_factory=dict)
    runs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Watched:
    """A condition of the old form that the new one does not have.

    Attributes:
        operand_of: text of the whole condition, if it is an operand of ``and`` or ``or`` in one.
    """

    text: str
    operand_of: str | None = None


def pair(old: ast.Module, new: ast.Module) -> Pairs:
    """Put the new forms of changed functions into the old module, which is changed in place.

    Raises:
        NotPairedError: more differs than functions' bodies and added module-level statements.
    """
    result = Pairs(old, runs=self_run(new))
    old.body = _merge(old.body, new.body, "", result)
    ast.fix_missing_locations(old)
    return result


def _merge(old: list[ast.stmt], new: list[ast.stmt], prefix: str, result: Pairs) -> list[ast.stmt]:
    merged: list[ast.stmt] = []
    place = 0
    for statement in old:
        wanted = ast.dump(statement)
        at = next((i for i in range(place, len(new)) if _matches(statement, wanted, new[i])), None)
        if at is None:
            raise NotPairedError(f"it changes line {statement.lineno}, which is in no function")
        merged += _added(new[place:at], prefix)
        merged += _one(statement, new[at], prefix, result)
        place = at + 1
    return [*merged, *_added(new[place:], prefix)]


def _matches(old: ast.stmt, dump: str, new: ast.stmt) -> bool:
    if isinstance(old, _Function | ast.ClassDef):
        return type(old) is type(new) and old.name == new.name
    return ast.dump(new) == dump


def _added(statements: list[ast.stmt], prefix: str) -> list[ast.stmt]:
    """New statements: functions, imports and the like at the top of a module, whose effect is a name."""
    for statement in statements:
        if prefix or not isinstance(statement, _Function | ast.Import | ast.ImportFrom):
            raise NotPairedError(f"it adds more than a function or an import at line {statement.lineno}")
    return statements


def _one(old: ast.stmt, new: ast.stmt, prefix: str, result: Pairs) -> list[ast.stmt]:
    if not isinstance(old, _Function | ast.ClassDef) or ast.dump(old) == ast.dump(new):
        return [old]
    assert isinstance(new, _Function | ast.ClassDef)
    name = prefix + old.name
    if _without_body(old) != _without_body(new):
        raise NotPairedError(f"it changes the signature or the decorators of {name}")
    if isinstance(old, ast.ClassDef):
        old.body = _merge(old.body, new.body, f"{name}.", result)
        return [old]
    try:
        # The change may be in a function inside this one, which then is what is compared.
        inner = Pairs(result.tree, runs=result.runs)
        body = _merge(copy.deepcopy(old.body), new.body, f"{name}.", inner)
    except NotPairedError:
        return _forms(old, new, name, result)
    old.body = body
    result.functions += inner.functions
    result.conditions.update(inner.conditions)
    result.texts.update(inner.texts)
    return [old]


def _without_body(node: ast.stmt) -> str:
    bare = copy.copy(node)
    bare.body = []  # type: ignore[attr-defined]
    return ast.dump(bare)


def _forms(old: ast.stmt, new: ast.stmt, name: str, result: Pairs) -> list[ast.stmt]:
    assert isinstance(old, ast.FunctionDef | ast.AsyncFunctionDef)
    assert isinstance(new, ast.FunctionDef | ast.AsyncFunctionDef)
    if isinstance(old, ast.AsyncFunctionDef) or _is_generator(old):
        raise NotPairedError(f"{name} is a generator or a coroutine")
    result.functions.append(name)
    result.texts[name] = copy.deepcopy(old), copy.deepcopy(new)
    watched = copy.deepcopy(old)
    result.conditions[name] = _watch(watched, new, name, result.runs)
    # What switches gradients belongs to the function: it does so in every call.
    modes = [one for one in old.decorator_list if switches_gradients(one)]
    new.decorator_list = [_decorator(FORM, name, "new"), *copy.deepcopy(modes)]
    watched.decorator_list = [_decorator(FORM, name, "watched"), *copy.deepcopy(modes)]
    old.decorator_list.append(_decorator(CHECK, name))
    for form in (new, watched, old):
        for decorator in form.decorator_list:
            ast.copy_location(decorator, form) if not hasattr(decorator, "lineno") else None
    return [new, watched, old]


def _is_generator(function: ast.stmt) -> bool:
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in _own(function))


def _own(function: ast.AST) -> Iterator[ast.AST]:
    """Nodes of a function, without those of functions inside it."""
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, _Function | ast.Lambda | ast.ClassDef):
            yield child
            yield from _own(child)


def _decorator(name: str, *words: str) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), [ast.Constant(word) for word in words], [])


def switches_gradients(node: ast.expr) -> bool:
    """Whether a decorator is one of torch's that switch gradients in every call."""
    called = node.func if isinstance(node, ast.Call) else node
    name = getattr(called, "attr", getattr(called, "id", ""))
    return name in ("no_grad", "inference_mode", "enable_grad", "set_grad_enabled")


def _tests(function: ast.AST) -> Iterator[ast.expr]:
    yield from _truths(function)
    for node in _own(function):
        if isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert):
            yield node.test
        elif isinstance(node, ast.BoolOp):
            yield from node.values
        elif isinstance(node, ast.comprehension):
            yield from node.ifs


def _truths(function: ast.AST) -> Iterator[ast.expr]:
    """What Python decides although nothing branches: the outermost of ``y = not (a or b)``."""
    inside: set[int] = set()
    for node in _own(function):
        if isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert):
            inside.update(map(id, ast.walk(node.test)))
        elif id(node) not in inside and isinstance(node, ast.expr) and _is_truth(node):
            inside.update(map(id, ast.walk(node)))
            yield node


def only_eager(
    new: ast.AST, old: ast.AST | None = None, runs: Mapping[str, str] | None = None
) -> set[int] | None:
    """Ids of the nodes of a form that compiled code leaves out: a condition kept there does not count.

    None where compiled code may not come to any. Rules write ``if not torch.compiler.is_compiling():``
    and ask in no other way; a patch may. A branch of the old form that asks, in whatever way, is no
    question of the new form: what stands in it does not count, and all else does.

    Args:
        runs: functions that run another one as an operator.
    """
    left_out: list[ast.AST] = []
    asked: set[int] = set()
    branches = [node for node in _own(old) if isinstance(node, ast.If)] if old is not None else []
    before = Counter(ast.dump(node.test) for node in branches)
    for node in _own(new):
        if not isinstance(node, ast.If):
            continue
        questions = [id(one) for one in ast.walk(node.test) if _asks_whether_compiled(one)]
        if questions and before[ast.dump(node.test)]:
            before[ast.dump(node.test)] -= 1
            asked.update(questions)
            left_out += [*node.body, *node.orelse]
            continue
        if (first := _asked_first(node.test)) is not None and not _leaves([*node.body, *node.orelse]):
            asked.add(id(first))
            left_out += [node.test, *node.body]
            continue
        negated = isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not)
        question = node.test.operand if isinstance(node.test, ast.UnaryOp) and negated else node.test
        if isinstance(question, ast.Call) and _asks_whether_compiled(question.func):
            compiled, eager = (node.orelse, node.body) if negated else (node.body, node.orelse)
            if _leaves(compiled) and not hands_on(compiled, new, runs or {}):
                # Compiled code may not come to what follows, and in a loop not to what stands before.
                if _in_loop(new, node):
                    continue
                left_out += _behind(new, node)
            asked.add(id(question.func))
            left_out += eager
    if any(_asks_whether_compiled(node) and id(node) not in asked for node in _own(new)):
        return None
    return {id(node) for statement in left_out for node in ast.walk(statement)}


def _leaves(block: list[ast.stmt]) -> bool:
    """Whether a block may end the function or its loop."""
    ends = (ast.Return, ast.Raise, ast.Break, ast.Continue)
    return any(isinstance(node, ends) for one in block for node in (one, *_own(one)))


def _in_loop(function: ast.AST, node: ast.AST) -> bool:
    loops = [one for one in _own(function) if isinstance(one, ast.For | ast.While | ast.AsyncFor)]
    return any(node in ast.walk(loop) for loop in loops)


def _behind(function: ast.AST, node: ast.If) -> list[ast.AST]:
    """Statements of a function below another one."""
    last = node.end_lineno or node.lineno
    return [one for one in _own(function) if isinstance(one, ast.stmt) and one.lineno > last]


def _asked_first(test: ast.expr) -> ast.expr | None:
    """What asks, in ``not torch.compiler.is_compiling() and …``: compiled code takes the other branch."""
    match test:
        case ast.BoolOp(ast.And(), [ast.UnaryOp(ast.Not(), ast.Call(function)), *_]):
            return function if _asks_whether_compiled(function) else None
    return None


def _asks_whether_compiled(node: ast.AST) -> bool:
    name = getattr(node, "attr", getattr(node, "id", ""))
    return isinstance(node, ast.Name | ast.Attribute) and ("compiling" in name or "exporting" in name)


def _is_truth(node: ast.expr) -> bool:
    if isinstance(node, ast.BoolOp) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
        return True
    if isinstance(node, ast.Compare):
        return len(node.ops) > 1 or isinstance(node.ops[0], ast.In | ast.NotIn)
    called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
    return called in ("any", "all", "bool")


def _wholes(function: ast.AST) -> dict[int, str]:
    """Text of the condition around each operand of ``and`` and ``or``, by the operand's id.

    Not of operands that compare numbers: each of those has to go both ways itself.
    """
    tests = [
        node.test for node in _own(function) if isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert)
    ]
    return {
        id(operand): ast.unparse(whole)
        for whole in [*tests, *_truths(function)]
        for one in ast.walk(whole)
        if isinstance(one, ast.BoolOp)
        for operand in one.values
        if not _compares_numbers(operand)
    }


def _compares_numbers(node: ast.expr) -> bool:
    """Whether Python compares what was read from a tensor, which a tensor may do in another precision."""
    return any(isinstance(one, ast.Compare) for one in ast.walk(node)) and any(
        isinstance(one, ast.Call)
        and getattr(one.func, "attr", getattr(one.func, "id", "")) in ("item", "tolist", "int", "float")
        for one in ast.walk(node)
    )


def _watch(function: ast.stmt, new: ast.stmt, name: str, runs: Mapping[str, str]) -> list[Watched]:
    """Watch each condition of a function that its new form does not have any more."""
    eager = only_eager(new, function, runs)
    kept = Counter(ast.dump(test) for test in _tests(new) if eager is not None and id(test) not in eager)
    there = Counter(ast.dump(test) for test in _tests(function))
    # Which one of several alike is gone cannot be told from here: each has to go both ways then.
    gone = {
        id(test): ast.unparse(test)
        for test in _tests(function)
        if there[ast.dump(test)] > kept[ast.dump(test)]
    }
    wholes = _wholes(function)
    found: list[Watched] = []

    class Watch(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            text = gone.get(id(node))
            self.generic_visit(node)
            if text is None or not isinstance(node, ast.expr):
                return node
            found.append(Watched(text, wholes.get(id(node))))
            words = [ast.Constant(name), ast.Constant(len(found) - 1), node]
            return ast.copy_location(ast.Call(ast.Name(CONDITION, ast.Load()), words, []), node)

    Watch().visit(function)
    return found
