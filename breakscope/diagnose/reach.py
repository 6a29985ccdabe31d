"""What the source around a site says: under which settings it is reached, and what its parts are."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile
from typing import Literal, TypeGuard

from breakscope.diagnose import begins, checks, kinds, loops, restated, uses
from breakscope.diagnose.becomes import (
    defined,
    ends_of,
    is_array,
    is_list,
    is_mask_made,
    is_tensor,
    outside_of,
    values_of,
)
from breakscope.diagnose.site_use import Seen, Use
from breakscope.diagnose.statements import asked_mask, head_of, own_loops
from breakscope.project.sources import Position, Sources
from breakscope.report.model import Frame
from breakscope.source.syntax import grouped
from breakscope.source.walking import walk

_MOST = 2  # conditions shown
_LONG = 90
_PLAIN_CALLS = ("hasattr", "isinstance", "len", "getattr")


def settings(sources: Sources, file: str, position: Position | None) -> str | None:
    """The conditions on plain settings under which a line is reached: ``self.training and use_cache``.

    A person who cannot change the line can change what leads to it.
    """
    if position is None:
        return None
    found = []
    around = sources.around(file, position)
    for parent, child in pairwise(around):
        if isinstance(parent, ast.If) and child in parent.body and _is_setting(parent.test):
            found.append(_unparse(parent.test))
        if isinstance(parent, ast.BoolOp) and isinstance(parent.op, ast.And):
            before = parent.values[: parent.values.index(child)] if child in parent.values else []
            found += [_unparse(one) for one in before if _is_setting(one)]
    # The site may be the test as a whole, or its `if`.
    whole = around[-1].test if around and isinstance(around[-1], ast.If) else around[-1] if around else None
    made = _made_under(around)
    if isinstance(whole, ast.BoolOp) and isinstance(whole.op, ast.And):

        def is_plain(test: ast.expr) -> bool:
            return _is_setting(test) and _unparse(test) not in made

        before = [*takewhile(is_plain, whole.values)]
        # Where all of them look plain, the first may be what broke, as a size that data gives.
        found += map(_unparse, before if len(before) < len(whole.values) else ())
    found += [text for some in made.values() for text in some]
    found = [text for text in found if len(text) <= _LONG]
    return " and ".join(dict.fromkeys(found[-_MOST:])) or None


_NO_CHOICE = re.compile(r"self\.(config\.\w+) is None\b")


def choice(sources: Sources, file: str, position: Position | None, settings: str | None) -> str:
    """What of a configuration is not chosen where a line is reached, and what its function knows of it.

    ``config.problem_type, as 'regression'`` under ``self.config.problem_type is None``; else empty.
    """
    function = uses.function(sources.around(file, position)) if position is not None else None
    found = _NO_CHOICE.search(settings or "")
    if function is None or found is None:
        return ""
    known = [
        repr(one.value)
        for node in ast.walk(function)
        if isinstance(node, ast.Compare) and ast.unparse(node.left) == f"self.{found[1]}"
        for one in node.comparators
        if isinstance(one, ast.Constant) and isinstance(one.value, str)
    ]
    return f"{found[1]}, as {' or '.join(dict.fromkeys(known))}," if known else ""


def _made_under(around: Sequence[ast.AST]) -> dict[str, list[str]]:
    """The settings under which alone a name that a branch asks for is no constant: ``skip = False``."""
    branch, function = uses.statement(around), uses.function(around)
    if not isinstance(branch, ast.If) or function is None:
        return {}
    branches = [one for one in ast.walk(function) if isinstance(one, ast.If) and _is_setting(one.test)]
    found: dict[str, list[str]] = {}
    nodes = [node for node in ast.walk(function) if isinstance(node, ast.Name | ast.Assign)]
    for name in (node.id for node in ast.walk(branch.test) if isinstance(node, ast.Name)):
        plain = [node for node in nodes if isinstance(node, ast.Assign) and uses.assigned(node) == name]
        stores = [node for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
        if name in uses.parameters(function) or len(plain) < sum(node.id == name for node in stores):
            continue  # another value may be no constant

        def makes(node: ast.AST, name: str = name) -> bool:
            is_own = isinstance(node, ast.Assign) and uses.assigned(node) == name
            return is_own and not isinstance(node.value, ast.Constant)  # type: ignore[attr-defined]

        under = [one for one in branches if any(map(makes, one.body))]
        if under and len(under) == sum(map(makes, ast.walk(function))):
            found[name] = [_unparse(one.test) for one in under]
    return found


def misread(sources: Sources, stack: Sequence[Frame]) -> tuple[str, str, int] | None:
    """What of the functions on the way Dynamo reads otherwise than eager: ``("turned", "x.t_()", 7)``.

    Tried with torch 2.13: ``torch.FloatTensor(x.size())`` is a tensor of these numbers to it, and behind a
    method that turns a tensor in place, as ``transpose_``, ``size()`` is still the old one.
    """
    for frame in reversed(stack):
        if frame.owner == "torch":
            continue
        way = sources.around_function(frame.file, frame.line)
        calls = (node for node in walk(way[-1]) if isinstance(node, ast.Call)) if way else ()
        for node in calls:
            called = uses.called(node)
            if called.endswith("Tensor") and _OF_SIZE.match(ast.unparse(node)):
                return "filled", ast.unparse(node), node.lineno
            if called in _TURNED and (node.lineno < frame.line or frame is not stack[-1]):
                return "turned", ast.unparse(node), node.lineno
    return None


_OF_SIZE = re.compile(r"torch\.(Float|Double|Half|Long|Int|Byte|Bool)?Tensor\([^,]*\.(size\(\)|shape)\)$")
_TURNED = ("transpose_", "t_", "squeeze_", "unsqueeze_", "swapaxes_", "swapdims_", "as_strided_")


_UNSET = re.compile(r"self\.(\w+) is None$")


def unset(sources: Sources, stack: Sequence[Frame]) -> tuple[str, str]:
    """What a library's lines on the way ask to be None or of their configuration, and what sets that.

    ``("self.begin_index is None", "set_begin_index")`` of a call that stands under that test: its method that
    sets what is None; else empty.
    """
    asked: list[str] = []
    setter = ""
    for frame in stack[:-1]:
        if frame.owner != "library":
            asked, setter = [], ""
            continue
        around = sources.around_line(frame.file, frame.line)
        for parent, child in pairwise(around):
            if not isinstance(parent, ast.If) or child not in parent.body:
                continue
            text = ast.unparse(parent.test)
            if (found := _UNSET.match(text)) is not None:
                asked.append(found[0])
                setter = _setter(around, found[1]) or setter
            elif "self.config." in text and _is_setting(parent.test) and len(text) <= _LONG:
                asked.append(_unparse(parent.test))
    return " and ".join(dict.fromkeys(asked[-_MOST:])), setter


def _setter(around: Sequence[ast.AST], name: str) -> str:
    """The public method of the class around that gives an attribute what it is called with; else empty."""
    owner = next((node for node in reversed(around) if isinstance(node, ast.ClassDef)), None)
    for method in owner.body if owner is not None else ():
        if not isinstance(method, ast.FunctionDef) or method.name.startswith("_"):
            continue
        for node in ast.walk(method):
            match node:
                case ast.Assign([ast.Attribute(ast.Name("self"), attribute)], ast.Name(given)):
                    if attribute.lstrip("_") == name.lstrip("_") and given in uses.parameters(method):
                        return method.name
    return ""


def switch(sources: Sources, file: str, position: Position | None, asked: str | None) -> str:
    """The public method of a module's file that sets False what a line is reached under; else empty.

    ``freeze_feature_encoder`` of ``self._requires_grad and self.training``, where that calls the method of
    the object which does.
    """
    around = sources.around(file, position) if position is not None else []
    owner = next((node for node in reversed(around) if isinstance(node, ast.ClassDef)), None)
    names = re.findall(r"(?<!not )\bself\.(\w+)", asked or "")
    for method in owner.body if owner is not None else ():
        if not isinstance(method, ast.FunctionDef) or method.name == "__init__" or not names:
            continue
        sets = (node for node in ast.walk(method) if isinstance(node, ast.Assign))
        if any(ast.unparse(one) in [f"self.{name} = False" for name in names] for one in sets):
            return method.name if not method.name.startswith("_") else _called_by(method.name, around[0])
    return ""


def _called_by(name: str, tree: ast.AST) -> str:
    """The one public method in a file that calls a method by its name; else empty."""
    callers = {
        function.name
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef) and not function.name.startswith("_")
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and uses.called(node) == name
    }
    return callers.pop() if len(callers) == 1 else ""


def option(sources: Sources, file: str, line: int) -> str:
    """The argument that is None where a line is reached: what is given there is taken in its place."""
    around = sources.around_line(file, line)
    function = uses.function(around)
    for parent, child in reversed([*pairwise(around)]):
        match parent:
            case ast.If(ast.Compare(ast.Name(name), [sign], [ast.Constant(None)])):
                side = parent.body if isinstance(sign, ast.Is) else parent.orelse
                if child in side and function is not None and name in uses.parameters(function):
                    return name
    return ""


def only_in_eager(sources: Sources, stack: Sequence[Frame]) -> tuple[Frame, int, str, str] | None:
    """Where a function on the way to a line gives a value to a name only where nothing is being compiled.

    ``if mask is None and not torch.compiler.is_compiling(): mask = torch.ones(…)``.

    Returns:
        The frame, the line, the condition and the name, of the innermost one; None where there is none.
    """
    for frame in reversed(stack[:-1]):
        function = uses.function(sources.around_line(frame.file, frame.line))
        for node in ast.walk(function) if function is not None else ():
            if not isinstance(node, ast.If) or node.lineno > frame.line:
                continue
            condition = ast.unparse(node.test)
            names = [
                name for line in node.body if isinstance(line, ast.Assign) for name in uses.targets(line)
            ]
            asked = next((name for name in names if f"{name} is None" in condition), None)
            if _NOT_COMPILING.search(condition) and asked is not None:
                return frame, node.lineno, condition, asked
    return None


_NOT_COMPILING = re.compile(r"\bnot [\w.]*is_(torchdynamo_|dynamo_)?compiling\(\)")


def gives_itself(sources: Sources, stack: Sequence[Frame], asked: str | None) -> bool:
    """Whether a library's own call gives a function what ``x is not None`` in it asks for.

    ``self.mask(m, shape, device)`` where ``device = x.device``: no caller of the library decides that. What
    the calling function has as an argument itself its caller does.

    Args:
        stack: how one got to the condition, whose function the last frame is in; asked: the condition.
    """
    found = re.fullmatch(r"(\w+) is not None", asked or "")
    if found is None or len(stack) < 2 or stack[-2].owner != "library":
        return False
    way, at = (sources.around_line(frame.file, frame.line) for frame in stack[-2:])
    for call in _calls(at, way):
        match begins.handed(found[1], at, [call]):
            case ast.Name(name):
                made = values_of(name, way)
                return bool(made) and all(map(_is_of_tensor, made))
    return False


def _calls(inside: Sequence[ast.AST], way: Sequence[ast.AST]) -> list[ast.Call]:
    """The calls in a statement that call the function around a place."""
    function = uses.function(inside)
    nodes = ast.walk(uses.statement(way) or ast.Pass())
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    return [call for call in calls if function is not None and uses.called(call) == function.name]


def tested_after(sources: Sources, file: str, position: Position | None) -> tuple[str, int] | None:
    """A test further on of a number that a branch sets, and its line: that is one of a tensor then."""
    around = sources.around(file, position) if position is not None else []
    function, statement = uses.function(around), uses.statement(around)
    if function is None or statement is None:
        return None
    set_here = [node for node in ast.walk(statement) if isinstance(node, ast.Assign)]
    numbers = {
        name
        for node in set_here
        if not any(isinstance(part, ast.Call) or is_tensor(part, around) for part in _sides_of(node.value))
        for name in uses.targets(node)
        if name.isidentifier()
    }
    last = statement.end_lineno or statement.lineno
    again = {  # what gets another value after that
        name
        for node in ast.walk(function)
        if isinstance(node, ast.Assign | ast.AugAssign) and node.lineno > last
        for name in uses.targets(node)
    }
    way = around[: around.index(function) + 1]
    tests = [
        getattr(end.taker, "test", end.taker)
        for name in sorted(numbers - again)
        for end in ends_of(way, name)
        if end.kind in ("test", "step") and not end.file
    ]
    asked = [test for test in tests if isinstance(test, ast.expr) and test.lineno > last]
    first = min(asked, key=lambda test: test.lineno, default=None)
    return None if first is None else (ast.unparse(first), first.lineno)


def _sides_of(value: ast.expr) -> list[ast.expr]:
    return [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]


def precomputed(sources: Sources, file: str, position: Position | None) -> tuple[str, ...]:
    """What a function takes out of the options it is handed, and returns in place of computing it.

    ``if (ids := kwargs.pop("ids", None)) is not None: return ids``, of which a caller may make use.
    """
    function = uses.function(sources.around(file, position)) if position is not None else None
    if function is None or position is None:
        return ()
    before = [node for node in ast.walk(function) if getattr(node, "lineno", position[0]) < position[0]]
    found: dict[str, str] = {}
    for node in before:
        match node:
            case ast.NamedExpr(ast.Name(name), value) | ast.Assign([ast.Name(name)], value):
                if taken := _taken_option(value):
                    found[name] = taken
    returned = [
        [one.id for one in ast.walk(node.value) if isinstance(one, ast.Name)]
        for node in before
        if isinstance(node, ast.Return) and node.value is not None
    ]
    return next(
        (tuple(found[name] for name in names) for names in returned if names and set(names) <= set(found)), ()
    )


def _taken_option(value: ast.expr) -> str:
    """``ids`` of ``kwargs.pop("ids", None)``; empty of anything else."""
    match value:
        case ast.Call(ast.Attribute(ast.Name(), "pop" | "get"), [ast.Constant(str(name)), *_]):
            return name
    return ""


def passed_number(sources: Sources, file: str, position: Position | None, stack: Sequence[Frame]) -> str:
    """What the project's call passes of which alone a library's test is calculated: ``t``; else empty.

    A number of Python's in its place is tested while Dynamo traces, where the library takes one.
    """
    around = sources.around(file, position) if position is not None else []
    tests: list[ast.expr] = [node for node in around if isinstance(node, ast.Compare)]
    for caller in reversed(stack[:-1]):
        inside = uses.function(around)
        named = {of for test in tests[-1:] for of in _calculated_of(test, around, _DEEP)}
        if inside is None or len(named) != 1 or (name := next(iter(named))) not in uses.parameters(inside):
            return ""
        if re.search(rf"isinstance\({name}\b", ast.unparse(inside)):
            return ""  # it takes numbers in another way, or not at all
        calls = _calls(around, sources.around_line(caller.file, caller.line))
        given = begins.handed(name, around, calls[:1])
        if caller.owner == "project":
            return given.id if isinstance(given, ast.Name) else ""
        around, tests = sources.around_line(caller.file, caller.line), [given] if given is not None else []
    return ""


_DEEP = 4


def _calculated_of(value: ast.AST, around: Sequence[ast.AST], depth: int) -> set[str]:
    """The names of which something is calculated with plain arithmetic; others stand for what is no such."""
    match value:
        case ast.Constant() | ast.Attribute(ast.Name("self")):
            return set()
        case ast.Attribute(ast.Attribute(ast.Name("self"), "config" | "_config")):
            return set()
        case ast.Name(name):
            values = values_of(name, around) if depth else []
            return {of for one in values for of in _calculated_of(one, around, depth - 1)} or {name}
        case ast.Compare(left, [_], [right]) | ast.BinOp(left, _, right):
            return _calculated_of(left, around, depth) | _calculated_of(right, around, depth)
    return {ast.unparse(value)}


def _is_of_tensor(value: ast.expr) -> bool:
    """``x.device``, which is never None."""
    match value:
        case ast.IfExp(_, one, other):
            return _is_of_tensor(one) and _is_of_tensor(other)
    return isinstance(value, ast.Attribute) and value.attr in ("device", "dtype", "shape")


def _unparse(test: ast.expr) -> str:
    text = ast.unparse(test)
    return f"({text})" if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) else text


def _is_setting(test: ast.expr) -> bool:
    """Whether a test asks for attributes, arguments and constants, and calls nothing that computes."""
    calls = [node for node in ast.walk(test) if isinstance(node, ast.Call)]
    return all(isinstance(call.func, ast.Name) and call.func.id in _PLAIN_CALLS for call in calls)


def condition(sources: Sources, file: str, position: Position | None) -> str | None:
    """The smallest comparison or test that holds a site: ``labels.max() >= n``."""
    if position is None:
        return None
    around = sources.around(file, position)
    if around and isinstance(around[-1], ast.IfExp):
        around = [*around, around[-1].test]
    if any(isinstance(node, ast.Assert) for node in around):
        return None  # what must hold, not what raises
    if not any(map(_decides, around, around[1:])):
        return None
    test: ast.AST | None = next((node for node in reversed(around) if isinstance(node, ast.Compare)), None)
    whole = next((node for node in around if isinstance(node, ast.BoolOp)), None)
    if test is not None and whole is not None and not any(map(_asks_identity, whole.values)):
        # What asks for no tensor is Python's own, and decided while tracing.
        asks = [one for one in whole.values if one in around or _asks_tensor(one, around)]
        test = ast.BoolOp(whole.op, asks) if len(asks) > 1 else asks[0] if asks else test
    if test is None:
        for parent, child in pairwise(around):
            if isinstance(parent, ast.If | ast.IfExp | ast.Assert | ast.While) and child is parent.test:
                test = child
        if isinstance(test, ast.BoolOp):
            test = next((value for value in test.values if value in around), test)
        if isinstance(test, ast.BoolOp):
            asks = [value for value in test.values if is_tensor(value, around)]
            test = asks[0] if len(asks) == 1 else test
    if isinstance(test, ast.Name):
        test = _counted(test, around)
    text = _of_tensors(test, around) if isinstance(test, ast.expr) else None
    return text if text is not None and len(text) <= _LONG else None


def _decides(parent: ast.AST, child: ast.AST) -> bool:
    """Whether a part is what is asked: by a branch, a loop, a comprehension, or an ``and`` or ``or``."""
    if isinstance(parent, ast.comprehension):
        return child in parent.ifs
    return isinstance(parent, ast.BoolOp) or getattr(parent, "test", None) is child


def _asks_identity(test: ast.AST) -> bool:
    """Whether it is ``m is None``, which asks for no tensor's value."""
    return isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Is | ast.IsNot)


def _counted(test: ast.Name, around: Sequence[ast.AST]) -> ast.expr:
    """What a name was given, where that counts with % or //: whole numbers are no matter of tensors."""
    function = uses.function(around)
    values = [
        value
        for node in (ast.walk(function) if function is not None else ())
        if isinstance(node, ast.Assign) and (value := uses.given(node, test.id)) is not None
    ]
    counts = [
        node
        for node in (ast.walk(values[0]) if len(values) == 1 else ())
        if isinstance(node, ast.Compare) and re.search(r"%|//", ast.unparse(node))
    ]
    return counts[0] if counts else test


def _asks_tensor(test: ast.expr, around: Sequence[ast.AST]) -> bool:
    """Whether a comparison asks for a tensor's values."""
    sides = [test.left, *test.comparators] if isinstance(test, ast.Compare) else []
    return any(is_tensor(side, around) for side in sides)


def _of_tensors(test: ast.expr, around: Sequence[ast.AST]) -> str | None:
    """A test as tensors write it: ``isnan(x) | isinf(x)``; None where not all of it asks for values."""
    if isinstance(test, ast.BoolOp):
        if any(map(_asks_identity, test.values)):
            return None
        parts = [_of_tensors(one, around) or "" for one in test.values]
        sign = " & " if isinstance(test.op, ast.And) else " | "
        return (
            sign.join(grouped(ast.parse(one, mode="eval").body, one) for one in parts) if all(parts) else None
        )
    match test:
        case ast.Compare(left, [ast.In()], [among]) if is_tensor(among, around):
            return f"({ast.unparse(among)} == {ast.unparse(left)}).any()"
    text = checks.of_tensors(test) or ast.unparse(test)
    return text if checks.gives_bool(test, around) else f"{grouped(test, text)} != 0"


def asked_later(sources: Sources, file: str, position: Position | None) -> str:
    """What a test asks of Python's own behind the tensor that breaks in it: ``DEBUG``; else empty."""
    return _asked_later([] if position is None else sources.around(file, position))


def _asked_later(around: Sequence[ast.AST]) -> str:
    tests = [*pairwise(around), *((node, None) for node in around[-1:])]
    for parent, child in tests:
        if not isinstance(parent, ast.BoolOp) or not isinstance(parent.op, ast.And):
            continue
        asks = child or next((one for one in parent.values if _holds_tensor(one, around)), None)
        at = next((at for at, one in enumerate(parent.values) if one is asks), len(parent.values))
        for later in parent.values[at + 1 :]:
            flag = later.operand if isinstance(later, ast.UnaryOp) else later
            if isinstance(flag, ast.Name | ast.Attribute) and not is_tensor(flag, around):
                return ast.unparse(later)
    return ""


def _holds_tensor(test: ast.expr, around: Sequence[ast.AST]) -> bool:
    return any(isinstance(part, ast.expr) and is_tensor(part, around) for part in ast.walk(test))


def filled_at_first(sources: Sources, file: str, position: Position | None) -> str:
    """The test around a site that holds only until its object is filled: ``key not in self.params``."""
    around = [] if position is None else sources.around(file, position)
    owner = next((node for node in reversed(around) if isinstance(node, ast.ClassDef)), None)
    for branch, after in pairwise(around):
        if not isinstance(branch, ast.If) or after not in branch.body:
            continue
        match branch.test:
            case ast.Compare(_, [ast.NotIn()], [ast.Attribute(ast.Name("self")) as held]):
                pass
            case ast.Compare(ast.Attribute(ast.Name("self")) as held, [ast.Is()], [ast.Constant(None)]):
                if any(_empties(method, ast.unparse(held)) for method in getattr(owner, "body", ())):
                    continue
            case _:
                continue
        name = ast.unparse(held)
        stores = (part for line in branch.body for part in ast.walk(line) if isinstance(part, ast.Assign))
        targets = (target for one in stores for target in one.targets)
        if any(
            ast.unparse(target.value if isinstance(target, ast.Subscript) else target) == name
            for target in targets
        ):
            return ast.unparse(branch.test)
    return ""


def _empties(method: ast.stmt, name: str) -> bool:
    """Whether a method but ``__init__`` gives an attribute None again."""
    return getattr(method, "name", "__init__") != "__init__" and any(
        isinstance(node, ast.Assign) and name in uses.targets(node) and uses.is_none(node.value)
        for node in ast.walk(method)
    )


def raises(sources: Sources, file: str, position: Position | None) -> bool:
    """Whether a site is a ``raise``."""
    around = [] if position is None else sources.around(file, position)
    return any(isinstance(node, ast.Raise) for node in around)


def asserted(sources: Sources, file: str, position: Position | None) -> str:
    """What an assert can ask for in the place of the check at a site; empty where its text does not tell."""
    return checks.asserted([] if position is None else sources.around(file, position))


def rewritten(sources: Sources, file: str, position: Position | None, use: Use) -> str:
    """What a site's statement can be written as without a break; empty where its text does not tell."""
    around = [] if position is None else sources.around(file, position)
    if not around:
        return ""
    match use.shape:
        case "stored":
            return restated.store(around)
        case "branch":
            return restated.branch(around)
        case "slice":
            return restated.piece(around, use.name)
    return restated.tally(around)


def sides(sources: Sources, file: str, position: Position | None) -> str:
    """The sides of a choice, ``a, b`` of ``a if x > 0 else b``; dots for other branches."""
    around = [] if position is None else sources.around(file, position)
    for node in reversed(around):
        if isinstance(node, ast.IfExp) and (node.test in around or node is around[-1]):
            text = f"{ast.unparse(node.body)}, {ast.unparse(node.orelse)}".replace(".item()", "")
            return "…, …" if len(text) > _LONG or uses.READS.search(text.replace("float('", "")) else text
    return "…, …"


def turns(sources: Sources, file: str, position: Position | None) -> str:
    """The innermost loop or comprehension around a site: ``for b in range(n)``; empty where there is none."""
    around = [] if position is None else sources.around(file, position)
    inside = [*takewhile(lambda one: not isinstance(one, ast.FunctionDef), reversed(around))]
    for node in inside:
        if isinstance(node, ast.While):
            return f"while {ast.unparse(node.test)}"
        if isinstance(node, ast.For):
            break
    for node in reversed(inside):
        generators = getattr(node, "generators", [])
        loop = node if isinstance(node, ast.For) else next(iter(generators), None)
        if loop is not None:
            return f"for {ast.unparse(loop.target)} in {ast.unparse(loop.iter)}"
    return ""


_UNSAFE = re.compile(r"(log(2|10)?|sqrt|rsqrt|reciprocal|acos|asin|arccos|arcsin)$")
_BOUNDED = re.compile(r"clamp|clip\(|\beps|exp\(|sigmoid|softmax|\+ ?1(e-|\b)")  # what is kept from 0 already


def unsafe(sources: Sources, file: str, position: Position | None) -> str:
    """The first operation of a branch, or of what its return leaves out, that may give nan: ``v / n``."""
    around = [] if position is None else sources.around(file, position)
    branch = next((node for node in reversed(around) if isinstance(node, ast.If | ast.IfExp)), None)
    sides: list[ast.AST] = []
    if any(map(_is_without_gradients, around)):
        return ""
    if isinstance(branch, ast.IfExp):
        sides = [branch.body, branch.orelse]
    elif isinstance(branch, ast.If):
        sides = [*branch.body, *branch.orelse]
        function = uses.function(around)
        if isinstance(branch.body[-1], ast.Return) and function is not None and branch in function.body:
            sides += function.body[function.body.index(branch) + 1 :]
    for node in (part for side in sides for part in ast.walk(side)):
        match node:
            case ast.BinOp(of, ast.Div(), asked) if is_tensor(asked, around):
                if _is_count(of, around):
                    continue  # which have no gradient
            case ast.Call(func, args) if _UNSAFE.match(uses.called(node)):
                is_function = re.match(r"(torch|np|numpy)\.", ast.unparse(func))
                asked = args[0] if is_function and args else getattr(func, "value", func)
                if not is_tensor(asked, around):
                    continue  # a number of Python's
            case _:
                continue
        if not _BOUNDED.search(ast.unparse(asked)):
            return ast.unparse(node)[:_LONG]
    return ""


def _is_without_gradients(node: ast.AST) -> bool:
    """Whether it is ``with torch.no_grad():``, or a function that has that as its decorator."""
    asked = [one.context_expr for one in node.items] if isinstance(node, ast.With) else []
    asked += node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return any(re.search(r"\b(no_grad|inference_mode)\b", ast.unparse(one)) for one in asked)


def _is_count(node: ast.expr, around: Sequence[ast.AST]) -> bool:
    """Whether it is how many a mask selects: ``(a & b).sum()``."""
    match node:
        case ast.Name(name):
            values = values_of(name, around)
            return bool(values) and all(_is_count(value, around) for value in values)
        case ast.Call() if uses.called(node) == "bincount":
            return True
        case ast.Call(ast.Attribute(ast.BinOp(op=ast.BitAnd() | ast.BitOr()), "sum"), []):
            return True
        case ast.Call(ast.Attribute(of, "sum"), []):
            return checks.gives_bool(of, around)
        case ast.Call(ast.Attribute(of, "float" | "long" | "item"), []) | ast.Call(ast.Name("float"), [of]):
            return _is_count(of, around)
        case ast.BinOp(left, ast.Add() | ast.Sub(), right):
            return _is_count(left, around) and _is_count(right, around)
    return False


def works_on_arrays(sources: Sources, file: str, position: Position | None) -> bool:
    """Whether a site's statement works on arrays that its function or object made with numpy."""
    around = [] if position is None else sources.around(file, position)
    found = uses.statement(around)
    parts = () if found is None else ast.walk(head_of(found))
    return any(is_array(part, around) for part in parts if isinstance(part, ast.Name | ast.Attribute))


def is_of_array(sources: Sources, file: str, position: Position | None) -> bool:
    """Whether what breaks is a method of an array: ``(labels == 1).nonzero()``."""
    around = [] if position is None else sources.around(file, position)
    call = around[-1] if around else None
    return (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and is_array(call.func.value, around)
    )


def message(sources: Sources, file: str, position: Position | None) -> str | None:
    """The first words of the text that a logging or warnings call writes; ``…`` for what is put in."""
    around = [] if position is None else sources.around(file, position)
    call = next((node for node in reversed(around) if isinstance(node, ast.Call) and node.args), None)
    for node in ast.walk(call.args[0]) if call is not None else ():
        text = _text(node)
        if text.strip(" …"):
            return " ".join(text.split())[:_LONG]
    return None


def _text(node: ast.AST) -> str:
    """A string as it is written; empty for anything else."""
    match node:
        case ast.Constant(str(text)):
            return text
        case ast.JoinedStr(parts):
            return "".join(_text(part) or "…" for part in parts)
    return ""


def names(sources: Sources, file: str, position: Position | None, words: tuple[str, ...]) -> str | None:
    """What a site's statement asks for, or what that was made of, whose name holds one of some words."""
    around = [] if position is None else sources.around(file, position)
    statement = uses.statement(around)
    if statement is None:
        return None
    head = head_of(statement)
    asked = {node.id for node in ast.walk(head) if isinstance(node, ast.Name)}
    function = uses.function(around)
    made = [
        node.value
        for node in (ast.walk(function) if function is not None else ())
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id in asked
    ]
    for node in (part for whole in (head, *made) for part in ast.walk(whole)):
        name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
        if isinstance(node, ast.Attribute | ast.Name) and any(word in name for word in words):
            return _configured(around, node) or ast.unparse(node)
    return None


def _configured(around: list[ast.AST], node: ast.Attribute | ast.Name) -> str | None:
    """``config.encoder_layerdrop`` for an attribute that the class takes from there."""
    owner = next((one for one in reversed(around) if isinstance(one, ast.ClassDef)), None)
    for one in ast.walk(owner) if owner is not None else ():
        if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == ast.unparse(node):
            value = ast.unparse(one.value)
            return value if value.startswith(("config.", "self.config.")) else None
    return None


def expression(sources: Sources, file: str, position: Position | None) -> str:
    """The source of the innermost expression that holds a site; empty where there is none."""
    around = [] if position is None else sources.around(file, position)
    return ast.unparse(around[-1]) if around and isinstance(around[-1], ast.expr) else ""


def statement(sources: Sources, file: str, position: Position | None) -> str:
    """The source of the statement that holds a site, without its body."""
    around = [] if position is None else sources.around(file, position)
    found = uses.statement(around)
    return "" if found is None else ast.unparse(head_of(found))


def called_in_loop(sources: Sources, file: str, position: Position | None) -> tuple[str, ...]:
    """What computes in the outermost loop around a site: arguments, parts of self, functions of the file.

    Empty where that is more than a few names: the turn as a whole is the part then.
    """
    around = [] if position is None else sources.around(file, position)
    function = uses.function(around)
    if function is None:
        return ()
    inside = around[around.index(function) :]
    loop = next((node for node in inside if isinstance(node, ast.For | ast.While)), None)
    given = {arg.arg for arg in (*function.args.args, *function.args.kwonlyargs)} - {"self", "cls"}
    given |= {node.name for node in getattr(around[0], "body", ()) if isinstance(node, ast.FunctionDef)}
    parts = [part for line in (loop.body if loop is not None else ()) for part in ast.walk(line)]
    told = [part.value for part in parts if isinstance(part, ast.Expr)]  # of which nothing is kept
    names = []
    for node in parts:
        if not isinstance(node, ast.Call) or node in told:
            continue
        match node.func:
            case ast.Name(name) if name in given:
                names.append(name)
            case ast.Attribute(ast.Name("self"), name) if _may_compute(name, around):
                names.append(f"self.{name}")
    found = tuple(dict.fromkeys(names))
    return found if len(found) <= _MOST else ()


def breaks_in_loop(
    sources: Sources, file: str, position: Position | None, stack: Sequence[Frame] = ()
) -> tuple[int, ...]:
    """Lines of the outermost loop around a site whose text says that they break as it does, but its own.

    Args:
        stack: the compiled way to it; where no loop is around that, the one around a call in its file is
            meant.
    """
    around = [] if position is None else sources.around(file, position)
    if not own_loops(around):
        calls = (sources.around_line(one.file, one.line) for one in reversed(stack[:-1]) if one.file == file)
        around = next(filter(own_loops, calls), [])
    loops, statement = own_loops(around), uses.statement(around)
    if not loops or statement is None:
        return ()
    whole = ast.walk(head_of(statement))
    own = {line for node in whole if isinstance(node, ast.expr) for line in (node.lineno, node.end_lineno)}
    parts = (node for line in loops[0].body for node in _parts(line))
    lines = {node.lineno for node in parts if _breaks(node, around)}
    if isinstance(statement, ast.If) and _asked_later(around):  # which may keep all of it from running
        own |= {
            node.lineno for line in statement.body for node in ast.walk(line) if isinstance(node, ast.expr)
        }
    return tuple(sorted(lines - own))


def breaks_behind(sources: Sources, file: str, position: Position | None) -> tuple[int, ...]:
    """Lines of a site's function below it, in no loop, whose text says that they break as well.

    Dynamo did not come to them where the whole frame is skipped. What is under a branch may not run.
    """
    around = [] if position is None else sources.around(file, position)
    function = uses.function(around)
    if function is None or position is None or own_loops(around):
        return ()
    _, _, last, _ = position
    lines = {node.lineno for node in _parts(function, around) if _breaks(node, around)}
    return tuple(sorted(line for line in lines if line > last))


def _parts(node: ast.AST, around: Sequence[ast.AST] | None = None) -> Iterator[ast.AST]:
    """What runs where a statement does: not what is inside of a function that it makes.

    Args:
        around: the nodes around a place; the sides of a branch that is not among them are left out then.
    """
    yield node
    is_other = isinstance(node, ast.If | ast.IfExp | ast.Try) and around is not None and node not in around
    for child in ast.iter_child_nodes(node):
        is_side = is_other and child is not getattr(node, "test", None)
        if not (is_side or isinstance(child, ast.FunctionDef | ast.Lambda | ast.ClassDef)):
            yield from _parts(child, around)


def _breaks(node: ast.AST, around: Sequence[ast.AST]) -> TypeGuard[ast.expr | ast.stmt]:
    """Whether no graph holds it, whatever it is about: a read, a print, a selection, a test of a tensor."""
    match node:
        case ast.Call(ast.Name("print")):
            return True
        case ast.Call() if uses.RANDOM.match(ast.unparse(node.func) + "("):
            return True
        case ast.Call(ast.Attribute(attr="item" | "tolist" | "numpy" | "nonzero" | "backward"), []):
            return True
        case ast.Call(ast.Attribute(ast.Attribute(attr="autograd"), "grad") | ast.Name("deepcopy")):
            return True
        case ast.Call(ast.Attribute(of, "step" | "zero_grad"), []):
            return re.search(r"opt(im)?", ast.unparse(of), re.IGNORECASE) is not None
        case ast.Call(ast.Name("int" | "float" | "bool"), [ast.Call(ast.Attribute(attr=attr), [])]):
            return attr in _OF_TENSORS
        case ast.If(test=ast.Call(ast.Attribute(attr="any" | "all"), [])):
            return True
        case ast.Compare() if _is_drawn(node, around):
            return True
        case ast.If(test=ast.Compare() as test):
            return is_tensor(test, around)
        case ast.Subscript(of, ast.Name() as chosen, ast.Load()):
            return is_mask_made(chosen, around) and is_tensor(of, around)
        case ast.ListComp(ast.Subscript(slice=ast.Name(chosen)), [ast.comprehension(target, over)]):
            return chosen in loops.names(target) and _goes_over_tensors(over, around)
    return False


def _is_drawn(test: ast.Compare, around: Sequence[ast.AST]) -> bool:
    """Whether a test asks for a number that Python or numpy draws: ``random.random() < rate``."""
    names = [part.id for part in (test.left, *test.comparators) if isinstance(part, ast.Name)]
    values = [test, *(value for name in names for value in values_of(name, around))]
    return any(uses.RANDOM.search(ast.unparse(value)) for value in values)


def _goes_over_tensors(over: ast.expr, around: Sequence[ast.AST]) -> bool:
    """Whether a loop goes over the elements of tensors: ``zip(y[t + 1], y[t])``."""
    match over:
        case ast.Call(ast.Name("zip"), parts):
            return bool(parts) and all(is_tensor(part, around) for part in parts)
    return is_tensor(over, around)


_OF_TENSORS = ("sum", "max", "min", "mean", "any", "all", "argmax", "argmin", "norm")


def _may_compute(name: str, around: Sequence[ast.AST]) -> bool:
    """Whether what an object calls may compute with tensors: a module, or a method that calls torch."""
    owner = next((node for node in reversed(around) if isinstance(node, ast.ClassDef)), ast.Pass())
    method = next(
        (one for one in ast.walk(owner) if isinstance(one, ast.FunctionDef) and one.name == name), None
    )
    return (
        method is None
        or re.search(r"\b(torch|F|self)\.\w+(\.\w+)*\(| [*/@+] ", ast.unparse(method)) is not None
    )


def seen(sources: Sources, file: str, position: Position | None, use: Use) -> Seen:
    """What was observed of the names at a site, and what its function is for."""
    around = [] if position is None else sources.around(file, position)
    if not around:
        return Seen()
    held = _written(around) if use.shape == "stored" else use.of
    mask, of = (_rank(text, around) for text in (use.mask, held))
    return Seen(
        fewer=None if mask is None or of is None else max(of - mask, 0),
        is_flat=mask == 1,
        numpy=kinds.numpy_in(around[-1], around),
        read=_read_by_numpy(around[-1], around),
        listed=_listed(around),
        kept=kinds.single_kept(around[-1], around),
        picked=_picked(around, use),
        is_hook=_is_hook(around),
        caught=_caught(around),
        side=_selected_in_side(around),
        left_out=_left_out(around),
        packed=_is_packed(around),
        is_computed=_is_computed(around),
        arrayed=_arrayed(around),
        product=_product(around),
        loop_breaks=_has_loop_that_breaks(around),
    )


def _listed(around: Sequence[ast.AST]) -> str:
    """The tensor of an object, set in its ``__init__`` alone, of which an element is read: ``self.kinds``."""
    owner = next((node for node in reversed(around) if isinstance(node, ast.ClassDef)), None)
    read = around[-1]
    if isinstance(read, ast.Call) and isinstance(read.func, ast.Attribute) and read.func.attr == "item":
        read = read.func.value
    match read:
        case ast.Name(turn):
            held = next((over for loop in own_loops(around) if (over := _turns_of(loop, turn))), None)
        case ast.Subscript(ast.Attribute(ast.Name("self")) as held):
            pass
        case _:
            return ""
    if owner is None or held is None or not (name := ast.unparse(held)).startswith("self."):
        return ""
    setters = [method for method in owner.body if isinstance(method, ast.FunctionDef) and _sets(method, name)]
    # A parameter is trained, and a buffer may be loaded.
    is_plain = not re.search(rf"{re.escape(name)} = (\w+\.)*Parameter\(", ast.unparse(owner))
    return name if is_plain and [method.name for method in setters] == ["__init__"] else ""


def _turns_of(loop: ast.AST, turn: str) -> ast.expr | None:
    """What a loop goes over whose turn a name is: of ``for i, kind in enumerate(self.kinds)`` the kinds."""
    match loop:
        case ast.For(ast.Name(name), over) if name == turn and not isinstance(over, ast.Call):
            return over
        case ast.For(ast.Tuple([_, ast.Name(name)]), ast.Call(ast.Name("enumerate"), [over])) if name == turn:
            return over
    return None


def _sets(method: ast.FunctionDef, name: str) -> bool:
    """Whether a method gives an attribute a value, or a part of it."""
    for node in walk(method):
        match node:
            case ast.Assign(targets) if any(
                ast.unparse(getattr(one, "value", one) if isinstance(one, ast.Subscript) else one) == name
                for one in targets
            ):
                return True
            case ast.AugAssign(target) if ast.unparse(target).startswith(name):
                return True
            case ast.Call(ast.Attribute(of, method_name)) if (
                method_name.endswith("_") and ast.unparse(of) == name
            ):
                return True
    return False


_FAR = 6  # values that lead to a value


def _read_by_numpy(
    node: ast.AST, around: Sequence[ast.AST], depth: int = 0, asked: dict[int, int] | None = None
) -> int:
    """The line on which ``.numpy()`` reads what an expression is made of out of a tensor; else 0.

    Args:
        asked: how deep a value was asked before: a model's functions lead to one value in thousands of ways.
    """
    asked = {} if asked is None else asked
    if asked.get(id(node), _FAR) <= depth:
        return 0
    asked[id(node)] = depth
    for part in walk(node):
        match part:
            case ast.Call(ast.Attribute(attr="numpy"), []):
                return part.lineno
            case ast.Call() if (function := defined(part, around)) is not None:
                way = [*outside_of(function, around), function]
                values = [
                    (one.value, way) for one in walk(function) if isinstance(one, ast.Return) and one.value
                ]
            case ast.Name(name, ast.Load()):
                values = [(value, [*around]) for value in values_of(name, around)]
            case _:
                continue
        if line := next(filter(None, (_read_by_numpy(*value, depth + 1, asked) for value in values)), 0):
            return line
    return 0


def _has_loop_that_breaks(around: Sequence[ast.AST]) -> bool:
    """Whether the loop that runs over a site breaks the graph in its body, or makes a list of its turns."""
    for loop in around:
        if isinstance(loop, ast.For) and loop.iter in around:
            turn = ast.unparse(loop.target)
            return any(
                _breaks(node, around) or _lists(node, turn) for line in loop.body for node in _parts(line)
            )
    return False


def _lists(node: ast.AST, turn: str) -> bool:
    """Whether it puts the turn of a loop into a list."""
    match node:
        case ast.Call(ast.Attribute(attr="append"), [given]):
            return ast.unparse(given) == turn
    return False


def _arrayed(around: Sequence[ast.AST]) -> tuple[str, int] | None:
    """A name in a statement that ``np.array`` made of Python's numbers, which are all that is taken of it."""
    statement, function = uses.statement(around), uses.function(around)
    if statement is None or function is None:
        return None
    for name in dict.fromkeys(node.id for node in walk(head_of(statement)) if isinstance(node, ast.Name)):
        match values_of(name, around):
            case [ast.Call(func, [of]) as call] if ast.unparse(func) in _MAKES_ARRAY:
                parts = [use[-2] for use in uses.uses(function, name)]
                takes = all(isinstance(one, ast.Subscript) and one.value is not None for one in parts)
                known = isinstance(of, ast.Subscript | ast.Name | ast.Attribute | ast.Tuple | ast.List)
                if takes and known and not (is_tensor(of, around) or is_array(of, around)):
                    return name, call.lineno
    return None


def disabled_by(
    sources: Sources, file: str, position: Position | None, callers: Sequence[Frame]
) -> tuple[str, str, int] | None:
    """Where the project itself gives what is called ``torch.compiler.disable``: the target, file and line."""
    around = [] if position is None else sources.around(file, position)
    call = next((node for node in reversed(around) if isinstance(node, ast.Call)), None)
    name = "" if call is None else uses.called(call)
    for own in dict.fromkeys(frame.file for frame in callers if frame.owner == "project"):
        for number, line in enumerate(sources.lines(own), 1):
            for found in _DISABLES.finditer(line):
                if found["name"] == name:
                    return found["target"], own, number
    return None


_DISABLES = re.compile(
    r"(?:^|;)\s*(?P<target>[\w.]+?\.(?P<name>\w+)(?:\.forward)?) = (torch\.)?(compiler|_dynamo)\.disable\b"
)


def _product(around: Sequence[ast.AST]) -> str:
    """What a statement has numpy multiply, where it is a list or tuple of Python's: ``shape``; else empty."""
    statement = uses.statement(around)
    for node in walk(head_of(statement)) if statement is not None else ():
        match node:
            case ast.Call(func, [of]) if ast.unparse(func) in ("np.prod", "numpy.prod"):
                holder = (kinds.of(of, around) or "").split(" ")[0]
                if holder in ("list", "tuple", "Size") or is_list(of, around):
                    return ast.unparse(of)
    return ""


_MAKES_ARRAY = ("np.array", "np.asarray", "numpy.array", "numpy.asarray")


def _is_computed(around: Sequence[ast.AST]) -> bool:
    """Whether a side of a test is a tensor that the function computes: ``rand(()) < accept``."""
    test = next((node for node in reversed(around) if isinstance(node, ast.Compare)), None)
    branch = next((node for node in reversed(around) if isinstance(node, ast.If | ast.IfExp)), None)
    asked = test if test is not None else getattr(branch, "test", None)
    sides = [asked.left, *asked.comparators] if isinstance(asked, ast.Compare) else []
    known: set[str] = set()
    return any(_comes_of_tensors(side.id, around, known) for side in sides if isinstance(side, ast.Name))


def _comes_of_tensors(name: str, around: Sequence[ast.AST], asked: set[str]) -> bool:
    """Whether a function gives a name what it computes with tensors, or a number that it reads of one.

    Args:
        asked: names that were asked already, which ends circles; others are added.
    """
    if name in asked:
        return False
    asked.add(name)
    values = values_of(name, around)
    if any(is_tensor(value, around) or uses.READS.search(ast.unparse(value)) for value in values):
        return True
    of = (node.id for value in values for node in ast.walk(value) if isinstance(node, ast.Name))
    return any(_comes_of_tensors(one, around, asked) for one in of)


def _is_packed(around: Sequence[ast.AST]) -> bool:
    """Whether a statement's call is given what ``pack_padded_sequence`` or its kin made.

    Of ``self.rnn.flatten_parameters()`` it is the calls of ``self.rnn`` that are asked.
    """
    calls = [node for node in ast.walk(uses.statement(around) or ast.Pass()) if isinstance(node, ast.Call)]
    match calls:
        case [ast.Call(ast.Attribute(rnn, "flatten_parameters"))]:
            inside = ast.walk(uses.function(around) or ast.Pass())
            named = ast.unparse(rnn)
            calls = [one for one in inside if isinstance(one, ast.Call) and ast.unparse(one.func) == named]
    given = [arg for call in calls for arg in call.args]
    values = [
        value for arg in given if isinstance(arg, ast.Name) for value in (arg, *values_of(arg.id, around))
    ]
    return any(
        uses.called(value).startswith("pack_") for value in (*given, *values) if isinstance(value, ast.Call)
    )


def _selected_in_side(around: Sequence[ast.AST]) -> tuple[str, str, str, str] | None:
    """``x[m]``, ``x``, ``m`` and the side of a branch that selects by the mask that its test asks for."""
    branch = next((node for node in reversed(around) if isinstance(node, ast.If | ast.IfExp)), None)
    if branch is None or (branch.test not in around and branch is not around[-1]):
        return None
    asked = asked_mask(branch.test)
    sides = [branch.body, branch.orelse] if isinstance(branch, ast.IfExp) else [*branch.body, *branch.orelse]
    for side, node in ((one, part) for one in sides for part in ast.walk(one)):
        match node:
            case ast.Subscript(of, chosen, ast.Load()) if asked and ast.unparse(chosen) == asked[0]:
                return ast.unparse(node), ast.unparse(of), asked[0], ast.unparse(side)
    return None


def _left_out(around: Sequence[ast.AST]) -> tuple[str, str] | None:
    """``x`` and ``m`` of a branch that leaves rows out where not all are set, ``x = x[m]``."""
    branch = next((node for node in reversed(around) if isinstance(node, ast.If)), None)
    if branch is None or (branch.test not in around and branch is not around[-1]) or branch.orelse:
        return None
    asked = asked_mask(branch.test)
    if asked is None or not asked[1]:
        return None
    kept = asked[0].removeprefix("~") if asked[0].startswith("~") else f"~{asked[0]}"
    for side in branch.body:
        match side:
            case ast.Assign([target], value):
                names = {ast.unparse(one) for one in getattr(target, "elts", [target])}
                for part in getattr(value, "elts", [value]):
                    match part:
                        case ast.Subscript(ast.Name(of), chosen) if (
                            ast.unparse(chosen) == kept and of in names
                        ):
                            return of, kept
    return None


def _written(around: Sequence[ast.AST]) -> str:
    """``y`` of ``y[mask] = …``: what is selected there goes back there."""
    statement = uses.statement(around)
    match statement:
        case ast.Assign([ast.Subscript(of)]) | ast.AugAssign(ast.Subscript(of)):
            return ast.unparse(of)
    return ""


def _rank(text: str, around: Sequence[ast.AST]) -> int | None:
    try:
        return kinds.rank(ast.parse(text, mode="eval").body, around)
    except SyntaxError:
        return None


def _picked(around: Sequence[ast.AST], use: Use) -> tuple[str, Literal["tensor", "numbers", "python"]] | None:
    """What a number picks an element of, and of which kind that was."""
    text = ast.unparse(around[-1]) if isinstance(around[-1], ast.Subscript) else use.taker
    try:
        node: ast.AST = ast.parse(text, mode="eval").body
    except SyntaxError:
        return None
    if not isinstance(node, ast.Subscript):
        return None
    holder, _, items = (kinds.of(node.value, around) or "").partition(" ")
    name = ast.unparse(node.value)
    if holder == "tensor":
        return name, "tensor"
    if holder in ("list", "tuple") and items in ("of int", "of float"):
        return name, "numbers"
    is_python = holder in ("list", "tuple", "dict", "ModuleList", "ModuleDict", "defaultdict", "deque", "str")
    return (name, "python") if is_python else None


def _is_hook(around: Sequence[ast.AST]) -> bool:
    """Whether the function around a place is given to a module as a hook, by its name."""
    function = uses.function(around)
    if function is None:
        return False
    calls = (node for node in walk(around[0]) if isinstance(node, ast.Call))
    hooks = (call for call in calls if re.fullmatch(r"register_\w*hook", uses.called(call)))
    return any(re.search(rf"\b{function.name}$", ast.unparse(one)) for call in hooks for one in call.args)


def _caught(around: Sequence[ast.AST]) -> int:
    """The line of the handler in the same function that catches what a check raises; else 0."""
    inside = [*takewhile(lambda one: not isinstance(one, ast.FunctionDef), reversed(around))]
    raised = "AssertionError"
    for child, parent in pairwise(inside):
        if isinstance(child, ast.If) and child.body and isinstance(child.body[-1], ast.Raise):
            raised = ast.unparse(child.body[-1].exc or ast.Pass()).partition("(")[0]
        if isinstance(parent, ast.Try) and child in parent.body:
            for handler in parent.handlers:
                types = "" if handler.type is None else ast.unparse(handler.type)
                if not types or re.search(rf"\b({re.escape(raised)}|Exception|BaseException)\b", types):
                    return handler.lineno
    return 0
