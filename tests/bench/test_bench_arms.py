"""Arms of real scripts in real processes. Backends that compile nothing stand in where Inductor is not the point.

Nightly: each of these is a benchmark of at least three processes, and the module takes ten minutes. That an arm that
computes something else is an error is held in every run; units, cycles and copies are, in the modules beside this one.
"""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scanning import clean_environment, command, run_python

import breakscope
from breakscope.inside import overlay
from breakscope.report import benchmark

pytestmark = pytest.mark.torch

NET = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(32, 32), torch.nn.Linear(32, 8)

    def forward(self, x):
        y = self.first(x)
        if y.sum() > 1e9:
            y = y * 2
        return self.second(y.relu())
"""

EVAL = f"""{NET}
net = Net()
with torch.no_grad():
    for _ in range(12):
        net(torch.randn(4, 32))
print("the script is over")
"""

# One kernel of Inductor's in each of two graphs.
TWO_GRAPHS = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.randn(512))

    def forward(self, x):
        x = (x * self.scale).relu()
        torch._dynamo.graph_break()
        return x.exp() + 1
"""

TRAIN = f"""{NET}
net = torch.compile(Net(), backend="eager")
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(80):
    for _ in range(2):  # accumulates gradients: a step is two calls
        net(torch.randn(4, 32)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def broken(backend: str) -> str:
    """A script whose compiled arm goes wrong in its own way."""
    return f"""{NET}
import time

def backend(graph, inputs):
    {backend}

net = torch.compile(Net(), backend=backend)
with torch.no_grad():
    for _ in range(12):
        net(torch.randn(4, 32))
"""


@pytest.mark.nightly
@pytest.mark.slow
def test_a_script_that_compiles_nothing(bench: Callable[..., Any]) -> None:
    done = bench(EVAL, "--backend", "aot_eager", "--steps", "40")
    assert done.exit_code == 0, done.stderr
    result = done.benchmark
    assert [(arm.name, arm.status) for arm in result.arms] == [("eager", "ok"), ("compiled", "ok")]
    eager, compiled = result.arms
    assert (eager.graphs, eager.crossings_per_step) == (0, 0.0)
    assert (compiled.graphs, compiled.crossings_per_step) == (2, 1.0)
    # 12 steps of its own are too few; one of the warm-up is repeated, and that is said.
    assert any("the script ended before enough steps" in note for note in result.notes)
    for arm in result.arms:
        assert arm.step is not None
        assert arm.step.low <= arm.step.median <= arm.step.high
        assert 2 * 20 <= arm.step.samples <= 2 * 80  # 40 each, or what turns on a slow CPU made of it
        assert len(arm.processes) == 2
        assert all(process.late_compiles == 0 for process in arm.processes)
    assert compiled.outputs is not None
    assert (compiled.outputs.status, compiled.outputs.tensors) == ("same", 2)
    assert compiled.processes[0].compiles == 2  # the graph before the break, and the one after
    assert compiled.processes[0].first_steps_ms[0] > 10 * compiled.step.median
    [verdict] = result.verdicts
    assert (verdict.arm, verdict.base) == ("compiled", "eager")
    assert result.unit == "an outermost compiled call"
    # The report is a scan's, with what broke in it, and every command reads it.
    assert [finding.code for finding in done.report.findings] == ["BS101"]
    assert "the script is over" not in done.stdout
    assert "compiled" in done.stdout
    again = bench(
        EVAL,
        *("--backend", "aot_eager", "--steps", "40", "--format", "json"),
        *("--against", ".breakscope/bench.json"),
    )
    assert json.loads(again.stdout)["unit"] == result.unit
    assert again.exit_code in (0, 1)  # the machine decides whether it was slower; either way it says which
    assert (again.exit_code == 1) == ("slower than --against: " in again.stderr)


@pytest.mark.nightly
@pytest.mark.slow
def test_a_training_step_is_more_than_its_calls(bench: Callable[..., Any]) -> None:
    done = bench(TRAIN, "--processes", "1", "--steps", "20")
    assert done.exit_code == 0, done.stderr
    assert done.benchmark.unit == "a whole step of the script, from one optimizer step to the next"
    for arm in done.benchmark.arms:
        assert arm.step is not None
        assert arm.calls is not None
        assert arm.calls.median < arm.step.median
        assert 10 <= arm.step.samples <= 30  # 20, or what turns on a slow CPU made of it
    compiled = done.arm("compiled")
    assert compiled.crossings_per_step == 2.0
    assert compiled.outputs is not None
    # Two calls of each of the first two steps: the third and fourth see what the optimizer made of gradients.
    assert (compiled.outputs.status, compiled.outputs.tensors) == ("same", 4)
    assert not any("repeat" in note for note in done.benchmark.notes)


@pytest.mark.slow
def test_an_arm_that_computes_something_else_is_an_error(bench: Callable[..., Any]) -> None:
    script = broken("return lambda *args: [1.5 * out for out in graph(*args)]")
    done = bench(script, "--processes", "1", "--steps", "10")
    assert done.exit_code == 1
    assert "compiled computes another result than eager mode: call 0, result: differs by" in done.stderr
    assert done.arm("compiled").status == "ok"  # it was measured
    assert done.benchmark.recommendation.arm == "eager"
    assert "DIFFERENT" in done.stdout


@pytest.mark.nightly
@pytest.mark.slow
def test_out_of_memory_in_one_arm_leaves_the_other(bench: Callable[..., Any]) -> None:
    script = broken('raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1.00 TiB")')
    done = bench(script, "--processes", "1", "--steps", "10")
    assert done.exit_code == 1
    assert "breakscope: compiled failed: " in done.stderr
    assert done.benchmark.recommendation.arm is None
    assert done.arm("eager").status == "ok"
    failed = done.arm("compiled")
    assert failed.status == "failed"
    assert "out of memory. Tried to allocate" in (failed.reason or "")
    assert "compiled failed: " in done.stdout


@pytest.mark.nightly
@pytest.mark.slow
def test_a_hang_in_one_arm_is_ended(bench: Callable[..., Any]) -> None:
    script = broken("return lambda *args: time.sleep(10_000)")
    done = bench(script, "--processes", "1", "--steps", "10", "--timeout", "40")
    assert done.exit_code == 1
    assert "breakscope: compiled failed: " in done.stderr
    assert done.benchmark.recommendation.arm is None
    assert done.arm("eager").status == "ok"
    assert done.arm("compiled").reason == "hang: no answer for 40 s (--timeout) after 0 steps; it was ended"


@pytest.mark.nightly
@pytest.mark.slow
def test_a_crash_in_one_arm_says_where(bench: Callable[..., Any]) -> None:
    done = bench(
        broken("return lambda *args: __import__('ctypes').string_at(0)"), "--processes", "1", "--steps", "10"
    )
    assert done.exit_code == 1
    assert "breakscope: compiled failed: " in done.stderr
    assert done.benchmark.recommendation.arm is None
    assert done.arm("eager").status == "ok"
    reason = done.arm("compiled").reason or ""
    assert reason.startswith("ended by SIGSEGV in string_at (__init__.py:"), reason
    assert "< <lambda> (script.py:" in reason


@pytest.mark.nightly
@pytest.mark.slow
def test_steps_that_compile_are_thrown_out(bench: Callable[..., Any]) -> None:
    script = f"""{NET}
net = torch.compile(Net(), backend="eager")
with torch.no_grad():
    for step in range(2000):  # enough for all rounds: a repeated call would compile nothing
        if step % 9 == 8:
            torch.compiler.reset()
        net(torch.randn(4, 32))
"""
    done = bench(script, "--processes", "1", "--steps", "60")
    compiled = done.arm("compiled")
    assert compiled.discarded["something was compiled in it"] > 0
    assert compiled.step is not None
    assert compiled.step.samples + sum(compiled.discarded.values()) >= 60  # more where the CPU was slow
    assert compiled.processes[0].late_compiles > 0
    assert "something was compiled in it" not in done.arm("eager").discarded


@pytest.mark.nightly
@pytest.mark.slow
def test_repeated_calls_are_the_script_s_own(bench: Callable[..., Any]) -> None:
    """The script's calls have twice the same input, and modules that run outside of graphs: so do repeated ones."""
    script = f"""{NET}
class Outer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.ModuleList(Net() for _ in range(2))

    def forward(self, x, y):
        torch._dynamo.graph_break()
        for inner in self.inner:
            torch._dynamo.graph_break()
            x = torch.cat([inner(x), y[:, 8:]], 1)
        return x

net, x = Outer(), torch.randn(4, 32)
with torch.no_grad():
    for _ in range(10):
        net(x, x)
"""
    done = bench(script, "--backend", "aot_eager", "--processes", "1", "--steps", "40")
    assert any("repeat one of its warm-up" in note for note in done.benchmark.notes)
    compiled = done.arm("compiled")
    assert compiled.processes[0].late_compiles == 0, compiled.notes
    assert "something was compiled in it" not in compiled.discarded


@pytest.mark.nightly
@pytest.mark.slow
def test_a_late_compile_says_why(bench: Callable[..., Any]) -> None:
    script = f"""{NET}
net = torch.compile(Net(), backend="eager")
with torch.no_grad():
    for step in range(3000):
        net(torch.randn(4 if step % 100 < 97 else 4 + step // 100, 32))
"""
    done = bench(script, "--processes", "1", "--steps", "200")
    [note] = [note for note in done.arm("compiled").notes if note.startswith("compiled again")]
    assert "forward: tensor 'x' size mismatch at index 0. expected 4, actual 5" in note


@pytest.mark.nightly
@pytest.mark.slow
def test_an_interrupted_benchmark_keeps_what_it_has_measured(tmp_path: Path) -> None:
    script = f"""{NET}
import os, pathlib, time
net = torch.compile(Net(), backend="eager")
with torch.no_grad():
    for step in range(10**6):
        net(torch.randn(4, 32))
        time.sleep(0.005)
        if step == 400:
            pathlib.Path(f"far-{{os.getpid()}}").touch()
"""
    (tmp_path / "script.py").write_text(script)
    running = subprocess.Popen(
        command("bench", "--processes", "1", "--steps", "1000", "script.py"),
        cwd=tmp_path,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    # Warm-up and first turn take at most 260 steps: both arms are in a later turn.
    until(lambda: len(list(tmp_path.glob("far-*"))) == 2, limit_s=120)
    running.send_signal(signal.SIGINT)
    stdout, stderr = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "it was interrupted: these are the figures of what had been measured" in stdout
    assert stderr == "breakscope: interrupted; what was measured until then is in .breakscope/bench.json\n"
    found = benchmark.from_dict(breakscope.load(tmp_path / ".breakscope" / "bench.json").benchmark)
    assert found is not None
    assert found.interrupted
    assert [arm.status for arm in found.arms] == ["ok", "ok"]
    assert all(arm.step is not None and 100 <= arm.step.samples < 1000 for arm in found.arms)
    assert [verdict.arm for verdict in found.verdicts] == ["compiled"]
    assert not list((tmp_path / ".breakscope").glob(".run-*"))


@pytest.mark.nightly
@pytest.mark.slow
def test_one_function_on_its_first_inputs(bench: Callable[..., Any]) -> None:
    script = """
import torch

def scale(x, values):
    values.mul_(2)  # what a call changes must not reach the next one
    return x * values.sum()

print(scale(torch.ones(64), torch.ones(4)))
"""
    done = bench(script, "--function", "scale", "--backend", "aot_eager", "--processes", "1", "--steps", "20")
    assert done.exit_code == 0, done.stderr
    assert done.benchmark.unit == "a call of scale on copies of its first inputs"
    assert [arm.status for arm in done.benchmark.arms] == ["ok", "ok"]
    assert done.arm("compiled").outputs.status == "same"


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("print('no torch')", "the script ended without importing torch"),
        ("import torch", "it ended with exit status 0 before it had made its steps"),
        ("import torch\nraise ValueError('a wrong flag')", "ValueError: a wrong flag"),
        ("import os, torch\nos.abort()", "ended by SIGABRT"),
    ],
)
def test_a_script_without_steps(bench: Callable[..., Any], source: str, reason: str) -> None:
    done = bench(source, "--processes", "1")
    assert done.exit_code == 3
    assert done.stderr.startswith("breakscope: nothing could be measured: ")
    assert reason in done.stderr
    assert {arm.status for arm in done.benchmark.arms} == {"failed"}


@pytest.mark.nightly
@pytest.mark.slow
def test_kernels_of_a_cpu_and_their_scripts(bench: Callable[..., Any]) -> None:
    """Inductor's own C++ kernels: named, timed in the step and alone, and exported."""
    source = EVAL.replace("if y.sum() > 1e9:", "if False:")
    done = bench(source, "--processes", "1", "--steps", "10", "--kernels", "--export", "out")
    assert done.exit_code == 0, done.stderr
    table = next(one for one in done.benchmark.kernels if one.arm == "compiled")
    names = {one.kind: one for one in reversed(table.kernels)}
    assert names["cpp"].alone_us is not None
    assert names["cpp"].bytes == 4 * 32 * 4
    assert names["vendor"].op == "aten.addmm.out"
    assert names["cpp"].cut_from is None  # the product lies before it
    assert names["vendor"].flops == 2 * 4 * 32 * 32 or names["vendor"].flops == 2 * 4 * 32 * 8
    assert done.arm("compiled").processes[0].cache == "cold"
    assert {one.what for one in done.benchmark.ceilings} == {"copy", "triad", "matmul"}
    scripts = sorted((done.folder / "out").rglob("*.py"))
    assert {str(one.relative_to(done.folder / "out")) for one in scripts} == set(done.benchmark.exported)
    said = {}
    for script in scripts:
        ran = run_python(str(script), "--repeat", "2")
        assert ran.returncode == 0, ran.stderr
        said[script.name] = ran.stdout
    product = next(text for name, text in said.items() if "addmm" in name)
    assert "against eager in float64: relative difference" in product
    graph = next(text for name, text in said.items() if name.startswith("arm1_graph"))
    error = float(graph.partition("relative difference ")[2].split()[0])
    assert error < 1e-5


@pytest.mark.nightly
@pytest.mark.slow
def test_kernels_that_a_break_keeps_from_being_one_are_named(bench: Callable[..., Any]) -> None:
    source = f"""{TWO_GRAPHS}
net = Net()
with torch.no_grad():
    for _ in range(200):
        net(torch.randn(64, 512))
"""
    done = bench(source, "--processes", "1", "--steps", "10", "--kernels")
    assert done.exit_code == 0, done.stderr
    table = next(one for one in done.benchmark.kernels if one.arm == "compiled")
    assert table.not_measured is None
    cuts = {one.name: one.cut_from for one in table.kernels if one.kind == "cpp"}
    first, second = "graph_0_cpp_fused_mul_relu_0", "graph_1_cpp_fused_add_exp_0"
    assert cuts == {first: None, second: first}


@pytest.mark.nightly
@pytest.mark.slow
def test_kernels_of_a_training_step(bench: Callable[..., Any]) -> None:
    """A profiler that was started in an optimizer's hook ended this process three times in ten."""
    source = f"""{TWO_GRAPHS}
net, seed = Net(), torch.full((64, 512), 1e-4)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
for _ in range(200):
    net(torch.randn(64, 512)).backward(seed)  # given one, autograd makes none between forward and backward
    optimizer.step()
    optimizer.zero_grad()
"""
    done = bench(source, "--processes", "1", "--steps", "10", "--kernels")
    assert done.exit_code == 0, done.stderr
    table = next(one for one in done.benchmark.kernels if one.arm == "compiled")
    assert table.not_measured is None
    cuts = {
        one.name.removesuffix("_0"): (one.cut_from or "").removesuffix("_0")
        for one in table.kernels
        if one.kind == "cpp"
    }
    first, second = "graph_0_cpp_fused_mul_relu_threshold_backward", "graph_1_cpp_fused_add_exp"
    assert cuts.pop(first) == ""
    assert cuts.pop(second) == first
    # The second's backward directly follows it, but that is no break's doing.
    assert len(cuts) == 2, cuts
    assert not {first, second} & set(cuts.values())


@pytest.mark.nightly
@pytest.mark.slow
def test_fixes_are_an_arm_of_their_own(bench: Callable[..., Any], tmp_path: Path) -> None:
    script = textwrap.dedent(EVAL)
    old = "        if y.sum() > 1e9:\n            y = y * 2\n"
    new = "        y = torch.where(y.sum() > 1e9, y * 2, y)\n"
    start = script.index(old)
    fix = {
        "module": None,
        "file": str(tmp_path / "script.py"),
        "sha256": hashlib.sha256(script.encode()).hexdigest(),
        "edits": [[start, start + len(old), new]],
    }
    (tmp_path / "fixes").mkdir()
    manifest = {"version": overlay.VERSION, "config": {}, "files": [fix]}
    (tmp_path / "fixes" / overlay.MANIFEST).write_text(json.dumps(manifest))
    done = bench(script, "--fixes", "fixes", "--backend", "aot_eager", "--processes", "1", "--steps", "20")
    assert done.exit_code == 0, done.stderr
    _, compiled, fixed = done.benchmark.arms
    assert (compiled.graphs, compiled.crossings_per_step) == (2, 1.0)
    assert (fixed.graphs, fixed.crossings_per_step) == (1, 0.0)
    assert fixed.outputs is not None
    assert (fixed.outputs.status, fixed.outputs.error) == ("same", 0.0)
    pairs = [(one.arm, one.base) for one in done.benchmark.verdicts]
    assert pairs == [("compiled", "eager"), ("fixed", "eager"), ("fixed", "compiled")]
    assert (tmp_path / "script.py").read_text() == script


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_whoever_ends_the_benchmark_ends_its_arms(tmp_path: Path, number: signal.Signals) -> None:
    script = f"""
import os, pathlib, sys, time
pathlib.Path(f"pid-{{os.getpid()}}").touch()
import torch
{NET.replace("import torch", "")}
net = Net()
net(torch.randn(4, 32))
time.sleep(600)
"""
    (tmp_path / "script.py").write_text(script)
    running = subprocess.Popen(
        command("bench", "--processes", "1", "--backend", "eager", "script.py"),
        cwd=tmp_path,
        env=clean_environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def pids() -> set[int]:
        return {int(path.name.partition("-")[2]) for path in tmp_path.glob("pid-*")}

    until(lambda: len(pids()) == 3)  # the scan and two arms
    running.send_signal(number)
    assert running.wait(60) == 130
    until(lambda: not any(alive(pid) for pid in pids()))
    assert not list((tmp_path / ".breakscope").glob(".run-*"))


def until(condition: Callable[[], bool], limit_s: float = 60) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.1)


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
