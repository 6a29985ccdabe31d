"""What refusals advise is true: code written that way does not break."""

from __future__ import annotations

import pytest
from programs import findings, sites, source_of

from breakscope.fix.patch import Refusal, Rewrite, apply
from breakscope.fix.rule import Example
from breakscope.fix.rules import propose

pytestmark = pytest.mark.torch

FROZEN = """
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4)){frozen}

    def forward(self, x):
        x = x * 2
        {line}
        return x * self.scale
"""


@pytest.mark.parametrize(
    ("refused", "advised", "calls", "advised_calls"),
    [
        (
            FROZEN.format(frozen="", line="self.scale.requires_grad = False"),
            FROZEN.format(frozen=".requires_grad_(False)", line="self.scale.requires_grad_(False)"),
            ("torch.randn(3, 4)", "torch.randn(3, 4)"),
            ("torch.randn(3, 4)",),
        ),
        (
            "def f(x):\n    y = x * 2\n    x.requires_grad_()\n    return (x * y).sum()\n",
            "def f(x):\n    y = x * 2\n    x.requires_grad_()\n    return (x * y).sum()\n",
            ("torch.randn(3, 4)",),
            ("torch.randn(3, 4, requires_grad=True)",),
        ),
        (
            "def f(i):\n    return F.one_hot(i).float() * 2\n",
            "def f(i):\n    return F.one_hot(i, num_classes=6).float() * 2\n",
            ("torch.tensor([0, 4])", "torch.tensor([0, 3])"),
            ("torch.tensor([0, 4])", "torch.tensor([0, 3])"),
        ),
    ],
    ids=["frozen before", "set by the caller", "with the number of classes"],
)
def test_the_advice_of_a_refusal(
    refused: str, advised: str, calls: tuple[str, ...], advised_calls: tuple[str, ...]
) -> None:
    answers = [propose(site)[1] for site in sites(Example(refused, calls=calls))]
    assert answers
    assert all(isinstance(one, Refusal) for one in answers)
    assert not [one.reason for one in findings(source_of(advised), advised_calls)]


@pytest.mark.parametrize(
    ("refused", "advised", "call"),
    [
        (
            "def f(x):\n    while x.sum() < 10:\n        x = x + 1\n    return x\n",
            (
                "def f(x):\n    for _ in range(9):\n        if x.sum() >= 10:\n            break\n        x = x + 1\n"
                "    return x\n"
            ),
            "torch.rand(4)",
        ),
        (
            "def f(x, t):\n    x = x + 1\n    for i in range(int(t)):\n        x = x * 2\n    return x\n",
            (
                "def f(x, t):\n    x = x + 1\n    for i in range(9):\n        if i >= t:\n            break\n"
                "        x = x * 2\n    return x\n"
            ),
            "torch.rand(4), torch.tensor(3)",
        ),
        (
            (
                "def f(x):\n    y = x * 1\n    for i in range(3):\n        if y.max() > 3:\n            continue\n"
                "        y = y * 2\n    return y\n"
            ),
            (
                "def f(x):\n    y = x * 1\n    for i in range(3):\n        if not y.max() > 3:\n            y = y * 2\n"
                "    return y\n"
            ),
            "torch.rand(4)",
        ),
    ],
    ids=["a bound for while", "a bound for range(int(t))", "not continue"],
)
def test_a_loop_written_as_advised_is_rewritten(refused: str, advised: str, call: str) -> None:
    for site in sites(Example(refused, calls=(call,))):
        rule, answer = propose(site)
        assert isinstance(answer, Refusal)
        assert rule is not None
        assert rule.name == "loop-exit"
    rewrites = [propose(site)[1] for site in sites(Example(advised, calls=(call,)))]
    (rewrite,) = (one for one in rewrites if isinstance(one, Rewrite))
    assert not [one.reason for one in findings(apply(source_of(advised), rewrite.edits), (call,))]
