"""Every console block of README.md and of docs/ runs, and prints what the page shows."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from console import ROOT, Block, Command, Shell, blocks, fits

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
ALL = {page.relative_to(ROOT).as_posix(): blocks(page) for page in PAGES}
HELD = {
    name: held for name, found in ALL.items() if (held := [one for one in found if not one.made_elsewhere])
}
# What is only read, and why. A new one must be named here, so that nobody leaves a block out in passing.
ONLY_READ = {
    ("README.md", "a network"): 3,
    ("docs/bench.md", "a GPU"): 1,
    ("docs/bench.md", "a machine with nothing else to do"): 1,
    ("docs/integrations.md", "a network"): 1,
    ("docs/ranks.md", "a Dask cluster"): 1,
}


def world(folder: Path) -> Shell:
    """A repository in which the commands of a page make sense."""
    project, commands = folder / "project", folder / "bin"
    commands.mkdir()
    for name, words in (
        ("python", ""),
        ("breakscope", "-m breakscope "),
        ("torchrun", "-m torch.distributed.run "),
    ):
        (commands / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words}"$@"\n')
        (commands / name).chmod(0o755)
    ignored = shutil.ignore_patterns(".*", "__pycache__")
    shutil.copytree(ROOT / "fixtures", project / "fixtures", ignore=ignored)
    shutil.copytree(ROOT / "docs" / "example", project / "docs" / "example", ignore=ignored)
    shutil.copy(ROOT / "docs" / "example" / "slow.py", project / "train.py")
    for words in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "as it is")):
        named = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *named, *words], cwd=project, check=True)
    return Shell(project)


def run_all(page: list[Block], shell: Shell) -> list[str]:
    """Run the blocks of a page; what is not as the page says."""
    wrong: list[str] = []
    for block in page:
        for line in block.needs:
            done = shell.run(line)
            assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        for command in block.commands:
            if block.not_run(command) is None:
                wrong += filter(None, [held(command, shell)])
    return wrong


def held(command: Command, shell: Shell) -> str:
    done = shell.run(command.line)
    if done.returncode != command.status:
        return f"`{command.line}` exits with {done.returncode}, not {command.status}:\n{done.stdout}{done.stderr}"
    if not fits(command.output, done.stdout):
        return f"`{command.line}` prints\n{done.stdout}\nwhere the page shows\n{command.output}"
    return ""


def _ours(words: list[str]) -> set[str]:
    """Options that stand before a script: those after it are the script's."""
    script = next(
        (number for number, word in enumerate(words) if word.endswith(".py") or word == "-m"), len(words)
    )
    return {word.partition("=")[0] for word in words[:script] if re.match(r"--?[a-zA-Z]", word)}


def quick(name: str) -> list[Block]:
    return [block for block in HELD[name] if not block.nightly]


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in HELD if quick(name)])
def test_a_page_says_what_its_commands_do(name: str, tmp_path: Path) -> None:
    assert run_all(quick(name), world(tmp_path)) == []


@pytest.mark.torch
@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name in HELD if quick(name) != HELD[name]])
def test_a_page_says_what_its_commands_do_where_some_take_long(name: str, tmp_path: Path) -> None:
    assert run_all(HELD[name], world(tmp_path)) == []


def test_every_command_and_option_that_a_page_names_exists() -> None:
    from breakscope.cli.app import NAMES, command

    options = {
        name: {one for option in made.params for one in (*option.opts, *option.secondary_opts)} | {"--help"}
        for name, made in command().commands.items()
    }
    wrong: set[str] = set()
    for page in PAGES:
        if page.name == "CHANGELOG.md":
            continue
        for span in re.findall(r"`breakscope ([^`]+)`", page.read_text(encoding="utf-8")):
            words = span.split(" -- ")[0].split()
            known = options.get(words[0])
            if known is None:
                wrong |= {span} if re.fullmatch("[a-z]+", words[0]) else set()
                continue
            wrong |= {f"{words[0]} {option}" for option in _ours(words) - known}
    assert wrong == set()
    assert set(options) == set(NAMES)


def test_what_is_only_read_is_known() -> None:
    found: dict[tuple[str, str], int] = {}
    for name, page in HELD.items():
        for block in page:
            for command in block.commands:
                if (why := block.not_run(command)) is not None:
                    found[name, why] = found.get((name, why), 0) + 1
    assert found == ONLY_READ


def test_no_block_escapes() -> None:
    """As many fences as blocks: an indented one, or one after an unknown note, must not be lost."""
    for page in PAGES:
        fences = re.findall(r"^ *```console$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert len(fences) == len(ALL[page.relative_to(ROOT).as_posix()]), page
    notes = {note.partition(":")[0] for page in ALL.values() for block in page for note in block.notes}
    assert notes <= {"nightly", "needs", "not run"}


def test_marks_stand_for_any_text() -> None:
    assert fits("a\n...\nb 1 ... c", "a\nx\ny\nb 1 23 c\n")
    assert fits("...\nlast", "last\n")
    assert not fits("a\nb", "a\nx\nb\n")
    assert not fits("a ... c", "a\nc\n")


def test_a_block_that_lies_is_found(tmp_path: Path) -> None:
    shell = world(tmp_path)
    lies = Block("x.md", (Command("echo one", "two"), Command("false", "")), (), made_elsewhere=False)
    assert [text.splitlines()[0] for text in run_all([lies], shell)] == [
        "`echo one` prints",
        "`false` exits with 1, not 0:",
    ]
