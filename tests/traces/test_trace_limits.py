"""Inputs that are made to do harm: memory and time stay bounded, each is told in a sentence, and the others are read."""

from __future__ import annotations

import gzip
import os
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from scanning import clean_environment, command
from trace_writer import Writer

import breakscope

ZEROS = 10_000_000_000
_MEMBER = 20_000_000


def _limited() -> None:
    resource.setrlimit(
        resource.RLIMIT_AS, (1 << 30, 1 << 30)
    )  # a fifth of what the smallest of these unpacks to
    resource.setrlimit(resource.RLIMIT_CPU, (60, 60))


def imported(folder: Path, *paths: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command("import", *paths, "--jobs", "1", "-q", "-o", "out.json"),
        cwd=folder,
        capture_output=True,
        text=True,
        preexec_fn=_limited,
        env=clean_environment(),
        timeout=300,
        check=False,
    )


def _bomb(path: Path, compress: Callable[[bytes], bytes]) -> None:
    path.write_bytes(compress(bytes(_MEMBER)) * (ZEROS // _MEMBER))


def _zstd(data: bytes) -> bytes:
    return bytes(pytest.importorskip("zstandard").ZstdCompressor().compress(data))


@pytest.mark.slow  # what unpacks to gigabytes is unpacked as far as it is allowed
def test_beside_bombs_pipes_and_loops_a_trace_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    (folder / "deeper").mkdir(parents=True)
    writer = Writer()
    writer.compiled("0/0", "/job/model.py", "forward", 10, broke_at=12)
    (folder / "torch_trace_rank_0.log").write_text("".join(writer.parts))
    _bomb(folder / "torch_trace_rank_1.log.gz", gzip.compress)
    _bomb(folder / "torch_trace_rank_2.log.zst", _zstd)
    with (folder / "torch_trace_rank_3.log").open("wb") as line:
        line.truncate(2 << 30)
    os.mkfifo(folder / "torch_trace_rank_4.log")
    (folder / "torch_trace_rank_5.log").symlink_to("torch_trace_rank_5.log")
    (folder / "deeper" / "up").symlink_to("..")
    done = imported(tmp_path, "traces")
    assert done.returncode == 0, done.stderr
    report = breakscope.load(tmp_path / "out.json")
    assert len(report.findings) == 1
    for name, why in {
        "rank_1.log.gz": "a line is longer than any",
        "rank_2.log.zst": "a line is longer than any",
        "rank_3.log": "a line is longer than any",
        "rank_4.log": "it is no file",
        "rank_5.log": "Too many levels of symbolic links",
    }.items():
        assert [note for note in report.run.notes if name in note and why in note], report.run.notes


@pytest.mark.nightly
def test_lines_that_unpack_to_far_more_than_any_trace_end_there(tmp_path: Path) -> None:
    line = b"V0102 03:04:05.000000 7 torch/x.py:1] nothing\n"
    (tmp_path / "log.gz").write_bytes(gzip.compress(line * 400_000) * 600)  # 11 GB
    done = imported(tmp_path, "log.gz")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "unpacks to far more than any trace" in done.stderr


@pytest.mark.parametrize("count", [2_000, pytest.param(100_000, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", ["file-{}.bin", "torch_trace_{}.log"])
def test_thousands_of_files_that_are_none_are_one_sentence(tmp_path: Path, count: int, name: str) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(count):
        (folder / name.format(number)).touch()
    done = imported(tmp_path, "many")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert f"{count if 'bin' in name else count - 1}" in done.stderr
