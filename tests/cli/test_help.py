"""The help, its colours, and completion in the shells."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest
from scanning import clean_environment
from test_cli_contract import breakscope

from breakscope.cli.app import NAMES, Commands

PROGRAM = [sys.executable, "-c", "import sys; from breakscope.cli import main; sys.exit(main())"]


def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    plain = {
        key: value
        for key, value in clean_environment().items()
        if key not in ("FORCE_COLOR", "NO_COLOR", "COLUMNS")
    }
    return subprocess.run(
        [*PROGRAM, *words], capture_output=True, text=True, check=False, env={**plain, **variables}
    )


# ---- colours and widths ----


def test_help_is_coloured_where_it_is_wanted_and_plain_in_a_pipe() -> None:
    plain = run("scan", "--help")
    assert "\x1b" not in plain.stdout
    coloured = run("scan", "--help", FORCE_COLOR="1").stdout
    assert "\x1b[36m--backend" in coloured
    assert "\x1b[1mOptions:\x1b[0m" in coloured
    for style in ("\x1b[1m", "\x1b[36m", "\x1b[0m"):
        coloured = coloured.replace(style, "")
    assert coloured == plain.stdout


def test_help_is_coloured_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {key: value for key, value in clean_environment().items() if key != "NO_COLOR"}
    said, code = pexpect.run(
        f"{sys.executable} -m breakscope",
        env={**environment, "TERM": "xterm"},
        withexitstatus=True,
        encoding="utf-8",
    )
    assert code == 0
    assert "\x1b[1mRepair:\x1b[0m\r\n  \x1b[36mfix\x1b[0m" in said


@pytest.mark.parametrize("name", ["", *NAMES])
def test_help_fits_sixty_columns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    lines = breakscope(*filter(None, [name]), "--help").out.splitlines()
    # A list of formats is one word.
    assert [line for line in lines if len(line) > 60 and len(line.split()[-1]) < 50] == []


def test_a_mistyped_option_is_answered_with_the_nearest() -> None:
    ended = breakscope("scan", "--backnd", "eager", "x.py")
    assert ended.err.startswith("breakscope: no such option --backnd; did you mean --backend")


@pytest.mark.parametrize("line", ["diff a.json", "show", "merge a.json", "import", "prove"])
def test_what_is_missing_is_said(line: str) -> None:
    ended = breakscope(*line.split())
    assert ended.code == 2
    assert ended.err.startswith(("breakscope: missing argument ", "breakscope: missing option --output / -o"))


def test_every_option_and_argument_has_a_help_text() -> None:
    commands = Commands()
    without = [
        (name, one.name) for name in NAMES for one in commands[name].params if not one.hidden and not one.help
    ]
    assert without == []


# ---- completion ----

# How each shell asks, and how a candidate stands in its answer.
ASKED = {
    "bash": ("complete_bash", lambda words: {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}),
    "zsh": ("complete_zsh", lambda words: {"_TYPER_COMPLETE_ARGS": words}),
    "fish": (
        "complete_fish",
        lambda words: {"_TYPER_COMPLETE_ARGS": words, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    ),
}


@pytest.mark.parametrize("shell", ASKED)
@pytest.mark.parametrize(
    ("words", "candidates"),
    [
        ("breakscope re", ["report", "remedy"]),
        ("breakscope scan --back", ["--backend"]),
        ("breakscope remedy --sel", ["--select"]),
    ],
)
def test_each_shell_gets_its_candidates(shell: str, words: str, candidates: list[str]) -> None:
    instruction, variables = ASKED[shell]
    done = run(_BREAKSCOPE_COMPLETE=instruction, **variables(words))
    assert done.returncode == 0, done.stderr
    for one in candidates:
        assert one in done.stdout


@pytest.mark.parametrize("shell", ASKED)
def test_completion_is_installed_for_each_shell(shell: str, tmp_path: Path) -> None:
    """The shell is known by the process that asks; here it is named, as where that is not to be seen."""
    done = run(
        *("--install-completion", shell), HOME=str(tmp_path), _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1"
    )
    assert done.returncode == 0, done.stderr
    assert f"{shell} completion installed in " in done.stdout
    script = Path(done.stdout.split(" installed in ")[1].splitlines()[0])
    text = script.read_text()
    assert script.is_relative_to(tmp_path)
    assert f"_BREAKSCOPE_COMPLETE=complete_{shell}" in text
    assert "breakscope" in text
    assert (shell == "zsh") == text.endswith('\n_breakscope_completion "$@"\n')


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_completes_at_the_first_tab(tmp_path: Path) -> None:
    program = tmp_path / "breakscope"
    program.write_text("#!/bin/sh\nexec " + f"{sys.executable} -m breakscope" + ' "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, "TERM": "dumb", "HOME": str(tmp_path), "ZDOTDIR": str(tmp_path)}
    environment["PATH"] = f"{tmp_path}:{environment['PATH']}"
    installed = ["zsh", "-c", "breakscope --install-completion; true"]
    subprocess.run(installed, env=environment, check=True, capture_output=True)
    with (tmp_path / ".zshrc").open("a") as file:
        file.write("\nPS1='ready> '\n")
    zsh = pexpect.spawn("zsh", ["-i"], encoding="utf-8", env=environment, timeout=60, dimensions=(30, 120))
    zsh.expect_exact("ready> ")
    zsh.send("breakscope reme\t")
    zsh.expect_exact("remedy")
    zsh.close(force=True)


def test_bash_completes_what_is_typed(tmp_path: Path) -> None:
    """A real bash, a real Tab."""
    program = tmp_path / "breakscope"
    program.write_text("#!/bin/sh\nexec " + f"{sys.executable} -m breakscope" + ' "$@"\n')
    program.chmod(0o755)
    script = run("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1").stdout
    (tmp_path / "rc").write_text(f"PS1='$ '\nPATH={tmp_path}:$PATH\n{script}\n")
    bash = pexpect.spawn(
        "bash",
        ["--noprofile", "--rcfile", str(tmp_path / "rc"), "-i"],
        encoding="utf-8",
        env={**os.environ, "TERM": "dumb", "INPUTRC": "/dev/null"},
        timeout=60,
    )
    bash.expect_exact("$ ")
    bash.send("breakscope reme\t--ign\t\x01echo \r")
    bash.expect_exact("breakscope remedy --ignore\r\n")
    bash.close()
