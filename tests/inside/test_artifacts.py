"""What compiles produced, kept by ``--artifacts`` and printed by ``breakscope show``."""

from __future__ import annotations

import gzip
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from scanning import Scanned
from trace_writer import Writer
from warm_scanning import run_command

import breakscope
from breakscope.errors import ArtifactError, OutputError
from breakscope.inside.capture.artifacts import Store
from breakscope.report import schema
from breakscope.report.model import Report
from breakscope.traces.importing import import_traces

JOB = """
    import os
    import torch

    @torch.compile
    def step(x, weight):
        y = x @ weight
        if y.sum() > 0:
            y = y * 2
        return y + len(os.environ["JOB_TOKEN"])

    for batch in (4, 4, 6):
        step(torch.ones(batch, 3), torch.ones(3, 3, requires_grad=True)).sum().backward()
"""
SECRET = "hunter2-of-the-job"


def show(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return run_command("show", *words, folder=folder, **environment)


def texts(folder: Path, report: Report) -> dict[tuple[str, str], list[str]]:
    """What was kept, by compile and kind."""
    store = Store(folder / "artifacts")
    found: dict[tuple[str, str], list[str]] = {}
    for one in report.artifacts:
        text = store.get(one.digest)
        assert len(text.encode()) == one.size
        found.setdefault((one.compile_id, one.kind), []).append(text)
    return found


@pytest.mark.torch
@pytest.mark.slow
def test_a_scan_and_the_import_of_its_trace_keep_the_same(cold_scan: Callable[..., Scanned]) -> None:
    scanned = cold_scan(JOB, "--artifacts", "--backend", "aot_eager", TORCH_TRACE="trace", JOB_TOKEN=SECRET)
    assert scanned.exit_code == 0, scanned.stderr
    live = scanned.report
    kept = texts(scanned.folder / ".breakscope", live)
    assert "x @ weight" in kept["0/0", "graph"][0]
    assert "aten.mm" in kept["0/0", "aot_forward"][0]
    assert kept["0/0", "aot_backward"]
    assert "GuardManager" in kept["0/0", "guards"][0]
    assert kept["1/0", "bytecode_before"]
    assert kept["1/0", "bytecode_after"]
    assert not any(SECRET in text for found in kept.values() for text in found)

    done = run_command(
        "import", "-q", "--artifacts", "-o", "imported/report.json", "trace", folder=scanned.folder
    )
    assert done.returncode == 0
    imported = breakscope.load(scanned.folder / "imported" / "report.json")
    again = texts(scanned.folder / "imported", imported)
    assert again.keys() == kept.keys()
    assert not any(SECRET in text for found in again.values() for text in found)
    for key, found in kept.items():
        if key[1] != "guards":  # these end with how long they took
            assert again[key] == found


def made(folder: Path) -> Report:
    """An import with artifacts of two ranks that compile the same."""
    for rank in range(2):
        writer = Writer(pid=rank)
        writer.start("0/0", "/job/model.py", "forward", 10)
        writer.record({"dynamo_output_graph": {}}, "0/0", "def forward(self, x):\n    return x + 1\n")
        writer.record({"aot_forward_graph": {}}, "0/0", f"# of rank {rank}\n\tindented\n")
        writer.record({"artifact": {"name": "dynamo_cpp_guards_str"}}, "0/0", "TREE_GUARD_MANAGER")
        writer.record({"artifact": {"name": "unknown_artifact"}}, "0/0", "not kept")
        writer.ended("0/0", "/job/model.py", "forward", 10)
        writer.save(folder / f"dedicated_log_torch_trace_rank_{rank}_x.log")
    report, problems = import_traces([folder], jobs=1, keep=folder / "artifacts")
    assert problems == []
    schema.save(report, folder / "report.json")
    return report


def test_texts_are_stored_once_and_compressed(tmp_path: Path) -> None:
    report = made(tmp_path)
    each_rank_has = {"graph", "aot_forward", "guards"}
    assert {(one.rank, one.kind) for one in report.artifacts} == {
        (rank, kind) for rank in range(2) for kind in each_rank_has
    }
    files = list((tmp_path / "artifacts").rglob("*.gz"))
    assert len(files) == 4  # the graph and the guards are the same on both ranks
    assert min(gzip.decompress(file.read_bytes()) for file in files) == b"# of rank 0\n\tindented\n"


def test_show(tmp_path: Path) -> None:
    made(tmp_path)
    done = show(tmp_path, "0/0", "report.json", "--graph")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "def forward(self, x):\n    return x + 1\n"
    assert "Dynamo's graph of 0/0, ranks 0, 1" in done.stderr
    assert (
        show(tmp_path, "forward", "report.json", "--aot", "--rank", "1").stdout == "# of rank 1\n\tindented\n"
    )
    table = show(tmp_path, "0/0", "report.json").stdout
    assert "--aot" in table
    assert "--code" not in table


def test_show_in_colours(tmp_path: Path) -> None:
    made(tmp_path)
    shown = show(tmp_path, "0/0", "report.json", "--graph", FORCE_COLOR="1", TERM="xterm-256color").stdout
    assert "\x1b[" in shown
    assert "\x1b[" not in show(tmp_path, "0/0", "report.json", "--graph").stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("7/7", "report.json", "--graph"), "nothing was kept of a region 7/7; available: 0/0"),
        (
            ("0/0", "report.json", "--code"),
            "nothing was kept of 0/0 for --code; available: --graph --aot --guards",
        ),
        (("0/0", "other.json"), "no such file"),
        (("0/0", "bare.json", "--graph"), "scan or import again with --artifacts"),
        (
            ("0/0", "moved/report.json", "--graph"),
            "artifacts stay in the folder artifacts beside their report",
        ),
    ],
    ids=["region", "kind", "report", "without", "moved"],
)
def test_what_cannot_be_shown_is_one_sentence(tmp_path: Path, words: tuple[str, ...], says: str) -> None:
    report = made(tmp_path)
    schema.save(replace(report, artifacts=()), tmp_path / "bare.json")
    (tmp_path / "moved").mkdir()
    schema.save(report, tmp_path / "moved" / "report.json")
    done = show(tmp_path, *words)
    assert done.returncode == 2
    assert says in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_store_gives_back_what_was_put_or_says_why_not(tmp_path: Path) -> None:
    store = Store(tmp_path)
    digest = store.put("text \udc80")
    [path] = tmp_path.rglob("*.gz")
    assert path.name == f"{digest}.gz"
    path.write_bytes(gzip.compress(b"other"))
    with pytest.raises(ArtifactError, match="its content was changed"):
        store.get(digest)
    path.write_bytes(b"\x1f\x8bgarbage")
    with pytest.raises(ArtifactError, match="cannot read"):
        store.get(digest)
    with pytest.raises(ArtifactError, match="is not the name of an artifact"):
        store.get("../../etc/passwd")


def test_artifacts_that_cannot_be_written_end_the_import(tmp_path: Path) -> None:
    (tmp_path / "artifacts").write_text("a file where the folder should be")
    with pytest.raises(OutputError, match="cannot keep artifacts in"):
        made(tmp_path)


def test_following_keeps_nothing(tmp_path: Path) -> None:
    done = run_command("import", "--follow", "--artifacts", ".", folder=tmp_path)
    assert done.returncode == 2
    assert "import again when the job is over" in done.stderr
