"""``breakscope import --follow``: a job is shown while it runs."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue

import pexpect
import pytest
from scanning import clean_environment, command
from trace_writer import Writer

import breakscope
from breakscope.errors import TraceError
from breakscope.traces.follow import Follower

FILE = "/job/model.py"
PATIENCE_S = 90

# 300 steps, with another batch size from step 150 on. At step 200 it waits to be told that this was seen.
JOB = """
    import os, time, torch

    @torch.compile(backend="eager")
    def step(x):
        return (x * 2).sum()

    for index in range(300):
        step(torch.ones(4 if index < 150 else 6))
        deadline = time.monotonic() + 90
        while index == 200 and not os.path.exists("seen") and time.monotonic() < deadline:
            time.sleep(0.05)
    print("steps", index + 1)
"""


@contextmanager
def running_job(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    (folder / "job.py").write_text(textwrap.dedent(JOB))
    job = subprocess.Popen(
        [sys.executable, "job.py"],
        cwd=folder,
        env=clean_environment(TORCH_TRACE=str(folder / "trace")),
        stdout=subprocess.PIPE,
    )
    with job:
        try:
            yield job
        finally:
            job.kill()


def lines_of(process: subprocess.Popen[str]) -> Callable[[str], str]:
    """What waits for a line with some text in a process's output."""
    lines: Queue[str] = Queue()
    assert process.stdout is not None
    stream = process.stdout
    threading.Thread(target=lambda: [lines.put(line) for line in stream], daemon=True).start()

    def wait_for(text: str) -> str:
        seen = []
        try:
            while text not in (line := lines.get(timeout=PATIENCE_S)):
                seen.append(line)
        except Empty:
            raise AssertionError(f"no line with {text!r} came; there were {seen}") from None
        return line

    return wait_for


@pytest.mark.torch
def test_a_recompile_is_shown_while_the_job_runs(tmp_path: Path) -> None:
    follow = subprocess.Popen(
        command("import", "--follow", "trace", "-o", "report.json"),  # the folder is not there yet
        cwd=tmp_path,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with follow:
        try:
            with running_job(tmp_path) as job:
                line = lines_of(follow)("BS201")
                assert job.poll() is None  # it is still waiting at step 200
                (tmp_path / "seen").touch()
                assert job.communicate(timeout=PATIENCE_S)[0] == b"steps 300\n"
        finally:
            follow.send_signal(signal.SIGINT)
            assert follow.stderr is not None
            errors = follow.stderr.read()
    code = follow.returncode
    assert "job.py:5 step" in line
    assert "size of x, dimension 0: compiled for 4, got 6" in line
    assert "(1 time so far)" in line
    assert code == 0, errors
    [finding] = breakscope.load(tmp_path / "report.json").findings
    assert finding.code == "BS201"


@pytest.mark.torch
@pytest.mark.slow
def test_the_view_on_a_terminal(tmp_path: Path) -> None:
    words = command("import", "--follow", "trace", "-o", "report.json")
    environment = {**clean_environment(TERM="xterm"), "COLUMNS": "100", "LINES": "30"}
    view = pexpect.spawn(
        words[0], words[1:], cwd=str(tmp_path), env=environment, dimensions=(30, 100), timeout=PATIENCE_S
    )
    with running_job(tmp_path) as job:
        view.expect("following 1 files?,")
        view.expect("BS201")
        assert job.poll() is None
        (tmp_path / "seen").touch()
        job.wait(PATIENCE_S)
    view.sendintr()
    view.expect(pexpect.EOF)
    view.close()
    assert view.exitstatus == 0
    assert breakscope.load(tmp_path / "report.json").totals.recompiles == 1


def test_files_that_appear_and_grow(tmp_path: Path) -> None:
    follower = Follower([tmp_path])
    assert not follower.poll()
    assert follower.report() is None
    first = Writer(pid=1)
    first.compiled("0/0", FILE, "forward", 10, broke_at=12)
    path = tmp_path / "dedicated_log_torch_trace_rank_0_a.log"
    half = len(first.text) // 2
    path.write_text(first.text[:half])
    assert follower.poll()
    with path.open("a") as stream:
        stream.write(first.text[half:])
    second = Writer(pid=2)
    second.compiled("0/0", FILE, "forward", 10, broke_at=12)
    second.save(tmp_path / "dedicated_log_torch_trace_rank_1_b.log")
    assert follower.poll()
    report = follower.report()
    assert report is not None
    assert [(finding.code, finding.ranks) for finding in report.findings] == [("BS101", (0, 1))]
    assert not follower.poll()
    assert follower.files == 2
    assert follower.close() == report


def test_a_file_that_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "dedicated_log_torch_trace_a.log"
    first = Writer()
    first.compiled("0/0", FILE, "forward", 10, broke_at=12)
    first.save(path)
    follower = Follower([path])
    assert follower.poll()
    path.unlink()
    second = Writer()
    second.compiled("0/0", FILE, "other", 20, broke_at=22)
    second.save(path)
    assert follower.poll()
    report = follower.report()
    assert report is not None
    assert [finding.location.line for finding in report.findings] == [22]


def test_nothing_ever_came(tmp_path: Path) -> None:
    follower = Follower([tmp_path / "never"])
    assert not follower.poll()
    with pytest.raises(TraceError, match="no trace was written"):
        follower.close()


def test_reading_costs_no_more_than_what_is_new(tmp_path: Path) -> None:
    """A poll without news reads nothing again."""
    path = tmp_path / "dedicated_log_torch_trace_a.log"
    made = Writer()
    made.compiled("0/0", FILE, "forward", 10, broke_at=12)
    made.save(path)
    follower = Follower([tmp_path])
    follower.poll()
    size = follower.bytes
    assert size == path.stat().st_size
    for _ in range(3):
        assert not follower.poll()
    assert follower.bytes == size
