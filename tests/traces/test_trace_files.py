"""What ``breakscope import`` is given: files, folders, compressed or not, and what is no trace at all."""

from __future__ import annotations

import gzip
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from trace_writer import Writer, imported
from warm_scanning import run_command

import breakscope
from breakscope.errors import TraceError
from breakscope.render import FORMATS
from breakscope.report import schema
from breakscope.report.model import Report
from breakscope.traces.importing import Progress, import_traces

FILE = "/job/model.py"


def writer(name: str = "forward", pid: int = 1, **more: int) -> Writer:
    made = Writer(pid=pid)
    made.compiled("0/0", FILE, name, 10, broke_at=12)
    made.recompiled("0/1", ["0/0: tensor 'x' size mismatch at index 0. expected 4, actual 6"])
    made.compiled("0/1", FILE, name, 10)
    for index in range(len(made.parts) if more else 0):
        made.parts[index] = made.parts[index].replace('"attempt": 0', f'"attempt": 0, "rank": {more["rank"]}')
    return made


def run_import(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return run_command("import", *words, folder=folder, **environment)


def codes(report: Report) -> list[str]:
    return sorted(finding.code for finding in report.findings)


def notes(report: Report) -> str:
    return "\n".join(report.run.notes)


def zstandard(data: bytes) -> bytes:
    package = pytest.importorskip("zstandard", reason="pip install 'torch-breakscope[zstd]'")
    return bytes(package.ZstdCompressor().compress(data))


@pytest.mark.parametrize("compress", [gzip.compress, zstandard], ids=["gz", "zst"])
def test_compressed_traces(tmp_path: Path, compress) -> None:
    data = compress(writer().text.encode())
    # Whatever its name is: logs are renamed as they are moved about.
    (tmp_path / "trace.log").write_bytes(data)
    assert codes(imported(tmp_path / "trace.log")) == ["BS101", "BS201"]


def test_compressed_in_several_members(tmp_path: Path) -> None:
    parts = writer().parts
    half = len(parts) // 2
    data = gzip.compress("".join(parts[:half]).encode()) + gzip.compress("".join(parts[half:]).encode())
    (tmp_path / "a.gz").write_bytes(data)
    report = imported(tmp_path / "a.gz")
    assert codes(report) == ["BS101", "BS201"]
    assert "compressed" not in notes(report)


@pytest.mark.parametrize("compress", [gzip.compress, zstandard], ids=["gz", "zst"])
def test_a_compressed_trace_that_was_cut_off(tmp_path: Path, compress) -> None:
    text = writer().text
    filler = Writer()
    for number in range(3000):  # larger than what a decompressor holds back
        filler.record({"chromium_event": {}}, None, f"filler {number * 7919}")
    data = compress((text + filler.text).encode())
    (tmp_path / "a.log").write_bytes(data[: len(data) * 9 // 10])
    report = imported(tmp_path / "a.log")
    assert codes(report) == ["BS101", "BS201"]
    assert "the compressed data is damaged or ends too early" in notes(report)


def test_a_folder_of_ranks(tmp_path: Path) -> None:
    for rank in range(3):
        made = writer() if rank != 1 else Writer()
        if rank == 1:
            made.compiled("0/0", FILE, "forward", 10, broke_at=12)
        made.save(tmp_path / f"dedicated_log_torch_trace_rank_{rank}_abc.log")
    (tmp_path / "notes.txt").write_text("not a trace, and not asked for")
    done = run_import(tmp_path, ".", "-q", "-o", "all.json", "--jobs", "2")
    assert done.returncode == 0, done.stderr
    report = breakscope.load(tmp_path / "all.json")
    assert {finding.code: finding.ranks for finding in report.findings} == {
        "BS101": (0, 1, 2),
        "BS201": (0, 2),
    }
    assert [(rank.rank, rank.attempt) for rank in report.ranks] == [(0, 0), (1, 0), (2, 0)]
    assert report.run.script == "."
    assert report.totals.occurrences == 3


def test_the_rank_in_the_records_goes_before_that_of_the_file(tmp_path: Path) -> None:
    """A process that compiles before it joins its group has no rank in its file's name."""
    writer(pid=1, rank=0).save(tmp_path / "dedicated_log_torch_trace_abc.log")
    writer(pid=2, rank=5).save(tmp_path / "dedicated_log_torch_trace_def.log")
    report, problems = import_traces([tmp_path])
    assert problems == []
    assert [rank.rank for rank in report.ranks] == [0, 5]


def test_a_restarted_rank_is_another_attempt(tmp_path: Path) -> None:
    first, second = writer(pid=1, rank=0), writer(pid=2, rank=0)
    first.save(tmp_path / "dedicated_log_torch_trace_rank_0_zzz.log")
    later = second.text.replace("V1121 14:", "V1121 15:")
    (tmp_path / "dedicated_log_torch_trace_rank_0_aaa.log").write_text(later)
    report, _ = import_traces([tmp_path])
    assert [(rank.rank, rank.attempt, rank.pid) for rank in report.ranks] == [(0, 0, 1), (0, 1, 2)]


def test_one_report_whatever_the_number_of_processes(tmp_path: Path) -> None:
    for rank in range(4):
        writer(pid=rank).save(tmp_path / f"dedicated_log_torch_trace_rank_{rank}_abc.log")
    alone, _ = import_traces([tmp_path], jobs=1)
    seen: list[Progress] = []
    together, _ = import_traces([tmp_path], jobs=3, watch=seen.append)
    assert together == alone
    assert seen[-1].files == seen[-1].of_files == 4
    assert seen[-1].taken == seen[-1].size
    assert "4 of 4 files" in seen[-1].line()
    with ThreadPoolExecutor(2) as executor:
        elsewhere, _ = import_traces([tmp_path], executor=executor, watch=seen.append)
    assert elsewhere == alone
    assert (seen[-1].files, seen[-1].taken) == (4, seen[-1].size)


def test_a_trace_in_which_nothing_was_compiled(tmp_path: Path) -> None:
    made = Writer()
    made.record({"chromium_event": {}}, None, "{}")
    done = run_import(made.save(tmp_path / "a.log").parent, "a.log")
    assert done.returncode == 0
    # It cannot say why: a trace names neither what was imported nor what was called.
    assert "VACUOUS: nothing was compiled, so this report says nothing about the script" in done.stdout


@pytest.mark.parametrize(
    ("make", "words", "says"),
    [
        (lambda folder: None, ("missing",), "there is no file or folder missing"),
        (lambda folder: (folder / "empty").mkdir(), ("empty",), "the folder empty is empty"),
        (lambda folder: (folder / "a.log").write_text(""), ("a.log",), "it is empty"),
        (
            lambda folder: (folder / "a.log").write_text("one\ntwo\n"),
            ("a.log",),
            "a.log is not a trace: it holds no record of TORCH_TRACE or TORCH_LOGS",
        ),
        (lambda folder: (folder / "a.bin").write_bytes(bytes(range(256)) * 64), ("a.bin",), "not a trace"),
        (lambda folder: (folder / "pic.png").write_bytes(b"\x89PNG"), (".",), "holds 1 files, none of them"),
        (lambda folder: (folder / "a.gz").write_bytes(b"\x1f\x8b\x08garbage"), ("a.gz",), "not a trace"),
        (lambda folder: None, (), "missing argument"),
        (lambda folder: None, ("-o", ".", "x"), "it is a directory"),
    ],
    ids=["missing", "empty folder", "empty", "text", "bytes", "picture", "bad gzip", "nothing", "directory"],
)
def test_nothing_to_import_is_one_sentence(tmp_path: Path, make, words: tuple[str, ...], says: str) -> None:
    make(tmp_path)
    done = run_import(tmp_path, *words)
    assert done.returncode == 2
    assert says in done.stderr.lower() or says in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Traceback" not in done.stderr
    assert not (tmp_path / ".breakscope" / "latest.json").exists()


def test_what_is_no_trace_does_not_keep_the_others_from_being_read(tmp_path: Path) -> None:
    writer().save(tmp_path / "good.log")
    (tmp_path / "bad.log").write_text("nothing of interest\n")
    done = run_import(tmp_path, "good.log", "bad.log")
    assert done.returncode == 0
    assert "bad.log is not a trace" in done.stderr
    report = breakscope.load(tmp_path / ".breakscope" / "latest.json")
    assert codes(report) == ["BS101", "BS201"]
    assert "not used: bad.log is not a trace" in notes(report)


@pytest.mark.parametrize("format_", sorted(set(FORMATS) - {"parquet", "warmup"}))
def test_every_format_can_show_an_import(tmp_path: Path, format_: str) -> None:
    for rank in range(2):
        writer(pid=rank).save(tmp_path / f"dedicated_log_torch_trace_rank_{rank}_abc.log")
    one, _ = import_traces([tmp_path / "dedicated_log_torch_trace_rank_0_abc.log"])
    both, _ = import_traces([tmp_path])
    for report in (one, both):
        schema.save(report, tmp_path / "report.json")
        done = run_command("report", "report.json", "--format", format_, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        # Time lines hold steps and compiles, no findings, and a report to torch has torch's words.
        other = {
            "perfetto": "traceEvents",
            "speedscope": "evented",
            "issue": "# torch.compile, graph break",
        }
        assert other.get(format_, "BS101") in done.stdout


def test_the_page_of_an_import(tmp_path: Path) -> None:
    report, _ = import_traces([writer().save(tmp_path / "a.log")])
    schema.save(report, tmp_path / "report.json")
    done = run_command("report", "report.json", "--html", "-o", "page.html", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "not measured" in (tmp_path / "page.html").read_text()


def test_a_folder_full_of_other_logs(tmp_path: Path) -> None:
    for number in range(9):
        (tmp_path / f"{number}.log").write_text("nothing of interest\n")
    writer().save(tmp_path / "good.log")
    done = run_import(tmp_path, ".", "-q")
    assert done.returncode == 0
    assert len(done.stderr.splitlines()) == 6
    assert "4 more files could not be used" in done.stderr


def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = writer().save(tmp_path / "a.log")
    path.chmod(0)
    try:
        path.read_bytes()
    except PermissionError:
        with pytest.raises(TraceError, match=r"cannot read .*a\.log: Permission denied"):
            import_traces([path])
    else:
        pytest.skip("this user may read everything")


def test_a_reader_without_zstandard_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "a.zst").write_bytes(b"\x28\xb5\x2f\xfd" + bytes(40))
    (tmp_path / "zstandard.py").write_text("raise ImportError")
    (tmp_path / "compression").mkdir()
    (tmp_path / "compression" / "__init__.py").write_text("raise ImportError")
    done = run_import(tmp_path, "a.zst", PYTHONPATH=f"{tmp_path}:{Path(breakscope.__file__).parent.parent}")
    assert done.returncode == 2
    assert "pip install zstandard" in done.stderr


def test_an_earlier_report_stays(tmp_path: Path) -> None:
    writer().save(tmp_path / "a.log")
    assert run_import(tmp_path, "a.log", "-q", "-o", "deep/report.json").returncode == 0
    before = (tmp_path / "deep" / "report.json").read_bytes()
    (tmp_path / "b.log").write_text("no trace")
    assert run_import(tmp_path, "b.log", "-q", "-o", "deep/report.json").returncode == 2
    assert (tmp_path / "deep" / "report.json").read_bytes() == before
