"""Many writers, full disks and kills of the real commands: ``python benchmarks/load.py --only writes``.

A small project is fixed once, so that every later ``fix --write`` takes its answer from the kept proofs and
does nothing but write. Each command then runs in a fork of a process that has it loaded: the kill meets the
writing, not Python's start.
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from breakscope.cli import main
from breakscope.errors import OutputError
from breakscope.fix import apply
from breakscope.report import files, schema

SOURCE = """
import torch

def scaled(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = x - 1
    return y

compiled = torch.compile(scaled, backend="eager")
for sign in (1, -1, 1, -1):
    compiled(sign * torch.ones(4))
"""
FIX = ["fix", "--write", "--no-inductor"]
BASELINE = ["check", "latest.json", "--update-baseline", "--baseline", "baseline.json"]
PAGE = ["report", "latest.json", "--html", "-o", "page.html"]
# Each with the files that it replaces; a report, a baseline and a page are also checked to be readable.
COMMANDS = {
    "fix --write": (FIX, ("train.py", ".breakscope/latest.json", ".breakscope/fixes/manifest.json")),
    "check --update-baseline": (BASELINE, ("baseline.json",)),
    "report --html": (PAGE, ("page.html",)),
}
_HOUR_S = 3700


class Project:
    """A folder with a script that has one break, its report, and the kept proof of its rewrite."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "train.py").write_text(SOURCE)
        (folder / "pyproject.toml").write_text('[project]\nname = "load"\nversion = "0"\n')
        self.run("scan", "-q", "train.py")
        self.run(*FIX[:1], *FIX[2:], "--trust-report")
        shutil.copy(folder / ".breakscope" / "latest.json", folder / "latest.json")
        self.before = self._state()
        self.after: dict[str, dict[str, bytes]] = {}
        for name, (words, _) in COMMANDS.items():
            assert self.fork(words) in (0, 1), name
            self.after[name] = self._state()
            self.restore()
        assert self.after["fix --write"]["train.py"] != self.before["train.py"]

    def run(self, *words: str) -> None:
        done = subprocess.run([sys.executable, "-m", "breakscope", *words], cwd=self.folder, check=False)
        assert done.returncode in (0, 1), words

    def _state(self) -> dict[str, bytes]:
        names = {name for _, written in COMMANDS.values() for name in written}
        return {name: data for name in sorted(names) if (data := self.data(name)) is not None}

    def data(self, name: str) -> bytes | None:
        path = self.folder / name
        return path.read_bytes() if path.exists() else None

    def restore(self) -> None:
        """Everything as it was before any command."""
        for name in self._state():
            if name in self.before:
                (self.folder / name).write_bytes(self.before[name])
            else:
                (self.folder / name).unlink()

    def begin(self, words: list[str], prepare: Callable[[], None] = lambda: None) -> int:
        """A fork that runs a command; its process id."""
        pid = os.fork()
        if pid:
            return pid
        code = 99
        try:
            os.chdir(self.folder)
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            prepare()
            code = main(words)
        finally:
            os._exit(code)

    def fork(self, words: list[str], prepare: Callable[[], None] = lambda: None) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(self.begin(words, prepare), 0)[1])

    def mixed(self, name: str) -> list[str]:
        """Files that a command left neither old nor new."""
        before, after = self.before, self.after[name]
        files_of = COMMANDS[name][1]
        return [file for file in files_of if self.data(file) not in (before.get(file), after.get(file))]

    def left(self) -> list[str]:
        """What is there that no command is meant to leave."""
        return [str(path) for path in self.folder.rglob(".breakscope-*.tmp")]

    def sweep(self) -> list[str]:
        """What is still left when each folder is written to an hour later."""
        folders = {path.parent for path in map(Path, self.left())}
        for path in map(Path, self.left()):
            os.utime(path, (time.time() - _HOUR_S,) * 2)
        for folder in folders:
            files.replace(folder / "later", b"")
            (folder / "later").unlink()
        return self.left()


def kills(project: Project, count: int) -> Iterator[Mapping[str, object]]:
    """Each command killed at random moments of its run."""
    chance = random.Random(count)
    for name, (words, written) in COMMANDS.items():
        began = time.perf_counter()
        project.fork(words)
        whole_s = time.perf_counter() - began
        project.restore()
        wrong: list[str] = []
        ended = newer = at_work = 0
        for _ in range(count):
            pid = project.begin(words)
            # Half of them when something is being written, which is a small part of the time.
            if chance.random() < 0.5:
                at_work += _wait_for_writing(pid, whole_s)
            else:
                time.sleep(chance.random() * whole_s)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            ended += os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) >= 0
            wrong += project.mixed(name)
            newer += project.data(written[0]) == project.after[name][written[0]]
            project.restore()
        yield {
            "load": f"{count} kills of {name}",
            "ended_before": ended,
            "killed_while_writing": at_work,
            "new": newer,
            "mixed": wrong,
            "left": len(project.left()),
            "left_an_hour_later": project.sweep(),
        }


def _wait_for_writing(pid: int, most_s: float) -> bool:
    """Until a process has a temporary file open, or is over."""
    deadline = time.perf_counter() + 4 * most_s
    while time.perf_counter() < deadline:
        try:
            opened = [str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir()]
        except OSError:
            continue
        if not opened:
            return False
        if any(".breakscope-" in path for path in opened):
            return True
    return False


def full_disks(project: Project, count: int) -> Iterator[Mapping[str, object]]:
    """Each command where no file may grow past a size: ``count`` sizes up to that of its largest file."""

    def limited(size: int) -> Callable[[], None]:
        return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    for name, (words, written) in COMMANDS.items():
        largest = max(len(project.after[name][file]) for file in written)
        wrong: list[str] = []
        codes: dict[int, int] = {}
        sizes = [*range(0, largest, max(1, largest // count)), largest]
        for size in sizes:
            code = project.fork(words, limited(size))
            codes[code] = codes.get(code, 0) + 1
            wrong += project.mixed(name) + project.left()
            project.restore()
        yield {
            "load": f"{name}, files of at most 0 to {largest} bytes",
            "limits": len(sizes),
            "exit_codes": codes,
            "mixed_or_left": wrong,
        }
    yield _every_byte(project)


def _every_byte(project: Project) -> Mapping[str, object]:
    """The writing of each file itself, at every byte of it."""
    wrong: list[str] = []
    tries = 0
    for name, (_, written) in COMMANDS.items():
        for file in written:
            old, new = project.before.get(file, b"old"), project.after[name][file][:2000]
            target = project.folder / "target"
            for size in range(len(new) + 1):
                target.write_bytes(old)
                tries += 1
                pid = os.fork()
                if pid == 0:
                    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
                    with contextlib.suppress(OSError, OutputError):
                        if file == "train.py":
                            apply.replace(str(target), old, new)
                        else:
                            schema.write(new, target)
                    os._exit(0)
                os.waitpid(pid, 0)
                if target.read_bytes() != (new if size >= len(new) else old):
                    wrong.append(f"{file}: {size}")
            wrong += project.left()
            target.unlink()
    return {"load": "one write, a limit at every byte", "limits": tries, "mixed_or_left": wrong}


def two_at_once(project: Project, rounds: int) -> Mapping[str, object]:
    """Two ``fix --write`` on one file, begun together."""
    wrong: list[str] = []
    codes: dict[str, int] = {}
    for _ in range(rounds):
        pids = [project.begin(FIX), project.begin(FIX)]
        ended = sorted(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids)
        codes[str(ended)] = codes.get(str(ended), 0) + 1
        # One that begins when the other has written begins anew: its report is another one.
        if project.data("train.py") != project.after["fix --write"]["train.py"]:
            wrong.append("train.py")
        schema.load(project.folder / ".breakscope" / "latest.json")
        wrong += project.left()
        project.restore()
    return {"load": f"{rounds} times two fix --write", "exit_codes": codes, "mixed_or_left": wrong}


def measure(folder: Path, *, quick: bool) -> Iterator[Mapping[str, object]]:
    """Every row, as it is known."""
    project = Project(folder)
    yield two_at_once(project, 5 if quick else 30)
    yield from kills(project, 20 if quick else 200)
    yield from full_disks(project, 5 if quick else 400)
