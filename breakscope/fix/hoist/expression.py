"""Expressions in the parameters of one function, and how they are said in those of another."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping

from breakscope.source.module import Module

BUILTINS = ("bool", "int", "float", "len", "abs", "min", "max", "round")


class Name(ast.Name):
    """A module's constant, which means something in that module only.

    It has ast's own name, by which ast finds out how to write and to visit a node.
    """

    def __init__(self, name: str, module: Module) -> None:
        super().__init__(name, ast.Load())
        self.module = module

    def __deepcopy__(self, memo: object) -> Name:
        return Name(self.id, self.module)


def put_in(node: ast.expr, values: Mapping[str, ast.expr]) -> ast.expr:
    """An expression with other expressions in the place of names."""

    class Put(ast.NodeTransformer):
        def visit_Name(self, name: ast.Name) -> ast.expr:
            return name if isinstance(name, Name) else copy.deepcopy(values.get(name.id, name))

    found: ast.expr = Put().visit(copy.deepcopy(node))
    return found


def constants(node: ast.expr) -> list[Name]:
    """The modules' constants in an expression of :class:`Follower`."""
    return [one for one in ast.walk(node) if isinstance(one, Name)]


def leaves(node: ast.expr) -> tuple[str, ...]:
    """The names of parameters in an expression of :class:`Follower`, each once."""
    found = [one for one in ast.walk(node) if isinstance(one, ast.Name) and not isinstance(one, Name)]
    return tuple(dict.fromkeys(one.id for one in found if one.id not in (*BUILTINS, "torch")))
