"""The values that a guard is about: how to read them, and what the user calls them.

A guard names its value by a chain from a local or a global variable, such as
``self._modules['fc']._parameters['weight'].size()[0]``. :class:`Path` is that chain.
"""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass, replace
from typing import Literal

from breakscope.diagnose.guard_text import RESUMED
from breakscope.report.model import Guard

_STACK_SLOT = re.compile(r"___stack(\d+)$")
_ORDINALS = ("second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
# Dynamo wraps a library's module that is compiled itself: its ``inner(*args)`` calls ``fn(*args)``. One's own
# decorator may have these names too.
WRAPPER = "inner of torch"
# What words() calls a temporary.
_UNNAMED = re.compile(
    rf"\b(?:(?P<ordinal>{'|'.join(_ORDINALS)}|\d+th) )?value(?P<steps>[.\[].*?)? "
    r"(?P<place>from line|on the stack)(?: \d+)?"
)
_CLOSURE_HINT = re.compile(r'HINT: guard on "([^"]+)"')
_IMPORTED = re.compile(r"__import_(.+)$")

# Reading any of these costs nothing and changes nothing.
_METHODS = frozenset({"size", "stride", "storage_offset"})
# Calls by which Dynamo reads a value; what matters to the user is their first argument.
_TRANSPARENT = frozenset({"___from_numpy", "___as_tensor", "int", "float", "bool", "str", "complex", "bytes"})
_ATTRIBUTE_READS = frozenset({"getattr", "object.__getattribute__", "type.__getattribute__"})
_ITEM_READS = frozenset({"list.__getitem__", "tuple.__getitem__", "dict.__getitem__"})
# Roots of dotted names that are neither locals nor globals of the user's function.
_NOT_VARIABLES = frozenset({"torch", "utils_device", "inf", "nan", "device"})
# A path of forty modules is deeper than any model; walking is recursive.
_MAX_DEPTH = 120
_HOLDERS = frozenset({"_modules", "_parameters", "_buffers", "__dict__"})

Constant = str | bytes | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Step:
    """One link of a path: an attribute, an item, or a call of a method without arguments."""

    kind: Literal["attribute", "item", "call"]
    key: Constant

    def __str__(self) -> str:
        if self.kind == "item":
            return f"[{self.key!r}]"
        return f".{self.key!s}" + ("()" if self.kind == "call" else "")


@dataclass(frozen=True, slots=True)
class Path:
    """A chain of attributes and items from a variable. ``scope``: ``L`` for locals, ``G`` for globals."""

    scope: Literal["L", "G"]
    root: str
    steps: tuple[Step, ...] = ()

    def then(self, kind: Literal["attribute", "item", "call"], key: Constant) -> Path:
        """The path one link longer."""
        return replace(self, steps=(*self.steps, Step(kind, key)))

    @property
    def raw(self) -> str:
        """An expression that reads the value, given ``L`` (locals) and ``G`` (globals)."""
        return f"{self.scope}[{self.root!r}]" + "".join(map(str, self.steps))

    @property
    def from_stack(self) -> bool:
        """Whether the value entered a resumed function as a temporary, without a name."""
        return self.scope == "L" and _STACK_SLOT.match(self.root) is not None

    def geometry(self) -> tuple[Path, str, int | None] | None:
        """The tensor, what of it is read (``size``, ``stride``, ``storage_offset``), the dimension."""
        match self.steps:
            case (*base, Step("call", str(method)), Step("item", int(dimension))):
                return replace(self, steps=tuple(base)), method, dimension
            case (*base, Step("call", str(method))):
                return replace(self, steps=tuple(base)), method, None
        return None


def parse(text: str) -> ast.expr | None:
    """The syntax tree of a guard, or None where it is no expression, or one too deep to walk."""
    try:
        with warnings.catch_warnings():
            # A text that is not Python may look like doubtful Python.
            warnings.simplefilter("ignore")
            node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    level: list[ast.AST] = [node]
    for _ in range(_MAX_DEPTH):
        level = [child for parent in level for child in ast.iter_child_nodes(parent)]
        if not level:
            return node
    return None


def path_of(node: ast.expr | None) -> Path | None:
    """The path that an expression is, or None where it is something else."""
    match node:
        case ast.Subscript(ast.Name("L" | "G" as scope), ast.Constant(str(root))):
            return Path("L" if scope == "L" else "G", root)
        case ast.Name(name) if name not in _NOT_VARIABLES:
            return Path("L", name)
        case ast.Attribute(base, name):
            return _extend(path_of(base), "attribute", name)
        # What an object has of its class.
        case ast.Subscript(
            ast.Call(ast.Name("dict"), [ast.Attribute(ast.Call(ast.Name("type"), [base]), "__dict__")]),
            ast.Constant(str(name)),
        ):
            return _extend(path_of(base), "attribute", name)
        case ast.Subscript(base, index):
            return _extend(path_of(base), "item", key[0]) if (key := _constant(index)) else None
        case ast.Call():
            return _path_of_call(node)
    return None


def _extend(base: Path | None, kind: Literal["attribute", "item", "call"], key: Constant) -> Path | None:
    return base.then(kind, key) if base else None


def _path_of_call(node: ast.Call) -> Path | None:
    match ast.unparse(node.func), node.func, node.args:
        # The n-th value of a dict, which a dataclass of outputs also calls [n].
        case "dict.__getitem__", _, [
            base,
            ast.Subscript(ast.Call(ast.Name("list")), ast.Constant(int(number))),
        ]:
            return _extend(path_of(base), "item", number)
        case _, ast.Attribute(ast.Call() as read, "item"), [] if ast.unparse(read.func) == "___as_tensor":
            return path_of(read)
        case _, ast.Attribute(base, method), [] if method in _METHODS:
            return _extend(path_of(base), "call", method)
        case name, _, [argument] if name in _TRANSPARENT:
            return path_of(argument)
        case name, _, [base, ast.Constant(str(key))] if name in _ATTRIBUTE_READS and key.isidentifier():
            return _extend(path_of(base), "attribute", key)
        case name, _, [base, index] if name in _ITEM_READS and (item := _constant(index)):
            return _extend(path_of(base), "item", item[0])
    return None


def _constant(node: ast.expr) -> tuple[Constant] | None:
    """The constant in a tuple, so that None is told from "no constant"."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError):
        return None
    return (value,) if isinstance(value, str | bytes | int | float | None) else None


def paths_in(node: ast.expr) -> tuple[Path, ...]:
    """Every longest path in an expression, in order, each once."""
    if path := path_of(node):
        return (path,)
    parts = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
    match node:
        # The name of a function is no value; the object of a method is (x.keys()).
        case ast.Call(ast.Attribute(base, _), [], []):
            parts = [base]
        case ast.Call(_, arguments, keywords):
            parts = [*arguments, *(keyword.value for keyword in keywords)]
    return tuple(dict.fromkeys(path for part in parts for path in paths_in(part)))


ITERATED = "the comprehension's iterator"


def words(path: Path, function: str, comment: str | None = None) -> str:
    """What the user calls the value: ``self.fc.weight``, ``kwargs['n']``, ``second value from line 12``.

    The last is a temporary that the function held when it broke in line 12, told from others by number.

    Args:
        path: where the value is.
        function: bare name of the code object whose guard it is, or ``WRAPPER``.
        comment: the guard's comment, which names closure variables since torch 2.10.
    """
    if slot := _STACK_SLOT.match(path.root) if path.scope == "L" else None:
        resumed = RESUMED.match(function)
        place = f"from line {resumed['line']}" if resumed else "on the stack"
        return f"{_ordinal(int(slot[1]))}value{_steps(path.steps)} {place}"
    root, steps = path.root, path.steps
    if root == ".0":  # as Python calls it
        root = ITERATED
    if imported := _IMPORTED.match(root) if path.scope == "G" else None:
        root = imported[1].replace("_dot_", ".")
        if root == "__main__" and steps and isinstance(steps[0].key, str):  # the script's own names
            root, steps = steps[0].key, steps[1:]
    elif root.startswith("__builtins_dict__") and steps and isinstance(steps[0].key, str):
        root, steps = steps[0].key, steps[1:]
    elif root == "fn" and function == WRAPPER:
        root = "self"
        if steps[:1] == (Step("attribute", "__self__"),):  # a bound method: what it is bound to
            steps = steps[1:]
    cell = Step("attribute", "cell_contents")
    if (hint := _CLOSURE_HINT.search(comment or "")) and cell in steps:
        return hint[1] + _steps(steps[steps.index(cell) + 1 :])
    return root + _steps(steps)


def _ordinal(slot: int) -> str:
    if slot == 0:
        return ""
    return f"{_ORDINALS[slot - 1] if slot <= len(_ORDINALS) else f'{slot + 1}th'} "


def of_strides(guard: Guard) -> bool:
    """Whether a guard asks for strides as a formula of sizes: ``stride(0) == 4*size(1)``."""
    return "stride(" in (guard.expected or "")


def of_parameter(guard: Guard) -> bool:
    """Whether a guard asks for the size of a parameter, which torch compiles in."""
    return "Guard failed on a parameter" in guard.expression


def of_size(guard: Guard) -> bool:
    """Whether a guard asks for a size, as a number or by what the code asks of it."""
    return guard.cause in ("size", "symbolic_shape")


def is_unnamed(name: str) -> bool:
    """Whether words stand for a temporary, which has no name, and not for a variable called ``value``."""
    return _UNNAMED.match(name) is not None


def line_of_temporary(name: str) -> int | None:
    """The line at whose break a temporary was held; None for a variable, and where no line is known."""
    found = _UNNAMED.fullmatch(name)
    number = found and re.search(r"from line (\d+)$", name)
    return int(number[1]) if number else None


def placeless(name: str) -> str:
    """The words without what changes with the file and with Python: a temporary's line and number."""
    return _UNNAMED.sub(_without_numbers, name)


def _without_numbers(found: re.Match[str]) -> str:
    # The names of findings hold these words, so they stay as they were when the number stood behind them.
    return f"value{found['steps'] or ''} {found['place']}{' (stack)' if found['ordinal'] else ''}"


def _steps(steps: tuple[Step, ...]) -> str:
    text, held = "", False
    for step in steps:
        if step.kind == "attribute" and step.key in _HOLDERS:
            held = True
        elif held and isinstance(step.key, str):
            name = step.key
            text += f".{name}" if name.isidentifier() else f"[{name if name.isdigit() else repr(name)}]"
            held = False
        elif step.kind != "attribute" or step.key not in {"__code__", "cell_contents"}:
            text += str(step)
            held = False
    return text
