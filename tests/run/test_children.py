"""Scripts whose compiled work runs in processes that they start: each is in the report, as ranks are."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from scanning import Scanned

pytestmark = pytest.mark.torch

Scan = Callable[..., Scanned]

TRAIN = """
import torch

@torch.compile(backend="eager")
def step(x):
    y = x + 1
    if y.sum() > 100:
        y = y * 2
    return y

def train(rank, steps=3):
    for _ in range(steps):
        step(torch.ones(2, 4))
"""


def crossed_in_children(scanned: Scanned, *, processes: int, crossings: int) -> None:
    """The only finding is the branch, in so many processes."""
    report = scanned.report
    [finding] = report.findings
    assert (finding.code, finding.location.function) == ("BS101", "step")
    assert (len(report.ranks), finding.counts.crossings) == (processes, crossings)
    assert sum(one.counts.crossings or 0 for one in finding.by_rank) == crossings
    assert len({rank.pid for rank in report.ranks}) == processes
    assert not report.reconciliation.vacuous
    assert report.divergences == ()
    assert (report.run.script, report.run.status) == ("script.py", "ok")
    assert any("children of the script compiled" in note for note in report.run.notes)


@pytest.mark.parametrize("context", ["spawn", "fork", pytest.param("forkserver", marks=pytest.mark.nightly)])
def test_processes_of_multiprocessing_are_followed(scan: Scan, context: str) -> None:
    start = f"""
if __name__ == "__main__":
    import torch.multiprocessing as mp
    processes = [mp.get_context("{context}").Process(target=train, args=(rank,)) for rank in range(2)]
    [process.start() for process in processes]
    [process.join() for process in processes]
"""
    crossed_in_children(scan(TRAIN + start), processes=2, crossings=6)


def test_a_python_that_the_script_runs_is_followed_through_shells_and_launchers(
    scan: Scan, tmp_path: Path
) -> None:
    (tmp_path / "child.py").write_text(TRAIN + "train(0)\n")
    (tmp_path / "launcher").write_text(
        f"#!{sys.executable}\nimport os, sys\nos.execv(sys.executable, [sys.executable, 'child.py'])\n"
    )
    (tmp_path / "launcher").chmod(0o755)
    scanned = scan(
        """
        import os, subprocess, sys
        subprocess.run([sys.executable, "child.py"], check=True)
        subprocess.run(f"cd . && {sys.executable} child.py", shell=True, check=True, env=dict(os.environ))
        subprocess.run(["./launcher"], check=True)
        subprocess.run([sys.executable, "child.py"], check=True, close_fds=False)
        assert os.system(f"{sys.executable} child.py") == 0
        """
    )
    assert scanned.exit_code == 0, scanned.stderr
    crossed_in_children(scanned, processes=5, crossings=15)


def test_the_script_itself_is_one_of_the_processes_where_it_compiles(scan: Scan) -> None:
    scanned = scan(
        TRAIN
        + """
import subprocess, sys
train(0, steps=5)
if len(sys.argv) == 1:
    subprocess.run([sys.executable, __file__, "child"], check=True)
"""
    )
    crossed_in_children(scanned, processes=2, crossings=10)
    assert [rank.rank for rank in scanned.report.ranks] == [0, 1]


def test_children_see_the_environment_that_the_script_gave_them(scan: Scan) -> None:
    scanned = scan(
        """
        import os, subprocess, sys
        ours = "import os; print(sorted(k for k in os.environ if k.startswith(('BREAKSCOPE', 'PYTHONPATH'))))"
        subprocess.run([sys.executable, "-c", ours], check=True)
        subprocess.run([sys.executable, "-c", ours], env={**os.environ, "PYTHONPATH": "here"}, check=True)
        subprocess.run(["sh", "-c", "echo [$BREAKSCOPE_AGENT_MODULE]"], check=True)
        """,
        PYTHONPATH="",
    )
    assert scanned.text.splitlines() == ["['PYTHONPATH']", "['PYTHONPATH']", "[]"]


def test_children_are_left_alone_where_that_is_asked_for(scan: Scan, tmp_path: Path) -> None:
    (tmp_path / "child.py").write_text(TRAIN + "train(0)\n")
    scanned = scan(
        "import subprocess, sys; subprocess.run([sys.executable, 'child.py'], check=True)", "--no-children"
    )
    assert scanned.report.ranks == ()
    assert scanned.report.reconciliation.vacuous


def test_a_forked_worker_that_imports_torch_itself_is_followed(scan: Scan, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(TRAIN)
    scanned = scan(
        """
        import multiprocessing, sys

        def work():
            import model
            model.train(0)

        if __name__ == "__main__":
            context = multiprocessing.get_context("fork")
            processes = [context.Process(target=work) for _ in range(2)]
            [process.start() for process in processes]
            [process.join() for process in processes]
            assert "torch" not in sys.modules
        """
    )
    assert scanned.exit_code == 0, scanned.stderr
    crossed_in_children(scanned, processes=2, crossings=6)


def test_a_child_without_torch_leaves_nothing(scan: Scan) -> None:
    scanned = scan(
        """
        import os, pathlib, subprocess, sys
        subprocess.run([sys.executable, "-c", "import json"], check=True)
        if os.fork() == 0:
            sys.exit()
        os.wait()
        print(sorted(file.name for file in pathlib.Path(".breakscope").glob(".run-*/*-*")))
        """
    )
    assert scanned.text == "[]\n"


def test_no_worker_that_is_spawned_runs_the_script_as_main(scan: Scan) -> None:
    scanned = scan(
        TRAIN.replace("@torch.compile", "#")
        + """
if __name__ == "__main__":
    import torch.multiprocessing as mp
    train(0)
    process = mp.get_context("spawn").Process(target=train, args=(1,))
    process.start()
    process.join()
    assert process.exitcode == 0
""",
        "--compile",
        "step",
    )
    assert scanned.exit_code == 0, scanned.stderr
    assert "bootstrapping phase" not in scanned.stderr
    assert scanned.report.run.compiled == ("step",)


def test_a_child_that_takes_no_agent_is_named(scan: Scan) -> None:
    scanned = scan("import subprocess, sys; subprocess.run([sys.executable, '-I', '-c', 'pass'], check=True)")
    [note] = [note for note in scanned.report.run.notes if "not followed" in note]
    assert "it takes no PYTHONPATH (-E or -I)" in note
    assert "-I -c pass" in note


def test_what_a_dataloader_worker_loads_is_not_compiled_for_the_script(scan: Scan) -> None:
    scanned = scan(
        """
        import torch
        from torch.utils.data import DataLoader, Dataset

        class Loaded(Dataset):
            scale = torch.nn.Sequential(torch.nn.Linear(1, 1))
            def __len__(self):
                return 4
            def __getitem__(self, i):
                return self.scale(torch.tensor([float(i)])).detach()

        if __name__ == "__main__":
            net = torch.nn.Linear(1, 1)
            for batch in DataLoader(Loaded(), 2, num_workers=1):
                net(batch)
        """
    )
    assert scanned.report.ranks == ()
    assert scanned.report.run.compiled == ("Linear",)


def test_a_child_that_outlives_its_scan_is_left_in_peace(scan: Scan, tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text("import torch\nprint('late', file=open('late.txt', 'w'))\n")
    (tmp_path / "daemon.py").write_text(
        "import os, subprocess, sys, time\n"
        "while any(name.startswith('.run-') for name in os.listdir('.breakscope')):\n"
        "    time.sleep(0.1)\n"
        "late = subprocess.run([sys.executable, 'late.py'], capture_output=True, text=True)\n"
        "print(late.returncode, late.stderr, file=open('daemon.txt', 'w'))\n"
    )
    scanned = scan(
        "import subprocess, sys\n"
        "subprocess.Popen([sys.executable, 'daemon.py'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
    )
    assert scanned.exit_code == 0
    deadline = time.monotonic() + 60
    while not (tmp_path / "daemon.txt").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert (tmp_path / "late.txt").read_text() == "late\n"
