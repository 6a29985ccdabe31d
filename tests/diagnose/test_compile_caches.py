"""What the caches of compiled code answered: in a cold run, in a warm one, and in their comparison."""

from __future__ import annotations

import io
import textwrap
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from warm_scanning import run_command

import breakscope
from breakscope.cli import main
from breakscope.diagnose.compare import compare
from breakscope.render import html
from breakscope.report.model import Compile, Report

pytestmark = [pytest.mark.torch, pytest.mark.slow]

SCRIPT = """
    import torch

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2
        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    @torch.compile(backend="inductor")
    def plain(x):
        return torch.sin(x).softmax(-1)

    @torch.compile(backend="inductor")
    def with_own_backward(x):
        return Double.apply(x) + 1

    plain(torch.ones(8, 16))
    with_own_backward(torch.ones(8, requires_grad=True))
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, Report, Path]:
    """The same script twice with one cache, and the trace that torch wrote of the second run."""
    folder = tmp_path_factory.mktemp("caches")
    (folder / "script.py").write_text(textwrap.dedent(SCRIPT))
    reports = []
    for trace in ("cold", "warm"):
        done = run_command(
            *("scan", "-q", "--backend", "inductor", "script.py"),
            folder=folder,
            torch=True,
            TORCHINDUCTOR_CACHE_DIR=str(folder / "cache"),
            TORCH_TRACE=str(folder / trace),
        )
        assert done.returncode == 0, done.stderr
        reports.append(breakscope.load(folder / ".breakscope" / "latest.json"))
    return reports[0], reports[1], folder / "warm"


def of(report: Report, function: str) -> Compile:
    return next(one for one in report.compiles if one.function == function)


def test_each_compile_says_what_the_caches_answered_and_why_one_was_not_asked(
    runs: tuple[Report, Report, Path],
) -> None:
    cold, warm, _ = runs
    assert of(cold, "plain").caches == {"aot_autograd": "miss", "fx_graph": "miss"}
    assert of(warm, "plain").caches == {"aot_autograd": "hit", "fx_graph": "hit"}
    assert of(warm, "plain").bypassed == {}
    for report, graph in ((cold, "miss"), (warm, "hit")):
        bypassed = of(report, "with_own_backward")
        assert bypassed.caches == {"aot_autograd": "bypass", "fx_graph": graph}
        assert "autograd_function_apply" in bypassed.bypassed["aot_autograd"]
        assert bypassed.cache == graph


def test_an_imported_trace_says_the_same(runs: tuple[Report, Report, Path], tmp_path: Path) -> None:
    _, warm, trace = runs
    assert main(["import", "-q", str(trace), "-o", str(tmp_path / "imported.json")]) == 0
    imported = breakscope.load(tmp_path / "imported.json")
    assert [(one.function, one.caches, one.bypassed) for one in imported.compiles] == [
        (one.function, one.caches, one.bypassed) for one in warm.compiles
    ]


def test_a_comparison_says_that_a_cache_made_the_difference(
    runs: tuple[Report, Report, Path], tmp_path: Path
) -> None:
    cold, warm, _ = runs
    found = compare(cold, warm).compile_time
    assert found is not None
    assert found.old > found.new
    assert found.hits == {"aot_autograd": ((0, 2), (1, 2)), "fx_graph": ((0, 2), (2, 2))}
    cold.save(tmp_path / "cold.json")
    warm.save(tmp_path / "warm.json")
    for form in ("terminal", "markdown"):
        said = io.StringIO()
        with redirect_stdout(said):
            main(["diff", str(tmp_path / "cold.json"), str(tmp_path / "warm.json"), "-f", form])
        assert "FX graph cache hits 0 of 2 -> 2 of 2" in " ".join(said.getvalue().split())
    assert "FX graph cache hits 0 of 2" in html.render_diff(compare(cold, warm), root=None)
    assert compare(warm, warm).compile_time is None


def test_the_screen_sums_up_the_caches_and_lists_every_compile_when_asked(
    runs: tuple[Report, Report, Path], tmp_path: Path
) -> None:
    _, warm, _ = runs
    warm.save(tmp_path / "warm.json")
    said = io.StringIO()
    with redirect_stdout(said):
        main(["report", str(tmp_path / "warm.json"), "--all"])
    words = " ".join(said.getvalue().split())
    assert "caches: AOTAutograd 1 of 2 (1 bypassed), FX graph 2 of 2" in words
    assert "[0/0] plain at step 0: " in words
    assert "AOTAutograd bypassed: Unsupported call_function target autograd_function_apply" in words
    assert "AOTAutograd bypassed: Unsupported" in html.render(warm, sources=None)
