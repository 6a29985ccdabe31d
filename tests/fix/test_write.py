"""Writing into the user's files: everything but the change survives, and a file is never half written."""

from __future__ import annotations

import os
import random
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from breakscope.fix.apply import ChangedError, replace
from breakscope.fix.patch import Edit
from breakscope.fix.source_file import NotTextError, Source

OLD, NEW = b"old " * 50_000, b"new " * 90_000


def edit(source: Source, what: str, by: str) -> Edit:
    start = source.text.index(what)
    return Edit(start, start + len(what), by)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"a = 1\r\nb = 2\r\nc = 3", b"a = 1\r\nx\r\ny\r\nc = 3"),
        (b"a = 1\nb = 2\nc = 3\n", b"a = 1\nx\ny\nc = 3\n"),
        (b"\xef\xbb\xbfa = '\xc3\xa4'\nb = 2\n", b"\xef\xbb\xbfa = '\xc3\xa4'\nx\ny\n"),
        (b"# coding: latin-1\na = '\xe4'\nb = 2\n", b"# coding: latin-1\na = '\xe4'\nx\ny\n"),
        (b"a = 1\r\nb = 2\nc = 3\r\n", b"a = 1\r\nx\ny\nc = 3\r\n"),
        (b"a = '\x0c'\r\nb = 2\r\n", b"a = '\x0c'\r\nx\r\ny\r\n"),
    ],
    ids=["crlf", "lf", "byte order mark", "latin-1", "mixed", "form feed"],
)
def test_line_ends_and_encoding_survive(data: bytes, expected: bytes) -> None:
    source = Source.of(data)
    assert source.changed([edit(source, "b = 2", "x\ny")]).data == expected


def test_a_character_that_the_encoding_lacks_is_refused() -> None:
    source = Source.of(b"# coding: latin-1\nb = 2\n")
    with pytest.raises(NotTextError, match="iso-8859-1 lacks a character"):
        source.changed([edit(source, "2", "'∑'")])


@settings(deadline=None)
@given(st.text(alphabet="ab \n\r\tä∑", max_size=60), st.data())
def test_an_edit_changes_nothing_outside_of_it(text: str, data: st.DataObject) -> None:
    source = Source.of(text.encode())
    start = data.draw(st.integers(0, len(source.text)))
    end = data.draw(st.integers(start, len(source.text)))
    changed = source.changed([Edit(start, end, "XY")])
    assert changed.text == source.text[:start] + "XY" + source.text[end:]
    assert source.changed([]).data == source.data


@settings(deadline=None, max_examples=40)
@given(st.lists(st.sampled_from(["a = 1", "b", "", "ä"]), max_size=8), st.booleans(), st.integers(0, 7))
def test_git_takes_the_diff(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], crlf: bool, at: int
) -> None:
    ending = "\r\n" if crlf else "\n"
    source = Source.of(ending.join([*lines, "end"]).encode())
    place = min(at, len(source.text))
    changed = source.changed([Edit(place, place, "new\n")])
    folder = tmp_path_factory.mktemp("git")
    (folder / "file.py").write_bytes(source.data)
    (folder / "one.patch").write_bytes(source.diff(changed, "file.py").encode())
    subprocess.run(["git", "apply", "one.patch"], cwd=folder, check=True, capture_output=True)
    assert (folder / "file.py").read_bytes() == changed.data


def test_mode_and_link_survive(tmp_path: Path) -> None:
    real, link = tmp_path / "real.py", tmp_path / "link.py"
    real.write_bytes(OLD)
    real.chmod(0o750)
    link.symlink_to(real)
    replace(str(link), OLD, NEW)
    assert link.is_symlink()
    assert real.read_bytes() == NEW
    assert stat.S_IMODE(real.stat().st_mode) == 0o750
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.py", "real.py"]


def test_a_file_that_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "file.py"
    file.write_bytes(b"somebody else's")
    with pytest.raises(ChangedError):
        replace(str(file), OLD, NEW)
    assert file.read_bytes() == b"somebody else's"
    assert [path.name for path in tmp_path.iterdir()] == ["file.py"]


# Starts a writer, a process of its own, for each line that it reads, and says its process id and that it is gone.
# Whole lines at once: two processes write to one pipe.
WRITERS = """
import os, sys
from breakscope.fix.apply import replace

file, old, new = sys.argv[1], b"old " * 50_000, b"new " * 90_000
for _ in sys.stdin:
    writer = os.fork()
    if not writer:
        os.write(1, b"ready\\n")
        while True:
            replace(file, old, new)
            replace(file, new, old)
    os.write(1, f"{writer}\\n".encode())
    os.waitpid(writer, 0)
    os.write(1, b"gone\\n")
"""


@pytest.mark.slow
def test_killed_at_any_point_the_file_is_old_or_new(tmp_path: Path) -> None:
    """Bar 6: SIGKILL 200 times, at moments spread over the writing."""
    file = tmp_path / "file.py"
    chance = random.Random(0)
    seen = {OLD: 0, NEW: 0}
    writers = subprocess.Popen(
        [sys.executable, "-c", WRITERS, str(file)],
        cwd=Path(__file__).resolve().parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
        start_new_session=True,
    )
    assert writers.stdin is not None
    assert writers.stdout is not None
    try:
        for _ in range(200):
            file.write_bytes(OLD)
            writers.stdin.write("another\n")
            writer, ready = sorted(writers.stdout.readline() for _ in range(2))
            assert ready == "ready\n"
            time.sleep(chance.random() * 0.02)
            os.kill(int(writer), signal.SIGKILL)
            assert writers.stdout.readline() == "gone\n"
            content = file.read_bytes()
            assert content in seen
            seen[content] += 1
    finally:
        os.killpg(writers.pid, signal.SIGKILL)
        writers.communicate()
    # Were it always the same, the kills would not have been spread over the writing.
    assert min(seen.values()) > 0
