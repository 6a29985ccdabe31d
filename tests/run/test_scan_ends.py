"""However a script ends, its report is whole and holds everything up to then.

Nightly are ends that differ from another one only in their number.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from scanning import Scanned, clean_environment, command, run_cold

import breakscope

pytestmark = pytest.mark.torch

Scan = Callable[..., Scanned]

# Two calls, each with one crossing; then the script ends in its own way.
BREAKS = """
    import os, signal, sys, time
    import torch

    @torch.compile
    def f(x):
        y = x + 1
        print("break", flush=True)
        return y * 2

    f(torch.ones(3))
    f(torch.ones(3))
"""


def ending(statement: str) -> str:
    return BREAKS + f"    {statement}\n"


def two_crossings(report: breakscope.Report) -> bool:
    return report.totals.sites == 1 and report.totals.crossings == 2 and report.totals.regions == 2


@pytest.mark.parametrize(
    ("statement", "exit_code", "status"),
    [
        ("", 0, "ok"),
        pytest.param("sys.exit(3)", 3, "script_error", marks=pytest.mark.nightly),
        ("raise ValueError", 1, "script_error"),
        ("os._exit(5)", 5, "script_error"),
        pytest.param("os._exit(0)", 0, "ok", marks=pytest.mark.nightly),
        ("os.kill(os.getpid(), signal.SIGKILL)", 137, "killed"),
        pytest.param("os.kill(os.getpid(), signal.SIGTERM)", 143, "killed", marks=pytest.mark.nightly),
        ("import ctypes; ctypes.string_at(0)", 139, "killed"),
        ("raise KeyboardInterrupt", 130, "interrupted"),
    ],
)
def test_every_end_leaves_a_whole_report(scan: Scan, statement: str, exit_code: int, status: str) -> None:
    scanned = scan(ending(statement))
    assert scanned.exit_code == exit_code, scanned.stderr
    report = scanned.report
    assert (report.run.status, report.run.exit_code) == (status, exit_code)
    assert two_crossings(report)
    assert "Traceback" not in scanned.stderr or "breakscope" not in scanned.stderr


def test_memory_that_runs_out_leaves_a_report(scan: Scan) -> None:
    scanned = scan(
        ending(
            "import resource; resource.setrlimit(resource.RLIMIT_AS, (2**20,) * 2); "
            "print(bytearray(2**30), flush=True)"
        )
    )
    assert scanned.exit_code != 0
    assert two_crossings(scanned.report)


def test_a_timeout_ends_the_script(scan: Scan) -> None:
    began = time.monotonic()
    scanned = scan(ending("time.sleep(600)"), "--timeout", "14")
    assert time.monotonic() - began < 60
    assert scanned.exit_code == 124
    assert scanned.report.run.status == "timeout"
    assert two_crossings(scanned.report)
    assert any("--timeout" in note for note in scanned.report.run.notes)


def test_a_compile_for_another_size_that_does_not_end_says_so(scan: Scan) -> None:
    scanned = scan(
        """
        import time
        import torch

        made = []
        def backend(graph, inputs):
            time.sleep(600 * len(made))
            made.append(graph)
            return graph

        @torch.compile(backend=backend)
        def f(x):
            return x * 2

        f(torch.ones(8, 4))
        f(torch.ones(6, 4))
        """,
        "--backend",
        "as-script",
        "--timeout",
        "25",
    )
    [finding] = [one for one in scanned.report.findings if one.code == "BS404"]
    assert "This compile is for another size than the first" in str(finding.advice)


def test_a_script_that_ignores_sigterm_is_killed_at_its_timeout(scan: Scan) -> None:
    scanned = scan(
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)",
        "--timeout",
        "1",
    )
    assert scanned.exit_code == 124
    assert scanned.report.run.status == "timeout"


@pytest.mark.parametrize(
    ("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
def test_a_signal_reaches_the_script_and_leaves_a_report(
    tmp_path: Path, number: signal.Signals, exit_code: int
) -> None:
    source = "\n".join(
        line[4:] for line in ending("print('ready', flush=True); time.sleep(600)").splitlines()
    )
    (tmp_path / "script.py").write_text(source)
    process = subprocess.Popen(
        command("scan", "-q", "script.py"),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        env=clean_environment(),
        text=True,
        start_new_session=True,
    )
    assert process.stdout
    while process.stdout.readline() not in ("ready\n", ""):
        pass
    process.send_signal(number)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == exit_code, stderr
    report = breakscope.load(tmp_path / ".breakscope" / "latest.json")
    assert report.run.status == "interrupted"
    assert two_crossings(report)
    # One interrupt, not two: the script's own handling of it must not be interrupted.
    assert stderr.count("KeyboardInterrupt") == (1 if number == signal.SIGINT else 0)


STEPS = """
    import torch

    net = torch.nn.Linear(2, 2)
    {optimizer}
    for step in range(100):
        loss = net(torch.ones(1, 2)).sum()
        loss.backward()
        {step}
        print(step)
"""


@pytest.mark.parametrize(
    ("optimizer", "step"),
    [("optimizer = torch.optim.SGD(net.parameters())", "optimizer.step()"), ("", "pass")],
    ids=["optimizer", "calls"],
)
def test_steps_stop_the_script_cleanly(warm_scan: Scan, optimizer: str, step: str) -> None:
    scanned = warm_scan(STEPS.format(optimizer=optimizer, step=step), "--steps", "3")
    assert scanned.exit_code == 0
    assert scanned.report.run.status == "ok"
    assert scanned.report.totals.steps == 3
    assert scanned.text.split() == ["0", "1"]
    assert any("--steps" in note for note in scanned.report.run.notes)


def test_two_optimizers_share_one_count_of_steps(warm_scan: Scan) -> None:
    scanned = warm_scan(
        """
        import torch
        one, two = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
        a, b = torch.optim.SGD(one.parameters()), torch.optim.AdamW(two.parameters())
        for _ in range(5):
            for net, optimizer in ((one, a), (two, b)):
                net(torch.ones(1, 2)).sum().backward()
                optimizer.step()
        """
    )
    assert scanned.report.totals.steps == 5
    assert set(scanned.report.run.compiled) == {"Linear"}
    assert [region.calls for region in scanned.report.regions] == [5, 5]


def test_a_full_disk_ends_the_capture_and_not_the_script(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(small)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a small file system cannot be mounted here (needs root)")
    try:
        source = "\n".join(line[4:] for line in ending("print('done')").splitlines())
        (tmp_path / "script.py").write_text(
            "try:\n    stream = open('small/filler', 'wb', 0)\n    while stream.write(bytes(4096)): pass\n"
            "except OSError: pass\n" + source
        )
        done = run_cold("scan", "-q", "-o", "small/report.json", "script.py", folder=tmp_path)
        assert "done" in done.stdout
        assert "capture stopped: No space left on device" in done.stderr
        # The report itself does not fit either, and that is said, in one sentence.
        assert done.returncode == 2
        assert done.stderr.splitlines()[-1].startswith("breakscope: cannot write")
        assert not (small / "report.json").exists()
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_two_scans_at_once_keep_both_reports(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import sys, time; time.sleep(1); sys.exit(int(sys.argv[1]))")
    running = [
        subprocess.Popen(command("scan", "-q", "script.py", str(n)), cwd=tmp_path, env=clean_environment())
        for n in (3, 4)
    ]
    assert [process.wait(60) for process in running] == [3, 4]
    reports = [breakscope.load(path) for path in (tmp_path / ".breakscope").glob("2*.json")]
    assert sorted(report.run.exit_code or 0 for report in reports) == [3, 4]
    assert breakscope.load(tmp_path / ".breakscope" / "latest.json").run.exit_code in (3, 4)
    assert not [name for name in os.listdir(tmp_path / ".breakscope") if name.startswith(".run")]
