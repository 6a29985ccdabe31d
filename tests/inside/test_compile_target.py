"""What ``--compile`` compiles, and that it leaves the rest of the script as it was.

Nightly are further spellings of a target, kinds of methods, and backends; every run has one of each sort.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from scanning import Scanned, elsewhere, run_cold

from breakscope.report.model import Finding, Report

pytestmark = pytest.mark.torch

Scan = Callable[..., Scanned]


def by(report: Report) -> dict[str, str]:
    """Who compiled what."""
    return {target.name: target.by for target in report.run.targets}


def only(report: Report) -> Finding:
    """The one finding of a report."""
    assert report.reconciliation.unattributed == ()
    [finding] = report.findings
    return finding


def line_of(scanned: Scanned, text: str, name: str = "script.py") -> int:
    lines = (scanned.folder / name).read_text().splitlines()
    [number] = [number for number, line in enumerate(lines, 1) if text in line]
    return number


# -- --compile FUNCTION ----------------------------------------------------------------------------

EVERY_KIND = """
    import functools
    import multiprocessing
    import pickle
    import sys

    import torch


    def wrapping(function):
        @functools.wraps(function)
        def around(*args):
            return function(*args)

        return around


    @wrapping
    def train_step(x):
        y = x + 1
        print(end="train_step")
        return y * 2


    class Net(torch.nn.Module):
        def forward(self, x):
            y = x + 1
            print(end="Net.forward")
            return y * 2

        @staticmethod
        def still(x):
            y = x + 1
            print(end="Net.still")
            return y * 2

        @classmethod
        def of(cls, x):
            y = x + 1
            print(end="Net.of")
            return y * 2

        @property
        def gauge(self):
            y = torch.ones(3) + 1
            print(end="Net.gauge")
            return y * 2


    def work(n):
        return float(train_step(torch.full((2,), float(n))).sum())


    def main():
        def step(x):
            y = x + 1
            print(end="main.step")
            return y * 2

        @torch.compile
        def own(x):
            return x * 3

        net = Net()
        x = torch.ones(2)
        for _ in range(3):
            for call in (train_step, net, Net.still, Net.of, step, own):
                call(x)
            net.gauge
        assert pickle.loads(pickle.dumps(train_step)) is train_step
        assert pickle.loads(pickle.dumps(Net.still)) is Net.still
        assert type(pickle.loads(pickle.dumps(net))) is Net
        if sys.argv[1:] == ["spawn"]:
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                assert pool.map(work, [1, 2]) == [8.0, 12.0]


    if __name__ == "__main__":
        main()
"""


@pytest.mark.parametrize(
    ("target", "function"),
    [
        ("train_step", "train_step"),
        ("Net.forward", "Net.forward"),
        pytest.param("script.py:Net.forward", "Net.forward", marks=pytest.mark.nightly),
        pytest.param("Net.still", "Net.still", marks=pytest.mark.nightly),
        pytest.param("Net.of", "Net.of", marks=pytest.mark.nightly),
        pytest.param("Net.gauge", "Net.gauge", marks=pytest.mark.nightly),
        ("main.step", "main.<locals>.step"),
    ],
)
def test_a_function_of_the_script_is_compiled_where_it_stands(scan: Scan, target: str, function: str) -> None:
    # The worker of a decorated function is sent the function by name; one target shows it.
    scanned = scan(EVERY_KIND, "--compile", target, args=["spawn"] if target == "train_step" else [])
    assert scanned.exit_code == 0, scanned.stderr
    report = scanned.report
    # What the script compiles by itself is seen too.
    assert by(report) == {function: "breakscope", "main.<locals>.own": "script"}
    finding = only(report)
    text = f'print(end="{target.rpartition(":")[2]}")'
    assert (finding.location.line, finding.location.source) == (line_of(scanned, text), text)
    assert finding.location.function == function
    # The runs in the spawned worker are not the script's.
    assert finding.counts.crossings == 3


def test_a_function_of_another_module_is_compiled(scan: Scan, tmp_path: Path) -> None:
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("from .mod import fn\n")
    (package / "mod.py").write_text(
        "import torch\n\n\ndef fn(x):\n    y = x + 1\n    print(end='')\n    return y * 2\n\n\n"
        "if __name__ == '__main__':\n    for _ in range(3):\n        fn(torch.ones(2))\n"
    )
    source = """
        import torch
        from pkg import fn

        for _ in range(3):
            fn(torch.ones(2))
    """
    for target in ("pkg.mod:fn", "mod.py:fn"):
        report = scan(source, "--compile", target).report
        assert by(report) == {"fn": "breakscope"}
        finding = only(report)
        assert (Path(finding.location.file), finding.location.line) == (package / "mod.py", 6)
        assert finding.counts.crossings == 3


RUN_AS_MODULE = """
    import sys
    import torch

    def fn(x):
        y = x + 1
        print(end="")
        return y * 2

    if __name__ == "__main__":
        assert sys.argv[1:] == ["--name", "value"]
        for _ in range(3):
            fn(torch.ones(2))
"""


@pytest.mark.parametrize(
    "target", ["fn", "pkg.mod:fn", pytest.param("pkg/mod.py:fn", marks=pytest.mark.nightly)]
)
def test_a_function_of_a_module_that_is_run_is_compiled(tmp_path: Path, target: str) -> None:
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "mod.py").write_text(textwrap.dedent(RUN_AS_MODULE))
    done = run_cold("scan", "-q", "--compile", target, "-m", "pkg.mod", "--name", "value", folder=tmp_path)
    scanned = Scanned(done.returncode, done.stdout.encode(), done.stderr, tmp_path)
    assert scanned.exit_code == 0, scanned.stderr
    finding = only(scanned.report)
    assert finding.location.line == line_of(scanned, 'print(end="")', "pkg/mod.py")
    assert finding.counts.crossings == 3


# -- --compile script and auto ---------------------------------------------------------------------

TWO_NETS = """
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x):
            y = self.fc(x)
            print(end="")
            return y * 2

    first, second = Net(), Net()
    head = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    relu, loss = nn.ReLU(), nn.CrossEntropyLoss()
"""


def test_what_the_script_does_not_compile_is_left_alone(scan: Scan) -> None:
    scanned = scan(TWO_NETS + "\n    first(torch.ones(2, 4))\n", "--compile", "script")
    assert scanned.exit_code == 0
    assert scanned.report.reconciliation.vacuous
    assert scanned.report.run.targets == ()


def test_auto_compiles_outermost_calls_of_what_has_parameters(scan: Scan) -> None:
    scanned = scan(
        TWO_NETS
        + """
    import copy, io, pickle, threading
    before = {k: v.clone() for k, v in first.state_dict().items()}
    for _ in range(3):
        for net in (first, second):
            out = relu(head(net(torch.ones(2, 4))))
            loss(out, torch.tensor([0, 1]))
    thread = threading.Thread(target=lambda: [first(torch.ones(2, 4)) for _ in range(3)])
    thread.start()
    thread.join()

    assert list(first.state_dict()) == list(before) == ["fc.weight", "fc.bias"]
    assert all(torch.equal(first.state_dict()[k], v) for k, v in before.items())
    assert set(first.__dict__) == set(Net().__dict__)
    for again in (copy.deepcopy(first), pickle.loads(pickle.dumps(first))):
        assert torch.equal(again(torch.ones(2, 4)), first(torch.ones(2, 4)))
    stream = io.BytesIO()
    torch.save(first, stream)
    stream.seek(0)
    assert type(torch.load(stream, weights_only=False)) is Net
    scripted = torch.jit.script(head)
    assert torch.equal(scripted(torch.ones(2, 4)), head(torch.ones(2, 4)))
    """
    )
    assert scanned.exit_code == 0, scanned.stderr
    report = scanned.report
    assert by(report) == {"Net": "breakscope", "Sequential": "breakscope"}
    [site] = [finding for finding in report.findings if finding.kind == "graph_break"]
    # 2 networks 3 times, 3 in the thread, and 4 of the copies and the original beside them.
    assert site.counts.crossings == 6 + 3 + 4
    assert report.reconciliation.unattributed == ()


def test_auto_with_checkpointing_and_hooks(scan: Scan) -> None:
    scanned = scan(
        """
        import torch
        from torch import nn
        from torch.utils.checkpoint import checkpoint

        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 4)

            def forward(self, x):
                return torch.tanh(self.fc(x))

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.blocks = nn.ModuleList(Block() for _ in range(2))

            def forward(self, x):
                for block in self.blocks:
                    x = checkpoint(block, x, use_reentrant=False)
                return x.sum()

        seen = []
        net = Net()
        net.register_forward_hook(lambda module, args, out: seen.append("after"))
        net.register_forward_pre_hook(lambda module, args: seen.append("before"))
        for _ in range(3):
            net(torch.ones(2, 4)).backward()
        assert seen == ["before", "after"] * 3, seen
        assert net.blocks[0].fc.weight.grad is not None
        """
    )
    assert scanned.exit_code == 0, scanned.stderr
    # A block that backward calls again is not an outermost call.
    assert by(scanned.report) == {"Net": "breakscope"}
    assert scanned.report.reconciliation.unattributed == ()
    assert {region.calls for region in scanned.report.regions} == {3}


def test_auto_leaves_alone_a_script_that_compiles(scan: Scan) -> None:
    scanned = scan(
        TWO_NETS
        + """
    first(torch.ones(2, 4))
    compiled = torch.compile(second)
    for _ in range(4):
        first(torch.ones(2, 4))
        compiled(torch.ones(2, 4))
    """
    )
    report = scanned.report
    # Also the call before the script's torch.compile: plain use would not have compiled it.
    assert [(target.name, target.by) for target in report.run.targets] == [("Net", "script")]
    assert only(report).counts.crossings == 4


LIBRARY = """
import torch

@torch.compile
def fast_gelu(x):
    return x * torch.sigmoid(x)

class Trainer:
    def __init__(self, model, compile):
        self.model = torch.compile(model) if compile else model

    def train(self, x):
        for _ in range(3):
            self.model(fast_gelu(x))
"""


@pytest.mark.parametrize(
    ("trainer_compiles", "expected"),
    [
        (False, {"fast_gelu": "library", "Net": "breakscope"}),
        (True, {"fast_gelu": "library", "Net": "library"}),
    ],
)
def test_what_a_library_compiles(
    scan: Scan, tmp_path: Path, trainer_compiles: bool, expected: dict[str, str]
) -> None:
    library = tmp_path / "env" / "lib" / "site-packages"
    library.mkdir(parents=True)
    (library / "trainerlib.py").write_text(LIBRARY)
    scanned = scan(
        TWO_NETS
        + f"""
    import trainerlib
    trainerlib.Trainer(first, {trainer_compiles}).train(torch.ones(2, 4))
    second(torch.ones(2, 4))
    """,
        PYTHONPATH=f"{Path(__file__).parents[2]}:{library}",
    )
    assert scanned.exit_code == 0, scanned.stderr
    assert by(scanned.report) == expected
    [site] = [finding for finding in scanned.report.findings if finding.kind == "graph_break"]
    # `second` is compiled only while nobody else has compiled a model.
    assert site.counts.crossings == (3 if trainer_compiles else 4)


def test_every_way_to_compile_is_seen(scan: Scan) -> None:
    scanned = scan(
        TWO_NETS
        + """
    import torch._dynamo

    @torch.compile
    def bare(x):
        return x + 1

    @torch.compile(dynamic=False, options={})
    def with_arguments(x):
        return x + 2

    @torch._dynamo.optimize("eager")
    def with_optimize(x):
        return x + 3

    @torch.compile(disable=True)
    def disabled(x):
        return x + 4

    def later(x):
        return x + 5

    first.compile()
    twice = [torch.compile(later), torch.compile(later)]
    for function in (bare, with_arguments, with_optimize, disabled, first, *twice):
        for _ in range(2):
            function(torch.ones(2, 4))
    """
    )
    assert scanned.exit_code == 0, scanned.stderr
    report = scanned.report
    assert by(report) == dict.fromkeys(("bare", "with_arguments", "with_optimize", "later", "Net"), "script")
    # The second torch.compile(later) finds the code of the first one.
    functions = [region.function for region in report.regions]
    assert functions.count("later") == 1
    assert [region.calls for region in report.regions if region.function == "later"] == [4]
    assert report.totals.recompiles == 0
    assert only(report).counts.crossings == 2


# -- fullgraph, dynamic, backends ------------------------------------------------------------------

FULLGRAPH = """
    import torch

    @torch.compile(fullgraph=True)
    def scaled(x):
        return x * x.sum().item()

    @torch.compile(fullgraph=True)
    def noisy(x):
        y = x * 2
        print(end="")
        return y + 1

    for _ in range(3):
        scaled(torch.ones(3))
        noisy(torch.ones(3))
"""


def test_fullgraph_is_lifted_with_the_flags_that_it_implies(scan: Scan) -> None:
    scanned = scan(FULLGRAPH)
    assert scanned.exit_code == 0, scanned.stderr
    finding = only(scanned.report)
    assert (finding.location.source, finding.counts.crossings) == ('print(end="")', 3)
    [note] = [note for note in scanned.report.run.notes if "fullgraph=True was lifted" in note]
    assert "scaled" in note
    assert "noisy" in note
    assert "--keep-fullgraph" in note


def test_fullgraph_is_kept_on_demand(scan: Scan) -> None:
    scanned = scan(FULLGRAPH, "--keep-fullgraph")
    assert scanned.exit_code == 1
    assert "torch._dynamo.exc.Unsupported" in scanned.stderr
    assert "breakscope" not in elsewhere(scanned.stderr)
    report = scanned.report
    assert report.run.status == "script_error"
    finding = only(report)
    assert finding.code == "BS305"
    assert finding.location.line == line_of(scanned, 'print(end="")')
    assert not [note for note in report.run.notes if "lifted" in note]


def test_shapes_that_do_not_fit_are_the_scripts_error(scan: Scan) -> None:
    scanned = scan(
        """
        import torch

        @torch.compile
        def added(x, y):
            return x + y

        added(torch.ones(2, 3), torch.ones(4))
        """
    )
    assert scanned.exit_code == 1
    finding = only(scanned.report)
    assert (finding.code, finding.title) == ("BS190", "error that eager raises too")
    assert finding.location.line == line_of(scanned, "return x + y")


@pytest.mark.parametrize(
    ("dynamic", "regions", "recompiles"),
    [
        pytest.param("auto", 2, 1, marks=pytest.mark.nightly),
        ("true", 1, 0),
        pytest.param("false", 3, 2, marks=pytest.mark.nightly),
    ],
)
def test_dynamic_shapes_are_as_asked(scan: Scan, dynamic: str, regions: int, recompiles: int) -> None:
    scanned = scan(
        """
        import torch

        @torch.compile
        def double(x):
            return x * 2

        for n in (3, 4, 5):
            double(torch.ones(n))
        """,
        "--dynamic",
        dynamic,
    )
    assert (scanned.report.totals.regions, scanned.report.totals.recompiles) == (regions, recompiles)


BACKENDS = """
    import torch

    used = []

    def own_backend(graph_module, inputs):
        used.append("own")
        return graph_module.forward

    @torch.compile(backend=own_backend)
    def by_own(x):
        y = x * 2
        print(end="")
        return y + 1

    @torch.compile(backend="inductor", mode="reduce-overhead")
    def by_inductor(x):
        return torch.sin(x) + 1

    for _ in range(2):
        by_own(torch.ones(3))
        by_inductor(torch.ones(3))
    print(len(used))
"""


@pytest.mark.parametrize(
    ("backend", "own"),
    [
        ("eager", 0),
        pytest.param("aot_eager", 0, marks=pytest.mark.nightly),
        pytest.param("inductor", 0, marks=pytest.mark.slow),
        pytest.param("as-script", 2, marks=[pytest.mark.slow, pytest.mark.nightly]),
    ],
)
def test_the_backend_is_the_one_asked_for(scan: Scan, backend: str, own: int) -> None:
    scanned = scan(BACKENDS, "--backend", backend)
    assert scanned.exit_code == 0, scanned.stderr
    assert scanned.text.split()[0] == str(own)
    report = scanned.report
    assert report.run.backend == backend
    assert report.totals.regions == 3
    assert only(report).counts.crossings == 2
    blind = [note for note in report.run.notes if "not visible" in note]
    assert bool(blind) == (backend in ("eager", "aot_eager"))


def test_auto_leaves_a_call_to_who_reads_it_in_another_way(scan: Scan) -> None:
    """TensorBoard's ``add_graph`` traces the model: torch.jit.trace raises where it meets compiled code."""
    scanned = scan(
        """
        import torch
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(3, 3)
            def forward(self, x):
                return self.linear(x).relu()

        net, x = Net(), torch.ones(2, 3)
        traced = torch.jit.trace(net, x)
        exported = torch.export.export(net, (x,)).module()
        symbolic = torch.fx.symbolic_trace(net)
        for _ in range(3):
            y = net(x)
        for other in (traced, exported, symbolic):
            assert torch.equal(other(x), y)
        """
    )
    assert scanned.exit_code == 0, scanned.stderr
    assert by(scanned.report)["Net"] == "breakscope"


def test_a_layer_of_torchs_own_breaks_at_the_call_of_it(scan: Callable[..., Scanned]) -> None:
    scanned = scan("""
        import torch
        class Enc(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.lstm = torch.nn.LSTM(8, 4)
            def inference(self, x):
                outputs, _ = self.lstm(
                    x
                )

                return outputs
        net = Enc()
        for _ in range(2):
            net.inference(torch.ones(3, 1, 8))
    """)
    [site] = [one for one in scanned.report.findings if one.kind == "skip"]
    place = site.location
    assert (place.source or "").strip() == "outputs, _ = self.lstm("
    assert (place.line, place.column, place.end_line, place.end_column) == (8, 22, 10, 10)
