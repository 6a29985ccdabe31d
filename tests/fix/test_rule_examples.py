"""Every example of every rule: rewritten to the letter, run side by side with the original, compiled."""

from __future__ import annotations

import functools
import itertools
import logging
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from programs import (
    answers,
    arguments,
    differences,
    entry,
    examples_of,
    findings,
    load,
    rewritten,
    run,
    sites,
    source_of,
    variants,
)

from breakscope.fix.patch import UNWANTED, Refusal, Rewrite
from breakscope.fix.rule import Example, Rule
from breakscope.fix.rules import RULES, propose

pytestmark = pytest.mark.torch

Case = tuple[Rule, Example]
# All tests of one example come one after the other, and share what a scan said of it (``programs.answers``).
per_example = functools.partial(pytest.mark.parametrize, "case", scope="module")
REWRITES = [(rule, example) for rule in RULES for example in examples_of(rule)[0]]
LEAVES = [(rule, example) for rule in RULES for example in examples_of(rule)[1]]


def name(case: Case) -> str:
    rewrites, leaves = examples_of(case[0])
    return f"{case[0].name}-{(*rewrites, *leaves).index(case[1])}"


@pytest.fixture(autouse=True)
def quiet_dynamo() -> Iterator[None]:
    logger = logging.getLogger("torch._dynamo")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(before)
    torch._dynamo.reset()


def rewrite_of(rule: Rule, example: Example) -> Rewrite:
    given = answers(rule, example)
    assert given, f"not asked: {[(site.code, site.text(site.node)) for site in sites(example)]}"
    rewrites = [answer for answer in given if isinstance(answer, Rewrite)]
    assert rewrites, given
    return rewrites[0]


@per_example(REWRITES, ids=map(name, REWRITES))
def test_rewritten_as_shown(case: Case) -> None:
    rule, example = case
    answer = rewrite_of(rule, example)
    assert rewritten(example, answer) == source_of(example.after)
    assert answer.consent == (example.consent or rule.consent)
    assert answer.summary
    if answer.consent:
        assert answer.notes, "what changes must be said"


def same_with_the_setting(example: Example, answer: Rewrite) -> None:
    for call in example.calls:
        args, kwargs = arguments(call)
        f, new = (entry(load(source_of(text))) for text in (example.before, example.after))
        torch._dynamo.reset()
        with torch._dynamo.config.patch(dict(answer.config)):
            if isinstance(new, torch.nn.Module):  # a compiled module has other state than the module
                type(new).forward = torch.compile(type(new).forward, backend="eager")
                compiled = new
            else:
                compiled = torch.compile(new, backend="eager")
            for _, some, more in itertools.islice(variants(args, kwargs, seed=3), 5):
                assert not differences(run(f, some, more), run(compiled, some, more))


@per_example(REWRITES, ids=map(name, REWRITES))
def test_computes_the_same(case: Case) -> None:
    rule, example = case
    answer = rewrite_of(rule, example)
    close = answer.exact == "reassociated"
    if answer.config:
        same_with_the_setting(example, answer)
        return
    without_gradients = any("no gradient" in one for one in answer.assumes)
    # What holds for the recorded dtype only is compared in it.
    double = not any("dtype" in one or "stays" in one for one in answer.assumes)
    for number, call in enumerate(example.calls):
        old, new = entry(load(source_of(example.before))), entry(load(source_of(example.after)))
        args, kwargs = arguments(call)
        for label, some, more in variants(args, kwargs, seed=number):
            with torch.no_grad():
                found = differences(
                    run(old, some, more), run(new, some, more), close=close, early=answer.early
                )
            assert not found or example.consent, f"{label}: {found}"
            if example.consent or without_gradients:
                continue
            with_gradients = (run(f, some, more, grad=True, double=double) for f in (old, new))
            found = differences(*with_gradients, close=close, early=answer.early)
            assert not found, f"{label}, gradients: {found}"


# How many examples of each rule are scanned again in every run: one shape of code, rewritten in many surroundings.
SCANNED_AGAIN = 4


def scanned_again() -> list[Any]:
    """The first of each rule and every fifth of the rest in every run, the others at night."""
    params = []
    for case in REWRITES:
        at = examples_of(case[0])[0].index(case[1])
        marks = () if at < SCANNED_AGAIN or at % 5 == 0 else (pytest.mark.nightly,)
        params.append(pytest.param(case, id=name(case), marks=marks))
    return params


@per_example(scanned_again())
def test_the_break_is_gone(case: Case) -> None:
    rule, example = case
    answer = rewrite_of(rule, example)
    with torch._dynamo.config.patch(dict(answer.config)):
        after = findings(source_of(example.after), example.calls)
    assert not [finding.reason for finding in after]


@per_example(LEAVES, ids=map(name, LEAVES))
def test_left_alone(case: Case) -> None:
    rule, example = case
    given = answers(rule, example)
    assert all(isinstance(answer, Refusal) for answer in given), given
    reasons = [answer.reason for answer in given if isinstance(answer, Refusal)]
    if example.why:
        assert any(example.why in reason for reason in reasons), reasons
    else:
        assert not reasons, "a refusal needs its reason in the example"
    assert all(reason and not reason.endswith(".") for reason in reasons)


def test_of_two_rules_that_refuse_a_layer_drop_the_nearer_one_tells_why() -> None:
    skip = next(rule for rule in RULES if rule.name == "random-skip")
    text = skip.left_alone.before.replace("torch.rand([]) < 0.5", "drawn < self.layerdrop")
    text = text.replace("            if drawn", "            drawn = torch.rand([])\n            if drawn")
    (site, *_) = sites(replace(skip.left_alone, before=text))
    (zero,) = [rule.rewrite(site) for rule in RULES if rule.name == "zero-probability"]
    assert isinstance(zero, Refusal)
    assert "is above 0" in zero.reason
    rule, told = propose(site)
    assert rule is skip
    assert isinstance(told, Refusal)
    assert "does more than give values to names: `self.last" in told.reason


@pytest.mark.parametrize("first", ["# no switch", "torch.set_grad_enabled(torch.is_grad_enabled())"])
def test_a_turn_without_rows_needs_no_consent_where_autograd_is_off(first: str) -> None:
    rule = next(rule for rule in RULES if rule.name == "empty-turn")
    plain = rule.rewritten
    example = replace(
        plain, before=plain.before.replace("        out =", f"        {first}\n        out =", 1)
    )
    with torch.no_grad():
        answer = rewrite_of(rule, example)
    switches = not first.startswith("#")
    assert answer.consent == switches
    assert (UNWANTED in answer.assumes) != switches


@pytest.mark.parametrize(
    ("text", "may_fail"),
    [("f'third row {x[2].sum()}'", True), ("'a text'", False)],
    ids=["computed", "plain"],
)
def test_a_message_whose_text_may_fail_says_that_it_did_not(text: str, may_fail: bool) -> None:
    before = f"import warnings\n\ndef f(x):\n    warnings.warn({text})\n    return x + 1"
    quiet = next(rule for rule in RULES if rule.name == "quiet-messages")
    answer = answers(quiet, Example(before, "", calls=("torch.ones(3)",)))[0]
    assert isinstance(answer, Rewrite)
    assert any("raises nothing, as in the recorded run" in one for one in answer.assumes) == may_fail


EAGER_AROUND = """\
class f(nn.Module):
    def forward(self, x, **options):
        {found}
        try:
            torch._dynamo.graph_break()  # for which the whole function runs eagerly
        finally:
            x = x + len(found)
        return x
"""


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="a comprehension is no frame from Python 3.12 on")
def test_a_comprehension_that_dynamo_gave_up_is_no_frame_any_more() -> None:
    listed = '{k: getattr(self, k) for k in {"training": 1}}'
    (rule,) = [rule for rule in RULES if rule.name == "comprehension"]
    before = Example(EAGER_AROUND.format(found=f"found = {listed}"))
    functions = [str(one.location.function) for one in findings(source_of(before.before), before.calls)]
    assert [name.rpartition(".")[2] for name in functions].count("<dictcomp>") == 1
    (answer,) = [found for found in map(rule.rewrite, sites(before)) if isinstance(found, Rewrite)]
    after = [str(one.location.function) for one in findings(rewritten(before, answer), before.calls)]
    assert after == [name for name in functions if "<dictcomp>" not in name], "the break around it is left"
