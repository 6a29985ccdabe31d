"""A program run by Python and by a scan, each in a fresh copy of one folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from scanning import clean_environment

ADDRESS = re.compile(rb"\b0x[0-9a-f]+")
HERE = Path(__file__).parent


@dataclass(frozen=True)
class World:
    """Under what circumstances a program runs.

    Attributes:
        environment: variables on top of ours; None takes one away. alone: no other variable is there.
        options: of Python, in front of the script; scans get them as ``python OPTIONS -m breakscope``.
        stdin: what can be read; None for a closed standard input.
        before: called in the new process before it becomes Python.
        files: of the folder.
    """

    environment: Mapping[str, str | None] = field(default_factory=dict)
    alone: bool = False
    options: tuple[str, ...] = ()
    stdin: bytes = b""
    before: Callable[[], object] | None = None
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    shell: str | None = None


@dataclass(frozen=True)
class Ran:
    """What came of it."""

    code: int
    stdout: bytes
    stderr: bytes
    files: Mapping[str, bytes]


def twice(folder: Path, words: Sequence[str], world: World) -> tuple[Ran, Ran]:
    """Run ``python WORDS`` and ``breakscope scan WORDS``; what each came to."""
    python = [sys.executable, *world.options]
    plain = run(folder, [*python, *words], world)
    return plain, run(folder, [*python, "-m", "breakscope", "scan", "-q", *words], world)


def run(folder: Path, command: Sequence[str], world: World) -> Ran:
    """Run a command in a new folder that has the world's files, and is always called the same."""
    place = folder / "here"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for name, content in world.files.items():
        target = place / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
    base = {} if world.alone else clean_environment()
    environment = {name: value for name, value in {**base, **world.environment}.items() if value is not None}
    if world.shell is not None:  # "$@" is the command
        command = ["bash", "-c", world.shell, "bash", *command]
    done = subprocess.run(
        command,
        cwd=place,
        env=environment,
        input=world.stdin,
        capture_output=True,
        preexec_fn=world.before,
        close_fds=False,
        timeout=120,
        check=False,
    )
    left = {
        str(path.relative_to(place)): path.read_bytes()
        for path in place.rglob("*")
        if path.is_file() and not {".breakscope", "__pycache__"} & set(path.relative_to(place).parts)
    }
    # A shell that waits for a process which a signal ended says 128 + its number, as a scan does.
    code = done.returncode if done.returncode >= 0 else 128 - done.returncode
    return Ran(code, *(ADDRESS.sub(b"0x", said) for said in (done.stdout, done.stderr)), left)


def reports(folder: Path) -> list[str]:
    """The report files that a scan has left."""
    place = folder / "here" / ".breakscope"
    return sorted(os.listdir(place)) if place.is_dir() else []
