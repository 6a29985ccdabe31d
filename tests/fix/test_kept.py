"""What a ``fix`` runs, and what it takes from an earlier one. A script that tells forks apart gets no forks."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from report_samples import CLEAN
from scanning import Scanned, run_cold

from breakscope.cli import main
from breakscope.errors import UsageError
from breakscope.fix import engine, proofs
from breakscope.fix.kept import load, save
from breakscope.fix.outcomes import Fixed, Written
from breakscope.fix.proofs import holds_secrets
from breakscope.fix.runs import Script
from breakscope.fix.work import Options
from breakscope.inside.settings import Settings
from breakscope.run.launch import Program

pytestmark = pytest.mark.torch

Scan = Callable[..., Scanned]

SCRIPT = """\
import os, sys
print("loaded", "torch" in sys.modules)
with open("runs.txt", "a") as file:
    file.write("run ")
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        y = self.layer(x)
        if not torch.isfinite(y).all():
            y = torch.clamp(y, -9, 9)
        return y * 2


net = Net()
for _ in range(3):
    net(torch.randn(2, 4))
"""
OPTIONS = ("--no-inductor", "--all", "--select", "BS1")
KEPT = "nothing was run"
ANEW_SAID = "nothing kept is taken"
ANEW = "runs of the script were not forked but started anew, which takes longer: "


def fix(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return run_cold("fix", *OPTIONS, *options, folder=folder)


def runs(folder: Path) -> int:
    return (folder / "runs.txt").read_text().count("run")


def test_a_second_fix_of_the_same_runs_nothing_and_says_the_same(
    scan: Scan, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The script prints whether torch is loaded at its first line: in a fork it is, so that runs are plain ones."""
    folder = scan(SCRIPT).folder
    first = fix(folder)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "proved  BS101" in first.stdout
    before = runs(folder)

    second = fix(folder, "--timeout", "400")  # no run was ended by any
    assert (second.stdout, second.returncode) == (first.stdout, first.returncode)
    assert KEPT in second.stderr
    assert KEPT not in first.stderr
    [why] = [line for line in first.stderr.splitlines() if line.startswith(ANEW)]
    assert why != ANEW
    assert ANEW not in second.stderr
    assert runs(folder) == before

    # A file that another fix writes at this moment does not get edits that were made for the old one.
    digests = proofs.digests

    def written_meanwhile(files: Any) -> dict[str, str]:
        found = digests(files)
        if isinstance(files, dict):  # those of the kept answer
            (folder / "script.py").write_text("# one line more\n" + SCRIPT)
        return found

    def begins_anew(*_: object) -> None:
        raise UsageError(ANEW_SAID)

    monkeypatch.setattr(proofs, "digests", written_meanwhile)
    monkeypatch.setattr(engine.from_rules, "read_sources", begins_anew)
    monkeypatch.chdir(folder)
    main(["fix", "--write", *OPTIONS])
    assert (folder / "script.py").read_text() == "# one line more\n" + SCRIPT
    monkeypatch.setattr(proofs, "digests", digests)

    # What was asked for, and every file, is part of what an answer depends on.
    for text, *more in ((SCRIPT, "--ignore", "BS101"), (SCRIPT + "\n",), (SCRIPT,)):
        (folder / "script.py").write_text(text)
        capsys.readouterr()
        main(["fix", *OPTIONS, *more])
        is_kept = (text, more) == (SCRIPT, [])
        told = capsys.readouterr().err
        assert (KEPT in told, ANEW_SAID in told) == (is_kept, not is_kept)


def test_a_secret_of_the_environment_is_one_wherever_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"functions": [{"found": {"arguments": ["name = 'plain-words'"]}}]}
    assert not holds_secrets(said)
    monkeypatch.setenv("SERVICE_TOKEN", "plain-words")
    assert holds_secrets(said)


SECRET = "hf_" + "aB3" * 10


@pytest.mark.parametrize(("line", "kept"), [("config.x = 1", True), (f"config.x = '{SECRET}'", False)])
def test_an_answer_that_holds_a_secret_is_not_kept(tmp_path: Path, line: str, *, kept: bool) -> None:
    options = Options(Settings(), proofs=tmp_path)
    save(CLEAN, script(tmp_path), options, Fixed((), {}, None, written=Written(1, 0, 0, (), (line,))), [])
    assert (load(CLEAN, script(tmp_path), options) is not None) == kept
    assert not any(SECRET in file.read_text() for file in tmp_path.iterdir())


def test_a_run_that_was_ended_by_a_timeout_makes_the_answer_one_for_that_timeout(tmp_path: Path) -> None:
    """Where none was ended, another --timeout asks for the same."""
    options, answer = Options(Settings(), proofs=tmp_path), Fixed((), {}, None)
    ended = script(tmp_path, 5)
    ended.timeouts.append(5.0)
    save(CLEAN, ended, options, answer, [])
    assert load(CLEAN, script(tmp_path, 6), options) is None
    assert load(CLEAN, script(tmp_path, 5), options) is not None
    save(CLEAN, script(tmp_path, 5), options, answer, [])
    assert load(CLEAN, script(tmp_path, 6), options) is not None


def script(folder: Path, timeout_s: float | None = None) -> Script:
    return Script(Program("a.py", False, (), "a.py"), folder, timeout_s, 60)
