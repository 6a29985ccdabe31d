"""``breakscope merge``, and ``import``, through local processes and a real Dask cluster; tables."""

from __future__ import annotations

import itertools
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from report_samples import BRANCH, CLEAN, COSTS, KILLED, RECOMPILES, RUN
from scanning import clean_environment, command
from trace_writer import Writer
from warm_scanning import run_command

import breakscope
from breakscope.diagnose.merge import Identity, as_rank, merge
from breakscope.errors import ReportError, UsageError
from breakscope.fleet import executors, parquet, reduce
from breakscope.report import schema
from breakscope.report.model import Compile, Report, Step


def fleet(folder: Path, jobs: int = 5, ranks: int = 4) -> list[Path]:
    """Report files of several jobs of several ranks."""
    samples = itertools.cycle([COSTS, RECOMPILES, CLEAN, KILLED])
    paths = []
    for job, rank in itertools.product(range(jobs), range(ranks)):
        sample = replace(
            next(samples),
            steps=(Step(0, 0.5, 12.5, 10.0, 1),),
            compiles=(Compile("0/0", "forward", "/home/ada/project/model.py", 30, 0, 0.5, 0.01 * rank),),
        )
        paths.append(folder / f"{job}-{rank}.json")
        schema.save(as_rank(sample, Identity(rank, f"team/job {job}")), paths[-1])
    return paths


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run_command("merge", *words, folder=folder)


def test_files_become_one_report_whatever_their_order_and_number_of_processes(tmp_path):
    paths = fleet(tmp_path)
    whole = schema.dumps(merge([schema.load(path) for path in paths]))
    with executors.executor("local", 1, 1) as here:
        assert schema.dumps(reduce.reduce(paths, here)) == whole
    with executors.executor("local", 2, reduce.tasks(paths)) as processes:
        assert schema.dumps(reduce.reduce(paths[::-1], processes)) == whole


def test_the_command_writes_the_report_and_shows_it(tmp_path):
    (tmp_path / "in").mkdir()
    fleet(tmp_path / "in", jobs=1, ranks=2)
    done = run(tmp_path, "in", "in/0-1.json", "-o", "all.json")
    assert done.returncode == 0, done.stderr
    report = breakscope.load(tmp_path / "all.json")
    assert [rank.rank for rank in report.ranks] == [0, 1]
    assert "ranks" in done.stdout
    assert "breakscope report all.json --html" in done.stdout
    again = run(tmp_path, "all.json", "in", "-o", "all.json", "-q")
    assert (again.returncode, again.stdout) == (0, "")
    assert breakscope.load(tmp_path / "all.json") == report


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["missing.json", "-o", "all.json"], "cannot read"),
        (["empty", "-o", "all.json"], "there is no report (*.json) in empty"),
        (["bad.json", "-o", "all.json"], "bad.json: it is not JSON"),
        (["good.json", "-o", "all.json", "--executor", "slurm"], "no executor 'slurm'"),
        (["good.json", "-o", "all.json", "--executor", "dask://h:1", "--jobs", "2"], "--jobs is for"),
        (["good.json", "-o", "no/such/folder/all.json"], "cannot write"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, words, said):
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.json").write_text("no")
    schema.save(CLEAN, tmp_path / "good.json")
    done = run(tmp_path, *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "all.json").exists()


def test_an_unreadable_file_is_named_also_from_another_process(tmp_path):
    paths = [*fleet(tmp_path), tmp_path / "gone.json"]
    with (
        executors.executor("local", 2, reduce.tasks(paths)) as processes,
        pytest.raises(ReportError, match="gone"),
    ):
        reduce.reduce(paths, processes)


def test_tables_are_partitioned_by_job_and_rank(tmp_path):
    report = merge([schema.load(path) for path in fleet(tmp_path, jobs=2, ranks=2)])
    folder = tmp_path / "tables"
    files = parquet.write(report, folder)
    ranks = pd.read_parquet(folder / "ranks")
    assert sorted(zip(ranks["job"].astype(str), ranks["rank"].astype(int), strict=True)) == [
        ("team/job 0", 0),
        ("team/job 0", 1),
        ("team/job 1", 0),
        ("team/job 1", 1),
    ]
    findings = pd.read_parquet(folder / "findings")
    branch = findings[findings["fingerprint"] == BRANCH.fingerprint]
    assert set(branch["crossings"]) == {24}
    assert branch["file"].iloc[0] == "model.py"
    assert pd.read_parquet(folder / "steps")["ms"].tolist() == [12.5] * 4
    assert len(pd.read_parquet(folder / "compiles")) == 4
    assert parquet.write(merge([report, as_rank(CLEAN, Identity(7, "new"))]), folder) > files
    assert len(pd.read_parquet(folder / "ranks")) == 5  # what was there is not doubled


def test_duckdb_or_arrow_finds_the_partitions_without_being_told(tmp_path):
    dataset = pytest.importorskip("pyarrow.dataset")
    parquet.write(merge([as_rank(COSTS, Identity(3, "night"))]), tmp_path)
    table = dataset.dataset(tmp_path / "ranks", partitioning="hive").to_table()
    assert table.column("rank").to_pylist() == [3]
    assert table.column("job").to_pylist() == ["night"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """The address of a Dask scheduler on loopback with two workers, each with a folder of its own."""
    distributed = pytest.importorskip("distributed")
    folder = tmp_path_factory.mktemp("cluster")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": clean_environment()}
    dask = [sys.executable, "-m"]
    listen = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show"]
    file = folder / "scheduler.cluster"
    begin = [*dask, "distributed.cli.dask_scheduler", *listen, "--scheduler-file", str(file)]
    started = [subprocess.Popen(begin, cwd=folder, **quiet)]
    try:
        address = _address(file)
        join = [*dask, "distributed.cli.dask_worker", f"tcp://{address}", "--no-dashboard", "--no-nanny"]
        for number in range(2):
            (folder / str(number)).mkdir()
            words = [*join, "--nthreads", "1", "--local-directory", str(folder / str(number))]
            started.append(subprocess.Popen(words, cwd=folder / str(number), **quiet))
        with distributed.Client(f"tcp://{address}", set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)
        yield f"dask://{address}"
    finally:
        for process in started:  # a worker that has lost its scheduler takes its time to end by itself
            process.kill()
            process.wait()


@pytest.mark.slow
def test_a_dask_cluster_of_two_workers_gives_the_same_report(tmp_path, cluster):
    paths = fleet(tmp_path, jobs=6, ranks=4)
    done = run(tmp_path, *map(str, paths), "-o", "all.json", "-q", "--executor", cluster)
    assert done.returncode == 0, done.stderr
    expected = merge([schema.load(path) for path in paths])
    assert (tmp_path / "all.json").read_text() == schema.dumps(expected)


@pytest.mark.slow
def test_a_dask_cluster_imports_as_this_machine_does(tmp_path, cluster):
    """Paths are relative to where the user stands, and so are the places in fingerprints."""
    (tmp_path / "traces").mkdir()
    for rank in range(4):
        made = Writer(pid=rank)
        made.compiled("0/0", str(tmp_path / "package" / "train.py"), "step", 10, broke_at=12)
        made.save(tmp_path / "traces" / f"dedicated_log_torch_trace_rank_{rank}_abc.log")
    for name, words in (("here", ["--jobs", "1"]), ("there", ["--executor", cluster])):
        line = command("import", "traces", "-q", "-o", f"{name}.json", *words)
        subprocess.run(line, cwd=tmp_path, env=clean_environment(), check=True)
    here = breakscope.load(tmp_path / "here.json")
    assert [rank.rank for rank in here.ranks] == [0, 1, 2, 3]
    assert here.findings
    assert (tmp_path / "there.json").read_text() == (tmp_path / "here.json").read_text()


def _address(file: Path) -> str:
    import json
    import time

    for _ in range(600):
        if file.exists() and file.read_text().strip():
            return json.loads(file.read_text())["address"].removeprefix("tcp://")
        time.sleep(0.1)
    raise AssertionError("the scheduler did not start")


@pytest.mark.slow
def test_a_scheduler_that_is_not_there_is_one_sentence(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(executors, "_CONNECT_S", 1)
    with (
        pytest.raises(UsageError, match=r"no Dask scheduler at 127\.0\.0\.1:9"),
        executors.executor("dask://127.0.0.1:9", None, 1),
    ):
        pass


def test_a_report_of_a_fleet_has_no_divergence_across_jobs(tmp_path):
    died: Report = replace(CLEAN, run=replace(RUN, status="killed", exit_code=137))
    merged = merge([as_rank(died, Identity(0, "a")), as_rank(CLEAN, Identity(0, "b"))])
    assert merged.divergences == ()
    assert merged.run.status == "killed"
