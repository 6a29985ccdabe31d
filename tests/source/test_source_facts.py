"""Facts about code: what names mean, where they are read, and what needs parentheses."""

from __future__ import annotations

import ast

import pytest

from breakscope.source.dominance import bound_before, certainly_before
from breakscope.source.module import Scope, parsed
from breakscope.source.names import builtin, defaults, dotted, new_name, reads_outside, stores, torch_name
from breakscope.source.syntax import operand, shown


def scope_of(source: str) -> Scope:
    module = parsed(source)
    return Scope(module, next(node for node in ast.walk(module.tree) if isinstance(node, ast.FunctionDef)))


def expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


@pytest.mark.parametrize(
    ("imports", "name", "means"),
    [
        ("import torch", "torch.nn.functional.relu", "torch.nn.functional.relu"),
        ("import torch.nn.functional as F", "F.relu", "torch.nn.functional.relu"),
        ("from torch.nn import functional as F", "F.relu", "torch.nn.functional.relu"),
        ("import torch as t", "t.functional.norm", "torch.norm"),
        ("import torch", "x.relu", None),
        ("import torch\ntorch = 3", "torch.relu", None),
        ("import torch as F\nimport numpy as F", "F.relu", None),
        ("import torch\nfrom . import torch", "torch.relu", None),
        ("import torch\ndef torch(): pass", "torch.relu", None),
    ],
)
def test_a_dotted_name_means_what_its_import_says_if_nothing_else_binds_it(
    imports: str, name: str, means: str | None
) -> None:
    assert dotted(scope_of(f"{imports}\ndef f(x): pass\n"), expression(name)) == means


def test_torch_is_called_as_the_module_calls_it() -> None:
    assert torch_name(scope_of("import torch as t\ndef f(): pass\n").module) == "t"
    assert torch_name(scope_of("import numpy\ndef f(): pass\n").module) is None


def test_a_builtin_is_one_only_where_no_name_of_the_module_hides_it() -> None:
    assert builtin(scope_of("def f(x): return len(x)\n"), expression("len")) == "len"
    assert builtin(scope_of("def f(x, len): return len(x)\n"), expression("len")) is None
    assert builtin(scope_of("from a import len\ndef f(x): return len(x)\n"), expression("len")) is None
    assert builtin(scope_of("def f(x): return x\n"), expression("nobody")) is None


def test_a_new_name_is_one_that_the_module_does_not_use() -> None:
    assert new_name(scope_of("def f(mask): return mask\n"), "mask") == "mask_1"


def test_a_text_is_parsed_once_and_its_facts_are_found_once() -> None:
    source = "import torch\ndef f(x): pass\n"
    assert parsed(source) is parsed(source)
    assert parsed(source).imports is parsed(source).imports


def test_definitions_and_uses_of_a_name() -> None:
    scope = scope_of("def f(x):\n    y = x + 1\n    if x:\n        y = y * 2\n    return y\n")
    assert [ast.unparse(value) for value in stores(scope, "y")] == ["x + 1", "y * 2"]
    assert [read.lineno for read in reads_outside(scope, [scope.function.body[1]], "y")] == [5]


def test_what_certainly_ran_before() -> None:
    scope = scope_of(
        "def f(x):\n    if x:\n        y = 1\n    z = 2\n    for i in x:\n        z = i\n    return z\n"
    )
    _, first, loop, last = scope.function.body
    assert not bound_before(scope, last, "y")
    assert bound_before(scope, last, "z")
    assert not bound_before(scope, last, "i")
    assert certainly_before(scope, first, last)
    assert isinstance(loop, ast.For)
    assert not certainly_before(scope, loop.body[0], loop.body[0])


@pytest.mark.parametrize(
    ("source", "written"),
    [("x.a[0]", "x.a[0]"), ("f(x)", "f(x)"), ("x + 1", "(x + 1)"), ("-x", "(-x)"), ("f(x,\n  y)", "f(x, y)")],
)
def test_an_operand_is_on_one_line_and_in_parentheses_where_it_needs_them(source: str, written: str) -> None:
    scope = scope_of(f"def f(x, y):\n    return ({source})\n")
    value = scope.function.body[0].value  # type: ignore[attr-defined]
    assert operand(scope, value) == written
    assert shown(scope, value, 4) == " ".join(source.split())[:4]


def test_defaults_are_those_of_the_parameters_that_have_one() -> None:
    function = scope_of("def f(a, /, b, c=1, *d, e, g=2, **h): pass\n").function
    assert {name: ast.unparse(one) for name, one in defaults(function.args).items()} == {"c": "1", "g": "2"}
