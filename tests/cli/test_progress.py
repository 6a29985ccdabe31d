"""The live line: how long a command has worked, and how long it still takes."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from scanning import clean_environment, command

import breakscope
from breakscope.cli.progress import Progress, duration
from breakscope.cli.remedy import _counted


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_line_says_how_long_it_has_been_and_estimates_what_is_left() -> None:
    clock = Clock()
    progress = Progress(clock=clock)
    progress("starting eager")
    clock.now += 5
    assert progress.line() == "starting eager, 5 s"
    progress("round 1 of 5: eager")
    assert progress.line() == "round 1 of 5: eager, 5 s"
    clock.now += 10
    progress("round 1 of 5: compiled")
    clock.now += 10
    progress("round 2 of 5: eager")
    assert progress.line() == "round 2 of 5: eager, 25 s, about 1 min 20 s left"
    progress("profiling eager")
    assert progress.line() == "profiling eager, 25 s"


def test_runs_of_the_script_are_counted_by_remedy() -> None:
    clock = Clock()
    progress = Progress(clock=clock)
    tell = _counted(progress, findings=2)
    said = []
    for text in ("as it is", "BS201 f", "BS201 f again", "BS207 g"):
        tell(text)
        said.append(progress.line())
        clock.now += 4
    assert said == [
        "run 1 of about 3: as it is, 0 s",
        "run 2 of about 3: BS201 f, 4 s, about 8 s left",
        "run 3 of about 3: BS201 f again, 8 s, about 4 s left",
        "run 4 of about 4: BS207 g, 12 s, about 4 s left",
    ]


@pytest.mark.parametrize(("seconds", "said"), [(0.4, "0 s"), (59.6, "1 min 0 s"), (125, "2 min 5 s")])
def test_durations(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_a_pipe_gets_no_live_line(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress() as progress:
        progress("run 1 of 2")
    assert capsys.readouterr() == ("", "")


SCRIPT = """
import os, sys, time
import torch

@torch.compile(backend="eager", dynamic=False)
def f(x):
    return x + 1

if os.path.exists("slow"):
    open("started", "w").close()
    time.sleep(600)
for size in (2, 3, 4):
    x = torch.ones(size)
    f(x)
"""


@pytest.mark.torch
@pytest.mark.slow
def test_ctrl_c_ends_remedy_with_one_line_of_what_is_kept(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    scan = command("scan", "-q", "script.py")
    subprocess.run(scan, cwd=tmp_path, env=clean_environment(), check=True, capture_output=True)
    before = (tmp_path / ".breakscope" / "latest.json").read_bytes()
    assert breakscope.load(tmp_path / ".breakscope" / "latest.json").totals.recompiles == 2
    (tmp_path / "slow").touch()
    leader, follower = pty.openpty()
    running = subprocess.Popen(
        command("remedy"),
        cwd=tmp_path,
        env=clean_environment(TERM="xterm"),
        stderr=follower,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(follower)
    said = ""
    while not (tmp_path / "started").exists() or ", 1 s" not in said:
        said += os.read(leader, 4096).decode()
    assert "run 1 of about " in said
    assert "running the script as it is, 1 s" in said
    os.killpg(running.pid, signal.SIGINT)
    said = ""
    try:
        while chunk := os.read(leader, 4096):
            said += chunk.decode()
    except OSError:  # how a pseudo-terminal ends
        pass
    assert running.wait(60) == 130
    last = said.replace("\r\n", "\n").rpartition("\x1b[2K")[2]
    assert last.startswith("breakscope: interrupted after ")
    assert last.endswith("s; .breakscope/latest.json is as it was, and no file of yours was changed\n")
    assert last.count("\n") == 1
    assert (tmp_path / ".breakscope" / "latest.json").read_bytes() == before


def test_a_line_is_as_wide_as_the_terminal_and_a_pipe_gets_none() -> None:
    said = "import sys; from breakscope.cli.output import draw; draw('x' * 200); draw('')"
    script = [sys.executable, "-c", said]
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 40))
    subprocess.run(
        script, stdout=subprocess.PIPE, stderr=theirs, env=clean_environment(TERM="xterm"), check=True
    )
    assert os.read(ours, 4096).decode() == "\r\x1b[2K" + "x" * 38 + "…\r\x1b[2K"
    os.close(theirs)
    os.close(ours)
    done = subprocess.run(script, capture_output=True, env=clean_environment(TERM="xterm"), check=True)
    assert done.stderr == b""
