"""``--compile FUNCTION``: putting ``torch.compile`` on a function of the user's, where it is defined.

The definition gets one more decorator, innermost, when its module is loaded; every way to reach the
function then meets the compiled one, and line numbers do not move.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from breakscope.inside import overlay

DECORATOR = "__breakscope_compile__"

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


def decorate(tree: ast.Module, qualname: str) -> bool:
    """Put the decorator on one function of ``tree``. False if there is none of that name."""
    definition = functions(tree).get(qualname)
    if definition is None:
        return False
    decorator = ast.copy_location(ast.Name(DECORATOR, ast.Load()), definition)
    definition.decorator_list.append(decorator)
    ast.fix_missing_locations(decorator)
    return True


def install(
    target: Target, script: str, decorator: Callable[[Any], Any], on_names: Callable[[list[str]], None]
) -> None:
    """Have ``decorator`` applied to the target when its module is loaded.

    Args:
        on_names: called with all function names of the module where it has none of the target's name.
    """
    setattr(builtins, DECORATOR, decorator)

    def parse(data: bytes, path: str) -> ast.Module:
        tree = overlay.parse(data, path)
        names = list(functions(tree))
        if not decorate(tree, target.qualname):
            on_names(names)
        return tree

    if target.place is None or target.matches("__main__", script, script):
        overlay.watch((), lambda _module, _origin: False, parse, script)
    else:
        place = target.place
        stem = Path(place).stem if target.is_path() else place.rpartition(".")[2]
        overlay.watch((stem,), lambda module, origin: target.matches(module, origin, script), parse)
