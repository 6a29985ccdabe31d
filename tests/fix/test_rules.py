"""The rules as a set: all of them are asked, in an order that they state themselves, and each has its files."""

from __future__ import annotations

import graphlib
import random
from pathlib import Path

import pytest

import breakscope.fix.rules
from breakscope.fix.rules import RULES, in_order
from breakscope.fix.rules.builtin_pow import BuiltinPow
from breakscope.fix.rules.loop_exit import LoopExit

PACKAGE = Path(breakscope.fix.rules.__file__).parent
FILES = sorted(file.stem for file in PACKAGE.glob("*.py") if file.stem != "__init__")
TABLES = Path(__file__).parent / "rules"


def test_each_file_is_a_rule_that_is_asked() -> None:
    assert sorted(rule.name.replace("-", "_") for rule in RULES) == FILES


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_is_named_as_its_file_its_class_and_its_table(rule: object) -> None:
    name = type(rule).__module__.rpartition(".")[2]
    assert type(rule).__name__ == "".join(word.capitalize() for word in name.split("_"))
    assert (TABLES / f"{name}.py").is_file()


def test_rules_are_asked_in_this_order() -> None:
    """Of rewrites that are alike in consent the first is taken, so another order is other behaviour."""
    assert [rule.name for rule in RULES] == [
        "comprehension",
        "empty-turn",
        "legacy-variable",
        "masked-turn",
        "message-and-branch",
        "numpy-operator",
        "zero-probability",
        "random-skip",
        "guard-in-graph",
        "loop-exit",
        "branch-to-where",
        "branch-in-place",
        "ternary-to-where",
        "scalar-read",
        "boolean-value",
        "integer-division",
        "numpy-size",
        "numpy-number",
        "builtin-pow",
        "mask-to-where",
        "branch-to-cond",
        "known-size",
        "mask-shortcut",
        "quiet-messages",
        "requires-grad",
        "eager-leaf",
        "tensor-argument",
        "capture-flag",
        "custom-op",
    ]


def test_the_order_comes_from_the_names_that_rules_state_and_from_no_list() -> None:
    shuffled = list(RULES)
    random.Random(1).shuffle(shuffled)
    assert in_order(shuffled) == RULES


def test_rules_name_only_rules() -> None:
    names = {rule.name for rule in RULES}
    assert {name for rule in RULES for name in (*rule.before, *rule.after, *rule.nearer)} <= names


def test_an_order_in_a_circle_is_no_order() -> None:
    class Before(BuiltinPow):
        name = "first"
        before = ("second",)

    class After(LoopExit):
        name = "second"
        before = ("first",)

    with pytest.raises(graphlib.CycleError):
        in_order((Before(), After()))
