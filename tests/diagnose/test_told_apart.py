"""What goes with something else: with a model's loss, with the breaks around a function, with a choice."""

from __future__ import annotations

from pathlib import Path

import pytest
from warm_scanning import WarmScans, coded

pytestmark = pytest.mark.torch

LIBRARY = """
import torch

class Criterion(torch.nn.Module):
    def forward(self, out, labels):
        if (out > 99).any():
            out = out * 2
        n = labels.sum().item()
        kept = out[out > 0]
        return (out - labels).abs().sum() / max(n, 1) + kept.sum()

class Model(torch.nn.Module):
    def __init__(self, problem=None):
        super().__init__()
        self.lin = torch.nn.Linear(4, 4)
        self.criterion = Criterion()
        self.problem = problem

    def forward(self, x, labels=None):
        y = self.lin(x)
        loss = self.criterion(y, labels) if labels is not None else None
        return (loss, y)

class Config:
    problem_type = None

class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(4, 3)
        self.config = Config()

    def forward(self, x, labels):
        logits = self.lin(x)
        if self.config.problem_type is None:
            index = (labels >= 0).nonzero()
            if index.size(0) > 0:
                picked = torch.gather(logits, 0, index.expand(index.size(0), logits.size(1)))
                return torch.nn.functional.cross_entropy(picked, labels)
            return logits.sum()
        elif self.config.problem_type == "single":
            return torch.nn.functional.cross_entropy(logits, labels)
        return logits.mean()

def regulate(x, lengths, speed=1.0):
    if speed <= 0:
        raise ValueError("speed")
    elif speed != 1.0:
        lengths = (lengths * speed).long()
    if lengths.sum() == 0:
        lengths = lengths + 1
    return x * lengths
"""
BEGIN = """
    import os, sys
    import torch
    sys.path.insert(0, os.path.join(os.getcwd(), "site-packages"))
    import models
"""


def library(tmp_path: Path) -> None:
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "models.py").write_text(LIBRARY)


def test_a_loss_of_a_library_is_left_eager_as_a_whole(warm: WarmScans, tmp_path: Path) -> None:
    library(tmp_path)
    script = f"""{BEGIN}
    net = models.Model()
    # {{}}
    model = torch.compile(net)
    for n in (3, 3, 4):
        model(torch.randn(n, 4), torch.ones(n, 4))[0].backward()
    """
    report = warm.scan(tmp_path, script)
    sites = [one for one in report.findings if one.kind != "recompile"]
    assert len(sites) == 3
    change = "model.criterion.forward = torch.compiler.disable(model.criterion.forward)"
    text = (
        "models breaks the graph at 3 places in the loss of Model: leave all of it eager, which is one break"
    )
    for one in sites:
        assert str(one.advice) == f"{text} in place of these: {change} before the first call."
    inside = [one for one in report.findings if one.location.function == "Criterion.forward"]
    assert all(one.caused_by is not None for one in inside if one.kind == "recompile")
    after = warm.scan(tmp_path, script.replace("# {}", change.replace("model.", "net.")))
    assert [one.code for one in after.findings if one.kind != "recompile"] == ["BS108"]


def test_what_a_configuration_does_not_choose_is_named(warm: WarmScans, tmp_path: Path) -> None:
    library(tmp_path)
    script = f"""{BEGIN}
    net = models.Classifier()
    # {{}}
    model = torch.compile(net)
    for _ in range(3):
        model(torch.randn(3, 4), torch.tensor([0, 1, 2])).backward()
    """
    [finding] = coded(warm.scan(tmp_path, script), "BS105")
    assert "choose config.problem_type, as 'single', before the first call" in str(finding.advice)
    after = warm.scan(tmp_path, script.replace("# {}", "net.config.problem_type = 'single'"))
    assert after.findings == ()


def test_an_argument_may_come_as_it_is(warm: WarmScans, tmp_path: Path) -> None:
    """The branch on ``speed`` gives the argument another value, and is not why the line is reached."""
    library(tmp_path)
    script = f"""{BEGIN}
    step = torch.compile(lambda x, n: models.regulate(x, n) + 1)
    for _ in range(3):
        step(torch.ones(3), torch.ones(3))
    """
    [finding] = coded(warm.scan(tmp_path, script), "BS101")
    assert "speed != 1.0" not in str(finding.advice)


def test_that_a_branch_asks_how_many_are_selected_is_told(warm: WarmScans, tmp_path: Path) -> None:
    [finding] = coded(
        warm.scan(
            tmp_path,
            """
            import torch
            @torch.compile
            def f(logits, labels):
                index = (labels >= 0).nonzero()
                if index.size(0) > 0:
                    picked = torch.gather(logits, 0, index.expand(index.size(0), logits.size(1)))
                    return torch.nn.functional.cross_entropy(picked, labels)
                return logits.sum()
            for _ in range(3):
                f(torch.randn(3, 3), torch.tensor([0, 1, 2]))
            """,
        ),
        "BS105",
    )
    assert "capture_dynamic_output_shape_ops = True; line 6 branches on it, and breaks then" in str(
        finding.advice
    )


KGE = """
    import torch
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.emb = torch.nn.Parameter(torch.randn(20, 6))
            self.gamma = torch.nn.Parameter(torch.tensor([9.0]), requires_grad=False)
        def forward(self, a, b, mode="single"):
            h = self.emb[a] * 2 if mode == "head" else self.emb[a]
            return self.score(h, self.emb[b], mode)
        def score(self, h, t, mode):
            d = h.sin() - t if mode == "head" else h - t.cos() if mode == "tail" else h - t
            return self.gamma.item() - d.abs().sum(-1)
    net = Net()
    for i in range(4):
        n = 8 if i < 2 else 6
        a, b = torch.randint(0, 20, (2, n))
        net(a, b), net(a, b, ["head", "tail"][i % 2])
"""


def test_what_only_a_break_makes_a_function_of_its_own_says_so(warm: WarmScans, tmp_path: Path) -> None:
    report = warm.scan(tmp_path, KGE)
    alone = [one for one in report.findings if one.kind == "recompile"]
    inner = [one for one in alone if one.location.function == "Net.score"]
    outer = [one for one in alone if one.location.function == "Net.forward"]
    assert inner
    assert outer
    part = "Without the break at script.py:13 Net.score is compiled as part of what calls it, and has no recompile"
    for one in inner:
        assert part in str(one.advice)
        assert one.expected is None or "Net.score has none of its own without the break" in one.expected
    for one in outer:
        assert "as part of what calls it" not in f"{one.advice} {one.expected}"
    after = warm.scan(tmp_path, KGE.replace(".item()", ".detach()"))
    assert {one.location.function for one in after.findings} == {"Net.forward"}


def test_a_text_that_branches_ask_for_is_a_choice(warm: WarmScans, tmp_path: Path) -> None:
    few = KGE.replace(".item()", ".detach()")
    [finding] = coded(warm.scan(tmp_path, few), "BS208")
    assert str(finding.advice).startswith("A branch (line")
    assert "asks for the text in mode ('single', 'head', 'tail' were seen)" in str(finding.advice)
    assert finding.expected is None  # the run is too short to tell
    [finding] = coded(warm.scan(tmp_path, few.replace("range(4)", "range(20)")), "BS208")
    texts = "one graph for each of the texts 'single', 'head', 'tail': compiled 2 times more, and not again"
    assert finding.expected == texts


def test_a_table_that_makes_what_it_gives_has_not_changed(warm: WarmScans, tmp_path: Path) -> None:
    """Guards read a dict's items as dict does: one of transformers' own makes a layer whenever it is asked."""
    report = warm.scan(
        tmp_path,
        """
        import torch
        from collections import OrderedDict
        class Table(OrderedDict):
            def __getitem__(self, key):
                return super().__getitem__(key)()
        TABLE = Table({"gelu": torch.nn.GELU, "relu": torch.nn.ReLU})
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.lin = torch.nn.Linear(8, 8)
            def forward(self, x):
                return TABLE["gelu"](self.lin(x)).mean()
        net = torch.compile(Net())
        for n in (16, 16, 24, 32, 16):
            net(torch.randn(n, 8))
        with torch.no_grad():
            net(torch.randn(16, 8))
        """,
    )
    assert [one.code for one in report.findings] == ["BS201", "BS212"]
    assert all(one.expected for one in report.findings)


QUOTIENT = """
    import math
    import torch
    import torch.nn.functional as F
    def pad(t, n, to):
        whole = n / to
        if whole.is_integer():
            return t
        return F.pad(t, (0, math.ceil(whole) * to - n))
    @torch.compile
    def step(x):
        return pad(x, x.shape[1], 16).sum()
    for n in [64, 40, 33, 57, 48, 21]:
        step(torch.ones(4, n))
"""


def test_a_quotient_of_a_size_may_stay_a_whole_number(warm: WarmScans, tmp_path: Path) -> None:
    [finding] = coded(warm.scan(tmp_path, QUOTIENT), "BS201")
    said = "keep whole numbers, with // and % in place of `n / to` (line 6); else pad to one size"
    assert said in str(finding.advice)
    body = QUOTIENT.partition("        whole")[0] + "        return F.pad(t, (0, -n % to))\n"
    after = warm.scan(tmp_path, body + "    @torch.compile" + QUOTIENT.partition("@torch.compile")[2])
    assert [one.expected is not None for one in after.findings] == [True]


def test_what_fails_compiled_in_a_library_is_left_eager_there(warm: WarmScans, tmp_path: Path) -> None:
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "cells.py").write_text(
        "import torch\ndef clear(x, at):\n    rows, cols = zip(*at)\n    x[rows, cols] = 0\n    return x * 2\n"
    )
    script = """
        import os, sys
        import torch
        sys.path.insert(0, os.path.join(os.getcwd(), "site-packages"))
        import cells
        # {}
        @torch.compile
        def step(x, at):
            return cells.clear(x + 1, at).sum()
        for _ in range(3):
            step(torch.ones(3, 3), torch.tensor([[0, 1], [2, 2]]))
    """
    change = "cells.clear = torch.compiler.disable(cells.clear)"
    [finding] = coded(warm.scan(tmp_path, script), "BS191")
    assert f"leave clear eager, where it does not fail, {change} before the first call." in str(
        finding.advice
    )
    after = warm.scan(tmp_path, script.replace("# {}", change))
    assert [one.code for one in after.findings] == ["BS108"]


def test_a_module_that_a_number_picks_is_a_version_each(warm: WarmScans, tmp_path: Path) -> None:
    report = warm.scan(
        tmp_path,
        """
        import torch
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.tables = torch.nn.ModuleList(torch.nn.Embedding(20, 8) for _ in range(4))
                self.heads = torch.nn.ModuleList(torch.nn.Linear(8, 20) for _ in range(3))
            def forward(self, k, ids):
                parts = [table(ids[:, :, i]).unsqueeze(-1) for i, table in enumerate(self.tables)]
                parts = torch.cat(parts, dim=-1)
                parts = parts[:, :, :, : k + 1].sum(dim=-1)
                return self.heads[k - 1](parts)
        model = torch.compile(Net())
        for step in range(4):
            model(1 + step % 3, torch.randint(0, 20, (4, 16, 4)))
        """,
    )
    [finding] = coded(report, "BS207")
    assert "k picks one of self.heads (line 12), and a version for each is normal" in str(finding.advice)


FLAG = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(4, 4)
    def forward(self, x, given=None):
        y = self.lin(x)
        return (y, x) if given else (y,)
"""


def test_an_argument_that_the_project_passes_at_one_call_only_is_its_own(
    warm: WarmScans, tmp_path: Path
) -> None:
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "models.py").write_text(FLAG)
    report = warm.scan(
        tmp_path,
        f"""{BEGIN}
    model = torch.compile(models.Model())
    model(torch.ones(3, 4), given=True)
    for _ in range(2):
        model(torch.ones(3, 4))
        """,
    )
    [finding] = coded(report, "BS208")
    assert str(finding.advice).startswith(
        "Given is there at some calls and None at others".replace("Given", "given")
    )


@pytest.mark.parametrize(
    ("first", "code"), [("torch.empty(0)", "BS206"), ("[torch.empty(0)]", "BS210")], ids=["rank", "type"]
)
def test_what_has_no_element_is_apart_whatever_its_form(
    warm: WarmScans, tmp_path: Path, first: str, code: str
) -> None:
    report = warm.scan(
        tmp_path,
        f"""
        import torch
        @torch.compile
        def step(x, mems):
            given = mems if isinstance(mems, torch.Tensor) else mems[0]
            return torch.cat([given, x]) if given.dim() == x.dim() else x * 2
        mems = {first}
        for _ in range(4):
            y = step(torch.ones(4, 2), mems)[-4:]
            mems = (y,) if isinstance(mems, (list, tuple)) else y
        """,
    )
    [finding] = coded(report, code)
    assert "has no element at one of the two calls" in str(finding.advice)
    assert str(finding.advice).endswith("whatever their rank and type: leave it")


def test_what_is_kept_for_a_call_has_no_neutral_value(warm: WarmScans, tmp_path: Path) -> None:
    report = warm.scan(
        tmp_path,
        """
        import torch
        from collections import OrderedDict
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.lin = torch.nn.Linear(4, 4)
            def forward(self, x, params=None):
                if params is None:
                    params = OrderedDict(self.named_parameters())
                return torch.nn.functional.linear(x, params["lin.weight"], params["lin.bias"])
        net = torch.compile(Net())
        for _ in range(2):
            net(torch.ones(3, 4))
            net(torch.ones(3, 4), OrderedDict((n, p * 1) for n, p in net.named_parameters()))
        """,
    )
    [finding] = coded(report, "BS210")
    assert str(finding.advice).endswith("normal for an optional argument, made once")


def test_keys_made_of_a_size_are_named(warm: WarmScans, tmp_path: Path) -> None:
    script = """
        import torch
        @torch.compile
        def step(x):
            todo = sorted([[p, x.shape[0] // p] for p in (2, 3)], key=lambda one: one[1])
            return x * todo[0][0]
        for n in [12, 12, {}, 6]:
            step(torch.ones(n))
    """
    [finding] = coded(warm.scan(tmp_path, script.format(6)), "BS123")
    assert "numbers made of a size, which torch takes for any after its second value" in str(finding.advice)
    after = warm.scan(tmp_path, script.format(6).replace("@torch.compile", "@torch.compile(dynamic=False)"))
    assert coded(after, "BS123") == []


def test_a_loop_that_is_not_compiled_breaks_nothing(warm: WarmScans, tmp_path: Path) -> None:
    report = warm.scan(
        tmp_path,
        """
        import torch
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn = torch.nn.LSTM(8, 8)
                self.out = torch.nn.Linear(8, 4)
            def forward(self, x):
                return self.out(self.rnn(x)[0])
        net = Net()
        model = torch.compile(net)
        opt = torch.optim.SGD(net.parameters(), 0.01)
        def train():
            for _ in range(3):
                loss = model(torch.ones(5, 2, 8)).sum()
                loss.backward()
                opt.step()
        train()
        """,
    )
    [finding] = coded(report, "BS302")
    assert "break" not in str(finding.advice)
    assert str(finding.advice).endswith("(functions of one's own that it calls are compiled apart).")


def test_a_loop_over_a_quotient_is_what_compiles_each(warm: WarmScans, tmp_path: Path) -> None:
    report = warm.scan(
        tmp_path,
        """
        import torch
        @torch.compile
        def f(x):
            n = x.shape[0] // 8
            out = []
            for i in range(n):
                out.append(x[i * 8 : (i + 1) * 8] * i)
            return torch.cat(out)
        for n in [16, 24, 20, 12, 33, 34, 35]:
            f(torch.ones(n))
        """,
    )
    [finding] = coded(report, "BS201")
    assert (
        "(a loop (line 7)), so each whole quotient of the sizes (16, 24, 20… were seen) is compiled"
        in str(finding.advice)
    )
    assert report.totals.recompiles == 4  # 33 to 35 have one quotient


KEYWORDS = """
    import torch
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = torch.nn.Linear(8, 8)
        def forward(self, **kwargs):
            y = self.lin(kwargs["x"])
            if kwargs.pop("use_cache", False):
                y = y + 1
            return {"y": y} if kwargs.pop("return_dict", True) else (y,)
        def generate(self, x):
            for _ in range(3):
                x = self(x=x, return_dict=True)["y"][:, -1:]
            return x
    net = Net().eval()
    model = torch.compile(net)
    with torch.no_grad():
"""


def test_the_arguments_that_one_call_alone_passes_are_named(warm: WarmScans, tmp_path: Path) -> None:
    calls = "        model(x=torch.ones(2, 5, 8))\n        model(x=torch.ones(2, 5, 8), return_dict=True, use_cache=True)\n"
    [finding] = coded(warm.scan(tmp_path, KEYWORDS + calls), "BS211")
    assert "; the later one alone has return_dict and use_cache)" in str(finding.advice)


def test_below_a_dict_of_other_keys_more_may_differ(warm: WarmScans, tmp_path: Path) -> None:
    """The second recompile has the keys of the version before it, and lacks its size."""
    calls = "        net.compile()\n        net(x=torch.ones(2, 12, 8))\n        net.generate(torch.ones(2, 5, 8))\n"
    report = warm.scan(tmp_path, KEYWORDS + calls)
    [finding] = coded(report, "BS211")
    assert finding.counts.occurrences == 1
    others = [one.code for one in report.findings if one.kind == "recompile" and one is not finding]
    assert others
    assert set(others) <= {"BS201", "BS214"}


def test_what_a_view_is_of_is_no_branch(warm: WarmScans, tmp_path: Path) -> None:
    report = warm.scan(
        tmp_path,
        """
        import torch
        @torch.compile
        def f(x, mask):
            y = x * 2
            if mask is not None:
                mask = mask.unsqueeze(1)
            return y.sum() + mask.float().sum()
        for n in (5, 8, 6, 9):
            mask = (torch.ones(1, n) != 1).unsqueeze(-2)
            f(torch.ones(1, 8), mask), f(torch.ones(3, 8), mask)
        """,
    )
    assert coded(report, "BS201")
    for one in report.findings:
        assert "a branch" not in str(one.advice)
        assert "_base" not in f"{one.advice} {one.expected}"


def test_a_state_that_hides_a_size_says_so(warm: WarmScans, tmp_path: Path) -> None:
    report = warm.scan(
        tmp_path,
        """
        import torch
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.lin = torch.nn.Linear(8, 3)
                self.kind = None
            def forward(self, x):
                y = self.lin(x).mean(1)
                if self.kind is None:
                    self.kind = "single"
                return y.sum() if self.kind == "single" else y
        net = torch.compile(Net())
        for n in (16, 20, 24):
            net(torch.ones(4, n, 8))
        """,
    )
    [finding] = coded(report, "BS209")
    assert str(finding.advice).endswith(
        "But dimension 1 of x changed at the same call, so that one is compiled all the same"
    )


def test_what_goes_on_behind_a_break_has_recompiles_for_it(warm: WarmScans, tmp_path: Path) -> None:
    script = """
        import torch
        @torch.compile
        def f(x):
            y = x * 2
            print(end="")
            return y.sum() + x.mean()
        for n in (5, 8, 6, 9):
            f(torch.ones(n, 8))
    """
    report = warm.scan(tmp_path, script)
    told = [str(one.expected) for one in coded(report, "BS201")]
    rest = "the rest of f has none of its own without the break at script.py:6"
    assert [rest in text for text in told].count(True) == len(told) - 1
    after = warm.scan(tmp_path, script.replace('print(end="")', "pass"))
    assert len(after.findings) == 1


def test_what_is_a_view_at_some_calls_is_named(warm: WarmScans, tmp_path: Path) -> None:
    script = """
        import torch
        @torch.compile
        def f(x, state):
            h = torch.cat([x, state], 1).tanh()
            return h[:, :8]
        with torch.no_grad():
            for n in (3, 4, 5):
                rows = torch.randn(5, n, 4)
                state = torch.zeros(n, 8)
                for i in range(3):
                    state = f(rows[i], state.clone())
                f({}, state.clone())
    """
    [finding] = coded(warm.scan(tmp_path, script.format("torch.zeros(n, 4)")), "BS299")
    assert "Call .clone() on what the caller passes as x, as in the call at script.py:" in str(finding.advice)
    after = warm.scan(tmp_path, script.format("torch.zeros(n, 4)").replace("rows[i]", "rows[i].clone()"))
    assert coded(after, "BS299") == []
