"""Where the text of two forms shows that they are the same outside of compiled code, and where it does not."""

from __future__ import annotations

import ast
import types

import pytest

torch = pytest.importorskip("torch")
from breakscope.inside.prove.structure import means_it, relies_on  # noqa: E402

pytestmark = pytest.mark.torch

QUIET = "if not torch.compiler.is_compiling():\n        print(x)"


def function(body: str) -> ast.stmt:
    return ast.parse(f"def f(x, n):\n    {body}\n    return x").body[0]


def names(old: str, new: str, *, silent: bool = True) -> frozenset[str] | None:
    return relies_on(function(old), function(new), silent=silent)


def test_a_message_that_only_python_writes_leaves_the_rest_as_it_is() -> None:
    assert names("print(x)", QUIET) == {"torch"}
    both = QUIET + "\n        log(n)"
    assert names("print(x)\n    log(n)", both) == {"torch"}


def test_a_condition_of_messages_that_only_python_asks_leaves_the_rest_as_it_is() -> None:
    asked = "if not torch.compiler.is_compiling() and {}:\n        print(x)"
    assert names("if n:\n        print(x)", asked.format("n")) == {"torch"}
    assert names("if n and x:\n        print(x)", asked.format("n and x")) == {"torch"}
    assert names("if n or x:\n        print(x)", asked.format("(n or x)")) == {"torch"}
    passing = "\n    else:\n        pass"
    assert names("if n:\n        print(x)" + passing, asked.format("n") + passing) == {"torch"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "if n or x:\n        print(x)",
            "if not torch.compiler.is_compiling() and n or x:\n        print(x)",
        ),
        ("if n:\n        print(x)", "if n and not torch.compiler.is_compiling():\n        print(x)"),
        ("if n:\n        x = 1", "if not torch.compiler.is_compiling() and n:\n        x = 1"),
        (
            "if n:\n        print(x)\n    else:\n        x = 1",
            "if not torch.compiler.is_compiling() and n:\n        print(x)\n    else:\n        x = 1",
        ),
    ],
)
def test_a_condition_that_more_than_messages_hang_on_is_searched(old: str, new: str) -> None:
    assert names(old, new) is None


def test_pow_of_two_is_the_operator() -> None:
    assert names("x = pow(x, n)", "x = x ** n") == {"pow"}
    assert names("x = pow(x, n)", "x = x ** n", silent=False) == {"pow"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("print(x)", "pass"),
        ("print(x)", QUIET.replace("not ", "")),
        ("print(x)", QUIET + "\n    else:\n        x = x + 1"),
        ("x = x + 1", QUIET.replace("print(x)", "x = x + 1")),
        ("x.add_(n)", QUIET.replace("print(x)", "x.add_(n)")),
        ("print(x)", QUIET.replace("print(x)", "print(n)")),
        ("print(x)", QUIET + "\n    x = x + 1"),
        ("print(x)", QUIET.replace("is_compiling()", "is_compiling() and n")),
        ("x = pow(x, n)", "x = n ** x"),
        ("x = pow(x, n, 3)", "x = x ** n"),
        ("x = pow(*n)", "x = n ** n"),
    ],
)
def test_what_is_anything_else_is_searched(old: str, new: str) -> None:
    assert names(old, new) is None


def test_who_does_not_say_that_messages_are_silent_is_searched() -> None:
    assert names("print(x)", QUIET, silent=False) is None


@pytest.mark.parametrize(
    ("source", "meant"),
    [
        ("import torch\ndef f(x): return torch.compiler.is_compiling() and pow(x, 2)", True),
        ("class torch: compiler = None\ndef f(x): return torch and pow(x, 2)", False),
        ("import torch\ndef pow(a, b): return a\ndef f(x): return torch and pow(x, 2)", False),
        ("import torch\ndef f(x, torch=None): return torch and pow(x, 2)", False),
        ("from math import pow\nimport torch\ndef f(x): return torch and pow(x, 2)", False),
    ],
)
def test_the_names_have_to_mean_what_they_say(source: str, meant: bool) -> None:
    scope: dict[str, types.FunctionType] = {}
    exec(source, scope)
    assert means_it(scope["f"], frozenset({"torch", "pow"})) is meant


def test_of_two_comprehensions_the_first_may_be_a_part_of_a_statement() -> None:
    old = "y = torch.cat([one + 1 for one in x])\n    z = [n - one for one in x]"
    new = (
        "parts = []\n    for one in x:\n        parts.append(one + 1)\n    y = torch.cat(parts)\n"
        "    z = []\n    for one_2 in x:\n        z.append(n - one_2)"
    )
    assert names(old, new.replace("one_2", "one")) == {"torch"}
    assert names(old, new) is None
