"""Many at once, full disks and sudden ends: every file holds the old or the new, and nothing is left behind.

Nightly: 200 kills instead of 30.
"""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from report_samples import COSTS
from scanning import clean_environment, command

import breakscope
from breakscope.errors import OutputError
from breakscope.report import files, schema


def at_once(folder: Path, commands: list[list[str]]) -> list[tuple[int, str]]:
    started = [
        subprocess.Popen(
            words,
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=clean_environment(),
        )
        for words in commands
    ]
    said = [one.communicate(timeout=120)[1] for one in started]
    return [(one.returncode, text) for one, text in zip(started, said, strict=True)]


@pytest.mark.slow
def test_twenty_scans_in_one_folder_leave_twenty_reports(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("print('ran')\n")
    ended = at_once(tmp_path, [command("scan", "-q", "script.py", str(number)) for number in range(20)])
    assert ended == [(0, "")] * 20
    place = tmp_path / ".breakscope"
    kept = [breakscope.load(path) for path in place.glob("*.json") if path.name != "latest.json"]
    assert sorted(int(report.run.argv[0]) for report in kept) == list(range(20))
    assert breakscope.load(place / "latest.json") in kept


def test_baselines_that_are_updated_at_once_are_whole(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    here = replace(COSTS, run=replace(COSTS.run, cwd=str(tmp_path)))
    schema.save(here, tmp_path / "report.json")
    words = command("check", "report.json", "--update-baseline", "--baseline", "baseline.json")
    ended = at_once(tmp_path, [words] * 8)
    assert {code for code, _ in ended} == {0}, ended
    written = json.loads((tmp_path / "baseline.json").read_text())
    assert "train.py" in json.dumps(written), written
    [(code, _)] = at_once(tmp_path, [command("check", "report.json", "--baseline", "baseline.json")])
    assert code == 0  # all is known
    assert sorted(os.listdir(tmp_path)) == ["baseline.json", "report.json", "train.py"]


def in_a_child(action: Callable[[], bool]) -> bool:
    """Whether an action succeeds in a fork, whose limits are its own."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if action() else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_disk_that_is_full_at_any_byte_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    target = tmp_path / "file"
    old, new = b"old" * 100, b"newer" * 200

    def write_under_every_limit() -> bool:
        for limit in range(len(new) + 2):
            target.write_bytes(old)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            with suppress(OutputError):
                files.write(new, target)
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            wanted = new if limit >= len(new) else old
            if target.read_bytes() != wanted or os.listdir(tmp_path) != ["file"]:
                return False
        return True

    assert in_a_child(write_under_every_limit)


WRITES = """
import sys
from breakscope.report import files
print("ready", flush=True)
while True:
    for letter in b"AB":
        files.write(bytes([letter]) * 300_000, sys.argv[1])
"""


@pytest.mark.parametrize("kills", [30, pytest.param(200, marks=pytest.mark.nightly)])
def test_a_writer_that_is_killed_leaves_a_whole_file(tmp_path: Path, kills: int) -> None:
    target = tmp_path / "file"
    target.write_bytes(b"A" * 300_000)
    chance = random.Random(kills)
    for _ in range(kills // 5):
        # Several at once, each killed at a moment of its own.
        writers = [
            subprocess.Popen([sys.executable, "-c", WRITES, str(target)], stdout=subprocess.PIPE)
            for _ in range(5)
        ]
        for writer in writers:
            assert writer.stdout is not None
            writer.stdout.readline()
        for writer in writers:
            time.sleep(chance.random() * 0.02)
            writer.kill()
            data = target.read_bytes()
            assert len(data) == 300_000
            assert data in (b"A" * 300_000, b"B" * 300_000)
        for writer in writers:
            writer.communicate()
    an_hour_ago = time.time() - 3700
    for left in tmp_path.glob(".breakscope-*.tmp"):
        os.utime(left, (an_hour_ago, an_hour_ago))
    files.write(b"last", target)
    assert os.listdir(tmp_path) == ["file"]
