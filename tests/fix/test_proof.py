"""The proof proves what is right, says what it could not drive, and leaves the script as it found it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from programs import sites
from proving import proof

from breakscope.fix.evidence import Verdict
from breakscope.fix.judge import judge
from breakscope.fix.patch import Rewrite
from breakscope.fix.rule import Example
from breakscope.fix.rules import RULES
from breakscope.inside.prove import budget, compiled
from breakscope.inside.prove.attempt import Conditions, attempt
from breakscope.inside.prove.bench import Bench
from breakscope.inside.prove.budget import Allowance, Budget, clock
from breakscope.inside.prove.claims import Claims
from breakscope.inside.prove.comparing import Comparing
from breakscope.inside.prove.compiled import OTHERWISE
from breakscope.inside.prove.copies import Copies, NotCopiedError
from breakscope.inside.prove.search import BEHIND, Search
from breakscope.inside.prove.tally import ENDLESS, Tally
from breakscope.inside.prove.world import World

pytestmark = pytest.mark.torch

CLAMP = (
    "def f(x):\n    y = x * 2\n    if not torch.isfinite(y).all():\n        y = torch.clamp(y, -9, 9)\n    return y",
    "def f(x):\n    y = x * 2\n    y = torch.where(torch.isfinite(y).all(), y, torch.clamp(y, -9, 9))\n    return y",
)


def judged(before: str, after: str, calls: tuple[str, ...], folder: Path, *, exact: bool = True) -> Verdict:
    return judge(proof(before, after, calls, folder, exact=exact), Claims(exact))


def test_a_right_rewrite_is_proved_with_both_branches_driven(tmp_path: Path) -> None:
    found = judged(*CLAMP, ("torch.randn(3, 4)",), tmp_path)
    assert found.status == "proved", found.why
    (branch,) = found.evidence.branches
    assert branch["condition"] == "not torch.isfinite(y).all()" or "isfinite" in branch["condition"]
    assert branch["true"] > 0
    assert branch["false"] > 0
    assert found.evidence.max_difference == 0
    assert found.evidence.kinds["compiled by Dynamo"] >= 2


@pytest.mark.parametrize(
    ("before", "after", "calls"),
    [
        (  # an intermediate tensor of a graph, changed in place in both forms
            "def f(x):\n    y = x * 2\n    y.relu_()\n    if y.sum() > 1:\n        y = y + 1\n    return y * y",
            "def f(x):\n    y = x * 2\n    y.relu_()\n    y = torch.where(y.sum() > 1, y + 1, y)\n    return y * y",
            ("torch.randn(3, 4, requires_grad=True)",),
        ),
        (  # state that both forms change alike
            (
                "class f(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.n = 0\n"
                "        self.register_buffer('mean', torch.zeros(4))\n    def forward(self, x):\n        self.n += 1\n"
                "        self.mean.mul_(0.9).add_(x.mean(0))\n        y = x - self.mean\n        if y.sum() > 0:\n"
                "            y = y * 2\n        return y"
            ),
            (
                "class f(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.n = 0\n"
                "        self.register_buffer('mean', torch.zeros(4))\n    def forward(self, x):\n        self.n += 1\n"
                "        self.mean.mul_(0.9).add_(x.mean(0))\n        y = x - self.mean\n"
                "        y = torch.where(y.sum() > 0, y * 2, y)\n        return y"
            ),
            ("torch.randn(3, 4)", "torch.randn(2, 4)"),
        ),
        (  # chunks of one tensor, views that share their memory
            "def f(q):\n    a, b = (q * 1).reshape(2, 2, 3)\n    if a.sum() > 0:\n        b = b + a\n    else:\n        b = b * 1\n    return b",
            "def f(q):\n    a, b = (q * 1).reshape(2, 2, 3)\n    b = torch.where(a.sum() > 0, b + a, b * 1)\n    return b",
            ("torch.randn(4, 3, requires_grad=True)",),
        ),
        (  # random numbers, drawn alike
            "def f(x):\n    y = F.dropout(x, 0.5)\n    if y.sum() > 0:\n        y = y * 2\n    return y",
            "def f(x):\n    y = F.dropout(x, 0.5)\n    y = torch.where(y.sum() > 0, y * 2, y)\n    return y",
            ("torch.randn(3, 4)",),
        ),
        (  # functions, enums and generators that both forms leave alike
            (
                "import enum, random\nclass Mode(enum.Enum):\n    FAST = 1\nMode.FAST.calls = 0\nrng = random.Random(0)\n"
                "def f(x):\n    Mode.FAST.calls += 1\n    x = x * rng.random()\n    if x.sum() > 0:\n        x = x * 2\n"
                "    return x, lambda y: y if y.sum() > 0 else -y"
            ),
            (
                "import enum, random\nclass Mode(enum.Enum):\n    FAST = 1\nMode.FAST.calls = 0\nrng = random.Random(0)\n"
                "def f(x):\n    Mode.FAST.calls += 1\n    x = x * rng.random()\n    x = torch.where(x.sum() > 0, x * 2, x)\n"
                "    return x, lambda y: y if y.sum() > 0 else -y"
            ),
            ("torch.randn(3, 4)",),
        ),
        (  # an exception that both raise
            "def f(x):\n    if x.isnan().any():\n        raise ValueError('nan')\n    if x.sum() > 0:\n        return x * 2\n    return x * 3",
            "def f(x):\n    if x.isnan().any():\n        raise ValueError('nan')\n    return torch.where(x.sum() > 0, x * 2, x * 3)",
            ("torch.randn(3, 4)",),
        ),
    ],
    ids=["in place inside a graph", "state", "views", "random numbers", "of Python's own", "exceptions"],
)
def test_right_rewrites_are_proved(before: str, after: str, calls: tuple[str, ...], tmp_path: Path) -> None:
    found = judged(before, after, calls, tmp_path)
    assert found.status == "proved", found.why


def test_a_sum_in_another_order_is_proved_as_such(tmp_path: Path) -> None:
    before, after = "def f(x):\n    return x.sum() / 3", "def f(x):\n    return x.flip(0).sum() / 3"
    assert judged(before, after, ("torch.rand(1000)",), tmp_path, exact=False).status == "proved"


@pytest.mark.parametrize(
    ("before", "after", "call", "why"),
    [
        (
            "def f(x):\n    if x.sum() > 1e3 and x.sum() < -1e3:\n        return x * 2\n    return x * 1",
            "def f(x):\n    return torch.where((x.sum() > 1e3) & (x.sum() < -1e3), x * 2, x * 1)",
            "torch.randn(3)",
            "no input was found for which",
        ),
        (
            "import itertools\nticks = itertools.count()\ndef f(x):\n    return x * next(ticks)",
            "import itertools\nticks = itertools.count()\ndef f(x):\n    return next(ticks) * x",
            "torch.ones(3)",
            "does not do the same when it is called again",
        ),
        (
            "def f(x):\n    return (x.to_dense() * 2).sum()",
            "def f(x):\n    return (2 * x.to_dense()).sum()",
            "torch.eye(3).to_sparse()",
            "cannot be copied: a tensor has the layout sparse_coo",
        ),
        (
            "def f(x):\n    return x * 2, lambda y: y * 2",
            "def f(x):\n    return 2 * x, lambda y: y * 3",
            "torch.ones(3)",
            "is a function that the new code writes in another way",
        ),
        (
            "def f(x):\n    return x * 2, map(str, [1])",
            "def f(x):\n    return 2 * x, map(str, [2])",
            "torch.ones(3)",
            "is <map object>, which nobody can look into",
        ),
        (
            "def f(x):\n    yield x * 2",
            "def f(x):\n    yield 2 * x",
            "torch.ones(3)",
            "f is a generator or a coroutine",
        ),
        (
            "A = 1\ndef f(x):\n    return x * A",
            "A = 2\ndef f(x):\n    return x * A / 2",
            "torch.ones(3)",
            "it changes line",
        ),
        (
            "def f(x, n=1):\n    return x * n",
            "def f(x, n=2):\n    return x * n / 2",
            "torch.ones(3)",
            "changes the signature",
        ),
        (
            "def f(x):\n    raise ValueError('no')",
            "def f(x):\n    raise ValueError(str('no'))",
            "1",
            "both forms raise",
        ),
    ],
    ids=[
        "not driven",
        "unstable",
        "sparse",
        "closure",
        "iterator",
        "generator",
        "module level",
        "signature",
        "only raises",
    ],
)
def test_what_cannot_be_compared_is_unproved_with_a_reason(
    before: str, after: str, call: str, why: str, tmp_path: Path
) -> None:
    found = judged(before, after, (call,), tmp_path)
    assert found.status == "unproved"
    assert why in found.why


def test_a_test_call_leaves_no_trace() -> None:
    layer = torch.nn.BatchNorm1d(4)
    inputs = torch.randn(3, 4, requires_grad=True) * 2
    log: list[Any] = []
    state = {name: value.clone() for name, value in layer.state_dict().items()}
    version, graph = inputs._version, inputs.grad_fn

    def function(module: Any, x: torch.Tensor, log: list[Any]) -> torch.Tensor:
        log.append(x)
        module.extra = 1
        x.mul_(2)
        return module(x) + torch.rand(3, 4)

    generator = torch.get_rng_state()
    world = World([function, layer, inputs, log], 2**30)
    parameter = layer.weight
    outcome = attempt(function, world, [((layer, inputs, log), {})], Conditions("once", gradients=True))
    assert outcome.raised is None
    assert len([one for one in outcome.gradients if one is not None]) == 3
    assert log == []
    assert not hasattr(layer, "extra")
    assert layer.weight is parameter
    assert all(torch.equal(value, state[name]) for name, value in layer.state_dict().items())
    assert (inputs._version, inputs.grad_fn) == (version, graph)
    assert torch.equal(torch.get_rng_state(), generator)


def test_copies_share_memory_as_their_originals_do() -> None:
    base = torch.arange(6.0)
    view, other = base[2:], torch.ones(2)
    copies = Copies([base, view, other])
    copies(view).zero_()
    assert copies(base).tolist() == [0, 1, 0, 0, 0, 0]
    assert base.tolist() == [0, 1, 2, 3, 4, 5]
    assert copies(other).tolist() == [1, 1]
    parameter = torch.nn.Parameter(torch.ones(2))
    made = Copies([parameter])
    assert type(made(parameter)) is torch.nn.Parameter
    assert made(parameter).is_leaf
    with pytest.raises(NotCopiedError, match="class Own"):
        Copies([torch.ones(2).as_subclass(type("Own", (torch.Tensor,), {}))])


def test_an_operand_that_nothing_drives_alone_is_no_hindrance(tmp_path: Path) -> None:
    found = judged(
        "def f(x):\n    y = x * 2\n    if x.isnan().any() or y.isnan().any():\n        x = x.abs()\n    return x + 1",
        "def f(x):\n    y = x * 2\n    x = torch.where(x.isnan().any() | y.isnan().any(), x.abs(), x)\n    return x + 1",
        ("torch.randn(3)",),
        tmp_path,
    )
    assert found.status == "proved", found
    assert "`y.isnan().any()` was never true" in found.evidence.notes


def test_an_operand_that_compares_numbers_has_to_go_both_ways(tmp_path: Path) -> None:
    found = judged(
        "def f(x, t):\n    if x.sum() > 0 or t.item() == 77777:\n        x = x * 2\n    return x + 1",
        "def f(x, t):\n    x = torch.where((x.sum() > 0) | (t == 77777), x * 2, x)\n    return x + 1",
        ("torch.randn(3), torch.tensor(3)",),
        tmp_path,
    )
    assert found.status == "unproved"
    assert "`t.item() == 77777` is true" in found.why


def test_code_that_calls_a_compiled_function_is_compiled_for_its_proof_too(tmp_path: Path) -> None:
    compiled = "run = torch.compile(lambda x: x + 1, backend='eager')\n"
    old, new = "return run(x)", "return run(x) + torch.compiler.is_compiling()"
    forms = [f"{compiled}def f(x):\n    {body}\n" for body in (old, new)]
    with torch.compiler.set_stance("force_eager"):  # as in every proof run
        (found,) = proof(*forms, ("torch.randn(3),",), tmp_path)["functions"]
    assert "compiled by Dynamo" in found["mismatch"]


def test_of_conditions_alike_each_goes_both_ways(tmp_path: Path) -> None:
    """Which of them is gone cannot be told; here it is the first, which nothing drives."""
    head = "def f(x):\n    t = x.isnan().any() & ~x.isnan().any()\n"
    kept = "    t = x.isnan().any()\n    if t:\n        x = x + 1\n    return x * 1"
    found = judged(
        f"{head}    if t:\n        x = x * 2\n{kept}",
        f"{head}    x = torch.where(t, x * 3, x)\n{kept}",
        ("torch.randn(3)",),
        tmp_path,
    )
    assert found.status == "unproved"
    assert found.why == "no input was found for which `t` is true"


@pytest.mark.parametrize(
    ("before", "after", "call", "limit"),
    [
        (
            "def f(x, flag):\n    if flag:\n        x = x * 2\n    return x * 1",
            "def f(x, flag):\n    x = torch.where(flag, x * 2, x)\n    return x * 1",
            "torch.randn(3), torch.tensor(True)",
            "with a number (input 2 alone as a Python number): the old code returns, the new one raises",
        ),
        (
            "def f(x):\n    if x.sum() > 5:\n        x = x.flip(1)\n    return x * 1",
            "def f(x):\n    x = torch.where(x.sum() > 5, x.flip(1), x)\n    return x * 1",
            "torch.randn(3, 4)",
            "with another number of dimensions (all tensors one dimension fewer)",
        ),
        (
            "def f(x, y):\n    if x.sum() > 0:\n        z = x * 2\n    else:\n        z = y * 3\n    return z",
            "def f(x, y):\n    z = torch.where(x.sum() > 0, x * 2, y * 3)\n    return z",
            "torch.randn(3, 4), torch.randn(3, 4)",
            "with other strides (input",
        ),
        (
            "def f(x, m=None):\n    if x.sum() > 0:\n        x = x + m\n    return x * 1",
            "def f(x, m=None):\n    x = torch.where(x.sum() > 0, x + m, x)\n    return x * 1",
            "-torch.rand(3), torch.ones(3)",
            "without it (m = None)",
        ),
        (
            "def f(x):\n    if x.any():\n        return torch.sigmoid(x)\n    return x * 1",
            "def f(x):\n    return torch.where(x.any(), torch.sigmoid(x), x * 1)",
            "torch.randn(3)",
            "in other dtypes (zeros, all tensors int64)",
        ),
        (
            "def f(x, m):\n    return x * ~m",
            "def f(x, m):\n    return x * (m == 0)",
            "torch.randn(3), torch.tensor([True, False, True])",
            "in other dtypes (all tensors of bool int64): result: values differ",
        ),
        (
            "def f(x, m):\n    return x * 2 if m.sum() == 0 else x * 1",
            "def f(x, m):\n    return x * 1 if m.any() else x * 2",
            "torch.randn(4), torch.tensor([True, True, False, False])",
            "in other dtypes (all tensors of bool int64): result: values differ",
        ),
        (
            "def f(t):\n    return (t * 3) // 2",
            "def f(t):\n    return (t * 3) >> 1",
            "torch.arange(-3, 3)",
            "in other dtypes (all tensors of whole numbers float32): the old code returns, the new one raises",
        ),
        (
            "@torch.no_grad()\ndef f(x):\n    if x.sum() > 0:\n        return x @ x\n    return x * 1",
            "@torch.no_grad()\ndef f(x):\n    return torch.where(x.sum() > 0, x @ x, x * 1)",
            "torch.rand(3, 3)",
            "under autocast (autocast): result: its dtype differs",
        ),
        (
            "import math\nimport numpy as np\ndef f(x, n):\n    return x[: int(np.nan_to_num(np.sqrt(n)))] * 2",
            "import math\nimport numpy as np\ndef f(x, n):\n    return x[: int(math.sqrt(n))] * 2",
            "torch.randn(3), 4",
            "with a negative number (argument 2 = -4): the old code returns, the new one raises",
        ),
        (
            "def f(x, up):\n    return x * 2 if up else x * 1",
            "def f(x, up):\n    return x * 2 if up is True else x * 1",
            "torch.randn(3), True",
            "with a number for a flag (argument 2 = 2): result: values differ",
        ),
        (
            "def f(x, n):\n    return x * (n / 2)",
            "def f(x, n):\n    return x * (n // 2 if isinstance(n, int) else n / 2)",
            "torch.randn(3), 3.0",
            "with a whole number for a fraction (argument 2 = 3): result: values differ",
        ),
        (
            "def f(x, n):\n    return x * (n / 2)",
            "def f(x, n):\n    return x * (n / 2 if isinstance(n, int) else n)",
            "torch.randn(3), 4",
            "with a fraction for a whole number (argument 2 = 4.5): result: values differ",
        ),
        (
            "class f(nn.Module):\n    n = 2.5\n    def forward(self, x):\n        return x * (self.n - self.n)",
            "class f(nn.Module):\n    n = 2.5\n    def forward(self, x):\n        return x * 0.0",
            "torch.randn(3)",
            "with a number that is not finite (n = inf): result: values differ",
        ),
        (
            "lin = nn.Linear(4, 4)\ndef f(x):\n    return lin(x) * 2",
            "lin = nn.Linear(4, 4)\ndef f(x):\n    return F.linear(x, lin.weight, lin.bias) * 2",
            "torch.randn(3, 4)",
            "with forward hooks that change what modules return",
        ),
        (
            "import logging\nlog = logging.getLogger('net')\ndef f(x):\n    log.debug('%s', x.shape)\n    return x * 2",
            "import logging\nlog = logging.getLogger('net')\ndef f(x):\n    return x * 2",
            "torch.randn(3)",
            "with loggers that are enabled (loggers of every level): the old code prints 'net DEBUG: ",
        ),
        (
            "scale = torch.ones(3)\ndef f(x):\n    if scale.sum() != 3:\n        scale.fill_(1)\n    return x * scale",
            "scale = torch.ones(3)\ndef f(x):\n    scale.fill_(1)\n    return x * scale",
            "torch.randn(3)",
            "where an earlier call waits for its backward(): the new code writes to",
        ),
        (
            "def f(x):\n    return (x - x.detach()).pow(2).sum() + x.mean()",
            "def f(x):\n    return (x - x).pow(2).sum() + x.mean()",
            "torch.randn(3)",
            "with gradients of gradients (gradients of gradients): gradient 1: values differ",
        ),
    ],
    ids=[
        "a number", "dimensions", "strides", "None", "dtype", "a mask that counts", "one below zero", "fractions", "autocast", "below zero", "a flag",
        "a fraction made whole", "a whole number made a fraction", "infinity", "hooks",
        "loggers", "written again", "gradients of gradients",
    ],
)  # fmt: skip
def test_inputs_of_another_kind_are_limits(
    before: str, after: str, call: str, limit: str, tmp_path: Path
) -> None:
    """What only such inputs tell apart is right for the script: it is said, and refuses nothing."""
    found = judge(proof(before, after, (call,), tmp_path, unaliased=True), Claims(exact=True, unaliased=True))
    assert any(limit in one for one in found.evidence.limits), found


def test_time_that_is_up_too_early_proves_nothing(tmp_path: Path) -> None:
    before = "import time\ndef f(x):\n    time.sleep(0.1)\n    return x * 2"
    found = judge(
        proof(before, before.replace("x * 2", "2 * x"), ("torch.ones(3)",), tmp_path, budget=0.1),
        Claims(exact=True),
    )
    assert found.status == "unproved"
    assert "the time was up before any of these was tried: " in found.why


def test_an_input_on_which_the_old_code_does_not_end_is_left_out(tmp_path: Path) -> None:
    before = (
        "def f(x):\n    x = x * 1\n    while x.abs().max() > 4:\n        x = x / 2\n"
        "    if x.sum() > 0:\n        x = x * 2\n    return x"
    )
    after = before.replace(
        "    if x.sum() > 0:\n        x = x * 2\n", "    x = torch.where(x.sum() > 0, x * 2, x)\n"
    )
    found = judged(before, after, ("torch.randn(3, 4)",), tmp_path)
    assert found.status == "proved", found.why
    assert ENDLESS in found.evidence.notes


def test_a_new_form_that_does_not_end_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "PATIENCE_S", {"watched": 2.0, "new": 2.0})
    before = "def f(x):\n    while 4 < x.abs().max() < 1e9:\n        x = x / 2\n    return x * 1"
    found = judged(before, before.replace(" < 1e9", ""), ("torch.randn(3, 4)",), tmp_path)
    assert found.status == "refused", found.why
    assert "the old code returns, the new one does not end" in found.why


def test_an_expanded_argument_is_written_as_it_is(tmp_path: Path) -> None:
    found = judged(
        "def f(x):\n    y = x * 1\n    if x.sum() > 0:\n        y = y * 2\n    return y",
        "def f(x):\n    y = x * 1\n    y = torch.where(x.sum() > 0, y * 2, y)\n    return y",
        ("torch.randn(3, 1).expand(3, 4)",),
        tmp_path,
    )
    assert found.status == "proved", found


def test_what_nobody_can_look_at_is_left_out(tmp_path: Path) -> None:
    found = judged(
        "def f(x):\n    return x.as_strided((x.size(0) // 3, 2 * x.size(0) - 1), (0, 0))",
        "def f(x):\n    return x.as_strided((x.size(0) // 3, x.size(0) * 2 - 1), (0, 0))",
        ("torch.randn(3)",),
        tmp_path,
    )
    assert found.status == "proved", found
    assert found.evidence.rejected > 0


def test_no_consent_makes_a_new_exception_right(tmp_path: Path) -> None:
    before = "def f(x):\n    if x.sum() > 0:\n        x = x + 1\n    return x"
    raises = "def f(x):\n    x = torch.where(x.sum() > 0, x + missing, x)\n    return x"
    found = judged(before, raises, ("torch.randn(3)",), tmp_path)
    assert found.status == "refused"
    assert found.works is False
    found = judged(before, "def f(x):\n    return x + 1", ("torch.randn(3)",), tmp_path)
    assert found.status == "refused"
    assert found.works is True


@pytest.fixture
def modes_put_back() -> Iterator[None]:
    """Code that leaves a mode entered does so in the script's own call too."""
    yield
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)


# -- what a rewrite changes for others, beside values ------------------------------------------------

KEPT = "class f(nn.Module):\n    def forward(self, x):\n        if x.sum() > 0:\n            x = x * 2\n        {keep}\n        return x + 1"
ALWAYS = "class f(nn.Module):\n    def forward(self, x):\n        x = torch.where(x.sum() > 0, x * 2, x)\n        {keep}\n        return x + 1"


@pytest.mark.parametrize(
    "keep", ["self.seen = x", "self.all = [x]", "f.last = x", "self.__dict__.setdefault('ring', {})[0] = x"]
)
def test_a_copy_that_is_kept_where_an_argument_was_needs_consent(keep: str, tmp_path: Path) -> None:
    claims = Claims(exact=True, unaliased=True)
    given = proof(
        KEPT.format(keep=keep), ALWAYS.format(keep=keep), ("-torch.rand(3, 4)",), tmp_path, unaliased=True
    )
    found = judge(given, claims)
    assert found.status == "needs consent"
    assert found.evidence.needs_consent
    assert "leaves a copy, and whoever holds" in found.why


def test_a_copy_that_is_only_computed_with_is_proved(tmp_path: Path) -> None:
    given = proof(
        KEPT.format(keep="pass"), ALWAYS.format(keep="pass"), ("-torch.rand(3, 4)",), tmp_path, unaliased=True
    )
    assert judge(given, Claims(exact=True, unaliased=True)).status == "proved"


def test_the_new_code_may_not_share_what_the_old_one_did_not(tmp_path: Path) -> None:
    """Not even where it may share less."""
    before = (
        "class f(nn.Module):\n    def forward(self, x):\n        self.seen = x.clone()\n        return x + 1"
    )
    given = proof(before, before.replace("x.clone()", "x"), ("torch.rand(3, 4)",), tmp_path, unaliased=True)
    found = judge(given, Claims(exact=True, unaliased=True))
    assert found.status == "refused", found.why


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        ("y = x * 2\n    y.tag = [1]\n    return y", "y = x * 2\n    return y", "tag"),
        ("y = x * 2\n    y.tag = [1]\n    return y", "y = x * 2\n    y.tag = [2]\n    return y", "tag"),
        (
            "y = (x * 2).requires_grad_()\n    y.register_hook(lambda g: g)\n    return y",
            "y = (x * 2).requires_grad_()\n    return y",
            "hooks",
        ),
        ("torch.set_grad_enabled(False)\n    return x * 2", "return x * 2", "grad mode"),
        ("torch.set_default_dtype(torch.float64)\n    return x * 2", "return x * 2", "default dtype"),
    ],
    ids=["attribute lost", "attribute changed", "hook lost", "grad mode left", "default dtype left"],
)
def test_what_a_tensor_carries_and_what_modes_are_left_is_compared(
    before: str, after: str, what: str, tmp_path: Path, modes_put_back: None
) -> None:
    found = judged(f"def f(x):\n    {before}", f"def f(x):\n    {after}", ("torch.rand(3, 4)",), tmp_path)
    assert found.status == "refused"
    assert what in found.why


def test_a_number_that_became_a_tensor_must_not_be_needed_on_the_way_back(tmp_path: Path) -> None:
    """Who updates the buffer between the call and backward() would get an exception."""
    head = "class f(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.w = nn.Parameter(torch.ones(4))\n        self.register_buffer('level', torch.tensor(2.0))\n    def forward(self, x):\n        "
    before = head + "return (x * self.w * self.level.item()).sum()"
    kept, copied = (before.replace(".item()", f".detach(){copy}") for copy in ("", ".clone()"))
    found = judged(before, kept, ("torch.rand(3, 4)",), tmp_path)
    assert found.status == "refused"
    assert "the way back now needs `self._buffers['level']`" in found.why
    assert judged(before, copied, ("torch.rand(3, 4)",), tmp_path).status == "proved"


WEAK = (
    "import weakref\nlengths = weakref.WeakKeyDictionary()\nclass f(nn.Module):\n    def forward(self, x):\n"
    "        lengths.setdefault(x, 3)\n        if x.sum() > 0:\n            x = x * 2\n"
    "        return x * (1 + lengths.get(x, 0))"
)


def test_a_weak_dictionary_is_asked_for_the_copy(tmp_path: Path) -> None:
    after = WEAK.replace("if x.sum() > 0:\n            x = x * 2", "x = torch.where(x.sum() > 0, x * 2, x)")
    given = proof(WEAK, after, ("-torch.rand(3, 4)",), tmp_path, unaliased=True)
    assert judge(given, Claims(exact=True, unaliased=True)).status == "refused"


def test_state_in_python_that_the_run_has_not_reached_is_tried(tmp_path: Path) -> None:
    head = (
        "class f(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.n = 0\n"
        "    def forward(self, x):\n        self.n += 1\n        y = x * 2\n        if self.n > 1000:\n"
        "            y = y * 0.5\n        "
    )
    before = head + "if y.sum() > 0:\n            y = y * 3\n        return y"
    after = head + "y = torch.where(y.sum() > 0, y * 3, x * 2)\n        return y"
    found = judged(before, after, ("-torch.rand(3, 4)",), tmp_path)
    assert found.status == "refused"
    assert "on n = 1000" in found.why or "on n = 1001" in found.why


CHECKED = (
    "class f(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.sizes = []\n"
    "    def forward(self, x):\n        {before}\n            {check}\n        return x * 2"
)
RAISE = "if x.isnan().any(): raise RuntimeError('NaN')"
IN_GRAPH = (
    "if torch.compiler.is_compiling(): torch._assert_async(~x.isnan().any(), 'NaN')\n"
    "            elif x.isnan().any(): raise RuntimeError('NaN')"
)


@pytest.mark.parametrize(
    ("before", "why"),
    [
        ("self.sizes.append(len(x))\n        if True:", "self.sizes"),
        ("with torch.no_grad():", "the old code leaves grad mode True, the new one False"),
        ("if True:", ""),
    ],
    ids=["an effect", "a mode", "none"],
)
def test_what_was_done_before_a_check_in_the_graph_is_there_after_its_exception(
    before: str, why: str, tmp_path: Path
) -> None:
    old, new = (CHECKED.format(before=before, check=check) for check in (RAISE, IN_GRAPH))
    claims = Claims(exact=True, raises=True)
    found = judge(proof(old, new, ("torch.rand(3, 4)",), tmp_path, raises=True), claims)
    assert found.status == ("refused" if why else "proved"), found.why
    assert why in found.why


ASKED = "class Table:\n    def __init__(self):\n        self.id = 3\n    def {name}(self, x):\n        return {asks}\ntable = Table()\n"


@pytest.mark.parametrize(
    ("name", "asks", "consent"),
    [
        ("find", "id(x) % 1", True),
        ("find", "x.data_ptr() * 0", True),
        ("find", "self.id", False),
        ("__repr__", "id(x)", False),
    ],
    ids=["id", "data_ptr", "an attribute called id", "a text"],
)
def test_code_that_asks_which_tensor_it_has_needs_consent(
    name: str, asks: str, consent: bool, tmp_path: Path
) -> None:
    head = ASKED.format(name=name, asks=asks)
    use = "table.find(x)" if name == "find" else "table.id"
    before = head + f"def f(x):\n    y = x * {use}\n    if x.sum() > 0:\n        x = x * 2\n    return x + y"
    after = before.replace("if x.sum() > 0:\n        x = x * 2", "x = torch.where(x.sum() > 0, x * 2, x)")
    given = proof(before, after, ("-torch.rand(3, 4)",), tmp_path, unaliased=True)
    found = judge(given, Claims(exact=True, unaliased=True))
    assert found.status == ("needs consent" if consent else "proved"), found.why


def test_the_compiled_form_is_compared_on_every_branch_although_the_search_took_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    around = Search.around

    def slow(search: Search, *rest: Any, **more: Any) -> None:
        around(search, *rest, **more)
        search.comparing.budget.deadline = clock() - 0.001

    monkeypatch.setattr(Search, "around", slow)
    found = judged(OLD, OLD.replace("if x", f"if {EAGER} and x"), ("torch.rand(3)",), tmp_path)
    assert found.status == "refused"
    assert "compiled by Dynamo" in found.why


def test_what_a_proof_needs_gets_the_time_that_there_is_on_top() -> None:
    """A slow call may take the whole budget before the first edge value is tried."""
    allowed = Budget(1.0, more_s=2.0)
    comparing = Comparing(Tally("f", [], Claims(exact=True)), allowed, Allowance())
    allowed.deadline = clock() - 2.5
    assert comparing.too_late("other shapes", needed=False)
    assert not comparing.too_late("edge values", needed=True)
    assert allowed.more_s == 0
    allowed.deadline = clock() - 2.5
    assert comparing.too_late("edge values", needed=True)
    assert list(comparing.tally.untried) == ["edge values"]


@pytest.mark.parametrize(("drawn", "status"), [(0, "proved"), (4, "refused")])
def test_a_gpu_that_a_backward_pass_starts_is_no_difference(
    drawn: int, status: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is a GPU it starts CUDA, also for tensors that are all on the CPU."""
    started: list[bool] = []
    grad, state = torch.autograd.grad, torch.tensor([*range(8), *[0] * 8], dtype=torch.uint8)

    def starts(*args: Any, **kwargs: Any) -> Any:
        started.append(True)
        return grad(*args, **kwargs)

    def now() -> list[torch.Tensor]:
        state[8] += drawn
        return [state.clone()]

    monkeypatch.setattr(torch.autograd, "grad", starts)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: bool(started))
    monkeypatch.setattr(torch.cuda, "get_rng_state_all", now)
    monkeypatch.setattr(torch.cuda, "set_rng_state_all", lambda _states: None)
    new = OLD.replace("if x.max() > 8:\n        x = x * 2", "x = torch.where(x.max() > 8, x * 2, x)")
    found = judged(OLD, new, ("torch.rand(3)",), tmp_path)
    assert found.status == status, found.why


EAGER = "not torch.compiler.is_compiling()"
OLD = "def f(x):\n    if x.max() > 8:\n        x = x * 2\n    return x + 1"


@pytest.mark.parametrize(
    "new",
    [
        OLD.replace("if x", f"eager = {EAGER}\n    if eager and x"),
        OLD.replace("if x.max() > 8:", f"if {EAGER}:\n      if x.max() > 8:"),
        OLD.replace("if x.max() > 8", "if False if torch.compiler.is_compiling() else x.max() > 8"),
        OLD.replace("if x", "if torch.compiler.is_compiling():\n        return x + 1\n    if x"),
        OLD.replace("if x", f"if {EAGER}:\n        pass\n    else:\n        return x + 1\n    if x"),
        "def f(x):\n    for _ in (1,):\n        if torch.compiler.is_compiling():\n            break\n        if x.max() > 8:\n            x = x * 2\n    return x + 1",
    ],
)
def test_a_condition_that_only_eager_code_comes_to_is_driven(new: str, tmp_path: Path) -> None:
    found = judged(OLD, new, ("torch.rand(3)",), tmp_path)
    assert found.status == "refused"
    assert "compiled by Dynamo" in found.why


SAVES = """\
class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, n):
        ctx.n = n
        return x * 1
    @staticmethod
    def backward(ctx, grad):
        raise {error}(f"{{ctx.n}} tensors\\nwere saved")
def f(x):
    if x.max() > 8:
        x = x * 2
    return Fails.apply(x, {n})"""


@pytest.mark.parametrize(("error", "status"), [("RuntimeError", "proved"), ("ValueError", "refused")])
def test_a_backward_pass_that_fails_fails_with_the_same_error(
    error: str, status: str, tmp_path: Path
) -> None:
    """What its text counts is no result."""
    old = SAVES.format(error="RuntimeError", n=1)
    new = old.replace("if x.max() > 8:\n        x = x * 2", "x = torch.where(x.max() > 8, x * 2, x)")
    new = new.replace("(x, 1)", "(x, 2)")
    if error != "RuntimeError":
        new = new.replace("Fails.apply(x, 2)", "Fails.apply(x, 2) + Other.apply(x) * 0")
        other = "class Other(torch.autograd.Function):\n    forward = staticmethod(lambda ctx, x: x * 1)\n"
        other += "    @staticmethod\n    def backward(ctx, grad):\n        raise ValueError\n"
        old, new = other + old, other + new
    found = judged(old, new, ("torch.rand(3)", "20 * torch.rand(3)"), tmp_path)
    assert found.status == status, found.why
    assert "\n" not in found.why


ELSEWHERE = """\
def factor():
    return 2 if torch.compiler.is_compiling() else 3
def f(x):
    y = x * factor()
    if y.max() > 8:
        y = y + 1
    return y"""


@pytest.mark.parametrize(
    ("select", "status"),
    [
        ("torch.where(y.max() > 8, y + 1, y)", "proved"),
        ("y if torch.compiler.is_compiling() else torch.where(y.max() > 8, y + 1, y)", "refused"),
    ],
)
def test_what_the_compiler_does_otherwise_with_both_forms_is_no_difference(
    select: str, status: str, tmp_path: Path
) -> None:
    new = ELSEWHERE.replace("if y.max() > 8:\n        y = y + 1", f"y = {select}")
    found = judged(ELSEWHERE, new, ("torch.rand(3)", "20 * torch.rand(3)"), tmp_path)
    assert found.status == status, found.why
    assert any(note.startswith(OTHERWISE) for note in found.evidence.notes or ())


ASKS = f"""\
def f(x, mask=None, flag=False):
    if mask is None and {EAGER}:
        mask = x
    if flag:
        raise NotImplementedError
    if x.max() > 8:
        x = x * 2
    return x + 1"""


def test_a_question_that_the_old_form_asks_as_well_leaves_its_other_conditions_kept(tmp_path: Path) -> None:
    where = "x = torch.where(x.max() > 8, x * 2, x)"
    new = ASKS.replace("if x.max() > 8:\n        x = x * 2", where)
    found = judged(ASKS, new, ("torch.rand(3)", "20 * torch.rand(3)"), tmp_path)
    assert found.status == "proved", found.why
    assert {one["condition"] for one in found.evidence.branches or ()} == {"x.max() > 8"}


def test_a_condition_that_moves_behind_a_question_of_the_old_form_is_driven(tmp_path: Path) -> None:
    branch = "if x.max() > 8:\n        x = x * 2"
    moved = "mask = x\n        if x.max() > 8:\n            x = x * 2"
    new = ASKS.replace(f"    {branch}\n", "").replace("mask = x", moved)
    found = judged(ASKS, new, ("torch.rand(3)",), tmp_path)
    assert found.status == "refused", found.why
    assert "compiled by Dynamo" in found.why


def _refuses_a_relu_that_loses_nan(tmp_path: Path) -> None:
    found = judged(
        "def f(x):\n    return torch.relu(x)",
        "def f(x):\n    return torch.where(x > 0, x, torch.zeros_like(x))",
        ("torch.randn(3, 4)",),
        tmp_path,
    )
    assert found.status == "refused", (found.why, found.evidence)
    assert "NaN" in found.why


def test_all_edge_values_are_compared_although_the_time_is_up_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    around = Search.around

    def slow(search: Search, *rest: Any, **more: Any) -> None:
        search.comparing.budget.deadline = clock() + 0.02
        around(search, *rest, **more)

    monkeypatch.setattr(Search, "around", slow)
    _refuses_a_relu_that_loses_nan(tmp_path)


def test_gradients_and_two_calls_in_a_row_are_compared_although_the_time_is_up_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin(budget: Budget, _call: int) -> None:
        budget.deadline = clock() - 1

    monkeypatch.setattr(Budget, "begin", begin)
    given = proof(*CLAMP, ("torch.randn(3, 4)",), tmp_path)
    kinds = given["functions"][0]["kinds"]
    assert kinds["gradients"]
    assert kinds["sequences"]


def test_nan_is_tried_behind_a_number_although_the_time_is_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Comparing, "too_late", lambda _, what, needed=True: what == BEHIND and not needed)
    before = "def f(x, n):\n    if n > 3:\n        x = torch.relu(x)\n    return x * 2"
    after = before.replace("n > 3", "not n <= 3").replace("relu(x)", "where(x > 0, x, torch.zeros_like(x))")
    found = judged(before, after, ("torch.rand(3, 4), 1",), tmp_path)
    assert found.status == "refused", (found.why, found.evidence)


def test_edge_values_go_on_where_the_time_of_another_kind_is_up_as_it_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock is asked twice, before an input is made and before it is compared."""
    asked: Counter[str] = Counter()

    def up(_comparing: Comparing, what: str, needed: bool = True) -> bool:
        asked[what] += 1
        return not needed and asked[what] > 1

    monkeypatch.setattr(Comparing, "too_late", up)
    _refuses_a_relu_that_loses_nan(tmp_path)


def test_what_is_other_code_once_it_is_compiled_is_compiled_for_edge_values_although_the_time_is_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compare = compiled.compare_compiled

    def late(comparing: Comparing, bench: Bench, plain: Conditions) -> None:
        comparing.budget.deadline = clock()
        compare(comparing, bench, plain)

    monkeypatch.setattr(compiled, "compare_compiled", late)
    before = "def f(x):\n    return x * 0.5"
    after = f"{before} if {EAGER} else (x * 0.5).clamp(max=1e30)"
    given = proof(before, after, ("torch.rand(3, 4)",), tmp_path, compiled_only=True)
    found = judge(given, Claims(exact=True, compiled_only=True))
    assert found.status == "refused", (found.why, found.evidence)
    assert "compiled by Dynamo, on " in found.why


def test_what_only_a_message_asks_for_need_not_go_both_ways(tmp_path: Path) -> None:
    """Outside of compiled code the forms are the same by their text, and in it the message is not written."""
    before = "def f(x, n):\n    print('many' if n > 90000 else 'few')\n    return x + 1"
    after = before.replace("print", f"if {EAGER}: print")
    given = proof(before, after, ("torch.rand(3), 2",), tmp_path, silent=True, compiled_only=True)
    assert given["functions"][0]["by_structure"] is True
    assert given["functions"][0]["kinds"]["compiled by Dynamo"]
    found = judge(given, Claims(exact=True, silent=True, compiled_only=True))
    assert found.status != "unproved"  # who runs tests listens to messages, which is asked for consent
    assert found.evidence.not_driven == ()


WRITES = """\
def f(x):
    y = x * 2
    if y.sum() > 0:
        y.sub_(9)
        y.neg_()
    return y"""
WRITTEN = """\
def f(x):
    y = x * 2
    c = y.sum() > 0
    y.copy_(torch.where(c, y.sub(9), y))
    y.copy_(torch.where(c, y.neg(), y))
    return y"""


@pytest.mark.parametrize(
    ("after", "status"),
    [
        (WRITTEN, "proved"),
        (WRITTEN.replace("y.sub(9), y)", "y.sub(9), 0)"), "refused"),
        # Asked again, the condition sees what was written.
        (WRITTEN.replace("where(c", "where(y.sum() > 0").replace("    c = y.sum() > 0\n", ""), "refused"),
        # A copy in the place of what others hold.
        (WRITTEN.replace("y.copy_(torch.where(c, y.neg(), y))", "y = y + c"), "refused"),
    ],
)
def test_a_write_in_every_call_is_compared_with_the_branch_that_writes(
    after: str, status: str, tmp_path: Path
) -> None:
    with torch.no_grad():
        found = judged(WRITES, after, ("torch.rand(3, 4)", "-torch.rand(3, 4)"), tmp_path)
    assert found.status == status, found.why


def looped(element: str, over: str, columns: int = 4) -> str:
    start = " " * columns
    return f"[]\n{start}for k in {over}:\n{start}    found.append({element})"


LISTED = """\
import numpy as np

def f(x, n=3):
    noise = np.random.rand(2)
    found = [x * k for k in range(n) if k]
    return sum(found) * float(noise[0])"""
LOOPED = LISTED.replace(
    "[x * k for k in range(n) if k]",
    "[]\n    for k in range(n):\n        if k:\n            found.append(x * k)",
)


FIRST = "def f(x):\n    return torch.stack([x * k for k in (1, 2)], dim=0).sum() + x"
SECOND = "def f(x):\n    return x.add_(1).sum() + sum([x.sum() * k for k in (1, 2)])"


def with_parts(before: str) -> str:
    """The comprehension made in a loop before the statement that holds it."""
    start, end = before.index("["), before.index("]") + 1
    element, _, over = before[start + 1 : end - 1].partition(" for k in ")
    head, _, rest = before.partition("\n    ")
    loop = f"parts = {looped(element, over).replace('found', 'parts')}"
    return f"{head}\n    {loop}\n    {rest.replace(before[start:end], 'parts')}"


def test_a_comprehension_that_is_evaluated_first_may_be_made_before_its_statement(tmp_path: Path) -> None:
    given = proof(FIRST, with_parts(FIRST), ("torch.rand(3)",), tmp_path)
    assert given["functions"][0]["by_structure"] is True
    assert judge(given, Claims(exact=True)).status == "proved"
    shadowed = FIRST.replace("torch.stack", "sum").replace(", dim=0", "").replace("(x)", "(x, sum=sum)")
    given = proof(shadowed, with_parts(shadowed), ("torch.rand(3)",), tmp_path)
    assert not given["functions"][0]["by_structure"]


def test_a_name_that_the_function_has_for_something_else_may_be_another_one_in_the_loop(
    tmp_path: Path,
) -> None:
    new = SHARED.replace(
        "[x * k for k in (2, 3)]", looped("x * k_1", "(2, 3)").replace("for k in", "for k_1 in")
    )
    given = proof(SHARED, new, ("torch.rand(3)",), tmp_path)
    assert given["functions"][0]["by_structure"] is True
    given = proof(SHARED, new.replace("x * k_1", "x * k"), ("torch.rand(3)",), tmp_path, budget=10)
    assert not given["functions"][0]["by_structure"]
    assert judge(given, Claims(exact=True)).status == "refused"


def test_a_comprehension_that_is_evaluated_second_sees_what_the_first_did(tmp_path: Path) -> None:
    given = proof(SECOND, with_parts(SECOND), ("torch.rand(3)",), tmp_path)
    assert not given["functions"][0]["by_structure"]
    assert judge(given, Claims(exact=True)).status == "refused"


def test_a_comprehension_is_the_loop_that_it_means_and_numpy_draws_otherwise_in_compiled_code(
    tmp_path: Path,
) -> None:
    given = proof(LISTED, LOOPED, ("torch.rand(3)",), tmp_path)
    assert given["functions"][0]["by_structure"] is True
    found = judge(given, Claims(exact=True))
    assert found.status == "proved", found.why
    assert found.evidence.kinds["compiled by Dynamo"] == 1


LAMBDAS = """\
def f(x):
    found = [lambda: x * k for k in (1, 2)]
    k = 5
    return found[0]()"""
CAUGHT = """\
def f(x):
    found = []
    try:
        found = [x / (1 // k) for k in (1, 0)]
    except ZeroDivisionError:
        pass
    return x + len(found)"""
SHARED = """\
def f(x, k=1):
    found = [x * k for k in (2, 3)]
    return found[0] * k"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (LISTED, LOOPED.replace("if k", "if not k")),
        (LISTED, LOOPED.replace("float(noise[0])", "float(noise[0] + 1)")),
        (LAMBDAS, LAMBDAS.replace("[lambda: x * k for k in (1, 2)]", looped("lambda: x * k", "(1, 2)"))),
        (CAUGHT, CAUGHT.replace("[x / (1 // k) for k in (1, 0)]", looped("x / (1 // k)", "(1, 0)", 8))),
        (SHARED, SHARED.replace("[x * k for k in (2, 3)]", looped("x * k", "(2, 3)"))),
    ],
)
def test_a_loop_that_does_something_else_is_not_proved_by_the_text(
    before: str, after: str, tmp_path: Path
) -> None:
    given = proof(before, after, ("torch.rand(3)",), tmp_path, budget=10)
    assert not given["functions"][0]["by_structure"]
    assert judge(given, Claims(exact=True)).status == "refused"


def test_what_is_no_message_is_not_proved_by_the_text(tmp_path: Path) -> None:
    before = "def f(x):\n    x.add_(1)\n    return x * 2"
    after = before.replace("x.add", f"if {EAGER}: x.add")
    given = proof(before, after, ("torch.rand(3)",), tmp_path, silent=True)
    assert not given["functions"][0]["by_structure"]
    assert judge(given, Claims(exact=True, silent=True)).status == "refused"


EXPERTS = """\
class f(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 3
        self.experts = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        out = torch.zeros_like(x)
        mask = F.one_hot(x.argmax(-1).clamp(max=2), num_classes=self.count).T
        for e in (mask.sum(dim=-1) > 0).nonzero(as_tuple=True)[0].tolist():
            rows = torch.where(mask[e])[0]
            out.index_add_(0, rows, self.experts[e](x[rows]))
        return out"""
ALL_EXPERTS = EXPERTS.replace("(mask.sum(dim=-1) > 0).nonzero(as_tuple=True)[0].tolist()", "range(len(mask))")


def judged_experts(after: str, folder: Path, *, grad: bool = False, **claims: Any) -> Verdict:
    with torch.set_grad_enabled(grad):
        given = proof(EXPERTS, after, ("torch.randn(3, 4)",), folder, no_gradients=True, budget=20, **claims)
    return judge(given, Claims(exact=True, no_gradients=True, **claims))


def test_a_skip_that_no_turn_of_the_old_loop_can_reach_need_not_be_driven(tmp_path: Path) -> None:
    """It goes over the turns that are hit: none of them has no rows."""
    turn = "            rows = torch.where(mask[e])[0]\n"
    before = EXPERTS.replace(turn, f"{turn}            if rows.numel() == 0:\n                continue\n")
    (rule,) = [rule for rule in RULES if rule.name == "empty-turn"]
    (site, *_) = sites(Example(before, calls=("torch.randn(3, 4)",)))
    answer = rule.rewrite(site)
    assert isinstance(answer, Rewrite)
    assert answer.never == ("rows.numel() == 0",)
    said: dict[str, Any] = {"no_gradients": True, "numbers": ("count",)}
    with torch.no_grad():
        given = proof(before, ALL_EXPERTS, ("torch.randn(3, 4)",), tmp_path, budget=20, **said)
    claims = Claims(exact=True, **said)
    assert judge(given, replace(claims, never=answer.never)).status == "proved"
    found = judge(given, claims)
    assert found.why == "no input was found for which `rows.numel() == 0` is true"
    # What it says is of one condition, and of one way.
    assert judge(given, replace(claims, never=("rows.numel() == 1",))).status == "unproved"


def test_a_gradient_of_a_parameter_is_not_wanted_where_autograd_is_off(tmp_path: Path) -> None:
    found = judged_experts(ALL_EXPERTS, tmp_path, numbers=("count",))
    assert found.status == "proved", found.why
    assert found.evidence.kinds["edge values with gradients"]


def test_a_gradient_of_a_parameter_is_wanted_where_autograd_is_on(tmp_path: Path) -> None:
    found = judged_experts(ALL_EXPERTS, tmp_path, grad=True, numbers=("count",))
    assert found.status == "refused"
    assert "only the new code gives one" in found.why


def test_a_count_that_other_objects_were_made_for_is_a_limit_where_the_rewrite_names_it(
    tmp_path: Path,
) -> None:
    (limit,) = judged_experts(ALL_EXPERTS, tmp_path, numbers=("count",)).evidence.limits or ()
    assert "with another `count`" in limit
    assert "IndexError" in limit
    unnamed = judged_experts(ALL_EXPERTS, tmp_path)
    assert unnamed.status == "refused"
    assert "IndexError" in unnamed.why


def test_another_result_is_no_limit_of_a_count(tmp_path: Path) -> None:
    after = EXPERTS.replace("return out", "return out if self.count == 3 else out + 1")
    found = judged_experts(after, tmp_path, numbers=("count",))
    assert found.status == "refused"
    assert "count = " in found.why


LENGTHS = """\
def f(ids, lengths=None):
    if lengths is None:
        lengths = (ids != 0).sum(1)
    x = ids.float()
    if lengths.max() > ids.shape[1]:
        x = x * 2
    return x + 1"""


def test_what_is_asked_of_an_argument_that_is_left_out_is_driven_by_giving_it(tmp_path: Path) -> None:
    """The lengths that the function counts itself are never too large: only a caller's can be."""
    right = LENGTHS.replace("if lengths.max() > ids.shape[1]:\n        x = x * 2", "{}")
    calls = ("torch.ones(2, 3, dtype=torch.long)",)
    found = judged(LENGTHS, right.format("x = torch.where(lengths.max() > 3, x * 2, x)"), calls, tmp_path)
    assert found.status == "refused"  # at another size
    found = judged(
        LENGTHS, right.format("x = torch.where(lengths.max() > ids.shape[1], x * 2, x)"), calls, tmp_path
    )
    assert found.status == "proved", found.why
    assert found.evidence.kinds["arguments left out"] >= 1
    found = judged(
        LENGTHS, right.format("x = torch.where(lengths.max() > ids.shape[1], x * 3, x)"), calls, tmp_path
    )
    assert found.status == "refused"
    assert "argument lengths filled with 10000" in found.why


SHORTCUT = """\
def f(x, mask=None, flag=False):
    if mask is None:
        mask = torch.ones(x.shape[0])
        mask = mask.to(torch.bool)
    if {}mask.all():
        mask = None
    if flag:
        raise NotImplementedError
    return x * 1 if mask is None else x * mask.reshape(-1, 1)"""


def test_a_mask_that_is_put_away_is_given_as_the_function_made_it(tmp_path: Path) -> None:
    """And what else the function asks is kept: only what compiled code does not ask any more is driven."""
    new = SHORTCUT.format(f"{EAGER} and ")
    found = judged(SHORTCUT.format(""), new, ("torch.rand(2, 3)",), tmp_path)
    assert found.status == "proved", found.why
    assert [one["condition"] for one in found.evidence.branches or ()] == ["mask.all()"]
    wrong = new.replace("x * mask", "x * 2 * mask")
    assert judged(SHORTCUT.format(""), wrong, ("torch.rand(2, 3)",), tmp_path).status == "refused"


@pytest.mark.parametrize(
    "new",
    [
        "def f(x):\n    if not torch.compiler.is_compiling() and x.max() > 8:\n        return x * 2 + 1\n    return x + 1",
        "def f(x):\n    if torch.compiler.is_compiling() or x.max() > 8:\n        x = x * 2\n    return x + 1",
    ],
    ids=["leaves", "or"],
)
def test_a_question_beside_a_condition_leaves_the_condition_to_be_driven(new: str, tmp_path: Path) -> None:
    found = judged(OLD, new, ("torch.rand(3)",), tmp_path)
    assert found.status == "refused", found.why
    assert "compiled by Dynamo" in found.why


def test_an_argument_is_given_before_any_parameter_gets_another_value(tmp_path: Path) -> None:
    """A model has many parameters, and what they are may decide nothing: the time would be up before."""
    before = (
        "class f(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.layer = nn.Linear(3, 3)\n"
        "    def forward(self, x, lengths=None):\n"
        "        if lengths is None:\n            lengths = (x != 0).sum(1)\n"
        "        x = self.layer(x)\n"
        "        if lengths.max() > x.shape[1]:\n            x = x * 2\n        return x"
    )
    after = before.replace(
        "if lengths.max() > x.shape[1]:\n            x = x * 2",
        "x = torch.where(lengths.max() > x.shape[1], x * 2, x)",
    )
    found = judged(before, after, ("torch.rand(2, 3)",), tmp_path)
    assert found.status == "proved", found.why
    assert found.evidence.kinds["arguments left out"] >= 1
    assert "values of parameters" not in found.evidence.kinds


def test_what_all_parameters_decide_together_is_driven(tmp_path: Path) -> None:
    """A divergence is small only where mean and variance are: no parameter alone makes it so."""
    before = (
        "class f(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.mean, self.spread = nn.Linear(4, 2), nn.Linear(4, 2)\n"
        "    def forward(self, x):\n        kl = self.mean(x).pow(2).mean() + self.spread(x).abs().mean() + x.abs().mean() * 0\n"
        "        if kl < 0.01:\n            kl = kl * 0\n        return kl"
    )
    after = before.replace(
        "if kl < 0.01:\n            kl = kl * 0", "kl = torch.where(kl < 0.01, kl * 0, kl)"
    )
    found = judged(before, after, ("torch.rand(3, 4) + 1",), tmp_path)
    assert found.status == "proved", found.why
    assert found.evidence.kinds["values of parameters"] >= 1
