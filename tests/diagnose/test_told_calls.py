"""What is said of the calls that lead to a finding: who makes them, with what, and what each of them passes."""

from __future__ import annotations

from pathlib import Path

import pytest
from warm_scanning import WarmScans, coded

pytestmark = pytest.mark.torch

LIBRARY = """
import functools
import torch

def wrapped(function):
    @functools.wraps(function)
    def wrapped_func(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapped_func

class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(4, 4)
        self._learns = True

    def _freeze(self):
        self._learns = False

    def forward(self, x):
        if self._learns and self.training:
            x.requires_grad = True
        return self.lin(x)

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.loss_function = torch.nn.functional.mse_loss

    def freeze_encoder(self):
        self.encoder._freeze()

    def forward(self, x, labels=None):
        y = self.encoder(x)
        if labels is not None:
            return self.loss_function(y, labels) + 1
        return y

    @wrapped
    def generate(self, x):
        return self(x)
"""
BEGIN = """
    import os, sys
    import torch
    sys.path.insert(0, os.path.join(os.getcwd(), "site-packages"))
    import models
    net = models.Model()
"""


def library(tmp_path: Path) -> None:
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "models.py").write_text(LIBRARY)


def test_what_the_script_disables_is_no_purpose_of_the_librarys(warm: WarmScans, tmp_path: Path) -> None:
    library(tmp_path)
    script = f"""{BEGIN}
    net.freeze_encoder()
    net.loss_function = torch.compiler.disable(net.loss_function)
    model = torch.compile(net)
    for _ in range(3):
        model(torch.randn(3, 4), torch.zeros(3, 4)).backward()
    """
    [finding] = coded(warm.scan(tmp_path, script), "BS108")
    said = "`net.loss_function` (script.py:9) is given torch.compiler.disable there: one break at each call"
    assert said in str(finding.advice)


def test_the_method_that_turns_a_setting_off_is_named(warm: WarmScans, tmp_path: Path) -> None:
    library(tmp_path)
    script = f"""{BEGIN}
    # {{}}
    model = torch.compile(net)
    for _ in range(3):
        model(torch.randn(3, 4)).sum().backward()
    """
    [finding] = coded(warm.scan(tmp_path, script), "BS115")
    told = "only where `self._learns and self.training` (freeze_encoder() turns that off, where it is meant)"
    assert told in str(finding.advice)
    after = warm.scan(tmp_path, script.replace("# {}", "net.freeze_encoder()"))
    assert after.findings == ()


def test_what_one_call_passes_and_the_one_of_a_library_does_not(warm: WarmScans, tmp_path: Path) -> None:
    library(tmp_path)
    script = f"""{BEGIN}
    net.freeze_encoder()
    net.forward = torch.compile(net.forward)
    for _ in range(2):
        net(torch.randn(3, 4), torch.zeros(3, 4))
    net.generate(torch.randn(3, 4))
    """
    [finding] = coded(warm.scan(tmp_path, script), "BS210")
    assert finding.guard is not None
    assert (finding.guard.source, finding.guard.actual) == ("labels", "None")
    told = "The call at script.py:11 passes another labels than the one that generate() makes at script.py:12"
    assert told in str(finding.advice)


FLAG = """
    import functools, torch
    def deco(f):
        @functools.wraps(f)
        def wrapper(self, *args, **kwargs):
            return f(self, *args, **kwargs)
        return wrapper
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = torch.nn.Linear(4, 4)
        @deco
        def forward(self, x, scale=False):
            return self.lin(x) * 2 if scale else self.lin(x)
    net = torch.compile(Net(), {})
    for _ in range(2):
        net(x=torch.randn(5, 4))
    net(x=torch.randn({}, 4), scale=True)
"""


@pytest.mark.parametrize(
    ("dynamic", "rows", "is_told"), [("", 7, True), ("", 5, False), ("dynamic=True", 7, False)]
)
def test_a_size_that_is_new_where_other_arguments_are_passed_is_told(
    warm: WarmScans, tmp_path: Path, dynamic: str, rows: int, is_told: bool
) -> None:
    """Where the number of arguments differs, torch asks nothing more of them."""
    [finding] = coded(warm.scan(tmp_path, FLAG.format(dynamic, rows)), "BS211")
    assert "the later one alone has scale" in str(finding.advice)
    assert ("But dimension 0 of x changed at the same call" in str(finding.advice)) is is_told


PENALTY = """
    import torch
    critic = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    def penalty(mix):
        g = torch.autograd.grad(critic(mix).sum(), mix, create_graph=True)[0]
        return ((g.norm(2, dim=1) - 1) ** 2).mean()
    @torch.compile
    def d_step(real, fake):
        mix = (0.5 * real + 0.5 * fake).requires_grad_(True)
        return critic(fake).mean() - critic(real).mean() + 10 * penalty(mix)
    for _ in range(3):
        d_step(torch.rand(5, 6), torch.rand(5, 6)).backward()
"""


def test_a_gradient_that_is_differentiated_again_carries_its_tensor_out(
    warm: WarmScans, tmp_path: Path
) -> None:
    [leaked] = coded(warm.scan(tmp_path, PENALTY), "BS115")
    assert leaked.caused_by is None
    assert "make it in the caller, requires_grad_() with it, and pass it in" in str(leaked.advice)
    passed = (
        PENALTY.replace("def d_step(real, fake):", "def d_step(real, fake, mix):")
        .replace("        mix = (0.5 * real + 0.5 * fake).requires_grad_(True)\n", "")
        .replace(
            "torch.rand(5, 6)).backward()", "torch.rand(5, 6), torch.rand(5, 6).requires_grad_()).backward()"
        )
        .replace("import torch\n", "import torch\n    torch._dynamo.config.trace_autograd_ops = True\n", 1)
    )
    assert warm.scan(tmp_path, passed).findings == ()


def test_another_model_that_is_passed_is_told(warm: WarmScans, tmp_path: Path) -> None:
    report = warm.scan(
        tmp_path,
        """
        import torch
        @torch.compile
        def step(model, x):
            return model(x).sum()
        for hidden in (6, 18):
            model = torch.nn.Sequential(torch.nn.Linear(4, hidden), torch.nn.Linear(hidden, 1))
            for _ in range(7):
                step(model, torch.randn(3, 4)).backward()
        """,
    )
    [note] = coded(report, "BS201")
    assert "model is another model at script.py:9, with a parameter of another size" in str(note.expected)


def test_a_list_that_numpy_multiplies_is_multiplied_by_math(warm: WarmScans, tmp_path: Path) -> None:
    script = """
        import math, numpy as np, torch
        def split(x, shape):
            shape = list(shape)
            shape[shape.index(-1)] = int(x.size(-1) / -np.prod(shape))
            return x.view(*x.size()[:-1], *shape)
        @torch.compile
        def f(x):
            return split(x, (4, -1)).sum()
        for _ in range(2):
            f(torch.ones(3, 8))
    """
    [finding] = coded(warm.scan(tmp_path, script), "BS102")
    assert str(finding.advice).startswith("Write math.prod(shape), which traces")
    assert warm.scan(tmp_path, script.replace("np.prod(", "math.prod(")).findings == ()


def test_a_view_of_a_tensor_of_one_row_is_a_size_of_one(warm: WarmScans, tmp_path: Path) -> None:
    report = warm.scan(
        tmp_path,
        """
        import torch
        @torch.compile
        def f(x):
            return x.sin().sum()
        for rows in (0, 6, 4, 1, 5):
            f(torch.ones(3).unsqueeze(0) if not rows else torch.ones(rows, 2, 3)[0])
        """,
    )
    told = [one.expected for one in coded(report, "BS214") if one.guard and "_base" in str(one.guard.source)]
    assert told == [
        "torch compiles a size of 1 apart, also of the tensor that x is a view of: compiled once more"
    ]


def test_a_forward_that_is_called_by_its_name_is_told(warm: WarmScans, tmp_path: Path) -> None:
    script = """
        import torch
        class Policy(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.lin = torch.nn.Linear(3, 2)
            def forward(self, x):
                return self.lin(x).tanh()
            def act(self, x):
                return {}(x).argmax(-1)
        policy = Policy()
        for _ in range(3):
            policy.act(torch.randn(5, 3))
    """
    notes = warm.scan(tmp_path, script.format("self.forward")).run.notes
    [note] = [one for one in notes if "scan with --compile script.py:Policy.forward" in one]
    assert note.startswith("Policy.forward is called by that name and not through its module's call")
    assert not any(
        "called by that name" in one for one in warm.scan(tmp_path, script.format("self")).run.notes
    )


SHARED = """
    import functools, torch
    def deco(func):
        @functools.wraps(func)
        def wrapper(self, *args, **kwargs):
            return func(self, *args, **kwargs)
        return wrapper
    class A(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = torch.nn.Linear(4, 4)
        @deco
        def forward(self, x, scale=None):
            return self.lin(x)
    class B(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = torch.nn.Linear(4, 2)
        @deco
        def forward(self, x):
            return self.lin(x).relu()
    a, b = A(), B()
    for step in range({steps}):
        a(x=torch.ones(3, 4)).sum().backward()
        b(x=torch.ones(3, 4)).sum().backward()
    a(x=torch.ones(3, 4), scale=2.0)
    for _ in range({steps}):
        a(x=torch.ones(3, 4)).sum().backward()
"""


@pytest.mark.parametrize(("steps", "is_settled"), [(7, True), (1, False)])
def test_what_functions_share_and_ways_to_call_are_a_version_each_once(
    warm: WarmScans, tmp_path: Path, steps: int, is_settled: bool
) -> None:
    """They may still grow as long as the run is short."""
    report = warm.scan(tmp_path, SHARED.format(steps=steps))
    [function] = coded(report, "BS210")
    [ways] = coded(report, "BS211")
    assert (function.expected is not None, ways.expected is not None) == (is_settled, is_settled)
    if is_settled:
        assert function.expected == (
            "deco makes one code for each func, and each is a version of it: compiled once more"
        )
        assert "the later one alone has scale" in str(ways.expected)


def test_a_value_that_the_code_sets_itself_names_the_line(warm: WarmScans, tmp_path: Path) -> None:
    script = """
        import torch
        class Config:
            def __init__(self):
                {}
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.config = Config()
            def forward(self, x):
                if getattr(self.config, "kind", None) is None:
                    self.config.kind = "sum"
                return x.sum() if self.config.kind == "sum" else x.mean()
        net = torch.compile(Net())
        for _ in range(9):
            net(torch.ones(3))
    """
    [note] = coded(warm.scan(tmp_path, script.format("self.kind = None")), "BS209")
    assert str(note.expected).endswith(
        "the code sets it itself in line 12, and set before the first call it saves that"
    )
    [missing] = coded(warm.scan(tmp_path, script.format("pass")), "BS209")
    assert "changed at the same call" not in str(missing.advice)
    assert warm.scan(tmp_path, script.format("self.kind = 'sum'")).findings == ()


def test_a_recompile_in_ones_own_code_has_the_line_of_its_call(warm: WarmScans, tmp_path: Path) -> None:
    report = warm.scan(
        tmp_path,
        """
        import torch
        @torch.compile
        def f(x):
            return x * 2
        f(torch.ones(3, 5))
        f(torch.ones(4, 5))
        """,
    )
    [size] = coded(report, "BS201")
    assert size.called_from is not None
    assert size.called_from.source == "f(torch.ones(4, 5))"


def test_a_size_beside_a_gradient_is_a_second_thing_that_a_version_lacks(
    warm: WarmScans, tmp_path: Path
) -> None:
    """Of a tensor torch tells the first thing that differs: the version with the same gradients is nearer."""
    report = warm.scan(
        tmp_path,
        """
        import torch
        @torch.compile
        def f(x):
            return x.sin().sum()
        for n in (3, 5):
            f(torch.ones(n))
            f(torch.ones(n, requires_grad=True))
        """,
    )
    counted = {one.code: one.counts.occurrences for one in report.findings}
    assert counted == {"BS205": 1, "BS201": 2}


def test_a_tensor_that_apply_gets_twice_is_to_be_cloned(warm: WarmScans, tmp_path: Path) -> None:
    script = """
        import torch
        class Both(torch.autograd.Function):
            @staticmethod
            def forward(ctx, one, other, x):
                ctx.save_for_backward(one, other)
                return x * one * other
            @staticmethod
            def backward(ctx, grad):
                one, other = ctx.saved_tensors
                return None, None, grad * one * other
        @torch.compile
        def f(mask, x):
            return Both.apply(mask, {}, x).sum()
        for _ in range(3):
            f(torch.ones(3), torch.ones(3, requires_grad=True)).backward()
    """
    [finding] = coded(warm.scan(tmp_path, script.format("mask")), "BS121")
    assert "give it a .clone() for the second one" in str(finding.advice)
    assert warm.scan(tmp_path, script.format("mask.clone()")).findings == ()


def test_whether_jit_traces_is_asked_of_what_dynamo_knows(warm: WarmScans, tmp_path: Path) -> None:
    script = """
        import torch
        @torch.compile
        def f(x):
            return x.sin() if {} else x.cos()
        for _ in range(2):
            f(torch.ones(3))
    """
    [finding] = coded(warm.scan(tmp_path, script.format("torch._C._is_tracing()")), "BS111")
    assert str(finding.advice).startswith("Write torch.jit.is_tracing() in the place of")
    assert warm.scan(tmp_path, script.format("torch.jit.is_tracing()")).findings == ()


def test_a_flag_that_is_left_out_saves_nothing_as_false(warm: WarmScans, tmp_path: Path) -> None:
    script = """
        import torch
        @torch.compile
        def f(x, hidden={}):
            return (x * 2, x) if hidden else (x * 2, None)
        for _ in range(2):
            f(torch.ones(3))
        f(torch.ones(3), hidden=True)
    """
    [finding] = coded(warm.scan(tmp_path, script.format("None")), "BS210")
    assert "False in the place of None saves none where the other one is True" in str(finding.advice)
    again = warm.scan(tmp_path, script.format("False"))
    assert [one.counts.occurrences for one in coded(again, "BS208")] == [1]


def test_a_cache_that_code_fills_gets_no_placeholder(warm: WarmScans, tmp_path: Path) -> None:
    script = """
        import torch
        class Attention(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.bias = torch.nn.Parameter(torch.ones(4))
                self.cache = {{}}
            def biases(self, key):
                if self.training:
                    return self.bias * 1
                if key not in self.cache:
                    self.cache[key] = self.bias * 1
                return self.cache[key]
            def forward(self, x):
                return x + self.biases("cpu")
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.attention = Attention()
            def forward(self, x):
                return self.attention(x)
        module = Net()
        net = torch.compile(module)
        net(torch.ones(4)).sum().backward()
        module.eval()
        with torch.no_grad():
            {}
            for _ in range(3):
                net(torch.ones(4))
    """
    [finding] = coded(warm.scan(tmp_path, script.format("pass")), "BS211")
    assert "by one in eager in the mode (train or eval) that uses it" in str(finding.advice)
    assert "neutral" not in str(finding.advice)
    filled = warm.scan(tmp_path, script.format("module(torch.ones(4))"))
    assert coded(filled, "BS211") == []


def test_what_breaks_behind_a_skipped_frame_is_named(warm: WarmScans, tmp_path: Path) -> None:
    """Dynamo did not come to it; what is under a branch may not run."""
    script = """
        import torch
        @torch.compile
        def f(x, verbose):
            {}
                y = x * 2
                z = y.sum().item()
            if verbose:
                print("verbose")
            keep = y > 0
            return y[keep] * z
        for _ in range(2):
            f(torch.ones(3), False)
    """
    report = warm.scan(tmp_path, script.format("with torch.random.fork_rng():"))
    [finding] = [one for one in report.findings if one.kind == "skip"]
    assert "Lines 7 and 11 below break the graph as well." in str(finding.advice)
    after = warm.scan(tmp_path, script.format("if True:"))
    assert [one.location.line for one in after.findings if one.kind == "graph_break"] == [7, 11]
