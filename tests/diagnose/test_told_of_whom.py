"""Which version, which break, which module a recompile is told of; and what its own code does about it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from warm_scanning import WarmScans, coded

from breakscope.diagnose import reach, recompiles
from breakscope.diagnose.collect import Collected, FrameRef, Recompile
from breakscope.diagnose.guard_text import parse_reasons
from breakscope.diagnose.guard_uses import Taken, _closed
from breakscope.diagnose.places import Places
from breakscope.diagnose.recompile_advice import _function
from breakscope.project.sources import Sources
from breakscope.report.model import Finding, Guard, Report

pytestmark = pytest.mark.torch
Scan = Callable[..., Report]


@pytest.fixture
def scan(warm: WarmScans, tmp_path: Path) -> Scan:
    return lambda source, *options: warm.scan(tmp_path, source, *options)


def _guards(report: Report) -> list[tuple[str, str | None, int]]:
    return [
        (one.code, one.guard.source, one.counts.occurrences)
        for one in report.findings
        if one.kind == "recompile" and one.guard is not None
    ]


def _said(finding: Finding) -> str:
    return str(finding.expected or finding.advice)


# ---- of which version ----


def test_a_version_for_another_model_is_none_for_other_arguments() -> None:
    """Of the first model's other versions what failed first is an argument, or the mode.

    All that failed is not known of each: asking would have touched what the second model has not.
    """

    def called(cid: str, name: str) -> dict[str, object]:
        entry = {"file": "/site-packages/models/generic.py", "line": 5, "name": name, "module": True}
        entry |= {"training": True, "parameters": []}
        modes = {"grad": True, "inference": False, "autocast": None}
        rest = {"args": [], "kwargs": {}, "held": {}, "origins": {}, "caller": None, "callers": []}
        return {"t": "signature", "cid": cid, "call": 0, "step": 0, "entry": entry, "modes": modes, **rest}

    found = Collected(slots=None)
    found.signatures = [*(called(f"0/{at}", "Reads") for at in range(4)), called("0/4", "Writes")]
    failures = parse_reasons(
        [
            "0/3: GLOBAL_STATE changed: grad_mode",
            "0/2: ___check_obj_id(func.__code__, 94342757852224), type=<class 'code'>",
            "0/1: len(kwargs) == 3",
            "0/0: len(kwargs) == 3",
        ]
    )
    frame = FrameRef("/site-packages/models/generic.py", "wrapper", "tupled.<locals>.wrapper", 5, False)
    found.recompiles = [Recompile(failures, "0/4", frame, {}, 4)]
    [cause], _ = recompiles.causes(found, Places((), "/breakscope/"))
    assert (cause.guard.cause, cause.guard.source) == ("identity", "func")


def test_a_version_for_the_same_keys_is_closer_than_one_for_others(scan: Scan) -> None:
    """Three flags of it failed; of the one for other keys torch asked nothing further."""
    report = scan("""
        import torch

        class Cache:
            def __init__(self):
                self.first = self.second = self.third = False

        @torch.compile(backend="eager")
        def f(x, **kwargs):
            cache = kwargs.get("cache")
            if cache is None:
                return x + kwargs["labels"]
            return x * (2 if cache.first else 1) * (2 if cache.second else 1) * (2 if cache.third else 1)

        x, cache = torch.ones(3), Cache()
        f(x, labels=x)
        f(x, cache=cache, tokens=True)
        cache.first = cache.second = cache.third = True
        f(x, cache=cache, tokens=True)
    """)
    found = {code: times for code, _, times in _guards(report)}
    assert found == {"BS211": 1, "BS208": 1}


def test_a_function_that_another_decorator_made_is_a_variable_too() -> None:
    guard = Guard(
        "___check_obj_id(func.__closure__[1].cell_contents, 1)", "func.__closure__[1]", None, None, "identity"
    )
    source = ast.parse(
        "def outer(func):\n    def wrapper(self, x):\n        return func(self, x)\n    return wrapper\n"
    )
    outer = source.body[0]
    assert isinstance(outer, ast.FunctionDef)
    assert _closed((source, outer, outer.body[0]), "func.__closure__[1]") == "outer"
    said = _function(guard, Taken(closed="outer"))
    assert said.startswith("func is a variable of outer, whose inner function is one code for each func")


# ---- of which break ----


def test_a_loop_that_runs_eagerly_is_told_of_its_own_break(scan: Scan) -> None:
    """Each of two classes of one file has a forward that is given up, and one of them is around the call."""
    report = scan("""
        import numpy as np, torch
        from torch import nn

        class Encoder(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(2))
            def forward(self, x):
                for layer in self.layers:
                    if not (self.training and np.random.uniform(0, 1) < 0.1):
                        x = layer(x)
                return x

        def gate(x, n):
            return torch.tanh(x[:, :n[0]])

        class Layer(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = nn.Conv1d(8, 8, 1)
            def forward(self, x, n):
                return gate(self.conv(x), n) * x.mean() + x

        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.flows = nn.ModuleList(Layer() for _ in range(3))
            def forward(self, x, n):
                for flow in self.flows:
                    x = torch.flip(flow(x, n), [1]).contiguous()
                return x

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.encoder, self.block = Encoder(), Block()
            def forward(self, x, n):
                return self.block(self.encoder(x).transpose(1, 2), n)

        net = Net().train()
        with torch.no_grad():
            for _ in range(4):
                net(torch.randn(2, 5, 8), torch.IntTensor([8]))
    """)
    finding = next(one for one in coded(report, "BS202") if one.location.function == "Layer.forward")
    cause = next(one for one in report.findings if one.fingerprint == finding.caused_by)
    assert cause.location.function == "gate"


def test_a_recompile_that_ended_at_a_break_goes_with_it(scan: Scan) -> None:
    report = scan("""
        import torch
        from torch import nn

        class Res(nn.Module):
            def __init__(self):
                super().__init__()
                self.lin = nn.Linear(8, 8)
            def forward(self, x):
                h = self.lin(x)
                slope = torch.autograd.grad(h.sum(), self.lin.weight, retain_graph=True)[0]
                return h + slope.sum().detach()

        class Block(nn.Sequential):
            def forward(self, x):
                for layer in self:
                    x = layer(x)
                return x

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.blocks = nn.ModuleList([Block(nn.Linear(3, 8)), Block(Res()), Block(Res(), Res())])
            def forward(self, x):
                for block in self.blocks:
                    x = block(x)
                return x

        net = Net()
        for _ in range(3):
            net(torch.rand(4, 3)).sum().backward()
    """)
    [finding] = coded(report, "BS210")
    assert finding.location.function == "Block.forward"
    assert "This compile of Block.forward came to nothing at that break. Goes with BS121" in _said(finding)


def test_what_the_script_disables_behind_another_statement_is_its_own(scan: Scan, tmp_path: Path) -> None:
    library = tmp_path / "site-packages" / "models"
    library.mkdir(parents=True)
    (library / "__init__.py").write_text(
        "import torch\nclass Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.lin = torch.nn.Linear(2, 2)\n    def loss_function(self, x):\n        return x.sum()\n"
        "    def forward(self, x):\n        return self.loss_function(self.lin(x)) * 2\n"
    )
    report = scan(f"""
        import sys
        sys.path.insert(0, {str(library.parent)!r})
        import torch
        from models import Net
        net = Net(); net.loss_function = torch.compiler.disable(net.loss_function)
        for _ in range(3):
            net(torch.ones(2, 2))
    """)
    [finding] = coded(report, "BS108")
    assert "`net.loss_function` (script.py:6) is given torch.compiler.disable there" in _said(finding)


# ---- what its own code does ----


def test_whole_numbers_in_a_modules_float_are_to_be_written_as_floats(scan: Scan) -> None:
    script = """
        import torch

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.lin, self.momentum = torch.nn.Linear(3, 3), 0.0
            def forward(self, x):
                return self.lin(x) * self.momentum

        net = Net()
        for value in ({}):
            net.momentum = value
            net(torch.ones(3))
    """
    whole = scan(script.format("0.0, 1, 2, 3, 4"))
    [finding] = coded(whole, "BS209")
    assert finding.counts.occurrences == 4
    assert "rite whole numbers that self.momentum is given as floats (1.0)" in _said(finding)
    written = scan(script.format("0.0, 1.0, 2.0, 3.0, 4.0"))
    assert sum(one.counts.occurrences for one in coded(written, "BS209")) == 1


def test_one_call_in_eager_sets_the_flags_of_all_layers(scan: Scan) -> None:
    script = """
        import torch
        from torch import nn

        class ActNorm(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale, self.initialized = nn.Parameter(torch.ones(4)), False
            def forward(self, x):
                if self.initialized == False:
                    self.scale.data.copy_(1.0 / (x.std(0) + 1e-3))
                    self.initialized = True
                return x * self.scale

        net = nn.Sequential(ActNorm(), nn.Linear(4, 4), ActNorm())
        {}
        run = torch.compile(net, backend="eager")
        for _ in range(3):
            run(torch.randn(8, 4))
    """
    [finding] = coded(scan(script.format("pass")), "BS209")
    assert "It sets self[2].initialized as well" in str(finding.advice)
    assert "compiled all the same" not in str(finding.advice)
    assert not scan(script.format("net(torch.randn(8, 4))")).findings


def test_what_a_first_call_makes_may_be_set_before_it(scan: Scan) -> None:
    script = """
        import torch

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.lin, self.mask = torch.nn.Linear(2, 2), None
            def forward(self, x):
                if self.mask is None or self.mask.size(0) != len(x):
                    self.mask = torch.ones(len(x), 1)
                return self.lin(x) * self.mask

        net = Net()
        {}
        data = torch.ones(36, 2)
        for at in range(0, 36, 16):
            net(data[at:at + 16])
    """
    report = scan(script.format("pass"))
    [finding] = coded(report, "BS209")
    assert "itself in line 10: give it one of the same kind in __init__ or before the first call" in _said(
        finding
    )
    # Nothing here is loaded by a DataLoader.
    [size] = coded(report, "BS201")
    assert _said(size).endswith("where that is a last, smaller part of the data, to leave it out saves this")
    assert not coded(scan(script.format("net.mask = torch.ones(16, 1)")), "BS209")


def test_what_is_emptied_before_each_call_is_not_to_be_set_before_the_first(scan: Scan) -> None:
    report = scan("""
        import torch

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.lin, self.noise = torch.nn.Linear(4, 4), None
            def begin(self, noise=None):
                self.noise = noise
            def forward(self, x):
                if self.noise is None:
                    self.noise = torch.randn_like(x)
                return self.lin(x) + self.noise

        net = Net()
        for _ in range(2):
            net.begin()
            for _ in range(2):
                net(torch.ones(2, 4))
    """)
    [finding] = coded(report, "BS209")
    assert "self.noise is emptied again in begin (line 9)" in str(finding.advice)
    assert "before the first call" not in _said(finding)


def test_a_dict_that_a_change_of_mode_empties_is_filled_after_each(scan: Scan) -> None:
    report = scan("""
        import torch
        from torch import nn

        class Biased(nn.Module):
            def __init__(self):
                super().__init__()
                self.bias, self.kept = nn.Parameter(torch.ones(4)), {}
            def train(self, mode=True):
                super().train(mode)
                if mode and self.kept:
                    self.kept = {}
                return self
            def forward(self, x):
                if self.training:
                    return x + self.bias
                if "cpu" not in self.kept:
                    self.kept["cpu"] = self.bias * 2
                return x + self.kept["cpu"]

        net = Biased()
        for _ in range(2):
            net.train()
            net(torch.ones(2, 4)).sum().backward()
            net.eval()
            with torch.no_grad():
                for _ in range(2):
                    net(torch.ones(2, 4))
    """)
    [finding] = coded(report, "BS211")
    assert "it is emptied again in train (line 12)" in str(finding.advice)
    assert "before the first compiled" not in str(finding.advice)


def test_classes_that_data_count_are_compared_and_not_one_hot(scan: Scan) -> None:
    script = """
        import torch
        import torch.nn.functional as F

        @torch.compile(backend="eager")
        def f(x, index):
            n = index.max() + 1
            hot = {}
            return (x * hot).sum()

        for most in (8, 5):
            f(torch.ones(4, 6), torch.tensor([0, 1, 2, most]))
    """
    report = scan(script.format("F.one_hot(index, max(n, 6))[..., :6]"))
    [finding] = coded(report, "BS102")
    assert "(i[..., None] == torch.arange(n)).long()" in str(finding.advice)
    assert "capture_scalar_outputs" not in str(finding.advice)
    followed = scan(script.format("(index[..., None] == torch.arange(6)).long()"))
    assert not followed.findings


def test_what_a_convolution_asks_of_two_sizes_bounds_what_is_taken(scan: Scan) -> None:
    report = scan("""
        import torch

        net = torch.nn.Conv2d(3, 8, 3, padding=1)
        with torch.no_grad():
            for size in (65, 97):
                net(torch.randn(1, 3, size, size))
    """)
    [size] = [one for one in coded(report, "BS201") if one.guard is not None and one.guard.dimension == 2]
    assert re.search(r"takes any for which 3 \* \S+ \* \S+ > 20480 has the same answer", _said(size))


def test_keys_that_mean_something_get_no_neutral_value(scan: Scan) -> None:
    report = scan("""
        import torch

        @torch.compile(backend="eager")
        def f(x, cache):
            if "condition" in cache:
                return x + cache["condition"]
            cache["condition"] = x * 2
            return x + cache["condition"]

        cache = {}
        for _ in range(3):
            f(torch.ones(3), cache)
    """)
    [finding] = coded(report, "BS211")
    assert "with a neutral value only where the code does not ask whether a key is there" in str(
        finding.advice
    )


def test_a_slice_that_is_the_whole_at_last_is_another_layout(scan: Scan) -> None:
    report = scan("""
        import torch

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = torch.nn.Conv2d(16, 16, 3, padding=1)
            def forward(self, x):
                return self.conv(torch.nn.functional.one_hot(x, 16).permute(0, 3, 1, 2).float())

        net, row = Net().eval(), torch.zeros(2, 8, 8, dtype=torch.long)
        with torch.no_grad():
            for i in range(8):
                net(row[:, :i + 1])
    """)
    assert any(
        "another layout of x (it was compiled for x.stride(0) !=" in _said(one)
        for one in coded(report, "BS214")
    )


def test_a_quotient_that_many_sizes_have_is_no_number_of_each(scan: Scan) -> None:
    report = scan("""
        import torch
        from torch import nn

        net = nn.Sequential(
            nn.ZeroPad2d((0, 1, 0, 1)), nn.Conv2d(3, 8, 3, stride=2), nn.AvgPool2d(64, ceil_mode=True)
        )
        with torch.no_grad():
            for size in (32, 48, 64, 56, 40):
                net(torch.randn(2, 3, size, size))
    """)
    sizes = coded(report, "BS201")
    assert sum(one.counts.occurrences for one in sizes) == 1
    assert all("of which the code needs the number" not in _said(one) for one in sizes)


def test_pieces_as_many_as_the_length_are_told_as_a_number(scan: Scan) -> None:
    report = scan("""
        import torch
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.emb, self.out = nn.Embedding(20, 8), nn.Linear(8, 20)
            def forward(self, x):
                h, total, outs = self.emb(x), 0, []
                for piece in h.chunk(128, dim=1):
                    total = total + piece.sum(1, keepdim=True)
                    outs.append(total)
                return self.out(torch.cat(outs, 1))

        net = Net()
        net(torch.randint(0, 20, (4, 9))).mean().backward()
        net.eval()
        with torch.no_grad():
            for n in (4, 5, 6):
                net(torch.randint(0, 20, (1, n)))
    """)
    [finding] = coded(report, "BS214")
    assert "makes a Python number of dimension 1 of" in str(finding.advice)
    assert "(a loop (line 11))" in str(finding.advice)


def test_an_operation_in_a_comprehension_is_no_loop_over_the_size(scan: Scan) -> None:
    script = """
        import torch

        @torch.compile(backend="eager")
        def f(x):
            _, *axes = x.shape
            return sum({}.sum() for n in axes) + x.sum()

        for n in (12, 16, 20):
            f(torch.ones(2, n))
    """
    [finding] = coded(scan(script.format("torch.linspace(-1.0, 1.0, steps=n)")), "BS201")
    assert "(an operation (line 7: torch.linspace))" in str(finding.advice)
    assert "use torch.arange in its place, which takes any size" in str(finding.advice)
    followed = coded(scan(script.format("(torch.arange(n) * (2 / (n - 1)) - 1)")), "BS201")
    assert sum(one.counts.occurrences for one in followed) == 1


def test_a_tensor_of_numbers_that_are_made_of_sizes_is_a_version_for_each(scan: Scan) -> None:
    script = """
        import torch

        @torch.compile(backend="eager")
        def f(pred, targets):
            n = {}
            return sum((pred[i] - one).abs().sum() for i, one in enumerate(targets)) / n

        for sizes in ((3, 4), (4, 2), (6, 5), (2, 5), (7, 3)):
            f(torch.ones(2, 1), [torch.randn(size) for size in sizes])
    """
    report = scan(script.format("torch.as_tensor([sum(len(one) for one in targets)])"))
    [finding] = coded(report, "BS214")
    assert "script.py:6 makes a tensor of Python's numbers, for which torch needs them" in str(finding.advice)
    assert "Calculate with the number in place of the tensor" in str(finding.advice)
    notes = [_said(one) for one in coded(report, "BS201")]
    assert not any("torch takes any:" in text for text in notes)
    assert not coded(scan(script.format("sum(len(one) for one in targets)")), "BS214")


def test_a_size_that_is_taken_for_any_says_where_that_ends(scan: Scan) -> None:
    """A convolution on the CPU asks how large its input is, and no line of the script does."""
    report = scan("""
        import torch

        net = torch.nn.Conv2d(3, 4, 3)
        with torch.no_grad():
            for size in (8, 12, 100):
                net(torch.randn(1, 3, size, size))
    """)
    if coded(report, "BS214"):
        assert any(
            re.search(
                r"takes any (on the same side of what is asked of it|for which .* has the same)", _said(one)
            )
            for one in coded(report, "BS201")
        )
    else:
        pytest.skip("this torch asks nothing of the size")


def test_what_a_comprehension_breaks_at_is_named(scan: Scan) -> None:
    report = scan("""
        import zlib, torch

        @torch.compile(backend="eager")
        def f(x):
            n = [zlib.crc32(bytes(one.shape)) for i, one in enumerate(x.split(1))]
            return x * len(n)

        f(torch.ones(2, 3))
    """)
    whole = next(one for one in report.findings if "Something in the comprehension" in str(one.advice))
    assert "Goes with BS111 at script.py:6" in str(whole.advice)


def test_an_index_that_is_read_also_with_scalars_captured_is_told_as_one(scan: Scan) -> None:
    script = """
        import torch
        torch._dynamo.config.capture_scalar_outputs = True

        @torch.compile(backend="eager")
        def f(x):
            _, best = torch.topk(x.mean(0), 3)
            total = 0
            for i in range(3):
                total = total + {}
            return total

        for _ in range(2):
            f(torch.randn(4, 16))
    """
    report = scan(script.format("x[:, best[i]]"))
    finding = next(one for one in report.findings if one.kind in ("skip", "graph_break"))
    assert "x.index_select(dim, i.reshape(1)).squeeze(dim)" in str(finding.advice)
    assert not scan(script.format("x.index_select(1, best[i].reshape(1)).squeeze(1)")).findings


def test_conditions_behind_what_breaks_are_none_for_it(tmp_path: Path) -> None:
    """Where each operand looks plain, the first may be the one: a size that data gives."""
    script = tmp_path / "net.py"
    script.write_text(
        "def f(x, mask, causal):\n    n = x.shape[2]\n    return n > 1 and mask is None and causal\n"
    )
    position = (3, 11, 3, 43)
    assert reach.settings(Sources(), str(script), position) is None


def test_a_gradient_that_is_asked_of_an_argument_is_asked_by_the_caller(scan: Scan) -> None:
    script = """
        import torch
        from torch import nn

        class Slope(nn.Module):
            def __init__(self):
                super().__init__()
                self.lin = nn.Linear(2, 2)
            def forward(self, x):
                with torch.enable_grad():
                    x.requires_grad_(True)
                    return self.lin(x).tanh()

        net = Slope()
        for _ in range(3):
            net(torch.ones(8, 2){})
    """
    [finding] = coded(scan(script.format("")), "BS115")
    assert "Let the caller hand it over with a gradient asked for" in str(finding.advice)
    assert not coded(scan(script.format(".requires_grad_()")), "BS115")


# ---- what fails where it is compiled ----


def test_what_is_made_in_eager_only_is_named_where_none_comes_instead(scan: Scan) -> None:
    report = scan("""
        import torch
        from torch import nn

        class Attention(nn.Module):
            def __init__(self):
                super().__init__()
                self.lin = nn.Linear(8, 8)
            def forward(self, x, mask=None, bias=None):
                if bias is None:
                    bias = torch.zeros(1, 1, x.shape[1], x.shape[1])
                    if mask is not None:
                        bias = bias + mask[:, None, None, :]
                    bias = torch.cat([bias, torch.zeros(x.shape[0], 1, x.shape[1], 2)], dim=-1)
                return self.lin(x) + bias.mean()

        class Stack(nn.Module):
            def __init__(self):
                super().__init__()
                self.attention = Attention()
            def forward(self, x, mask=None):
                if mask is None and not torch.compiler.is_compiling():
                    mask = torch.ones(x.shape[0], x.shape[1])
                return self.attention(x, mask)

        net = Stack()
        net(torch.randn(2, 5, 8), torch.ones(2, 5))
        net(torch.randn(2, 5, 8))
    """)
    [finding] = coded(report, "BS191")
    assert "script.py:22 makes mask only where nothing is being compiled" in str(finding.advice)
    assert "Pass mask in the call" in str(finding.advice)


_PENALTY = """
    import torch
    from torch import nn

    net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
    for _ in range(2):
        x = torch.rand(4, 2, requires_grad=True)
        y = net(x)
        [slope] = torch.autograd.grad(y.sum(), [x], create_graph={})
        loss = y.mean() + slope.pow(2).sum(){}
        loss.backward()
"""


def test_a_gradient_of_a_gradient_through_compiled_code_is_told(scan: Scan) -> None:
    report = scan(_PENALTY.format("True", ""), "--backend", "aot_eager")
    [finding] = coded(report, "BS310")
    assert (finding.location.line, finding.effect) == (9, "ended")
    assert "What is differentiated again at script.py:11 goes through a compiled call" in str(finding.advice)
    assert report.run.status == "script_error"


def test_a_backend_that_allows_it_says_which_do_not(scan: Scan) -> None:
    def notes(script: str) -> list[str]:
        report = scan(script)
        assert report.run.status == "ok"
        assert not report.findings
        return [text for text in report.run.notes if "create_graph=True" in text]

    [note] = notes(_PENALTY.format("True", ""))
    assert note.startswith("script.py:9 takes a gradient that can be differentiated again")
    assert notes(_PENALTY.format("False", " + net(x).sum()").replace("y.mean() + ", "")) == []


def test_reading_a_parametrized_weight_is_no_step(scan: Scan) -> None:
    """``weight_norm`` makes a module of it, whose call an initializer's reads are."""
    report = scan("""
        import torch
        from torch import nn
        from torch.nn.utils.parametrizations import weight_norm

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([weight_norm(nn.Linear(4, 4)) for _ in range(3)])
                self.norms = [layer.weight.norm().item() for layer in self.layers]
            def forward(self, x):
                for layer in self.layers:
                    x = layer(x).relu()
                return x

        net = Net()
        for _ in range(4):
            net(torch.ones(2, 4)).sum().backward()
    """)
    assert report.totals.steps == 4
    assert [one.name for one in report.run.targets] == ["Net"]
