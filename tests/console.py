"""The console blocks of the documentation: what they say, and how they are run.

A block is a fence of the language ``console``: lines that begin with ``$ `` are commands, the others are what
these print on standard output. In an output, ``...`` alone stands for any lines, and inside of a line for any
text. A command must exit with 0, or with the ``exit status N`` that its comment names. Blocks of one page run in
the order in which they stand, in one folder that begins as a repository of its own: ``fixtures`` and
``docs/example`` as they are here, and ``train.py``, which is ``docs/example/slow.py``.

What a page needs besides is said in a comment in front of a block:

    <!-- console: needs: COMMAND -->           run before the block; readers do not see it
    <!-- console: nightly -->                  takes long, so that it runs in the nightly tests
    <!-- console: not run: "WORDS" needs WHY -->   commands with these words are only read; all, without words

A block after ``<!-- run: … -->`` is made by scripts/make_docs.py, and another test holds it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scanning import clean_environment

ROOT = Path(__file__).resolve().parent.parent
_BLOCK = re.compile(
    r"(?P<before>(?:^ *<!-- (?:console|run): [^\n]* -->\n)*)^(?P<indent> *)```console\n(?P<text>.*?)^(?P=indent)```",
    re.DOTALL | re.MULTILINE,
)
_NOTE = re.compile(r"<!-- console: (?P<note>.*?) -->")
_NOT_RUN = re.compile(r'not run: (?:"(?P<words>[^"]+)" )?needs (?P<why>.+)')
_STATUS = re.compile(r"#.*\bexit status (\d+)")
_UNTIL_INTERRUPTED = "Ctrl-C ends it"


@dataclass(frozen=True)
class Command:
    """One command of a block, and what the page shows of its output."""

    line: str
    output: str

    @property
    def status(self) -> int:
        named = _STATUS.search(self.line)
        return int(named[1]) if named else 0


@dataclass(frozen=True)
class Block:
    """A console block of a page, with what its notes say."""

    page: str
    commands: tuple[Command, ...]
    notes: tuple[str, ...]
    made_elsewhere: bool

    @property
    def nightly(self) -> bool:
        return "nightly" in self.notes

    @property
    def needs(self) -> tuple[str, ...]:
        return tuple(note.removeprefix("needs: ") for note in self.notes if note.startswith("needs: "))

    def not_run(self, command: Command) -> str | None:
        """What a command needs that this machine need not have; None for one that runs."""
        for note in filter(None, map(_NOT_RUN.fullmatch, self.notes)):
            if note["words"] is None or note["words"] in command.line:
                return note["why"]
        return None


def blocks(page: Path) -> list[Block]:
    """The console blocks of a page, in order."""
    name = page.relative_to(ROOT).as_posix()
    return [
        Block(
            name,
            tuple(_commands(found["text"].replace("\n" + found["indent"], "\n")[len(found["indent"]) :])),
            tuple(_NOTE.findall(found["before"])),
            "<!-- run:" in found["before"],
        )
        for found in _BLOCK.finditer(page.read_text(encoding="utf-8"))
    ]


def _commands(text: str) -> Iterator[Command]:
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        line, _, output = part.partition("\n")
        yield Command(line, output.strip("\n"))


def fits(shown: str, printed: str) -> bool:
    """Whether what a command printed is what the page shows of it; a page that shows nothing says nothing."""
    if not shown:
        return True
    lines = (
        r"(?:[^\n]*\n)*?" if line.strip() == "..." else _line(line) + r"[ \t]*\n"
        for line in shown.splitlines()
    )
    return re.fullmatch("".join(lines), printed.rstrip("\n") + "\n") is not None


def _line(shown: str) -> str:
    return "[^\n]*?".join(re.escape(part) for part in shown.rstrip().split("..."))


@dataclass(frozen=True)
class Shell:
    """Runs commands as a reader would, in one folder."""

    folder: Path

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        if _UNTIL_INTERRUPTED in line:
            line = "timeout --preserve-status --signal=INT 8 " + line
        return subprocess.run(
            ["bash", "-o", "pipefail", "-c", line],
            cwd=self.folder,
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )

    def _environment(self) -> dict[str, str]:
        commands = self.folder.parent / "bin"
        path = os.pathsep.join((str(commands), str(Path(sys.executable).parent), os.environ["PATH"]))
        return clean_environment(
            PATH=path, PYTHONPATH=str(ROOT), COLUMNS="100", NO_COLOR="1", OMP_NUM_THREADS="1"
        )
