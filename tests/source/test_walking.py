"""The quick walk finds what Python's own does, in its order."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import breakscope
from breakscope.source.walking import walk

FILES = sorted(Path(breakscope.__file__).parent.glob("project/*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_node_comes_in_the_same_order(file: Path) -> None:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    assert list(walk(tree)) == list(ast.walk(tree))


def test_a_node_that_lacks_fields_is_walked_as_well() -> None:
    made = ast.Module([ast.Return(), ast.Call(func=ast.Name("f"))])
    assert list(walk(made)) == list(ast.walk(made))
