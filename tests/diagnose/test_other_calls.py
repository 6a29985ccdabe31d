"""What is said of code that several calls or objects share, and of what another change at the same call hides."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from warm_scanning import WarmScans, coded

from breakscope.report.model import Report

pytestmark = pytest.mark.torch
Scan = Callable[..., Report]

NET = """
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = torch.nn.Linear(4, 4)

        def forward(self, x):
            return self.fc(x).relu()
"""


@pytest.fixture
def scan(warm: WarmScans, tmp_path: Path) -> Scan:
    return lambda source, *options: warm.scan(tmp_path, source, *options)


def said(report: Report, code: str) -> str:
    (finding,) = coded(report, code)
    return str(finding.advice)


def test_a_target_network_is_not_said_to_be_frozen_between_calls(scan: Scan) -> None:
    report = scan(
        NET
        + """
    online, target = Net(), Net()
    target.requires_grad_(False)
    online.compile()
    target.compile()
    x = torch.randn(3, 4)
    for _ in range(2):
        (online(x) - target(x)).pow(2).mean().backward()
"""
    )
    assert "or it is that of another object which shares this code" in said(report, "BS205")


def test_a_size_of_one_is_told_of_the_call_that_had_it(scan: Scan) -> None:
    report = scan(
        NET
        + """
    net = Net()
    net.compile()

    @torch.no_grad()
    def act(state):
        return net(state.unsqueeze(0))

    @torch.no_grad()
    def learn(next_states):
        return net(next_states)

    act(torch.randn(4))
    learn(torch.randn(4, 4))
"""
    )
    text = said(report, "BS201")
    assert "dimension 0 of x came with 1 in the call at script.py:17" in text
    assert "next_states" not in text


def test_a_tuple_of_one_batch_is_no_list_of_items(scan: Scan) -> None:
    report = scan(
        """
        import torch

        @torch.compile
        def both(inputs):
            mel, audio = inputs
            return mel.sum(1) + audio.sum(1)

        for batch in (2, 1):
            both((torch.randn(batch, 4), torch.randn(batch, 6)))
        """
    )
    text = said(report, "BS201")
    assert "drop_last=True" in text
    assert "these multiply" not in text


def test_a_slice_that_is_laid_out_otherwise_is_no_new_size(scan: Scan) -> None:
    """The version for any length is there, and fails at the strides alone."""
    report = scan(
        """
        import torch

        @torch.compile
        def last(ids):
            return ids.cumsum(1)[:, -1]

        ids = torch.zeros(1, 2, dtype=torch.long)
        for _ in range(9):
            kept = ids if ids.size(1) <= 8 else ids[:, -8:]
            ids = torch.cat([ids, last(kept)[:, None]], 1)
        """
    )
    (size,) = coded(report, "BS201")
    assert size.guard is not None
    assert size.guard.values == ("2", "3")
    assert said(report, "BS214").startswith("The strides of ids do not follow its sizes")


def test_what_hides_the_number_of_turns_names_them(scan: Scan) -> None:
    report = scan(
        """
        import torch

        class Sampler:
            def __init__(self, steps):
                self.steps, self.map = steps, list(range(steps))

            def loop(self, x):
                for i in range(self.steps):
                    x = (x + torch.tensor(self.map)[i]).sin()
                return x

        for steps in (3, 5):
            torch.compile(Sampler(steps).loop)(torch.ones(2))
        """
    )
    assert "A loop over self.steps (line 9) is unrolled" in said(report, "BS211")


def test_a_number_beside_that_of_turns_is_not_all_that_changed(scan: Scan) -> None:
    report = scan(
        """
        import torch

        @torch.compile
        def generate(x, n, top_k):
            for _ in range(n):
                x = torch.where(x < x.topk(min(top_k, x.size(-1))).values[:, -1:], x - 1, x).sin()
            return x

        for n, k in ((3, 5), (4, 5), (6, 7), (7, 7)):
            generate(torch.randn(2, 16), n, k)
        """
    )
    (number,) = [one for one in coded(report, "BS207") if one.guard and one.guard.source == "top_k"]
    assert str(number.advice).endswith(
        "See to n first: it changes more often, a version for each."
    ) or re.search(r"n changed at the same call", str(number.advice))


def test_a_second_number_of_turns_is_not_expected(scan: Scan) -> None:
    report = scan(
        """
        import torch

        @torch.compile
        def turn(x, n):
            for _ in range(n):
                x = x.sin()
            return x

        for n in (6, 8):
            turn(torch.randn(3), n)
        """
    )
    (turns,) = coded(report, "BS207")
    assert turns.expected is None


def test_a_number_that_becomes_numpys_is_to_begin_as_such(scan: Scan) -> None:
    report = scan(
        """
        import numpy as np
        import torch

        class Tree:
            def __init__(self):
                self.max = 1

            def update(self, values):
                self.max = max(np.max(values), self.max)
                return values + 1

        update = torch.compile(Tree().update)
        for _ in range(3):
            update(np.array([2.5, 0.7], dtype=np.float32))
        """
    )
    assert said(report, "BS209").startswith("self.max is a number of Python's first and numpy's later")


def test_a_list_of_what_an_index_of_numpys_picks_is_made_by_its_tolist(scan: Scan) -> None:
    report = scan(
        """
        import numpy as np
        import torch

        @torch.compile
        def pick(tokens, scores):
            best = [np.argmax(score) for score in scores]
            return [token[i].tolist() for i, token in zip(best, tokens)]

        pick([[torch.arange(3), torch.arange(4)]], [[0.1, 0.5]])
        """
    )
    assert said(report, "BS102").startswith("Keep the values in a tensor")


def test_a_position_that_bounds_a_slice_is_still_a_number_of_data(scan: Scan) -> None:
    report = scan(
        """
        import torch

        @torch.compile
        def cut(row, end):
            return row[1 : (row == end).nonzero()[0, 0]]

        cut(torch.tensor([1, 2, 3, 0]), 0)
        """
    )
    assert "mask by position, torch.arange(size) < (row == end).int().argmax(-1)" in said(report, "BS105")


def test_a_deque_is_no_list_while_tracing(scan: Scan) -> None:
    report = scan(
        """
        import torch
        from collections import deque

        @torch.compile
        def finish(rewards):
            returns = deque()
            for reward in rewards:
                returns.appendleft(reward)
            return torch.tensor(returns)

        finish([1.0, 2.0])
        """
    )
    assert said(report, "BS306").endswith(
        "torch makes no tensor of a deque, as eager code does: give it a list of that, list(…)."
    )


def test_a_size_behind_a_transpose_is_of_another_dimension(scan: Scan) -> None:
    report = scan(
        """
        import torch

        @torch.compile
        def forward(x, table):
            x = x.transpose(0, 1)
            return x + table[: x.shape[0]]

        table = torch.ones(9, 1)
        for batch in (2, 3):
            forward(torch.ones(batch, 4), table)
        """
    )
    text = said(report, "BS201")
    assert "maybe_mark_dynamic" in text
    assert "cuts by it" not in text


def test_types_that_a_librarys_own_code_passes_are_no_callers(scan: Scan, tmp_path: Path) -> None:
    package = tmp_path / "site-packages" / "diffusing"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "import torch\n\nclass Scheduler:\n    def step(self, x, first):\n        x = x * 2\n"
        "        torch._dynamo.graph_break()\n        return self.part(x, first)\n\n"
        "    def part(self, x, first):\n        return self.inner(x, 3 if first else x)\n\n"
        "    def inner(self, x, timestep):\n        torch._dynamo.graph_break()\n        return x * timestep\n"
    )
    report = scan(
        """
        import sys
        sys.path.insert(0, "site-packages")
        import torch
        from diffusing import Scheduler

        step = torch.compile(Scheduler().step)
        for first in (True, False):
            step(torch.ones(3), first)
        """
    )
    found = [str(one.advice) for one in report.findings if one.guard and one.guard.source == "timestep"]
    assert found
    for text in found:
        assert text.startswith("diffusing's own code passes timestep in more than one type")


def test_a_check_gives_nothing_its_size(scan: Scan) -> None:
    """An ``if …: raise`` selects nothing, and what a function is called with no selection inside of it makes."""
    report = scan(
        """
        import torch

        class Spline(torch.nn.Module):
            def __init__(self, bins):
                super().__init__()
                self.lin = torch.nn.Linear(4, bins)

            def forward(self, x):
                p = self.lin(x)
                if torch.min(x) < 0:
                    raise ValueError("outside")
                return self.cdf(x, p)

            def cdf(self, x, p):
                if torch.max(x) > 1:
                    raise ValueError("outside")
                return (x * p.softmax(-1)[:, :4]).sigmoid()

        class Flow(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.parts = torch.nn.ModuleList([Spline(22), Spline(8)])

            def sample(self, n, context):
                x = torch.rand(n * context.shape[0], 4)
                for part in self.parts:
                    x = part(x)
                return x

        sample = torch.compile(Flow().sample)
        with torch.no_grad():
            for n in (5, 8, 3):
                sample(n, torch.randn(3, 2))
        """
    )
    sizes = coded(report, "BS201")
    assert sizes
    for one in sizes:
        assert "gives it its size" not in str(one.advice)
    (given,) = [one for one in sizes if one.caused_by is None and one.guard and one.guard.source == "x"]
    assert str(given.advice).startswith("The size of x changed with n of the call")


def test_the_mode_that_code_changes_itself_is_not_the_callers(scan: Scan) -> None:
    """Another compiled function ran the same code before: the call that changed the mode always comes in one."""
    report = scan(
        """
        import torch

        class Net(torch.nn.Module):
            def forward(self, x):
                print(end="")
                return half(x)

        def half(x):
            return x * 0.5

        net = Net()

        @torch.compile
        def loss(x):
            first = net(x)
            with torch.no_grad():
                second = net(x)
            return (first - second).mean()

        train = torch.compile(lambda x: net(x).sum())
        x = torch.randn(2, 4, requires_grad=True)
        train(x)
        loss(x)
        """
    )
    found = coded(report, "BS212")
    assert found
    for one in found:
        assert "came in the other mode" not in str(one.advice)


def test_what_the_model_itself_sets_anew_goes_on_without_the_break(scan: Scan) -> None:
    report = scan(
        """
        import torch

        class Head(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.grids = [torch.zeros(1)]

            def forward(self, x):
                grid = self.made(x)
                return self.loss(x.mean() + grid.mean())

            def made(self, x):
                if self.grids[0].shape[1:] != x.shape[1:]:
                    self.grids[0] = torch.ones(1, *x.shape[1:])
                return self.grids[0]

            def loss(self, x):
                return x * float(x.sum())

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.head = Head()

            def forward(self, x):
                return self.head(x * 2)

        net = torch.compile(Model())
        for _ in range(3):
            net(torch.ones(2, 8, 8))
        """
    )
    (found,) = coded(report, "BS206")
    assert "Goes with" not in str(found.advice)
    assert "(1, 3 dimensions were seen)" in str(found.advice)


def test_a_mask_that_draws_numbers_is_given_a_name_first(scan: Scan) -> None:
    report = scan(
        """
        import torch

        @torch.compile
        def verify(tokens, accept):
            rejected = (torch.rand_like(accept) > accept).nonzero()
            if rejected.shape[0] == 0:
                return tokens + 1
            return tokens * 2

        verify(torch.arange(4), torch.rand(4))
        """
    )
    (found,) = coded(report, "BS105")
    assert str(found.advice).endswith(
        "draws anew wherever it is written: give it a name first, and use that."
    )


def test_the_part_of_a_loop_is_what_computes_in_it(scan: Scan) -> None:
    """Not what is only told of its turns; and a turn of many modules is a part as a whole."""
    report = scan(
        """
        import torch

        lin = torch.nn.Linear(4, 4)

        def step(x):
            return lin(x).relu()

        @torch.compile
        def decode(x, callback=lambda _: _):
            for _ in range(3):
                x = step(x)
                print(end="")
                callback(x)
            return x

        decode(torch.randn(2, 4))
        """
    )
    (found,) = coded(report, "BS301")
    assert "compile the loop's body (step) instead of the loop" in str(found.advice)


def test_what_is_made_of_a_selection_is_not_what_a_ranking_indexes(scan: Scan) -> None:
    report = scan(
        """
        import torch

        @torch.compile
        def assign(inside, cost):
            keep = inside.any(0)
            cost = cost[:, keep]
            match = torch.zeros_like(cost)
            for i in range(2):
                _, at = torch.topk(cost[i], k=2, largest=False)
                match[i][at] = 1
            return match.sum(0)

        assign(torch.rand(3, 12) > 0.2, torch.rand(3, 12))
        """
    )
    said = [str(one.advice) for one in coded(report, "BS105")]
    assert any("and make match of all as well" in advice for advice in said)
    assert not any("index all by that" in advice for advice in said)


def test_the_size_of_what_a_module_is_handed_comes_of_the_mask_that_selects_it(scan: Scan) -> None:
    report = scan(
        """
        import torch

        class IoU(torch.nn.Module):
            def forward(self, pred):
                return pred.abs().sum()

        class Head(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.iou = IoU()

            def forward(self, x, counts):
                masks = []
                for row in range(2):
                    k = int(counts[row])
                    mask = torch.zeros(4, dtype=torch.bool)
                    mask[:k] = True
                    masks.append(mask)
                masks = torch.cat(masks)
                return self.iou(x[masks])

        net = torch.compile(Head())
        for counts in ([3, 2], [1, 2], [2, 2]):
            net(torch.ones(8, 4), torch.tensor(counts))
        """
    )
    found = [one for one in coded(report, "BS201") if one.location.function == "IoU.forward"]
    assert found
    for one in found:
        assert "the model keeps" not in str(one.advice)
        assert "data (line 21 of script.py)" in str(one.advice)


def test_what_a_later_branch_asks_of_a_number_that_a_branch_sets_is_told(scan: Scan) -> None:
    report = scan(
        """
        import torch

        @torch.compile
        def f(x):
            k = 2.0 if x.sum() > 0 else 1.0
            y = x * k
            if k > 1.5:
                y = y + 1
            return y

        @torch.compile
        def anew(x):
            k = 2.0 if x.sum() > 0 else 1.0
            y = x * k
            k = 3.0
            if k > 1.5:
                y = y + 1
            return y

        f(torch.ones(3))
        anew(torch.ones(3))
        """
    )
    said = {one.location.function: str(one.advice) for one in coded(report, "BS101")}
    assert "is a tensor then, and so `k > 1.5` (line 8) needs torch.where as well." in said["f"]
    assert "as well" not in said["anew"]


def test_what_else_needs_the_number_of_a_loops_turns_is_named(scan: Scan) -> None:
    report = scan(
        """
        import torch

        @torch.compile
        def f(x, n):
            k = int(n.sum())
            if k == 0:
                return x
            y = x[:k]
            for i in range(k):
                y = y + i
            return y

        f(torch.ones(4, 2), torch.tensor([1, 2]))
        """
    )
    (found,) = [one for one in report.findings if "How often the loop runs" in str(one.advice)]
    assert "The number is needed in lines 7, 9 as well." in str(found.advice)


def test_a_size_of_one_class_is_no_version_of_another_class(scan: Scan) -> None:
    """The second model makes an index of the size: its own versions are those that it is compiled again for."""
    report = scan(
        """
        import torch

        class A(torch.nn.Module):
            def forward(self, z):
                return (z @ z.t()).sum()

        class B(torch.nn.Module):
            def forward(self, z):
                w = torch.ones(z.shape[0], z.shape[0])
                w[z.shape[0] - 2, 0] = 0.2
                return (z @ z.t() * w).sum()

        @torch.compile(backend="eager")
        def step(model, z):
            return model(z)

        for model in (A(), B()):
            for size in (4, 6):
                step(model, torch.randn(size, 8))
        """
    )
    (size,) = coded(report, "BS201")
    assert size.counts.occurrences == 2
    assert "(an operation (line 11)), so each size" in str(size.advice)
    (kind,) = coded(report, "BS210")
    assert kind.counts.occurrences == 1


def test_a_draw_of_pythons_by_its_bare_name_is_torchs_in_a_graph(scan: Scan) -> None:
    report = scan(
        """
        import torch
        from random import random

        @torch.compile
        def f(x):
            return x + 1 if random() < 0.5 else x - 1

        f(torch.ones(3))
        """
    )
    (found,) = coded(report, "BS127")
    assert "torch.where(random()" not in str(found.advice)
    assert "torch.rand(()) < 0.5" in str(found.advice)


def test_a_product_of_sizes_is_pythons(scan: Scan) -> None:
    report = scan(
        """
        import numpy as np
        import torch

        @torch.compile
        def f(x):
            return x.reshape(-1, int(np.prod(x.shape[1:]))) * 2

        f(torch.ones(2, 3, 4))
        """
    )
    (found,) = coded(report, "BS102")
    assert str(found.advice).startswith("Write math.prod(x.shape[1:]), which traces")


def test_a_tensor_of_sizes_that_is_read_again_is_the_list_that_it_was_made_of(scan: Scan) -> None:
    report = scan(
        """
        import torch

        def core(value, shapes):
            return value.split([h * w for h, w in shapes], dim=1)[0].sum()

        class Net(torch.nn.Module):
            def forward(self, features):
                shapes, flat = [], []
                for one in features:
                    b, h, w = one.shape
                    shapes.append((h, w))
                    flat.append(one.flatten(1))
                shapes = torch.as_tensor(shapes)
                return core(torch.cat(flat, 1), shapes)

        net = torch.compile(Net(), backend="eager")
        net([torch.ones(2, 4, 4), torch.ones(2, 2, 2)])
        """
    )
    (found,) = coded(report, "BS102")
    assert str(found.advice).startswith(
        "The tensor that is read is made of `shapes` (line 14): where that is"
    )


def test_of_which_kind_a_tensor_is_asks_for_none_of_its_values(scan: Scan) -> None:
    report = scan(
        """
        import torch

        def checked(tensor):
            if not tensor.is_floating_point():
                raise ValueError("no floats")

        @torch.compile
        def f(x, start):
            start = float(start)
            checked(x * start)
            return x * start

        f(torch.ones(3), torch.tensor(2.0))
        """
    )
    (found,) = coded(report, "BS102")
    assert "branch" not in str(found.advice)


HELD = """
    import torch

    class Controller:
        def __init__(self):
            self.value, self.hist = 0.2, []
        def update(self, kl, n):
            self.value *= 1 + max(min(kl / 6.0 - 1, 0.2), -0.2) * n / 100
        def step(self, v):
            self.hist.append(v)
            if len(self.hist) > 3 and v > self.hist[-2]:
                self.value *= 0.5

    control = Controller()

    @torch.compile(backend="eager")
    def f(x, held):
        kl = x.mean()
        {call}
        return kl * control.value
    for _ in range(3):
        f(torch.randn(4), control)
"""


@pytest.mark.parametrize("holder", ["control", "held"])
def test_what_an_objects_own_method_does_with_a_number_is_read(scan: Scan, holder: str) -> None:
    """A method is called ``update``, as that of a meter is; what it does was seen in the class."""
    updated = scan(HELD.format(call=f"{holder}.update(kl.item(), 4)"))
    assert "Python's min or max compares the number: keep `kl` a tensor" in said(updated, "BS102")
    stepped = scan(HELD.format(call=f"{holder}.step(kl.item())"))
    assert "What the branch does in `if len(self.hist) > 3 and v > self.hist[-2]` (line 11)" in said(
        stepped, "BS102"
    )


@pytest.mark.parametrize(
    ("listed", "advised"),
    [
        ("x", "make the list before the compiled call, as it is made of the argument `x` alone"),
        ("(x * 2)", "Return the tensor and call tolist() in the caller"),
    ],
)
def test_a_list_of_floats_of_an_argument_is_made_before_the_call(
    scan: Scan, listed: str, advised: str
) -> None:
    report = scan(f"""
        import torch

        @torch.compile(backend="eager")
        def f(x):
            y = {listed}.tolist()
            return x.sum(), y
        for _ in range(2):
            f(torch.randn(3))
    """)
    assert advised in said(report, "BS103")


def test_what_counts_in_compiled_code_is_to_be_called_by_the_caller(scan: Scan) -> None:
    report = scan("""
        import torch

        class Average:
            def __init__(self, model):
                self.held, self.n = [p.clone() for p in model.parameters()], 0
            @torch.no_grad()
            def update(self, model):
                self.n += 1
                d = min(0.9, (1 + self.n) / (10 + self.n))
                for own, p in zip(self.held, model.parameters()):
                    own.mul_(d).add_(p, alpha=1 - d)

        net = torch.nn.Linear(4, 4)
        average = Average(net)

        @torch.compile(backend="eager")
        def f(x):
            y = net(x).sum()
            average.update(net)
            return y
        for _ in range(4):
            f(torch.randn(2, 4))
    """)
    assert "Call in the caller what counts average.n (line 9)" in said(report, "BS207")


def test_a_copy_of_an_object_names_the_line_that_makes_it(scan: Scan) -> None:
    report = scan(
        NET
        + """
    from copy import deepcopy
    net = Net()

    @torch.compile(backend="eager")
    def f(x):
        fast = deepcopy(net)
        return fast(x)
    f(torch.randn(3, 4))
"""
    )
    assert "Move the copy of `fast = deepcopy(net)` (script.py:17) to the caller" in said(report, "BS118")


def test_what_else_breaks_in_a_loop_of_gradients_is_named(scan: Scan) -> None:
    report = scan(
        NET
        + """
    net = Net()

    @torch.compile(backend="eager")
    def f(x):
        right = 0
        for part in x:
            loss = net(part).sum()
            grads = torch.autograd.grad(loss, list(net.parameters()))
            right += (net(part) > 0).sum().item()
            more = torch.autograd.grad(net(part).sum(), list(net.parameters()))
        return right
    f(torch.randn(3, 4))
"""
    )
    (found,) = [one for one in report.findings if one.code == "BS301"]
    assert "Lines 20 and 21 of the loop break the graph as well" in str(found.advice)


def test_a_view_that_a_break_hands_on_is_no_argument(scan: Scan) -> None:
    report = scan("""
        import torch

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.e, self.d = torch.nn.Linear(8, 8), torch.nn.Linear(4, 8)
            def forward(self, x):
                mu, lv = self.e(x).chunk(2, -1)
                z = mu + torch.randn(1, *mu.shape) * lv.exp() if self.training else mu.unsqueeze(0)
                rec = self.d(z)
                print(end="")
                return (rec - x.expand_as(rec)).mean() + lv.exp().mean()

        net = torch.compile(Net(), backend="eager")
        for size in (16, 7):
            net(torch.ones(size, 8))
        net.eval()
        net(torch.ones(5, 8))
    """)
    assert "repair that break, or call .clone() before it" in said(report, "BS299")


def test_a_list_of_which_one_item_is_read_is_passed_as_that_item(scan: Scan) -> None:
    report = scan("""
        import torch

        @torch.compile(backend="eager")
        def f(x, hist, order=2):
            if len(hist) >= order:
                x = x + hist[-1]
            return x * 2
        hist = []
        for _ in range(4):
            hist.append(f(torch.ones(2), hist))
    """)
    assert "Pass hist[-1] in place of hist, None where there is no such item, and a bool where" in said(
        report, "BS211"
    )


def test_a_branch_that_returns_another_flag_is_left_to_the_caller(scan: Scan) -> None:
    report = scan("""
        import torch
        from typing import NamedTuple

        class State(NamedTuple):
            x: torch.Tensor
            done: bool = False

        @torch.compile(backend="eager")
        def f(x, s):
            if s == 0:
                return State(x, True), x * 2
            return State(x), x
        f(torch.ones(2), torch.tensor(1.0))
    """)
    assert "return its condition as a tensor, and let the caller test it" in said(report, "BS101")


def test_a_branch_between_two_tuples_selects_each_part(scan: Scan) -> None:
    report = scan("""
        import torch

        @torch.compile(backend="eager")
        def f(x):
            if x.sum() > 0:
                return x, x.sum()
            return x * 2, x.mean()
        f(torch.ones(2))
    """)
    assert "each part of a tuple by itself" in said(report, "BS101")


def test_what_is_made_where_it_is_not_there_yet_is_made_by_a_call_in_eager(scan: Scan) -> None:
    report = scan("""
        import torch

        class Weights:
            def __init__(self):
                self.held = {}
            def get(self, shape):
                if shape not in self.held:
                    self.held[shape] = torch.nn.Parameter(torch.ones(*shape))
                return self.held[shape]
        weights = Weights()

        @torch.compile(backend="eager")
        def f(x):
            return x @ weights.get((4, 3))
        for _ in range(2):
            f(torch.ones(2, 4))
    """)
    (found,) = coded(report, "BS115")
    assert "It runs only where `shape not in self.held`: one call in eager before the first" in str(
        found.advice
    )


def test_what_a_test_asks_behind_a_tensor_is_to_be_asked_first(scan: Scan) -> None:
    report = scan("""
        import torch
        DEBUG = False

        @torch.compile(backend="eager")
        def f(x):
            ret = {"a": x.sin(), "b": x.cos()}
            for k in ret:
                if (torch.isnan(ret[k]).any() or torch.isinf(ret[k]).any()) and DEBUG:
                    print(f"{k} contains nan or inf.")
            return ret
        f(torch.randn(8))
    """)
    (found,) = [one for one in report.findings if one.code == "BS301"]
    assert "Put `DEBUG` first in the test" in str(found.advice)
    assert "break the graph as well" not in str(found.advice)
    assert "breaks the graph as well" not in str(found.advice)
