"""``torch.cond``: what is compiled must do what the branch does, gradients included; eager code is left alone.

Nightly: Inductor, and 150 generated programs, each compiled; every example is proved in every run.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from programs import arguments, differences, entry, examples_of, load, rewritten, run, sites, source_of
from proving import proof
from test_branch_programs import INPUTS, Program, first_site, programs

from breakscope.fix.judge import judge
from breakscope.fix.patch import Rewrite, apply, claims_of
from breakscope.fix.rule import Example
from breakscope.fix.rules.branch_to_cond import BranchToCond

pytestmark = pytest.mark.torch

EXAMPLES, _ = examples_of(BranchToCond())


def rewrite_of(example: Example) -> Rewrite:
    answers = [BranchToCond().rewrite(site) for site in sites(example)]
    answer = next(one for one in answers if one is not None)
    assert isinstance(answer, Rewrite), answer
    return answer


# A return, a layer and random numbers: the others vary what these show, ten seconds each.
EVERY_RUN = (0, 2, 3)


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(one, marks=() if at in EVERY_RUN else pytest.mark.nightly, id=str(at))
        for at, one in enumerate(EXAMPLES)
    ],
)
def test_the_compiled_form_is_proved_with_gradients(example: Example, tmp_path: Path) -> None:
    answer = rewrite_of(example)
    assert answer.compiled_only
    found = judge(
        proof(
            example.before,
            rewritten(example, answer),
            example.calls,
            tmp_path,
            **dataclasses.asdict(claims_of([answer])),
        ),
        claims_of([answer]),
    )
    assert found.status == "proved", found.why
    assert found.evidence.kinds["compiled by Dynamo"] >= 20
    assert found.evidence.branches[0]["true"] > 0
    assert found.evidence.branches[0]["false"] > 0


COUNTING = """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.calls = 0

    def count(self, x):
        self.calls += 1
        return self.layer(x)

    def noted(self, x):
        print("taken")
        return self.layer(x)

    def overwritten(self, x):
        return torch.relu_(x)

    def forward(self, x):
        y = x * 1
        if x.sum() > 0:
            y = self.{method}(x)
        return y * 2
"""


@pytest.mark.parametrize("method", ["count", "noted", "overwritten"])
def test_what_torch_cond_does_not_take_is_refused(method: str, tmp_path: Path) -> None:
    """Side effects in what a side calls: nothing in the source of the branch shows them."""
    example = Example(COUNTING.replace("{method}", method), calls=("torch.rand(3, 4)", "-torch.rand(3, 4)"))
    answer = rewrite_of(example)
    claims = claims_of([answer])
    given = dataclasses.asdict(claims)
    found = judge(proof(example.before, rewritten(example, answer), example.calls, tmp_path, **given), claims)
    assert found.status == "refused", found.why
    assert not found.works, "no consent makes it right"


def test_eager_code_never_calls_torch_cond(monkeypatch: pytest.MonkeyPatch) -> None:
    """There it would compile at every call."""
    example = EXAMPLES[1]
    f = entry(load(source_of(rewritten(example, rewrite_of(example)))))
    monkeypatch.setattr(torch, "cond", None)
    for call in example.calls:
        args, kwargs = arguments(call)
        assert f(*args, **kwargs).shape == (3, 4)


@pytest.mark.nightly
@pytest.mark.slow
def test_gradients_are_those_of_the_branch_that_was_taken_under_inductor() -> None:
    """torch.where would give NaN here: the derivative of the branch not taken is infinite."""
    example = EXAMPLES[0]
    f = entry(load(source_of(rewritten(example, rewrite_of(example)))))
    torch.compiler.reset()
    compiled = torch.compile(f, backend="inductor")
    for values in ([-1.0, 0.0, 1.0], [0.5, 1.0, 4.0]):
        x = torch.tensor(values, requires_grad=True)
        y = torch.tensor(values, requires_grad=True)
        compiled(x).sum().backward()
        f(y).sum().backward()
        assert x.grad is not None
        assert y.grad is not None
        assert torch.allclose(x.grad, y.grad)
        assert x.grad.isfinite().all()


@pytest.mark.nightly
@pytest.mark.slow
def test_programs_that_nobody_wrote_by_hand() -> None:
    """What torch.cond compiles of generated branches is what they compute, gradients included."""
    counts = {"rewritten": 0, "compared": 0}

    @settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(program=programs())
    def all_of_them(program: Program) -> None:
        calls = (
            "torch.randn(2, 3), torch.randn(2, 3), flag=True",
            "-torch.rand(2, 3), torch.rand(2, 3), flag=True",
        )
        try:
            site = first_site(program.source, calls)
        except (UnboundLocalError, TypeError, NameError, IndexError, RuntimeError):
            return
        answer = BranchToCond().rewrite(site) if site is not None else None
        if not isinstance(answer, Rewrite):
            return
        counts["rewritten"] += 1
        old = entry(load(program.source))
        new = torch.compile(entry(load(apply(program.source, answer.edits))), backend="eager")
        torch.compiler.reset()
        for _, x, y in INPUTS[:8:2]:
            arguments = ((x, y), {"flag": True})
            expected, found = run(old, *arguments, grad=True), run(new, *arguments, grad=True)
            if found.error is not None and expected.error is None:
                return  # the proof refuses it: torch.cond does not take a side
            if (
                (answer.consent or answer.assumes)
                and expected.inputs[1] is not None
                and found.inputs[1] is not None
            ):
                pairs = zip(expected.inputs[1], found.inputs[1], strict=True)
                grads = [torch.zeros_like(b) if a is None and b is not None else a for a, b in pairs]
                expected.inputs = (expected.inputs[0], tuple(grads))
            expected.inputs, found.inputs = list(expected.inputs), list(found.inputs)
            assert not differences(expected, found, messages=False), program.source
            counts["compared"] += 1

    all_of_them()
    assert counts["rewritten"] >= 5, counts
    assert counts["compared"] >= 20, counts
