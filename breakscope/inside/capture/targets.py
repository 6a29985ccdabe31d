"""``--compile FUNCTION``: putting ``torch.compile`` on a function of the user's, where it is defined.

The definition gets one more decorator, innermost, when its module is loaded; every way to reach the
function then meets the compiled one, and line numbers do not move.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from breakscope.inside import overlay

DECORATOR = "__breakscope_decorator_{}__"

_Definition = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Target:
    """A function by name.

    Attributes:
        place: a path ending in ``.py``, a module name, or None for the script itself.
        qualname: dotted path inside the module: ``Net.forward``, ``main.step``.
    """

    place: str | None
    qualname: str

    @classmethod
    def parse(cls, text: str) -> Target:
        """``train_step``, ``model.py:Net.forward`` or ``pkg.mod:fn``."""
        place, separator, qualname = text.rpartition(":")
        return cls(place if separator else None, qualname)

    def is_path(self) -> bool:
        """Whether the place is a file."""
        return self.place is not None and self.place.endswith(".py")

    def matches(self, module: str, origin: str | None, script: str) -> bool:
        """Whether a module (name and file) is the one that is meant."""
        if self.place is None:
            return origin is not None and Path(origin).resolve() == Path(script).resolve()
        if not self.is_path():
            return module == self.place
        if origin is None:
            return False
        found, wanted = Path(origin).resolve().parts, Path(self.place).parts
        return Path(origin).resolve() == Path(self.place).resolve() or found[-len(wanted) :] == wanted


def functions(tree: ast.AST) -> dict[str, _Definition]:
    """Every function of a module by its dotted path (``Net.forward``; nested ones as ``main.step``)."""
    found: dict[str, _Definition] = {}

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                found[prefix + child.name] = child
                visit(child, f"{prefix}{child.name}.")
            elif isinstance(child, ast.ClassDef):
                visit(child, f"{prefix}{child.name}.")
            else:
                visit(child, prefix)

    visit(tree, "")
    return found


def compiles_itself(script: str) -> bool:
    """Whether the script's source calls ``torch.compile`` or ``module.compile`` under no condition."""
    try:
        tree = ast.parse(Path(script).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return False
    return _mentions_compile(tree)


def _mentions_compile(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute) and node.attr == "compile":
        return not (isinstance(node.value, ast.Name) and node.value.id == "re")
    if isinstance(node, ast.If | ast.IfExp | ast.Try):
        return False
    return any(_mentions_compile(child) for child in ast.iter_child_nodes(node))


def decorate(tree: ast.Module, qualname: str, name: str) -> bool:
    """Put the decorator of a name on one function of ``tree``. False if there is none of that name."""
    definition = functions(tree).get(qualname)
    if definition is None:
        return False
    decorator = ast.copy_location(ast.Name(name, ast.Load()), definition)
    definition.decorator_list.append(decorator)
    ast.fix_missing_locations(decorator)
    return True


@dataclass(frozen=True, slots=True)
class Decorated:
    """A function, and the decorator that it gets."""

    target: Target
    decorator: Callable[[Any], Any]


def install(asked: Sequence[Decorated], script: str, on_names: Callable[[list[str]], None]) -> None:
    """Have decorators applied to functions when their modules are loaded.

    Args:
        on_names: called with all function names of a module where it has none of a name that was asked for.
    """
    names = {one: DECORATOR.format(number) for number, one in enumerate(asked)}
    for one, name in names.items():
        setattr(builtins, name, one.decorator)

    def parse(data: bytes, path: str, wanted: Sequence[Decorated]) -> ast.Module:
        tree = overlay.parse(data, path)
        functions_there = list(functions(tree))
        for one in wanted:
            if not decorate(tree, one.target.qualname, names[one]):
                on_names(functions_there)
        return tree

    mains = [
        one for one in asked if one.target.place is None or one.target.matches("__main__", script, script)
    ]
    if mains:
        overlay.watch((), lambda _module, _origin: False, partial(parse, wanted=mains), script)
    for group in _by_place(one for one in asked if one not in mains):
        first = group[0].target
        place = first.place or ""
        stem = Path(place).stem if first.is_path() else place.rpartition(".")[2]
        overlay.watch((stem,), partial(_is_of, first, script=script), partial(parse, wanted=group))


def _by_place(asked: Iterable[Decorated]) -> list[list[Decorated]]:
    """Functions of one module together: it is parsed once."""
    groups: dict[str | None, list[Decorated]] = {}
    for one in asked:
        groups.setdefault(one.target.place, []).append(one)
    return list(groups.values())


def _is_of(target: Target, module: str, origin: str, script: str) -> bool:
    return target.matches(module, origin, script)
