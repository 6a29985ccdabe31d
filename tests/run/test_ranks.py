"""Scans on several ranks: real torchrun, real gloo, on the CPU.

Nightly: the timeout of all ranks waits 25 s; ``test_scan_ends.py`` holds a timeout in every run.
"""

from __future__ import annotations

import json
import socket
import subprocess

import pytest
from scanning import clean_environment, command, run_python

import breakscope
from breakscope.diagnose.merge import merge
from breakscope.report.model import Divergence, Report

LOOP = """
import os, signal, sys
import torch, torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank = dist.get_rank()
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return self.linear(x).relu().sum()

torch.manual_seed(0)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
compiled = torch.compile(net)
for step in range(8):
    if rank == 1 and step == 5 and "die" in sys.argv and attempt == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    batch = 6 if rank == 1 and step == 3 else 8
    compiled(torch.ones(batch, 4)).backward()
    for parameter in net.parameters():
        dist.all_reduce(parameter.grad)
    optimizer.step()
    optimizer.zero_grad()
dist.barrier()
dist.destroy_process_group()
"""
RANKS = ("--nproc-per-node", "2")


def of_kind(report: Report, kind: str) -> list[Divergence]:
    return [one for one in report.divergences if one.kind == kind]


@pytest.mark.torch
@pytest.mark.slow
def test_another_batch_on_one_rank_is_named_by_frame_rank_dimension_and_step(scan):
    done = scan(LOOP, *RANKS, quiet=False)
    assert done.exit_code == 0, done.stderr
    report = done.report
    (found,) = of_kind(report, "finding")
    assert (found.function, found.ranks, found.others) == ("Net.forward", (1,), (0,))
    assert (found.dimension, found.step) == (0, 3)
    assert found.text == (
        "rank 1 alone recompiled Net.forward at step 3: size of x, dimension 0: compiled for 8, got 6"
    )
    (recompile,) = report.findings
    assert (recompile.code, recompile.ranks, recompile.fingerprint) == ("BS201", (1,), found.fingerprint)
    assert [(rank.rank, rank.run.status, rank.totals.steps) for rank in report.ranks] == [
        (0, "ok", 8),
        (1, "ok", 8),
    ]
    assert (report.run.world_size, report.totals.steps) == (2, 8)
    assert {region.rank for region in report.regions} == {0, 1}
    assert {step.rank for step in report.steps} == {0, 1}
    assert "they parted at step 3" in done.text
    assert done.text.index("rank 1 alone recompiled") < done.text.index("BS201")


@pytest.mark.torch
@pytest.mark.slow
def test_a_rank_killed_at_step_5_leaves_a_valid_report_that_says_so(scan):
    done = scan(LOOP, *RANKS, args=["die"], quiet=False)
    assert done.exit_code == 1  # torchrun's own
    report = done.report
    (end,) = of_kind(report, "ended")
    assert (end.ranks, end.others, end.step) == ((1,), (0,), 5)
    assert end.text.startswith("rank 1 was killed by SIGKILL in step 5; rank 0 stopped because of it")
    dead = report.ranks[1]
    assert (dead.run.status, dead.run.exit_code, dead.totals.steps) == ("killed", 137, 5)
    assert report.ranks[0].ended is not None
    assert "after rank 1 had ended" in report.ranks[0].ended
    assert (report.run.status, report.run.exit_code) == ("killed", 137)
    (found,) = of_kind(report, "finding")  # what it saw before is there
    assert found.ranks == (1,)
    assert "rank 1 was killed by SIGKILL" in done.text


@pytest.mark.torch
@pytest.mark.slow
def test_a_restart_is_told_apart_from_the_attempt_before(scan):
    source = """
    import os, signal
    if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        if os.environ["RANK"] == "1":
            os.kill(os.getpid(), signal.SIGKILL)
        signal.pause()
    """
    done = scan(source, *RANKS, "--max-restarts", "1")
    assert done.exit_code == 0, done.stderr
    ranks = {(rank.rank, rank.attempt): rank for rank in done.report.ranks}
    assert {key: rank.run.status for key, rank in ranks.items()} == {
        (0, 0): "killed",
        (1, 0): "killed",
        (0, 1): "ok",
        (1, 1): "ok",
    }
    assert ranks[0, 0].ended == "was stopped by torchrun after rank 1 had ended"
    assert ranks[1, 0].ended is None
    assert (done.report.run.status, done.report.run.exit_code) == ("ok", 0)
    assert [(one.attempt, one.ranks) for one in of_kind(done.report, "ended")] == [(0, (1,))]


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.nightly
def test_a_timeout_ends_every_rank_and_says_so(scan):
    done = scan(
        "import torch, signal\ntorch.compile(torch.sin)(torch.ones(2))\nsignal.pause()",
        *RANKS,
        "--timeout",
        "25",
    )
    assert done.exit_code == 124
    assert {rank.run.status for rank in done.report.ranks} == {"timeout"}
    assert done.report.run.status == "timeout"


@pytest.mark.torch
@pytest.mark.slow
def test_the_script_sees_what_torchrun_gives_it_and_nothing_of_ours(scan):
    source = """
    import os, sys, json
    seen = {
        "argv": sys.argv, "name": __name__, "path": sys.path[0] == os.path.dirname(os.path.abspath(__file__)),
        "ours": sorted(name for name in os.environ if "BREAKSCOPE" in name), "rank": os.environ["RANK"],
        "pythonpath": "inside/boot" in os.environ.get("PYTHONPATH", ""),
    }
    if seen["rank"] == "1":
        print(json.dumps(seen))
    """
    done = scan(source, *RANKS, args=["-x", "--nproc-per-node", "9"])
    assert done.exit_code == 0, done.stderr
    seen = json.loads(done.text.splitlines()[-1])
    assert seen["argv"][1:] == ["-x", "--nproc-per-node", "9"]
    assert (seen["name"], seen["path"], seen["ours"], seen["pythonpath"]) == ("__main__", True, [], False)
    assert len(done.report.ranks) == 2


WRAPPED = """
import sys
import torch, torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(64, 4096), nn.Linear(4096, 64)

    def forward(self, x):
        return x + self.down(self.up(x).relu())

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(4)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x.sum()

class Reduced(nn.Module):
    def forward(self, x):
        y, z = x * 2, x[:3] * 2
        dist.all_reduce(y)
        dist.all_reduce(z)
        return y.sum() + z.sum()

net = Net()
if "ddp" in sys.argv:
    net = torch.compile(nn.parallel.DistributedDataParallel(net))
    reduced = torch.compile(Reduced())
else:
    from torch.distributed.fsdp import fully_shard
    for block in net.blocks:
        fully_shard(block)
    net = torch.compile(fully_shard(net))
for step in range(2):
    net(torch.ones(8, 64)).backward()
    if "ddp" in sys.argv:
        reduced(torch.ones(8, 64))
dist.barrier()
dist.destroy_process_group()
"""


@pytest.mark.torch
@pytest.mark.slow
def test_ranks_that_do_the_same_show_the_buckets_of_ddp_and_their_collectives_and_no_more(scan):
    done = scan(WRAPPED, *RANKS, args=["ddp"], quiet=False)
    assert done.exit_code == 0, done.stderr
    report = done.report
    # On a busy machine one rank may have waited for the other's first compile.
    assert [one for one in report.divergences if one.kind not in ("waited", "skew")] == []
    splits = [(one.rank, one.split) for one in report.regions if one.function == "Net.forward"]
    assert splits == [(rank, f"DDP bucket {number} of 2") for rank in (0, 1) for number in (1, 2)]
    assert {one.code for one in report.findings} <= {"BS141"}
    assert any("splits the graphs of Net.forward" in note for note in report.run.notes)
    both = ("_c10d_functional.all_reduce(8, 64)", "_c10d_functional.all_reduce(3, 64)")
    listed = [one.collectives for one in report.regions if one.function == "Reduced.forward"]
    assert listed == [both, both]
    assert "order of collectives outside of compiled graphs: not measured" in done.text


@pytest.mark.torch
@pytest.mark.slow
def test_hooks_of_fsdp2_are_named_as_such(scan):
    done = scan(WRAPPED, *RANKS, args=["fsdp2"])
    assert done.exit_code == 0, done.stderr
    (hook,) = [one for one in done.report.findings if one.kind != "recompile"]
    assert (hook.code, hook.ranks) == ("BS140", (0, 1))
    assert [one.function for one in hook.skipped] == ["Net.forward"]


@pytest.mark.torch
@pytest.mark.slow
def test_the_nodes_of_a_job_leave_a_report_each_and_they_merge(tmp_path):
    (tmp_path / "script.py").write_text(LOOP)
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    meeting = [
        "--nnodes",
        "2",
        "--rdzv-id",
        "job 7",
        "--rdzv-backend",
        "c10d",
        "--rdzv-endpoint",
        f"localhost:{port}",
    ]
    nodes = [
        subprocess.Popen(
            command("scan", "-q", "-o", f"{node}.json", "--nproc-per-node", "1", *meeting, "script.py"),
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=clean_environment(),
        )
        for node in range(2)
    ]
    assert [node.wait(120) for node in nodes] == [0, 0]
    report = merge([breakscope.load(tmp_path / f"{node}.json") for node in range(2)])
    assert [(rank.job, rank.rank, rank.run.world_size) for rank in report.ranks] == [
        ("job 7", 0, 2),
        ("job 7", 1, 2),
    ]
    (found,) = of_kind(report, "finding")
    assert (found.function, found.ranks, found.dimension, found.step) == ("Net.forward", (1,), 0, 3)


@pytest.mark.torch
@pytest.mark.slow
def test_under_the_users_own_torchrun_each_rank_writes_a_report_and_they_merge(tmp_path):
    (tmp_path / "script.py").write_text(LOOP)
    launch = ["torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "breakscope"]
    for words in (
        [*launch, "scan", "-q", "script.py"],
        ["breakscope", "merge", ".breakscope", "-o", "all.json"],
    ):
        done = run_python("-m", *words, folder=tmp_path)
        assert done.returncode == 0, done.stderr
    report = breakscope.load(tmp_path / "all.json")
    assert len(list((tmp_path / ".breakscope").glob("*.json"))) == 2
    assert [(rank.rank, rank.run.status, rank.run.world_size) for rank in report.ranks] == [
        (0, "ok", 2),
        (1, "ok", 2),
    ]
    (found,) = of_kind(report, "finding")
    assert (found.function, found.ranks, found.dimension, found.step) == ("Net.forward", (1,), 0, 3)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--max-restarts", "1"], "--max-restarts needs --nproc-per-node"),
        (["--torchrun", "--tee 3"], "--torchrun needs --nproc-per-node"),
        (["--nproc-per-node", "2", "--nnodes", "2"], "--nnodes needs --rdzv-id"),
        (["--nproc-per-node", "2", "--torchrun", "'"], "cannot be read"),
    ],
)
def test_options_that_need_another_are_refused(scan, options, said):
    done = scan("pass", *options)
    assert done.exit_code == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_torchrun_that_starts_nothing_says_so(scan):
    done = scan("pass", "--nproc-per-node", "many")
    assert done.exit_code == 2
    assert done.stderr.strip().splitlines()[-1] == (
        "breakscope: torchrun ended with exit status 1 before it started a rank"
    )
