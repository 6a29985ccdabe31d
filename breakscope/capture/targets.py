"""``--compile FUNCTION``: putting ``torch.compile`` on a function of the user's, where it is defined.

The definition gets one more decorator, innermost, when its module is loaded; every way to reach the
function then meets the compiled one, and line numbers do not move.
"""

from __future__ import annotations

import ast
import builtins
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


def decorate(tree: ast.Module, qualname: str) -> bool:
    """Put the decorator on one function of ``tree``. False if there is none of that name."""
    definition = functions(tree).get(qualname)
    if definition is None:
        return False
    decorator = ast.copy_location(ast.Name(DECORATOR, ast.Load()), definition)
    definition.decorator_list.append(decorator)
    ast.fix_missing_locations(decorator)
    return True


class _DecoratingLoader(importlib.machinery.SourceFileLoader):
    """Loads a module from source (never from a .pyc) with one function decorated."""

    qualname = ""
    on_names: Callable[[list[str]], None] = staticmethod(lambda _names: None)

    def get_code(self, fullname: str) -> types.CodeType | None:
        path = self.get_filename(fullname)
        tree = ast.parse(self.get_data(path), filename=path)
        names = list(functions(tree))
        if not decorate(tree, self.qualname):
            self.on_names(names)
        code: types.CodeType = compile(tree, path, "exec", dont_inherit=True)
        return code


class TargetFinder(importlib.abc.MetaPathFinder):
    """Finds the one module that holds the target and gives it the decorating loader."""

    def __init__(self, target: Target, script: str, on_names: Callable[[list[str]], None]) -> None:
        self._target = target
        self._script = script
        self._on_names = on_names
        place = target.place
        self._stem = Path(place).stem if place and target.is_path() else (place or "").rpartition(".")[2]

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """As import asks; None for every module but the target's."""
        name = fullname.rpartition(".")[2]
        if self._stem not in (name, "__init__"):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is None or not isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            return None
        if not self._target.matches(fullname, spec.origin, self._script):
            return None
        loader = _DecoratingLoader(spec.loader.name, spec.loader.path)
        loader.qualname = self._target.qualname
        loader.on_names = self._on_names
        spec.loader = loader
        return spec


def decorate_main(target: Target, script: str) -> None:
    """Arrange that the function is decorated when Python runs the script itself.

    ``python SCRIPT`` has no hook between parsing and running, but it raises the audit event "exec"
    with the code that it is about to run. The decorated code is run there, in the real ``__main__``,
    and Python is then told to stop where it would have begun.
    """
    pending = True

    def hook(event: str, args: tuple[Any, ...]) -> None:
        nonlocal pending
        if event != "exec" or not pending:
            return
        code = args[0]
        if code.co_name != "<module>" or Path(code.co_filename).resolve() != Path(script).resolve():
            return
        pending = False
        tree = ast.parse(Path(script).read_bytes(), filename=code.co_filename)
        decorate(tree, target.qualname)
        namespace = sys.modules["__main__"].__dict__
        exec(compile(tree, code.co_filename, "exec", dont_inherit=True), namespace)  # noqa: S102 -- the script
        raise SystemExit

    sys.addaudithook(hook)


def install(
    target: Target, script: str, decorator: Callable[[Any], Any], on_names: Callable[[list[str]], None]
) -> None:
    """Have ``decorator`` applied to the target when its module is loaded.

    Args:
        on_names: called with all function names of the module where it has none of the target's name.
    """
    setattr(builtins, DECORATOR, decorator)
    if target.place is None or target.matches("__main__", script, script):
        decorate_main(target, script)
    else:
        sys.meta_path.insert(0, TargetFinder(target, script, on_names))
